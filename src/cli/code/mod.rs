//! Queries about the code of a project, answered by the index without a model.

pub mod args;
mod definition;
mod index;
mod locate;
mod map;
mod output;
mod references;
mod symbols;

pub use definition::definition;
pub use index::index;
pub use locate::locate;
pub use map::map;
pub use references::references;
pub use symbols::symbols;

use std::io::Read;
use std::path::Path;

use anyhow::Context;

use super::WrongUse;
use super::project::root;
use super::status::while_reading;
use args::CodeArgs;
use starling_index::Index;
use starling_platform::files::PathExt;
use starling_sandbox::cache_dir;
use starling_syntax::FilePath;
use starling_workspace::{MAX_FILE_BYTES, Overlay, Workspace, read_given};

/// Whether to read and write the stored index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheUse {
    Used,
    LeftAlone,
}

/// Opens the index of the project.
fn open(args: &CodeArgs, cache: CacheUse) -> anyhow::Result<Index> {
    let root = root(args.repo.as_deref())?;
    let workspace = Workspace::open(root).map_err(|error| WrongUse(error.to_string()))?;
    Ok(while_reading(|| {
        let snapshot = workspace.snapshot(Overlay::new());
        let index = match (cache, cache_dir()) {
            (CacheUse::Used, Some(cache)) => Index::open(snapshot, cache),
            (CacheUse::LeftAlone, _) | (CacheUse::Used, None) => Index::new(snapshot),
        };
        index.warm();
        index
    }))
}

/// Opens the index of the project for a query, and logs skipped files.
fn open_for_question(args: &CodeArgs) -> anyhow::Result<Index> {
    let index = open(args, CacheUse::Used)?;
    index.warn_of_skipped();
    Ok(index)
}

/// Returns the text of a query: the argument, or the contents of a file or stdin.
///
/// # Errors
/// The file cannot be read, or the text is empty.
fn text(given: Option<&str>, file: Option<&Path>) -> anyhow::Result<String> {
    let from_stdin = given == Some("-") || file == Some(Path::new("-"));
    let text = match (from_stdin, given, file) {
        (true, ..) => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().read_to_end(&mut bytes);
            read.context("cannot read the text from stdin")?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        (false, _, Some(file)) => {
            let wrong = |error: std::io::Error| {
                WrongUse(format!(
                    "cannot read the text from {}: {error}",
                    file.display()
                ))
            };
            String::from_utf8_lossy(&read_given(file, 16 * MAX_FILE_BYTES).map_err(wrong)?)
                .into_owned()
        }
        (false, Some(given), None) => given.to_owned(),
        (false, None, None) => String::new(),
    };
    match text.trim().is_empty() {
        true => Err(WrongUse("the text is empty: describe what to search for".to_owned()).into()),
        false => Ok(text),
    }
}

/// Converts a path to one relative to the root, as used by the index. The path may be relative to
/// the current directory, or absolute.
fn file_of(index: &Index, given: &FilePath) -> FilePath {
    let files = index.snapshot().files();
    if files.binary_search(given).is_ok() {
        return given.clone();
    }
    let here = std::env::current_dir().and_then(|here| here.canonical());
    let path = here.map_or_else(|_| given.as_str().into(), |here| here.join(given.as_str()));
    let below = path.strip_prefix(index.snapshot().root());
    match below.ok().and_then(Path::to_str) {
        Some(below) => FilePath::new(below),
        None => given.clone(),
    }
}
