//! The client side of a JSON-RPC connection: requests with deadlines, and messages from the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::frames::MessageReader;
use super::wire;

/// The default timeout of a request.
const DEADLINE: Duration = Duration::from_secs(30);
/// The maximum number of messages queued for the server. If the queue is full, the connection is
/// closed.
const QUEUE: usize = 16 << 10;
/// The maximum number of consecutive unreadable messages. After more than this, the connection is
/// closed.
const MOST_MALFORMED: usize = 100;

/// The reason why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("{message}")]
    Refused { code: i64, message: String },
    #[error("{method}: the server did not answer in time")]
    Late { method: String },
    #[error("the server has stopped or closed the connection")]
    Gone,
    #[error("{method}: the server sent an unexpected answer: {message}")]
    Unreadable { method: String, message: String },
}

/// A request or notification from the server. The client must answer a request with
/// [`Connection::reply`].
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

/// The result of a request. `order` is the number of the response among all messages from the
/// server, so that earlier and later messages can be told apart.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerResponse {
    pub value: Value,
    pub order: u64,
}

/// The client's response to a request from the server.
pub type Reply = Result<Value, String>;

/// The senders for awaited responses, by request id.
type PendingResponses = HashMap<i64, oneshot::Sender<Result<ServerResponse, RequestError>>>;

/// The requests that have no response yet, and whether the connection is closed.
#[derive(Debug, Default)]
struct PendingRequests {
    next: i64,
    waiting: PendingResponses,
    closed: bool,
}

impl PendingRequests {
    fn close(&mut self) {
        self.closed = true;
        self.waiting.clear();
    }
}

/// A connection to a server. Clones share the same connection.
#[derive(Debug, Clone)]
pub struct Connection {
    outgoing: mpsc::Sender<Value>,
    pending: Arc<Mutex<PendingRequests>>,
}

impl Connection {
    /// Opens a connection over a pipe. `receive` is called for each request and notification from
    /// the server, in order, with the number of the message. `receive` must not block. It is
    /// dropped when the connection closes.
    pub fn open(
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        receive: impl FnMut(&Connection, Incoming, u64) + Send + 'static,
    ) -> Connection {
        let (outgoing, queue) = mpsc::channel::<Value>(QUEUE);
        let connection = Connection {
            outgoing,
            pending: Arc::default(),
        };
        tokio::spawn(write_all(output, queue));
        // The reader must not keep the connection open by itself.
        let pending = Arc::clone(&connection.pending);
        tokio::spawn(read_all(
            input,
            connection.outgoing.downgrade(),
            pending,
            receive,
        ));
        connection
    }

    /// Returns whether the connection to the server is closed.
    pub fn is_closed(&self) -> bool {
        lock(&self.pending).closed
    }

