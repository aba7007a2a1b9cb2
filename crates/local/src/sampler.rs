//! Selects the next token from the scores.

use std::hash::{BuildHasher, RandomState};

use starling_core::ChatRequest;

/// Default of the cumulative probability for top-p sampling.
const TOP_P: f32 = 0.95;

/// The logarithm of a probability, relative to the best token, below which a token is never selected.
const NEGLIGIBLE: f32 = -13.8;

/// Selects tokens: the best one at temperature 0, otherwise a random one of the likely tokens.
pub struct Sampler {
    temperature: f32,
    top_p: f32,
    state: u64,
}

impl Sampler {
    /// Creates a sampler. Equal seeds give equal selections; without a seed, each call differs.
    pub fn new(temperature: f32, top_p: Option<f32>, seed: Option<u64>) -> Self {
        let state = seed.unwrap_or_else(|| RandomState::new().hash_one("seed"));
        Self {
            temperature,
            top_p: top_p.unwrap_or(TOP_P),
            state,
        }
    }

    /// Creates the sampler for a request.
    pub fn of(request: &ChatRequest) -> Self {
        Self::new(request.temperature, request.top_p, request.seed)
    }

    /// Returns the index of the selected score. Among equal best scores, the first one is selected.
    pub fn pick(&mut self, scores: &[f32]) -> usize {
        let best = argmax(scores);
        if self.temperature.is_nan() || self.temperature <= 0.0 {
            return best;
        }
        let top = scores.get(best).copied().unwrap_or(0.0);
        let mut likely: Vec<(usize, f32)> = scores
            .iter()
            .map(|score| (score - top) / self.temperature)
            .enumerate()
            // Less likely tokens are negligible. Without them, there is little to compute and sort.
            .filter(|(_, difference)| *difference > NEGLIGIBLE)
            .map(|(index, difference)| (index, difference.exp()))
            .collect();
        likely.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let total: f32 = likely.iter().map(|(_, weight)| weight).sum();
        let mut kept = 0.0;
        let count = likely.iter().take_while(|(_, weight)| {
            let open = kept < total * self.top_p;
            kept += weight;
            open
        });
        let count = count.count();
        let kept: f32 = likely[..count].iter().map(|(_, weight)| weight).sum();
        let mut left = self.uniform() * kept;
        for (index, weight) in &likely[..count] {
            left -= weight;
            if left <= 0.0 {
                return *index;
            }
        }
        best
    }

    /// Returns the next pseudo-random number (SplitMix64) in the range from 0 to 1, exclusive.
    fn uniform(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 40) as f32 / (1u64 << 24) as f32
    }
}

fn argmax(scores: &[f32]) -> usize {
    let mut best = 0;
    for (index, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = index;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_temperature_picks_the_first_best_score() {
        let mut sampler = Sampler::new(0.0, None, None);
        assert_eq!(sampler.pick(&[0.1, 3.0, 3.0, -1.0]), 1);
    }

    #[test]
    fn sampling_is_deterministic_for_a_seed_and_follows_the_scores() {
        let draw = |seed| {
            let mut sampler = Sampler::new(1.0, None, Some(seed));
            (0..2000)
                .map(|_| sampler.pick(&[2f32.ln(), 0.0, -20.0]))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let first = draw(7).iter().filter(|index| **index == 0).count();
        assert!(
            (1250..1420).contains(&first),
            "{first} of 2000 for a share of 2/3"
        );
        assert!(draw(7).iter().all(|index| *index < 2));
    }

    #[test]
    fn tokens_outside_top_p_are_never_sampled() {
        let mut sampler = Sampler::new(1.0, None, Some(1));
        let scores = [0.97f32.ln(), 0.02f32.ln(), 0.01f32.ln()];
        assert!((0..500).all(|_| sampler.pick(&scores) == 0));
    }

    #[test]
    fn given_top_p_replaces_the_default() {
        let scores = [0.6f32.ln(), 0.4f32.ln()];
        let mut narrow = Sampler::new(1.0, Some(0.5), Some(1));
        assert!((0..500).all(|_| narrow.pick(&scores) == 0));
        let mut wide = Sampler::new(1.0, Some(1.0), Some(1));
        assert!((0..500).any(|_| wide.pick(&scores) == 1));
    }

    #[test]
    fn sampling_without_valid_scores_returns_the_first_index() {
        assert_eq!(Sampler::new(1.0, None, Some(1)).pick(&[]), 0);
        assert_eq!(
            Sampler::new(0.5, None, Some(1)).pick(&[f32::NAN, f32::NAN]),
            0
        );
    }
}
