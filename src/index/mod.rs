//! The code index.

mod facts;
mod locate;
mod query;
mod search;
mod trace;
mod words;

pub use locate::{Located, WEIGHTS, Weights};
pub use search::{Hit, References};
pub use trace::{Frame, frame, frames};

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::workspace::Snapshot;
use facts::FileFacts;

/// The code of one snapshot, read on the first question.
#[derive(Debug)]
pub struct Index {
    snapshot: Snapshot,
    /// Of an earlier snapshot: files with the same text are not read again.
    known: Vec<Arc<FileFacts>>,
    files: OnceLock<Vec<Arc<FileFacts>>>,
}

impl Index {
    pub fn over(snapshot: Snapshot) -> Self {
        Index {
            snapshot,
            known: Vec::new(),
            files: OnceLock::new(),
        }
    }
    /// The index of a later snapshot.
    pub fn next(&self, snapshot: Snapshot) -> Self {
        Index {
            snapshot,
            known: self.files.get().cloned().unwrap_or_default(),
            files: OnceLock::new(),
        }
    }
    fn files(&self) -> &[Arc<FileFacts>] {
        self.files
            .get_or_init(|| read_all(&self.snapshot, &self.known))
    }
    pub fn locate(&self, text: &str, limit: usize) -> Vec<Located> {
        self.locate_with(text, limit, &WEIGHTS)
    }

    /// Reads all files now, so that the first question is answered at once.
    pub fn prepare(&self) {
        self.files();
    }

    pub fn locate_with(&self, text: &str, limit: usize, w: &Weights) -> Vec<Located> {
        locate::locate(self.files(), text, limit, w)
    }
}

/// Whether a file holds tests, by its path.
pub fn is_test_file(file: &crate::syntax::FilePath) -> bool {
    facts::is_test(file)
}

/// Reads the files of a snapshot on all cores, in order.
fn read_all(snapshot: &Snapshot, known: &[Arc<FileFacts>]) -> Vec<Arc<FileFacts>> {
    let files = snapshot.files();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let worker = || {
        let mut read = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Ok(text) = snapshot.read(file) else {
                continue;
            };
            let same = known
                .binary_search_by(|facts| facts.file.cmp(file))
                .ok()
                .map(|place| &known[place])
                .filter(|facts| facts.text == text);
            read.push(match same {
                Some(facts) => facts.clone(),
                None => Arc::new(FileFacts::read(file.clone(), text)),
            });
        }
        read
    };
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .flat_map(|w| w.join().expect("reading facts does not panic"))
            .collect()
    });
    all.sort_unstable_by(|a: &Arc<FileFacts>, b| a.file.cmp(&b.file));
    all
}
