//! Which files a workspace has.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;

use ignore::{DirEntry, WalkBuilder, WalkState};

use super::Stamp;
use super::paths::{MAX_FILE_BYTES, is_secret};
use crate::syntax::FilePath;
use crate::text::is_deceptive;

/// Endings of files that are text without a look inside.
const TEXT: [&str; 22] = [
    "py", "pyi", "md", "rst", "txt", "html", "js", "ts", "css", "json", "toml", "yml", "yaml",
    "cfg", "ini", "sh", "rs", "po", "pot", "xml", "c", "h",
];
/// Endings of files that are none.
const BINARY: [&str; 18] = [
    "mo", "png", "gif", "jpg", "jpeg", "ico", "pdf", "zip", "gz", "bz2", "xz", "so", "pyc", "npy",
    "npz", "woff", "woff2", "ttf",
];
/// How much of any other file is looked at.
const PROBE_BYTES: usize = 1024;

/// The text files below `root` in order of their paths: what `.gitignore` and `.ignore` leave,
/// without hidden files, links, installed environments, secrets, binaries and files over 1 MiB.
pub(super) fn files(root: &Path) -> Vec<(FilePath, Stamp)> {
    let found = Mutex::new(Vec::new());
    WalkBuilder::new(root)
        .require_git(false)
        .git_global(false)
        .threads(std::thread::available_parallelism().map_or(2, |n| n.get().min(8)))
        .filter_entry(wanted)
        .build_parallel()
        .run(|| {
            Box::new(|entry| {
                if let Some(file) = entry.ok().and_then(|entry| text_file(root, &entry)) {
                    lock(&found).push(file);
                }
                WalkState::Continue
            })
        });
    let mut files = std::mem::take(&mut *lock(&found));
    files.sort_unstable_by(|(a, _), (b, _)| FilePath::cmp(a, b));
    files
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Whether the walk goes on into this directory, or looks at this file.
fn wanted(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
    if !is_dir || entry.depth() == 0 {
        return true;
    }
    !is_secret(&name)
        && !matches!(&*name, "__pycache__" | "node_modules")
        && !is_environment(entry.path())
}

/// Whether a directory is a Python environment: installed, not edited.
pub(super) fn is_environment(directory: &Path) -> bool {
    directory.join("pyvenv.cfg").is_file()
}

fn text_file(root: &Path, entry: &DirEntry) -> Option<(FilePath, Stamp)> {
    if !entry.file_type()?.is_file() || is_secret(&entry.file_name().to_string_lossy()) {
        return None;
    }
    // A name that is not UTF-8 could not be named back to us.
    let relative = entry.path().strip_prefix(root).ok()?.to_str()?;
    if relative.contains(is_deceptive) {
        tracing::warn!(file = ?relative, "not looked at: its name is not what it looks like");
        return None;
    }
    let stamp = Stamp::of(&entry.metadata().ok()?);
    if stamp.size > MAX_FILE_BYTES {
        return None;
    }
    let ending = entry.path().extension().unwrap_or_default();
    let is_text = if TEXT.iter().any(|text| ending == *text) {
        true
    } else {
        !BINARY.iter().any(|binary| ending == *binary) && !is_binary(entry.path())
    };
    is_text.then(|| (FilePath::new(relative), stamp))
}

/// A file is binary when a zero byte stands near its beginning; one that cannot be opened counts so.
fn is_binary(path: &Path) -> bool {
    let mut start = Vec::with_capacity(PROBE_BYTES);
    let read =
        File::open(path).and_then(|file| file.take(PROBE_BYTES as u64).read_to_end(&mut start));
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
        super::files(&root)
            .iter()
            .map(|(file, _)| file.as_str().to_owned())
            .collect()
    }

    #[test]
    fn lists_text_in_order() {
        let list = listed(&[("b.py", b"b"), ("a/z.py", b""), ("a/LICENSE", b"free")]);
        assert_eq!(list, ["a/LICENSE", "a/z.py", "b.py"]);
    }

    #[test]
    fn leaves_out_names_that_are_not_what_they_look_like() {
        let plain = ["$(touch x).py", "-rf.py", "<b>`x`.py", "שלום.py"];
        let others = ["a\nb.py", "\x1b[2Jc.py", "\u{202e}yp.d", "e\r/f.py"];
        let all: Vec<(&str, &[u8])> = plain
            .iter()
            .chain(&others)
            .map(|name| (*name, &b"x"[..]))
            .collect();
        assert_eq!(listed(&all), plain);
    }

    #[test]
    fn honours_ignore_files_without_a_repository() {
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
    fn skips_what_is_not_source() {
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
    fn leaves_out_a_name_that_is_not_utf8() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let name = std::ffi::OsStr::from_bytes(b"bad\xff.py");
        std::fs::write(dir.path().join(name), "").unwrap();
        std::fs::write(dir.path().join("good.py"), "").unwrap();
        let found = files(dir.path());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, FilePath::new("good.py"));
    }

    #[test]
    fn nearer_ignore_files_decide() {
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
    fn files_are_listed_up_to_the_limit() {
        let most = vec![b'x'; MAX_FILE_BYTES as usize];
        assert_eq!(listed(&[("most.py", &most)]), ["most.py"]);
        assert_eq!(listed(&[]), [""; 0]);
        // A zero far behind the beginning is not seen; an empty file without an ending is text.
        let mut late = vec![b'x'; PROBE_BYTES];
        late.push(0);
        assert_eq!(
            listed(&[("late", &late), ("empty", b"")]),
            ["empty", "late"]
        );
    }
}
