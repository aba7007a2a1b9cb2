//! Finds the files of a project, and which of them contain secrets. Every test run searches for them, so
//! a directory is read again only if it has changed since the last search.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use starling_workspace::{git_configurations, is_secret_path};

/// Maximum size of a secret file in bytes, and maximum number of secret files. Others are not read.
pub(super) const FILE_BYTES: u64 = 64 << 10;
const FILES_MOST: usize = 256;
/// Limits of the search for secret files. Directories near the root are searched first.
const ENTRIES_MOST: usize = 100_000;
const LOOK: Duration = Duration::from_secs(2);
/// A directory that changed within this time before it was read is read again, because a second change
/// can have the same timestamp.
const SETTLED: Duration = Duration::from_secs(2);
/// Names of directories that contain no secrets of the project.
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
/// The file that marks a directory as a virtual environment.
const ENVIRONMENT: &str = "pyvenv.cfg";

/// A file that can contain secrets, with its metadata at the time of the search.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SecretFile {
    pub path: PathBuf,
    pub bytes: u64,
    modified: Option<SystemTime>,
    /// Whether the file is the configuration of the git repository around the project.
    pub is_git_config: bool,
}

/// The cached search results for the directories of a project.
#[derive(Debug, Default)]
pub(super) struct Directories {
    /// The directories in the order of the search: directories near the root come first.
    known: Vec<Directory>,
    /// Whether the last search ended at a limit.
    is_cut: bool,
}

/// The search result for one directory: its secret files and its subdirectories.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    modified: Option<SystemTime>,
    read_at: SystemTime,
    entries: usize,
    /// Subdirectories, each with whether all files below it count as secret files.
    inner: Vec<(PathBuf, bool)>,
    secrets: Vec<PathBuf>,
    /// The names of all other files.
    others: Vec<OsString>,
}

impl Directories {
    #[cfg(test)]
    pub(super) fn are_known(&self) -> bool {
        !self.known.is_empty()
    }

    /// Returns the secret files below `root`, including all files in secret directories such as `.ssh`,
    /// sorted by path.
    pub(super) fn secret_files(&mut self, root: &Path) -> Vec<SecretFile> {
        if !self.is_as_found() {
            self.search(root);
        }
        let secrets = self.known.iter().flat_map(|directory| &directory.secrets);
        let mut files: Vec<SecretFile> = secrets
            .filter_map(SecretFile::of)
            .take(FILES_MOST)
            .collect();
        files.extend(SecretFile::of_git(root));
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files
    }

    /// Returns the paths of all files that the last search found, those near the root first.
    pub(super) fn all_files(&self) -> impl Iterator<Item = PathBuf> {
        self.known.iter().flat_map(|directory| {
            let others = directory.others.iter();
            let others = others.map(|name| directory.path.join(name));
            directory.secrets.iter().cloned().chain(others)
        })
    }

    /// Whether the last search was complete, and no directory has changed since.
    fn is_as_found(&self) -> bool {
        let mut known = self.known.iter();
        !self.is_cut && !self.known.is_empty() && known.all(Directory::is_as_read)
    }

    /// Searches the directories below `root` that are new or have changed since the last search.
    fn search(&mut self, root: &Path) {
        let start = Instant::now();
        let before = std::mem::take(&mut self.known).into_iter();
        let mut before: HashMap<PathBuf, Directory> = before
            .map(|directory| (directory.path.clone(), directory))
            .collect();
        let mut waiting = VecDeque::from([(root.to_owned(), false)]);
        let (mut entries_seen, mut files_seen) = (0, 0);
        self.is_cut = false;
        while let Some((path, all_are_secret)) = waiting.pop_front() {
            if files_seen >= FILES_MOST || entries_seen >= ENTRIES_MOST || start.elapsed() > LOOK {
                self.is_cut = true;
                tracing::warn!(
                    root = %root.display(),
                    "the project is large: secrets in deep directories may be visible in the output of tests"
                );
                break;
            }
            let directory = match before.remove(&path).filter(Directory::is_as_read) {
                Some(known) => known,
                None => Directory::read(&path, all_are_secret, path == root),
            };
            entries_seen += directory.entries;
            files_seen += directory.secrets.len();
            waiting.extend(directory.inner.iter().cloned());
            self.known.push(directory);
        }
    }
}

impl Directory {
    fn read(path: &Path, all_are_secret: bool, is_root: bool) -> Directory {
        let mut directory = Directory {
            path: path.to_owned(),
            modified: modified(path),
            read_at: SystemTime::now(),
            entries: 0,
            inner: Vec::new(),
            secrets: Vec::new(),
            others: Vec::new(),
        };
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            directory.entries += 1;
            let file_name = entry.file_name();
            let name = file_name.to_string_lossy();
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
                directory.others.clear();
                break;
            } else if is_secret {
                directory.secrets.push(entry.path());
            } else {
                directory.others.push(file_name);
            }
        }
        directory
    }

    /// Whether no entry of the directory was added, removed or renamed since it was read.
    fn is_as_read(&self) -> bool {
        let is_settled = |modified: SystemTime| modified + SETTLED < self.read_at;
        self.modified.is_some_and(is_settled) && self.modified == modified(&self.path)
    }
}

impl SecretFile {
    /// Returns the file if it is small enough to be read. Follows links.
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

    /// Returns the configuration files of the git repository around `root`.
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

    /// Sets all read times to the past, as if no directory had changed recently.
    fn settle(directories: &mut Directories) {
        for directory in &mut directories.known {
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
        let read_at = |known: &Directories| {
            let mut known = known.known.iter();
            known
                .find(|one| one.path == root.join("a"))
                .unwrap()
                .read_at
        };
        let before = read_at(known);
        assert_eq!(names(known, root), ["a/.env"]);
        assert_eq!(read_at(known), before);
        write(root, "a/other.env");
        assert_eq!(names(known, root), ["a/.env", "a/other.env"]);
        assert_ne!(read_at(known), before);
    }
}
