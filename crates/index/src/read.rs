//! Brings the code up to date with a snapshot: reads the files that changed, on all cores.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

use super::code::{Code, IndexedFile};
use super::facts::FileFacts;
use super::progress::Progress;
use super::segment::{Segment, hash_of};
use starling_platform::processes::{give_way, set_thread_niceness};
use starling_syntax::{FilePath, Language};
use starling_workspace::{Snapshot, Stamp, TextState};

/// Maximum number of threads. More threads only wait for each other.
const MOST_THREADS: usize = 8;
/// Approximate size of the text in one segment, in bytes. A thread holds this much in memory at a
/// time.
const SEGMENT_BYTES: u64 = 4 << 20;
const LEAST_SEGMENT_BYTES: u64 = 256 << 10;
/// Niceness (scheduling priority) of threads that read files.
const BEHIND: i32 = 10;
/// Assumed size of a text whose size is unknown, in bytes.
const TYPICAL_BYTES: u64 = 8 << 10;

/// The code of a snapshot, and the number of files that were parsed for it.
pub(super) struct ReadCode {
    pub(super) code: Code,
    /// Number of files whose text was parsed.
    pub(super) parsed: usize,
}

impl ReadCode {
    /// Brings `earlier` up to date with a snapshot, in memory only. `differing` are the files whose
    /// text may differ from `earlier`; `None` if all may.
    pub(super) fn in_memory(
        snapshot: &Snapshot,
        earlier: &Code,
        differing: Option<&BTreeSet<FilePath>>,
        stopped: &AtomicBool,
    ) -> Self {
        let reuse = |known: &IndexedFile| match differing {
            Some(files) if !files.contains(&known.file) => Reuse::Always,
            Some(_) | None => Reuse::IfSame,
        };
        read(snapshot, earlier, stopped, reuse, |segment| segment)
    }

    /// Returns whether this code differs from `earlier`: it has other texts or stamps, or lacks
    /// files that were removed.
    pub(super) fn is_news_to(&self, earlier: &Code) -> bool {
        let same = |(new, old): (&IndexedFile, &IndexedFile)| {
            Arc::ptr_eq(&new.segment, &old.segment)
                && new.number == old.number
                && new.stamp == old.stamp
        };
        self.code.files().len() != earlier.files().len()
            || !self.code.known().zip(earlier.known()).all(same)
    }
}

/// Whether a file is taken from an earlier index instead of being parsed again.
pub(super) enum Reuse {
    /// Its text is known to be the same, and is not compared.
    Always,
    /// Only if its text is the same.
    IfSame,
    Never,
}

/// Returns the code of `snapshot`. Files are taken from `earlier` as `reuse` says. Each segment is
/// passed to `keep` as soon as it is complete. Once `stopped` is set, the remaining files are not read
/// and are missing in the code.
pub(super) fn read(
    snapshot: &Snapshot,
    earlier: &Code,
    stopped: &AtomicBool,
    reuse: impl Fn(&IndexedFile) -> Reuse,
    keep: impl Fn(Segment) -> Segment + Sync,
) -> ReadCode {
    let mut same = Vec::new();
    let mut changed = Vec::new();
    let mut indexed = earlier.known().peekable();
    for file in snapshot.files() {
        if Language::of(file) == Language::Plain {
            continue;
        }
        // Both are ordered by path.
        while indexed.next_if(|known| known.file < *file).is_some() {}
        let known = indexed.next_if(|known| known.file == *file);
        let known = match known.map(|known| (known, reuse(known))) {
            Some((known, Reuse::Always)) => {
                same.push(known.clone());
                continue;
            }
            Some((known, Reuse::IfSame)) => Some(known),
            Some((_, Reuse::Never)) | None => None,
        };
        match (snapshot.held(file), known) {
            (TextState::OnDisk(stamp), Some(known)) if known.stamp == Some(stamp) => {
                same.push(known.clone());
            }
            (TextState::Text(text), Some(known)) if known.view().hash == hash_of(&text) => {
                same.push(known.clone());
            }
            (held, known) => changed.push(ChangedFile { file, held, known }),
        }
    }
    let batches = batches(&changed);
    let progress = Progress::begin(changed.len());
    let read_one = |batch: &&[ChangedFile<'_>]| {
        let goes_on = || !stopped.load(Ordering::Relaxed);
        let left = batch.iter().take_while(|_| goes_on());
        read_batch(snapshot, left, &keep, &progress)
    };
    let mut parsed = 0;
    for (known, of_batch) in on_all_cores(&batches, lower_priority, read_one) {
        same.extend(known);
        parsed += of_batch;
    }
    ReadCode {
        code: Code::of(same),
        parsed,
    }
}

