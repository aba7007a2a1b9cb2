//! The version of the workspace.

/// Identifies a state of the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch {
    /// Number of proposals that were applied or reverted.
    pub changes: u64,
    /// Number of edits of file texts by the user.
    pub typed: u64,
}
