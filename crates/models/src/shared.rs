//! A local model that uses a running server, if there is one, instead of loading the weights again.

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
/// Delay before a request is sent again to a server with a full queue, if the server does not give
/// a delay.
const FULL: Duration = Duration::from_secs(2);
/// Maximum length of one event in bytes.
const LONGEST_EVENT: usize = 64 << 20;

/// A model that is answered by a running server, or by this process if no server runs.
pub struct SharedModel {
    /// The model in this process. Its first request loads the weights.
    own: Arc<dyn ChatModel>,
    /// The directory that contains the locks of servers.
    servers: PathBuf,
    weights: PathBuf,
    client: Client,
    /// Whether this process had to load the weights. From then on, servers are not used.
    is_loaded: AtomicBool,
}

/// Why a call of the server has no reply.
enum CallFailed {
    /// The server does not answer, or is shutting down.
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
        // A proxy must not receive prompts that are meant for this machine.
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

    /// Returns a running server whose context window is large enough, if there is one.
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

    /// Sends the request to the server. While the server's queue is full, tries again.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tempfile::TempDir;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::serving::ServingLock;
    use crate::testing::{profile, reply, request};
    use starling_core::Finish;

    struct OwnModel(ModelProfile);

    #[async_trait]
    impl ChatModel for OwnModel {
        fn profile(&self) -> &ModelProfile {
            &self.0
        }

        async fn chat(
            &self,
            _request: &ChatRequest,
            _watch: &dyn ChatWatch,
        ) -> Result<ChatReply, ModelError> {
            Ok(reply("local", "own", Finish::Stop))
        }
    }

    #[derive(Default)]
    struct Notices(Mutex<Vec<String>>);

    impl ChatWatch for Notices {
        fn delta(&self, _text: &str) {}

        fn notice(&self, notice: ModelNotice) {
            if let ModelNotice::Preparing { message, .. } = notice {
                self.0.lock().unwrap().push(message);
            }
        }
    }

    fn shared(directory: &TempDir) -> SharedModel {
        let own = Arc::new(OwnModel(profile("local")));
        let servers = directory.path().to_owned();
        SharedModel::new(own, servers, "/w.gguf".into()).unwrap()
    }

    /// Publishes a server at a new address that answers one request.
    async fn server(directory: &TempDir, answer: String) -> ServingLock {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let weights = PathBuf::from("/w.gguf");
        let lock = ServingLock::take(directory.path(), &weights).unwrap();
        let info = RunningServer {
            address: listener.local_addr().unwrap().to_string(),
            process: 1,
            model: "w".to_owned(),
            weights,
            window: profile("local").context_window,
            call_key: "key".to_owned(),
        };
        lock.publish(&info).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            drop(listener);
            let mut seen = vec![0; 4096];
            let count = stream.read(&mut seen).await.unwrap();
            let head = String::from_utf8_lossy(&seen[..count]).to_ascii_lowercase();
            assert!(head.contains("authorization: bearer key"), "{head}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        lock
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}")
    }

    #[tokio::test]
    async fn running_server_answers_instead_of_the_model_in_this_process() {
        let directory = TempDir::new().unwrap();
        let done = CallEvent::Done(Box::new(Ok(reply("w", "served", Finish::Stop))));
        let body = serde_json::to_string(&done).unwrap() + "\n";
        let _lock = server(&directory, ok(&body)).await;
        let notices = Notices::default();
        let answer = shared(&directory).chat(&request(), &notices).await.unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.model.as_str()),
            ("served", "local")
        );
        assert!(notices.0.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn lost_server_is_reported_once_and_this_process_answers() {
        let directory = TempDir::new().unwrap();
        let _lock = server(&directory, ok("")).await;
        let model = shared(&directory);
        let notices = Notices::default();
        for _ in 0..2 {
            let answer = model.chat(&request(), &notices).await.unwrap();
            assert_eq!(answer.text, "own");
        }
        let told = notices.0.lock().unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("does not answer any more"), "{told:?}");
    }

    #[tokio::test]
    async fn without_a_server_this_process_answers() {
        let directory = TempDir::new().unwrap();
        let answer = shared(&directory)
            .chat(&request(), &Notices::default())
            .await;
        assert_eq!(answer.unwrap().text, "own");
    }
}
