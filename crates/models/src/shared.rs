//! A local model that another process may serve already: its weights are then not loaded again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Response, StatusCode, header};

use super::http;
use super::serving::{self, RunningServer};
use starling_core::{
    CALL_PATH, CallEvent, ChatModel, ChatReply, ChatRequest, ChatWatch, ModelError, ModelNotice,
    ModelProfile,
};

const CONNECT: Duration = Duration::from_secs(2);
/// How long to wait before a server with a full queue is asked again, if it does not say.
const FULL: Duration = Duration::from_secs(2);
/// Maximum length of one event in bytes.
const LONGEST_EVENT: usize = 64 << 20;

/// A model that a server answers while one runs, and this process otherwise.
pub struct SharedModel {
    /// The model in this process. Its first request loads the weights.
    own: Arc<dyn ChatModel>,
    /// The directory of the servers' locks.
    servers: PathBuf,
    weights: PathBuf,
    client: Client,
    /// Whether the weights were needed in this process. From then on it answers everything.
    is_loaded: AtomicBool,
}

/// Why there is no reply.
enum CallFailed {
    /// The server has ended, or is ending.
    Gone,
    /// The model answered with an error.
    Model(ModelError),
}

impl SharedModel {
    /// # Errors
    /// No HTTP client can be created.
    pub fn new(
        own: Arc<dyn ChatModel>,
        servers: PathBuf,
        weights: PathBuf,
    ) -> Result<Self, ModelError> {
        // A proxy of the environment must not receive prompts for this machine.
        let client = http::client().no_proxy().connect_timeout(CONNECT).build();
        let client = client.map_err(|error| ModelError::Unavailable {
            model: own.profile().name.clone(),
            message: format!("the HTTP client cannot be created: {error}"),
        })?;
        Ok(Self {
            own,
            servers,
            weights,
            client,
            is_loaded: AtomicBool::new(false),
        })
    }

    /// Returns the server to ask, if one runs that has the window of this model.
    fn server(&self) -> Option<RunningServer> {
        if self.is_loaded.load(Ordering::Relaxed) {
            return None;
        }
        serving::running(&self.servers, &self.weights)
            .filter(|server| server.window >= self.own.profile().context_window)
    }

    async fn ask(
        &self,
        server: &RunningServer,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, CallFailed> {
        let mut response = self.post(server, request).await?;
        let mut waiting = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            waiting.extend_from_slice(&piece);
            while let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = waiting.drain(..=end).collect();
                let Ok(event) = serde_json::from_slice(&line) else {
                    return Err(CallFailed::Gone);
                };
                match event {
                    CallEvent::Started => watch.started(),
                    CallEvent::Delta(text) => watch.delta(&text),
                    CallEvent::Notice(notice) => watch.notice(notice),
                    CallEvent::Done(reply) => return reply.map_err(CallFailed::Model),
                }
            }
            if waiting.len() > LONGEST_EVENT {
                return Err(CallFailed::Gone);
            }
        }
        Err(CallFailed::Gone)
    }

    /// Sends the request. A server with a full queue is asked until it has room.
    async fn post(
        &self,
        server: &RunningServer,
        request: &ChatRequest,
    ) -> Result<Response, CallFailed> {
        let url = format!("http://{}{CALL_PATH}", server.address);
        loop {
            let sent = self
                .client
                .post(&url)
                .bearer_auth(&server.call_key)
                .json(request);
            let response = sent.send().await.map_err(|_| CallFailed::Gone)?;
            match response.status() {
                StatusCode::OK => return Ok(response),
                StatusCode::TOO_MANY_REQUESTS => tokio::time::sleep(retry_after(&response)).await,
                _ => return Err(CallFailed::Gone),
            }
        }
    }
}

fn retry_after(response: &Response) -> Duration {
    let header = response.headers().get(header::RETRY_AFTER);
    let seconds = header.and_then(|value| value.to_str().ok()?.parse().ok());
    seconds.map_or(FULL, Duration::from_secs)
}

#[async_trait]
impl ChatModel for SharedModel {
    fn profile(&self) -> &ModelProfile {
        self.own.profile()
    }

    fn fills(&self) -> bool {
        self.own.fills()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        if let Some(server) = self.server() {
            match self.ask(&server, request, watch).await {
                Ok(reply) => {
                    let model = self.profile().name.clone();
                    return Ok(ChatReply { model, ..reply });
                }
                Err(CallFailed::Model(error)) => return Err(error),
                Err(CallFailed::Gone) if !self.is_loaded.swap(true, Ordering::Relaxed) => {
                    let message = format!(
                        "the server at http://{} does not answer any more: the model is loaded in this \
                         process",
                        server.address
                    );
                    let model = self.profile().name.clone();
                    watch.notice(ModelNotice::Preparing { model, message });
                }
                Err(CallFailed::Gone) => {}
            }
        }
        self.is_loaded.store(true, Ordering::Relaxed);
        self.own.chat(request, watch).await
    }
}
