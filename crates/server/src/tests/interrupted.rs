//! Runs of earlier servers that were interrupted, cancelled, or ended.

use std::path::Path;

use serde_json::{Value, json};

use super::lenses::{full, open, project};
use super::restart::{event_of, restarted, state_of, take_edit, trajectory, undo};
use crate::RestorePolicy;
use crate::samples::{BASE, asked};
use crate::session::restore::find_restorable;
use crate::testing::*;
use starling_core::Limits;
use starling_swarm::{Event, RunId, StopReason};

fn turn() -> Event {
    Event::TurnFinished {
        agent: starling_swarm::ActorId::Scout,
        role: starling_core::Role::Scout,
        model: "big".to_owned(),
        usage: starling_core::Usage {
            prompt: starling_core::Tokens(900),
            cached: starling_core::Tokens(0),
            output: starling_core::Tokens(100),
        },
        cost: starling_core::Dollars(0.5),
        calls: 2,
        finish: starling_core::Finish::Stop,
        millis: 1,
    }
}

#[tokio::test]
async fn interrupted_run_is_shown_and_can_be_retried() {
    let folder = project();
    let path = trajectory(folder.path(), "r1", folder.path(), vec![turn()]);
    let mut client = restarted(folder).await;
    let (_, said) = client.next_of("window/showMessage").await;
    let said = said["message"].as_str().unwrap();
    assert!(
        said.contains("interrupted") && said.contains("the task"),
        "{said}"
    );
    let end = event_of(&mut client, "run_finished").await;
    assert_eq!(end["event"]["spent"]["calls"], 2);
    assert_eq!(end["event"]["spent"]["prompt_tokens"], 900);
    let run = &state_of(&client).await[0];
    assert_eq!(
        (&run["restored"], &run["task"]),
        (&json!(true), &json!("the task"))
    );
    assert_eq!(run["spent"]["calls"], 2);
    // Each later server offers the run until it is retried.
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    let mut client = restarted(client.folder).await;
    event_of(&mut client, "run_finished").await;
    super::refused_at_last(&client, "starling.steer", json!({"run": "r1", "text": "t"})).await;
    let again = client.execute("starling.retry", json!({"run": "r1"})).await;
    let runs = state_of(&client).await;
    let again = runs
        .as_array()
        .unwrap()
        .iter()
        .find(|run| run["run"] == again["run"]);
    assert_eq!(again.unwrap()["task"], "the task");
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    let trajectories = path.parent().unwrap();
    let found = find_restorable(trajectories, client.folder.path(), &RestorePolicy::All);
    assert!(found.iter().all(|one| one.id.0 != "r1"), "it was run again");
}

#[tokio::test]
async fn cancelled_run_is_not_offered_as_interrupted() {
    let folder = project();
    let trajectories = folder.path().join(".trajectories");
    let root = folder.path().canonicalize().unwrap().display().to_string();
    let start = scripted(move |scene: RunScript| {
        let root = root.clone();
        async move {
            scene.log.event(Event::RunStarted {
                run: RunId(scene.task.text.clone()),
                task: scene.task.text.clone(),
                driver: starling_core::Driver::Swarm,
                models: Vec::new(),
                replayed: false,
                limits: Limits::default(),
                root,
                request: None,
            });
            scene.cancel.cancelled().await;
            scene.log.event(finished(StopReason::Cancelled));
        }
    });
    let mut client = TestClient::over(services(start, &trajectories), folder);
    client.initialize(full()).await;
    let stopped = super::begin(&client, "stopped").await;
    super::next_event(&mut client, &stopped).await;
    client
        .execute("starling.cancel", json!({"run": stopped}))
        .await;
    super::next_event(&mut client, &stopped).await;
    let cut = super::begin(&client, "cut short").await;
    super::next_event(&mut client, &cut).await;
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    let tasks = |folder: &Path| -> Vec<String> {
        let found = find_restorable(&trajectories, folder, &RestorePolicy::All);
        found.into_iter().map(|one| one.task).collect()
    };
    assert_eq!(tasks(client.folder.path()), ["cut short"]);
    let mut client = restarted(client.folder).await;
    event_of(&mut client, "run_finished").await;
    super::refused_at_last(
        &client,
        "starling.steer",
        json!({"run": "cut short", "text": "t"}),
    )
    .await;
    client.execute("starling.forget", json!({})).await;
    assert_eq!(state_of(&client).await, json!([]));
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    assert_eq!(tasks(client.folder.path()), [""; 0], "it was forgotten");
}

