//! Detects whether a project has files with symbols. Only Python has symbols.

use std::path::Path;

use starling_syntax::{FilePath, Language};
use starling_workspace::{Overlay, Workspace};

/// Message for a project without files with symbols.
pub const NO_SYMBOLS: &str = "the project has no Python file: only Python files have symbols, and other text \
                              files are read and changed as a whole";

/// Whether any file has symbols.
pub fn has_symbols(files: &[FilePath]) -> bool {
    files.iter().any(is_known)
}

/// Returns the number of files with and without symbols.
pub fn count(files: &[FilePath]) -> (usize, usize) {
    let known = files.iter().filter(|file| is_known(file)).count();
    (known, files.len() - known)
}

/// Whether any file of a project has symbols. The root is checked first, because it suffices for
/// most projects.
pub fn has_symbols_at(root: &Path) -> bool {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| FilePath::new(&*entry.file_name().to_string_lossy()));
    names.any(|name| is_known(&name))
        || Workspace::open(root.to_owned())
            .is_ok_and(|workspace| has_symbols(workspace.snapshot(Overlay::new()).files()))
}

fn is_known(file: &FilePath) -> bool {
    Language::of(file) != Language::Plain
}
