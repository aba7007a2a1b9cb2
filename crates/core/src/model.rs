//! The port to chat models: requests, replies, usage and the errors a caller can act on.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::cost::{Price, WorstCase};

/// A count of model tokens.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Tokens(pub u64);

impl Tokens {
    /// A cheap, slightly high guess for text that no tokenizer has seen: one token for 3.5 bytes.
    pub fn estimate(text: &str) -> Self {
        Tokens((text.len() as u64 * 2).div_ceil(7))
    }

    pub fn saturating_sub(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_sub(other.0))
    }
}

impl Add for Tokens {
    type Output = Tokens;
    fn add(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Tokens>>(iter: I) -> Tokens {
        iter.fold(Tokens(0), Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n}"),
            n => write!(f, "{:.1}k", n as f64 / 1000.0),
        }
    }
}

/// An amount of money in US dollars.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Dollars(pub f64);

impl Add for Dollars {
    type Output = Dollars;
    fn add(self, other: Dollars) -> Dollars {
        Dollars(self.0 + other.0)
    }
}

impl AddAssign for Dollars {
    fn add_assign(&mut self, other: Dollars) {
        self.0 += other.0;
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.0)
    }
}

/// What a model is asked to be. Each role has its own list of models to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Picks the symbols where work begins.
    Scout,
    /// Owns a symbol: reads, asks, proposes.
    Agent,
    /// Writes a candidate for a change that an agent has described.
    Editor,
    /// Stands in for the user: sees the task and the evidence, approves or not.
    Proxy,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    System {
        text: String,
    },
    User {
        text: String,
    },
    Assistant {
        text: String,
        tool_calls: Vec<ToolCall>,
    },
    /// The result of the tool call with this id.
    Tool {
        call_id: String,
        text: String,
    },
}

impl Message {
    /// The text of the message, without its tool calls.
    pub fn text(&self) -> &str {
        match self {
            Message::System { text }
            | Message::User { text }
            | Message::Assistant { text, .. }
            | Message::Tool { text, .. } => text,
        }
    }
}

/// A tool as it is described to a model. `parameters` is a JSON schema object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub parameters: serde_json::Value,
}

/// A call that a model asks for. `arguments` is JSON text as the model wrote it: it may be broken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// What the names of conversations begin with whose requests have a hole to fill.
pub const FILLING: &str = "fill ";

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// Names the conversation (for example `agent pkg/a.py::f`), the same for all its requests.
    /// A replay finds the recorded reply by it, a local model the cache of the prefix.
    pub conversation: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    pub max_output: Tokens,
    pub temperature: f32,
    pub seed: Option<u64>,
    /// The answer begins with this text, and ends where a code block that it opens is closed. A model in
    /// the process goes on from it; others are not told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub beginning: String,
    /// The text that comes after the answer, which fills the hole between `beginning` and it. Only for
    /// models that can ([`ChatModel::fills`]); their answer is what fills the hole alone, and the messages
    /// are the text of a file beside.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub following: String,
    /// The answer ends before any of these texts.
    pub stop: Vec<String>,
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    Stop,
    ToolCalls,
    /// Cut by the output limit.
    Length,
    /// Withheld by the provider's filter.
    Filtered,
}

/// Tokens of one request. `cached` is the part of `prompt` that the provider took from its cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt: Tokens,
    pub cached: Tokens,
    pub output: Tokens,
}

impl Add for Usage {
    type Output = Usage;
    fn add(self, other: Usage) -> Usage {
        Usage {
            prompt: self.prompt + other.prompt,
            cached: self.cached + other.cached,
            output: self.output + other.output,
        }
    }
}

/// A whole answer. `usage` and `cost` cover everything spent for it, retries and continuations
/// included; `calls` is the number of requests that reached a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    pub model: String,
    pub text: String,
    pub tool_calls: Vec<ToolCall>,
    pub finish: Finish,
    pub usage: Usage,
    pub cost: Dollars,
    pub calls: u32,
}

