//! Converts HTTP and server errors to [`ModelError`].

use std::time::Duration;

use serde_json::Value;

use super::secret::SecretMasker;
use super::transport::HttpFailure;
use starling_core::{ModelError, ModelProfile, Tokens};

/// Maximum number of characters kept of a server's error message.
const MESSAGE_CHARS: usize = 400;
/// Maximum number of characters quoted of an unreadable answer.
const QUOTED_CHARS: usize = 120;

/// Converts the failures of one model to [`ModelError`]s, without secrets.
pub(super) struct ErrorMapper {
    model: String,
    /// The address of the endpoint, without secrets.
    address: String,
    secrets: SecretMasker,
    window: Tokens,
}

impl ErrorMapper {
    pub fn new(profile: &ModelProfile, address: String, secrets: SecretMasker) -> Self {
        ErrorMapper {
            model: profile.name.clone(),
            address,
            secrets,
            window: profile.context_window,
        }
    }

    pub fn of(&self, failure: HttpFailure) -> ModelError {
        match failure {
            HttpFailure::Status {
                status,
                retry_after,
                body,
            } => self.of_status(status, retry_after, &body),
            HttpFailure::Redirect { status, location } => ModelError::Refused {
                model: self.model.clone(),
                status,
                message: self.redirected(&location),
            },
            HttpFailure::NoConnection(message) => ModelError::Unreachable {
                model: self.model.clone(),
                message: format!(
                    "{}: {}; is the server running, is base_url (or OPENAI_BASE_URL) right, is a \
                     proxy needed?",
                    self.address,
                    self.shown(&message, MESSAGE_CHARS)
                ),
            },
            HttpFailure::Connection(message) => self.transport(&message),
            HttpFailure::NotChat(body) => self.malformed(format!(
                "expected a chat completion from {}, got {:?}; check base_url (it often ends in /v1)",
                self.address,
                self.shown(&body, QUOTED_CHARS)
            )),
            HttpFailure::TooLarge(what) => {
                self.malformed(format!("{} sent {what}; the rest was not read", self.address))
            }
        }
    }

    /// Returns the error for a chunk that is not valid JSON.
    pub fn unreadable(&self, error: &serde_json::Error, piece: &str) -> ModelError {
        self.malformed(format!("{error} in {:?}", self.shown(piece, QUOTED_CHARS)))
    }

    /// Returns the error for an answer that far exceeds the requested limit.
    pub fn endless(&self, received: Tokens) -> ModelError {
        ModelError::Endless {
            model: self.model.clone(),
            message: format!(
                "{} continues its answer far beyond the requested limit (raise models.NAME.max_output \
                 where answers are meant to be that long)",
                self.address
            ),
            output: received,
        }
    }

    /// Returns a server's text for display: with keys masked, and shortened.
    fn shown(&self, text: &str, most: usize) -> String {
        // Mask before shortening, because a cut could leave a part of the key.
        self.secrets.mask(text).trim().chars().take(most).collect()
    }

    fn redirected(&self, location: &str) -> String {
        let to = match reqwest::Url::parse(location) {
            Ok(mut url) => {
                url.set_query(None);
                url.set_fragment(None);
                self.shown(url.as_str(), MESSAGE_CHARS)
            }
            Err(_) => "elsewhere".to_owned(),
        };
        format!(
            "{} redirects to {to}; a prompt is sent to no other address than base_url: set it to the \
             address that answers",
            self.address
        )
    }

