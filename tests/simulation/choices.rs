//! The decisions of a simulated run. A decision depends only on the seed and on its own key, so
//! leaving one out changes no other decision. This makes a failing run easy to shrink.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

/// The decisions that follow from a seed.
pub struct Choices {
    seed: u64,
    /// Deviations that are left out, so that the default happens.
    dropped: BTreeSet<String>,
    taken: Mutex<Vec<String>>,
}

impl Choices {
    pub fn new(seed: u64, dropped: BTreeSet<String>) -> Self {
        Choices {
            seed,
            dropped,
            taken: Mutex::default(),
        }
    }

    /// Returns a number below `bound`, always the same for the same key.
    pub fn number(&self, key: &str, bound: u64) -> u64 {
        let mut hash = self.seed ^ 0x9e37_79b9_7f4a_7c15;
        for byte in key.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        // This is the last step of splitmix64, so similar keys and seeds give unrelated numbers.
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) % bound.max(1)
    }

    pub fn pick<'t, T>(&self, key: &str, of: &'t [T]) -> &'t T {
        let at = self.number(key, of.len() as u64);
        &of[usize::try_from(at).expect("an index fits")]
    }

    /// Returns whether a deviation happens. Each deviation can be dropped.
    pub fn deviates(&self, key: &str, percent: u64) -> bool {
        let happens = self.number(key, 1000) < percent * 10 && !self.dropped.contains(key);
        if happens {
            let mut taken = self.taken.lock().unwrap();
            if !taken.iter().any(|one| one == key) {
                taken.push(key.to_owned());
            }
        }
        happens
    }

    /// Returns a delay of at most `most` milliseconds.
    pub fn delay(&self, key: &str, most: u64) -> Duration {
        Duration::from_millis(1 + self.number(key, most))
    }

    /// Returns the deviations that happened, in order.
    pub fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().clone()
    }
}
