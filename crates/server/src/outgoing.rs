//! Requests to the client that may be given up, and notifications of Starling's own. tower-lsp panics
//! when an answer comes that nobody waits for any more, so somebody always does.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::timeout;
use tower_lsp::Client;
use tower_lsp::lsp_types::notification::Notification;
use tower_lsp::lsp_types::request::Request;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("{0}")]
    Refused(String),
}

/// The pause between the answer to a command and what follows it, for clients without a plugin. lsp-mode
/// throws away what it read together with the answer to a request that it waits for.
pub const AFTER_ANSWER: Duration = Duration::from_millis(100);

/// Asks the client. Dropping the future gives up; a late answer is taken and thrown away.
///
/// # Errors
/// See [`RequestError`].
pub async fn send_request<R>(
    client: &Client,
    params: R::Params,
    deadline: Duration,
) -> Result<R::Result, RequestError>
where
    R: Request + 'static,
    R::Params: Send + 'static,
    R::Result: Send + 'static,
{
    let client = client.clone();
    let waiting = tokio::spawn(async move { client.send_request::<R>(params).await });
    match timeout(deadline, waiting).await {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Ok(Ok(Err(error))) => Err(RequestError::Refused(error.to_string())),
        Ok(Err(error)) => Err(RequestError::Refused(error.to_string())),
        Err(_) => Err(RequestError::Late(deadline)),
    }
}

/// The Starling plugin of the client's editor, if there is one. Clients that did not announce
/// `experimental.starling` are sent no `starling/*` notification: some editors open a window for each
/// notification that they do not know.
#[derive(Debug, Clone)]
pub struct Plugin {
    client: Client,
    announced: Arc<OnceLock<bool>>,
}

impl Plugin {
    pub fn new(client: Client) -> Plugin {
        Plugin {
            client,
            announced: Arc::default(),
        }
    }

    /// Notes whether the client announced a plugin.
    pub fn set_negotiated(&self, announced: bool) {
        self.announced.get_or_init(|| announced);
    }

    pub fn is_present(&self) -> bool {
        self.announced.get().copied().unwrap_or_default()
    }

    /// Sends a notification; without a plugin, does nothing.
    pub async fn notify<N: Notification>(&self, params: N::Params) {
        if self.is_present() {
            self.client.send_notification::<N>(params).await;
        }
    }
}
