//! The changed contracts of a run, and the follow-ups that were sent for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::state::draft::Draft;
use starling_syntax::{FilePath, SymbolPath};

/// For each removed symbol, the locations that mentioned it, as a file and the text of the line.
/// They are recorded before the removal, because afterwards the uses can only be found by name.
pub(crate) type Mentions = BTreeMap<SymbolPath, BTreeSet<(FilePath, String)>>;

/// The changed contracts, and the owners that were notified of them.
#[derive(Default)]
pub(crate) struct Contracts {
    /// For each symbol whose contract changed and whose users were notified: the last draft that
    /// changed it.
    pub changes: HashMap<SymbolPath, Arc<(Draft, Mentions)>>,
    /// Contract changes whose users were already notified, as symbol and description.
    pub followed: BTreeSet<(SymbolPath, String)>,
    /// For each owner, the symbols whose contract changes the owner was notified of.
    pub told_of: BTreeMap<SymbolPath, BTreeSet<SymbolPath>>,
    /// Owners that could not be notified of a contract change.
    pub missed: BTreeSet<SymbolPath>,
    /// Contract changes that were applied while code of an owner that was notified of them was still
    /// broken: the changed symbol and the owner. At the end of the run, only those are kept whose
    /// code is still broken.
    pub unfollowed: BTreeSet<(SymbolPath, SymbolPath)>,
}
