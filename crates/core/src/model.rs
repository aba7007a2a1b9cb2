//! The interface to chat models: requests, replies, usage and the errors a caller can act on.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::cost::{Price, WorstCase};
use super::tokens::Tokens;

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

/// The role of a model. Each role has its own list of models to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Picks the symbols where work begins.
    Scout,
    /// Owns a symbol: reads code, asks other agents, proposes changes.
    Agent,
    /// Writes a candidate for a change that an agent has described.
    Editor,
    /// Approves or rejects in place of the user, from the task and the evidence.
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

/// The description of a tool for a model. `parameters` is a JSON schema object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub parameters: serde_json::Value,
}

/// A tool call by a model. `arguments` is the JSON text that the model wrote, which may be invalid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// Prefix of the names of conversations whose requests ask the model to fill a hole in a text
/// ([`ChatRequest::following`]).
pub const FILLING: &str = "fill ";

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The name of the conversation (for example `agent pkg/a.py::f`), equal for all its requests.
    /// A replay finds the recorded reply by this name, and a local model finds its prefix cache.
    pub conversation: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    pub max_output: Tokens,
    pub temperature: f32,
    /// The cumulative probability for top-p sampling. `None` selects the model's default. Only
    /// local models support this; other models ignore the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    pub seed: Option<u64>,
    /// The text with which the answer begins. The answer ends where a code block that is opened in
    /// this text is closed. Only local models support this; other models ignore the field.
    /// If there are no messages, this is the whole prompt, as plain text. The answer then continues
    /// the text without repeating it.
    /// repeating it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub beginning: String,
    /// The text after the hole that the answer fills; `beginning` is the text before the hole. Only
    /// for models with [`ChatModel::fills`]. Their answer contains only the text in the hole, and
    /// the messages contain the text of a neighbouring file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub following: String,
    /// The answer ends before any of these texts.
    pub stop: Vec<String>,
    /// The required format of the answer. Only local models enforce the format; other models ignore
    /// the field.
    #[serde(default, skip_serializing_if = "AnswerFormat::is_free")]
    pub format: AnswerFormat,
}

/// The format of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFormat {
    /// Text and calls of the request's tools.
    #[default]
    Free,
    /// At least one call of the request's tools, and no text.
    ToolCalls,
    /// A JSON value that follows this schema.
    Json(serde_json::Value),
}

impl AnswerFormat {
    fn is_free(&self) -> bool {
        *self == AnswerFormat::Free
    }
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    Stop,
    ToolCalls,
    /// The output limit was reached.
    Length,
    /// The provider's content filter withheld the answer.
    Filtered,
}

/// Token usage of one request. `cached` is the part of `prompt` that the provider took from its
/// cache.
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

/// A complete answer. `usage` and `cost` include retries and continuations; `calls` is the number
/// of requests that reached a provider.
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

/// Why a request has no answer.
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
        /// The server's message; empty in older recordings.
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
    /// The connection could not be established, so nothing was sent.
    #[error("{model}: connection failed: {message}")]
    Unreachable { model: String, message: String },
    /// The connection broke after the request was sent, or the stream ended in the middle.
    #[error("{model}: connection failed: {message}")]
    Transport { model: String, message: String },
    /// The provider rejected this request, and a retry cannot succeed.
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
        /// The prompt's length, or an upper bound if a server rejected the prompt.
        prompt: Tokens,
        /// The configured context window.
        window: Tokens,
        /// The server's message; empty if no request was sent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The server rejects requests with tools. The adapter has changed its profile to
    /// [`ToolCalling::Text`], so the caller can retry with the text protocol.
    #[error(
        "{model}: the server reports that the model does not support tool calling \
         ({message}); from now on tools are offered as text, as with \
         models.NAME.tool_calling = \"text\""
    )]
    NoTools { model: String, message: String },
    /// The answer is not a valid chat completion.
    #[error("{model}: unreadable answer: {message}")]
    Malformed { model: String, message: String },
    /// The answer far exceeded the requested limit and was cut.
    #[error("{model}: {message}; the answer was cut at about {output} tokens")]
    Endless {
        model: String,
        message: String,
        /// An upper bound of the received tokens.
        output: Tokens,
    },
    /// The model cannot be used at all (for example a missing key, missing weights, an unknown
    /// name).
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
            format!("the prompt of {prompt} tokens exceeds the context window of {window}")
        }
        "" => format!(
            "the prompt of {prompt} tokens leaves no room for an answer in the context window of {window}"
        ),
        message => format!(
            "the server says that the prompt is too long: {message}; set models.NAME.context_window to \
             the context window of the server (assumed: {window}), or enlarge the server's window"
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
    /// Whether the same request may succeed later.
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
            // The next answer could be as expensive.
            | ModelError::Endless { .. }
            | ModelError::Unavailable { .. } => false,
        }
    }
}