/// Why no answer came.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelError {
    #[error(
        "{model}: too many requests (429){}{}; try again later, raise network.attempts, or name a \
         fallback model in the configuration (roles.agent)",
        said(.message),
        wait(*.retry_after)
    )]
    RateLimited {
        model: String,
        retry_after: Option<Duration>,
        /// The server's own words; empty in older recordings.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    #[error("{model}: the server answered {status}: {message}")]
    Server {
        model: String,
        status: u16,
        message: String,
    },
    #[error("{model}: no answer within {} s", .after.as_secs())]
    Timeout { model: String, after: Duration },
    /// No connection could be made; nothing was sent.
    #[error("{model}: connection failed: {message}")]
    Unreachable { model: String, message: String },
    /// The connection broke after the request was sent, or the stream ended in the middle.
    #[error("{model}: connection failed: {message}")]
    Transport { model: String, message: String },
    /// The provider refuses this request; trying again cannot help.
    #[error("{model}: request refused ({status}): {message}")]
    Refused {
        model: String,
        status: u16,
        message: String,
    },
    /// The prompt is longer than the context window.
    #[error("{model}: {}", too_long(*.prompt, *.window, .message))]
    TooLong {
        model: String,
        /// An upper bound where a server refused the prompt.
        prompt: Tokens,
        /// As configured.
        window: Tokens,
        /// The server's own words; empty where no server was asked.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The server refuses requests with tools. The adapter has changed its profile to
    /// [`ToolCalling::Text`]: the caller can ask again by the text protocol.
    #[error(
        "{model}: the model has no tool calling, says the server ({message}); from now on it is asked by \
         the text protocol, as with models.NAME.tool_calling = \"text\""
    )]
    NoTools { model: String, message: String },
    /// The answer could not be read as a chat completion.
    #[error("{model}: unreadable answer: {message}")]
    Malformed { model: String, message: String },
    /// The answer went on far beyond the limit that was asked for, and was cut.
    #[error("{model}: {message}; the answer was cut at about {output} tokens")]
    Endless {
        model: String,
        message: String,
        /// An upper bound of what had arrived.
        output: Tokens,
    },
    /// The model cannot be used at all (missing key, missing weights, unknown name).
    #[error("{model}: {message}")]
    Unavailable { model: String, message: String },
}

fn said(message: &str) -> String {
    match message {
        "" => String::new(),
        message => format!(": {message}"),
    }
}

fn too_long(prompt: Tokens, window: Tokens, message: &str) -> String {
    match message {
        "" if prompt > window => {
            format!("the prompt of {prompt} tokens is over the context window of {window}")
        }
        "" => format!(
            "the prompt of {prompt} tokens leaves no room for an answer in the context window of {window}"
        ),
        message => format!(
            "the server says that the prompt is too long: {message}; set models.NAME.context_window to \
             the window of the server ({window} are assumed), or raise the server's"
        ),
    }
}

fn wait(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) => format!("; the server asks to wait {} s", wait.as_secs_f64().ceil()),
        None => String::new(),
    }
}

impl ModelError {
    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            ModelError::RateLimited { .. }
            | ModelError::Server { .. }
            | ModelError::Timeout { .. }
            | ModelError::Unreachable { .. }
            | ModelError::Transport { .. }
            | ModelError::Malformed { .. } => true,
            ModelError::Refused { .. }
            | ModelError::TooLong { .. }
            | ModelError::NoTools { .. }
            // The next answer may cost as much.
            | ModelError::Endless { .. }
            | ModelError::Unavailable { .. } => false,
        }
    }
}

/// Something the user should see while a model call is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum ModelNotice {
    Retrying {
        model: String,
        attempt: u32,
        wait_ms: u64,
        error: String,
    },
    FellBack {
        from: String,
        to: String,
        error: String,
    },
    /// The answer was cut by the output limit and is being continued; `joined` characters so far.
    Continued { model: String, joined: usize },
    /// A model is made ready, for example weights are loaded.
    Preparing { model: String, message: String },
}

/// Watches one model call, and keeps its account: the caller of [`ChatModel::chat`] has room in its
/// budget for one request to the model of [`ChatModel::profile`]. A layer that sends several requests
/// (retries, fallbacks, continuations) reports the end of each and reserves the next.
#[async_trait]
pub trait ChatWatch: Send + Sync {
    /// A piece of the answer, as it streams. Returns at once.
    fn delta(&self, text: &str);
    /// Returns at once.
    fn notice(&self, notice: ModelNotice);
    /// One request has ended. Two layers may report the same end; the second report is ignored.
    fn request_ended(&self, _end: Result<&ChatReply, &ModelError>) {}
    /// Reserves one more request, and returns the longest answer that it may ask for. Waits while
    /// the room is held by other calls. `None`: the budget has no room, and the request must not be
    /// sent.
    async fn reserve(&self, next: &WorstCase) -> Option<Tokens> {
        Some(next.output)
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWatch;

impl ChatWatch for NoWatch {
    fn delta(&self, _text: &str) {}
    fn notice(&self, _notice: ModelNotice) {}
}

/// How tools are offered to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCalling {
    /// By the provider's own tool calling.
    Native,
    /// By a plain text protocol in the prompt.
    Text,
}

/// What a model can do and costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelProfile {
    /// The name as the user configured it.
    pub name: String,
    /// Prompt and answer together.
    pub context_window: Tokens,
    /// The longest single answer.
    pub max_output: Tokens,
    pub tool_calling: ToolCalling,
    /// Answers come from a recording. Surfaces must say so.
    pub replayed: bool,
    /// `None` when the price is unknown; a limit in dollars then refuses the model.
    pub price: Option<Price>,
}

