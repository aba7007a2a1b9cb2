//! Caches recent sequences, so that only the new part of a prompt has to be processed.

use candle_core::Result;

use super::attention::KeyValueCache;
use super::network::{HiddenState, Network, NewPositions};

/// Number of cached sequences that are not in use: one for the last conversation, and one for another
/// conversation with the same prefix.
const KEPT: usize = 2;

/// Number of tokens at the end of a prompt that are always processed again. It is 2 because a
/// single token uses other kernels with different rounding, and an answer must not depend on the
/// cache.
const RERUN: usize = 2;

/// Caches the sequences of one network for later requests.
#[derive(Default)]
pub struct SequenceCache {
    /// Ordered from the least to the most recently used.
    kept: Vec<CachedSequence>,
}

/// The tokens in a cache and the conversation that they belong to.
pub struct CachedSequence {
    conversation: String,
    tokens: Vec<u32>,
    cache: KeyValueCache,
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

    /// Processes a few tokens of each sequence in one step, with the same result as one token at a time.
    /// Returns the state after each token, ordered by sequence.
    ///
    /// # Errors
    /// The errors of [`Network::extend`]; the sequences are then unchanged.
    pub fn extend_all(
        network: &Network,
        mut parts: Vec<(&mut Self, &[u32])>,
    ) -> Result<HiddenState> {
        let positions = parts.iter_mut().map(|(sequence, tokens)| NewPositions {
            tokens,
            cache: &mut sequence.cache,
        });
        let hidden = network.extend_all(&mut positions.collect::<Vec<_>>())?;
        for (sequence, tokens) in parts {
            sequence.tokens.extend_from_slice(tokens);
        }
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
    /// Returns a sequence that contains the longest available prefix of the prompt. The last tokens of the
    /// prompt are never included, because they must be processed to compute scores. Prefixes are taken from
    /// the cached sequences and from `active`, the sequences of other requests in progress.
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
        active: &[&CachedSequence],
    ) -> Result<CachedSequence> {
        let usable = &prompt[..prompt.len().saturating_sub(RERUN)];
        let mut sequence = self.target(network, conversation, usable)?;
        let known = self.kept.iter().chain(active.iter().copied());
        if let Some(best) = known.max_by_key(|known| known.shared(usable))
            && best.shared(usable) > sequence.shared(usable)
        {
            let shared = best.shared(usable);
            sequence.tokens.clear();
            sequence.cache.copy_prefix(&best.cache, shared)?;
            sequence.tokens.extend_from_slice(&usable[..shared]);
        }
        sequence.truncate(sequence.shared(usable));
        conversation.clone_into(&mut sequence.conversation);
        self.fit(prompt.len(), network.window());
        Ok(sequence)
    }

    /// Caches a sequence that is no longer in use.
    pub fn give_back(&mut self, network: &Network, sequence: CachedSequence) {
        (self.kept).retain(|kept| kept.conversation != sequence.conversation);
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.fit(sequence.tokens.len(), network.window());
        self.kept.push(sequence);
    }

    #[cfg(test)]
    pub fn kept_count(&self) -> usize {
        self.kept.len()
    }

    /// Drops all cached sequences if they and a sequence of this length would exceed one context window. The
    /// keys and values of long prompts need as much memory as the weights.
    fn fit(&mut self, len: usize, window: usize) {
        let held: usize = self.kept.iter().map(|kept| kept.tokens.len()).sum();
        if held + len > window {
            self.kept.clear();
        }
    }

    /// Returns the sequence to extend: that of the same conversation, or a sequence that is a prefix of the
    /// prompt, or the least recently used sequence if the cache is full, or a new sequence.
    fn target(
        &mut self,
        network: &Network,
        conversation: &str,
        usable: &[u32],
    ) -> Result<CachedSequence> {
        let shared = |kept: &CachedSequence| kept.shared(usable);
        let best = self.kept.iter().map(shared).max().unwrap_or(0);
        let is_own = |kept: &CachedSequence| kept.conversation == conversation;
        let is_whole =
            |kept: &CachedSequence| best > 0 && shared(kept) == best && kept.tokens.len() == best;
        let own = self.kept.iter().position(is_own);
        let target = own.or_else(|| self.kept.iter().position(is_whole));
        let oldest = (self.kept.len() == KEPT).then_some(0);
        match target.or(oldest) {
            Some(index) => Ok(self.kept.remove(index)),
            None => Ok(CachedSequence {
                conversation: String::new(),
                tokens: Vec::new(),
                cache: network.cache()?,
            }),
        }
    }
}
