//! A run, from request to stop reason.

use std::sync::Arc;

use crate::ports::{Approver, ChatModel, Editor, LanguageService, TestRunner};
use crate::syntax::SymbolPath;
use crate::workspace::Snapshot;

use super::event::{Driver, EventLog, RunId};
use super::ledger::Limits;
use super::proposal::ProposalId;

/// Who approves proposals.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// The approver of [`Outside`]: a person.
    Ask,
    /// A model that sees the task and the evidence.
    Proxy,
    /// Nobody: what passes the checks is accepted.
    Auto,
}

/// When the approver is asked about an intent before code is written.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AskIntent {
    Never,
    /// When the change alters a contract or touches more than two symbols.
    Contract,
    Always,
}

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct Task {
    pub text: String,
    pub driver: Driver,
    pub approval: Approval,
    pub ask_intent: AskIntent,
    pub limits: Limits,
    /// Begin at these symbols instead of asking the scout.
    pub begin: Vec<SymbolPath>,
}

/// The models of a run.
#[derive(Clone)]
pub struct RoleModels {
    pub scout: Arc<dyn ChatModel>,
    pub agent: Arc<dyn ChatModel>,
    /// Each writes a candidate beside the agent's own.
    pub editors: Vec<Arc<dyn ChatModel>>,
    pub proxy: Arc<dyn ChatModel>,
}

/// Everything that a run needs from the world.
#[derive(Clone)]
pub struct Outside {
    pub models: RoleModels,
    pub editor: Arc<dyn Editor>,
    /// Asked when [`Task::approval`] is [`Approval::Ask`].
    pub approver: Arc<dyn Approver>,
    pub tests: Arc<dyn TestRunner>,
    pub language: Arc<dyn LanguageService>,
    pub snapshot: Snapshot,
}

/// Why an undo was not made. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    #[error("there is no applied proposal {0}")]
    Unknown(ProposalId),
    #[error("{symbol} was changed by you since: {why}")]
    Conflict { symbol: SymbolPath, why: String },
    #[error("{0}")]
    Editor(String),
}

/// Controls a run. Dropping it does not end the run.
#[derive(Clone)]
pub struct RunHandle {
    pub id: RunId,
    pub log: EventLog,
}

impl RunHandle {
    /// Ends the run: no model call is started after this returns.
    pub fn cancel(&self) {
        todo!()
    }

    /// A message to one agent, or to all that work; taken at the next turn.
    pub fn steer(&self, to: Option<SymbolPath>, text: String) {
        todo!()
    }

    /// Takes one applied proposal back, or all of them (last first), by inverse changes of the
    /// agents' own spans, in the user's text as it is now.
    ///
    /// # Errors
    /// See [`UndoError`].
    pub async fn undo(&self, proposal: Option<ProposalId>) -> Result<Vec<ProposalId>, UndoError> {
        todo!()
    }

    /// Waits for the end of the run.
    pub async fn finished(&self) {
        todo!()
    }
}

/// Starts a run on the current runtime and returns at once. Everything after is in the log, which is
/// closed after [`super::Event::RunFinished`].
pub fn start(id: RunId, task: Task, outside: Outside) -> RunHandle {
    todo!()
}
