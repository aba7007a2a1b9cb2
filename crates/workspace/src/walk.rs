//! Lists the files of a workspace.

use std::ffi::OsString;
use std::fs::{self, DirEntry, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Stamp;
use super::hidden;
use super::ignore_rules::{EntryKind, IgnoreRules, NAMES, RuleEffect};
use super::links::in_hidden;
use super::paths::{MAX_FILE_BYTES, ReadError, is_repository, is_version_control};
use super::regular::open_regular;
use super::secret_names::is_secret_path;
use super::write::is_temporary;
use starling_syntax::FilePath;
use starling_text::is_plain_name;

/// Extensions of files that are text without a check of their contents.
const TEXT: [&str; 22] = [
    "py", "pyi", "md", "rst", "txt", "html", "js", "ts", "css", "json", "toml", "yml", "yaml",
    "cfg", "ini", "sh", "rs", "po", "pot", "xml", "c", "h",
];
/// Extensions of binary files.
const BINARY: [&str; 18] = [
    "mo", "png", "gif", "jpg", "jpeg", "ico", "pdf", "zip", "gz", "bz2", "xz", "so", "pyc", "npy",
    "npz", "woff", "woff2", "ttf",
];
/// Number of bytes at the start of a file that are checked for binary content, if the extension is
/// unknown.
const PROBE_BYTES: usize = 1024;

/// Maximum number of threads. More threads are not faster.
const MAX_THREADS: usize = 8;
/// The file that marks the directory of a Python environment.
const ENVIRONMENT: &str = "pyvenv.cfg";

/// Returns the text files below `root`, ordered by path. Excludes files that `.gitignore` and
/// `.ignore` exclude, hidden files, links, installed environments, secrets, version control data,
/// the directories in `closed`, binaries and files over 1 MiB.
pub(super) fn files(root: &Path, closed: &[PathBuf]) -> FileListing {
    let walk = Walk {
        root,
        closed,
        state: Mutex::new(WalkState {
            waiting: vec![PendingDirectory {
                path: root.to_owned(),
                rules: IgnoreRules::above(root),
            }],
            busy: 0,
            found: FileListing::default(),
        }),
        changed: Condvar::new(),
    };
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(MAX_THREADS));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| walk.work());
        }
        walk.work();
    });
    let mut found = std::mem::take(&mut walk.lock().found);
    found
        .files
        .sort_unstable_by(|(a, _), (b, _)| FilePath::cmp(a, b));
    found.skipped.sort_unstable_by_key(ToString::to_string);
    found.hidden.sort_unstable();
    found
}

/// Returns whether [`files`] lists this file, or would list it if it existed.
pub(super) fn lists(root: &Path, closed: &[PathBuf], file: &FilePath) -> bool {
    let (directories, name) = file
        .as_str()
        .rsplit_once('/')
        .unwrap_or(("", file.as_str()));
    let mut path = root.to_owned();
    let mut rules = IgnoreRules::above(root).within(root, &NAMES);
    for part in directories.split('/').filter(|part| !part.is_empty()) {
        path.push(part);
        let is_opened = !path.is_symlink()
            && !is_never_opened(closed, &path, part)
            && is_listed(&rules, &path, part)
            && !is_environment(&path)
            && !is_repository(&path);
        if !is_opened {
            return false;
        }
        rules = rules.within(&path, &NAMES);
    }
    path.push(name);
    let metadata = path.symlink_metadata();
    let is_file = metadata.as_ref().map_or(true, Metadata::is_file);
    if !is_file || is_temporary(name) || is_never_listed(&path, name) {
        return false;
    }
    match rules.verdict(&path, EntryKind::Other) {
        RuleEffect::Ignored => false,
        RuleEffect::NotMentioned if name.starts_with('.') => false,
        RuleEffect::Wanted | RuleEffect::NotMentioned => match metadata {
            Ok(metadata) => matches!(text_file(root, &path, Ok(metadata)), Some(Ok(_))),
            Err(_) => has_ending(&path, &TEXT) || !has_ending(&path, &BINARY),
        },
    }
}

