//! Results of tests on the code without the run's changes, or without a part of them.

use starling_syntax::SymbolPath;

/// The results of the tests that a run added or changed, on the original code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WithoutChange {
    pub fails: Vec<String>,
    pub passes: Vec<String>,
    /// Existing tests that the run changed and that, in their changed form, fail on the original
    /// code.
    pub changed_fail: Vec<String>,
    /// Changed functions whose change no test covers: if only such a function gets its original
    /// text back, all tests still pass.
    pub unshown_parts: Vec<SymbolPath>,
}

impl WithoutChange {
    /// Returns whether a test distinguishes the changed code from the original code.
    pub fn show_the_change(&self) -> bool {
        !self.fails.is_empty() || !self.changed_fail.is_empty()
    }
}
