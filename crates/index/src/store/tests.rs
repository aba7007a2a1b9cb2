use std::time::Duration;

use super::*;
use crate::{Index, Report};
use starling_workspace::{Overlay, Workspace};

/// A workspace and a cache directory.
struct Bed {
    root: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        let bed = Bed {
            root: tempfile::tempdir().unwrap(),
            cache: tempfile::tempdir().unwrap(),
        };
        bed.write("a.py", "def f():\n    return g()\n");
        bed.write("b.py", "def g():\n    pass\n");
        bed
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.root.path().join(file), text).unwrap();
    }

    /// Sets a file's modification time far into the past.
    fn age(&self, file: &str) {
        let path = self.root.path().join(file);
        let file = File::options().write(true).open(path).unwrap();
        let old = std::time::SystemTime::now() - Duration::from_secs(3600);
        file.set_modified(old).unwrap();
    }

    fn open(&self) -> Index {
        let workspace = Workspace::open(self.root.path().to_owned()).unwrap();
        let index = Index::open(
            workspace.snapshot(Overlay::new()),
            self.cache.path().to_owned(),
        );
        index.warm();
        index
    }

    fn report(&self) -> Report {
        self.open().report()
    }

    fn store(&self) -> Store {
        Store::new(self.cache.path(), &self.root.path().canonicalize().unwrap())
    }

    /// Returns the names of the stored files.
    fn stored(&self) -> Vec<String> {
        let entries = fs::read_dir(self.store().directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

fn defined(index: &Index, name: &str) -> Vec<String> {
    let found = index.definitions(name);
    found.iter().map(|found| found.symbol.to_string()).collect()
}

#[test]
fn what_was_stored_is_not_read_again() {
    let bed = Bed::new();
    let first = bed.report();
    assert_eq!((first.files, first.parsed, first.from_cache), (2, 2, false));
    let second = bed.report();
    assert_eq!(
        (second.files, second.parsed, second.from_cache),
        (2, 0, true)
    );
    assert_eq!((first.symbols, first.bytes), (second.symbols, second.bytes));
    assert_eq!(defined(&bed.open(), "g"), ["b.py::g"]);
}

#[test]
fn only_what_changed_is_read_again() {
    let bed = Bed::new();
    bed.open();
    bed.write("b.py", "def h():\n    pass\n");
    bed.write("c.py", "def i():\n    pass\n");
    let index = bed.open();
    assert_eq!(index.report().parsed, 2);
    assert_eq!(defined(&index, "g"), [""; 0]);
    assert_eq!(defined(&index, "h"), ["b.py::h"]);
    std::fs::remove_file(bed.root.path().join("a.py")).unwrap();
    let index = bed.open();
    assert_eq!(index.report().parsed, 0);
    assert_eq!(defined(&index, "f"), [""; 0]);
    assert_eq!(index.report().files, 2);
}

#[test]
fn the_content_decides_whatever_the_times_say() {
    let bed = Bed::new();
    bed.age("b.py");
    bed.open();
    // The new text has the same length, and the old modification time is restored.
    bed.write("b.py", "def k():\n    pass\n");
    bed.age("b.py");
    assert_eq!(defined(&bed.open(), "k"), ["b.py::k"]);
    // The time changes but not the text: the file is read, but not parsed.
    bed.age("b.py");
    assert_eq!(bed.report().parsed, 0);
}

#[test]
fn a_damaged_store_is_built_anew_and_said_once() {
    let bed = Bed::new();
    bed.open();
    let names = bed.stored();
    let damaged = names
        .iter()
        .filter(|name| ![LOCK, FOLDER].contains(&name.as_str()));
    for name in damaged {
        let path = bed.store().directory.join(name);
        let whole = fs::read(&path).unwrap();
        for damage in [&whole[..whole.len() / 2], &whole[..0], b"rubbish"] {
            fs::write(&path, damage).unwrap();
            let report = bed.report();
            assert_eq!((report.parsed, report.from_cache), (2, false), "{name}");
            let trouble = report.trouble.unwrap_or_default();
            // Damage to the version cannot be distinguished from another version, so it is not
            // reported.
            assert!(
                trouble.contains("built anew") || damage == b"rubbish",
                "{name}: {trouble}"
            );
            let again = bed.report();
            assert_eq!((again.parsed, again.trouble), (0, None), "{name}");
        }
    }
}

#[test]
fn another_version_is_built_anew_in_silence() {
    let bed = Bed::new();
    bed.open();
    let path = bed.store().directory.join(MANIFEST);
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] ^= 1;
    fs::write(&path, bytes).unwrap();
    let report = bed.report();
    assert_eq!(
        (report.parsed, report.from_cache, report.trouble),
        (2, false, None)
    );
    assert!(bed.report().from_cache);
}

#[test]
fn a_missing_segment_is_built_anew() {
    let bed = Bed::new();
    bed.open();
    for name in bed.stored().iter().filter(|name| name.ends_with(ENDING)) {
        fs::remove_file(bed.store().directory.join(name)).unwrap();
    }
    assert_eq!(bed.report().parsed, 2);
    assert_eq!(bed.report().parsed, 0);
}

#[test]
fn what_nobody_names_is_removed() {
    let bed = Bed::new();
    bed.open();
    let directory = bed.store().directory;
    fs::write(directory.join("0123.segment"), "old").unwrap();
    fs::write(directory.join("manifest.77.new"), "half").unwrap();
    bed.write("b.py", "def h():\n    pass\n");
    bed.open();
    let stored = bed.stored();
    assert!(
        !stored
            .iter()
            .any(|name| name.starts_with("0123") || name.ends_with("new"))
    );
    assert_eq!(
        stored.iter().filter(|name| name.ends_with(ENDING)).count(),
        2
    );
}

#[test]
fn many_small_segments_become_one() {
    let bed = Bed::new();
    for round in 0..MOST_SMALL + 3 {
        bed.write(
            &format!("m{round}.py"),
            &format!("def m{round}():\n    pass\n"),
        );
        let index = bed.open();
        assert_eq!(defined(&index, &format!("m{round}")).len(), 1);
        assert_eq!(defined(&index, "f").len(), 1);
    }
    let segments = bed.stored();
    let segments = segments.iter().filter(|name| name.ends_with(ENDING));
    assert!(segments.count() <= 4);
}

#[test]
fn a_store_that_is_written_by_another_is_left_to_it() {
    let bed = Bed::new();
    let directory = bed.store().directory;
    fs::create_dir_all(&directory).unwrap();
    let lock = File::create(directory.join(LOCK)).unwrap();
    lock.lock().unwrap();
    let report = bed.report();
    assert_eq!((report.files, report.trouble), (2, None));
    assert!(!bed.stored().contains(&MANIFEST.to_owned()));
    drop(lock);
    bed.open();
    assert!(bed.report().from_cache);
}

#[test]
fn a_cache_that_cannot_be_written_costs_only_time() {
    let bed = Bed::new();
    fs::write(bed.cache.path().join("index"), "a file in its place").unwrap();
    let index = bed.open();
    assert_eq!(defined(&index, "g"), ["b.py::g"]);
    let trouble = index.report().trouble.unwrap();
    assert!(
        trouble.contains("not stored") || trouble.contains("built anew"),
        "{trouble}"
    );
}

#[test]
fn buffers_are_not_stored() {
    let bed = Bed::new();
    let workspace = Workspace::open(bed.root.path().to_owned()).unwrap();
    let overlay = Overlay::from([(
        FilePath::new("a.py"),
        Some("def unsaved():\n    pass\n".into()),
    )]);
    let index = Index::open(workspace.snapshot(overlay), bed.cache.path().to_owned());
    assert_eq!(defined(&index, "unsaved"), ["a.py::unsaved"]);
    assert_eq!(defined(&bed.open(), "unsaved"), [""; 0]);
    assert_eq!(bed.report().parsed, 0);
    for name in bed.stored() {
        let bytes = fs::read(bed.store().directory.join(name)).unwrap();
        assert!(!bytes.windows(7).any(|bytes| bytes == b"unsaved"));
    }
}

#[test]
fn two_workspaces_have_two_stores() {
    let bed = Bed::new();
    let other = Bed::new();
    assert_ne!(
        Store::new(bed.cache.path(), bed.root.path()).directory,
        Store::new(bed.cache.path(), other.root.path()).directory
    );
}

#[test]
fn two_at_a_time_do_not_disturb_each_other() {
    let bed = Bed::new();
    for round in 0..20 {
        bed.write("b.py", &format!("def g{round}():\n    pass\n"));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let index = bed.open();
                    assert_eq!(defined(&index, &format!("g{round}")).len(), 1);
                    assert_eq!(index.report().trouble, None);
                });
            }
        });
    }
}

