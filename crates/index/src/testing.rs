//! Test helpers that build code from texts in memory.

use std::sync::Arc;

use super::code::{Code, IndexedFile};
use super::facts::FileFacts;
use super::segment::Segment;
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Snapshot, Workspace};

/// Returns the code of files with these paths and texts.
pub(super) fn code_of<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Code {
    let facts: Vec<FileFacts> = texts
        .into_iter()
        .map(|(path, text)| FileFacts::read(FilePath::new(path), text.into()))
        .collect();
    let segment = Arc::new(Segment::of(&facts));
    let known = (0..).zip(facts).map(|(number, facts)| IndexedFile {
        file: facts.file,
        segment: segment.clone(),
        number,
        stamp: None,
    });
    Code::of(known.collect())
}

/// Returns a snapshot that contains only these files, as an overlay over an empty directory.
pub(super) fn snapshot_of(texts: &[(&str, &str)]) -> Snapshot {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path().to_owned()).unwrap();
    let overlay: Overlay = texts
        .iter()
        .map(|(path, text)| (FilePath::new(*path), Some((*text).into())))
        .collect();
    workspace.snapshot(overlay)
}
