//! The files that a diff changes, before and after.

use std::collections::BTreeSet;
use std::path::Path;

use super::git::{self, GitError};
use starling_sandbox::Scratch;

/// One file of a change. `None` means that the file does not exist before or after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
}

/// Applies a diff to the files of a commit and returns the changed files. A renamed file appears as
/// one removed and one added file.
///
/// # Errors
/// Fails if the commit does not exist or the diff does not apply.
pub async fn changes_of(
    repository: &Path,
    commit: &str,
    patch: &str,
) -> Result<Vec<FileChange>, GitError> {
    let folder = Scratch::temporary().map_err(GitError::Disk)?;
    let mut changes = Vec::new();
    for path in paths_of(patch) {
        let before = git::file_at(repository, commit, &path).await?;
        if let Some(bytes) = &before {
            write(&folder.path().join(&path), bytes).map_err(GitError::Disk)?;
        }
        changes.push(FileChange {
            path,
            before,
            after: None,
        });
    }
    git::apply(folder.path(), patch).await?;
    for change in &mut changes {
        change.after = content(&folder.path().join(&change.path));
    }
    Ok(changes)
}

/// Returns the content that git stores for a file. For a symbolic link this is its target, which is
/// not followed because it could be a device.
fn content(path: &Path) -> Option<Vec<u8>> {
    match std::fs::read_link(path) {
        Ok(target) => Some(target.into_os_string().into_encoded_bytes()),
        Err(_) => std::fs::read(path).ok(),
    }
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(path, bytes)
}

/// Returns every path that the diff names, on either side.
pub(super) fn paths_of(patch: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    // Lines of a hunk can look like headers.
    let mut left = (0_usize, 0_usize);
    for line in patch.lines() {
        if left != (0, 0) {
            let (old, new) = left;
            left = match line.as_bytes().first() {
                Some(b'-') => (old.saturating_sub(1), new),
                Some(b'+') => (old, new.saturating_sub(1)),
                Some(b'\\') => (old, new),
                Some(_) | None => (old.saturating_sub(1), new.saturating_sub(1)),
            };
        } else if let Some(counts) = line.strip_prefix("@@ ") {
            left = hunk_lines(counts);
        } else if let Some(path) = named(line) {
            paths.insert(path);
        }
    }
    paths
}

/// Returns the path that a header line names.
fn named(line: &str) -> Option<String> {
    for whole in ["rename from ", "rename to ", "copy from ", "copy to "] {
        if let Some(path) = line.strip_prefix(whole) {
            return Some(unquoted(path));
        }
    }
    let side = line
        .strip_prefix("--- ")
        .or_else(|| line.strip_prefix("+++ "))?;
    let path = unquoted(side.split('\t').next().unwrap_or(side));
    let path = path
        .strip_prefix("a/")
        .or_else(|| path.strip_prefix("b/"))?;
    Some(path.to_owned())
}

/// Parses `-1,7 +1,8 @@` to the numbers of lines on both sides.
fn hunk_lines(counts: &str) -> (usize, usize) {
    let mut sides = counts.split(' ').map(|side| {
        let count = side.split_once(',').map_or("1", |(_, count)| count);
        count.parse().unwrap_or(0)
    });
    (sides.next().unwrap_or(0), sides.next().unwrap_or(0))
}

/// Decodes a path as git writes it: quoted and escaped if it has special bytes.
fn unquoted(path: &str) -> String {
    let Some(inner) = path
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    else {
        return path.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(digit @ b'0'..=b'3') => {
                let mut value = digit - b'0';
                for _ in 0..2 {
                    if let Some(next) = rest.next_if(|next| (b'0'..=b'7').contains(next)) {
                        value = value * 8 + (next - b'0');
                    }
                }
                bytes.push(value);
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patch: &str, expected: &[&str]) {
        let paths = paths_of(patch);
        assert_eq!(
            paths.iter().map(String::as_str).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn old_and_new_paths_of_a_diff_are_read() {
        check(
            "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n",
            &["x.py"],
        );
        check(
            "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+b\n",
            &["n"],
        );
        check(
            "diff --git a/o b/p\nsimilarity index 100%\nrename from o\nrename to p\n",
            &["o", "p"],
        );
    }

    #[test]
    fn changed_lines_that_look_like_diff_headers_are_not_headers() {
        check(
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/no\n+++ b/no\n context\n",
            &["x"],
        );
    }

    #[test]
    fn paths_that_git_quotes_are_unquoted() {
        check(
            "--- \"a/\\303\\251 \\\"x\\\".py\"\n+++ /dev/null\n",
            &["é \"x\".py"],
        );
    }
}
