//! How the run's new tests end on the original code.

/// The results of the tests that a run added or changed, on the original code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WithoutChange {
    pub fails: Vec<String>,
    pub passes: Vec<String>,
    /// Existing tests that fail with the text that the run gave them.
    pub changed_fail: Vec<String>,
}

impl WithoutChange {
    /// Returns whether a test distinguishes the changed code from the original code.
    pub fn show_the_change(&self) -> bool {
        !self.fails.is_empty() || !self.changed_fail.is_empty()
    }
}
