//! The amounts that a run has spent, and the error that is returned at a budget limit.

use serde::{Deserialize, Serialize};

use starling_core::{Dollars, Tokens};

/// Minimum length of a reply that is worth a request. If the budget has no room for the full reply,
/// a shorter reply is requested, down to this length.
pub const SHORTEST_ANSWER: Tokens = Tokens(1_024);

/// Amounts that a run has spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub calls: u32,
    pub prompt_tokens: Tokens,
    pub cached_tokens: Tokens,
    pub output_tokens: Tokens,
    pub dollars: Dollars,
    /// Calls to models without a known price.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_calls: u32,
    /// The part of the token counts that is assumed: the worst cases of calls that were aborted, so
    /// that the provider did not report their usage.
    #[serde(default, skip_serializing_if = "is_none")]
    pub assumed_tokens: Tokens,
    pub seconds: f64,
    /// Seconds in which the run waited only for people. They do not count against the limit.
    pub waiting_seconds: f64,
    /// Seconds in which a model call was in progress.
    #[serde(default)]
    pub model_seconds: f64,
    /// Seconds in which tests were running.
    #[serde(default)]
    pub test_seconds: f64,
    /// Seconds in which a model call or tests were running. In the remaining time, Starling itself
    /// was working.
    #[serde(default)]
    pub outside_seconds: f64,
    pub messages: u32,
    pub agents: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_none(tokens: &Tokens) -> bool {
    tokens.0 == 0
}

/// The error returned when a limit of the budget is reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the budget is used up: {what}")]
pub struct Exhausted {
    pub what: String,
}

/// Total of the spent and reserved amounts at one point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Committed {
    pub calls: u32,
    pub tokens: Tokens,
    pub dollars: Dollars,
}

pub(super) fn exhausted(what: String) -> Exhausted {
    Exhausted { what }
}
