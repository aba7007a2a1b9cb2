//! Directories on systems where files cannot be reached through an open directory by a path.

use std::io;
use std::path::{Path, PathBuf};

/// A directory that is used by its path. Limit: if the path leads elsewhere later, so do the paths of
/// its files.
#[derive(Debug)]
pub struct PinnedDirectory {
    path: PathBuf,
}

impl PinnedDirectory {
    /// Creates what is missing of a directory.
    ///
    /// # Errors
    /// A directory cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Ok(PinnedDirectory {
            path: path.to_owned(),
        })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