#[test]
fn what_is_stored_takes_no_memory_of_its_own() {
    let bed = Bed::new();
    let index = bed.open();
    assert!(index.code().segments().all(|segment| segment.is_stored()));
    let store = Store::new(Path::new("/dev/null"), bed.root.path());
    let kept = store.keep(Segment::of(&[]));
    assert!(!kept.is_stored(), "in memory where it cannot be written");
}

#[test]
fn a_segment_that_was_taken_away_is_written_again() {
    let bed = Bed::new();
    let index = bed.open();
    for name in bed.stored().iter().filter(|name| name.ends_with(ENDING)) {
        fs::remove_file(bed.store().directory.join(name)).unwrap();
    }
    bed.store().save(index.code()).unwrap();
    let again = bed.report();
    assert_eq!((again.parsed, again.trouble), (0, None));
}

#[test]
fn the_index_of_a_folder_that_is_gone_is_removed() {
    let bed = Bed::new();
    bed.open();
    let gone = Bed {
        root: tempfile::tempdir().unwrap(),
        cache: bed.cache,
    };
    fs::remove_dir_all(bed.root.path()).unwrap();
    gone.write("c.py", "x = 1\n");
    gone.open();
    let left = fs::read_dir(gone.cache.path().join("index")).unwrap();
    assert_eq!(left.count(), 1);
    assert!(gone.report().from_cache);
}

#[test]
fn another_checkout_begins_with_what_is_stored_of_the_first() {
    let one = Bed::new();
    one.open();
    let two = Bed::new();
    two.write("b.py", "def other():\n    pass\n");
    let root = two.root.path().canonicalize().unwrap();
    Index::lend(two.cache.path(), one.root.path(), &root).unwrap_err();
    two.store().begin_as(&one.store()).unwrap();
    let index = two.open();
    let report = index.report();
    assert!(report.from_cache);
    assert_eq!((report.files, report.parsed), (2, 1));
    // Definitions of the other workspace do not appear here.
    assert_eq!(defined(&index, "f"), ["a.py::f"]);
    assert_eq!(defined(&index, "other"), ["b.py::other"]);
    assert!(defined(&index, "g").is_empty());
    // The first index is unchanged.
    assert_eq!(one.report().parsed, 0);
}
