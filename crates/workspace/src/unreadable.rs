//! Lists all files below a root that a model may never read. Commands that a model writes run in the project
//! but must not see these files. The rules of the path policy apply to all files, including those that Git
//! ignores. A search that cannot be completed returns an error instead of a partial list.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirEntry, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use starling_platform::files::{PathExt, identity};

use super::Stamp;
use super::git_names::repository;
use super::own_directories::cache_directories;
use super::paths::{MAX_FILE_BYTES, is_repository, is_version_control};
use super::private_key::holds_private_key;
use super::regular::open_regular;
use super::secret_names::is_secret_path;
use super::walk::is_environment;

/// Directories of installed packages. The names of their files are checked, but not the contents.
const INSTALLED: [&str; 3] = ["node_modules", "site-packages", "dist-packages"];
/// Maximum number of threads that read files.
const MAX_THREADS: usize = 8;

/// Limits of one search. Exceeding a limit is an error.
#[derive(Debug, Clone, Copy)]
struct SearchLimits {
    /// Maximum number of unreadable files and directories in the result.
    found: usize,
    duration: Duration,
}

const LIMITS: SearchLimits = SearchLimits {
    found: 4096,
    duration: Duration::from_secs(10),
};

/// Error from listing the files that a model may not read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableError {
    #[error("{}: the search for secrets failed: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("the project has more than {0} files of secrets")]
    TooMany(usize),
    #[error("the project is too large: the search for secrets took longer than {} s", .0.as_secs())]
    TooSlow(Duration),
}

/// Lists the files and directories of a project that a model may never read. Remembers the result for each
/// file that was read, so that unchanged files are not read again.
#[derive(Debug)]
pub struct UnreadableFiles {
    root: PathBuf,
    /// Starling's cache directories inside the project.
    caches: Vec<PathBuf>,
    /// The roots of the git repositories around the project.
    repositories: Vec<PathBuf>,
    /// Whether a file contains a private key, for each file that was read.
    holds_key: Mutex<HashMap<PathBuf, (Stamp, bool)>>,
}

impl UnreadableFiles {
    pub fn of(root: &Path) -> Self {
        let root = root.canonical().unwrap_or_else(|_| root.to_owned());
        UnreadableFiles {
            caches: cache_directories(&root),
            repositories: repositories_around(&root),
            holds_key: Mutex::default(),
            root,
        }
    }

    /// Searches the current project. The result contains secrets by name, all hard links to these, files with
    /// a private key in their first MiB, version control data and Starling's caches, all as resolved paths.
    /// In installed environments and in the repositories around the project, only names are checked, and
    /// certificates are allowed.
    ///
    /// # Errors
    /// Reading a directory or a file fails for a reason other than missing permissions, or the search exceeds
    /// a limit.
    pub fn list(&self) -> Result<Vec<PathBuf>, UnreadableError> {
        self.list_within(LIMITS)
    }

    fn list_within(&self, limits: SearchLimits) -> Result<Vec<PathBuf>, UnreadableError> {
        let start = Instant::now();
        let check_time = || match start.elapsed() > limits.duration {
            true => Err(UnreadableError::TooSlow(limits.duration)),
            false => Ok(()),
        };
        let mut search = Search::new(&self.root, &self.caches, &self.repositories);
        while let Some(directory) = search.waiting.pop() {
            check_time()?;
            search.directory(&directory)?;
        }
        let mut found = search.found;
        let linked = search.linked.into_iter();
        let is_secret = |id: &(u64, u64)| search.secret_ids.contains(id);
        found.extend(linked.filter_map(|(id, path)| is_secret(&id).then_some(path)));
        found.extend(self.with_private_keys(search.texts, &check_time)?);
        found.sort();
        found.dedup();
        match found.len() > limits.found {
            true => Err(UnreadableError::TooMany(limits.found)),
            false => Ok(found),
        }
    }

