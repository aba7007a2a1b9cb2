//! Requests to the client with a deadline, and Starling's own notifications. tower-lsp panics if it
//! receives a reply whose request was dropped, so a task waits for every reply.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::timeout;
use tower_lsp::Client;
use tower_lsp::lsp_types::notification::Notification;
use tower_lsp::lsp_types::request::Request;

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientRequestError {
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("{0}")]
    Refused(String),
}

/// The pause between the reply to a command and the next message, for clients without a plugin.
/// lsp-mode discards messages that it reads together with a reply.
pub const AFTER_ANSWER: Duration = Duration::from_millis(100);

/// Sends a request to the client. If the future is dropped, a late reply is discarded.
///
/// # Errors
/// See [`ClientRequestError`].
pub async fn send_request<R>(
    client: &Client,
    params: R::Params,
    deadline: Duration,
) -> Result<R::Result, ClientRequestError>
where
    R: Request + 'static,
    R::Params: Send + 'static,
    R::Result: Send + 'static,
{
    let client = client.clone();
    let waiting = tokio::spawn(async move { client.send_request::<R>(params).await });
    match timeout(deadline, waiting).await {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Ok(Ok(Err(error))) => Err(ClientRequestError::Refused(error.to_string())),
        Ok(Err(error)) => Err(ClientRequestError::Refused(error.to_string())),
        Err(_) => Err(ClientRequestError::Late(deadline)),
    }
}

/// The Starling plugin of the client's editor, if there is one. A client that did not announce
/// `experimental.starling` receives no `starling/*` notification: some editors open a window for
/// every unknown notification.
#[derive(Debug, Clone)]
pub struct ClientPlugin {
    client: Client,
    announced: Arc<OnceLock<bool>>,
}

impl ClientPlugin {
    pub fn new(client: Client) -> ClientPlugin {
        ClientPlugin {
            client,
            announced: Arc::default(),
        }
    }

    /// Notes whether the client announced a plugin. Later calls have no effect.
    pub fn set_negotiated(&self, announced: bool) {
        self.announced.get_or_init(|| announced);
    }

    pub fn is_present(&self) -> bool {
        self.announced.get().copied().unwrap_or_default()
    }

    /// Sends a notification if there is a plugin.
    pub async fn notify<N: Notification>(&self, params: N::Params) {
        if self.is_present() {
            self.client.send_notification::<N>(params).await;
        }
    }
}
