//! Scratch directories, one for each shadow. The process that uses a directory holds a lock on it.
//! After the process has ended, a sweep removes the directory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sandbox::kill_marked;
use starling_platform::files::{
    PathExt, belongs_to_this_user, open_to_this_user, temporary_directory_of_user,
};
use starling_workspace::{private_directory, private_file};

const LOCK: &str = "lock";
/// Maximum number of attempts to create a directory. A sweep can remove a new directory before it
/// is locked. In that case, the next number is tried.
const ATTEMPTS: usize = 16;

/// Returns the parent of all scratch directories in a cache directory.
fn shadows_of(cache: &Path) -> PathBuf {
    cache.join("shadows")
}

/// Returns the directory that is used instead of the cache directory if that is inside the
/// workspace. Each user has a different one.
fn substitute() -> PathBuf {
    temporary_directory_of_user("starling")
}

/// A directory that belongs to this process and is removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The lock that shows to other processes that this process is running. The system releases it
    /// when the process ends for any reason.
    _lock: File,
    at_end: DropAction,
}

/// Whether the directory is removed when its owner is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DropAction {
    Remove,
    Keep,
}

impl Scratch {
    /// Creates a scratch directory in the system's temporary directory. Sweeps also remove it.
    pub fn temporary() -> io::Result<Self> {
        Self::create_in_substitute(&substitute())
    }

    /// Creates a scratch directory in the directory that replaces the cache directory. Other users
    /// can write to its parent directory, so it must belong to this user alone.
    fn create_in_substitute(directory: &Path) -> io::Result<Self> {
        match fs::create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let found = fs::symlink_metadata(directory)?;
        if !found.is_dir() || !belongs_to_this_user(&found) {
            return Err(io::Error::other(format!(
                "{} is a link or belongs to another user; remove it, or set TMPDIR to a directory of your own",
                directory.display()
            )));
        }
        open_to_this_user(directory)?;
        Self::create(directory)
    }

    /// Keeps the directory: neither the end of this process nor a sweep removes it.
    ///
    /// # Errors
    /// Fails if the lock cannot be removed. In that case the directory is removed as usual.
    pub fn keep(mut self) -> io::Result<PathBuf> {
        fs::remove_file(self.path.join(LOCK))?;
        self.at_end = DropAction::Keep;
        Ok(self.path.clone())
    }

    /// Creates a scratch directory in `cache`, or in the directory that replaces the cache if
    /// `cache` is inside `root`.
    pub(super) fn create_outside(root: &Path, cache: &Path) -> io::Result<Self> {
        let scratch = Self::create(cache)?;
        if !scratch.path.starts_with(root) {
            return Ok(scratch);
        }
        let scratch = Self::create_in_substitute(&substitute())?;
        if scratch.path.starts_with(root) {
            return Err(io::Error::other(
                "the cache directory lies in the workspace; set STARLING_CACHE_DIR to one outside",
            ));
        }
        Ok(scratch)
    }

    pub(super) fn create(cache: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let base = shadows_of(cache);
        if fs::metadata(&base).is_ok_and(|found| !belongs_to_this_user(&found)) {
            return Err(io::Error::other(format!(
                "{} belongs to another user; set STARLING_CACHE_DIR",
                base.display()
            )));
        }
        private_directory(&base)?;
        let base = base.canonical()?;
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..ATTEMPTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("{}-{number}", std::process::id()));
            match lock_new(&path) {
                Ok(lock) => {
                    return Ok(Scratch {
                        path,
                        _lock: lock,
                        at_end: DropAction::Remove,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        match self.at_end {
            DropAction::Keep => {}
            // If the removal fails, a sweep of a later process removes the rest.
            DropAction::Remove => drop(remove_scratch(&self.path)),
        }
    }
}

fn lock_new(path: &Path) -> io::Result<File> {
    fs::create_dir(path)?;
    open_to_this_user(path)?;
    let lock = private_file(&path.join(LOCK))?;
    lock.try_lock()?;
    // If a sweep removed the directory before it was locked, the lock file no longer exists.
    fs::metadata(path.join(LOCK))?;
    Ok(lock)
}

/// Removes the scratch directories of ended processes, in `cache` and in the directory that
/// replaces it. Also kills processes that still run in these directories. Returns the paths of the
/// removed directories.
pub fn sweep_scratch(cache: &Path) -> Vec<PathBuf> {
    let caches = [cache.to_owned(), substitute()];
    let bases = caches.iter().map(|cache| fs::read_dir(shadows_of(cache)));
    let entries = bases.flatten().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| sweep_one(path))
        .collect()
}

fn sweep_one(path: &Path) -> bool {
    let Ok(lock) = File::open(path.join(LOCK)) else {
        // Without a lock file, the directory is new or partly removed. It is removed only if it is
        // empty.
        return fs::remove_dir(path).is_ok();
    };
    if lock.try_lock().is_err() {
        return false;
    }
    kill_marked(path);
    remove_scratch(path).is_ok()
}

/// Removes a scratch directory. The lock file is removed last, so that the next sweep still
/// recognizes the directory if this process ends before it is done.
fn remove_scratch(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        } else if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    remove_tree(path)
}

/// Removes a directory, including read-only directories inside it. Links are removed, not followed.
fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_directories(path)?;
            fs::remove_dir_all(path)
        }
        done => done,
    }
}

