//! Measures the speed of a network. For benchmarks.

use std::path::Path;
use std::time::{Duration, Instant};

use candle_core::{Device, Result};

use super::attention::KeyValueCache;
use super::file::ModelFile;
use super::gpu;
use super::network::{Network, NewPositions};

/// Number of prompt tokens per step.
const STEP: usize = 128;
/// Number of steps before the measurement, because the first steps also load kernels and allocate memory.
const WARM_UP: usize = 4;

/// The device that runs a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Cpu,
    Gpu,
}

/// A loaded network to be measured.
pub struct Throughput {
    network: Network,
}

/// Measured durations.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Duration of processing the prompt of one sequence.
    pub prompt: Duration,
    /// Median duration of a step that adds one token to each sequence.
    pub step: Duration,
}

impl Throughput {
    /// Loads a network with a context window of `window` tokens.
    ///
    /// # Errors
    /// The file is damaged, or the device does not exist.
    pub fn load(path: &Path, place: Place, window: usize) -> Result<Self> {
        let device = match place {
            Place::Cpu => Device::Cpu,
            Place::Gpu => gpu::open()?,
        };
        let network = Network::load(&ModelFile::open(path)?, window, &device)?;
        let this = Self { network };
        this.measure(2, STEP, 1)?;
        Ok(this)
    }

    /// Returns the scores after a prompt of `prompt` tokens, and the scores after one more token in a step of
    /// its own.
    ///
    /// # Errors
    /// The tokens exceed the window, or the device is out of memory.
    pub fn scores(&self, prompt: usize) -> Result<[Vec<f32>; 2]> {
        let network = &self.network;
        let mut cache = network.cache()?;
        let mut after = |tokens: &[u32]| network.scores(&network.extend(tokens, &mut cache)?);
        let prompt = tokens(prompt);
        let mut scores = Vec::new();
        for step in prompt.chunks(STEP) {
            scores = after(step)?;
        }
        Ok([scores, after(&[1])?])
    }

    /// Measures a prompt of `prompt` tokens, and then `steps` steps of several sequences. The sequences share
    /// the prompt and begin with different tokens. Each step adds the most likely token to each sequence.
    ///
    /// # Errors
    /// The sequences exceed the window, or the device is out of memory.
    pub fn measure(&self, sequences: usize, prompt: usize, steps: usize) -> Result<Measured> {
        let mut first = self.network.cache()?;
        let began = Instant::now();
        for step in tokens(prompt).chunks(STEP) {
            let state = self.network.extend(step, &mut first)?;
            // Wait until the device has finished the step.
            self.network.best_each(&state)?;
        }
        let prompt = began.elapsed();
        let copy = |_| {
            let mut cache = self.network.cache()?;
            cache.copy_prefix(&first, first.len())?;
            Ok(cache)
        };
        let mut caches: Vec<KeyValueCache> = (0..sequences).map(copy).collect::<Result<_>>()?;
        let mut last: Vec<u32> = (0..sequences as u32).map(|at| 1 + at % 250).collect();
        let mut took = Vec::new();
        for _ in 0..WARM_UP + steps {
            let began = Instant::now();
            let tokens = last.chunks(1);
            let parts = tokens.zip(&mut caches);
            let mut parts: Vec<NewPositions> = parts
                .map(|(tokens, cache)| NewPositions { tokens, cache })
                .collect();
            let states = self.network.extend_all(&mut parts)?;
            last = self.network.best_each(&states)?;
            took.push(began.elapsed());
        }
        let measured = &mut took[WARM_UP..];
        measured.sort();
        Ok(Measured {
            prompt,
            step: measured[measured.len() / 2],
        })
    }
}

fn tokens(count: usize) -> Vec<u32> {
    (0..count as u32).map(|at| 1 + at * 7 % 251).collect()
}
