//! Requests to a session and reports from it. The LSP protocol sends these types as they are.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::remedy::Remedy;
use starling_core::{Approval, AskIntent, Dollars, Driver, IntentView, Limits, Tokens};
use starling_swarm::{Event, ProposalId, RunId};
use starling_syntax::SymbolPath;

/// Arguments of `starling.run`. What is left out comes from the configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunParams {
    pub task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_intent: Option<AskIntent>,
    #[serde(default)]
    pub limits: LimitsPatch,
    /// Begin at these symbols instead of asking the scout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begin: Vec<SymbolPath>,
    /// The model for every part, as `--model` takes it; else the one that the server was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The test command, in place of the one that is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// Without a person who approves, a change that no test proves is not applied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_tests: bool,
}

/// The limits that a request changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsPatch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<Dollars>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repairs: Option<u32>,
}

impl LimitsPatch {
    /// # Errors
    /// A limit that is no amount, in words.
    pub fn check(&self) -> Result<(), String> {
        match self.dollars {
            Some(Dollars(dollars)) if !(dollars.is_finite() && dollars > 0.0) => Err(format!(
                "`limits.dollars` is {dollars}: write an amount over 0, for example 0.25"
            )),
            Some(_) | None => Ok(()),
        }
    }

    pub fn over(&self, base: &Limits) -> Limits {
        Limits {
            calls: self.calls.unwrap_or(base.calls),
            tokens: self.tokens.unwrap_or(base.tokens),
            dollars: self.dollars.or(base.dollars),
            seconds: self.seconds.unwrap_or(base.seconds),
            messages: self.messages.unwrap_or(base.messages),
            agents: self.agents.unwrap_or(base.agents),
            depth: self.depth.unwrap_or(base.depth),
            turns: self.turns.unwrap_or(base.turns),
            repairs: self.repairs.unwrap_or(base.repairs),
        }
    }
}

/// The answer to `starling.run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReply {
    pub run: RunId,
    /// Where the trajectory is written.
    pub trajectory: PathBuf,
}

/// The answer to `starling.acceptAll`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptAllReply {
    pub accepted: Vec<ProposalParams>,
}

/// Arguments of `starling.retry`: the task of a run is begun again as a new run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryParams {
    pub run: RunId,
    /// Fetch the weights of the local model first, which the run did not find.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub download: bool,
    /// The model for every part, in place of the one that the run was begun with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// `starling/remedy`: a run ended because its model could not be asked. The task is kept:
/// `starling.retry` begins it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemedyParams {
    pub run: RunId,
    pub task: String,
    /// What went wrong.
    pub message: String,
    #[serde(flatten)]
    pub remedy: Remedy,
}

/// `starling/download`: how far the weights are that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DownloadParams {
    pub run: RunId,
    pub model: String,
    pub bytes: u64,
    pub total: u64,
}

/// `starling/event`: one thing that happened in a run. `seq` rises within a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventParams {
    pub run: RunId,
    pub seq: u64,
    pub at_ms: u64,
    pub event: Event,
}

/// `starling/intent`: an agent waits for the answer to its intent (accept, reject or steer by
/// `symbol`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentParams {
    pub run: RunId,
    #[serde(flatten)]
    pub view: IntentView,
}

/// `starling/undone`: how a `starling.undo` ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneParams {
    pub run: RunId,
    /// What was taken back.
    pub proposals: Vec<ProposalId>,
    /// What was not taken back, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What may be broken, because a proposal was taken back alone that others belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Names a proposal: the argument of `starling.review`, `starling.diff`, `starling.why` and
/// `starling/proposal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposalParams {
    pub run: RunId,
    pub proposal: ProposalId,
}

/// `starling/status`: for a status line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusParams {
    /// Empty when there is nothing to tell.
    pub text: String,
    pub runs: usize,
    pub working: usize,
    pub waiting: usize,
    pub asks: usize,
    pub calls: u32,
    pub tokens: Tokens,
    /// `None` while no price is known.
    pub dollars: Option<Dollars>,
    /// What of the project's settings is not followed, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// The answer to `starling/models`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelsReply {
    /// The model that a run uses whose request names none; null where the configuration does not decide.
    pub chosen: Option<String>,
    /// Models that can be named: those of the configuration, then `local`.
    pub models: Vec<ModelItem>,
    /// Providers whose keys are in the server's environment.
    pub keys: Vec<ProviderKey>,
}

/// A model that a request can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelItem {
    pub name: String,
    /// What the name stands for, in words.
    pub detail: String,
}

/// A provider whose key is in the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderKey {
    pub provider: String,
    /// The environment variable that holds the key.
    pub variable: String,
    /// How the name of a model of this provider begins, as `--model` takes it; null where the provider
    /// has to be added to the configuration first.
    pub prefix: Option<String>,
}
