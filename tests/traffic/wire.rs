//! A server process behind pipes. Its messages are read one by one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time limit for a response; much longer than any response takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A language server process.
pub struct Server {
    child: Child,
    input: ChildStdin,
    said: Receiver<Value>,
}

impl Server {
    /// Starts a server with its own home directory.
    pub fn start(bed: &Path, options: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_starling"))
            .arg("lsp")
            .args(options)
            .env("STARLING_CACHE_DIR", bed.join("cache"))
            .env("XDG_CONFIG_HOME", bed)
            .env("XDG_STATE_HOME", bed)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, said) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read(&mut output) {
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        Server { child, input, said }
    }

    pub fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        self.input.flush().unwrap();
    }

    /// Returns the next message, or `None` if no more will come. `what` describes the expected
    /// event for error messages.
    pub fn next(&self, what: &str) -> Option<Value> {
        match self.said.recv_timeout(PATIENCE) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("{what}: the server says nothing"),
        }
    }

    /// Returns the exit status of the server, while its standard input is still open.
    pub fn ended(mut self) -> ExitStatus {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.child.kill().unwrap();
        panic!("the server goes on after `exit`");
    }
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length:") {
            length = Some(value.trim().parse().unwrap());
        }
    }
    let mut body = vec![0; length.expect("a length")];
    output.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("JSON"))
}