#[tokio::test]
async fn ended_runs_stay_in_the_history_until_they_are_forgotten() {
    let folder = project();
    let mut events = asked(&[(1, "a.py::f")]);
    events.push(starling_swarm::Event::ProposalReviewed {
        proposal: starling_swarm::ProposalId(1),
        by: starling_swarm::ActorId::User,
        verdict: starling_core::Verdict::Accept,
    });
    events.push(finished(StopReason::Settled));
    trajectory(folder.path(), "old", folder.path(), events);
    let client = restarted(folder).await;
    let runs = || async {
        let state = client.connection.request("starling/state", Value::Null);
        state.await.unwrap()["runs"].as_array().unwrap().clone()
    };
    let known = runs().await;
    assert_eq!(known.len(), 1);
    assert_eq!(known[0]["run"], "old");
    assert_eq!(
        (&known[0]["stage"], &known[0]["restored"]),
        (&json!("ended"), &json!(false))
    );
    assert_eq!(known[0]["stop_reason"]["reason"], "settled");
    assert!(!known[0]["task"].as_str().unwrap().is_empty());
    let told = client
        .connection
        .request("starling/events", json!({"run": "old"}));
    assert_eq!(told.await.unwrap()["events"].as_array().unwrap().len(), 5);
    let again = client
        .execute("starling.retry", json!({"run": "old"}))
        .await;
    assert_ne!(again["run"], "old");
    client.execute("starling.forget", json!({})).await;
    let folder = client.folder;
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    let client = restarted(folder).await;
    let state = client.connection.request("starling/state", Value::Null);
    let state = state.await.unwrap();
    let left = state["runs"].as_array().unwrap();
    assert!(left.iter().all(|run| run["run"] != "old"), "{state}");
}

/// Returns the events of a run that applied a proposal, and the text after the change.
fn applied_proposal() -> (Vec<Event>, String) {
    let mut events = asked(&[(1, "a.py::f")]);
    let Some(Event::ReviewAsked { parts, .. }) = events.last() else {
        panic!("{events:?}");
    };
    let part = parts[0].clone();
    let after = part.changes.apply(BASE).unwrap();
    events.push(Event::ProposalReviewed {
        proposal: part.proposal,
        by: starling_swarm::ActorId::User,
        verdict: starling_core::Verdict::Accept,
    });
    events.push(Event::ProposalApplied {
        proposal: part.proposal,
        symbols: part.symbols,
        diff: String::new(),
        change: Some(starling_swarm::AppliedChange {
            file: part.file,
            before: BASE.into(),
            changes: part.changes,
            created: false,
            deleted: None,
            directories: Vec::new(),
            dependencies: Default::default(),
            text_without: None,
        }),
    });
    (events, after)
}

#[tokio::test]
async fn undo_in_an_interrupted_run_is_recorded() {
    let folder = project();
    let (events, after) = applied_proposal();
    let path = trajectory(folder.path(), "r1", folder.path(), events);
    std::fs::write(folder.path().join("a.py"), &after).unwrap();
    let mut client = restarted(folder).await;
    open(&client, &after);
    event_of(&mut client, "run_finished").await;
    let undone = client.connection.request(
        "workspace/executeCommand",
        json!({"command": "starling.undo", "arguments": [{"run": "r1"}]}),
    );
    assert_eq!(take_edit(&mut client, 1).await, "return");
    undone.await.unwrap();
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([1]));
    let states = || -> Vec<starling_history::ChangeState> {
        let past = starling_history::PastRun::read(&path).unwrap();
        past.changes.iter().map(|one| one.state).collect()
    };
    assert_eq!(states(), [starling_history::ChangeState::UndoneUnsaved]);
    std::fs::write(client.folder.path().join("a.py"), BASE).unwrap();
    let saved = json!({"textDocument": {"uri": client.uri()}});
    client.connection.notify("textDocument/didSave", saved);
    while states() != [starling_history::ChangeState::Undone] {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    // The run is still offered, as undone, until it is forgotten. Then its trajectory has one end.
    let mut client = restarted(client.folder).await;
    event_of(&mut client, "run_finished").await;
    let run = &state_of(&client).await[0];
    assert_eq!(run["proposals"][0]["state"], "undone", "{run}");
    client.execute("starling.forget", json!({})).await;
    let records = super::records_of(client.folder.path(), "r1");
    let kinds: Vec<&Value> = records.iter().map(|one| &one["event"]["event"]).collect();
    assert_eq!(
        kinds[kinds.len() - 2..],
        ["proposal_undone", "run_finished"]
    );
    let seqs = records.iter().map(|one| one["seq"].as_u64().unwrap());
    assert!(seqs.eq(0..records.len() as u64), "{kinds:?}");
}