/// A notice to show to the user during a model call.
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
    /// The answer reached the output limit and is being continued; `joined` is the number of
    /// characters so far.
    Continued { model: String, joined: usize },
    /// A model is being prepared, for example its weights are being loaded.
    Preparing { model: String, message: String },
}

/// Observes one model call and accounts for its cost. The caller of [`ChatModel::chat`] has
/// reserved budget for one request to the model of [`ChatModel::profile`]. A layer that sends
/// several requests (retries, fallbacks, continuations) reports the end of each request and
/// reserves budget for the next one.
#[async_trait]
pub trait ChatWatch: Send + Sync {
    /// Called when the request leaves the queue and the model begins to process it. Only models in
    /// this process and local servers report this.
    fn started(&self) {}
    /// Receives a piece of the streamed answer. Must not block.
    fn delta(&self, text: &str);
    /// Receives a notice. Must not block.
    fn notice(&self, notice: ModelNotice);
    /// Receives the end of a request. If two layers report the same end, the second report is
    /// ignored.
    fn request_ended(&self, _end: Result<&ChatReply, &ModelError>) {}
    /// Reserves budget for one more request and returns the output limit that the request may use.
    /// Waits while other calls hold the remaining budget. Returns `None` if the remaining budget is
    /// too small; the request must then not be sent.
    async fn reserve(&self, next: &WorstCase) -> Option<Tokens> {
        Some(next.output)
    }
}

/// A [`ChatWatch`] that ignores everything.
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
    /// With the provider's native tool calling.
    Native,
    /// With a plain text protocol in the prompt.
    Text,
}

/// The capabilities and the price of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelProfile {
    /// The configured name of the model.
    pub name: String,
    /// Maximum length of prompt and answer together.
    pub context_window: Tokens,
    /// Maximum length of a single answer.
    pub max_output: Tokens,
    pub tool_calling: ToolCalling,
    /// Whether answers come from a recording. User interfaces must show this.
    pub replayed: bool,
    /// `None` if the price is unknown; a limit in dollars then rejects the model.
    pub price: Option<Price>,
}

/// A model without native tool calling counts as small if its context window is smaller than this.
const SMALL_WINDOW: Tokens = Tokens(20_000);

impl ModelProfile {
    /// Returns whether the model is small. The prompts of a small model contain one function and
    /// one question.
    pub fn is_small(&self) -> bool {
        self.tool_calling == ToolCalling::Text && self.context_window < SMALL_WINDOW
    }
}

/// A chat model. Dropping the future of [`ChatModel::chat`] ends the call.
#[async_trait]
pub trait ChatModel: Send + Sync {
    fn profile(&self) -> &ModelProfile;

    /// Returns whether the model can fill a hole in a text ([`ChatRequest::following`]).
    fn fills(&self) -> bool {
        false
    }

    /// Answers one request.
    ///
    /// # Errors
    /// See [`ModelError`]. An adapter does not retry; the layers in the `models` crate do.
    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError>;
}

/// A finished model call, as stored in a trajectory and read by a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    pub conversation: String,
    pub role: Role,
    /// Number of the call in its conversation, from 0.
    pub ordinal: u32,
    /// The messages that the conversation's previous exchange did not contain.
    pub prompt: Vec<Message>,
    /// Names of the offered tools.
    pub tools: Vec<String>,
    /// The tool calling and context window of the model. A replay of the recording reports the same
    /// values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<(ToolCalling, Tokens)>,
    pub reply: Result<ChatReply, ModelError>,
    pub millis: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_and_dollars_are_formatted_for_readers() {
        assert_eq!(Tokens(9_999).to_string(), "9999");
        assert_eq!(Tokens(10_000).to_string(), "10.0k");
        assert_eq!(Tokens(123_456).to_string(), "123.5k");
        assert_eq!((Dollars(0.5) + Dollars(0.25)).to_string(), "$0.7500");
    }

    #[test]
    fn too_long_error_distinguishes_a_long_prompt_from_missing_room_for_an_answer() {
        let told = |prompt, message: &str| {
            let error = ModelError::TooLong {
                model: "m".to_owned(),
                prompt: Tokens(prompt),
                window: Tokens(32_768),
                message: message.to_owned(),
            };
            error.to_string()
        };
        let over = "m: the prompt of 40.0k tokens exceeds the context window of 32.8k";
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
    fn server_and_connection_errors_are_transient_but_refusals_are_not() {
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