    /// Returns the files that contain a private key.
    fn with_private_keys(
        &self,
        files: Vec<(PathBuf, Stamp)>,
        check_time: &(impl Fn() -> Result<(), UnreadableError> + Sync),
    ) -> Result<Vec<PathBuf>, UnreadableError> {
        let read_at = SystemTime::now();
        let mut found = Vec::new();
        let mut new = Vec::new();
        let lock = || {
            let known = self.holds_key.lock();
            known.unwrap_or_else(PoisonError::into_inner)
        };
        let mut known = std::mem::take(&mut *lock());
        let mut current = HashMap::new();
        for (path, stamp) in files {
            match known.remove(&path).filter(|(before, _)| *before == stamp) {
                Some((_, holds_key)) => {
                    found.extend(holds_key.then(|| path.clone()));
                    current.insert(path, (stamp, holds_key));
                }
                None => new.push((path, stamp)),
            }
        }
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(MAX_THREADS));
        let parts = new.chunks(new.len().div_ceil(threads).max(1));
        let read_part = |part: &[(PathBuf, Stamp)]| {
            let mut read = Vec::new();
            for (path, stamp) in part {
                let result = check_time().and_then(|()| holds_key(path));
                let is_end = result.is_err();
                read.push((path.clone(), *stamp, result));
                if is_end {
                    break;
                }
            }
            read
        };
        let read = std::thread::scope(|scope| {
            let running: Vec<_> = parts.map(|part| scope.spawn(|| read_part(part))).collect();
            let ended = running.into_iter().map(|thread| thread.join());
            ended.collect::<Result<Vec<_>, _>>()
        });
        let mut failed = Ok(());
        let panicked = || {
            let error = io::Error::other("internal error; see the log");
            let path = self.root.clone();
            UnreadableError::Io { path, error }
        };
        for (path, stamp, result) in read.map_err(|_| panicked())?.into_iter().flatten() {
            match result {
                Ok(holds_key) => {
                    found.extend(holds_key.then(|| path.clone()));
                    if stamp.is_settled(read_at) {
                        current.insert(path, (stamp, holds_key));
                    }
                }
                Err(error) => failed = Err(error),
            }
        }
        // Keep the results even after an error, so that the next search reads fewer files.
        *lock() = current;
        failed.map(|()| found)
    }
}

/// How the files in a directory are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// The names and contents of files are checked.
    Project,
    /// Only the names of files are checked, because the directory contains installed packages, or is
    /// outside the project in the repository around it.
    ByName,
    /// No file is checked, because the whole directory is already in the result.
    Secret,
}

/// The state of one search through a project.
struct Search<'a> {
    root: &'a Path,
    caches: &'a [PathBuf],
    /// The roots of the repositories around the project.
    repositories: &'a [PathBuf],
    waiting: Vec<(PathBuf, Rules)>,
    found: Vec<PathBuf>,
    /// The file ids of secrets that have several hard links.
    secret_ids: HashSet<(u64, u64)>,
    /// Other files that have several hard links. They are unreadable if they are the same file as a secret.
    linked: Vec<((u64, u64), PathBuf)>,
    /// The files whose contents are checked for private keys.
    texts: Vec<(PathBuf, Stamp)>,
}

impl<'a> Search<'a> {
    fn new(root: &'a Path, caches: &'a [PathBuf], repositories: &'a [PathBuf]) -> Self {
        let around = repositories.iter().cloned();
        let around = around.map(|repository| (repository, Rules::ByName));
        Search {
            root,
            caches,
            repositories,
            waiting: std::iter::once((root.to_owned(), Rules::Project))
                .chain(around)
                .collect(),
            found: Vec::new(),
            secret_ids: HashSet::new(),
            linked: Vec::new(),
            texts: Vec::new(),
        }
    }

    fn directory(&mut self, (directory, rules): &(PathBuf, Rules)) -> Result<(), UnreadableError> {
        let failed = |error| at(directory, error);
        let Some(entries) = unless_inaccessible(fs::read_dir(directory)).map_err(failed)? else {
            return Ok(());
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| at(&path, error))?;
            self.entry(&entry, path, kind, *rules)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        entry: &DirEntry,
        path: PathBuf,
        kind: FileType,
        rules: Rules,
    ) -> Result<(), UnreadableError> {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if kind.is_symlink() {
            self.found.extend(self.secret_target(&path));
        } else if rules != Rules::Secret && is_version_control(&name) {
            self.found.push(path);
        } else if kind.is_dir() {
            self.subdirectory(path, &name, rules);
        } else if kind.is_file() {
            let is_secret = rules == Rules::Secret || is_secret_path(&path);
            if rules == Rules::ByName {
                if is_secret && !is_certificate(&path)? {
                    self.found.push(path);
                }
                return Ok(());
            }
            let metadata = unless_inaccessible(entry.metadata());
            if let Some(metadata) = metadata.map_err(|error| at(&path, error))? {
                self.file(path, &metadata, is_secret, rules)?;
            }
        }
        Ok(())
    }

    fn subdirectory(&mut self, path: PathBuf, name: &str, rules: Rules) {
        // The project is searched with other rules than the repositories around it, and each of them once.
        if path == self.root || self.repositories.contains(&path) {
            return;
        }
        if self.caches.contains(&path) || rules != Rules::Secret && is_repository(&path) {
            self.found.push(path);
            return;
        }
        let is_installed = rules == Rules::ByName || INSTALLED.contains(&name);
        let inner = match rules {
            Rules::Secret => Rules::Secret,
            // Check this first, because an environment can be named `.env`.
            _ if is_environment(&path) => Rules::ByName,
            _ if is_secret_path(&path) => {
                self.found.push(path.clone());
                Rules::Secret
            }
            _ if is_installed => Rules::ByName,
            Rules::Project | Rules::ByName => Rules::Project,
        };
        self.waiting.push((path, inner));
    }