/// The result of a walk.
#[derive(Debug, Default)]
pub(super) struct FileListing {
    pub(super) files: Vec<(FilePath, Stamp)>,
    /// Text files that are too long, and files with deceptive names or names that are not UTF-8.
    pub(super) skipped: Vec<ReadError>,
    /// Hidden text files that people write. They are not in `files`.
    pub(super) hidden: Vec<FilePath>,
    /// All links except those in ignored directories. Their targets can be anywhere.
    pub(super) links: Vec<PathBuf>,
    /// Temporary files of writing processes, which may have been killed.
    pub(super) leftovers: Vec<PathBuf>,
}

/// The state of a walk through the directories that several threads share.
struct Walk<'a> {
    root: &'a Path,
    /// Directories that are not read.
    closed: &'a [PathBuf],
    state: Mutex<WalkState>,
    /// Notified when directories are added, and when the last one is read.
    changed: Condvar,
}

/// The directories that were not read yet, and the files that were found.
struct WalkState {
    waiting: Vec<PendingDirectory>,
    /// Number of threads that are reading a directory and may add others.
    busy: usize,
    found: FileListing,
}

/// A directory to read, with the ignore rules that decide about the directory itself.
struct PendingDirectory {
    path: PathBuf,
    rules: IgnoreRules,
}

