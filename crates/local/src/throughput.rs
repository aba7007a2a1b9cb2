//! Measures how fast a network reads prompts and writes tokens.

use std::path::Path;
use std::time::{Duration, Instant};

use candle_core::{Device, Result};

use super::attention::KeyValueCache;
use super::file::ModelFile;
use super::gpu;
use super::network::{Network, NewPositions};

/// Number of prompt tokens per step.
const STEP: usize = 128;
/// Steps that are not measured, because the first ones prepare kernels and memory.
const WARM_UP: usize = 4;

/// Where a network runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Cpu,
    Gpu,
}

/// A network that was loaded to be measured.
pub struct Throughput {
    network: Network,
}

/// The measured durations.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Reading the prompt of one sequence.
    pub prompt: Duration,
    /// One step, in which each sequence gets one more token, in the median.
    pub step: Duration,
}

impl Throughput {
    /// Loads a network for sequences of at most `window` tokens.
    ///
    /// # Errors
    /// The file is damaged, or there is no such device.
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

    /// Returns the scores of all tokens after a prompt of this many tokens, and after one more token,
    /// which makes a step of its own.
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

    /// Reads a prompt of this many tokens, and then writes the best next tokens of several copies of
    /// it, which differ in their last token, in this many steps.
    ///
    /// # Errors
    /// The prompt and the steps exceed the window, or the device is out of memory.
    pub fn measure(&self, sequences: usize, prompt: usize, steps: usize) -> Result<Measured> {
        let mut first = self.network.cache()?;
        let began = Instant::now();
        for step in tokens(prompt).chunks(STEP) {
            let state = self.network.extend(step, &mut first)?;
            // Waits for the device.
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