    /// Returns the error for an error object that the server sent instead of a chunk.
    pub fn in_stream(&self, error: &Value) -> ModelError {
        let status = ["code", "status", "status_code"]
            .iter()
            .filter_map(|field| error.get(field))
            .find_map(|code| {
                code.as_u64()
                    .or_else(|| code.as_str().and_then(|text| text.parse().ok()))
            })
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (400..600).contains(code))
            .unwrap_or(500);
        self.of_status(
            status,
            None,
            &serde_json::json!({ "error": error }).to_string(),
        )
    }

    /// Returns the error for a stream that ended before the model stopped.
    pub fn cut(&self) -> ModelError {
        self.transport("the stream ended in the middle of the answer")
    }

    fn of_status(&self, status: u16, retry_after: Option<Duration>, body: &str) -> ModelError {
        let said = ServerMessage::read(body);
        let model = self.model.clone();
        let message = match self.shown(&said.message, MESSAGE_CHARS) {
            empty if empty.is_empty() => "the server gave no details".to_owned(),
            message => message,
        };
        let address = &self.address;
        match status {
            400 | 413 | 422 | 500 if said.is_too_long() || status == 413 => ModelError::TooLong {
                model,
                prompt: Tokens(0),
                window: self.window,
                message,
            },
            400..=501 if said.is_without_tools() => ModelError::NoTools { model, message },
            429 if said.kind.contains("insufficient_quota") => ModelError::Refused {
                model,
                status,
                message: format!("{message} (from {address}: its account has no quota left)"),
            },
            429 => ModelError::RateLimited {
                model,
                retry_after,
                message,
            },
            408 | 409 | 425 | 500.. => ModelError::Server {
                model,
                status,
                message: match retry_after {
                    Some(wait) => format!("{message} (it asks to wait {} s)", wait.as_secs()),
                    None => message,
                },
            },
            _ => ModelError::Refused {
                model,
                status,
                message: match hint(status) {
                    Some(hint) => format!("{message} (from {address}: {hint})"),
                    None => message,
                },
            },
        }
    }

    fn transport(&self, message: &str) -> ModelError {
        let message = self.shown(message, MESSAGE_CHARS);
        ModelError::Transport {
            model: self.model.clone(),
            message: format!("{}: {message}", self.address),
        }
    }

    fn malformed(&self, message: String) -> ModelError {
        ModelError::Malformed {
            model: self.model.clone(),
            message,
        }
    }
}

/// Adds the estimated prompt length to an error, because only the caller knows it.
pub(super) fn with_prompt(error: ModelError, estimate: Tokens) -> ModelError {
    match error {
        ModelError::TooLong {
            model,
            window,
            message,
            ..
        } => ModelError::TooLong {
            model,
            prompt: estimate,
            window,
            message,
        },
        other @ (ModelError::RateLimited { .. }
        | ModelError::Server { .. }
        | ModelError::Timeout { .. }
        | ModelError::Unreachable { .. }
        | ModelError::Transport { .. }
        | ModelError::Refused { .. }
        | ModelError::Malformed { .. }
        | ModelError::Endless { .. }
        | ModelError::NoTools { .. }
        | ModelError::Unavailable { .. }) => other,
    }
}

fn hint(status: u16) -> Option<&'static str> {
    match status {
        401 | 403 => {
            Some("check the key in the variable that api_key_env names, else in OPENAI_API_KEY")
        }
        402 => Some("the account has no credit left: add some, or name another model"),
        404 => Some("check base_url and model"),
        _ => None,
    }
}

/// Returns an error message with all its causes, because the outermost error alone is not helpful.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// An error message from a server, parsed from any of the known formats.
struct ServerMessage {
    message: String,
    /// The error's codes and types in lower case.
    kind: String,
}

impl ServerMessage {
    fn read(body: &str) -> ServerMessage {
        let json: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        // Some gateways wrap the error in a list.
        let root = json.get(0).unwrap_or(&json);
        let error = root.get("error").unwrap_or(root);
        let message = [
            error.as_str(),
            error.get("message").and_then(Value::as_str),
            root.get("message").and_then(Value::as_str),
            root.get("detail").and_then(Value::as_str),
        ]
        .into_iter()
        .flatten()
        .next()
        .unwrap_or(body);
        let kind = ["code", "type"]
            .iter()
            .filter_map(|field| error.get(field).and_then(Value::as_str))
            .collect::<Vec<_>>()
            .join(" ")
            .to_lowercase();
        ServerMessage {
            message: message.to_owned(),
            kind,
        }
    }

    /// Whether the server refuses the request because of its tools. The phrases are those of
    /// Ollama, vLLM, llama.cpp, OpenRouter and others.
    fn is_without_tools(&self) -> bool {
        const WORDS: [&str; 10] = [
            "does not support tool",
            "doesn't support tool",
            "do not support tool",
            "support tool use",
            "does not support function",
            "tools are not supported",
            "tool calling is not supported",
            "tool use is not supported",
            "tool choice requires",
            "tools param requires",
        ];
        let message = self.message.to_lowercase();
        WORDS.iter().any(|words| message.contains(words))
    }

    fn is_too_long(&self) -> bool {
        const CODES: [&str; 2] = ["context_length_exceeded", "exceed_context_size"];
        const WORDS: [&str; 6] = [
            "maximum context length",
            "context length exceeded",
            "context window",
            "context size",
            "prompt is too long",
            "input is too long",
        ];
        let message = self.message.to_lowercase();
        CODES.iter().any(|code| self.kind.contains(code))
            || WORDS.iter().any(|words| message.contains(words))
    }
}
