//! Tests that the editor's own undo and redo of applied changes are detected.

use serde_json::{Value, json};

use super::begin;
use super::lenses::{client, full, open, project};
use crate::samples::{BASE, asked};
use crate::testing::*;
use starling_core::{Exchange, ModelError, Role};
use starling_rpc::Incoming;
use starling_swarm::{ActorId, AppliedChange, Cause, Event, ProposalId, StopReason};
use starling_text::ChangeSet;

fn after() -> String {
    BASE.replace("return 1", "yield 1")
}

fn applied() -> Event {
    Event::ProposalApplied {
        proposal: ProposalId(1),
        symbols: vec![symbol("a.py::f")],
        diff: String::new(),
        change: Some(AppliedChange {
            file: file("a.py"),
            before: BASE.into(),
            changes: ChangeSet::between(BASE, &after()),
            created: false,
            deleted: None,
            directories: Vec::new(),
            dependencies: Default::default(),
            text_without: None,
        }),
    }
}

/// Replaces the whole text of `a.py`.
fn set(client: &TestClient, version: i32, text: &str) {
    let change = json!({
        "textDocument": {"uri": client.uri(), "version": version},
        "contentChanges": [{"text": text}],
    });
    client.connection.notify("textDocument/didChange", change);
}

async fn event_of(client: &mut TestClient, name: &str) -> Value {
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["event"]["event"] == name {
            return params;
        }
    }
}

