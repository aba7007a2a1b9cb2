//! How many threads the forward pass uses.
//!
//! Threads that wait for a busy core make every step as slow as that core. So the pool has all cores only
//! where nothing else runs when the program starts, and no editor waits for the others; and while an answer
//! is written, steps on one core are tried from time to time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

/// What the tensor library reads when its pool starts, for the whole process and once.
const SETTINGS: [&str; 2] = ["CANDLE_NUM_THREADS", "RAYON_NUM_THREADS"];

/// Whether steps run on the calling thread alone.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Sets the size of the pool: all cores, or one less where an editor needs one (`beside_editor`) or
/// something else runs. A number that the user has put in the environment wins.
///
/// The environment is the pool's only interface, and writing it is sound only while no other thread
/// runs: this is called before the program starts one.
pub fn limit_thread_pools(beside_editor: bool) {
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = match beside_editor || !is_idle() {
        true => (cores - 1).max(1),
        false => cores,
    };
    for setting in SETTINGS {
        if std::env::var_os(setting).is_none() {
            // SAFETY: no other thread runs yet that could read the environment.
            unsafe { std::env::set_var(setting, threads.to_string()) };
        }
    }
}

/// Whether nothing but this process runs at this moment; `false` where that is not known.
fn is_idle() -> bool {
    let Ok(kernel) = std::fs::read_to_string("/proc/stat") else {
        return false;
    };
    running(&kernel).is_some_and(|running| running <= 1)
}

/// How many processes run, by the kernel's statistics.
fn running(statistics: &str) -> Option<u32> {
    let mut lines = statistics.lines();
    lines
        .find_map(|line| line.strip_prefix("procs_running "))?
        .trim()
        .parse()
        .ok()
}

/// Carries out `work` for all rows: by the pool in parts, or at once on this thread.
pub fn for_rows(rows: usize, work: impl Fn(std::ops::Range<usize>) + Sync) {
    match ALONE.load(Ordering::Relaxed) {
        true => work(0..rows),
        false => candle_core::utils::barrier_pool().execute_chunked(rows, work),
    }
}

/// Steps between two trials.
const TRIAL_EVERY: u32 = 24;
/// Steps of a trial, in each of the two ways.
const TRIAL: u32 = 2;

/// Chooses for each step of an answer whether it runs on one core, by how long steps took.
#[derive(Debug, Default)]
pub struct ThreadPacer {
    step: u32,
    /// Of the last trial: on all cores of the pool, and on one.
    took: [Duration; 2],
}

impl ThreadPacer {
    /// Before a step.
    pub fn begin(&self) {
        ALONE.store(self.is_alone(), Ordering::Relaxed);
    }

    /// After a step that took so long.
    pub fn end(&mut self, took: Duration) {
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
                pace.end(Duration::from_millis(millis));
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
