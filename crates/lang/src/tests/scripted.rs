//! An in-memory language server that misbehaves as scripted. The server's diagnostics contain the
//! text itself, so that a test detects diagnostics of an older text.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::mpsc;

use crate::keeper::ServerSupervisor;
use crate::link::{ServerLauncher, ServerLink};
use crate::session::ServerSetup;
use starling_core::{Effort, Problem, TextRequest};
use starling_rpc::frames::MessageReader;
use starling_rpc::wire;
use starling_syntax::FilePath;

/// How a server delivers diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosticsMode {
    Pull,
    /// Supports pull, but registers for it some time after the handshake.
    PullLater,
    Push,
    /// Pushes diagnostics without versions, for one text after the other.
    PushBare,
}

/// A pseudo-random generator that is deterministic for a seed.
#[derive(Debug, Clone)]
pub struct TestRng(u64);

impl TestRng {
    pub fn new(seed: u64) -> Self {
        TestRng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }

    /// Returns true with a probability of `times` percent.
    pub fn in_hundred(&mut self, times: u64) -> bool {
        self.below(100) < times
    }
}

/// The probability of each kind of misbehaviour, in percent.
#[derive(Debug, Clone, Copy)]
pub struct ServerScript {
    pub manner: DiagnosticsMode,
    pub crash_at_start: u64,
    pub crash_at_message: u64,
    pub silent: u64,
    pub slow: u64,
    pub flood: u64,
    pub wrong_version: u64,
    pub garbage: u64,
    pub refuse: u64,
    /// Requests about names get no reply.
    pub slow_names: u64,
    /// The server never reports a problem.
    pub blind: bool,
    /// Number of texts after which the server stops replying; 0 means never.
    pub silent_after: u64,
}

impl ServerScript {
    pub fn good(manner: DiagnosticsMode) -> Self {
        ServerScript {
            manner,
            crash_at_start: 0,
            crash_at_message: 0,
            silent: 0,
            slow: 0,
            flood: 0,
            wrong_version: 0,
            garbage: 0,
            refuse: 0,
            slow_names: 0,
            blind: false,
            silent_after: 0,
        }
    }

    /// Creates a keeper of such servers. Each start uses another seed.
    pub fn keeper(self, seed: u64) -> ServerSupervisor {
        let starts = Arc::new(Mutex::new(seed.wrapping_mul(1000)));
        let launch: ServerLauncher = Arc::new(move || {
            let mut starts = starts.lock().unwrap();
            *starts += 1;
            let (ours, theirs) = duplex(1 << 16);
            tokio::spawn(run(self, TestRng::new(*starts), theirs));
            let (input, output) = split(ours);
            Ok(ServerLink {
                input: Box::new(input),
                output: Box::new(output),
                process: None,
            })
        });
        let about = ServerSetup {
            name: "scripted".to_owned(),
            root: "/p".into(),
            settings: json!({}),
            options: json!({}),
        };
        ServerSupervisor::new(about, launch)
    }
}

pub fn request(file: &str, text: &str, other: Option<&str>, deadline: Duration) -> TextRequest {
    let overlay = other.map(|text| (FilePath::new("other.py"), Some(Arc::from(text))));
    TextRequest {
        file: FilePath::new(file),
        text: text.into(),
        overlay: overlay.into_iter().collect(),
        effort: Effort::Fast,
        deadline,
    }
}

/// Returns the message that a server must report for a text while another document has the text
/// `other`.
pub fn seen(text: &str, other: Option<&str>) -> String {
    format!("{text}|{}", other.unwrap_or_default())
}

pub fn words(problems: &[Problem]) -> Vec<&str> {
    problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect()
}

/// A message and its delay. `None` stops the server.
type ScheduledMessage = (Duration, Option<Value>);

/// A language server in memory that misbehaves as its script says.
struct ScriptedServer {
    script: ServerScript,
    dice: TestRng,
    texts: BTreeMap<String, String>,
    say: mpsc::UnboundedSender<ScheduledMessage>,
    /// The end of the current analysis, for a server that runs one analysis at a time.
    busy: Duration,
    shown: u64,
    clock: tokio::time::Instant,
}

async fn run(script: ServerScript, dice: TestRng, pipe: DuplexStream) {
    let (input, output) = split(pipe);
    let (say, said) = mpsc::unbounded_channel();
    let speaker = tokio::spawn(speak(output, said));
    let server = ScriptedServer {
        script,
        dice,
        texts: BTreeMap::new(),
        say,
        busy: Duration::ZERO,
        shown: 0,
        clock: tokio::time::Instant::now(),
    };
    server.serve(MessageReader::new(input)).await;
    speaker.abort();
}