async fn proposal_state(client: &TestClient) -> String {
    let state = client.connection.request("starling/state", Value::Null);
    let state = state.await.unwrap();
    assert_eq!(state["runs"][0]["agents"][0]["working"], false, "{state}");
    let state = state["runs"][0]["proposals"][0]["state"].clone();
    state.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn detects_editor_undo_and_redo_during_and_after_run() {
    let start = scripted(async |scene: RunScript| {
        let agent = ActorId::Agent(symbol("a.py::f"));
        scene.log.event(Event::AgentWoken {
            agent: agent.clone(),
            cause: Cause::Steered {
                text: "go".to_owned(),
            },
        });
        for event in asked(&[(1, "a.py::f")]) {
            scene.log.event(event);
        }
        scene.log.event(Event::AgentFinished {
            agent,
            outcome: starling_swarm::AgentOutcome::Changed,
            summary: String::new(),
        });
        scene.log.event(applied());
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    });
    let mut client = client(start, project());
    client.initialize(full()).await;
    open(&client, &after());
    let run = begin(&client, "x").await;
    event_of(&mut client, "proposal_applied").await;
    assert_eq!(proposal_state(&client).await, "applied");

    set(&client, 2, BASE);
    let undone = event_of(&mut client, "proposal_undone").await;
    assert_eq!(undone["event"]["proposal"], 1);
    assert_eq!(proposal_state(&client).await, "undone");
    set(&client, 3, &after());
    event_of(&mut client, "proposal_applied").await;
    assert_eq!(proposal_state(&client).await, "applied");

    client.execute("starling.cancel", json!({"run": run})).await;
    event_of(&mut client, "run_finished").await;
    set(&client, 4, BASE);
    event_of(&mut client, "proposal_undone").await;
    assert_eq!(proposal_state(&client).await, "undone");
    set(&client, 5, &format!("# mine\n{}", after()));
    event_of(&mut client, "proposal_applied").await;
    assert_eq!(proposal_state(&client).await, "applied");
    set(&client, 6, BASE);
    event_of(&mut client, "proposal_undone").await;

    wait_until_undo_is_recorded(&client, &run).await;
}

/// Waits until a later `starling undo` would read the undo from the trajectory.
async fn wait_until_undo_is_recorded(client: &TestClient, run: &str) {
    let path = client.folder.path().join(".trajectories");
    let path = path.join(format!("{run}.jsonl"));
    for _ in 0..200 {
        let past = starling_history::PastRun::read(&path).unwrap();
        let states: Vec<_> = past.changes.iter().map(|one| one.state).collect();
        let wanted = [starling_history::ChangeState::UndoneInEditor];
        if states == wanted {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the undo is not in the trajectory");
}

#[tokio::test]
async fn undo_after_the_run_is_logged_before_the_client_is_notified() {
    let start = scripted(async |scene: RunScript| {
        scene.log.event(applied());
        // These records delay the writing to disk but not the client, which does not receive them.
        for _ in 0..300 {
            scene.log.exchange(Exchange {
                conversation: "x".repeat(20_000),
                role: Role::Agent,
                ordinal: 0,
                prompt: Vec::new(),
                tools: Vec::new(),
                capability: None,
                reply: Err(ModelError::Malformed {
                    model: "m".into(),
                    message: "cut".into(),
                }),
                millis: 1,
            });
        }
        scene.log.event(finished(StopReason::Settled));
        // Log an undo right after the end of the run.
        let proposal = ProposalId(1);
        scene.log.event(Event::ProposalUndone {
            proposal,
            by_editor: false,
            unsaved: false,
        });
    });
    let mut client = client(start, project());
    client.initialize(full()).await;
    let run = begin(&client, "x").await;
    event_of(&mut client, "run_finished").await;
    client.execute("starling.undo", json!({"run": run})).await;
    client.next_of("starling/undone").await;
    let records = super::records_of(client.folder.path(), &run);
    let undone = records
        .iter()
        .filter(|one| one["event"]["event"] == "proposal_undone");
    assert_eq!(undone.count(), 1);
}

#[tokio::test]
async fn undo_after_the_end_of_a_run_is_sent_as_an_event() {
    let start = undoable(async |scene: RunScript| {
        scene.log.event(applied());
        scene.log.event(finished(StopReason::Settled));
    });
    let mut client = client(start, project());
    client.initialize(full()).await;
    let run = begin(&client, "x").await;
    event_of(&mut client, "run_finished").await;
    client.execute("starling.undo", json!({"run": run})).await;
    let undone = event_of(&mut client, "proposal_undone").await;
    assert_eq!(undone["event"]["proposal"], 1);
    client.next_of("starling/undone").await;
    // The event is sent only once.
    client.execute("starling.undo", json!({"run": run})).await;
    loop {
        match client.next().await {
            Incoming::Notification { method, .. } if method == "starling/undone" => return,
            Incoming::Notification { method, params } => {
                assert_ne!(method, "starling/event", "{params}");
            }
            Incoming::Request { .. } => {}
        }
    }
}

/// The change of [`applied`], made by another run after it, so that nothing was changed.
fn already_there() -> Event {
    Event::ProposalApplied {
        proposal: ProposalId(1),
        symbols: vec![symbol("a.py::f")],
        diff: String::new(),
        change: Some(AppliedChange {
            file: file("a.py"),
            before: after().into(),
            changes: ChangeSet::between(&after(), &after()),
            created: false,
            deleted: None,
            directories: Vec::new(),
            dependencies: Default::default(),
            text_without: Some(BASE.into()),
        }),
    }
}

/// Returns the states of the proposal in each of the runs.
async fn states(client: &TestClient, runs: &[&str]) -> Vec<String> {
    let state = client.connection.request("starling/state", Value::Null);
    let state = state.await.unwrap();
    let of = |run: &&str| {
        let mut all = state["runs"].as_array().unwrap().iter();
        let one = all.find(|one| one["run"] == **run).unwrap();
        let state = one["proposals"][0]["state"].as_str();
        state.unwrap().to_owned()
    };
    runs.iter().map(of).collect()
}

/// Starts two runs that make the same change. The second finds it in the file if `is_there`.
async fn two_runs_with_the_same_change(is_there: bool) -> (TestClient, String, String) {
    let start = undoable(move |scene: RunScript| async move {
        for event in asked(&[(1, "a.py::f")]) {
            scene.log.event(event);
        }
        scene.log.event(match scene.task.text.as_str() {
            "second" if is_there => already_there(),
            _ => applied(),
        });
        scene.log.event(finished(StopReason::Settled));
    });
    let mut client = client(start, project());
    client.initialize(full()).await;
    let first = begin(&client, "first").await;
    event_of(&mut client, "run_finished").await;
    let second = begin(&client, "second").await;
    event_of(&mut client, "run_finished").await;
    let both = states(&client, &[&first, &second]).await;
    assert_eq!(both, ["applied", "applied"]);
    (client, first, second)
}

async fn undone_run(client: &mut TestClient) -> Value {
    let event = event_of(client, "proposal_undone").await;
    event["run"].clone()
}

#[tokio::test]
async fn change_that_was_already_there_is_undone_with_the_change_that_made_it() {
    let (mut client, first, second) = two_runs_with_the_same_change(true).await;
    open(&client, &after());
    client.execute("starling.undo", json!({"run": first})).await;
    assert_eq!(undone_run(&mut client).await, first);
    set(&client, 2, BASE);
    assert_eq!(undone_run(&mut client).await, second);
    let both = states(&client, &[&first, &second]).await;
    assert_eq!(both, ["undone", "undone"]);
    // The editor's undo of the undo.
    set(&client, 3, &after());
    event_of(&mut client, "proposal_applied").await;
    assert_eq!(states(&client, &[&second]).await, ["applied"]);
}

#[tokio::test]
async fn undo_of_a_run_in_a_closed_file_marks_the_same_change_of_another_run_as_undone() {
    for is_there in [true, false] {
        let (mut client, first, second) = two_runs_with_the_same_change(is_there).await;
        // The editor changes the file, which is not open.
        std::fs::write(client.folder.path().join("a.py"), BASE).unwrap();
        client.execute("starling.undo", json!({"run": first})).await;
        assert_eq!(undone_run(&mut client).await, first);
        assert_eq!(undone_run(&mut client).await, second);
        let both = states(&client, &[&first, &second]).await;
        assert_eq!(both, ["undone", "undone"]);
    }
}
