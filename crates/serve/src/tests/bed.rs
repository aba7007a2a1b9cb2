//! A test server with a scripted model, and a minimal HTTP client.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::{ServeOptions, serve};
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Dollars, Finish, ModelError, ModelProfile, Price,
    Tokens, ToolCalling, Usage,
};

/// A model that answers one request at a time with fixed pieces of text.
pub struct ScriptedModel {
    profile: ModelProfile,
    pub fills: bool,
    pub pieces: Vec<&'static str>,
    /// Whether a request waits for a permit of `steps` at its start and before each piece except
    /// the first.
    pub held: bool,
    pub steps: Semaphore,
    turn: Semaphore,
    pub requests: Mutex<Vec<ChatRequest>>,
    /// Number of calls that were cancelled.
    pub dropped: AtomicUsize,
}

struct CountDrop<'a>(&'a AtomicUsize, bool);

impl Drop for CountDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(usize::from(!self.1), Ordering::SeqCst);
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn fills(&self) -> bool {
        self.fills
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let mut dropped = CountDrop(&self.dropped, false);
        self.requests.lock().unwrap().push(request.clone());
        let _turn = self.turn.acquire().await.unwrap();
        let length: usize = request.messages.iter().map(|one| one.text().len()).sum();
        if length > 1000 {
            dropped.1 = true;
            return Err(ModelError::TooLong {
                model: "tiny".to_owned(),
                prompt: Tokens(length as u64),
                window: Tokens(1000),
                message: String::new(),
            });
        }
        watch.started();
        let mut text = String::new();
        for piece in &self.pieces {
            if self.held {
                self.steps.acquire().await.unwrap().forget();
            }
            watch.delta(piece);
            text.push_str(piece);
        }
        if self.held {
            self.steps.acquire().await.unwrap().forget();
        }
        dropped.1 = true;
        Ok(ChatReply {
            model: "tiny".to_owned(),
            text,
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            usage: Usage {
                prompt: Tokens(7),
                cached: Tokens(2),
                output: Tokens(3),
            },
            cost: Dollars(0.0),
            calls: 1,
        })
    }
}

pub struct Bed {
    pub model: Arc<ScriptedModel>,
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    pub server: JoinHandle<std::io::Result<()>>,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the data of each server-sent event.
    pub fn events(&self) -> Vec<&str> {
        let events = self.body.split_terminator("\n\n");
        events
            .map(|event| event.strip_prefix("data: ").unwrap())
            .collect()
    }

    /// Returns the message of an error in OpenAI's format.
    pub fn error(&self) -> (String, Value) {
        let error = &self.json()["error"];
        assert!(error["type"].is_string(), "{}", self.body);
        assert!(error.get("param").is_some() && error.get("code").is_some());
        (error["message"].as_str().unwrap().to_owned(), error.clone())
    }
}

pub fn options() -> ServeOptions {
    ServeOptions {
        names: vec!["tiny".to_owned(), "local".to_owned()],
        key: None,
        call_key: "call key".to_owned(),
        queue: 2,
        remote: false,
        grace: Duration::from_secs(10),
        resident: || Some(4096),
    }
}

pub fn scripted(pieces: &[&'static str]) -> ScriptedModel {
    ScriptedModel {
        profile: ModelProfile {
            name: "local".to_owned(),
            context_window: Tokens(1000),
            max_output: Tokens(500),
            tool_calling: ToolCalling::Text,
            replayed: false,
            price: Some(Price::FREE),
        },
        fills: true,
        pieces: pieces.to_vec(),
        held: false,
        steps: Semaphore::new(0),
        turn: Semaphore::new(1),
        requests: Mutex::default(),
        dropped: AtomicUsize::new(0),
    }
}

impl Bed {
    pub async fn new(pieces: &[&'static str]) -> Bed {
        Bed::with(scripted(pieces), options()).await
    }

    /// Creates a server whose model waits for a permit before each step.
    pub async fn held(pieces: &[&'static str], options: ServeOptions) -> Bed {
        let mut model = scripted(pieces);
        model.held = true;
        Bed::with(model, options).await
    }

    pub async fn with(model: ScriptedModel, options: ServeOptions) -> Bed {
        let model = Arc::new(model);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            stopped.await.ok();
        };
        let server = tokio::spawn(serve(listener, model.clone(), options, stopped));
        Bed {
            model,
            address,
            stop: Some(stop),
            server,
        }
    }

    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Sends a request without reading the response. Returns the connection.
    pub async fn open(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let host = match headers.contains("Host:") {
            true => String::new(),
            false => format!("Host: {}\r\n", self.address),
        };
        let text = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        // A server that refuses a large body may close the connection while the body is being sent.
        stream.write_all(text.as_bytes()).await.ok();
        stream
    }

    pub async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        read(self.open(method, path, headers, body).await).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, JSON, &body.to_string()).await
    }

    pub async fn open_chat(&self, more: &Value) -> TcpStream {
        let body = chat(more).to_string();
        self.open("POST", CHAT, JSON, &body).await
    }

    pub async fn chat(&self, more: &Value) -> Answer {
        self.post(CHAT, &chat(more)).await
    }

    /// Waits until the metrics contain this line.
    pub async fn until(&self, line: &str) {
        loop {
            let metrics = self.get("/metrics").await.body;
            if metrics.lines().any(|one| one == line) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

pub const CHAT: &str = "/v1/chat/completions";
pub const JSON: &str = "Content-Type: application/json\r\n";

/// Returns the body of a chat request with additional fields.
pub fn chat(more: &Value) -> Value {
    let mut body = json!({ "model": "tiny", "messages": [{ "role": "user", "content": "hi" }] });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

pub async fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // The server may reset the connection after the response.
    stream.read_to_end(&mut bytes).await.ok();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .map_or(0, |status| status.parse().unwrap());
    let head = head.to_ascii_lowercase();
    let body = match head.contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_owned(),
    };
    Answer { status, head, body }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        text.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").unwrap_or("");
    }
    text
}
