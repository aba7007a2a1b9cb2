//! Computes the delay before the next attempt: exponential backoff with full jitter.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::RetryPolicy;
use starling_core::ModelError;

/// A generator of random delays, so that many callers do not retry at the same time.
pub(super) struct RetryDelays(AtomicU64);

impl RetryDelays {
    pub fn random() -> Self {
        RetryDelays::seeded(RandomState::new().hash_one(0))
    }

    pub fn seeded(seed: u64) -> Self {
        RetryDelays(AtomicU64::new(seed))
    }

    /// Returns the delay after a failed attempt, counted from 1. If the server requests a delay,
    /// returns that delay plus a small random part, so that not all callers retry at once.
    pub fn before_retry(&self, error: &ModelError, attempt: u32, policy: &RetryPolicy) -> Duration {
        let doubled = 2u32.saturating_pow(attempt.saturating_sub(1));
        let jitter = |most: Duration| most.min(policy.max_delay).mul_f64(self.fraction());
        let wait = match error {
            ModelError::RateLimited {
                retry_after: Some(asked),
                ..
            } => asked.saturating_add(jitter(policy.base_delay)),
            ModelError::RateLimited {
                retry_after: None, ..
            }
            | ModelError::Server { .. }
            | ModelError::Timeout { .. }
            | ModelError::Unreachable { .. }
            | ModelError::Transport { .. }
            | ModelError::Refused { .. }
            | ModelError::TooLong { .. }
            | ModelError::NoTools { .. }
            | ModelError::Malformed { .. }
            | ModelError::Endless { .. }
            | ModelError::Unavailable { .. } => jitter(policy.base_delay.saturating_mul(doubled)),
        };
        wait.min(policy.max_delay)
    }

    /// Returns the next pseudo-random number (splitmix64) in the range from 0 to 1, exclusive.
    fn fraction(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(seconds: u64) -> ModelError {
        ModelError::RateLimited {
            model: "m".to_owned(),
            retry_after: Some(Duration::from_secs(seconds)),
            message: String::new(),
        }
    }

    fn lost() -> ModelError {
        ModelError::Transport {
            model: "m".to_owned(),
            message: "lost".to_owned(),
        }
    }

    #[test]
    fn retry_waits_grow_with_jitter_up_to_the_maximum() {
        let policy = RetryPolicy::default();
        let waits = RetryDelays::seeded(1);
        for attempt in [1, 2, 3, 10, u32::MAX] {
            let most = policy
                .max_delay
                .min(policy.base_delay * 2u32.saturating_pow(attempt.min(20) - 1));
            let drawn: Vec<_> = (0..200)
                .map(|_| waits.before_retry(&lost(), attempt, &policy))
                .collect();
            assert!(drawn.iter().all(|wait| *wait <= most));
            assert!(drawn.iter().any(|wait| *wait < most / 4));
            assert!(drawn.iter().any(|wait| *wait > most * 3 / 4));
        }
    }

    #[test]
    fn requested_wait_is_kept_up_to_the_maximum() {
        let policy = RetryPolicy::default();
        let waits = RetryDelays::seeded(1);
        let named = waits.before_retry(&limited(7), 1, &policy);
        assert!(
            named >= Duration::from_secs(7) && named <= Duration::from_secs(8),
            "{named:?}"
        );
        assert_eq!(
            waits.before_retry(&limited(7200), 1, &policy),
            policy.max_delay
        );
    }

    #[test]
    fn retry_waits_are_deterministic_for_a_seed() {
        let policy = RetryPolicy::default();
        let draw = |seed| RetryDelays::seeded(seed).before_retry(&lost(), 5, &policy);
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
