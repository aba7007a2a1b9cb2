//! Finds the hidden text files of a project that people write, such as `.github/workflows/ci.yml` and
//! `.gitlab-ci.yml`. They are not listed as files of the project, but can name its code.

use std::fs::{self, DirEntry};
use std::path::Path;

use super::ignore_rules::{EntryKind, IgnoreRules, RuleEffect};
use super::paths::is_version_control;
use super::secret_names::is_secret_path;
use super::walk::is_environment;

/// Hidden directories that programs fill.
const CACHES: [&str; 22] = [
    ".bundle",
    ".cache",
    ".dart_tool",
    ".eggs",
    ".gradle",
    ".hypothesis",
    ".idea",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nyc_output",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".ruff_cache",
    ".starling",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".vs",
    ".yarn",
];
/// Maximum depth of the search in a hidden directory.
const DEPTH: usize = 3;
/// Maximum number of files in a hidden directory.
const MOST: usize = 200;

/// Calls `found` with the files in a hidden directory. `rules` are those of the directory above it.
pub(super) fn in_directory(
    directory: &Path,
    rules: &IgnoreRules,
    mut found: impl FnMut(&Path, &DirEntry),
) {
    let mut count = 0;
    let mut waiting = vec![(directory.to_owned(), DEPTH)];
    while let Some((directory, depth)) = waiting.pop() {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let is_filled = CACHES.contains(&&*name) || is_version_control(&name);
        if is_filled || is_environment(&directory) {
            continue;
        }
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            let Ok(kind) = kind else { continue };
            let as_entry = match kind.is_dir() {
                true => EntryKind::Directory,
                false => EntryKind::Other,
            };
            let is_ignored = rules.verdict(&path, as_entry) == RuleEffect::Ignored;
            if is_ignored || is_secret_path(&path) {
                continue;
            }
            if kind.is_dir() && depth > 1 {
                waiting.push((path, depth - 1));
            } else if kind.is_file() && count < MOST {
                count += 1;
                found(&path, &entry);
            }
        }
    }
}
