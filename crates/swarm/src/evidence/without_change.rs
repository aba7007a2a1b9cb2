//! How tests end without the run's change, or without a part of it.

use starling_syntax::SymbolPath;

/// The results of the tests that a run added or changed, on the original code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WithoutChange {
    pub fails: Vec<String>,
    pub passes: Vec<String>,
    /// Existing tests that fail with the text that the run gave them.
    pub changed_fail: Vec<String>,
    /// Changed functions without whose change the tests that show the run's change pass as well.
    pub unshown_parts: Vec<SymbolPath>,
}

impl WithoutChange {
    /// Returns whether a test distinguishes the changed code from the original code.
    pub fn show_the_change(&self) -> bool {
        !self.fails.is_empty() || !self.changed_fail.is_empty()
    }
}
