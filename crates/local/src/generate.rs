//! Selects the tokens of an answer, several in one step of the network where they can be guessed.

use std::collections::VecDeque;
use std::time::Instant;

use candle_core::Result;

use super::lookup::PromptLookup;
use super::network::{HiddenState, Network};
use super::sampler::Sampler;
use super::sequences::CachedSequence;
use super::threads::ThreadPacer;

/// Generates the tokens of one answer. Guesses are only used if the network computes exactly the same
/// scores for several tokens as for one after another, so they change the speed and not the answer.
pub struct TokenGenerator<'a> {
    network: &'a Network,
    sequence: &'a mut CachedSequence,
    sampler: Sampler,
    lookup: Option<PromptLookup>,
    pace: ThreadPacer,
    /// The prompt and all selected tokens. The last one is not in the sequence yet.
    text: Vec<u32>,
    /// Selected tokens that were not returned yet.
    selected: VecDeque<u32>,
}

impl<'a> TokenGenerator<'a> {
    /// Creates a generator for an answer after the prompt that ended in `hidden`, with or without
    /// guesses.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(
        network: &'a Network,
        sequence: &'a mut CachedSequence,
        hidden: &HiddenState,
        mut sampler: Sampler,
        guesses: bool,
    ) -> Result<Self> {
        let mut text = sequence.tokens().to_vec();
        let first = sampler.pick(&network.scores(hidden)?) as u32;
        text.push(first);
        Ok(Self {
            lookup: (guesses && network.has_equal_steps()).then(PromptLookup::default),
            network,
            sequence,
            sampler,
            pace: ThreadPacer::default(),
            text,
            selected: VecDeque::from([first]),
        })
    }

    /// Returns the next token. `more` is the number of tokens that may follow it.
    ///
    /// # Errors
    /// The context window is full, or the device is out of memory.
    pub fn next(&mut self, more: usize) -> Result<u32> {
        loop {
            if let Some(token) = self.selected.pop_front() {
                return Ok(token);
            }
            self.step(more)?;
        }
    }

    /// Runs the last selected token, and the tokens that are guessed to follow it. Selects a token
    /// after each of them, until a guess turns out to be wrong.
    fn step(&mut self, more: usize) -> Result<()> {
        let lookup = self.lookup.as_ref();
        let source = lookup.and_then(|lookup| lookup.guess(&self.text, more));
        let known = self.text.len();
        let mut tokens = vec![self.text[known - 1]];
        if let Some(source) = source {
            tokens.extend_from_slice(&self.text[source.start..source.start + source.count]);
        }
        let began = Instant::now();
        self.pace.begin();
        let states = self.sequence.extend_each(self.network, &tokens)?;
        let scores = self.network.scores_each(&states)?;
        self.pace.end(began.elapsed(), tokens.len());
        for (at, scores) in scores.iter().enumerate() {
            let token = self.sampler.pick(scores) as u32;
            self.text.push(token);
            self.selected.push_back(token);
            if tokens.get(at + 1) != Some(&token) {
                break;
            }
        }
        // The last selected token is not in the sequence.
        self.sequence.truncate(self.text.len() - 1);
        if let (Some(lookup), Some(source)) = (&mut self.lookup, source) {
            lookup.record(source, self.selected.len() - 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use tempfile::TempDir;

    use super::super::file::ModelFile;
    use super::super::fixture::{TestModelRecipe, noise};
    use super::super::sequences::SequenceCache;
    use super::*;

    #[test]
    fn guesses_change_the_number_of_steps_and_not_the_answer() {
        let directory = TempDir::new().unwrap();
        let path = TestModelRecipe::default().write(directory.path());
        let file = ModelFile::open(&path).unwrap();
        let network = Network::load(&file, 512, &Device::Cpu).unwrap();
        // With this prompt, the best answer of the random weights soon repeats itself.
        let prompt: Vec<u32> = (noise(30, 99).iter())
            .map(|value| (value.abs() * 255.0) as u32)
            .collect();
        let answer = |temperature, seed, guesses: bool| {
            let mut sequences = SequenceCache::default();
            let sequence = sequences.claim(&network, "a", &prompt).unwrap();
            let hidden = sequence.extend(&network, &prompt).unwrap();
            let sampler = Sampler::new(temperature, Some(seed));
            let mut generator =
                TokenGenerator::new(&network, sequence, &hidden, sampler, guesses).unwrap();
            let mut steps = 0;
            let next = |more| {
                steps += usize::from(generator.selected.is_empty());
                generator.next(more).unwrap()
            };
            let tokens: Vec<u32> = (0..80).rev().map(next).collect();
            (tokens, steps)
        };
        for (temperature, seed) in [(0.0, 1), (0.1, 2), (1.0, 3)] {
            let (plain, steps) = answer(temperature, seed, false);
            assert_eq!(steps, 79);
            let (guessed, steps) = answer(temperature, seed, true);
            assert_eq!(guessed, plain, "{temperature}");
            if network.has_equal_steps() && temperature == 0.0 {
                assert!(steps < 40, "{steps} steps");
            }
        }
    }
}
