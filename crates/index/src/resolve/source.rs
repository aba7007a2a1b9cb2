//! The index data that the resolver reads.

use std::sync::Arc;

use crate::names::{Names, SymbolNumber};
use starling_syntax::{FilePath, SymbolPath};

/// Number of a file in a [`Source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// The files of a workspace with their names and symbols.
pub trait Source {
    /// Returns the file at a path relative to the workspace root.
    fn file(&self, path: &str) -> Option<FileId>;

    fn path(&self, file: FileId) -> FilePath;

    /// Returns the directories that contain a top-level package or module of this name.
    fn roots_of(&self, package: &str) -> &[String];

    /// Returns the files that contain an identifier, in order.
    fn mentioning(&self, identifier: &str) -> Vec<FileId>;

    /// Returns the names of a file, or `None` if the file can no longer be read.
    fn names(&self, file: FileId) -> Option<Arc<Names>>;

    /// Returns the path of a symbol by its number in its file.
    fn symbol(&self, file: FileId, number: SymbolNumber) -> Option<SymbolPath>;

    /// Returns the file and number of a symbol.
    fn find(&self, symbol: &SymbolPath) -> Option<(FileId, SymbolNumber)>;
}
