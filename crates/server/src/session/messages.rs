//! Requests to a session and reports from it. The LSP protocol sends these types as they are.

use std::path::PathBuf;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::remedy::Remedy;
use starling_core::{Approval, AskIntent, Dollars, Driver, IntentView, Limits, Tokens};
use starling_swarm::{Event, ProposalId, Refactoring, RequestParams, RunId};
use starling_syntax::SymbolPath;

/// Arguments of `starling.run`. Fields that are left out come from the configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunParams {
    pub task: String,
    /// The refactoring that `task` describes. It is carried out without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refactoring: Option<Refactoring>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_intent: Option<AskIntent>,
    #[serde(default, deserialize_with = "object")]
    pub limits: LimitsPatch,
    /// Begin at these symbols instead of asking the scout (the agent that picks symbols).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begin: Vec<SymbolPath>,
    /// The model for all roles, as `--model` takes it. Default: the model with which the server was
    /// started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The test command. Default: the command that is detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// If no person reviews changes, apply only changes for which a test fails before the change
    /// and passes after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_tests: bool,
}

impl RunParams {
    /// Returns the parameters as they are recorded in the trajectory, which contains the task
    /// beside them.
    pub fn to_record(&self) -> Option<RequestParams> {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut params)) => {
                params.remove("task");
                Some(params)
            }
            Ok(_) | Err(_) => None,
        }
    }

    /// Reads the parameters that [`RunParams::to_record`] returned. Returns `None` if another
    /// version recorded parameters that this version does not know.
    pub fn from_record(task: String, recorded: &RequestParams) -> Option<RunParams> {
        let mut params = recorded.clone();
        params.insert("task".to_owned(), Value::String(task));
        serde_json::from_value(Value::Object(params)).ok()
    }
}

/// Deserializes a value from an object. Derived implementations also accept an array of the fields.
pub fn object<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let object = Map::deserialize(input)?;
    T::deserialize(Value::Object(object)).map_err(D::Error::custom)
}

/// Like [`object`], for an array of objects.
pub fn objects<'de, D, T>(input: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let objects = Vec::<Map<String, Value>>::deserialize(input)?;
    let object = |one| T::deserialize(Value::Object(one)).map_err(D::Error::custom);
    objects.into_iter().map(object).collect()
}

/// Limits that replace the defaults.
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
    /// Returns a patch that sets all limits.
    pub fn all(limits: &Limits) -> LimitsPatch {
        LimitsPatch {
            calls: Some(limits.calls),
            tokens: Some(limits.tokens),
            dollars: limits.dollars,
            seconds: Some(limits.seconds),
            messages: Some(limits.messages),
            agents: Some(limits.agents),
            depth: Some(limits.depth),
            turns: Some(limits.turns),
            repairs: Some(limits.repairs),
        }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// Returns a message if a limit is not a valid amount.
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

/// The reply to `starling.run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReply {
    pub run: RunId,
    /// The path of the trajectory.
    pub trajectory: PathBuf,
}

/// The reply to `starling.acceptAll`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptAllReply {
    pub accepted: Vec<ProposalParams>,
}

/// Arguments of `starling.retry`: start the task of a run again as a new run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryParams {
    pub run: RunId,
    /// Download the weights of the local model first, if the run did not find them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub download: bool,
    /// The model for all roles. Default: the model of the run that is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// `starling/remedy`: a run ended because its model was not available. `starling.retry` starts the
/// task again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemedyParams {
    pub run: RunId,
    pub task: String,
    /// The error message.
    pub message: String,
    #[serde(flatten)]
    pub remedy: Remedy,
}

/// `starling/download`: the progress of a download that a run waits for, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DownloadParams {
    pub run: RunId,
    pub model: String,
    pub bytes: u64,
    pub total: u64,
}

/// `starling/event`: an event of a run. `seq` increases within a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventParams {
    pub run: RunId,
    pub seq: u64,
    pub at_ms: u64,
    pub event: Event,
}

/// `starling/intent`: an agent waits for an answer to its intent (accept, reject or steer by
/// `symbol`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentParams {
    pub run: RunId,
    #[serde(flatten)]
    pub view: IntentView,
}

/// `starling/undone`: the result of `starling.undo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneParams {
    pub run: RunId,
    /// The proposals that were undone.
    pub proposals: Vec<ProposalId>,
    /// Which proposals were not undone, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A warning that the code may be broken, because a proposal was undone on which other applied
    /// proposals depend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Identifies a proposal: the argument of `starling.review`, `starling.diff`, `starling.why` and
/// `starling/proposal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposalParams {
    pub run: RunId,
    pub proposal: ProposalId,
}

/// `starling/status`: the content of a status line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusParams {
    /// The text to show; empty if no run or question is active.
    pub text: String,
    pub runs: usize,
    pub working: usize,
    pub waiting: usize,
    pub asks: usize,
    pub calls: u32,
    pub tokens: Tokens,
    /// `None` while no price is known.
    pub dollars: Option<Dollars>,
    /// Messages about project settings that are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// The reply to `starling/models`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelsReply {
    /// The model of runs whose request names none; null if the configuration does not decide.
    pub chosen: Option<String>,
    /// The models that a request can name: those of the configuration, then `local`.
    pub models: Vec<ModelItem>,
    /// The providers whose keys are in the server's environment.
    pub keys: Vec<ProviderKey>,
}

/// A model that a request can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelItem {
    pub name: String,
    /// A description of the model.
    pub detail: String,
}

/// A provider whose key is in the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderKey {
    pub provider: String,
    /// The environment variable that contains the key.
    pub variable: String,
    /// The prefix of this provider's models, as `--model` takes it; null if the provider has to be
    /// configured first.
    pub prefix: Option<String>,
}