fn open_directories(path: &Path) -> io::Result<()> {
    open_to_this_user(path)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_directories(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn scratch_directory_is_deleted_on_drop() {
        let cache = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(cache.path()).unwrap();
        let path = scratch.path().to_owned();
        let locked = path.join("a/b");
        fs::create_dir_all(&locked).unwrap();
        fs::write(locked.join("file"), "").unwrap();
        fs::set_permissions(path.join("a"), fs::Permissions::from_mode(0o000)).unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn only_this_user_can_access_scratch_directories() {
        let parent = tempfile::tempdir().unwrap();
        let cache = parent.path().join("starling");
        let scratch = Scratch::create(&cache).unwrap();
        let shadows = scratch.path().parent().unwrap();
        for path in [&cache, shadows, scratch.path()] {
            assert_eq!(
                fs::metadata(path).unwrap().permissions().mode() & 0o777,
                0o700
            );
        }
        let lock = fs::metadata(scratch.path().join(LOCK)).unwrap();
        assert_eq!(lock.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn temporary_directory_that_is_a_link_or_of_another_user_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let (directory, other) = (
            parent.path().join("starling-1"),
            parent.path().join("other"),
        );
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, &directory).unwrap();
        let refused = Scratch::create_in_substitute(&directory).unwrap_err();
        assert!(
            refused.to_string().contains("is a link or belongs"),
            "{refused}"
        );
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        fs::remove_file(&directory).unwrap();
        let made = Scratch::create_in_substitute(&directory).unwrap();
        assert!(made.path().starts_with(directory.canonical().unwrap()));
        if rustix::process::geteuid().is_root() {
            drop(made);
            rustix::fs::chown(&directory, Some(rustix::fs::Uid::from_raw(12_345)), None).unwrap();
            assert!(Scratch::create_in_substitute(&directory).is_err());
        }
    }

    #[test]
    fn kept_scratch_directory_is_never_swept() {
        let cache = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(cache.path()).unwrap();
        fs::write(scratch.path().join("file"), "").unwrap();
        let path = scratch.keep().unwrap();
        assert!(sweep_scratch(cache.path()).is_empty());
        assert!(path.join("file").exists());
        assert!(!path.join(LOCK).exists());
    }

    #[test]
    fn sweep_deletes_only_scratch_directories_of_ended_processes() {
        let cache = tempfile::tempdir().unwrap();
        let alive = Scratch::create(cache.path()).unwrap();
        let base = alive.path().parent().unwrap().to_owned();
        let dead = base.join("1-0");
        fs::create_dir_all(dead.join("upper")).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        let unlocked = base.join("1-1");
        fs::create_dir_all(unlocked.join("kept")).unwrap();
        assert_eq!(sweep_scratch(cache.path()), [dead]);
        assert!(alive.path().exists() && unlocked.exists());
    }

    /// Environment variable of the child process of this test. It makes the child create a scratch
    /// directory and wait.
    const HOLDER: &str = "STARLING_TEST_HOLDER";

    #[test]
    fn sweep_deletes_the_scratch_directory_of_a_killed_process() {
        match std::env::var_os(HOLDER) {
            Some(cache) => hold(Path::new(&cache)),
            None => kill_a_holder_and_sweep(),
        }
    }

    fn hold(cache: &Path) {
        let scratch = Scratch::create(cache).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .env(crate::sandbox::MARKER, scratch.path())
            .spawn()
            .unwrap();
        println!("\nheld {} {}", child.id(), scratch.path().display());
        // This process waits until the parent kills it.
        child.wait().unwrap();
    }

    fn kill_a_holder_and_sweep() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};
        let cache = tempfile::tempdir().unwrap();
        let name =
            "shadow::scratch::tests::sweep_deletes_the_scratch_directory_of_a_killed_process";
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(HOLDER, cache.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        let held = lines.find_map(|line| Some(line.unwrap().strip_prefix("held ")?.to_owned()));
        let held = held.unwrap();
        let (child, path) = held.split_once(' ').unwrap();
        assert!(sweep_scratch(cache.path()).is_empty());

        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_eq!(sweep_scratch(cache.path()), [PathBuf::from(path)]);
        assert!(!Path::new(path).exists());
        // The pipe closes only when the orphaned process has ended, too.
        assert_eq!(lines.count(), 0);
        let state = fs::read_to_string(format!("/proc/{child}/stat"));
        assert!(state.is_err() || state.is_ok_and(|stat| stat.contains(") Z ")));
    }

    #[test]
    fn sweep_of_a_missing_directory_does_nothing() {
        let cache = tempfile::tempdir().unwrap();
        assert!(sweep_scratch(&cache.path().join("none")).is_empty());
    }
}