    fn file(
        &mut self,
        path: PathBuf,
        metadata: &Metadata,
        is_secret: bool,
        rules: Rules,
    ) -> Result<(), UnreadableError> {
        let found = identity(&path, metadata).map_err(|error| at(&path, error))?;
        let has_links = found.links > 1;
        if is_secret {
            if has_links {
                self.secret_ids.insert(found.file);
            }
            if rules != Rules::Secret {
                self.found.push(path);
            }
            return Ok(());
        }
        if has_links {
            self.linked.push((found.file, path.clone()));
        }
        if metadata.len() > 0 {
            self.texts.push((path, Stamp::of(metadata)));
        }
        Ok(())
    }

    /// Returns the target of a symbolic link that has the name of a secret. Returns `None` if the target is a
    /// directory below the root, because its own name is checked separately.
    fn secret_target(&self, link: &Path) -> Option<PathBuf> {
        let target = is_secret_path(link).then(|| link.canonical().ok())??;
        let is_shown = target.is_dir()
            && (target.starts_with(self.root)
                || self.root.starts_with(&target)
                || is_environment(&target));
        (!is_shown).then_some(target)
    }
}

/// Returns the roots of the git repositories around a project: of each repository of which it is a
/// subdirectory or a submodule, and the main tree of a linked work tree. A home directory that is a
/// repository does not count, because the sandbox shows nothing of it.
fn repositories_around(root: &Path) -> Vec<PathBuf> {
    let home = std::env::home_dir().and_then(|home| home.canonical().ok());
    let is_home = |folder: &Path| home.iter().any(|home| home.starts_with(folder));
    let is_repository = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let above = root.ancestors().skip(1).filter(is_repository);
    let mut around: Vec<PathBuf> = above.map(Path::to_owned).collect();
    let main = repository(root).and_then(|own| own.main_tree()?.canonical().ok());
    around.extend(main.filter(|main| !main.starts_with(root)));
    around.retain(|folder| !is_home(folder));
    around.sort();
    around.dedup();
    around
}

/// Returns whether a PEM file contains no private key. The certificates of installed packages stay readable,
/// because packages such as `certifi` need them.
fn is_certificate(path: &Path) -> Result<bool, UnreadableError> {
    let is_pem = path.extension().is_some_and(|ending| ending == "pem");
    Ok(is_pem && !holds_key(path)?)
}

/// Returns whether the first MiB of a file contains a private key.
fn holds_key(path: &Path) -> Result<bool, UnreadableError> {
    let read = open_regular(path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let bytes = match read {
        // The file was replaced by something other than a regular file, such as a pipe.
        Err(error) if error.kind() == ErrorKind::InvalidInput => None,
        read => unless_inaccessible(read).map_err(|error| at(path, error))?,
    };
    Ok(bytes.is_some_and(|bytes| holds_private_key(&text_of(&bytes))))
}

/// Decodes the contents of a file. Invalid bytes are replaced.
fn text_of(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding.decode(bytes).0,
        None => String::from_utf8_lossy(bytes),
    }
}

/// Returns `None` if the file no longer exists or this user may not read it. A command in the sandbox runs as
/// the same user, so it cannot read such a file either.
fn unless_inaccessible<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::PermissionDenied => Ok(None),
            _ => Err(error),
        },
    }
}

