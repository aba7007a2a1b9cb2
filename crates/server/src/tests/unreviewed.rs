//! Changes that nobody reviewed, when the server ends in the middle of their run.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::lenses::{client, full, open, project};
use super::restart::{event_of, make_edit_and_reply, restarted, state_of, take_edit, trajectory};
use crate::samples::{BASE, asked};
use crate::testing::*;
use crate::{ExitKind, RunStarter};
use starling_core::{Effect, FileEdit, Verdict};
use starling_rpc::Incoming;
use starling_swarm::{ActorId, AppliedChange, Event, ProposalId, StopReason};
use starling_text::ChangeSet;

fn after() -> String {
    BASE.replace("return 1", "yield 1")
}

async fn change(scene: &RunScript, from: &str, to: &str) -> bool {
    let editor = &scene.outside.editor;
    let Ok(base) = editor.current(&file("a.py")).await else {
        return false;
    };
    let edit = FileEdit {
        file: file("a.py"),
        changes: ChangeSet::between(&base.text, &base.text.replace(from, to)),
        base,
        label: "a.py::f".to_owned(),
        effect: Effect::Change,
    };
    editor.apply(edit).await.is_ok()
}

/// A run that applies a change and takes it back when it is cancelled.
fn applying() -> RunStarter {
    scripted(async |scene: RunScript| {
        assert!(change(&scene, "return 1", "yield 1").await);
        scene.log.event(said("applied"));
        scene.cancel.cancelled().await;
        let is_taken_back = change(&scene, "yield 1", "return 1").await;
        scene
            .log
            .event(said(&format!("taken back: {is_taken_back}")));
        scene.log.event(finished(StopReason::Cancelled));
    })
}

async fn applied(approve: &str) -> (TestClient, String) {
    let client = client(applying(), project());
    applied_in(client, approve).await
}

async fn applied_in(mut client: TestClient, approve: &str) -> (TestClient, String) {
    let mut capabilities = full();
    capabilities["general"] = json!({"positionEncodings": ["utf-8"]});
    client.initialize(capabilities).await;
    open(&client, BASE);
    let params = json!({"task": "x", "approve": approve});
    let reply = client.execute("starling.run", params).await;
    take_edit(&mut client, 1).await;
    assert_eq!(super::late::told(&mut client).await, "applied");
    (client, reply["run"].as_str().unwrap().to_owned())
}

fn is_marked(client: &TestClient, run: &str) -> bool {
    let marker = format!(".trajectories/{run}.interrupted");
    client.folder.path().join(marker).exists()
}

#[tokio::test]
async fn unreviewed_changes_are_taken_back_before_shutdown_is_answered() {
    let (mut client, run) = applied("auto").await;
    let connection = client.connection.clone();
    let shutdown = tokio::spawn(async move { connection.request("shutdown", Value::Null).await });
    assert_eq!(take_edit(&mut client, 2).await, "return");
    assert_eq!(shutdown.await.unwrap().unwrap(), Value::Null);
    let records = super::records_of(client.folder.path(), &run);
    let said = records.iter().map(|one| &one["event"]["text"]);
    let said: Vec<&Value> = said.filter(|text| text.is_string()).collect();
    assert_eq!(said, ["applied", "taken back: true"]);
    // After the reply, the server sends nothing and takes no command.
    let state = client
        .connection
        .request("starling/state", Value::Null)
        .await;
    assert!(state.is_err());
    assert!(is_marked(&client, &run), "the next server offers it");
    client.connection.notify("exit", Value::Null);
    assert_eq!(client.ended().await, ExitKind::AfterShutdown);
}

/// Requests that follow `shutdown` are answered after it; `exit` does not wait.
#[tokio::test]
async fn client_that_makes_no_more_edits_is_not_kept_waiting() {
    for exits in [false, true] {
        let (mut client, _) = applied("auto").await;
        let connection = client.connection.clone();
        let shutdown =
            tokio::spawn(async move { connection.request("shutdown", Value::Null).await });
        let (_unanswered, _) = client.next_of("workspace/applyEdit").await;
        if exits {
            client.connection.notify("exit", Value::Null);
        } else {
            let reply = tokio::time::timeout(std::time::Duration::from_secs(10), shutdown).await;
            assert_eq!(reply.unwrap().unwrap().unwrap(), Value::Null);
            client.connection.notify("exit", Value::Null);
        }
        assert_eq!(client.ended().await, ExitKind::AfterShutdown);
    }
}

#[tokio::test]
async fn reviewed_changes_stay_at_shutdown() {
    let (mut client, _) = applied("ask").await;
    let reply = client.connection.request("shutdown", Value::Null).await;
    assert_eq!(reply.unwrap(), Value::Null);
    client.connection.notify("exit", Value::Null);
    while let Some(message) = client.incoming.recv().await {
        if let Incoming::Request { method, .. } = message {
            assert_ne!(method, "workspace/applyEdit");
        }
    }
}

#[tokio::test]
async fn unreviewed_changes_are_taken_back_when_the_system_ends_the_server() {
    let folder = project();
    let services = services(applying(), &folder.path().join(".trajectories"));
    let terminate = Arc::new(Notify::new());
    let terminated = Arc::clone(&terminate);
    let terminated = async move { terminated.notified().await };
    let client = TestClient::until(services, folder, terminated);
    let (mut client, run) = applied_in(client, "auto").await;
    terminate.notify_one();
    assert_eq!(take_edit(&mut client, 2).await, "return");
    let folder = client.folder.path().to_owned();
    let marker = folder.join(format!(".trajectories/{run}.interrupted"));
    assert_eq!(client.server.await.unwrap(), ExitKind::Abrupt);
    assert!(marker.exists());
}

