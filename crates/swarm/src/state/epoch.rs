//! The version of the workspace.

/// Identifies a version of the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch {
    /// Number of times that a proposal was applied or reverted.
    pub changes: u64,
    /// Number of times that the user edited the text of a file.
    pub typed: u64,
}
