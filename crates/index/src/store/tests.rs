use std::time::Duration;

use super::*;
use crate::{Index, Report};
use starling_workspace::{Overlay, Workspace};

/// A temporary workspace with two files, and a temporary cache directory.
struct TestStore {
    root: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl TestStore {
    fn new() -> Self {
        let store_fixture = TestStore {
            root: tempfile::tempdir().unwrap(),
            cache: tempfile::tempdir().unwrap(),
        };
        store_fixture.write("a.py", "def f():\n    return g()\n");
        store_fixture.write("b.py", "def g():\n    pass\n");
        store_fixture
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
fn stored_files_are_not_parsed_again() {
    let store_fixture = TestStore::new();
    let first = store_fixture.report();
    assert_eq!((first.files, first.parsed, first.from_cache), (2, 2, false));
    let second = store_fixture.report();
    assert_eq!(
        (second.files, second.parsed, second.from_cache),
        (2, 0, true)
    );
    assert_eq!((first.symbols, first.bytes), (second.symbols, second.bytes));
    assert_eq!(defined(&store_fixture.open(), "g"), ["b.py::g"]);
}

#[test]
fn only_changed_files_are_parsed_again() {
    let store_fixture = TestStore::new();
    store_fixture.open();
    store_fixture.write("b.py", "def h():\n    pass\n");
    store_fixture.write("c.py", "def i():\n    pass\n");
    let index = store_fixture.open();
    assert_eq!(index.report().parsed, 2);
    assert_eq!(defined(&index, "g"), [""; 0]);
    assert_eq!(defined(&index, "h"), ["b.py::h"]);
    std::fs::remove_file(store_fixture.root.path().join("a.py")).unwrap();
    let index = store_fixture.open();
    assert_eq!(index.report().parsed, 0);
    assert_eq!(defined(&index, "f"), [""; 0]);
    assert_eq!(index.report().files, 2);
}

#[test]
fn changed_content_is_detected_despite_an_old_modification_time() {
    let store_fixture = TestStore::new();
    store_fixture.age("b.py");
    store_fixture.open();
    // The new text has the same length, and the old modification time is restored.
    store_fixture.write("b.py", "def k():\n    pass\n");
    store_fixture.age("b.py");
    assert_eq!(defined(&store_fixture.open(), "k"), ["b.py::k"]);
    // The time changes but not the text: the file is read, but not parsed.
    store_fixture.age("b.py");
    assert_eq!(store_fixture.report().parsed, 0);
}

#[test]
fn damaged_index_is_rebuilt_and_reported_once() {
    let store_fixture = TestStore::new();
    store_fixture.open();
    let names = store_fixture.stored();
    let damaged = names
        .iter()
        .filter(|name| ![LOCK, FOLDER].contains(&name.as_str()));
    for name in damaged {
        let path = store_fixture.store().directory.join(name);
        let whole = fs::read(&path).unwrap();
        for damage in [&whole[..whole.len() / 2], &whole[..0], b"rubbish"] {
            fs::write(&path, damage).unwrap();
            let report = store_fixture.report();
            assert_eq!((report.parsed, report.from_cache), (2, false), "{name}");
            let trouble = report.trouble.unwrap_or_default();
            // If the version number is damaged, the index looks like an index of another version,
            // so the damage is not reported.
            assert!(
                trouble.contains("rebuilt") || damage == b"rubbish",
                "{name}: {trouble}"
            );
            let again = store_fixture.report();
            assert_eq!((again.parsed, again.trouble), (0, None), "{name}");
        }
    }
}

#[test]
fn index_of_another_version_is_rebuilt_without_a_report() {
    let store_fixture = TestStore::new();
    store_fixture.open();
    let path = store_fixture.store().directory.join(MANIFEST);
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] ^= 1;
    fs::write(&path, bytes).unwrap();
    let report = store_fixture.report();
    assert_eq!(
        (report.parsed, report.from_cache, report.trouble),
        (2, false, None)
    );
    assert!(store_fixture.report().from_cache);
}

#[test]
fn missing_segment_is_rebuilt() {
    let store_fixture = TestStore::new();
    store_fixture.open();
    for name in store_fixture
        .stored()
        .iter()
        .filter(|name| name.ends_with(ENDING))
    {
        fs::remove_file(store_fixture.store().directory.join(name)).unwrap();
    }
    assert_eq!(store_fixture.report().parsed, 2);
    assert_eq!(store_fixture.report().parsed, 0);
}

#[test]
fn unused_segments_and_temporary_files_are_removed() {
    let store_fixture = TestStore::new();
    store_fixture.open();
    let directory = store_fixture.store().directory;
    fs::write(directory.join("0123.segment"), "old").unwrap();
    fs::write(directory.join("manifest.77.new"), "half").unwrap();
    store_fixture.write("b.py", "def h():\n    pass\n");
    store_fixture.open();
    let stored = store_fixture.stored();
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
fn many_small_segments_are_merged() {
    let store_fixture = TestStore::new();
    for round in 0..MOST_SMALL + 3 {
        store_fixture.write(
            &format!("m{round}.py"),
            &format!("def m{round}():\n    pass\n"),
        );
        let index = store_fixture.open();
        assert_eq!(defined(&index, &format!("m{round}")).len(), 1);
        assert_eq!(defined(&index, "f").len(), 1);
    }
    let segments = store_fixture.stored();
    let segments = segments.iter().filter(|name| name.ends_with(ENDING));
    assert!(segments.count() <= 4);
}

#[test]
fn locked_store_is_not_written() {
    let store_fixture = TestStore::new();
    let directory = store_fixture.store().directory;
    fs::create_dir_all(&directory).unwrap();
    let lock = File::create(directory.join(LOCK)).unwrap();
    lock.lock().unwrap();
    let report = store_fixture.report();
    assert_eq!((report.files, report.trouble), (2, None));
    assert!(!store_fixture.stored().contains(&MANIFEST.to_owned()));
    drop(lock);
    store_fixture.open();
    assert!(store_fixture.report().from_cache);
}

#[test]
fn index_works_without_a_writable_cache() {
    let store_fixture = TestStore::new();
    fs::write(
        store_fixture.cache.path().join("index"),
        "a file in its place",
    )
    .unwrap();
    let index = store_fixture.open();
    assert_eq!(defined(&index, "g"), ["b.py::g"]);
    let trouble = index.report().trouble.unwrap();
    assert!(
        trouble.contains("not stored") || trouble.contains("rebuilt"),
        "{trouble}"
    );
}

#[test]
fn unsaved_buffers_are_not_stored() {
    let store_fixture = TestStore::new();
    let workspace = Workspace::open(store_fixture.root.path().to_owned()).unwrap();
    let overlay = Overlay::from([(
        FilePath::new("a.py"),
        Some("def unsaved():\n    pass\n".into()),
    )]);
    let index = Index::open(
        workspace.snapshot(overlay),
        store_fixture.cache.path().to_owned(),
    );
    assert_eq!(defined(&index, "unsaved"), ["a.py::unsaved"]);
    assert_eq!(defined(&store_fixture.open(), "unsaved"), [""; 0]);
    assert_eq!(store_fixture.report().parsed, 0);
    for name in store_fixture.stored() {
        let bytes = fs::read(store_fixture.store().directory.join(name)).unwrap();
        assert!(!bytes.windows(7).any(|bytes| bytes == b"unsaved"));
    }
}

#[test]
fn different_workspaces_have_different_store_directories() {
    let store_fixture = TestStore::new();
    let other = TestStore::new();
    assert_ne!(
        Store::new(store_fixture.cache.path(), store_fixture.root.path()).directory,
        Store::new(store_fixture.cache.path(), other.root.path()).directory
    );
}

#[test]
fn concurrent_indexing_of_one_workspace_is_correct() {
    let store_fixture = TestStore::new();
    for round in 0..20 {
        store_fixture.write("b.py", &format!("def g{round}():\n    pass\n"));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let index = store_fixture.open();
                    assert_eq!(defined(&index, &format!("g{round}")).len(), 1);
                    assert_eq!(index.report().trouble, None);
                });
            }
        });
    }
}