/// A file whose current text may differ from the indexed text.
struct ChangedFile<'s> {
    file: &'s FilePath,
    held: TextState,
    known: Option<&'s IndexedFile>,
}

/// Splits adjacent files into batches. Batches get smaller towards the end, so that all cores
/// finish at about the same time, and no batch is too large.
fn batches<'c, 's>(changed: &'c [ChangedFile<'s>]) -> Vec<&'c [ChangedFile<'s>]> {
    let size = |changed: &ChangedFile| match &changed.held {
        TextState::Text(text) => text.len() as u64,
        TextState::OnDisk(stamp) => stamp.size,
        TextState::Nothing => TYPICAL_BYTES,
    };
    let share = |left: u64| {
        let of_each_core = left / (3 * threads() as u64);
        of_each_core.clamp(LEAST_SEGMENT_BYTES, SEGMENT_BYTES)
    };
    let mut left: u64 = changed.iter().map(size).sum();
    let mut batches = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for (place, file) in changed.iter().enumerate() {
        sum += size(file);
        if sum >= share(left) {
            batches.push(&changed[start..=place]);
            left -= sum;
            (start, sum) = (place + 1, 0);
        }
    }
    if start < changed.len() {
        batches.push(&changed[start..]);
    }
    batches
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS))
}

/// Lowers the priority of the calling thread, so that threads that the user waits for run first.
fn lower_priority() {
    // If the system refuses the lower priority, the user only has to wait longer.
    let _ = set_thread_niceness(BEHIND);
}

/// Returns the results of `work` for all items, in order. Each started thread calls `begin` first.
pub(super) fn on_all_cores<T: Sync, R: Send>(
    items: &[T],
    begin: impl Fn() + Sync,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if items.len() < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let worker = || {
        begin();
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else {
                return done;
            };
            done.push((place, work(item)));
        }
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let count = threads().min(items.len());
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(worker)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<(usize, R)>>| {
            worker.join().expect("a reading thread does not panic")
        };
        workers.into_iter().flat_map(join).collect()
    });
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, made)| made).collect()
}

fn read_batch<'c, 's: 'c>(
    snapshot: &Snapshot,
    batch: impl Iterator<Item = &'c ChangedFile<'s>>,
    keep: impl Fn(Segment) -> Segment,
    progress: &Progress,
) -> (Vec<IndexedFile>, usize) {
    let mut same = Vec::new();
    let mut facts = Vec::new();
    let mut stamps = Vec::new();
    for changed in batch {
        progress.step();
        give_way();
        let Some((text, stamp)) = text_of(snapshot, changed) else {
            continue;
        };
        match changed
            .known
            .filter(|known| known.view().hash == hash_of(&text))
        {
            Some(known) => same.push(IndexedFile {
                stamp,
                ..known.clone()
            }),
            None => {
                facts.push(FileFacts::read(changed.file.clone(), text));
                stamps.push(stamp);
            }
        }
    }
    let parsed = facts.len();
    if parsed > 0 {
        let segment = Arc::new(keep(Segment::of(&facts)));
        let numbered = (0..).zip(facts).zip(stamps);
        same.extend(numbered.map(|((number, facts), stamp)| IndexedFile {
            file: facts.file,
            segment: segment.clone(),
            number,
            stamp,
        }));
    }
    (same, parsed)
}

/// Returns the text, with a stamp if a later change is certain to change the stamp. Returns `None`
/// if the file cannot be read.
fn text_of(snapshot: &Snapshot, changed: &ChangedFile<'_>) -> Option<(String, Option<Stamp>)> {
    match &changed.held {
        TextState::Text(text) => Some((text.as_ref().to_owned(), None)),
        TextState::OnDisk(_) => {
            let looked = SystemTime::now();
            let (text, stamp) = snapshot.glance(changed.file).ok()?;
            Some((text, stamp.filter(|stamp| stamp.is_settled(looked))))
        }
        TextState::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_contain_all_files_and_get_smaller() {
        let file = FilePath::new("a.py");
        let text: Arc<str> = "x".repeat(64 << 10).into();
        let changed: Vec<ChangedFile<'_>> = (0..400)
            .map(|_| ChangedFile {
                file: &file,
                held: TextState::Text(text.clone()),
                known: None,
            })
            .collect();
        let sizes: Vec<usize> = batches(&changed).iter().map(|batch| batch.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), changed.len());
        assert!(
            sizes.is_sorted_by(|first, second| first >= second),
            "{sizes:?}"
        );
        let least = (LEAST_SEGMENT_BYTES >> 16) as usize;
        assert!(sizes[0] <= (SEGMENT_BYTES >> 16) as usize);
        assert!(sizes[sizes.len() - 1] <= least, "{sizes:?}");
        assert!(batches(&[]).is_empty());
    }
}
