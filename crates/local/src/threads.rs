//! Selects the number of threads of the forward pass.
//!
//! If one core is busy with another process, every step waits for the thread on that core.
//! Therefore the pool uses all cores only if no other process is running at the start and no editor
//! needs a core. During an answer, steps on a single core are tried periodically.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

/// Environment variables that the tensor library reads once, when its thread pool starts.
const SETTINGS: [&str; 2] = ["CANDLE_NUM_THREADS", "RAYON_NUM_THREADS"];

/// Whether steps run only on the calling thread.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Sets the size of the thread pool: all cores, or one less if an editor (`beside_editor`) or
/// another process needs one. A value that the user has set in the environment takes precedence.
///
/// The pool can only be configured by environment variables. Setting them is sound only while no
/// other thread runs, so call this function before any thread is started.
pub fn limit_thread_pools(beside_editor: bool) {
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = match beside_editor || !is_idle() {
        true => (cores - 1).max(1),
        false => cores,
    };
    for setting in SETTINGS {
        if std::env::var_os(setting).is_none() {
            // SAFETY: no other thread is running that could read the environment.
            unsafe { std::env::set_var(setting, threads.to_string()) };
        }
    }
}

/// Whether no other process is running at the moment; `false` if unknown.
fn is_idle() -> bool {
    let Ok(kernel) = std::fs::read_to_string("/proc/stat") else {
        return false;
    };
    running(&kernel).is_some_and(|running| running <= 1)
}

/// Parses the number of running processes from the kernel's statistics.
fn running(statistics: &str) -> Option<u32> {
    let mut lines = statistics.lines();
    lines
        .find_map(|line| line.strip_prefix("procs_running "))?
        .trim()
        .parse()
        .ok()
}

/// Runs `work` for all rows, either divided among the pool's threads or on this thread.
pub fn for_rows(rows: usize, work: impl Fn(std::ops::Range<usize>) + Sync) {
    match ALONE.load(Ordering::Relaxed) {
        true => work(0..rows),
        false => candle_core::utils::barrier_pool().execute_chunked(rows, work),
    }
}

/// Number of steps between two trials.
const TRIAL_EVERY: u32 = 24;
/// Number of steps of each mode in a trial.
const TRIAL: u32 = 2;

/// Decides for each step of the answers whether one core or the thread pool is faster, based on measured
/// durations.
#[derive(Debug, Default)]
pub struct ThreadPacer {
    step: u32,
    /// Durations of the last trial: with the pool, and on one core.
    took: [Duration; 2],
}

impl ThreadPacer {
    /// Uses the thread pool for the following work, which is not a step of the answers.
    pub fn pause(&self) {
        ALONE.store(false, Ordering::Relaxed);
    }

    /// Selects the mode of the next step.
    pub fn begin(&self) {
        ALONE.store(self.is_alone(), Ordering::Relaxed);
    }

    /// Records the duration of a step with this number of tokens.
    pub fn end(&mut self, took: Duration, tokens: usize) {
        // A step with eight tokens takes about twice as long as one with a single token.
        let took =
            took * 7 / u32::try_from(tokens).map_or(u32::MAX, |tokens| tokens.saturating_add(6));
        let place = self.step % TRIAL_EVERY;
        if place < 2 * TRIAL {
            let way = usize::from(self.is_alone());
            let first = place.is_multiple_of(TRIAL);
            self.took[way] = if first {
                took
            } else {
                self.took[way].min(took)
            };
        }
        self.step = self.step.wrapping_add(1);
    }

    fn is_alone(&self) -> bool {
        match self.step % TRIAL_EVERY {
            place if place < TRIAL => false,
            place if place < 2 * TRIAL => true,
            _ => self.took[1] < self.took[0],
        }
    }
}

impl Drop for ThreadPacer {
    fn drop(&mut self) {
        ALONE.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_processes_are_read_from_kernel_statistics() {
        let statistics = "cpu 1 2\nprocs_running 3\nprocs_blocked 0\n";
        assert_eq!(running(statistics), Some(3));
        assert_eq!(running("cpu 1 2\n"), None);
    }

    #[test]
    fn faster_thread_mode_is_used_until_the_next_trial() {
        let mut pace = ThreadPacer::default();
        let mut ways = Vec::new();
        let run = |pace: &mut ThreadPacer, together: u64, alone: u64, ways: &mut Vec<bool>| {
            for _ in 0..TRIAL_EVERY {
                let is_alone = pace.is_alone();
                ways.push(is_alone);
                let millis = if is_alone { alone } else { together };
                pace.end(Duration::from_millis(millis), 1);
            }
        };
        run(&mut pace, 30, 60, &mut ways);
        assert_eq!(ways.iter().filter(|alone| **alone).count(), TRIAL as usize);
        ways.clear();
        run(&mut pace, 200, 60, &mut ways);
        let together = ways.iter().filter(|alone| !**alone).count();
        assert_eq!(together, TRIAL as usize, "{ways:?}");
    }
}
