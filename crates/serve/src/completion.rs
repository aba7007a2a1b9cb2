//! Converts requests to `/v1/completions` into requests to the model. A completion continues a text
//! or fills a gap in a text.

use serde::Deserialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::parameters::{Parameters, Settings, check_idle, parse};
use crate::server::Server;
use starling_core::ChatRequest;

#[derive(Debug, Deserialize)]
struct Body {
    prompt: Prompt,
    suffix: Option<String>,
    #[serde(flatten)]
    parameters: Parameters,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Other(Value),
}

/// Parses the body of a request.
///
/// # Errors
/// The request is invalid, or the model cannot fill gaps.
pub fn read(server: &Server, body: Value) -> Result<(ChatRequest, Settings), ApiError> {
    check_idle(&body)?;
    let body: Body = parse(body)?;
    let settings = body.parameters.settings(server)?;
    let prompt = prompt(body.prompt)?;
    let following = body.suffix.unwrap_or_default();
    if !following.is_empty() && !server.model.fills() {
        return Err(ApiError::unsupported(
            "suffix",
            "this model cannot fill a gap in a text, because its vocabulary has no tokens for gaps: leave \
             out `suffix`",
        ));
    }
    if prompt.is_empty() && following.is_empty() {
        return Err(ApiError {
            param: Some("prompt"),
            ..ApiError::invalid("`prompt` is empty")
        });
    }
    let request = ChatRequest {
        conversation: "serve completion".to_owned(),
        messages: Vec::new(),
        tools: Vec::new(),
        max_output: settings.max_output,
        temperature: settings.temperature,
        top_p: settings.top_p,
        seed: settings.seed,
        beginning: prompt,
        following,
        stop: settings.stop.clone(),
        format: starling_core::AnswerFormat::Free,
    };
    Ok((request, settings))
}

fn prompt(prompt: Prompt) -> Result<String, ApiError> {
    if let Prompt::Other(Value::Array(texts)) = &prompt
        && let [Value::String(text)] = texts.as_slice()
    {
        return Ok(text.clone());
    }
    match prompt {
        Prompt::Text(text) => Ok(text),
        Prompt::Other(_) => Err(ApiError::unsupported(
            "prompt",
            "`prompt` must be a single text: lists of prompts and token ids are not supported",
        )),
    }
}