impl Walk<'_> {
    fn lock(&self) -> MutexGuard<'_, WalkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(directory) = self.next() {
            let (mut inner, mut found) = (Vec::new(), FileListing::default());
            self.read(&directory, &mut inner, &mut found);
            let mut state = self.lock();
            state.busy -= 1;
            state.waiting.append(&mut inner);
            state.found.files.append(&mut found.files);
            state.found.skipped.append(&mut found.skipped);
            state.found.hidden.append(&mut found.hidden);
            state.found.links.append(&mut found.links);
            state.found.leftovers.append(&mut found.leftovers);
            self.changed.notify_all();
        }
    }

    /// Returns the next directory, or `None` when all are read.
    fn next(&self) -> Option<PendingDirectory> {
        let mut state = self.lock();
        loop {
            if let Some(directory) = state.waiting.pop() {
                state.busy += 1;
                return Some(directory);
            }
            if state.busy == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds the contents of a directory. An unreadable directory counts as empty.
    fn read(
        &self,
        directory: &PendingDirectory,
        inner: &mut Vec<PendingDirectory>,
        found: &mut FileListing,
    ) {
        let Ok(entries) = fs::read_dir(&directory.path) else {
            return;
        };
        let entries: Vec<(OsString, DirEntry)> = entries
            .flatten()
            .map(|entry| (entry.file_name(), entry))
            .collect();
        let has = |wanted: &str| entries.iter().any(|(name, _)| name == wanted);
        let is_root = directory.path == self.root;
        let is_closed = || {
            has(ENVIRONMENT) && is_environment(&directory.path)
                || has("HEAD") && is_repository(&directory.path)
        };
        if !is_root && is_closed() {
            return;
        }
        let present: Vec<&str> = NAMES.into_iter().filter(|name| has(name)).collect();
        let rules = directory.rules.within(&directory.path, &present);
        for (name, entry) in entries {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = name.to_string_lossy();
            let path = entry.path();
            if kind.is_symlink() {
                found.links.push(path);
            } else if kind.is_dir() {
                let skipped = is_never_opened(self.closed, &path, &name);
                if !skipped && is_listed(&rules, &path, &name) {
                    let rules = rules.clone();
                    inner.push(PendingDirectory { path, rules });
                } else if !skipped && name.starts_with('.') {
                    found.links.append(&mut in_hidden(&path));
                    if rules.verdict(&path, EntryKind::Directory) != RuleEffect::Ignored {
                        hidden::in_directory(&path, &rules, |path, entry| {
                            found.hidden.extend(hidden_file(self.root, path, entry));
                        });
                    }
                }
            } else if kind.is_file() && is_temporary(&name) {
                found.leftovers.push(path);
            } else if kind.is_file() && !is_never_listed(&path, &name) {
                match rules.verdict(&path, EntryKind::Other) {
                    RuleEffect::NotMentioned if name.starts_with('.') => {
                        found.hidden.extend(hidden_file(self.root, &path, &entry));
                    }
                    RuleEffect::Wanted | RuleEffect::NotMentioned => {
                        match text_file(self.root, &path, entry.metadata()) {
                            Some(Ok(file)) => found.files.push(file),
                            Some(Err(skipped)) => found.skipped.push(skipped),
                            None => {}
                        }
                    }
                    RuleEffect::Ignored => {}
                }
            }
        }
    }
}

fn is_never_opened(closed: &[PathBuf], path: &Path, name: &str) -> bool {
    closed.iter().any(|closed| closed == path)
        || is_never_listed(path, name)
        || matches!(name, "__pycache__" | "node_modules")
}

fn is_never_listed(path: &Path, name: &str) -> bool {
    is_secret_path(path) || is_version_control(name)
}

fn is_listed(rules: &IgnoreRules, path: &Path, name: &str) -> bool {
    match rules.verdict(path, EntryKind::Directory) {
        RuleEffect::Ignored => false,
        RuleEffect::Wanted => true,
        RuleEffect::NotMentioned => !name.starts_with('.'),
    }
}

/// Returns whether a directory is a Python virtual environment, whose files are installed and not
/// edited.
pub fn is_environment(directory: &Path) -> bool {
    directory.join(ENVIRONMENT).is_file()
}

/// Returns the path of a hidden text file; `None` for other files.
fn hidden_file(root: &Path, path: &Path, entry: &DirEntry) -> Option<FilePath> {
    let (file, _) = text_file(root, path, entry.metadata())?.ok()?;
    Some(file)
}

/// Returns the path and stamp of a text file, or `None` for a binary file.
fn text_file(
    root: &Path,
    path: &Path,
    metadata: io::Result<Metadata>,
) -> Option<Result<(FilePath, Stamp), ReadError>> {
    let relative = path.strip_prefix(root).ok()?;
    let is_known = has_ending(path, &TEXT);
    let Some(relative) = relative.to_str() else {
        // Starling's paths are UTF-8, so it cannot refer to this file.
        let name = FilePath::new(relative.to_string_lossy());
        return is_known.then_some(Err(ReadError::NotUtf8(name)));
    };
    if !is_plain_name(relative) {
        tracing::warn!(file = ?relative, "skipped: its name contains deceptive characters");
        return Some(Err(ReadError::Name(FilePath::new(relative))));
    }
    let file = FilePath::new(relative);
    let stamp = Stamp::of(&metadata.ok()?);
    if stamp.size > MAX_FILE_BYTES {
        let bytes = stamp.size;
        return is_known.then_some(Err(ReadError::TooLarge { file, bytes }));
    }
    let is_text = is_known || !has_ending(path, &BINARY) && !is_binary(path);
    is_text.then_some(Ok((file, stamp)))
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().unwrap_or_default();
    endings.iter().any(|one| ending == *one)
}

/// Returns whether a file is binary: there is a zero byte near its start, or it cannot be opened.
fn is_binary(path: &Path) -> bool {
    let mut start = Vec::with_capacity(PROBE_BYTES);
    let read =
        open_regular(path).and_then(|file| file.take(PROBE_BYTES as u64).read_to_end(&mut start));
    read.is_err() || start.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(files: &[(&str, &[u8])]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (path, bytes) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        std::os::unix::fs::symlink(".", root.join("loop")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("etc")).unwrap();
        let found = super::files(&root, &[]).files;
        for path in files
            .iter()
            .map(|(path, _)| *path)
            .chain(["loop/b.py", "etc/passwd"])
        {
            let file = FilePath::new(path);
            let is_found = found.iter().any(|(found, _)| *found == file);
            assert_eq!(lists(&root, &[], &file), is_found, "{path}");
        }
        let found = found.iter();
        found.map(|(file, _)| file.as_str().to_owned()).collect()
    }

    #[test]
    fn file_that_does_not_exist_is_listed_by_its_name_and_place() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::write(root.join(".gitignore"), "local*\nout/\n").unwrap();
        std::fs::create_dir_all(root.join("env")).unwrap();
        std::fs::write(root.join("env/pyvenv.cfg"), "").unwrap();
        let lists = |file: &str| lists(&root, &[root.join("cache")], &FilePath::new(file));
        for file in ["a.py", "new/a.py", "LICENSE", "outer/a.py"] {
            assert!(lists(file), "{file}");
        }
        for file in [
            "local.py",
            "new/local.md",
            "out/a.py",
            ".env",
            ".a.py",
            ".b/a.py",
            "a.png",
            "env/a.py",
            "cache/a.py",
            "node_modules/a.js",
            ".git/config",
            "a/.git/x",
            "id_rsa",
        ] {
            assert!(!lists(file), "{file}");
        }
    }

    #[test]
    fn text_files_are_listed_in_order() {
        let list = listed(&[("b.py", b"b"), ("a/z.py", b""), ("a/LICENSE", b"free")]);
        assert_eq!(list, ["a/LICENSE", "a/z.py", "b.py"]);
    }

    #[test]
    fn hidden_files_that_people_write_are_found_apart() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for path in [
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            "web/.eslintrc.json",
            ".mypy_cache/3.11/a.json",
            ".venv/pyvenv.cfg",
            ".venv/a.py",
            ".git/config",
            ".env",
            ".secret-notes/a.txt",
            ".deep/a/b/c/d.sh",
            ".aws/config",
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        fs::write(root.join(".gitignore"), ".secret-notes\n").unwrap();
        let found = files(&root, &[]);
        assert_eq!(found.files, []);
        let hidden: Vec<&str> = found.hidden.iter().map(FilePath::as_str).collect();
        let expected = [
            ".github/workflows/ci.yml",
            ".gitignore",
            ".gitlab-ci.yml",
            "web/.eslintrc.json",
        ];
        assert_eq!(hidden, expected);
    }

    #[test]
    fn files_with_deceptive_names_are_not_listed() {
        let plain = ["$(touch x).py", "-rf.py", "<b>`x`.py", "שלום.py"];
        let others = [
            "a\nb.py",
            "\x1b[2Jc.py",
            "\u{202e}yp.d",
            "e\r/f.py",
            "g\u{200b}.py",
        ];
        let all: Vec<(&str, &[u8])> = plain
            .iter()
            .chain(&others)
            .map(|name| (*name, &b"x"[..]))
            .collect();
        assert_eq!(listed(&all), plain);
    }

    #[test]
    fn skipped_text_files_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let long = vec![b'x'; MAX_FILE_BYTES as usize + 1];
        for name in ["long.py", "long.bin", "a\nb.py"] {
            std::fs::write(dir.path().join(name), &long).unwrap();
        }
        let told: Vec<String> = files(dir.path(), &[])
            .skipped
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with(r#""a\nb.py": the name"#), "{told:?}");
        assert!(told[1].starts_with("long.py: 1048577 bytes"), "{told:?}");
    }

    #[test]
    fn ignore_files_apply_without_a_repository() {
        let list = listed(&[
            (".gitignore", b"build/\n"),
            ("a/.ignore", b"gen_*.py\n"),
            ("build/out.py", b""),
            ("a/gen_x.py", b""),
            ("a/x.py", b""),
        ]);
        assert_eq!(list, ["a/x.py"]);
    }

    #[test]
    fn binaries_environments_and_secrets_are_not_listed() {
        let long = vec![b'x'; MAX_FILE_BYTES as usize + 1];
        let list = listed(&[
            (".git/config", b""),
            ("__pycache__/a.pyc", b"x"),
            ("node_modules/m/i.js", b""),
            ("venv/pyvenv.cfg", b""),
            ("venv/lib/a.py", b""),
            ("image.bin", b"a\0b"),
            ("picture.png", b"text all the same"),
            ("long.py", &long),
            (".env", b"TOKEN=1"),
            ("environment.py", b""),
            ("prod.env/x.py", b""),
            ("id_rsa", b"k"),
            ("cert.pem", b"k"),
            ("venv_notes.py", b""),
        ]);
        assert_eq!(list, ["environment.py", "venv_notes.py"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_with_a_name_that_is_not_utf8_is_skipped_and_reported() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let name = std::ffi::OsStr::from_bytes(b"bad\xff.py");
        std::fs::write(dir.path().join(name), "").unwrap();
        std::fs::write(dir.path().join("good.py"), "").unwrap();
        let binary = std::ffi::OsStr::from_bytes(b"bad\xff.png");
        std::fs::write(dir.path().join(binary), "").unwrap();
        let found = files(dir.path(), &[]);
        assert_eq!(found.files.len(), 1);
        assert_eq!(found.files[0].0, FilePath::new("good.py"));
        let told: Vec<String> = found.skipped.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["\"bad\u{fffd}.py\": the name is not UTF-8; rename the file"]
        );
    }

    #[test]
    fn nearest_ignore_file_takes_precedence() {
        let list = listed(&[
            (".gitignore", b"*.log\n/top.py\nsub/*\n!sub/keep.py\n"),
            ("top.py", b""),
            ("a/top.py", b""),
            ("a/x.log", b""),
            ("a/.gitignore", b"!x.log\n"),
            ("sub/keep.py", b""),
            ("sub/drop.py", b""),
        ]);
        assert_eq!(list, ["a/top.py", "a/x.log", "sub/keep.py"]);
    }

    #[test]
    fn special_or_endless_ignore_files_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let pipe = |path: &Path| {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        };
        for folder in ["a", "b", "c", "d"] {
            fs::create_dir(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("x.py"), "x").unwrap();
        }
        std::os::unix::fs::symlink("/dev/zero", root.join(".gitignore")).unwrap();
        pipe(&root.join("a/.gitignore"));
        pipe(&root.join("b/.ignore"));
        pipe(&root.join("c/.git"));
        // A sparse file: an endless line that occupies no disk space.
        let endless = fs::File::create(root.join("d/.git")).unwrap();
        endless.set_len(1 << 40).unwrap();
        let listed: Vec<_> = files(&root, &[])
            .files
            .into_iter()
            .map(|(file, _)| file)
            .collect();
        assert_eq!(
            listed,
            ["a/x.py", "b/x.py", "c/x.py", "d/x.py"].map(FilePath::new)
        );
    }

    #[test]
    fn negated_ignore_rule_includes_a_hidden_file() {
        let list = listed(&[
            (".gitignore", b"!.github/\n!.flake8\n"),
            (".github/x.yml", b""),
            (".flake8", b""),
            (".hidden/x.py", b""),
        ]);
        assert_eq!(list, [".flake8", ".github/x.yml"]);
    }

    #[test]
    fn files_up_to_the_size_limit_are_listed() {
        let most = vec![b'x'; MAX_FILE_BYTES as usize];
        assert_eq!(listed(&[("most.py", &most)]), ["most.py"]);
        assert_eq!(listed(&[]), [""; 0]);
        // A zero byte far from the start of a file is not noticed, and an empty file without an
        // extension counts as text.
        let mut late = vec![b'x'; PROBE_BYTES];
        late.push(0);
        assert_eq!(
            listed(&[("late", &late), ("empty", b"")]),
            ["empty", "late"]
        );
    }
}
