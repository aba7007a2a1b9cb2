//! A small HTTP server for tests. It sends scripted answers on its own port.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One answer, sent in pieces. The connection closes after the last piece.
pub(super) enum ScriptedResponse {
    /// The raw bytes of the answer, including the HTTP head.
    Raw(Vec<&'static str>),
    /// Sends this text and keeps the connection open without sending more.
    Hang(&'static str),
    /// Sends the first text once, then repeats the second one until the client disconnects.
    Endless(&'static str, String),
}

/// A running test server and the requests that it received.
pub(super) struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that answers each request with the next script.
    pub async fn start(scripts: Vec<ScriptedResponse>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        tokio::spawn(async move {
            for script in scripts {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, script, seen.clone()));
            }
        });
        Server { url, requests }
    }

    /// Returns the head and body of every request received so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the body of the only request.
    pub fn body(&self) -> serde_json::Value {
        let requests = self.requests();
        assert_eq!(requests.len(), 1);
        let (_, body) = requests[0].split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}

async fn serve(mut stream: TcpStream, script: ScriptedResponse, seen: Arc<Mutex<Vec<String>>>) {
    let request = read_request(&mut stream).await;
    seen.lock().unwrap().push(request);
    match script {
        ScriptedResponse::Raw(pieces) => {
            for piece in pieces {
                stream.write_all(piece.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
            }
        }
        ScriptedResponse::Hang(piece) => {
            stream.write_all(piece.as_bytes()).await.unwrap();
            let mut end = [0; 1];
            // The client closes the connection when its call is dropped.
            let _ = stream.read(&mut end).await;
        }
        ScriptedResponse::Endless(head, piece) => {
            stream.write_all(head.as_bytes()).await.unwrap();
            while stream.write_all(piece.as_bytes()).await.is_ok() {}
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length:")
                        .and_then(|value| value.trim().parse::<usize>().ok())
                })
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        assert!(count > 0, "the request ended early: {text}");
    }
}
