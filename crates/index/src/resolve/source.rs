//! What the resolver asks of an index.

use std::sync::Arc;

use crate::names::{Names, SymbolNumber};
use starling_syntax::{FilePath, SymbolPath};

/// A file of a [`Source`], by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// The files of a workspace and what they say about names.
pub trait Source {
    /// The file at a path from the workspace's root.
    fn file(&self, path: &str) -> Option<FileId>;

    fn path(&self, file: FileId) -> FilePath;

    /// The directories that hold a top-level package or module of this name.
    fn roots_of(&self, package: &str) -> &[String];

    /// The files that mention an identifier, in order.
    fn mentioning(&self, identifier: &str) -> Vec<FileId>;

    /// `None` where the file can no longer be read.
    fn names(&self, file: FileId) -> Option<Arc<Names>>;

    /// The path of a symbol by its number in its file.
    fn symbol(&self, file: FileId, number: SymbolNumber) -> Option<SymbolPath>;

    /// The file and the number of a symbol.
    fn find(&self, symbol: &SymbolPath) -> Option<(FileId, SymbolNumber)>;
}