/// Sends messages in the order in which they are due.
async fn speak(
    mut output: WriteHalf<DuplexStream>,
    mut said: mpsc::UnboundedReceiver<ScheduledMessage>,
) {
    let mut waiting: BTreeMap<(tokio::time::Instant, u64), Option<Value>> = BTreeMap::new();
    let mut count = 0;
    loop {
        let due = waiting.first_key_value().map(|((due, _), _)| *due);
        let next = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            more = said.recv() => match more {
                Some((after, message)) => {
                    count += 1;
                    waiting.insert((tokio::time::Instant::now() + after, count), message);
                }
                None => return,
            },
            () = next => match waiting.pop_first() {
                Some((_, Some(Value::String(garbage)))) => {
                    if output.write_all(garbage.as_bytes()).await.is_err() {
                        return;
                    }
                }
                Some((_, Some(message))) => {
                    if wire::write(&mut output, &message).await.is_err() {
                        return;
                    }
                }
                Some((_, None)) | None => return,
            },
        }
    }
}

impl ScriptedServer {
    async fn serve(mut self, mut input: MessageReader<ReadHalf<DuplexStream>>) {
        if self.dice.in_hundred(self.script.crash_at_start) {
            return;
        }
        while let Ok(Some(Ok(message))) = input.next::<Value>().await {
            if self.dice.in_hundred(self.script.crash_at_message) {
                return;
            }
            // Only react to requests and notifications: a flood of replies would cause further
            // floods.
            if !message["method"].is_null() {
                self.misbehave();
            }
            self.take(message);
        }
    }

    fn say(&self, after: Duration, message: Value) {
        let _ = self.say.send((after, Some(message)));
    }

    fn misbehave(&mut self) {
        if self.dice.in_hundred(self.script.garbage) {
            let after = Duration::from_millis(self.dice.below(500));
            let garbage = [
                "Content-Length: 5\r\n\r\n{{{{{",
                "what?\r\n\r\n",
                "\r\n\r\n",
            ];
            let which = self.dice.below(garbage.len() as u64) as usize;
            self.say(after, Value::String(garbage[which].to_owned()));
        }
        if self.dice.in_hundred(self.script.flood) {
            for count in 0..200 {
                let uri = format!("file:///p/{count}.py");
                let params = json!({"uri": uri, "version": count, "diagnostics": [{"x": 1}]});
                self.say(
                    Duration::ZERO,
                    note("textDocument/publishDiagnostics", &params),
                );
                let params = json!({"token": count, "value": {"kind": "report"}});
                self.say(Duration::ZERO, note("$/progress", &params));
                let ask = json!({"jsonrpc": "2.0", "id": count, "method": "workspace/configuration",
                    "params": {"items": [{}]}});
                self.say(Duration::ZERO, ask);
                let answer = json!({"jsonrpc": "2.0", "id": 100_000 + count, "result": null});
                self.say(Duration::ZERO, answer);
            }
        }
    }

    /// Returns the duration of an operation; `None` means forever.
    fn takes(&mut self) -> Option<Duration> {
        if self.dice.in_hundred(self.script.silent) {
            return None;
        }
        let most = match self.dice.in_hundred(self.script.slow) {
            true => 8000,
            false => 50,
        };
        Some(Duration::from_millis(self.dice.below(most)))
    }

