//! Measures how much a command writes to disk in its own directory, and whether it exceeds a limit
//! or fills the disk.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use starling_platform::files::free_space_of;

use super::plan::{Confinement, Plan, Tree};
use super::watch::Excess;

/// Minimum time between two measurements.
const LEAST: Duration = Duration::from_millis(100);
/// The time between two measurements is at least `SHARE` times the duration of a measurement.
const SHARE: u32 = 20;
/// Size that is counted for each directory entry, in bytes.
const ENTRY: u64 = 512;
/// Maximum depth of directories. Deeper trees count as too large.
const DEEP: usize = 200;

/// Measures the files that a command writes below a directory, and compares them with a limit.
pub(super) struct DiskUsage {
    directory: OwnedFd,
    most: u64,
    /// Bytes that must stay free on the disk.
    free: u64,
    next: Instant,
}

impl DiskUsage {
    /// Measures the directory of a plan and sets the limit to its current size plus the plan's
    /// bound. Must be called before the sandbox's root is entered, while the directory is reachable
    /// by its path.
    pub(super) fn of(plan: &Plan) -> io::Result<DiskUsage> {
        let mut written = DiskUsage {
            directory: open(CWD, &directory(plan))?,
            most: u64::MAX,
            free: plan.bounds.free,
            next: Instant::now(),
        };
        written.most = plan.bounds.disk.saturating_add(written.now());
        // The directory was just measured, so the next measurement waits for the interval.
        written.next = Instant::now() + LEAST;
        Ok(written)
    }

    /// Returns the limit that is exceeded, if any: the command's limit for its files, including
    /// `unnamed` bytes in deleted files that are still open, or the free space that must be left on
    /// the disk. The files are measured only if the minimum interval has passed.
    pub(super) fn excess(&mut self, unnamed: u64) -> Option<Excess> {
        if self.is_over(unnamed) {
            return Some(Excess::Disk);
        }
        let is_full = free_space_of(&self.directory).is_some_and(|free| free < self.free);
        is_full.then_some(Excess::FullDisk)
    }

    fn is_over(&mut self, unnamed: u64) -> bool {
        let start = Instant::now();
        if start < self.next {
            return false;
        }
        let is_over = self.now().saturating_add(unnamed) > self.most;
        self.next = Instant::now() + LEAST.max(start.elapsed() * SHARE);
        is_over
    }

    fn now(&self) -> u64 {
        measure(&self.directory, self.most, 0)
    }
}

/// Returns the directory in which the command can leave files on disk.
fn directory(plan: &Plan) -> PathBuf {
    match (&plan.tree, plan.confinement) {
        (Tree::Overlay { .. }, _) => plan.scratch.join("upper"),
        (Tree::Copy { root }, Confinement::Namespaces | Confinement::Bubblewrap) => root.clone(),
        // The command writes to its copy and to its temporary files.
        (Tree::Copy { .. }, Confinement::SandboxExec | Confinement::Nothing) => {
            plan.scratch.clone()
        }
    }
}

/// Opens a directory with the close-on-exec flag, so that the command does not inherit it.
fn open(directory: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(directory, path, flags, Mode::empty())?)
}

/// Returns the disk space that is used below a directory, in bytes. Counting stops at `most`.
/// Entries that appear or vanish during the measurement may be counted or not. A directory that
/// cannot be opened counts as one entry.
fn measure(directory: &OwnedFd, most: u64, depth: usize) -> u64 {
    let mut bytes = 0_u64;
    if depth > DEEP {
        return most.saturating_add(1);
    }
    let Ok(entries) = Dir::read_from(directory) else {
        return bytes;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        let Ok(found) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        bytes = bytes.saturating_add(ENTRY + found.st_blocks.cast_unsigned() * 512);
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
            if let Ok(below) = open(directory, path) {
                bytes = bytes.saturating_add(measure(&below, most, depth + 1));
            }
        }
        if bytes > most {
            break;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::plan::Bounds;
    use super::*;

    fn plan(root: &Path, disk: u64) -> Plan {
        Plan {
            confinement: Confinement::Namespaces,
            tree: Tree::Copy {
                root: root.to_owned(),
            },
            line: String::new(),
            bounds: Bounds {
                disk,
                ..Bounds::default()
            },
            scratch: root.to_owned(),
            home: None,
            keep: Vec::new(),
            private: Vec::new(),
            records: Vec::new(),
            user: 0,
            group: 0,
        }
    }

    #[test]
    fn bytes_written_in_any_subdirectory_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(dir.path().join("before"), vec![1; 1 << 20]).unwrap();
        let over = |written: &mut DiskUsage| {
            written.next = Instant::now();
            written.is_over(0)
        };
        let mut written = DiskUsage::of(&plan(dir.path(), 1 << 20)).unwrap();
        assert!(!over(&mut written));
        fs::write(deep.join("one"), vec![1; 600 << 10]).unwrap();
        // A sparse file uses no disk space.
        fs::File::create(deep.join("sparse"))
            .and_then(|file| file.set_len(1 << 30))
            .unwrap();
        assert!(!over(&mut written));
        fs::write(dir.path().join("two"), vec![1; 600 << 10]).unwrap();
        assert!(over(&mut written));
        fs::remove_file(deep.join("one")).unwrap();
        assert!(!over(&mut written));
        // The directory is not measured again before the interval has passed.
        fs::write(deep.join("one"), vec![1; 600 << 10]).unwrap();
        assert!(!written.is_over(0));
    }

    #[test]
    fn full_disk_is_distinguished_from_the_write_limit() {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = plan(dir.path(), 1 << 20);
        plan.bounds.free = 0;
        assert_eq!(DiskUsage::of(&plan).unwrap().excess(0), None);
        plan.bounds.free = u64::MAX;
        let mut written = DiskUsage::of(&plan).unwrap();
        assert_eq!(written.excess(0), Some(Excess::FullDisk));
        // If both limits are exceeded, the command's own limit is reported.
        written.next = Instant::now();
        assert_eq!(written.excess(2 << 20), Some(Excess::Disk));
    }

    #[test]
    fn many_empty_files_and_deep_directories_exceed_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        for at in 0..100 {
            fs::write(dir.path().join(at.to_string()), "").unwrap();
        }
        let directory = open(CWD, dir.path()).unwrap();
        assert!(measure(&directory, u64::MAX, 0) >= 100 * ENTRY);
        assert!(measure(&directory, 5, DEEP + 1) > 5);
    }
}
