//! Refusals of drafts.

use std::sync::Arc;

use crate::evidence::return_reason::ReturnReason;
use starling_syntax::SymbolPath;

/// Why a draft was refused. The message tells the agent what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{why}")]
    Unusable { why: ReturnReason },
    #[error("{why}")]
    EditorGone { why: String },
    /// The user or another proposal changed the same lines. `why` shows the symbol in `text`, the
    /// current text of its file.
    #[error("{why}")]
    Moved {
        why: ReturnReason,
        symbol: SymbolPath,
        text: Arc<str>,
    },
}

impl Refusal {
    /// Returns the reason in the form for the user.
    pub(crate) fn to_user(&self) -> &str {
        match self {
            Refusal::Unusable { why } | Refusal::Moved { why, .. } => why.to_user(),
            Refusal::EditorGone { why } => why,
        }
    }
}

/// Refuses a draft, with separate messages for the agent and the user.
pub(super) fn unusable<T>(
    to_agent: impl Into<String>,
    to_user: impl Into<String>,
) -> Result<T, Refusal> {
    Err(Refusal::Unusable {
        why: ReturnReason::new(to_agent, to_user),
    })
}

/// Refuses a draft with the same message for the agent and the user.
pub(super) fn unusable_as<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Unusable {
        why: ReturnReason::for_both(why),
    })
}
