//! The request fields that chats and completions share.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::server::Server;
use starling_core::Tokens;

/// Maximum number of stop texts in a request.
const STOPS: usize = 16;

#[derive(Debug, Deserialize)]
pub struct Parameters {
    model: Option<String>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    stop: Option<Stop>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    seed: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// How an answer is generated, and whether it is streamed.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub stream: bool,
    pub include_usage: bool,
    pub stop: Vec<String>,
    pub max_output: Tokens,
    pub temperature: f32,
    pub top_p: Option<f32>,
    pub seed: Option<u64>,
}

/// Unsupported fields, which are accepted only with a value that has no effect.
const IDLE: [(&str, &str); 9] = [
    ("frequency_penalty", "0"),
    ("presence_penalty", "0"),
    ("n", "1"),
    ("best_of", "1"),
    ("logprobs", "false"),
    ("top_logprobs", "0"),
    ("echo", "false"),
    ("logit_bias", "{}"),
    ("modalities", "[\"text\"]"),
];

/// Rejects unsupported values, so that they are not ignored silently.
///
/// # Errors
/// The value of a field is not supported. The error names the field.
pub fn check_idle(body: &Value) -> Result<(), ApiError> {
    for (name, idle) in IDLE {
        let Some(value) = body.get(name).filter(|value| !value.is_null()) else {
            continue;
        };
        let text = value.to_string();
        let is_idle = match (value.as_f64(), idle.parse::<f64>()) {
            (Some(value), Ok(idle)) => value == idle,
            _ => text == idle,
        };
        if !is_idle {
            let message = format!("`{name}` is not supported: leave it out, or set it to {idle}");
            return Err(ApiError::unsupported(name, message));
        }
    }
    Ok(())
}

impl Parameters {
    /// Checks that the fields are valid.
    ///
    /// # Errors
    /// The request names another model, or a value is out of range.
    pub fn settings(self, server: &Server) -> Result<Settings, ApiError> {
        check_model(server, self.model.as_deref())?;
        let stream = self.stream.unwrap_or(false);
        let options = self.stream_options;
        if options.is_some() && !stream {
            let message = "`stream_options` needs `stream`: true";
            return Err(ApiError::unsupported("stream_options", message));
        }
        let stop = match self.stop {
            None => Vec::new(),
            Some(Stop::One(text)) => vec![text],
            Some(Stop::Several(texts)) => texts,
        };
        if stop.len() > STOPS {
            let message = format!("`stop` has {} texts; the limit is {STOPS}", stop.len());
            return Err(ApiError::unsupported("stop", message));
        }
        let temperature = self.temperature.unwrap_or(1.0);
        if !(0.0..=2.0).contains(&temperature) {
            let message = format!("`temperature` is {temperature}: it must be from 0 to 2");
            return Err(ApiError::unsupported("temperature", message));
        }
        if self
            .top_p
            .is_some_and(|top_p| !(0.0..=1.0).contains(&top_p))
        {
            let message = "`top_p` must be from 0 to 1";
            return Err(ApiError::unsupported("top_p", message));
        }
        let most = self.max_completion_tokens.or(self.max_tokens);
        if most == Some(0) {
            let message = "the maximum number of tokens must be at least 1";
            return Err(ApiError::unsupported("max_tokens", message));
        }
        Ok(Settings {
            stream,
            include_usage: options.and_then(|one| one.include_usage).unwrap_or(false),
            stop,
            max_output: most.map_or(server.model.profile().max_output, Tokens),
            temperature,
            top_p: self.top_p,
            seed: self.seed.map(i64::cast_unsigned),
        })
    }
}

fn check_model(server: &Server, model: Option<&str>) -> Result<(), ApiError> {
    let Some(model) = model else {
        let message = format!("`model` is missing: this server has {:?}", server.name());
        return Err(ApiError {
            param: Some("model"),
            ..ApiError::invalid(message)
        });
    };
    if server.options.names.iter().any(|name| name == model) {
        return Ok(());
    }
    Err(unknown_model(server, model))
}

/// Returns the error for a model that this server does not have.
pub fn unknown_model(server: &Server, model: &str) -> ApiError {
    let message = format!(
        "the model {model:?} does not exist: this server has {:?}",
        server.name()
    );
    ApiError {
        param: Some("model"),
        code: Some("model_not_found"),
        ..ApiError::new(StatusCode::NOT_FOUND, message)
    }
}

/// Parses the body of a request.
///
/// # Errors
/// The body is not valid JSON, or a field has the wrong type.
pub fn parse<T: serde::de::DeserializeOwned>(body: Value) -> Result<T, ApiError> {
    serde_json::from_value(body)
        .map_err(|error| ApiError::invalid(format!("the request is invalid: {error}")))
}
