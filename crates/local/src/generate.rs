//! Selects the tokens of an answer, several in one step of the network where they can be guessed.

use candle_core::Result;

use super::constraint::OutputConstraint;
use super::lookup::{GuessSource, PromptLookup};
use super::sampler::Sampler;

/// Selects the tokens of one answer. Guesses are allowed only if the network computes exactly the same scores
/// for several tokens in one step as for one token per step. They then change the speed but not the answer.
pub struct TokenGenerator {
    choice: TokenChoice,
    lookup: Option<PromptLookup>,
    /// The tokens of the prompt and all selected tokens. The network has not run the last token yet.
    text: Vec<u32>,
    /// The position in `text` from which the guesses of the current step were copied.
    source: Option<GuessSource>,
}

/// Selects a token from scores.
pub struct TokenChoice {
    pub sampler: Sampler,
    pub constraint: Option<OutputConstraint>,
}

impl TokenGenerator {
    /// Creates a generator, and selects the first token from the scores after the prompt. `guesses` enables
    /// guessing.
    ///
    /// # Errors
    /// The errors of [`TokenGenerator::select`].
    pub fn new(
        prompt: &[u32],
        scores: &[f32],
        mut choice: TokenChoice,
        guesses: bool,
    ) -> Result<Self> {
        let first = choice.pick(scores)?;
        Ok(Self {
            choice,
            lookup: guesses.then(PromptLookup::default),
            text: [prompt, &[first]].concat(),
            source: None,
        })
    }

    /// Returns the tokens of the prompt and all selected tokens. The network has not run the last token yet.
    pub fn text(&self) -> &[u32] {
        &self.text
    }

    /// Returns the tokens to run in the next step: the last selected token and at most `most` guesses of the
    /// tokens after it.
    pub fn next_tokens(&mut self, most: usize) -> Vec<u32> {
        let lookup = self.lookup.as_ref();
        self.source = lookup.and_then(|lookup| lookup.guess(&self.text, most));
        let mut tokens = vec![self.text[self.text.len() - 1]];
        if let Some(GuessSource { start, count }) = self.source {
            tokens.extend_from_slice(&self.text[start..start + count]);
        }
        tokens
    }

    /// Selects a token from each element of `scores`, up to the first wrong guess in `tokens`. Returns the
    /// selected tokens.
    ///
    /// # Errors
    /// A token violates the output format of the answer.
    pub fn select(&mut self, tokens: &[u32], scores: &[Vec<f32>]) -> Result<&[u32]> {
        let known = self.text.len();
        for (at, scores) in scores.iter().enumerate() {
            let token = self.choice.pick(scores)?;
            self.text.push(token);
            if tokens.get(at + 1) != Some(&token) {
                break;
            }
        }
        let selected = &self.text[known..];
        if let (Some(lookup), Some(source)) = (&mut self.lookup, self.source) {
            lookup.record(source, selected.len() - 1);
        }
        Ok(selected)
    }
}

impl TokenChoice {
    fn pick(&mut self, scores: &[f32]) -> Result<u32> {
        let Some(constraint) = &mut self.constraint else {
            return Ok(self.sampler.pick(scores) as u32);
        };
        let mut scores = scores.to_vec();
        constraint.restrict(&mut scores)?;
        let token = self.sampler.pick(&scores) as u32;
        constraint.accept(token)?;
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use tempfile::TempDir;

    use super::super::file::ModelFile;
    use super::super::fixture::{TestModelRecipe, noise};
    use super::super::network::Network;
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
            let mut cache = network.cache().unwrap();
            let hidden = network.extend(&prompt, &mut cache).unwrap();
            let scores = network.scores(&hidden).unwrap();
            let choice = TokenChoice {
                sampler: Sampler::new(temperature, None, Some(seed)),
                constraint: None,
            };
            let guesses = guesses && network.has_equal_steps();
            let mut generator = TokenGenerator::new(&prompt, &scores, choice, guesses).unwrap();
            let mut steps = 0;
            while generator.text().len() < prompt.len() + 80 {
                let more = prompt.len() + 79 - generator.text().len();
                let tokens = generator.next_tokens(more);
                let states = network.extend_each(&tokens, &mut cache).unwrap();
                let scores = network.scores_each(&states).unwrap();
                generator.select(&tokens, &scores).unwrap();
                cache.truncate(generator.text().len() - 1);
                steps += 1;
            }
            (generator.text().to_vec(), steps)
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
