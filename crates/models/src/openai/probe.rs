//! Whether an endpoint is there, without spending a token.

use std::time::Duration;

use serde_json::Value;

use super::ApiKey;
use super::transport::{Endpoint, Transport};
use starling_core::ModelError;

/// What an endpoint said to the question for its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeResult {
    Answers {
        /// The models that it lists, where the list can be read.
        models: Vec<String>,
    },
    /// It is there, and wants another key.
    KeyRefused {
        status: u16,
    },
    /// Something is there; not every server lists its models.
    Unclear {
        status: u16,
    },
    Unreachable {
        message: String,
    },
}

/// Asks an endpoint for its models.
///
/// # Errors
/// [`ModelError::Unavailable`] for an URL or key that cannot be sent.
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

/// The names of models in a list as `GET /models` answers it.
fn listed(body: &str) -> Vec<String> {
    let list: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let models = list.get("data").and_then(Value::as_array);
    let id = |model: &Value| model.get("id")?.as_str().map(str::to_owned);
    models.into_iter().flatten().filter_map(id).collect()
}