/// The editor's undo was recorded by an earlier server, and its redo comes to this one.
#[tokio::test]
async fn redo_in_the_editor_after_a_restart_marks_the_change_as_applied_again() {
    let undone = |by_editor: bool| Event::ProposalUndone {
        proposal: starling_swarm::ProposalId(1),
        by_editor,
        unsaved: false,
    };
    for is_ended in [false, true] {
        let (mut events, after) = applied_proposal();
        events.extend(is_ended.then(|| finished(StopReason::Settled)));
        events.push(undone(true));
        let folder = project();
        let path = trajectory(folder.path(), "r1", folder.path(), events);
        let mut client = restarted(folder).await;
        open(&client, BASE);
        let state = async |client: &TestClient| {
            let state = state_of(client).await;
            state[0]["proposals"][0]["state"].clone()
        };
        if !is_ended {
            event_of(&mut client, "run_finished").await;
        }
        assert_eq!(state(&client).await, "undone");
        let change = json!({
            "textDocument": {"uri": client.uri(), "version": 2},
            "contentChanges": [{"text": format!("# mine\n{after}")}],
        });
        client.connection.notify("textDocument/didChange", change);
        event_of(&mut client, "proposal_applied").await;
        assert_eq!(state(&client).await, "applied");
        assert_eq!(undo(&mut client, 2).await, json!([1]));
        client.connection.notify("exit", Value::Null);
        client.server.await.unwrap();
        let past = starling_history::PastRun::read(&path).unwrap();
        let states: Vec<_> = past.changes.iter().map(|one| one.state).collect();
        assert_eq!(states, [starling_history::ChangeState::UndoneUnsaved]);
    }
    // If Starling undid the change and the same text appears again, the text counts as the user's
    // own.
    let (mut events, after) = applied_proposal();
    events.extend([finished(StopReason::Settled), undone(false)]);
    let folder = project();
    trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    open(&client, &after);
    assert_eq!(
        state_of(&client).await[0]["proposals"][0]["state"],
        "undone"
    );
    client.execute("starling.undo", json!({"run": "r1"})).await;
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([]));
    let why = undone["error"].as_str().unwrap();
    assert!(
        why.starts_with("#1 is already taken back; the same text"),
        "{why}"
    );
}

/// Restarts the server in a directory with an ended run whose change is on disk, and undoes the
/// change in an open document. Returns the client and the path of the trajectory.
async fn undone_in_a_document() -> (TestClient, std::path::PathBuf) {
    let folder = project();
    let (mut events, after) = applied_proposal();
    events.push(finished(StopReason::Settled));
    let path = trajectory(folder.path(), "r1", folder.path(), events);
    std::fs::write(folder.path().join("a.py"), &after).unwrap();
    let mut client = restarted(folder).await;
    open(&client, &after);
    // The answer comes when the earlier runs are known.
    assert_eq!(proposal_state(&client).await, "applied");
    assert_eq!(undo(&mut client, 1).await, json!([1]));
    (client, path)
}

async fn proposal_state(client: &TestClient) -> Value {
    state_of(client).await[0]["proposals"][0]["state"].clone()
}

#[tokio::test]
async fn change_undone_in_a_document_that_is_closed_unsaved_is_applied_again() {
    let (mut client, path) = undone_in_a_document().await;
    assert_eq!(proposal_state(&client).await, "undone");
    let closed = json!({"textDocument": {"uri": client.uri()}});
    client.connection.notify("textDocument/didClose", closed);
    event_of(&mut client, "proposal_applied").await;
    assert_eq!(proposal_state(&client).await, "applied");
    // It can be undone, now in the closed file.
    let undone = client.connection.request(
        "workspace/executeCommand",
        json!({"command": "starling.undo", "arguments": [{"run": "r1"}]}),
    );
    let (id, edit) = client.next_of("workspace/applyEdit").await;
    let edit = &edit["edit"]["documentChanges"][0];
    assert_eq!(edit["textDocument"]["version"], Value::Null);
    std::fs::write(client.folder.path().join("a.py"), BASE).unwrap();
    client.connection.reply(id, Ok(json!({"applied": true})));
    undone.await.unwrap();
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([1]));
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    let past = starling_history::PastRun::read(&path).unwrap();
    assert_eq!(past.applied().count(), 0);
}