    fn take(&mut self, mut message: Value) {
        let params = message["params"].take();
        let id = message["id"].take();
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => self.greet(&id),
            "initialized" if self.script.manner == DiagnosticsMode::PullLater => {
                let registration = json!({"registrations": [
                    {"id": "d", "method": "textDocument/diagnostic", "registerOptions": {}},
                ]});
                let ask = json!({"jsonrpc": "2.0", "id": "r", "method": "client/registerCapability",
                    "params": registration});
                let after = Duration::from_millis(self.dice.below(300));
                self.say(after, ask);
            }
            "textDocument/didOpen" => {
                let document = &params["textDocument"];
                self.changed(document, &document["text"]);
            }
            "textDocument/didChange" => {
                let text = &params["contentChanges"][0]["text"];
                self.changed(&params["textDocument"], text);
            }
            "textDocument/didClose" => {
                let uri = params["textDocument"]["uri"].as_str().unwrap();
                self.texts.remove(uri);
            }
            "textDocument/diagnostic" => {
                let uri = params["textDocument"]["uri"].as_str().unwrap().to_owned();
                let result = json!({"kind": "full", "items": self.report(&uri)});
                self.answer(&id, result);
            }
            "textDocument/definition"
            | "textDocument/references"
            | "textDocument/implementation" => {
                let uri = params["textDocument"]["uri"].as_str().unwrap().to_owned();
                let places = self.places(&uri);
                self.answer_of_name(&id, places);
            }
            "textDocument/hover" => {
                let uri = params["textDocument"]["uri"].as_str().unwrap();
                let text = json!({"contents": self.seen(uri)});
                self.answer_of_name(&id, text);
            }
            // A server that reads messages in order has read the texts by now, so it can reply at
            // once.
            "textDocument/documentSymbol" => {
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": []});
                self.say(Duration::ZERO, answer);
            }
            _ => {}
        }
    }

    fn greet(&mut self, id: &Value) {
        let pull = match self.script.manner {
            DiagnosticsMode::Pull => json!({"interFileDependencies": true}),
            DiagnosticsMode::PullLater | DiagnosticsMode::Push | DiagnosticsMode::PushBare => {
                Value::Null
            }
        };
        let result = json!({
            "serverInfo": {"name": "scripted", "version": "1.0"},
            "capabilities": {
                "textDocumentSync": 1,
                "diagnosticProvider": pull,
                "documentSymbolProvider": true,
                "definitionProvider": true,
                "referencesProvider": {},
                "implementationProvider": true,
                "hoverProvider": true,
            },
        });
        self.answer(id, result);
    }

    fn answer_of_name(&mut self, id: &Value, result: Value) {
        if !self.dice.in_hundred(self.script.slow_names) {
            self.answer(id, result);
        }
    }

    fn answer(&mut self, id: &Value, result: Value) {
        let refuses = self.dice.in_hundred(self.script.refuse);
        let Some(after) = self.takes() else {
            return;
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": id});
        match refuses {
            true => {
                let code = [-32801, -32802, -32603][self.dice.below(3) as usize];
                answer["error"] = json!({"code": code, "message": "not now"});
            }
            false => answer["result"] = result,
        }
        self.say(after, answer);
    }

    fn changed(&mut self, document: &Value, text: &Value) {
        let uri = document["uri"].as_str().unwrap().to_owned();
        self.texts
            .insert(uri.clone(), text.as_str().unwrap().to_owned());
        let version = document["version"].as_i64().unwrap();
        self.shown += 1;
        let silent = self.script.silent_after != 0 && self.shown > self.script.silent_after;
        let after = self.takes().filter(|_| !silent);
        match self.script.manner {
            DiagnosticsMode::Pull | DiagnosticsMode::PullLater => {}
            DiagnosticsMode::Push => {
                let version = match self.dice.in_hundred(self.script.wrong_version) {
                    true => [version - 1, version + 1, 0, -version, version * 7]
                        [self.dice.below(5) as usize],
                    false => version,
                };
                self.publish(&uri, json!(version), after);
            }
            DiagnosticsMode::PushBare => {
                let Some(after) = after else {
                    return;
                };
                let now = self.clock.elapsed();
                self.busy = self.busy.max(now) + after;
                self.publish(&uri, Value::Null, Some(self.busy - now));
            }
        }
    }

    fn publish(&mut self, uri: &str, version: Value, after: Option<Duration>) {
        let items = self.report(uri);
        let mut params = json!({"uri": uri, "diagnostics": items});
        if !version.is_null() {
            params["version"] = version;
        }
        if let Some(after) = after {
            self.say(after, note("textDocument/publishDiagnostics", &params));
        }
    }

    fn report(&self, uri: &str) -> Value {
        if self.script.blind {
            return json!([]);
        }
        let at = json!({"line": 0, "character": 0});
        json!([{
            "range": {"start": at, "end": at},
            "severity": 1,
            "message": self.seen(uri),
        }])
    }

    fn seen(&self, uri: &str) -> String {
        let other = self.texts.get("file:///p/other.py").map(String::as_str);
        let text = self.texts.get(uri).map_or("nothing", String::as_str);
        seen(text, other)
    }

    /// Returns a location whose length depends on the text, so that it fits no other text.
    fn places(&self, uri: &str) -> Value {
        let length = self.seen(uri).len();
        let range = json!({
            "start": {"line": 0, "character": length},
            "end": {"line": 0, "character": 2 * length},
        });
        let place = json!({"uri": uri, "range": range});
        match length % 3 {
            0 => place,
            1 => json!([place]),
            _ => json!([{"targetUri": uri, "targetRange": range, "targetSelectionRange": range}]),
        }
    }
}

fn note(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}
