//! What went wrong, in the words of the port.

use std::time::Duration;

use async_openai::error::OpenAIError;
use serde_json::Value;

use super::transport::HttpFailure;
use crate::ports::{ModelError, ModelProfile, Tokens};

/// The most of a server's message that is kept.
const MESSAGE_CHARS: usize = 400;

/// Turns failures of one model into errors of the port.
pub(super) struct Failures {
    model: String,
    /// Where the endpoint is, without secrets.
    address: String,
    window: Tokens,
}

impl Failures {
    pub fn new(profile: &ModelProfile, address: String) -> Self {
        Failures {
            model: profile.name.clone(),
            address,
            window: profile.context_window,
        }
    }

    pub fn of(&self, error: OpenAIError) -> ModelError {
        match error {
            OpenAIError::Boxed(inner) => match inner.downcast::<HttpFailure>() {
                Ok(failure) => self.of_http(*failure),
                Err(other) => self.transport(other.to_string()),
            },
            OpenAIError::JSONDeserialize(error, content) => self.malformed(&format!(
                "{error} in {:?}",
                content.chars().take(120).collect::<String>()
            )),
            OpenAIError::StreamError(error) => self.transport(error.to_string()),
            OpenAIError::Reqwest(error) => self.transport(causes(&error.without_url())),
            OpenAIError::ApiError(error) => self.of_status(
                error.status_code.as_u16(),
                None,
                &error.api_error.message.clone(),
            ),
            OpenAIError::InvalidArgument(message)
            | OpenAIError::FileSaveError(message)
            | OpenAIError::FileReadError(message) => self.malformed(&message),
        }
    }

    fn of_http(&self, failure: HttpFailure) -> ModelError {
        match failure {
            HttpFailure::Status {
                status,
                retry_after,
                body,
            } => self.of_status(status, retry_after, &body),
            HttpFailure::NoConnection(message) => self.transport(format!(
                "{message}; is the server running, is base_url (or OPENAI_BASE_URL) right, is a \
                 proxy needed?"
            )),
            HttpFailure::Connection(message) => self.transport(message),
            HttpFailure::NotChat(body) => self.malformed(&format!(
                "expected a chat completion from {}, got {:?}; check base_url (it often ends in /v1)",
                self.address,
                body.chars().take(120).collect::<String>()
            )),
        }
    }

    /// An error object in place of a chunk.
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

    /// The stream ended before the model said why.
    pub fn cut(&self) -> ModelError {
        self.transport("the stream ended in the middle of the answer".to_owned())
    }

    fn of_status(&self, status: u16, retry_after: Option<Duration>, body: &str) -> ModelError {
        let said = Said::read(body);
        let model = self.model.clone();
        let message = said.message.clone();
        let address = &self.address;
        match status {
            400 | 413 | 422 | 500 if said.is_too_long() || status == 413 => ModelError::TooLong {
                model,
                prompt: Tokens(0),
                window: self.window,
            },
            429 if said.kind.contains("insufficient_quota") => ModelError::Refused {
                model,
                status,
                message,
            },
            429 => ModelError::RateLimited { model, retry_after },
            408 | 409 | 425 | 500.. => ModelError::Server {
                model,
                status,
                message,
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

    fn transport(&self, message: String) -> ModelError {
        ModelError::Transport {
            model: self.model.clone(),
            message: format!("{}: {message}", self.address),
        }
    }

    fn malformed(&self, message: &str) -> ModelError {
        ModelError::Malformed {
            model: self.model.clone(),
            message: message.to_owned(),
        }
    }
}

/// The prompt's length is known to the caller alone.
pub(super) fn with_prompt(error: ModelError, estimate: Tokens) -> ModelError {
    match error {
        ModelError::TooLong { model, window, .. } => ModelError::TooLong {
            model,
            prompt: estimate,
            window,
        },
        other @ (ModelError::RateLimited { .. }
        | ModelError::Server { .. }
        | ModelError::Timeout { .. }
        | ModelError::Transport { .. }
        | ModelError::Refused { .. }
        | ModelError::Malformed { .. }
        | ModelError::Unavailable { .. }) => other,
    }
}

fn hint(status: u16) -> Option<&'static str> {
    match status {
        401 | 403 => Some("check the key that api_key_env names"),
        404 => Some("check base_url and model"),
        _ => None,
    }
}

/// An error with all its causes: the outermost alone says little.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// What a server said, whatever form it chose.
struct Said {
    message: String,
    /// Its codes and types, in small letters.
    kind: String,
}

impl Said {
    fn read(body: &str) -> Said {
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
        Said {
            message: message.trim().chars().take(MESSAGE_CHARS).collect(),
            kind,
        }
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
