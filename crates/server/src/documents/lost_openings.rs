//! Files that may be open in the editor although the server knows no text of them: the message that
//! opened them could not be read.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use starling_platform::files::PathExt;

/// The files whose opening is or may be lost.
#[derive(Debug, Default)]
pub struct LostOpenings {
    /// Files with a lost opening, each with its canonical path if it exists.
    files: HashMap<PathBuf, Option<PathBuf>>,
    /// If the opening of an unknown file may be lost: the files that were opened or closed since. Every
    /// other one may be open.
    any_but: Option<HashSet<PathBuf>>,
}

impl LostOpenings {
    /// Notes that the opening of a file is lost. Returns whether that is new.
    pub fn lost(&mut self, path: &Path) -> bool {
        let real = path.canonical().ok();
        self.files.insert(path.to_owned(), real).is_none()
    }

    /// Notes that the opening of any file may be lost. Returns whether that is new.
    pub fn lost_any(&mut self) -> bool {
        self.any_but.replace(HashSet::new()).is_none()
    }

    /// Notes that a file was opened or closed.
    pub fn found(&mut self, path: &Path) {
        self.files.remove(path);
        if let Some(found) = &mut self.any_but {
            found.insert(path.to_owned());
        }
    }

    /// Returns whether a file that is not known to be open may be open, also under the name of a link.
    pub fn may_be_open(&self, path: &Path) -> bool {
        if self.files.contains_key(path) {
            return true;
        }
        if let Some(found) = &self.any_but {
            return !found.contains(path);
        }
        let real = match self.files.is_empty() {
            true => None,
            false => path.canonical().ok(),
        };
        real.is_some() && self.files.values().any(|file| *file == real)
    }
}
