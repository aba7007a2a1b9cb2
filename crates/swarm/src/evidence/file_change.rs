//! The change of one file by one proposal.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::evidence::ids::ProposalId;
use starling_core::EditorError;
use starling_syntax::{FilePath, SymbolPath, carry};
use starling_text::{ChangeSet, Conflict, deleted_file_diff, unified_diff};

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
    /// Whether the change deletes the file. `changes` then removes all of its text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl FileChange {
    /// Rebases the change onto `current`, a later version of the file.
    ///
    /// # Errors
    /// Returns a [`Conflict`] if `current` changed at the same position, or if the position of the
    /// change is ambiguous. A deletion conflicts with any other text.
    pub fn over(&self, current: &str) -> Result<ChangeSet, Conflict> {
        if self.deleted {
            return ChangeSet::deletion(&self.base, current);
        }
        carry(&self.file, &self.base, &self.changes, current)
    }

    /// Returns the change as a unified diff, in the text for which it was made.
    pub fn diff(&self) -> String {
        let file = self.file.as_str();
        match self.deleted {
            true => deleted_file_diff(file, &self.base),
            false => {
                let after = self.changes.apply(&self.base).unwrap_or_default();
                unified_diff(file, &self.base, &after)
            }
        }
    }

    /// For a file that cannot be read, returns why the change cannot be applied to it, and what the
    /// reviewer can do. Returns `None` if the change creates the file.
    pub fn lost(&self, error: &EditorError) -> Option<String> {
        let (file, proposal) = (&self.file, self.proposal);
        let happened = match error {
            EditorError::Missing { .. } if self.base.is_empty() && !self.deleted => return None,
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
