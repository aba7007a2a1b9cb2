//! Brings what is known of the code up to a snapshot: reads the files that changed, on all cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use super::code::{Code, Known};
use super::facts::FileFacts;
use super::progress::Progress;
use super::segment::{Segment, hash_of};
use starling_syntax::{FilePath, Language};
use starling_workspace::{Held, Snapshot, Stamp};

/// More threads than this only wait for one another.
const MOST_THREADS: usize = 8;
/// Text that one segment is made of, about: what one thread has in memory at a time.
const SEGMENT_BYTES: u64 = 4 << 20;
const LEAST_SEGMENT_BYTES: u64 = 256 << 10;
/// The niceness of a thread that reads files.
#[cfg(target_os = "linux")]
const BEHIND: i32 = 10;
/// Stands for a text whose size is not known.
const TYPICAL_BYTES: u64 = 8 << 10;

/// The code of a snapshot, and how much of it was read anew.
pub(super) struct Reading {
    pub(super) code: Code,
    /// Files whose text was parsed.
    pub(super) parsed: usize,
}

impl Reading {
    /// What a snapshot has over what is known, in memory alone.
    pub(super) fn in_memory(snapshot: &Snapshot, earlier: &Code) -> Self {
        read(snapshot, earlier, |_| false, |segment| segment)
    }

    /// Whether it knows something that `earlier` did not: texts, stamps, or that files are gone.
    pub(super) fn is_news_to(&self, earlier: &Code) -> bool {
        let same = |(new, old): (&Known, &Known)| {
            Arc::ptr_eq(&new.segment, &old.segment)
                && new.number == old.number
                && new.stamp == old.stamp
        };
        self.code.files().len() != earlier.files().len()
            || !self.code.known().zip(earlier.known()).all(same)
    }
}

/// The code of `snapshot`, with what `earlier` knows of files that have the same text. Files that
/// `again` names are parsed in any case. Each segment is handed to `keep` as soon as it is made.
pub(super) fn read(
    snapshot: &Snapshot,
    earlier: &Code,
    again: impl Fn(&Known) -> bool,
    keep: impl Fn(Segment) -> Segment + Sync,
) -> Reading {
    let mut same = Vec::new();
    let mut changed = Vec::new();
    for file in snapshot.files() {
        if Language::of(file) == Language::Plain {
            continue;
        }
        let known = earlier.find(file).map(|id| earlier.entry_known(id));
        let known = known.filter(|known| !again(known));
        match (snapshot.held(file), known) {
            (Held::OnDisk(stamp), Some(known)) if known.stamp == Some(stamp) => {
                same.push(known.clone());
            }
            (Held::Text(text), Some(known)) if known.view().hash == hash_of(&text) => {
                same.push(known.clone());
            }
            (held, known) => changed.push(Changed { file, held, known }),
        }
    }
    let batches = batches(&changed);
    let progress = Progress::begin(changed.len());
    let read_one = |batch: &&[Changed<'_>]| read_batch(snapshot, batch, &keep, &progress);
    let mut parsed = 0;
    for (known, of_batch) in on_all_cores(&batches, step_back, read_one) {
        same.extend(known);
        parsed += of_batch;
    }
    Reading {
        code: Code::of(same),
        parsed,
    }
}

/// A file that may have another text than the one that was read.
struct Changed<'s> {
    file: &'s FilePath,
    held: Held,
    known: Option<&'s Known>,
}

/// Neighbours, in runs of which the later ones are the smaller: none too large, and when the first core
/// finds no more, the others are nearly done.
fn batches<'c, 's>(changed: &'c [Changed<'s>]) -> Vec<&'c [Changed<'s>]> {
    let size = |changed: &Changed| match &changed.held {
        Held::Text(text) => text.len() as u64,
        Held::OnDisk(stamp) => stamp.size,
        Held::Nothing => TYPICAL_BYTES,
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

/// Lets the threads that answer the user go first: the calling thread reads for a while.
fn step_back() {
    // On Linux the priority is that of the calling thread alone; elsewhere it would be the program's.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, BEHIND);
}

/// What `work` makes of each item, in their order. Each thread that is started for it calls `begin`
/// first.
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
            worker.join().expect("the work does not panic")
        };
        workers.into_iter().flat_map(join).collect()
    });
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, made)| made).collect()
}

fn read_batch(
    snapshot: &Snapshot,
    batch: &[Changed<'_>],
    keep: impl Fn(Segment) -> Segment,
    progress: &Progress,
) -> (Vec<Known>, usize) {
    let mut same = Vec::new();
    let mut facts = Vec::new();
    let mut stamps = Vec::new();
    for changed in batch {
        progress.step();
        let Some((text, stamp)) = text_of(snapshot, changed) else {
            continue;
        };
        match changed
            .known
            .filter(|known| known.view().hash == hash_of(&text))
        {
            Some(known) => same.push(Known {
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
        same.extend(numbered.map(|((number, facts), stamp)| Known {
            file: facts.file,
            segment: segment.clone(),
            number,
            stamp,
        }));
    }
    (same, parsed)
}

/// The text, with a stamp by which it will be known again. Files that cannot be read are left out.
fn text_of(snapshot: &Snapshot, changed: &Changed<'_>) -> Option<(String, Option<Stamp>)> {
    if let Held::Text(text) = &changed.held {
        return Some((text.as_ref().to_owned(), None));
    }
    let looked = SystemTime::now();
    let (text, stamp) = snapshot.glance(changed.file).ok()?;
    Some((text, stamp.filter(|stamp| stamp.is_settled(looked))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_all_files_in_order_and_get_smaller() {
        let file = FilePath::new("a.py");
        let text: Arc<str> = "x".repeat(64 << 10).into();
        let changed: Vec<Changed<'_>> = (0..400)
            .map(|_| Changed {
                file: &file,
                held: Held::Text(text.clone()),
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