/// A chat model. Dropping the future of [`ChatModel::chat`] ends the call.
#[async_trait]
pub trait ChatModel: Send + Sync {
    fn profile(&self) -> &ModelProfile;

    /// Whether it fills a hole in a text ([`ChatRequest::following`]).
    fn fills(&self) -> bool {
        false
    }

    /// Answers one request.
    ///
    /// # Errors
    /// See [`ModelError`]; an adapter reports what happened and does not retry by itself, the
    /// layers in `model` do.
    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError>;
}

/// One finished call as a trajectory keeps it and a replay reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    pub conversation: String,
    pub role: Role,
    /// Counts the calls of this conversation from 0.
    pub ordinal: u32,
    /// The messages of the request that the previous exchange of the conversation did not hold.
    pub prompt: Vec<Message>,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
    /// What the model could do; a replay answers as such a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<(ToolCalling, Tokens)>,
    pub reply: Result<ChatReply, ModelError>,
    pub millis: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_estimate_rounds_up_and_token_sums_saturate() {
        assert_eq!(Tokens::estimate(""), Tokens(0));
        assert_eq!(Tokens::estimate("a"), Tokens(1));
        assert_eq!(Tokens::estimate(&"a".repeat(7)), Tokens(2));
        assert_eq!(Tokens::estimate(&"a".repeat(8)), Tokens(3));
        assert_eq!(Tokens(u64::MAX) + Tokens(1), Tokens(u64::MAX));
        assert_eq!(Tokens(1).saturating_sub(Tokens(2)), Tokens(0));
        assert_eq!(
            [Tokens(1), Tokens(2)].into_iter().sum::<Tokens>(),
            Tokens(3)
        );
    }

    #[test]
    fn tokens_and_dollars_are_formatted_for_display() {
        assert_eq!(Tokens(9_999).to_string(), "9999");
        assert_eq!(Tokens(10_000).to_string(), "10.0k");
        assert_eq!(Tokens(123_456).to_string(), "123.5k");
        assert_eq!((Dollars(0.5) + Dollars(0.25)).to_string(), "$0.7500");
    }

    #[test]
    fn too_long_error_states_the_measured_cause() {
        let told = |prompt, message: &str| {
            let error = ModelError::TooLong {
                model: "m".to_owned(),
                prompt: Tokens(prompt),
                window: Tokens(32_768),
                message: message.to_owned(),
            };
            error.to_string()
        };
        let over = "m: the prompt of 40.0k tokens is over the context window of 32.8k";
        assert_eq!(told(40_000, ""), over);
        let said = told(1_340, "maximum context length is 1024 tokens");
        assert!(
            said.contains(
                "too long: maximum context length is 1024 tokens; set models.NAME.context_window"
            ) && !said.contains("1340"),
            "{said}"
        );
        assert!(told(32_000, "").contains("leaves no room for an answer"));
    }

    #[test]
    fn only_temporary_errors_are_transient() {
        let model = || "m".to_owned();
        let message = || "x".to_owned();
        let passing = [
            ModelError::RateLimited {
                model: model(),
                retry_after: None,
                message: String::new(),
            },
            ModelError::Server {
                model: model(),
                status: 500,
                message: message(),
            },
            ModelError::Timeout {
                model: model(),
                after: Duration::from_secs(1),
            },
            ModelError::Transport {
                model: model(),
                message: message(),
            },
            ModelError::Malformed {
                model: model(),
                message: message(),
            },
        ];
        assert!(passing.iter().all(ModelError::is_transient));
        let lasting = [
            ModelError::Refused {
                model: model(),
                status: 401,
                message: message(),
            },
            ModelError::TooLong {
                model: model(),
                prompt: Tokens(2),
                window: Tokens(1),
                message: String::new(),
            },
            ModelError::NoTools {
                model: model(),
                message: message(),
            },
            ModelError::Unavailable {
                model: model(),
                message: message(),
            },
        ];
        assert!(!lasting.iter().any(ModelError::is_transient));
        for error in passing.iter().chain(&lasting) {
            assert!(
                error.to_string().starts_with("m: "),
                "it names the model: {error}"
            );
        }
    }
}
