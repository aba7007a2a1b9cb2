//! Detects that other programs changed files on disk between two test runs.

use std::collections::BTreeMap;

use starling_syntax::FilePath;
use starling_workspace::{Snapshot, Stamp};

/// The stamps of the files on disk at one moment. A snapshot replaces only some files; tests read
/// the others from the disk, where the user, an editor or another run can change them at any time.
#[derive(Debug)]
pub(crate) struct DiskTexts(Vec<(FilePath, Stamp)>);

impl DiskTexts {
    pub fn now(world: &Snapshot) -> Self {
        DiskTexts(world.stamps_now())
    }

    /// Returns whether files were changed, created or removed on disk since, except files that
    /// `world` replaces.
    pub fn have_changed(&self, world: &Snapshot) -> bool {
        let now = world.stamps_now();
        let (was, is) = (by_file(&self.0), by_file(&now));
        let differs = |file: &&FilePath| was.get(*file) != is.get(*file);
        let mut changed = was.keys().chain(is.keys()).copied().filter(differs);
        changed.any(|file| !world.overlay().contains_key(file))
    }
}

fn by_file(stamps: &[(FilePath, Stamp)]) -> BTreeMap<&FilePath, &Stamp> {
    stamps.iter().map(|(file, stamp)| (file, stamp)).collect()
}
