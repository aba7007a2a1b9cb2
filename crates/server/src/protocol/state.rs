//! Requests of clients with views of their own, and of clients that connect late.

use serde::{Deserialize, Serialize};
use tower_lsp::lsp_types::notification::Notification;
use tower_lsp::lsp_types::{Range, Url};

use super::{AskId, EventParams};
use crate::session::messages::StatusParams;
use crate::session::{ProposalStatus, Remedy, Spending};
use starling_core::{IntentView, Limits};
use starling_swarm::{ActorId, Evidence, ProposalId, RunId, StopReason};
use starling_syntax::SymbolPath;

pub const STATE: &str = "starling/state";
pub const EVENTS: &str = "starling/events";
pub const PROPOSAL: &str = "starling/proposal";

/// The reply to `starling/state`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StateReply {
    pub runs: Vec<RunSnapshot>,
    pub asks: Vec<AskSnapshot>,
}

/// The stage of a run as sent to the client: being prepared, running, or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    Opening,
    Going,
    Ended,
}

/// A run and its current state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSnapshot {
    pub run: RunId,
    pub task: String,
    pub stage: RunStage,
    /// Whether the run was started by an earlier server.
    pub restored: bool,
    pub trajectory: std::path::PathBuf,
    pub seq: Option<u64>,
    pub agents: Vec<AgentSnapshot>,
    pub proposals: Vec<ProposalSnapshot>,
    pub intents: Vec<IntentView>,
    pub spent: Spending,
    pub limits: Option<Limits>,
    pub stop_reason: Option<StopReason>,
    pub summary: Option<String>,
    /// The result of the run in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    /// What the user can do, if the run ended because its model was not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

/// The current activity of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSnapshot {
    pub agent: ActorId,
    pub doing: String,
    pub working: bool,
    /// Seconds since the activity began; 0 if the agent does not work.
    pub seconds: u64,
    /// Descriptions of the agent's last lookups, searches and test runs, the newest at the end.
    pub looked: Vec<String>,
}

/// A proposal and its current state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalSnapshot {
    pub proposal: ProposalId,
    pub agent: ActorId,
    pub symbol: SymbolPath,
    pub symbols: Vec<SymbolPath>,
    pub reason: String,
    pub with: Vec<ProposalId>,
    pub revises: Option<ProposalId>,
    pub uris: Vec<Url>,
    pub state: ProposalStatus,
    /// The number of the last `review_asked` event of the proposal or its set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Why the proposal conflicts with text that the user typed after the proposal was made.
    pub conflict: Option<String>,
}

/// A question and its current state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskSnapshot {
    pub ask: AskId,
    pub question: String,
    pub session: Option<String>,
    pub ended: bool,
}

/// Arguments of `starling/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsParams {
    pub run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// The reply to `starling/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsReply {
    pub events: Vec<EventParams>,
}

/// The reply to `starling/proposal`: a proposal whose changes are applied to the current texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposalReply {
    #[serde(flatten)]
    pub state: ProposalSnapshot,
    pub evidence: Option<Evidence>,
    pub diff: String,
    /// The reason and the evidence in Markdown.
    pub summary: String,
    pub files: Vec<ProposedFile>,
}

/// A file of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedFile {
    pub uri: Url,
    pub version: Option<i32>,
    pub creates: bool,
    /// Whether the proposal deletes the file. `after` is then empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletes: bool,
    pub before: String,
    /// The text with the proposal; `None` if there is a conflict.
    pub after: Option<String>,
    pub conflict: Option<String>,
    /// The text as it was proposed, if it conflicts with the current text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<String>,
    /// The ranges of `before` that change.
    pub ranges: Vec<Range>,
}

/// The notification `starling/status`, which contains the text of a status line.
#[derive(Debug)]
pub enum StatusNotification {}
impl Notification for StatusNotification {
    type Params = StatusParams;
    const METHOD: &'static str = "starling/status";
}