/// Writes the trajectory of a run that was killed after it applied a change without a review.
fn killed(folder: &std::path::Path, by: ActorId) {
    let mut events = asked(&[(1, "a.py::f")]);
    let Some(Event::ReviewAsked { parts, .. }) = events.pop() else {
        panic!("{events:?}");
    };
    let part = parts[0].clone();
    events.push(Event::ProposalReviewed {
        proposal: ProposalId(1),
        by,
        verdict: Verdict::Accept,
    });
    let change = AppliedChange {
        file: part.file,
        before: BASE.into(),
        changes: part.changes,
        created: false,
        deleted: None,
        directories: Vec::new(),
        dependencies: Default::default(),
        text_without: None,
    };
    events.push(Event::ProposalApplying {
        proposal: ProposalId(1),
        symbols: part.symbols.clone(),
        change: change.clone(),
    });
    events.push(Event::ProposalApplied {
        proposal: ProposalId(1),
        symbols: part.symbols,
        diff: String::new(),
        change: Some(change),
    });
    trajectory(folder, "r1", folder, events);
}

const LEFT: &str = "Starling: a run was interrupted. What it changed stays, and no person reviewed it: \
    a.py::f. An undo of the run takes it back: the task";

#[tokio::test]
async fn next_server_tells_which_unreviewed_changes_stay() {
    for (by, text, expected) in [
        (ActorId::Starling, after(), LEFT),
        (
            ActorId::User,
            after(),
            "Starling: a run was interrupted, and can be run again: the task",
        ),
        (
            ActorId::Proxy,
            BASE.to_owned(),
            "Starling: a run was interrupted, and can be run again: the task",
        ),
    ] {
        let folder = project();
        std::fs::write(folder.path().join("a.py"), &text).unwrap();
        killed(folder.path(), by);
        let mut client = restarted(folder).await;
        let (_, said) = client.next_of("window/showMessage").await;
        assert_eq!(said["message"], expected);
        if text == after() {
            let end = event_of(&mut client, "run_finished").await;
            let headline = end["event"]["ending"]["headline"].as_str().unwrap();
            let told = "changed a.py::f (no person reviewed it; an undo takes it back)";
            assert_eq!(headline.ends_with(told), expected == LEFT, "{headline}");
        }
    }
}

#[tokio::test]
async fn next_server_offers_to_take_unreviewed_changes_back() {
    for answer in ["Undo", "Keep"] {
        let folder = project();
        std::fs::write(folder.path().join("a.py"), after()).unwrap();
        killed(folder.path(), ActorId::Starling);
        let start = scripted(async |_: RunScript| {});
        let services = services(start, &folder.path().join(".trajectories"));
        let mut client = TestClient::over(services, folder);
        let mut capabilities = full();
        capabilities["general"] = json!({"positionEncodings": ["utf-8"]});
        capabilities["experimental"]["starling"]["notices"] = json!(true);
        client.initialize(capabilities).await;
        open(&client, &after());
        let (id, question) = client.next_of("window/showMessageRequest").await;
        assert_eq!(question["message"], LEFT);
        assert_eq!(
            question["actions"],
            json!([{"title": "Undo"}, {"title": "Keep"}])
        );
        event_of(&mut client, "run_finished").await;
        client.connection.reply(id, Ok(json!({"title": answer})));
        if answer == "Undo" {
            let (id, params) = client.next_of("workspace/applyEdit").await;
            let reply = json!({"applied": true});
            let made = make_edit_and_reply(&client, id, &params, 1, reply);
            assert_eq!(made, "return");
            let (_, undone) = client.next_of("starling/undone").await;
            assert_eq!(undone["proposals"], json!([1]));
        } else {
            let marker = client.folder.path().join(".trajectories/r1.reviewed");
            while !marker.exists() {
                tokio::task::yield_now().await;
            }
        }
        // Neither is asked about again.
        client.connection.notify("exit", Value::Null);
        client.server.await.unwrap();
        if answer == "Undo" {
            std::fs::write(client.folder.path().join("a.py"), BASE).unwrap();
        }
        let mut client = restarted(client.folder).await;
        let (_, said) = client.next_of("window/showMessage").await;
        let expected = "Starling: a run was interrupted, and can be run again: the task";
        assert_eq!(said["message"], expected);
    }
}

#[tokio::test]
async fn plain_client_can_take_unreviewed_changes_back_by_a_code_action() {
    let folder = project();
    std::fs::write(folder.path().join("a.py"), after()).unwrap();
    killed(folder.path(), ActorId::Starling);
    let start = scripted(async |_: RunScript| {});
    let services = services(start, &folder.path().join(".trajectories"));
    let mut client = TestClient::over(services, folder);
    let capabilities = json!({"workspace": {"workspaceEdit": {"documentChanges": true}}});
    client.initialize_as(capabilities).await;
    open(&client, &after());
    let (_, said) = client.next_of("window/showMessage").await;
    assert_eq!(said["message"], LEFT);
    while state_of(&client).await[0]["stage"] != "ended" {
        tokio::task::yield_now().await;
    }
    let at = json!({"line": 0, "character": 0});
    let params = json!({
        "textDocument": {"uri": client.uri()}, "range": {"start": at, "end": at},
        "context": {"diagnostics": []},
    });
    let actions = client.connection.request("textDocument/codeAction", params);
    let actions = actions.await.unwrap();
    let title = "Starling: take back what an interrupted run changed: the task";
    let action = actions.as_array().unwrap().iter();
    let mut action = action.filter(|one| one["title"] == title);
    let command = &action.next().unwrap()["command"];
    assert_eq!(command["command"], "starling.undo");
    assert_eq!(command["arguments"], json!([{"run": "r1"}]));
}
