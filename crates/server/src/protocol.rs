//! Starling's extensions of the LSP: arguments of commands, requests and notifications. The server
//! and Starling's own client use these types; `docs/protocol.md` describes them for other clients.

mod ask;
mod bridge;
mod client;
mod compose;
mod state;

use super::session::messages::objects;
use serde::{Deserialize, Serialize};
use tower_lsp::lsp_types::Url;
use tower_lsp::lsp_types::notification::Notification;

pub use super::session::Remedy;
pub use super::session::messages::{
    AcceptAllReply, DownloadParams, EventParams, IntentParams, LimitsPatch, ModelItem, ModelsReply,
    ProposalParams, ProviderKey, RemedyParams, RetryParams, RunParams, RunReply, StatusParams,
    UndoneParams,
};
use starling_swarm::{ProposalId, RunId};
use starling_syntax::SymbolPath;

pub use ask::{AnswerNotification, AnswerParams, AnswerUpdate, AskId, AskParams, AskReply};
pub use bridge::{
    BridgeDefinition, BridgeDiagnostics, BridgeImplementation, BridgeParams, BridgeReferences,
    EditorProvider,
};
pub use client::ClientCommand;
pub use compose::{MENTIONS, MODELS, MentionItem, MentionsParams, MentionsReply};
pub use state::{
    AgentSnapshot, AskSnapshot, EVENTS, EventsParams, EventsReply, PROPOSAL, ProposalReply,
    ProposalSnapshot, ProposedFile, RunSnapshot, RunStage, STATE, StateReply, StatusNotification,
};

pub const RUN: &str = "starling.run";
pub const ACCEPT: &str = "starling.accept";
pub const REJECT: &str = "starling.reject";
pub const STEER: &str = "starling.steer";
pub const EDIT: &str = "starling.edit";
pub const CANCEL: &str = "starling.cancel";
pub const UNDO: &str = "starling.undo";
pub const ACCEPT_ALL: &str = "starling.acceptAll";
pub const ASK: &str = "starling.ask";
pub const REVIEW: &str = "starling.review";
pub const DIFF: &str = "starling.diff";
pub const WHY: &str = "starling.why";
pub const RETRY: &str = "starling.retry";
pub const FORGET: &str = "starling.forget";

/// All commands, as the server announces them.
pub const COMMANDS: [&str; 14] = [
    RUN, ACCEPT, ACCEPT_ALL, REJECT, STEER, EDIT, CANCEL, UNDO, ASK, REVIEW, DIFF, WHY, RETRY,
    FORGET,
];

/// Arguments of `starling.accept`. They name a waiting proposal, or the symbol whose agent waits
/// for an answer to its intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptParams {
    pub run: RunId,
    #[serde(flatten)]
    pub target: TargetParams,
}

/// Arguments of `starling.reject`. Without a reason, the user is asked for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectParams {
    pub run: RunId,
    #[serde(flatten)]
    pub target: TargetParams,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Arguments of `starling.acceptAll`: one run, or all runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptAllParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// Arguments of `starling.steer`, which sends a message to agents: the agent of a waiting proposal
/// (`proposal`), the agent or the waiting intent of a symbol (`symbol`), or, if neither is given,
/// all agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteerParams {
    pub run: RunId,
    #[serde(flatten)]
    pub target: TargetParams,
    pub text: String,
}

/// Arguments of `starling.edit`: the user's version of a waiting proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditParams {
    pub run: RunId,
    pub proposal: ProposalId,
    /// The version of the proposal that the user edited: the number of the `review_asked` event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Files that are changed by the proposal or by another proposal that is applied only together
    /// with it. Files that are left out stay as proposed.
    #[serde(deserialize_with = "objects")]
    pub files: Vec<EditedDocument>,
}

/// A whole file of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditedDocument {
    pub uri: Url,
    /// The text without the change, as given in `before` of the reply to `starling/proposal`.
    pub before: String,
    /// The text with the change, as the user wants it.
    pub text: String,
}

/// The review that the user answers: of a proposal, or of the intent of a symbol's agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<ProposalId>,
    /// The version of the proposal that was shown: the number of the `review_asked` event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<SymbolPath>,
    /// The intent that was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
}

/// Arguments of `starling.cancel`: a run or a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskId>,
    /// Keep the run's waiting proposals and offer them again later, instead of rejecting them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_reviews: bool,
}

/// Arguments of `starling.undo`: one applied proposal, or, without `proposal`, all applied
/// proposals of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoParams {
    pub run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<ProposalId>,
}

/// Arguments of `starling.forget`: an empty object, or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgetParams {}

/// The notification `starling/event`, which reports an event of a run.
#[derive(Debug)]
pub enum EventNotification {}
impl Notification for EventNotification {
    type Params = EventParams;
    const METHOD: &'static str = "starling/event";
}

/// The notification `starling/remedy`, which reports what the user can do about a run whose model
/// was not available.
#[derive(Debug)]
pub enum RemedyNotification {}
impl Notification for RemedyNotification {
    type Params = RemedyParams;
    const METHOD: &'static str = "starling/remedy";
}

/// The notification `starling/download`, which reports the progress of a download.
#[derive(Debug)]
pub enum DownloadNotification {}
impl Notification for DownloadNotification {
    type Params = DownloadParams;
    const METHOD: &'static str = "starling/download";
}

/// The notification `starling/intent`, which reports that an agent waits for an answer to its
/// intent.
#[derive(Debug)]
pub enum IntentNotification {}
impl Notification for IntentNotification {
    type Params = IntentParams;
    const METHOD: &'static str = "starling/intent";
}

/// The notification `starling/undone`, which reports the result of an undo.
#[derive(Debug)]
pub enum UndoneNotification {}
impl Notification for UndoneNotification {
    type Params = UndoneParams;
    const METHOD: &'static str = "starling/undone";
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_swarm::Event;

    const MANUAL: &str = include_str!("../../../docs/protocol.md");

    /// Returns the names of all events as serde lists them.
    fn event_names() -> Vec<String> {
        let unknown = serde_json::json!({"event": "?"});
        let error = serde_json::from_value::<Event>(unknown)
            .unwrap_err()
            .to_string();
        let names = error.split('`').skip(3).step_by(2);
        names.map(str::to_owned).collect()
    }

    #[test]
    fn every_event_command_and_notification_is_in_the_protocol_documentation() {
        let events = event_names();
        assert!(events.len() > 20, "{events:?}");
        let sent = [
            EventNotification::METHOD,
            IntentNotification::METHOD,
            UndoneNotification::METHOD,
            RemedyNotification::METHOD,
            DownloadNotification::METHOD,
            AnswerNotification::METHOD,
            StatusNotification::METHOD,
            STATE,
            EVENTS,
            PROPOSAL,
            MENTIONS,
            MODELS,
        ];
        let names = events
            .iter()
            .map(String::as_str)
            .chain(COMMANDS)
            .chain(ClientCommand::ALL.map(ClientCommand::name))
            .chain(sent);
        let missing: Vec<&str> = names
            .filter(|name| !MANUAL.contains(&format!("`{name}`")))
            .collect();
        assert_eq!(missing, [""; 0], "not in docs/protocol.md");
    }

    #[test]
    fn unset_fields_of_run_parameters_are_not_serialized() {
        let params = RunParams {
            task: "x".to_owned(),
            ..RunParams::default()
        };
        let sent = serde_json::to_value(&params).unwrap();
        assert_eq!(sent, serde_json::json!({"task": "x", "limits": {}}));
        assert_eq!(serde_json::from_value::<RunParams>(sent).unwrap(), params);
    }
}
