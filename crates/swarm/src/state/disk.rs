//! Detects that other programs changed files on disk between two test runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::evidence::ids::ProposalId;
use starling_syntax::FilePath;
use starling_workspace::{Snapshot, Stamp};

/// Number of files that are compared before other tasks run. Comparing them takes less than a
/// millisecond.
const STAMPS_AT_ONCE: usize = 128;

/// The stamps of the files on disk at one moment. A snapshot replaces only some files; tests read
/// the others from the disk, where the user, an editor or another run can change them at any time.
#[derive(Debug, Clone)]
pub(crate) struct DiskStamps(Arc<[(FilePath, Stamp)]>);

/// The files on disk, as they were last listed. Listing them takes a walk over the whole tree, so
/// that happens only when the answer is needed.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    at_start: DiskStamps,
    newest: Mutex<DiskStamps>,
    /// The files on disk before the last test run at the end of the run, or else at its start.
    tested: Mutex<DiskStamps>,
    /// For each proposal, the files on disk before its last check.
    checked: Mutex<BTreeMap<ProposalId, DiskStamps>>,
    /// Whether the files changed during each of several checks of the same proposals.
    keeps_changing: AtomicBool,
}

impl DiskWatch {
    /// Uses the listing of the snapshot as the first one.
    pub fn new(start: &Snapshot) -> Self {
        let at_start = DiskStamps(Arc::clone(start.stamps()));
        DiskWatch {
            newest: Mutex::new(at_start.clone()),
            tested: Mutex::new(at_start.clone()),
            checked: Mutex::default(),
            keeps_changing: AtomicBool::new(false),
            at_start,
        }
    }

    /// The stamps at the start of the run, before any test ran.
    pub fn at_start(&self) -> &DiskStamps {
        &self.at_start
    }

    /// The newest known stamps. To be taken before a test run, as the earlier moment for
    /// [`DiskWatch::has_changed`].
    pub fn newest(&self) -> DiskStamps {
        let newest = self.newest.lock();
        newest.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether files were changed, created or removed on disk since `earlier`, except files
    /// that one of the snapshots replaces.
    pub async fn has_changed(&self, earlier: &DiskStamps, worlds: [&Snapshot; 2]) -> bool {
        let listed = worlds[0].clone();
        let Ok(now) = tokio::task::spawn_blocking(move || listed.stamps_now()).await else {
            return true;
        };
        let now = DiskStamps(now.into());
        let is_replaced = |file| worlds.iter().any(|one| one.overlay().contains_key(file));
        let has_changed = now.differing(earlier).iter().any(|file| !is_replaced(file));
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = now;
        has_changed
    }

    /// Returns whether others changed files on disk since the last tests at the end of the run, or else
    /// since its start, except files that `world` replaces. The caller then runs the tests, so the
    /// next call compares with the files as they are now.
    pub async fn changed_since_tested(&self, world: &Snapshot) -> bool {
        let tested = self.tested.lock();
        let tested = tested.unwrap_or_else(PoisonError::into_inner).clone();
        let has_changed = self.has_changed(&tested, [world, world]).await;
        *self.tested.lock().unwrap_or_else(PoisonError::into_inner) = self.newest();
        has_changed
    }

    /// Records the files on disk before a check of these proposals.
    pub fn check_begins(&self, proposals: impl IntoIterator<Item = ProposalId>) {
        let newest = self.newest();
        let proposals = proposals.into_iter().map(|id| (id, newest.clone()));
        let checked = self.checked.lock();
        checked
            .unwrap_or_else(PoisonError::into_inner)
            .extend(proposals);
    }

    /// Returns whether others changed or removed files on disk since the last check of a proposal
    /// began, except files that `world` replaces. Only the files that were listed then are looked at,
    /// because that is faster than a walk over the tree.
    pub async fn changed_since_checked(&self, proposal: ProposalId, world: &Snapshot) -> bool {
        let Some(earlier) = self.before_check(proposal) else {
            return false;
        };
        let mut are_same = true;
        for (index, (file, stamp)) in earlier.0.iter().enumerate() {
            // The files are not compared on another thread, because the simulation needs the same order
            // of events each time.
            if index % STAMPS_AT_ONCE == STAMPS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            if !world.overlay().contains_key(file) && !world.has_stamp(file, stamp) {
                are_same = false;
                break;
            }
        }
        if are_same {
            return false;
        }
        // The next check begins with the files as they are now.
        self.has_changed(&earlier, [world, world]).await;
        true
    }

    fn before_check(&self, proposal: ProposalId) -> Option<DiskStamps> {
        let checked = self.checked.lock();
        let checked = checked.unwrap_or_else(PoisonError::into_inner);
        checked.get(&proposal).cloned()
    }

    /// Returns whether other programs changed files during each check of some proposals, as recorded by
    /// [`DiskWatch::note_keeps_changing`].
    pub fn keeps_changing(&self) -> bool {
        self.keeps_changing.load(Ordering::Relaxed)
    }

    /// Records that other programs changed files during each check of some proposals.
    pub fn note_keeps_changing(&self) {
        self.keeps_changing.store(true, Ordering::Relaxed);
    }

    /// Returns the files that were changed or created on disk since the run started, except files that
    /// `world` replaces. Lists the files on disk, so it must not be called on an async thread.
    pub fn changed_since_start(&self, world: &Snapshot) -> Vec<FilePath> {
        let now = DiskStamps(world.stamps_now().into());
        let exists: BTreeSet<&FilePath> = now.0.iter().map(|(file, _)| file).collect();
        let changed = now.differing(&self.at_start).into_iter();
        let is_counted =
            |file: &FilePath| exists.contains(file) && !world.overlay().contains_key(file);
        changed.filter(is_counted).collect()
    }
}

impl DiskStamps {
    /// Returns the files that were changed, created or removed since an earlier listing.
    fn differing(&self, earlier: &DiskStamps) -> BTreeSet<FilePath> {
        let (was, is) = (earlier.by_file(), self.by_file());
        let differs = |file: &&FilePath| was.get(*file) != is.get(*file);
        let changed = was.keys().chain(is.keys()).copied().filter(differs);
        changed.cloned().collect()
    }

    fn by_file(&self) -> BTreeMap<&FilePath, &Stamp> {
        self.0.iter().map(|(file, stamp)| (file, stamp)).collect()
    }
}
