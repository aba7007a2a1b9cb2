//! Measures how fast the language server of the release build answers an editor while it indexes a
//! large project and eight agents work.
//!
//! ```sh
//! STARLING_BENCH_TREE=path/to/django cargo bench --no-default-features --bench editor
//! ```
//!
//! For comparison, each round also sends a byte to `cat` and back, which shows the latency of the
//! busy machine itself. `STARLING_BENCH_SERVER` names another binary to measure. The tree is not
//! modified. The model's replies are a recording: each agent immediately proposes a change of one
//! function in an open file of 3,000 lines, in which the benchmark types.

#![allow(clippy::unwrap_used)]

mod recording;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use starling_rpc::{Connection, Incoming};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Notify;

const STARTS: usize = 20;
const LINES: usize = 3_000;
const AGENTS: usize = 8;
/// Pause between two rounds. It is short, because the benchmark measures the server under load.
const PAUSE: Duration = Duration::from_millis(2);

/// Numbers of events that the server has sent, by kind.
#[derive(Default)]
struct ServerEvents {
    events: Mutex<BTreeMap<String, usize>>,
    news: Notify,
}

impl ServerEvents {
    fn count(&self, event: &str) -> usize {
        let events = self
            .events
            .lock()
            .expect("no thread panicked while it held the lock");
        events.get(event).copied().unwrap_or_default()
    }

    async fn until(&self, event: &str, count: usize) {
        let so = async {
            while self.count(event) < count {
                self.news.notified().await;
            }
        };
        let deadline = Duration::from_secs(120);
        if tokio::time::timeout(deadline, so).await.is_err() {
            let events = self
                .events
                .lock()
                .expect("no thread panicked while it held the lock");
            panic!("{event} arrived fewer than {count} times in 120 s: {events:?}");
        }
    }
}

/// Measures the machine's own latency with `cat`.
struct CatProcess {
    child: Child,
}

impl CatProcess {
    fn start() -> CatProcess {
        let child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("cat starts");
        CatProcess { child }
    }

    async fn ask(&mut self) {
        let (input, output) = (self.child.stdin.as_mut(), self.child.stdout.as_mut());
        let (input, output) = (
            input.expect("the stream is piped"),
            output.expect("the stream is piped"),
        );
        input.write_all(b"x").await.expect("cat listens");
        let mut byte = [0; 1];
        output.read_exact(&mut byte).await.expect("cat answers");
    }
}

/// A running language server, with the connection to it and the events that it has sent.
struct Server {
    child: Child,
    connection: Connection,
    heard: Arc<ServerEvents>,
}

impl Server {
    fn start(bed: &Path) -> Server {
        let model = format!("replay:{}", bed.join("recording.jsonl").display());
        let server = std::env::var_os("STARLING_BENCH_SERVER");
        let server = server.unwrap_or_else(|| env!("CARGO_BIN_EXE_starling").into());
        let mut child = Command::new(server)
            .args(["lsp", "--model", &model])
            .env("STARLING_CACHE_DIR", bed.join("cache"))
            .env("XDG_CONFIG_HOME", bed)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts");
        let (input, output) = (child.stdout.take(), child.stdin.take());
        let heard = Arc::new(ServerEvents::default());
        let told = Arc::clone(&heard);
        let connection = Connection::open(
            input.expect("the stream is piped"),
            output.expect("the stream is piped"),
            move |connection, incoming, _| match incoming {
                Incoming::Request { id, .. } => connection.reply(id, Ok(Value::Null)),
                Incoming::Notification { params, .. } => {
                    if let Some(event) = params["event"]["event"].as_str() {
                        let mut events = told
                            .events
                            .lock()
                            .expect("no thread panicked while it held the lock");
                        *events.entry(event.to_owned()).or_default() += 1;
                        told.news.notify_waiters();
                        told.news.notify_one();
                    }
                }
            },
        );
        Server {
            child,
            connection,
            heard,
        }
    }

    async fn hello(&self, root: &Path) {
        let uri = uri(root);
        let hello = json!({"rootUri": uri, "capabilities": {
            "general": {"positionEncodings": ["utf-16"]},
            "workspace": {"workspaceEdit": {"documentChanges": true}, "codeLens": {"refreshSupport": true}},
            "textDocument": {"codeLens": {}},
            "experimental": {"starling": {}},
        }});
        self.ask("initialize", hello).await;
        self.connection.notify("initialized", json!({}));
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.connection.request(method, params).await;
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Returns resident memory in MiB: current and peak.
    fn memory(&self) -> (u64, u64) {
        let pid = self.child.id().expect("the server runs");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            number.unwrap_or_default() / 1024
        };
        (of("VmRSS:"), of("VmHWM:"))
    }
}

fn uri(path: &Path) -> Value {
    json!(format!("file://{}", path.display()))
}

