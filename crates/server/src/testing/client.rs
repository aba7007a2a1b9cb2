//! An LSP client that tests control message by message.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{folder, services};
use crate::{ExitKind, RunStarter, Services, serve_until};
use starling_rpc::{Connection, Incoming};

/// A client that does nothing on its own: the test sends and receives each message.
pub struct TestClient {
    pub connection: Connection,
    pub incoming: mpsc::UnboundedReceiver<Incoming>,
    pub server: JoinHandle<ExitKind>,
    pub folder: tempfile::TempDir,
}

impl TestClient {
    pub fn new(start: RunStarter) -> TestClient {
        let folder = folder(&[("a.py", "old\n")]);
        let services = services(start, &folder.path().join(".trajectories"));
        TestClient::over(services, folder)
    }

    /// Starts a server with these services and connects to it.
    pub fn over(services: Services, folder: tempfile::TempDir) -> TestClient {
        TestClient::until(services, folder, std::future::pending())
    }

    /// Like [`TestClient::over`]; the system asks the server to end when `terminated` completes.
    pub fn until(
        services: Services,
        folder: tempfile::TempDir,
        terminated: impl Future<Output = ()> + Send + 'static,
    ) -> TestClient {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output): (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) =
            tokio::io::split(theirs);
        let server = tokio::spawn(serve_until(input, output, services, terminated));
        let (tell, incoming) = mpsc::unbounded_channel();
        let (input, output) = tokio::io::split(ours);
        let connection = Connection::open(input, output, move |_, message, _| {
            let _ = tell.send(message);
        });
        TestClient {
            connection,
            incoming,
            server,
            folder,
        }
    }

    /// Initializes as a client with a Starling plugin, unless the capabilities say otherwise.
    pub async fn initialize(&self, mut capabilities: Value) -> Value {
        if capabilities.get("experimental").is_none() {
            capabilities["experimental"] = json!({"starling": {}});
        }
        self.initialize_as(capabilities).await
    }

    /// Initializes with exactly these capabilities.
    pub async fn initialize_as(&self, capabilities: Value) -> Value {
        self.initialize_with(capabilities, json!({"name": "test"}))
            .await
    }

    /// Initializes with exactly these capabilities and this client info.
    pub async fn initialize_with(&self, capabilities: Value, client_info: Value) -> Value {
        let root = tower_lsp::lsp_types::Url::from_directory_path(self.folder.path()).unwrap();
        let params = json!({
            "rootUri": root, "capabilities": capabilities, "clientInfo": client_info,
        });
        let answer = self.connection.request("initialize", params).await.unwrap();
        self.connection.notify("initialized", json!({}));
        answer
    }

    pub async fn execute(&self, command: &str, argument: Value) -> Value {
        let params = json!({"command": command, "arguments": [argument]});
        let request = self.connection.request("workspace/executeCommand", params);
        request.await.unwrap()
    }

    pub async fn next(&mut self) -> Incoming {
        // Longer than any timeout of the server that is tested.
        let next = tokio::time::timeout(Duration::from_secs(90), self.incoming.recv());
        next.await
            .expect("nothing came")
            .expect("the server is gone")
    }

    /// Returns the next message with this method; others are skipped.
    pub async fn next_of(&mut self, wanted: &str) -> (Value, Value) {
        loop {
            match self.next().await {
                Incoming::Request { id, method, params } if method == wanted => {
                    return (id, params);
                }
                Incoming::Notification { method, params } if method == wanted => {
                    return (Value::Null, params);
                }
                Incoming::Request { .. } | Incoming::Notification { .. } => {}
            }
        }
    }

    pub fn uri(&self) -> Value {
        json!(tower_lsp::lsp_types::Url::from_file_path(self.folder.path().join("a.py")).unwrap())
    }

    pub async fn ended(self) -> ExitKind {
        let ended = tokio::time::timeout(Duration::from_secs(30), self.server);
        ended.await.expect("the server goes on").unwrap()
    }
}
