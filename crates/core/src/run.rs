//! How a run is driven and approved, and how much it may spend.

use serde::{Deserialize, Serialize};

use crate::{Dollars, Tokens};

/// The driver of a run: one agent for each symbol (`Swarm`), or one agent over all symbols (`Single`).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Driver {
    #[default]
    Swarm,
    Single,
}

impl Driver {
    /// The name in configuration files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Swarm => "swarm",
            Driver::Single => "single",
        }
    }
}

/// Who approves proposals: a person (`Ask`), a model that sees the task and the evidence (`Proxy`), or nobody, so
/// that every proposal that passes the checks is accepted (`Auto`).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Approval {
    #[default]
    Ask,
    Proxy,
    Auto,
}

impl Approval {
    /// Whether a person sees every proposal, and may accept one that breaks something.
    pub fn is_by_person(self) -> bool {
        match self {
            Approval::Ask => true,
            Approval::Proxy | Approval::Auto => false,
        }
    }
}

/// When the approver is asked about an intent before code is written: never, when an agent states one because its
/// change alters a contract (`Contract`), or before every change (`Always`).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum AskIntent {
    Never,
    #[default]
    Contract,
    Always,
}

/// Limits of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Maximum number of requests to models, including retries and continuations.
    pub calls: u32,
    /// Maximum number of tokens, prompts and answers together.
    pub tokens: Tokens,
    /// Maximum cost in dollars. Default: no limit. Needs a price for every model.
    pub dollars: Option<Dollars>,
    /// Maximum duration in seconds, from the request to the end.
    pub seconds: u64,
    /// Maximum number of questions and change requests between agents.
    pub messages: u32,
    /// Maximum number of agents that are started.
    pub agents: u32,
    /// Maximum length of a chain of agents that ask one another.
    pub depth: u32,
    /// Maximum number of turns of one agent.
    pub turns: u32,
    /// How many times one proposal may return to its agent after a failed check.
    pub repairs: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            calls: 60,
            tokens: Tokens(400_000),
            dollars: None,
            seconds: 1800,
            messages: 60,
            agents: 16,
            depth: 4,
            turns: 12,
            repairs: 3,
        }
    }
}