    /// Sends a request immediately with the default timeout. The returned future resolves to its
    /// result.
    pub fn request(
        &self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Result<Value, RequestError>> + Send + use<> {
        let answer = self.ask(method, params, Instant::now() + DEADLINE);
        async move { Ok(answer.await?.value) }
    }

    /// Sends a request immediately with a deadline. If the deadline passes, a `$/cancelRequest`
    /// notification is sent to the server.
    pub fn ask(
        &self,
        method: &str,
        params: Value,
        deadline: Instant,
    ) -> impl Future<Output = Result<ServerResponse, RequestError>> + Send + use<> {
        let (tell, answer) = oneshot::channel();
        let id = {
            let mut pending = lock(&self.pending);
            pending.next += 1;
            let id = pending.next;
            if !pending.closed {
                pending.waiting.insert(id, tell);
            }
            id
        };
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let (connection, method) = (self.clone(), method.to_owned());
        async move {
            match tokio::time::timeout_at(deadline, answer).await {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(RequestError::Gone),
                Err(_) => {
                    lock(&connection.pending).waiting.remove(&id);
                    connection.notify("$/cancelRequest", json!({"id": id}));
                    Err(RequestError::Late { method })
                }
            }
        }
    }

    pub fn notify(&self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends the response to a request from the server.
    pub fn reply(&self, id: Value, reply: Reply) {
        self.send(match reply {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(message) => {
                let error = json!({"code": -32601, "message": message});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        });
    }

    fn send(&self, mut message: Value) {
        if let Value::Object(message) = &mut message
            && message.get("params").is_some_and(Value::is_null)
        {
            message.remove("params");
        }
        if self.outgoing.try_send(message).is_err() {
            // Closing fails all pending requests.
            lock(&self.pending).close();
        }
    }

    fn finish(&self, id: i64, result: Result<ServerResponse, RequestError>) {
        let waiting = lock(&self.pending).waiting.remove(&id);
        if waiting.is_none_or(|waiting| waiting.send(result).is_err()) {
            tracing::debug!(id, "an answer came too late");
        }
    }
}

async fn write_all(
    mut output: impl AsyncWrite + Unpin + Send + 'static,
    mut queue: mpsc::Receiver<Value>,
) {
    while let Some(message) = queue.recv().await {
        if let Err(error) = wire::write(&mut output, &message).await {
            tracing::debug!(%error, "the queue of messages to the server is full or closed");
            return;
        }
    }
    // The last clone was dropped: close the server's input.
    let _ = output.shutdown().await;
}

async fn read_all(
    input: impl AsyncRead + Unpin + Send + 'static,
    outgoing: mpsc::WeakSender<Value>,
    pending: Arc<Mutex<PendingRequests>>,
    mut receive: impl FnMut(&Connection, Incoming, u64) + Send + 'static,
) {
    let mut input = MessageReader::new(input);
    let (mut order, mut malformed) = (0, 0);
    loop {
        let message = match input.next::<Value>().await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => {
                tracing::warn!(%error, "a message of the server cannot be read");
                malformed += 1;
                if malformed > MOST_MALFORMED {
                    break;
                }
                continue;
            }
            Ok(None) => break,
            Err(error) => {
                tracing::error!(%error, "the connection to the server broke");
                break;
            }
        };
        malformed = 0;
        let Some(outgoing) = outgoing.upgrade() else {
            break;
        };
        let connection = Connection {
            outgoing,
            pending: Arc::clone(&pending),
        };
        order += 1;
        match sort(message) {
            ReceivedMessage::Response { id, result } => {
                let answer = result.map(|value| ServerResponse { value, order });
                connection.finish(id, answer);
            }
            ReceivedMessage::Incoming(incoming) => receive(&connection, incoming, order),
        }
    }
    lock(&pending).close();
}

/// A message from the server, classified by its kind.
enum ReceivedMessage {
    Response {
        id: i64,
        result: Result<Value, RequestError>,
    },
    Incoming(Incoming),
}

fn sort(mut message: Value) -> ReceivedMessage {
    // A message that is not an object answers no request.
    if !message.is_object() {
        message = json!({});
    }
    let params = message["params"].take();
    let id = message["id"].take();
    match message["method"].as_str() {
        Some(method) if id.is_null() => ReceivedMessage::Incoming(Incoming::Notification {
            method: method.to_owned(),
            params,
        }),
        Some(method) => ReceivedMessage::Incoming(Incoming::Request {
            id,
            method: method.to_owned(),
            params,
        }),
        None => {
            let error = &message["error"];
            let result = match error["message"].as_str() {
                Some(text) => Err(RequestError::Refused {
                    code: error["code"].as_i64().unwrap_or_default(),
                    message: text.to_owned(),
                }),
                None => Ok(message["result"].take()),
            };
            let id = id.as_i64().unwrap_or_default();
            ReceivedMessage::Response { id, result }
        }
    }
}

fn lock(pending: &Mutex<PendingRequests>) -> std::sync::MutexGuard<'_, PendingRequests> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex, split};

    use super::*;

    #[tokio::test]
    async fn response_is_received_after_malformed_bytes() {
        let (ours, mut theirs) = duplex(1 << 16);
        let (input, output) = split(ours);
        let connection = Connection::open(input, output, |_, _, _| {});
        let answer = connection.request("x", json!({}));
        let garbage =
            "warning: \n\nContent-Length: 2\r\n\r\n{{Content-Length: 9\r\n\r\n\"\\ud800\"";
        theirs.write_all(garbage.as_bytes()).await.unwrap();
        let sound = json!({"jsonrpc": "2.0", "id": 1, "result": "here"});
        wire::write(&mut theirs, &sound).await.unwrap();
        assert_eq!(answer.await, Ok(json!("here")));
    }

    #[tokio::test]
    async fn connection_closes_after_too_many_malformed_messages() {
        let (ours, theirs) = duplex(1 << 16);
        let (input, output) = split(ours);
        let connection = Connection::open(input, output, |_, _, _| {});
        let answer = connection.request("x", json!({}));
        let (mut said, mut garbage) = split(theirs);
        tokio::spawn(async move { said.read_to_end(&mut Vec::new()).await });
        for _ in 0..=MOST_MALFORMED {
            garbage
                .write_all(b"Content-Length: 1\r\n\r\n{")
                .await
                .unwrap();
        }
        assert_eq!(answer.await, Err(RequestError::Gone));
        assert!(connection.is_closed());
    }
}
