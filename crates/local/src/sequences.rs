//! The sequences whose keys and values are kept, so that a prompt costs only what is new in it.

use candle_core::Result;

use super::attention::KeyValueCache;
use super::network::{HiddenState, Network};

/// Two: a conversation at work, and another that shares its frozen beginning.
const KEPT: usize = 2;

/// How many tokens at the end of a prompt always run. Not one: a single token takes other kernels,
/// which round differently, and an answer should not depend on what was kept.
const RERUN: usize = 2;

/// The kept sequences of one network.
#[derive(Default)]
pub struct SequenceCache {
    kept: Vec<CachedSequence>,
    clock: u64,
}

/// The tokens that a cache holds, and whose conversation they are.
pub struct CachedSequence {
    conversation: String,
    tokens: Vec<u32>,
    cache: KeyValueCache,
    used: u64,
}

impl CachedSequence {
    /// Tokens held.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Runs more tokens behind those held.
    ///
    /// # Errors
    /// Those of [`Network::extend`]; the sequence is then as before.
    pub fn extend(&mut self, network: &Network, tokens: &[u32]) -> Result<HiddenState> {
        let hidden = network.extend(tokens, &mut self.cache)?;
        self.tokens.extend_from_slice(tokens);
        Ok(hidden)
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
    /// A sequence that holds the longest known beginning of the prompt, but never its last tokens:
    /// they must run to score the next.
    ///
    /// A conversation goes on in its own sequence. Another takes a copy of the shared beginning,
    /// unless the prompt goes on where the kept sequence ends and nothing would be lost.
    ///
    /// # Errors
    /// When memory runs out.
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
        sequence.tokens.truncate(shared);
        sequence.cache.truncate(shared);
        sequence.used = self.clock;
        conversation.clone_into(&mut sequence.conversation);
        Ok(sequence)
    }

    /// Drops the others when all together would hold more than one window: keys and values of long
    /// prompts weigh as much as the weights. Returns where the sequence is then.
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

    /// The index of a new sequence, or of the one that was not used for longest.
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