#[test]
fn stored_segments_are_memory_mapped() {
    let store_fixture = TestStore::new();
    let index = store_fixture.open();
    assert!(index.code().segments().all(|segment| segment.is_stored()));
    let store = Store::new(Path::new("/dev/null"), store_fixture.root.path());
    let kept = store.keep(Segment::of(&[]));
    assert!(!kept.is_stored(), "in memory where it cannot be written");
}

#[test]
fn save_rewrites_a_deleted_segment() {
    let store_fixture = TestStore::new();
    let index = store_fixture.open();
    for name in store_fixture
        .stored()
        .iter()
        .filter(|name| name.ends_with(ENDING))
    {
        fs::remove_file(store_fixture.store().directory.join(name)).unwrap();
    }
    store_fixture.store().save(index.code()).unwrap();
    let again = store_fixture.report();
    assert_eq!((again.parsed, again.trouble), (0, None));
}

#[test]
fn index_of_a_deleted_directory_is_removed() {
    let store_fixture = TestStore::new();
    store_fixture.open();
    let gone = TestStore {
        root: tempfile::tempdir().unwrap(),
        cache: store_fixture.cache,
    };
    fs::remove_dir_all(store_fixture.root.path()).unwrap();
    gone.write("c.py", "x = 1\n");
    gone.open();
    let left = fs::read_dir(gone.cache.path().join("index")).unwrap();
    assert_eq!(left.count(), 1);
    assert!(gone.report().from_cache);
}

#[test]
fn index_of_another_checkout_reuses_unchanged_files() {
    let one = TestStore::new();
    one.open();
    let two = TestStore::new();
    two.write("b.py", "def other():\n    pass\n");
    let root = two.root.path().canonicalize().unwrap();
    Index::lend(two.cache.path(), one.root.path(), &root).unwrap_err();
    two.store().begin_as(&one.store()).unwrap();
    let index = two.open();
    let report = index.report();
    assert!(report.from_cache);
    assert_eq!((report.files, report.parsed), (2, 1));
    // Definitions of the other checkout do not appear here.
    assert_eq!(defined(&index, "f"), ["a.py::f"]);
    assert_eq!(defined(&index, "other"), ["b.py::other"]);
    assert!(defined(&index, "g").is_empty());
    // The first index is unchanged.
    assert_eq!(one.report().parsed, 0);
}

#[cfg(unix)]
#[test]
fn only_this_user_can_read_stored_files() {
    use std::os::unix::fs::PermissionsExt;

    let fixture = TestStore::new();
    fixture.report();
    let directory = fixture.store().directory;
    assert!(!fixture.stored().is_empty());
    for name in fixture.stored() {
        let found = fs::metadata(directory.join(&name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
}
