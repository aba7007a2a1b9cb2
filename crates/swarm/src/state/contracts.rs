//! The changed contracts of a run, and the follow-ups that were sent for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::state::draft::Draft;
use starling_syntax::{FilePath, SymbolPath};

/// The locations that mentioned removed symbols, each as a file and the text of the line. They are
/// recorded before the removal, because afterwards the uses can only be found by name.
pub(crate) type Mentions = BTreeMap<SymbolPath, BTreeSet<(FilePath, String)>>;

/// The changed contracts, and the owners that were notified of them.
#[derive(Default)]
pub(crate) struct Contracts {
    /// The last draft of each changed contract whose callers were notified.
    pub changes: HashMap<SymbolPath, Arc<(Draft, Mentions)>>,
    /// Contract changes whose callers were notified already.
    pub followed: BTreeSet<(SymbolPath, String)>,
    /// For each owner, the symbols whose contract changes the owner was asked to follow.
    pub told_of: BTreeMap<SymbolPath, BTreeSet<SymbolPath>>,
    /// Owners that could not be notified of a contract change.
    pub missed: BTreeSet<SymbolPath>,
    /// Owners that were notified and left their code unchanged.
    pub unfollowed: BTreeSet<SymbolPath>,
}
