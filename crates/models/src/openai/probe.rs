//! Checks whether an endpoint is reachable, without spending tokens.

use std::time::Duration;

use serde_json::Value;

use super::ApiKey;
use super::transport::{Endpoint, Transport};
use starling_core::ModelError;

/// The result of requesting an endpoint's list of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeResult {
    Answers {
        /// The listed models; empty if the list cannot be parsed.
        models: Vec<String>,
    },
    /// The endpoint is reachable but rejects the key.
    KeyRefused {
        status: u16,
    },
    /// The endpoint is reachable, but its answer is inconclusive. Not every server lists its
    /// models.
    Unclear {
        status: u16,
    },
    Unreachable {
        message: String,
    },
}

/// Requests the list of models of an endpoint.
///
/// # Errors
/// [`ModelError::Unavailable`] if the URL or the key is invalid.
pub async fn probe(
    name: &str,
    base_url: &str,
    key: Option<&ApiKey>,
    deadline: Duration,
) -> Result<ProbeResult, ModelError> {
    let endpoint = Endpoint::new(name, base_url, key)?;
    let transport = Transport::new(name, endpoint, "/models")?;
    let answer = tokio::time::timeout(deadline, transport.get()).await;
    Ok(match answer {
        Err(_) => ProbeResult::Unreachable {
            message: format!("no answer within {} s", deadline.as_secs()),
        },
        Ok(Err(error)) => ProbeResult::Unreachable {
            message: error.to_string(),
        },
        Ok(Ok((200..300, body))) => ProbeResult::Answers {
            models: listed(&body),
        },
        Ok(Ok((status @ (401 | 403), _))) => ProbeResult::KeyRefused { status },
        Ok(Ok((status, _))) => ProbeResult::Unclear { status },
    })
}

/// Parses the model names in the answer to `GET /models`.
fn listed(body: &str) -> Vec<String> {
    let list: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let models = list.get("data").and_then(Value::as_array);
    let id = |model: &Value| model.get("id")?.as_str().map(str::to_owned);
    models.into_iter().flatten().filter_map(id).collect()
}
