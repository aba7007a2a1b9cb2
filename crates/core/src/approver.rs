//! The interface to the approver: the user, a proxy (a model that decides in place of the user), or
//! nobody.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use starling_syntax::SymbolPath;

/// An intent as the approver sees it: an agent's plan for a change, before code is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentView {
    pub symbol: SymbolPath,
    pub intent: String,
    pub reason: String,
}

/// A checked proposal as the approver sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalView {
    /// Number of the proposal in its run, from 1.
    pub id: u32,
    pub symbol: SymbolPath,
    /// All symbols that the proposal changes.
    pub symbols: Vec<SymbolPath>,
    pub reason: String,
    /// Unified diff.
    pub diff: String,
    /// The results of the checks, as text for a reader.
    pub evidence: String,
    /// The number of the event that asks for this review, which distinguishes it from other reviews
    /// of the same proposal. `None` if no event asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The approver's decision on an intent or a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    Accept,
    Reject {
        reason: String,
    },
    /// Neither accepted nor rejected: the agent must change its work as the text says.
    Steer {
        text: String,
    },
}

/// The approver's answer to a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewAnswer {
    Verdict(Verdict),
    /// The person edited files of the proposal. The edited versions are to be checked and shown
    /// again.
    Edited(Vec<EditedPart>),
}

impl ReviewAnswer {
    /// Returns the verdict; `None` if the person edited the proposal.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            ReviewAnswer::Verdict(verdict) => Some(verdict),
            ReviewAnswer::Edited(_) => None,
        }
    }
}

impl From<Verdict> for ReviewAnswer {
    fn from(verdict: Verdict) -> ReviewAnswer {
        ReviewAnswer::Verdict(verdict)
    }
}

/// The person's version of the one file that a proposal changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedPart {
    /// Number of the proposal in its run.
    pub proposal: u32,
    /// The whole text of the file without the change.
    pub before: Arc<str>,
    /// The whole text with the change. If it equals `before`, the proposal is withdrawn.
    pub text: Arc<str>,
}

/// Decides on intents and proposals. The caller gives up waiting after a deadline.
#[async_trait]
pub trait Approver: Send + Sync {
    async fn intent(&self, view: IntentView) -> Verdict;
    async fn proposal(&self, view: ProposalView) -> ReviewAnswer;
}
