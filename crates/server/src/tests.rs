//! Tests of the server through the protocol, with scripted runs.

mod asking;
mod checked;
mod composing;
mod disk;
mod editing;
mod interrupted;
mod keystrokes;
mod killed;
mod late;
mod lenses;
mod misplaced;
mod plain;
mod refused;
mod refused_late;
mod relied_on;
mod renaming;
mod restart;
mod retry;
mod schemes;
mod settings;
mod shown;
mod spellings;
mod typed_over;
mod undoing;
mod unreviewed;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{ExitKind, RunStarter, Services};
use crate::testing::*;
use starling_core::{Effect, FileEdit};
use starling_swarm::StopReason;
use starling_text::ChangeSet;

fn silent() -> Value {
    json!({})
}

/// A run that logs three messages, then waits until it is cancelled.
fn chatty() -> RunStarter {
    scripted(async |scene: RunScript| {
        for word in ["one", "two", "three"] {
            scene
                .log
                .event(said(&format!("{word} {}", scene.task.text)));
            tokio::task::yield_now().await;
        }
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

/// A run that ends at once.
fn brief() -> RunStarter {
    scripted(async |scene: RunScript| scene.log.event(finished(StopReason::Settled)))
}

async fn begin(client: &TestClient, task: &str) -> String {
    let reply = client.execute("starling.run", json!({"task": task})).await;
    reply["run"].as_str().unwrap().to_owned()
}

async fn refusal(client: &TestClient, command: &str, argument: Value) -> String {
    let params = json!({"command": command, "arguments": [argument]});
    let request = client
        .connection
        .request("workspace/executeCommand", params);
    request.await.unwrap_err().to_string()
}

/// Repeats a command until it is refused.
async fn refused_at_last(client: &TestClient, command: &str, argument: Value) -> String {
    let params = json!({"command": command, "arguments": [argument]});
    loop {
        let connection = &client.connection;
        let asked = connection.request("workspace/executeCommand", params.clone());
        if let Err(error) = asked.await {
            return error.to_string();
        }
        tokio::task::yield_now().await;
    }
}

/// Returns the next event of a run; events of other runs are skipped.
async fn next_event(client: &mut TestClient, run: &str) -> Value {
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["run"] == run {
            return params;
        }
    }
}

/// Returns the records of a trajectory.
fn records_of(folder: &std::path::Path, run: &str) -> Vec<Value> {
    let path = folder.join(format!(".trajectories/{run}.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[tokio::test]
async fn edits_use_the_negotiated_encoding() {
    for (wanted, negotiated, column) in [
        (json!(["utf-8", "utf-16"]), "utf-8", 4),
        (json!(["utf-7", "utf-32"]), "utf-32", 1),
        (json!(["utf-7"]), "utf-16", 2),
        (json!(null), "utf-16", 2),
    ] {
        let mut client = TestClient::new(scripted(async |scene: RunScript| {
            let editor = &scene.outside.editor;
            let base = editor.current(&file("a.py")).await.unwrap();
            let edit = FileEdit {
                file: file("a.py"),
                changes: ChangeSet::between(&base.text, &base.text.replace("old", "new")),
                base,
                label: "a.py::f".to_owned(),
                effect: Effect::Change,
            };
            let _ = editor.apply(edit).await;
        }));
        let answer = client
            .initialize(json!({
                "general": {"positionEncodings": wanted},
                "workspace": {"workspaceEdit": {"documentChanges": true}},
            }))
            .await;
        assert_eq!(answer["capabilities"]["positionEncoding"], negotiated);
        let open = json!({"textDocument": {
            "uri": client.uri(), "languageId": "python", "version": 1, "text": "\r\n🙂old\r\n",
        }});
        client.connection.notify("textDocument/didOpen", open);
        begin(&client, "x").await;
        let (_, params) = client.next_of("workspace/applyEdit").await;
        let edit = &params["edit"]["documentChanges"][0]["edits"][0];
        let start = json!({"line": 1, "character": column});
        assert_eq!(edit["range"]["start"], start, "{negotiated}");
        let end = json!({"line": 1, "character": column + 3});
        assert_eq!(edit["range"]["end"], end, "{negotiated}");
    }
}

#[tokio::test]
async fn commands_before_initialize_are_rejected() {
    let client = TestClient::new(brief());
    let said = refusal(&client, "starling.run", json!({"task": "x"})).await;
    assert!(said.contains("not initialized"), "{said}");
    client.initialize(silent()).await;
    begin(&client, "x").await;
}

#[tokio::test]
async fn event_numbers_increase_within_each_run() {
    let mut client = TestClient::new(chatty());
    client.initialize(silent()).await;
    let mut runs = Vec::new();
    for task in ["a", "b", "c"] {
        runs.push((task, begin(&client, task).await));
    }
    let mut told: Vec<(String, u64, String)> = Vec::new();
    while told.len() < 9 {
        let (_, params) = client.next_of("starling/event").await;
        told.push((
            params["run"].as_str().unwrap().to_owned(),
            params["seq"].as_u64().unwrap(),
            params["event"]["text"].as_str().unwrap().to_owned(),
        ));
    }
    for (task, run) in &runs {
        let own = told.iter().filter(|(of, ..)| of == run);
        let texts: Vec<_> = own.map(|(_, seq, text)| (*seq, text.clone())).collect();
        let expected = ["one", "two", "three"].map(|word| format!("{word} {task}"));
        let expected: Vec<_> = (0..).zip(expected).collect();
        assert_eq!(texts, expected, "{task}");
    }
    // Only the cancelled run ends.
    let (_, second) = &runs[1];
    client
        .execute("starling.cancel", json!({"run": second}))
        .await;
    let (_, end) = client.next_of("starling/event").await;
    assert_eq!(end["run"], json!(second));
    assert_eq!(end["event"]["stop_reason"]["reason"], "cancelled");
}

#[tokio::test]
async fn shutdown_ends_runs_and_completes_trajectories() {
    let mut client = TestClient::new(chatty());
    client.initialize(silent()).await;
    let run = begin(&client, "x").await;
    next_event(&mut client, &run).await;
    client
        .connection
        .request("shutdown", Value::Null)
        .await
        .unwrap();
    client.connection.notify("exit", Value::Null);
    let TestClient {
        server,
        folder,
        connection,
        ..
    } = client;
    assert_eq!(server.await.unwrap(), ExitKind::AfterShutdown);
    let records = records_of(folder.path(), &run);
    assert_eq!(records.len(), 4);
    let last = &records[3]["event"];
    assert_eq!(last["event"], "run_finished");
    assert_eq!(last["stop_reason"]["reason"], "cancelled");
    drop(connection);
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_unresponsive_run() {
    let client = TestClient::new(scripted(async |_scene: RunScript| {
        std::future::pending::<()>().await;
    }));
    client.initialize(silent()).await;
    begin(&client, "x").await;
    let began = tokio::time::Instant::now();
    client.connection.notify("exit", Value::Null);
    let kept_open = client.connection.clone();
    assert_eq!(client.ended().await, ExitKind::Abrupt);
    assert!(began.elapsed() < Duration::from_secs(5));
    drop(kept_open);
}

#[tokio::test]
async fn progress_bar_shows_activity_and_end() {
    let mut client = TestClient::new(scripted(async |scene: RunScript| {
        scene.log.event(said("no news for a bar"));
        scene.log.event(review_asked(1, "a.py::f"));
        scene.log.event(finished(StopReason::Settled));
    }));
    client
        .initialize(json!({"window": {"workDoneProgress": true}}))
        .await;
    let run = begin(&client, "tidy").await;
    let (id, create) = client.next_of("window/workDoneProgress/create").await;
    assert_eq!(create["token"], format!("starling/{run}"));
    client.connection.reply(id, Ok(Value::Null));
    let mut values = Vec::new();
    for _ in 0..3 {
        let (_, progress) = client.next_of("$/progress").await;
        assert_eq!(progress["token"], create["token"]);
        values.push(progress["value"].clone());
    }
    assert_eq!(
        json!(values),
        json!([
            {"kind": "begin", "title": "Starling: tidy", "cancellable": true},
            {"kind": "report", "cancellable": true, "message": "a.py::f waits for your review"},
            {"kind": "end", "message": "over"},
        ])
    );
}

#[tokio::test]
async fn progress_title_escapes_invisible_characters() {
    let mut client = TestClient::new(brief());
    client
        .initialize(json!({"window": {"workDoneProgress": true}}))
        .await;
    begin(&client, "ti\u{202e}dy\u{7}").await;
    let (id, _) = client.next_of("window/workDoneProgress/create").await;
    client.connection.reply(id, Ok(Value::Null));
    let (_, progress) = client.next_of("$/progress").await;
    let title = &progress["value"]["title"];
    assert_eq!(title, "Starling: ti\\u{202e}dy\\u{7}");
}

#[tokio::test]
async fn no_code_actions_are_offered_in_a_forbidden_file() {
    let client = TestClient::new(brief());
    client.initialize(silent()).await;
    let uri = client.uri().as_str().unwrap().replace("a.py", ".env");
    std::fs::write(client.folder.path().join(".env"), "KEY=1\n").unwrap();
    let open = json!({"textDocument": {
        "uri": uri, "languageId": "plain", "version": 1, "text": "KEY=1\n",
    }});
    client.connection.notify("textDocument/didOpen", open);
    let start = json!({"line": 0, "character": 0});
    let range = json!({"start": start, "end": start});
    let diagnostics = json!([{"range": range, "message": "wrong"}]);
    let params = json!({
        "textDocument": {"uri": uri}, "range": range, "context": {"diagnostics": diagnostics},
    });
    let actions = client.connection.request("textDocument/codeAction", params);
    assert_eq!(actions.await.unwrap(), json!([]));
}

#[tokio::test]
async fn server_ends_with_process_of_client() {
    let client = TestClient::new(brief());
    let mut editor = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let params = json!({"processId": editor.id(), "capabilities": {}});
    client
        .connection
        .request("initialize", params)
        .await
        .unwrap();
    client.connection.notify("initialized", json!({}));
    editor.kill().unwrap();
    editor.wait().unwrap();
    let kept_open = client.connection.clone();
    assert_eq!(client.ended().await, ExitKind::Abrupt);
    drop(kept_open);
}

#[tokio::test]
async fn no_progress_is_sent_to_a_client_that_refuses_it() {
    let mut client = TestClient::new(chatty());
    client
        .initialize(json!({"window": {"workDoneProgress": true}}))
        .await;
    let run = begin(&client, "x").await;
    let (id, _) = client.next_of("window/workDoneProgress/create").await;
    client.connection.reply(id, Err("no bars here".to_owned()));
    client.execute("starling.cancel", json!({"run": run})).await;
    loop {
        match client.next().await {
            starling_rpc::Incoming::Notification { method, params } => {
                assert_ne!(method, "$/progress");
                if params["event"]["event"] == "run_finished" {
                    break;
                }
            }
            starling_rpc::Incoming::Request { method, .. } => panic!("asked for {method}"),
        }
    }
}

#[tokio::test]
async fn unknown_progress_token_cancels_nothing() {
    let mut client = TestClient::new(chatty());
    client.initialize(silent()).await;
    let run = begin(&client, "x").await;
    for token in [json!(7), json!(run), json!("starling/no-such"), json!("")] {
        let params = json!({ "token": token });
        client
            .connection
            .notify("window/workDoneProgress/cancel", params);
    }
    // The run still receives messages.
    for _ in 0..3 {
        let params = next_event(&mut client, &run).await;
        assert_eq!(params["event"]["event"], "steered");
    }
    client.execute("starling.cancel", json!({"run": run})).await;
    let end = next_event(&mut client, &run).await;
    assert_eq!(end["event"]["event"], "run_finished");
}

#[tokio::test]
async fn ended_run_rejects_messages() {
    let mut client = TestClient::new(brief());
    client.initialize(silent()).await;
    let run = begin(&client, "x").await;
    next_event(&mut client, &run).await;
    // The run counts as ended a moment after its last event was sent.
    let said = refused_at_last(&client, "starling.steer", json!({"run": run, "text": "t"})).await;
    assert!(said.contains("has ended"), "{said}");
    let accept = json!({"run": run, "proposal": 1});
    let said = refusal(&client, "starling.accept", accept).await;
    assert!(said.contains("#1 is not waiting for an answer"), "{said}");
    let cancelled = client.execute("starling.cancel", json!({"run": run})).await;
    assert_eq!(cancelled, Value::Null, "a second cancel does no harm");
}

#[tokio::test]
async fn steer_message_to_an_unknown_symbol_is_rejected() {
    let mut client = TestClient::new(chatty());
    client.initialize(silent()).await;
    let run = begin(&client, "x").await;
    next_event(&mut client, &run).await;
    let steer = json!({"run": run, "symbol": "a.py::missing", "text": "t"});
    let said = refusal(&client, "starling.steer", steer).await;
    assert!(said.contains("There is no symbol a.py::missing"), "{said}");
    let steer = json!({"run": run, "symbol": "a.py::f", "text": "t"});
    client.execute("starling.steer", steer).await;
}

#[tokio::test]
async fn undo_reports_the_undone_proposals() {
    let mut client = TestClient::new(chatty());
    client.initialize(silent()).await;
    let run = begin(&client, "x").await;
    next_event(&mut client, &run).await;
    for (argument, proposals) in [
        (json!({"run": run}), json!([2, 1])),
        (json!({"run": run, "proposal": 1}), json!([1])),
    ] {
        assert_eq!(client.execute("starling.undo", argument).await, Value::Null);
        let (_, undone) = client.next_of("starling/undone").await;
        assert_eq!(undone, json!({"run": run, "proposals": proposals}));
    }
    let unknown = json!({"run": run, "proposal": 9});
    client.execute("starling.undo", unknown).await;
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([]));
    let error = undone["error"].as_str().unwrap();
    assert!(error.contains("no applied proposal #9"), "{error}");
}

#[tokio::test]
async fn session_keeps_only_the_latest_ended_runs() {
    let mut client = TestClient::new(brief());
    client.initialize(silent()).await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        let run = begin(&client, "x").await;
        next_event(&mut client, &run).await;
        runs.push(run);
    }
    let oldest = json!({"run": runs[0]});
    let said = refused_at_last(&client, "starling.undo", oldest).await;
    let expected = format!("there is no run `{}`", runs[0]);
    assert!(said.contains(&expected), "{said}");
    let kept = json!({"run": runs[10]});
    client.execute("starling.undo", kept).await;
}

/// Returns a client of a server that opens runs only when it is notified.
fn slow(start: RunStarter) -> (TestClient, Arc<Notify>) {
    let folder = folder(&[("a.py", "old\n")]);
    let services = services(start, &folder.path().join(".trajectories"));
    let gate = Arc::new(Notify::new());
    let (open, at_gate) = (Arc::clone(&services.open), Arc::clone(&gate));
    let services = Services {
        open: Arc::new(move |opening| {
            let (opened, gate) = (open(opening), Arc::clone(&at_gate));
            Box::pin(async move {
                gate.notified().await;
                opened.await
            })
        }),
        ..services
    };
    (TestClient::over(services, folder), gate)
}

#[tokio::test]
async fn run_receives_messages_sent_while_it_opens() {
    let (mut client, gate) = slow(scripted(async |mut scene: RunScript| {
        for _ in 0..2 {
            let (to, text) = scene.steered.recv().await.unwrap();
            let to = to.map_or("all".to_owned(), |symbol| symbol.to_string());
            scene.log.event(said(&format!("{to}: {text}")));
        }
    }));
    client.initialize(silent()).await;
    let run = begin(&client, "x").await;
    let said = refusal(&client, "starling.undo", json!({"run": run})).await;
    assert!(said.contains("has changed nothing yet"), "{said}");
    for argument in [
        json!({"run": run, "text": "gently"}),
        json!({"run": run, "text": "faster", "symbol": "a.py::f"}),
    ] {
        client.execute("starling.steer", argument).await;
    }
    gate.notify_one();
    for expected in ["all: gently", "a.py::f: faster"] {
        let told = next_event(&mut client, &run).await;
        assert_eq!(told["event"]["text"], expected);
    }
}

#[tokio::test]
async fn run_can_be_cancelled_while_it_opens() {
    let (mut client, _shut) = slow(scripted(async |_scene: RunScript| panic!("it was started")));
    client.initialize(silent()).await;
    let run = begin(&client, "x").await;
    client.execute("starling.cancel", json!({"run": run})).await;
    let end = next_event(&mut client, &run).await;
    assert_eq!(end["event"]["stop_reason"]["reason"], "cancelled");
    let summary = end["event"]["summary"].as_str().unwrap();
    assert!(summary.contains("before it began"), "{summary}");
}

#[tokio::test]
async fn run_uses_project_buffers_at_request_time() {
    let (mut client, gate) = slow(scripted(async |scene: RunScript| {
        let snapshot = scene.outside.index.snapshot();
        let text = snapshot.read(&file("a.py")).unwrap();
        scene.log.event(said(&text));
    }));
    client.initialize(silent()).await;
    let open = |uri: Value, text: &str| {
        let document = json!({"uri": uri, "languageId": "python", "version": 1, "text": text});
        let params = json!({ "textDocument": document });
        client.connection.notify("textDocument/didOpen", params);
    };
    open(json!("untitled:Untitled-1"), "of no folder");
    open(json!("file:///elsewhere/a.py"), "of another folder");
    open(client.uri(), "typed, not saved\n");
    let run = begin(&client, "x").await;
    let change = json!({
        "textDocument": {"uri": client.uri(), "version": 2},
        "contentChanges": [{"text": "typed later\n"}],
    });
    client.connection.notify("textDocument/didChange", change);
    gate.notify_one();
    let told = next_event(&mut client, &run).await;
    assert_eq!(told["event"]["text"], "typed, not saved\n");
}

#[tokio::test]
async fn request_with_an_unknown_method_gets_an_error_reply() {
    let client = TestClient::new(brief());
    client.initialize(silent()).await;
    for method in ["$/foo", "foo/bar"] {
        let answer = client.connection.request(method, json!({})).await;
        let error = answer.unwrap_err().to_string();
        assert!(error.to_lowercase().contains("method"), "{method}: {error}");
    }
}

/// Writes a message with its `Content-Length` header.
async fn send(output: &mut (impl tokio::io::AsyncWrite + Unpin), message: Value) {
    use tokio::io::AsyncWriteExt;
    let body = message.to_string();
    let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    output.write_all(frame.as_bytes()).await.unwrap();
}

/// Starts a server that is connected by two pipes. The pipe from the server holds only `unread`
/// bytes, so the server's writes soon wait if the client reads nothing.
fn piped(
    unread: usize,
) -> (
    tempfile::TempDir,
    tokio::io::DuplexStream,
    tokio::io::DuplexStream,
    tokio::task::JoinHandle<ExitKind>,
) {
    let folder = folder(&[("a.py", "old\n")]);
    let services = services(brief(), &folder.path().join(".trajectories"));
    let (ours, input) = tokio::io::duplex(1 << 16);
    let (theirs, output) = tokio::io::duplex(unread);
    let server = tokio::spawn(super::serve(input, output, services));
    (folder, ours, theirs, server)
}

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn exit_or_the_end_of_input_ends_the_server_while_client_reads_nothing() {
    for (leaves, exits) in [(true, true), (false, true), (false, false)] {
        let (folder, mut ours, _unread, server) = piped(64);
        let root = tower_lsp::lsp_types::Url::from_directory_path(folder.path()).unwrap();
        let params = json!({"rootUri": root, "capabilities": {}});
        send(&mut ours, request(0, "initialize", &params)).await;
        for id in 1..600 {
            send(&mut ours, request(id, "starling/state", &json!({}))).await;
        }
        if leaves {
            send(&mut ours, request(600, "shutdown", &Value::Null)).await;
        }
        if exits {
            send(&mut ours, json!({"jsonrpc": "2.0", "method": "exit"})).await;
        } else {
            drop(ours);
        }
        let ended = tokio::time::timeout(Duration::from_secs(20), server).await;
        let expected = match leaves {
            true => ExitKind::AfterShutdown,
            false => ExitKind::Abrupt,
        };
        assert_eq!(ended.expect("it goes on").unwrap(), expected);
    }
}

#[tokio::test]
async fn unreadable_response_is_not_answered_and_long_error_is_shortened() {
    let (_folder, mut ours, theirs, server) = piped(1 << 20);
    let params = json!({"capabilities": {}});
    send(&mut ours, request(1, "initialize", &params)).await;
    let both =
        json!({"jsonrpc": "2.0", "id": 7, "result": 1, "error": {"code": 1, "message": "m"}});
    send(&mut ours, both).await;
    for error in [
        json!({"code": "a"}),
        json!({}),
        json!(null),
        json!("boom"),
        json!([1]),
        json!({"code": 1.5, "message": "m"}),
        json!({"code": 1e20, "message": "m"}),
        json!({"code": 1, "message": 5}),
    ] {
        let response = json!({"jsonrpc": "2.0", "id": "x", "error": error});
        send(&mut ours, response).await;
    }
    let params = json!({
        "command": "starling.cancel",
        "arguments": [{"run": "ä".repeat(1 << 20)}],
    });
    send(&mut ours, request(2, "workspace/executeCommand", &params)).await;
    drop(ours);
    let mut reader = starling_rpc::frames::MessageReader::new(theirs);
    let mut answers = Vec::new();
    while let Some(message) = reader.next::<Value>().await.unwrap() {
        answers.push(message.unwrap());
    }
    server.await.unwrap();
    answers.retain(|one| one.get("method").is_none());
    let ids: Vec<&Value> = answers.iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [1, 2]);
    let why = answers[1]["error"]["message"].as_str().unwrap();
    assert!(
        why.starts_with("there is no run") && why.len() < 5000,
        "{}",
        why.len()
    );
}
