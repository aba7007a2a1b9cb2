//! The change of one file by one proposal.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::evidence::ids::ProposalId;
use starling_core::EditorError;
use starling_syntax::{FilePath, SymbolPath, carry};
use starling_text::{ChangeSet, Conflict};

/// The change that one proposal makes to its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    pub proposal: ProposalId,
    /// The owner that made the proposal.
    pub symbol: SymbolPath,
    pub symbols: Vec<SymbolPath>,
    pub reason: String,
    pub file: FilePath,
    /// The text that the change is based on.
    pub base: Arc<str>,
    pub changes: ChangeSet,
}

impl FileChange {
    /// Rebases the change onto `current`, a later version of the file.
    ///
    /// # Errors
    /// Returns a [`Conflict`] if `current` changed at the same position, or if the position of the
    /// change is ambiguous.
    pub fn over(&self, current: &str) -> Result<ChangeSet, Conflict> {
        carry(&self.file, &self.base, &self.changes, current)
    }

    /// For a file that cannot be read, returns why the change cannot be applied to it, and what the
    /// reviewer can do. Returns `None` if the change creates the file.
    pub fn lost(&self, error: &EditorError) -> Option<String> {
        let (file, proposal) = (&self.file, self.proposal);
        let happened = match error {
            EditorError::Missing { .. } if self.base.is_empty() => return None,
            EditorError::Missing { .. } => {
                format!("{file} is gone: it was deleted or renamed since the change was made")
            }
            EditorError::Forbidden { why } => {
                format!("{file} may not be read any more, it may be a link now ({why})")
            }
            EditorError::Unreadable { .. } | EditorError::Gone => error.to_string(),
        };
        Some(format!(
            "{happened}; put the file back, or reject {proposal}"
        ))
    }

    /// Describes a conflict between the change and the user's text for the reviewer: the lines in
    /// conflict, and what the reviewer can do.
    pub fn conflict_told(&self, conflict: &Conflict) -> String {
        let (file, proposal) = (&self.file, self.proposal);
        let lines = conflict.in_lines(&self.base);
        format!("{file}: {lines}; take your own change of it back, or reject {proposal}")
    }
}
