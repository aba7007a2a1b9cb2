//! The requests by which a client that draws its own views, or attaches late, learns how things stand.

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

/// The answer to `starling/state`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StateReply {
    pub runs: Vec<RunSnapshot>,
    pub asks: Vec<AskSnapshot>,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    Opening,
    Going,
    Ended,
}

/// A run as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSnapshot {
    pub run: RunId,
    pub task: String,
    pub stage: RunStage,
    /// It is one of an earlier server.
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
    /// How the run ended, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    /// What can be done, where the model could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

/// What an agent does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSnapshot {
    pub agent: ActorId,
    pub doing: String,
    pub working: bool,
    /// For how long it does that; 0 for one that is not at work.
    pub seconds: u64,
    /// What it read, searched and ran last, the newest at the end.
    pub looked: Vec<String>,
}

/// A proposal as it stands.
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
    /// Why it does not fit what was typed since.
    pub conflict: Option<String>,
}

/// A question as it stands.
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

/// The answer to `starling/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsReply {
    pub events: Vec<EventParams>,
}

/// The answer to `starling/proposal`: a proposal against the text as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposalReply {
    #[serde(flatten)]
    pub state: ProposalSnapshot,
    pub evidence: Option<Evidence>,
    pub diff: String,
    /// Reason and evidence in Markdown.
    pub summary: String,
    pub files: Vec<ProposedFile>,
}

/// A file of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedFile {
    pub uri: Url,
    pub version: Option<i32>,
    pub creates: bool,
    pub before: String,
    /// `None` when it conflicts.
    pub after: Option<String>,
    pub conflict: Option<String>,
    /// The text as it was proposed, where that conflicts with the text as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<String>,
    /// What changes, in `before`.
    pub ranges: Vec<Range>,
}

#[derive(Debug)]
pub enum StatusNotification {}
impl Notification for StatusNotification {
    type Params = StatusParams;
    const METHOD: &'static str = "starling/status";
}
