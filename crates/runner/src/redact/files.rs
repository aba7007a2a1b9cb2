//! Which files of a project hold secrets. Every run of tests looks for them, so a directory is read again
//! only when it was changed since it was read.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use starling_workspace::{git_configurations, is_secret_path};

/// Longer files are not read, and not more files than that.
pub(super) const FILE_BYTES: u64 = 64 << 10;
const FILES_MOST: usize = 256;
/// Limits of how far files of secrets are looked for, those nearest to the root first.
const ENTRIES_MOST: usize = 100_000;
const LOOK: Duration = Duration::from_secs(2);
/// A directory that was changed so shortly before it was read may have been changed again within the
/// resolution of its time.
const SETTLED: Duration = Duration::from_secs(2);
/// Directories that hold no secrets of the project.
const PASSED_OVER: [&str; 10] = [
    ".git",
    ".hg",
    ".svn",
    ".tox",
    ".nox",
    "__pycache__",
    "node_modules",
    "site-packages",
    "dist-packages",
    ".mypy_cache",
];
/// Stands in the directory of an installed environment.
const ENVIRONMENT: &str = "pyvenv.cfg";

/// A file of secrets as it was when it was looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SecretFile {
    pub path: PathBuf,
    pub bytes: u64,
    modified: Option<SystemTime>,
    /// The configuration of the repository that holds the project.
    pub is_git_config: bool,
}

/// What is known of the directories of a project.
#[derive(Debug, Default)]
pub(super) struct Directories {
    known: HashMap<PathBuf, Directory>,
}

/// What a directory holds.
#[derive(Debug)]
struct Directory {
    modified: Option<SystemTime>,
    read_at: SystemTime,
    entries: usize,
    /// Each with whether all files below it are secrets.
    inner: Vec<(PathBuf, bool)>,
    secrets: Vec<PathBuf>,
}

impl Directories {
    #[cfg(test)]
    pub(super) fn are_known(&self) -> bool {
        !self.known.is_empty()
    }

    /// The files of secrets below `root`, and all files in its directories of secrets (`.ssh`), in order
    /// of their paths.
    pub(super) fn secret_files(&mut self, root: &Path) -> Vec<SecretFile> {
        let start = Instant::now();
        let mut before = std::mem::take(&mut self.known);
        let mut files = Vec::new();
        let mut waiting = VecDeque::from([(root.to_owned(), false)]);
        let (mut entries_seen, mut is_cut) = (0, false);
        while let Some((path, all_are_secret)) = waiting.pop_front() {
            if files.len() >= FILES_MOST || entries_seen >= ENTRIES_MOST || start.elapsed() > LOOK {
                is_cut = true;
                break;
            }
            let known = before.remove(&path);
            let directory = match known.filter(|known| known.is_as_read(&path)) {
                Some(known) => known,
                None => Directory::read(&path, all_are_secret, path == root),
            };
            entries_seen += directory.entries;
            waiting.extend(directory.inner.iter().cloned());
            let left = FILES_MOST.saturating_sub(files.len());
            let secrets = directory.secrets.iter().take(left);
            files.extend(secrets.filter_map(SecretFile::of));
            self.known.insert(path, directory);
        }
        if is_cut {
            tracing::warn!(
                root = %root.display(),
                "the project is large: secrets in deep directories may be visible in the output of tests"
            );
        }
        files.extend(SecretFile::of_git(root));
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files
    }
}

impl Directory {
    fn read(path: &Path, all_are_secret: bool, is_root: bool) -> Directory {
        let mut directory = Directory {
            modified: modified(path),
            read_at: SystemTime::now(),
            entries: 0,
            inner: Vec::new(),
            secrets: Vec::new(),
        };
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            directory.entries += 1;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let is_secret = all_are_secret || is_secret_path(&entry.path());
            if kind.is_dir() {
                if !PASSED_OVER.contains(&&*name) {
                    directory.inner.push((entry.path(), is_secret));
                }
            } else if name == ENVIRONMENT && !is_root {
                directory.inner.clear();
                directory.secrets.clear();
                break;
            } else if is_secret {
                directory.secrets.push(entry.path());
            }
        }
        directory
    }

    /// Whether nothing was added to the directory, taken from it or renamed since it was read.
    fn is_as_read(&self, path: &Path) -> bool {
        let is_settled = |modified: SystemTime| modified + SETTLED < self.read_at;
        self.modified.is_some_and(is_settled) && self.modified == modified(path)
    }
}

impl SecretFile {
    /// A file that is short enough to be read; a link is followed.
    fn of(path: &PathBuf) -> Option<SecretFile> {
        let found = fs::metadata(path).ok()?;
        let is_read = found.is_file() && found.len() <= FILE_BYTES;
        is_read.then(|| SecretFile {
            path: path.clone(),
            bytes: found.len(),
            modified: found.modified().ok(),
            is_git_config: false,
        })
    }

    /// The configurations of the repository that holds `root`.
    fn of_git(root: &Path) -> Vec<SecretFile> {
        let files = git_configurations(root);
        let found = files.iter().filter_map(SecretFile::of);
        found
            .map(|file| SecretFile {
                is_git_config: true,
                ..file
            })
            .collect()
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directories: &mut Directories, root: &Path) -> Vec<String> {
        let files = directories.secret_files(root);
        let name = |file: &SecretFile| {
            let path = file.path.strip_prefix(root).unwrap();
            path.to_string_lossy().into_owned()
        };
        files.iter().map(name).collect()
    }

    fn write(root: &Path, file: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "TOKEN=abcd1234\n").unwrap();
    }

    /// As if nothing had been changed for a while.
    fn settle(directories: &mut Directories) {
        for directory in directories.known.values_mut() {
            directory.read_at += SETTLED * 2;
        }
    }

    #[test]
    fn added_and_deleted_secret_files_are_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "a/b/.env");
        write(root, "a/code.py");
        let known = &mut Directories::default();
        assert_eq!(names(known, root), ["a/b/.env"]);
        settle(known);
        write(root, "a/b/c/server.pem");
        assert_eq!(names(known, root), ["a/b/.env", "a/b/c/server.pem"]);
        settle(known);
        fs::rename(root.join("a/b"), root.join("a/d")).unwrap();
        assert_eq!(names(known, root), ["a/d/.env", "a/d/c/server.pem"]);
        settle(known);
        write(root, "a/d/pyvenv.cfg");
        assert_eq!(names(known, root), [""; 0]);
        settle(known);
        fs::remove_dir_all(root.join("a")).unwrap();
        assert_eq!(names(known, root), [""; 0]);
        assert_eq!(known.known.len(), 1, "what is gone is forgotten");
    }

    #[test]
    fn unchanged_directory_is_read_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "a/.env");
        let known = &mut Directories::default();
        names(known, root);
        settle(known);
        let read_at = |known: &Directories| known.known[&root.join("a")].read_at;
        let before = read_at(known);
        assert_eq!(names(known, root), ["a/.env"]);
        assert_eq!(read_at(known), before);
        write(root, "a/other.env");
        assert_eq!(names(known, root), ["a/.env", "a/other.env"]);
        assert_ne!(read_at(known), before);
    }
}