fn at(path: &Path, error: io::Error) -> UnreadableError {
    UnreadableError::Io {
        path: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "TOKEN=abcd1234\n";

    fn key() -> String {
        format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
            "MIIEvQIBADANBgkqhkiG9w0B".repeat(3)
        )
    }

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns the listed paths relative to the root.
    fn names(files: &UnreadableFiles) -> Vec<String> {
        let found = files.list().unwrap();
        let name = |path: &PathBuf| path.strip_prefix(&files.root).unwrap().to_owned();
        let names = found.iter().map(name);
        names.map(|name| name.display().to_string()).collect()
    }

    #[test]
    fn secrets_in_the_repository_around_a_project_are_found_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().canonicalize().unwrap();
        for file in [
            ".git/HEAD",
            ".env",
            "other/.aws/config",
            "pkg/.env",
            "pkg/app.py",
            "x.py",
        ] {
            write(&repository, file, SECRET);
        }
        let found = UnreadableFiles::of(&repository.join("pkg")).list().unwrap();
        let wanted = [".env", ".git", "other/.aws", "pkg/.env"];
        assert_eq!(found, wanted.map(|file| repository.join(file)));
    }

    #[test]
    fn secrets_of_all_repositories_around_a_submodule_or_linked_tree_are_found_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for file in [
            "main/.git/modules/sub/HEAD",
            "main/.git/worktrees/linked/HEAD",
            "main/.env",
            "main/nested/.git/config",
            "main/nested/.env",
            "main/sub/.env",
            "main/sub/other/.env",
            "linked/.env",
            "apart/.env",
        ] {
            write(&top, file, SECRET);
        }
        write(&top, "main/sub/.git", "gitdir: ../.git/modules/sub\n");
        write(&top, "main/.git/worktrees/linked/commondir", "../..\n");
        let data = top.join("main/.git/worktrees/linked");
        let place = format!("gitdir: {}\n", data.display());
        write(&top, "linked/.git", &place);
        let main = [
            "main/.env",
            "main/.git",
            "main/nested/.env",
            "main/nested/.git",
            "main/sub/.env",
            "main/sub/.git",
            "main/sub/other/.env",
        ];
        for (project, also) in [
            ("main/sub", &[][..]),
            ("main/sub/other", &[]),
            ("main/nested", &[]),
            ("linked", &["linked/.env", "linked/.git"]),
        ] {
            let found = UnreadableFiles::of(&top.join(project)).list().unwrap();
            let wanted = also.iter().chain(&main).map(|file| top.join(file));
            assert_eq!(found, wanted.collect::<Vec<_>>(), "{project}");
        }
    }

    #[test]
    fn secrets_are_found_by_name_text_and_hard_link_in_all_directories() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for file in [
            ".env",
            ".tox/.env",
            "__pycache__/.env",
            "node_modules/p/.npmrc",
            "venv/lib/site-packages/x/.env",
            "build/.env",
            ".aws/config",
            "sub/.git/config",
            "app.py",
            "node_modules/p/index.js",
            ".env.example",
        ] {
            write(root, file, SECRET);
        }
        write(root, ".gitignore", "build/\n");
        write(root, "notes/weird.txt", &key());
        write(root, "build/const.py", &format!("K = '''{}'''\n", key()));
        write(root, "venv/lib/site-packages/ca.pem", "certificates\n");
        write(root, "venv/lib/site-packages/own.pem", &key());
        fs::hard_link(root.join(".env.example"), root.join("ok.txt")).unwrap();
        fs::hard_link(root.join("build/.env"), root.join("app.txt")).unwrap();
        fs::hard_link(root.join(".aws/config"), root.join("sub/b.txt")).unwrap();
        let wide = format!("\u{feff}{}", key());
        let wide: Vec<u8> = wide.encode_utf16().flat_map(u16::to_le_bytes).collect();
        fs::write(root.join("wide.txt"), wide).unwrap();
        assert_eq!(
            names(&UnreadableFiles::of(root)),
            [
                ".aws",
                ".env",
                ".tox/.env",
                "__pycache__/.env",
                "app.txt",
                "build/.env",
                "build/const.py",
                "node_modules/p/.npmrc",
                "notes/weird.txt",
                "sub/.git",
                "sub/b.txt",
                "venv/lib/site-packages/own.pem",
                "venv/lib/site-packages/x/.env",
                "wide.txt",
            ]
        );
    }

    #[test]
    fn environment_with_the_name_of_a_secret_stays_visible() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), ".env/pyvenv.cfg", "");
        write(dir.path(), ".env/bin/tool", "");
        write(dir.path(), ".env/.netrc", SECRET);
        assert_eq!(names(&UnreadableFiles::of(dir.path())), [".env/.netrc"]);
    }

    #[test]
    fn new_secret_and_key_in_a_known_file_are_found_by_the_next_search() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "a.txt", "plain\n");
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        let file = fs::File::options()
            .write(true)
            .open(dir.path().join("a.txt"));
        file.unwrap().set_modified(long_ago).unwrap();
        let files = UnreadableFiles::of(dir.path());
        assert_eq!(names(&files), [""; 0]);
        write(dir.path(), "a.txt", &key());
        write(dir.path(), "b/.env.local", SECRET);
        assert_eq!(names(&files), ["a.txt", "b/.env.local"]);
    }

    #[test]
    fn search_that_exceeds_a_limit_fails() {
        let dir = tempfile::tempdir().unwrap();
        for at in 0..3 {
            write(dir.path(), &format!("{at}/.env"), SECRET);
        }
        let files = UnreadableFiles::of(dir.path());
        let within = |found, duration| files.list_within(SearchLimits { found, duration });
        assert_eq!(within(3, LIMITS.duration).unwrap().len(), 3);
        let error = within(2, LIMITS.duration).unwrap_err().to_string();
        assert_eq!(error, "the project has more than 2 files of secrets");
        let error = within(3, Duration::ZERO).unwrap_err();
        assert!(matches!(error, UnreadableError::TooSlow(_)), "{error}");
    }
}
