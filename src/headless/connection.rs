//! The client's side of a JSON-RPC connection: requests with deadlines, and what the server sends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};

use super::wire;

/// How long the server has to answer a request.
const DEADLINE: Duration = Duration::from_secs(30);

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("{message}")]
    Refused { code: i64, message: String },
    #[error("{method}: no answer within {} s", DEADLINE.as_secs())]
    Late { method: String },
    #[error("the server is gone")]
    Gone,
    #[error("{method}: unexpected answer: {message}")]
    Unreadable { method: String, message: String },
}

/// What the server sends by itself. A request must be answered by [`Connection::reply`].
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

/// The answer to a request of the server.
pub type Reply = Result<Value, String>;

#[derive(Debug, Default)]
struct Pending {
    next: i64,
    waiting: HashMap<i64, oneshot::Sender<Result<Value, RequestError>>>,
}

/// A connection; clones share it.
#[derive(Debug, Clone)]
pub struct Connection {
    outgoing: mpsc::UnboundedSender<Value>,
    pending: Arc<Mutex<Pending>>,
}

impl Connection {
    /// Connects over a pipe. `receive` is called for everything that the server sends by itself, in
    /// order, and must return at once.
    pub fn open(
        input: impl AsyncRead + Unpin + Send + 'static,
        mut output: impl AsyncWrite + Unpin + Send + 'static,
        mut receive: impl FnMut(&Connection, Incoming) + Send + 'static,
    ) -> Connection {
        let (outgoing, mut queue) = mpsc::unbounded_channel::<Value>();
        tokio::spawn(async move {
            while let Some(message) = queue.recv().await {
                if let Err(error) = wire::write(&mut output, &message).await {
                    tracing::debug!(%error, "the server takes no more messages");
                    return;
                }
            }
            // The last clone is gone: the server shall see the end of its input.
            let _ = output.shutdown().await;
        });
        let connection = Connection {
            outgoing,
            pending: Arc::default(),
        };
        // The reader must not keep the connection open by itself.
        let pending = Arc::clone(&connection.pending);
        let weak = connection.outgoing.downgrade();
        tokio::spawn(async move {
            let mut input = BufReader::new(input);
            loop {
                let message = match wire::read(&mut input).await {
                    Ok(Some(message)) => message,
                    Ok(None) => break,
                    Err(error) => {
                        tracing::error!(%error, "the server cannot be understood");
                        break;
                    }
                };
                let Some(outgoing) = weak.upgrade() else {
                    break;
                };
                let connection = Connection {
                    outgoing,
                    pending: Arc::clone(&pending),
                };
                match sort(message) {
                    Sorted::Response { id, result } => connection.finish(id, result),
                    Sorted::Incoming(incoming) => receive(&connection, incoming),
                }
            }
            lock(&pending).waiting.clear();
        });
        connection
    }

    /// Sends a request at once; the future waits for its result.
    pub fn request(
        &self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Result<Value, RequestError>> + Send + use<> {
        let (tell, answer) = oneshot::channel();
        let id = {
            let mut pending = lock(&self.pending);
            pending.next += 1;
            let id = pending.next;
            pending.waiting.insert(id, tell);
            id
        };
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let (pending, method) = (Arc::clone(&self.pending), method.to_owned());
        async move {
            match tokio::time::timeout(DEADLINE, answer).await {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(RequestError::Gone),
                Err(_) => {
                    lock(&pending).waiting.remove(&id);
                    Err(RequestError::Late { method })
                }
            }
        }
    }

    pub fn notify(&self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers a request of the server.
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
        if self.outgoing.send(message).is_err() {
            // The request that this may have been ends as the reader clears what waits.
            lock(&self.pending).waiting.clear();
        }
    }

    fn finish(&self, id: i64, result: Result<Value, RequestError>) {
        let waiting = lock(&self.pending).waiting.remove(&id);
        if waiting.is_none_or(|waiting| waiting.send(result).is_err()) {
            tracing::debug!(id, "an answer came too late");
        }
    }
}

enum Sorted {
    Response {
        id: i64,
        result: Result<Value, RequestError>,
    },
    Incoming(Incoming),
}

fn sort(mut message: Value) -> Sorted {
    let params = message["params"].take();
    let id = message["id"].take();
    match message["method"].as_str() {
        Some(method) if id.is_null() => Sorted::Incoming(Incoming::Notification {
            method: method.to_owned(),
            params,
        }),
        Some(method) => Sorted::Incoming(Incoming::Request {
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
            Sorted::Response { id, result }
        }
    }
}

fn lock(pending: &Mutex<Pending>) -> std::sync::MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