#[tokio::test]
async fn change_undone_in_a_document_that_is_never_saved_is_applied_after_a_restart() {
    for is_opened in [false, true] {
        let (client, _) = undone_in_a_document().await;
        client.connection.notify("exit", Value::Null);
        client.server.await.unwrap();
        let mut client = restarted(client.folder).await;
        if is_opened {
            open(&client, &applied_proposal().1);
        }
        event_of(&mut client, "proposal_applied").await;
        assert_eq!(proposal_state(&client).await, "applied");
    }
}

#[tokio::test]
async fn undo_in_a_document_that_was_saved_stays_undone() {
    let (client, path) = undone_in_a_document().await;
    let file = client.folder.path().join("a.py");
    std::fs::write(&file, BASE).unwrap();
    let saved = json!({"textDocument": {"uri": client.uri()}});
    client.connection.notify("textDocument/didSave", saved);
    let state = || {
        let past = starling_history::PastRun::read(&path).unwrap();
        past.changes[0].state
    };
    while state() != starling_history::ChangeState::Undone {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // The same text is the user's own now.
    std::fs::write(&file, applied_proposal().1).unwrap();
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    let client = restarted(client.folder).await;
    assert_eq!(proposal_state(&client).await, "undone");
}

/// The server was killed right after the edit of an undo, or the file was reverted between two
/// servers.
#[tokio::test]
async fn change_of_an_ended_run_that_is_not_in_its_closed_file_is_undone_after_a_restart() {
    let folder = project();
    let (mut events, _) = applied_proposal();
    events.push(finished(StopReason::Settled));
    trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    let undone = event_of(&mut client, "proposal_undone").await;
    assert_eq!(undone["event"]["by_editor"], true);
    assert_eq!(proposal_state(&client).await, "undone");
}

#[tokio::test]
async fn half_written_record_does_not_hide_an_ended_run() {
    use std::io::Write;

    let folder = project();
    let (mut events, after) = applied_proposal();
    events.push(finished(StopReason::Settled));
    let path = trajectory(folder.path(), "r1", folder.path(), events);
    std::fs::write(folder.path().join("a.py"), &after).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(br#"{"seq":6,"at_ms":1,"event":{"ev"#)
        .unwrap();
    let client = restarted(folder).await;
    assert_eq!(proposal_state(&client).await, "applied");
}

/// The server exits or is killed while the project of a run is still being opened.
#[tokio::test]
async fn run_whose_server_ends_while_it_is_opened_can_be_run_again() {
    for is_killed in [true, false] {
        let folder = project();
        let mut services = services(
            scripted(async |_: RunScript| {}),
            &folder.path().join(".trajectories"),
        );
        services.open = std::sync::Arc::new(|_| Box::pin(std::future::pending()));
        let client = TestClient::over(services, folder);
        client.initialize(full()).await;
        let run = super::begin(&client, "a long task").await;
        let path = client
            .folder
            .path()
            .join(format!(".trajectories/{run}.jsonl"));
        while !std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let begun = std::fs::read_to_string(&path).unwrap();
        assert_eq!(state_of(&client).await[0]["stage"], "opening");
        client.connection.notify("exit", Value::Null);
        client.server.await.unwrap();
        if is_killed {
            std::fs::remove_file(path.with_extension("interrupted")).unwrap();
            std::fs::write(&path, begun).unwrap();
        }
        let mut client = restarted(client.folder).await;
        let (_, said) = client.next_of("window/showMessage").await;
        let said = said["message"].as_str().unwrap();
        assert!(
            said.contains("interrupted") && said.contains("a long task"),
            "{said}"
        );
        let again = client.execute("starling.retry", json!({"run": run})).await;
        assert!(again["run"].is_string(), "{again}");
    }
}

/// The last model request was interrupted, so its cost is in no turn, but in the event of the run's
/// end.
#[tokio::test]
async fn interrupted_run_shows_the_spending_that_its_end_event_reports() {
    let folder = project();
    let mut end = finished(StopReason::Cancelled);
    let Event::RunFinished { spent, .. } = &mut end else {
        panic!("{end:?}");
    };
    spent.calls = 5;
    spent.prompt_tokens = starling_core::Tokens(7_000);
    let path = trajectory(folder.path(), "r1", folder.path(), vec![turn(), end]);
    std::fs::write(path.with_extension("interrupted"), "").unwrap();
    let mut client = restarted(folder).await;
    let end = event_of(&mut client, "run_finished").await;
    assert_eq!(end["event"]["spent"]["calls"], 5);
    let run = &state_of(&client).await[0];
    assert_eq!(
        (&run["spent"]["calls"], &run["spent"]["tokens"]),
        (&json!(5), &json!(7_000))
    );
}
