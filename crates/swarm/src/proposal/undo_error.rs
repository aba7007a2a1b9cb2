//! Why an undo failed.

use crate::evidence::ids::{ProposalId, ids};
use starling_syntax::SymbolPath;

/// Why an undo failed. Nothing was changed, except with [`UndoError::Stay`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    #[error("there is no applied proposal {0}")]
    Unknown(ProposalId),
    #[error(
        "{} not in the text any more, and nothing is left to undo: the editor's own undo reverted it, the \
         document was closed without saving, or the file that it created is gone",
        are_in_words(.0)
    )]
    Gone(Vec<ProposalId>),
    /// The text already contained the changes of these proposals when they were applied, so there
    /// is nothing to undo.
    #[error("nothing to undo for {}: the text already contained the change when it was applied", ids(.0))]
    Empty(Vec<ProposalId>),
    #[error("you changed {symbol} after the proposal was applied: {why}")]
    Conflict { symbol: SymbolPath, why: String },
    #[error("{0}")]
    Editor(String),
    /// Another proposal that depends on this one stays applied.
    #[error("{why}")]
    Held { why: String },
    /// Some of several proposals stay applied, each with the reason. The others are undone.
    #[error("{}", stay_in_words(.stay))]
    Stay {
        undone: Vec<ProposalId>,
        stay: Vec<(ProposalId, String)>,
    },
}

/// Names proposals as the subject of a sentence, with "is" or "are".
pub fn are_in_words(ids: &[ProposalId]) -> String {
    let named: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let are = if named.len() == 1 { "is" } else { "are" };
    format!("{} {are}", named.join(", "))
}

pub(crate) fn stay_in_words(stay: &[(ProposalId, String)]) -> String {
    let told = stay.iter().map(|(id, why)| format!("{id} stays: {why}"));
    let told: Vec<String> = told.collect();
    format!(
        "{}. To undo one of them nevertheless, undo that proposal alone",
        told.join("; ")
    )
}
