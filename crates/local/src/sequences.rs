//! Caches recent sequences, so that only the new part of a prompt has to be processed.

use candle_core::Result;

use super::attention::KeyValueCache;
use super::network::{HiddenState, Network};

/// Number of cached sequences: the active conversation, and another one that shares its prefix.
const KEPT: usize = 2;

/// Number of tokens at the end of a prompt that are always processed again. It is 2 because a
/// single token uses other kernels with different rounding, and an answer must not depend on the
/// cache.
const RERUN: usize = 2;

/// The cached sequences of one network.
#[derive(Default)]
pub struct SequenceCache {
    kept: Vec<CachedSequence>,
    clock: u64,
}

/// The tokens in a cache and the conversation that they belong to.
pub struct CachedSequence {
    conversation: String,
    tokens: Vec<u32>,
    cache: KeyValueCache,
    used: u64,
}

impl CachedSequence {
    /// Returns the tokens in the cache.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Processes more tokens and adds them to the cache.
    ///
    /// # Errors
    /// The errors of [`Network::extend`]; the sequence is then unchanged.
    pub fn extend(&mut self, network: &Network, tokens: &[u32]) -> Result<HiddenState> {
        let hidden = network.extend(tokens, &mut self.cache)?;
        self.tokens.extend_from_slice(tokens);
        Ok(hidden)
    }

    /// Processes a few tokens as if they were added one by one. Returns the state after each.
    ///
    /// # Errors
    /// The errors of [`Network::extend`]; the sequence is then unchanged.
    pub fn extend_each(&mut self, network: &Network, tokens: &[u32]) -> Result<HiddenState> {
        let hidden = network.extend_each(tokens, &mut self.cache)?;
        self.tokens.extend_from_slice(tokens);
        Ok(hidden)
    }

    /// Removes all tokens after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.cache.truncate(len);
    }

    fn shared(&self, prompt: &[u32]) -> usize {
        self.tokens
            .iter()
            .zip(prompt)
            .take_while(|(a, b)| a == b)
            .count()
    }
}

impl SequenceCache {
    /// Returns a sequence that contains the longest cached prefix of the prompt, but never its last
    /// tokens, which must be processed to compute scores.
    ///
    /// A conversation continues in its own sequence. Another conversation gets a copy of the shared
    /// prefix, or the sequence itself if the prompt continues exactly at its end.
    ///
    /// # Errors
    /// Out of memory.
    pub fn claim(
        &mut self,
        network: &Network,
        conversation: &str,
        prompt: &[u32],
    ) -> Result<&mut CachedSequence> {
        let usable = &prompt[..prompt.len().saturating_sub(RERUN)];
        let best = (0..self.kept.len()).max_by_key(|index| self.kept[*index].shared(usable));
        let shared = best.map_or(0, |index| self.kept[index].shared(usable));
        let own = self
            .kept
            .iter()
            .position(|kept| kept.conversation == conversation);
        let whole = best.filter(|index| shared > 0 && shared == self.kept[*index].tokens.len());
        let target = match own.or(whole) {
            Some(index) => index,
            None => self.free(network)?,
        };
        if let Some(best) = best
            && best != target
            && shared > self.kept[target].shared(usable)
        {
            let [from, to] = self
                .kept
                .get_disjoint_mut([best, target])
                .expect("two different indices of kept sequences");
            to.tokens.clear();
            to.cache.copy_prefix(&from.cache, shared)?;
            to.tokens.extend_from_slice(&usable[..shared]);
        }
        let target = self.fit(target, prompt.len(), network.window());
        self.clock += 1;
        let sequence = &mut self.kept[target];
        let shared = sequence.shared(usable);
        sequence.truncate(shared);
        sequence.used = self.clock;
        conversation.clone_into(&mut sequence.conversation);
        Ok(sequence)
    }

    /// Drops all other sequences if all sequences together would exceed one context window, because
    /// the keys and values of long prompts need as much memory as the weights. Returns the new
    /// index of the sequence.
    fn fit(&mut self, target: usize, prompt: usize, window: usize) -> usize {
        let others = (0..self.kept.len()).filter(|index| *index != target);
        let held: usize = others.map(|index| self.kept[index].tokens.len()).sum();
        if held + prompt <= window {
            return target;
        }
        self.kept.swap(0, target);
        self.kept.truncate(1);
        0
    }

    /// Returns the index of a new sequence, or of the least recently used one.
    fn free(&mut self, network: &Network) -> Result<usize> {
        if self.kept.len() < KEPT {
            let cache = network.cache()?;
            let (conversation, tokens) = (String::new(), Vec::new());
            self.kept.push(CachedSequence {
                conversation,
                tokens,
                cache,
                used: 0,
            });
            return Ok(self.kept.len() - 1);
        }
        let oldest = (0..self.kept.len()).min_by_key(|index| self.kept[*index].used);
        Ok(oldest.expect("at least one sequence is kept"))
    }
}
