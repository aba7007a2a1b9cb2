//! The code index: where things are, without a model. Held in memory, read on the first question,
//! and carried over to later snapshots.

mod bm25;
mod facts;
mod locate;
mod lookup;
mod map;
mod nearest;
mod query;
mod search;
#[cfg(test)]
mod tests;
mod trace;
mod words;

pub use locate::Located;
pub use lookup::{Definition, Usage, Usages};
pub use search::{Hit, Hits};
pub use trace::{Frame, frame, frames};

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::syntax::{FilePath, SymbolPath};
use crate::workspace::Snapshot;
use facts::FileFacts;

/// More threads than this only wait for one another.
const MOST_THREADS: usize = 8;

/// The code of one snapshot.
#[derive(Debug)]
pub struct Index {
    snapshot: Snapshot,
    /// Of an earlier snapshot: files with the same text are not read again.
    earlier: Vec<Arc<FileFacts>>,
    files: OnceLock<Vec<Arc<FileFacts>>>,
}

impl Index {
    /// The index of a snapshot. Nothing is read before the first question.
    pub fn new(snapshot: Snapshot) -> Self {
        Index {
            snapshot,
            earlier: Vec::new(),
            files: OnceLock::new(),
        }
    }

    /// The index of a later snapshot: only files with another text are read.
    pub fn after(&self, snapshot: Snapshot) -> Self {
        let earlier = self.files.get().unwrap_or(&self.earlier);
        Index {
            snapshot,
            earlier: earlier.clone(),
            files: OnceLock::new(),
        }
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Reads all files, if that was not done yet. Every question does so; it takes a second or two
    /// for thousands of files.
    pub fn warm(&self) {
        self.files();
    }

    /// Lines with all words of `query`, in any case, the best `limit` of them.
    pub fn search(&self, query: &str, limit: usize) -> Hits {
        search::search(self.files(), query, limit)
    }

    /// The definitions of a name (`f`, `Class.method`, `module.Class`), code before tests.
    pub fn definitions(&self, name: &str) -> Vec<Definition> {
        lookup::definitions(self.files(), name)
    }

    /// Uses of a name by any symbol, code before tests, at most `limit`.
    pub fn references(&self, name: &str, limit: usize) -> Usages {
        lookup::references(self.files(), &self.snapshot, name, limit)
    }

    /// The symbols that a text is likeliest about: a task, or the output of failing tests.
    pub fn locate(&self, text: &str, limit: usize) -> Vec<Located> {
        locate::locate(self.files(), text, limit)
    }

    /// The signatures in and around these symbols, in at most `bytes`.
    pub fn repository_map(&self, interest: &[SymbolPath], bytes: usize) -> String {
        map::repository_map(&self.snapshot, interest, bytes)
    }

    /// The tests that are likeliest to show whether a symbol works, nearest first: test functions,
    /// or the module bodies of test files.
    pub fn nearest_tests(&self, symbol: &SymbolPath, limit: usize) -> Vec<SymbolPath> {
        nearest::nearest_tests(self.files(), symbol, limit)
    }

    fn files(&self) -> &[Arc<FileFacts>] {
        self.files
            .get_or_init(|| read_all(&self.snapshot, &self.earlier))
    }
}

/// Whether a file holds tests, by its path.
pub fn is_test_file(file: &FilePath) -> bool {
    facts::is_test(file)
}

/// Reads the files of a snapshot on all cores, in order. Files that cannot be read are left out.
fn read_all(snapshot: &Snapshot, earlier: &[Arc<FileFacts>]) -> Vec<Arc<FileFacts>> {
    let files = snapshot.files();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut read = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Ok(text) = snapshot.read(file) else {
                continue;
            };
            let known = earlier.binary_search_by(|facts| facts.file.cmp(file));
            let known = known.ok().map(|place| &earlier[place]);
            read.push(match known.filter(|facts| facts.text == text) {
                Some(facts) => facts.clone(),
                None => Arc::new(FileFacts::read(file.clone(), text)),
            });
        }
        read
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
    let mut all: Vec<Arc<FileFacts>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("reading a file does not panic"))
            .collect()
    });
    all.sort_unstable_by(|a, b| a.file.cmp(&b.file));
    all
}
