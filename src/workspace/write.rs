//! Writing a file whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::paths::{ReadError, resolve};
use crate::syntax::FilePath;

/// In the name of every temporary file that [`write_atomically`] makes.
const MARK: &str = ".starling-write-";
/// A leftover is not swept earlier: its writer may not have locked it yet.
const SWEEP_AGE: Duration = Duration::from_secs(60);

/// Why a file was not written. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("not written: {0}")]
    Path(#[from] ReadError),
    #[error("{file}: not written: {source}")]
    Io { file: FilePath, source: io::Error },
}

/// Writes a file of the workspace: a temporary file beside it, flushed to disk, renamed over it.
/// Permissions stay; a link inside the workspace stays a link. Missing directories are made.
///
/// # Errors
/// The path leads out of the workspace or names a secret, or the disk refuses.
pub fn write_atomically(root: &Path, file: &FilePath, text: &str) -> Result<(), WriteError> {
    let path = resolve(root, file)?;
    let target = path.canonicalize().unwrap_or(path);
    replace(&target, text).map_err(|source| WriteError::Io {
        file: file.clone(),
        source,
    })
}

fn replace(target: &Path, text: &str) -> io::Result<()> {
    let directory = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(directory)?;
    let temporary = temporary_beside(target);
    let written = write_through(&temporary, target, text);
    if written.is_err() {
        // Nothing more can be done about it here; a later sweep removes it.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    File::open(directory)?.sync_all()
}

fn write_through(temporary: &Path, target: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(temporary)?;
    // Held until the rename: tells a sweep that the writer lives.
    file.try_lock()?;
    file.write_all(text.as_bytes())?;
    if let Ok(before) = fs::metadata(target) {
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()?;
    fs::rename(temporary, target)
}

/// Hidden, so that the walk skips it; unique in and between processes.
fn temporary_beside(target: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}{MARK}{}-{number}", std::process::id()))
}

/// Removes temporary files under `root` whose writers died, and says which.
pub fn sweep_leftovers(root: &Path) -> Vec<PathBuf> {
    let walk = ignore::WalkBuilder::new(root)
        .standard_filters(false)
        .filter_entry(|entry| !matches!(entry.file_name().to_str(), Some(".git" | "node_modules")))
        .build();
    walk.flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(ignore::DirEntry::into_path)
        .filter(|path| is_temporary(path) && is_abandoned(path) && fs::remove_file(path).is_ok())
        .collect()
}

fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with('.') && name.contains(MARK))
}

fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let age = file
        .metadata()
        .and_then(|found| found.modified())
        .map(|time| time.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age > SWEEP_AGE) && file.try_lock().is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    use super::*;

    fn names(root: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn root() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        (dir, root)
    }

    #[test]
    fn replaces_the_text_and_keeps_the_mode() {
        let (_dir, root) = root();
        let path = root.join("run.py");
        fs::write(&path, "old, and longer").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        write_atomically(&root, &FilePath::new("run.py"), "new\r\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new\r\n");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o750
        );
        assert_eq!(names(&root), ["run.py"]);
    }

    #[test]
    fn makes_new_files_and_directories() {
        let (_dir, root) = root();
        write_atomically(&root, &FilePath::new("a/b/c.py"), "c").unwrap();
        assert_eq!(fs::read_to_string(root.join("a/b/c.py")).unwrap(), "c");
    }

    #[test]
    fn a_link_stays_a_link() {
        let (_dir, root) = root();
        fs::write(root.join("real.py"), "old").unwrap();
        std::os::unix::fs::symlink("real.py", root.join("link.py")).unwrap();
        write_atomically(&root, &FilePath::new("link.py"), "new").unwrap();
        assert!(root.join("link.py").is_symlink());
        assert_eq!(fs::read_to_string(root.join("real.py")).unwrap(), "new");
    }

    #[test]
    fn writes_nothing_outside_and_leaves_nothing_behind() {
        let (_dir, root) = root();
        let inner = root.join("inner");
        fs::create_dir(&inner).unwrap();
        let outside = write_atomically(&inner, &FilePath::new("../x.py"), "x");
        assert!(matches!(
            outside,
            Err(WriteError::Path(ReadError::Outside(_)))
        ));
        fs::create_dir(inner.join("taken.py")).unwrap();
        let taken = write_atomically(&inner, &FilePath::new("taken.py"), "x").unwrap_err();
        assert!(taken.to_string().starts_with("taken.py: not written"));
        assert_eq!(names(&root), ["inner"]);
        assert_eq!(names(&inner), ["taken.py"]);
    }

    #[test]
    fn sweeps_what_a_dead_writer_left() {
        let (_dir, root) = root();
        let leftover = |name: &str, age: u64| {
            let path = temporary_beside(&root.join(name));
            let file = File::create(&path).unwrap();
            let then = SystemTime::now() - Duration::from_secs(age);
            file.set_modified(then).unwrap();
            (path, file)
        };
        let (dead, file) = leftover("dead.py", 120);
        drop(file);
        let (_young, file) = leftover("young.py", 0);
        drop(file);
        let (_alive, file) = leftover("alive.py", 120);
        file.try_lock().unwrap();
        fs::write(root.join("mine.py"), "").unwrap();
        assert_eq!(sweep_leftovers(&root), [dead]);
        assert_eq!(names(&root).len(), 3);
    }

    #[test]
    fn secrets_and_links_out_are_not_written() {
        let (_dir, root) = root();
        let inner = root.join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(root.join("outside.py"), "old").unwrap();
        std::os::unix::fs::symlink("../outside.py", inner.join("link.py")).unwrap();
        let out = write_atomically(&inner, &FilePath::new("link.py"), "new");
        assert!(matches!(out, Err(WriteError::Path(ReadError::Outside(_)))));
        assert_eq!(fs::read_to_string(root.join("outside.py")).unwrap(), "old");
        let secret = write_atomically(&inner, &FilePath::new("a/.env"), "x").unwrap_err();
        assert!(
            secret.to_string().starts_with("not written: a/.env"),
            "{secret}"
        );
        assert_eq!(names(&inner), ["link.py"]);
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_is_an_error() {
        let (_dir, root) = root();
        fs::write(root.join("a"), "file").unwrap();
        let error = write_atomically(&root, &FilePath::new("a/b.py"), "x").unwrap_err();
        assert!(error.to_string().contains("a/b.py"), "{error}");
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "file");
        assert_eq!(names(&root), ["a"]);
    }

    #[test]
    fn a_sweep_takes_only_what_is_marked() {
        let (_dir, root) = root();
        let then = SystemTime::now() - Duration::from_secs(3600);
        for name in ["x.starling-write-1-0", ".x", ".x.py.starling-writ"] {
            let file = File::create(root.join(name)).unwrap();
            file.set_modified(then).unwrap();
        }
        assert!(sweep_leftovers(&root).is_empty());
        assert_eq!(names(&root).len(), 3);
    }
}