fn main() {
    let Some(root) = std::env::var_os("STARLING_BENCH_TREE").map(PathBuf::from) else {
        println!("set STARLING_BENCH_TREE to a checkout, for example of Django");
        return;
    };
    let root = root.canonicalize().expect("the tree exists");
    let bed = tempfile::tempdir().expect("a temporary directory can be created");
    let open = recording::write(&bed.path().join("recording.jsonl"), AGENTS, LINES);
    let runtime = tokio::runtime::Runtime::new().expect("the Tokio runtime starts");
    runtime.block_on(async {
        starts(&root, bed.path()).await;
        under_load(&root, bed.path(), open).await;
    });
}

async fn starts(root: &Path, bed: &Path) {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        let server = Server::start(bed);
        server.hello(root).await;
        times.push(began.elapsed());
    }
    report("start to initialize", times);
}

async fn under_load(root: &Path, bed: &Path, text: String) {
    let server = Server::start(bed);
    server.hello(root).await;
    let file = uri(&root.join(recording::FILE));
    server.connection.notify(
        "textDocument/didOpen",
        json!({"textDocument": {"uri": file, "languageId": "python", "version": 1, "text": text}}),
    );
    let document = json!({ "uri": file });
    let began = Instant::now();
    let argument = json!({
        "task": "Make the functions longer.", "approve": "ask",
        "test": "printf 'Ran 1 test in 0.001s\\n\\nOK\\n' >&2",
    });
    let reply = execute(&server, "starling.run", argument).await;
    let mut measured = Latencies::default();
    let mut echo = CatProcess::start();
    let mut version = 1;
    while server.heard.count("review_asked") < AGENTS {
        assert!(began.elapsed() < Duration::from_secs(180), "no reviews");
        assert_eq!(server.heard.count("run_finished"), 0, "the run ended");
        measured
            .step(&server, &mut echo, &document, &mut version)
            .await;
    }
    let at_work = began.elapsed();
    let samples = measured.empty.len();
    for _ in 0..1_000 {
        measured
            .step(&server, &mut echo, &document, &mut version)
            .await;
    }
    println!(
        "indexing and {AGENTS} agents took {:.1} s ({samples} rounds), then 1000 rounds over what waits",
        at_work.as_secs_f64()
    );
    let Latencies {
        echo,
        empty,
        change,
        lens,
        lenses,
    } = measured;
    report("a byte to cat and back", echo);
    report("empty request", empty);
    report("didChange, then an action at it", change);
    report("lens request", lens);
    println!("  of {lenses} lenses in the last answer");
    let (now, most) = server.memory();
    println!("memory: {now} MB, at most {most} MB");
    let began = Instant::now();
    execute(&server, "starling.cancel", json!({"run": reply["run"]})).await;
    let answered = began.elapsed();
    server.heard.until("run_finished", 1).await;
    println!(
        "cancel: answered in {:.2} ms, the run over in {:.2} ms",
        millis(answered),
        millis(began.elapsed())
    );
}

async fn execute(server: &Server, command: &str, argument: Value) -> Value {
    let params = json!({"command": command, "arguments": [argument]});
    server.ask("workspace/executeCommand", params).await
}

/// The measured latencies of each kind of request, and the number of lenses in the last reply.
#[derive(Default)]
struct Latencies {
    echo: Vec<Duration>,
    empty: Vec<Duration>,
    change: Vec<Duration>,
    lens: Vec<Duration>,
    lenses: usize,
}

impl Latencies {
    async fn step(
        &mut self,
        server: &Server,
        echo: &mut CatProcess,
        document: &Value,
        version: &mut i32,
    ) {
        let began = Instant::now();
        echo.ask().await;
        self.echo.push(began.elapsed());

        let elsewhere = json!({"textDocument": {"uri": "untitled:x"}});
        let began = Instant::now();
        server.ask("textDocument/codeLens", elsewhere).await;
        self.empty.push(began.elapsed());

        // The benchmark types at the end of the file, outside of all proposals. Every eighth change
        // is a new line.
        *version += 1;
        let text = if *version % 8 == 0 { "\n" } else { "#" };
        let at = json!({"line": 1_000_000, "character": 0});
        let began = Instant::now();
        server.connection.notify(
            "textDocument/didChange",
            json!({
                "textDocument": {"uri": document["uri"], "version": *version},
                "contentChanges": [{"range": {"start": at, "end": at}, "text": text}],
            }),
        );
        let start = json!({"line": 0, "character": 0});
        let params = json!({
            "textDocument": document, "range": {"start": start, "end": start},
            "context": {"diagnostics": [], "only": ["quickfix"]},
        });
        server.ask("textDocument/codeAction", params).await;
        self.change.push(began.elapsed());

        let began = Instant::now();
        let params = json!({ "textDocument": document });
        let lenses = server.ask("textDocument/codeLens", params).await;
        self.lens.push(began.elapsed());
        self.lenses = lenses.as_array().map_or(0, Vec::len);
        tokio::time::sleep(PAUSE).await;
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| millis(times[((times.len() - 1) as f64 * share) as usize]);
    println!(
        "{what}: p50 {:.2} ms, p99 {:.2} ms, worst {:.2} ms ({})",
        at(0.5),
        at(0.99),
        at(1.0),
        times.len()
    );
}
