//! Progress of reading files, summed over all indexes in this process.

use std::sync::atomic::{AtomicUsize, Ordering};

static ALL: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of files that were read and the total number, or `None` if no files are being
/// read.
pub fn reading() -> Option<(usize, usize)> {
    let all = ALL.load(Ordering::Relaxed);
    (all > 0).then(|| (DONE.load(Ordering::Relaxed).min(all), all))
}

/// Progress of reading a set of files. Dropping it removes its files from the totals.
pub(super) struct Progress {
    all: usize,
    done: AtomicUsize,
}

impl Progress {
    pub(super) fn begin(all: usize) -> Progress {
        ALL.fetch_add(all, Ordering::Relaxed);
        Progress {
            all,
            done: AtomicUsize::new(0),
        }
    }

    /// Counts one more file as read.
    pub(super) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
        DONE.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        ALL.fetch_sub(self.all, Ordering::Relaxed);
        DONE.fetch_sub(self.done.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_progress_is_reported_until_it_is_dropped() {
        // Other tests of the process may read files at the same time.
        let progress = Progress::begin(1_000_000);
        progress.step();
        let (done, all) = reading().expect("reading is in progress");
        assert!(done >= 1 && all >= 1_000_000, "{done} of {all}");
        drop(progress);
        assert!(reading().is_none_or(|(_, all)| all < 1_000_000));
    }
}
