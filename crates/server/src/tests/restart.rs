//! What waited for review when a server ended is offered again by the next.

use std::path::Path;

use serde_json::{Value, json};

use super::lenses::{full, open, project, proposing};
use crate::RestorePolicy;
use crate::samples::{BASE, asked};
use crate::session::restore::find_restorable;
use crate::testing::*;
use starling_core::Limits;
use starling_history::unfinished;
use starling_swarm::{AppliedChange, Event, EventLog, RunId, StopReason};

/// The trajectory of a run whose server died, with some events.
pub(super) fn trajectory(
    folder: &Path,
    name: &str,
    about: &Path,
    events: Vec<Event>,
) -> std::path::PathBuf {
    let log = EventLog::new();
    log.event(Event::RunStarted {
        run: RunId(name.to_owned()),
        task: "the task".to_owned(),
        driver: starling_core::Driver::Swarm,
        models: Vec::new(),
        replayed: false,
        limits: Limits::default(),
        root: about.canonicalize().unwrap().display().to_string(),
    });
    events.into_iter().for_each(|event| log.event(event));
    let lines: Vec<String> = log
        .records(0)
        .iter()
        .map(|record| serde_json::to_string(&**record).unwrap() + "\n")
        .collect();
    std::fs::create_dir_all(folder.join(".trajectories")).unwrap();
    let path = folder.join(format!(".trajectories/{name}.jsonl"));
    std::fs::write(&path, lines.concat()).unwrap();
    path
}

/// A server over a folder in which an earlier one left a proposal.
pub(super) async fn restarted(folder: tempfile::TempDir) -> TestClient {
    let services = services(
        scripted(async |_scene: RunScript| {}),
        &folder.path().join(".trajectories"),
    );
    let client = TestClient::over(services, folder);
    let mut capabilities = full();
    capabilities["general"] = json!({"positionEncodings": ["utf-8"]});
    client.initialize(capabilities).await;
    client
}

pub(super) async fn event_of(client: &mut TestClient, name: &str) -> Value {
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["event"]["event"] == name {
            return params;
        }
    }
}

/// Makes the edit that the server asks for.
async fn take_edit(client: &mut TestClient, version: i32) -> String {
    let (id, params) = client.next_of("workspace/applyEdit").await;
    make_edit(client, id, &params, version)
}

fn make_edit(client: &TestClient, id: Value, params: &Value, version: i32) -> String {
    make_edit_and_reply(client, id, params, version, json!({"applied": true}))
}

pub(super) fn make_edit_and_reply(
    client: &TestClient,
    id: Value,
    params: &Value,
    version: i32,
    reply: Value,
) -> String {
    let edit = &params["edit"]["documentChanges"][0];
    assert_eq!(edit["textDocument"]["version"], version);
    client.connection.notify(
        "textDocument/didChange",
        json!({
            "textDocument": {"uri": client.uri(), "version": version + 1},
            "contentChanges": edit["edits"].as_array().unwrap().iter().rev()
                .map(|edit| json!({"range": edit["range"], "text": edit["newText"]}))
                .collect::<Vec<_>>(),
        }),
    );
    client.connection.reply(id, Ok(reply));
    edit["edits"][0]["newText"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_proposal_outlives_its_server_and_is_accepted_and_undone() {
    let folder = project();
    let path = trajectory(folder.path(), "r1", folder.path(), asked(&[(1, "a.py::f")]));
    let mut client = restarted(folder).await;
    let typed = format!("# typed since\n{BASE}");
    open(&client, &typed);
    let (_, said) = client.next_of("window/showMessage").await;
    assert_eq!(
        said["message"],
        "Starling: a proposal of an earlier session waits for your review"
    );
    event_of(&mut client, "review_asked").await;
    let state = client
        .connection
        .request("starling/state", Value::Null)
        .await
        .unwrap();
    let run = &state["runs"][0];
    assert_eq!(
        (&run["restored"], &run["task"]),
        (&json!(true), &json!("the task"))
    );
    assert_eq!(run["agents"][0]["working"], false);
    assert_eq!(run["proposals"][0]["state"], "waiting");
    let about = json!({"run": "r1", "proposal": 1});
    client.execute("starling.accept", about.clone()).await;
    assert_eq!(take_edit(&mut client, 1).await, "yield");
    event_of(&mut client, "proposal_applied").await;
    event_of(&mut client, "run_finished").await;
    let undone = client.connection.request(
        "workspace/executeCommand",
        json!({
            "command": "starling.undo", "arguments": [{"run": "r1"}],
        }),
    );
    assert_eq!(take_edit(&mut client, 2).await, "return");
    undone.await.unwrap();
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([1]));
    client.connection.notify("exit", Value::Null);
    let kept = client.folder.path().to_owned();
    client.server.await.unwrap();
    let story = std::fs::read_to_string(path).unwrap();
    assert!(story.contains("proposal_applied"), "{story}");
    let last: Value = serde_json::from_str(story.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"]["event"], "proposal_undone", "{story}");
    let seqs = story
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].clone());
    let expected = (0..story.lines().count()).map(|seq| json!(seq));
    assert!(seqs.eq(expected), "{story}");
    assert!(
        find_restorable(&kept.join(".trajectories"), &kept, &RestorePolicy::All).is_empty(),
        "nothing waits any more"
    );
}

#[tokio::test]
async fn a_conflict_is_said_and_the_proposal_stays() {
    let folder = project();
    trajectory(folder.path(), "r1", folder.path(), asked(&[(1, "a.py::f")]));
    let mut client = restarted(folder).await;
    open(&client, &BASE.replace("return 1", "return 11"));
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 1});
    client.execute("starling.accept", about.clone()).await;
    let conflict = event_of(&mut client, "proposal_conflicted").await;
    assert!(
        conflict["event"]["why"]
            .as_str()
            .unwrap()
            .contains("both sides")
    );
    event_of(&mut client, "review_asked").await;
    let steer = json!({"run": "r1", "proposal": 1, "text": "shorter"});
    let said = super::refusal(&client, "starling.steer", steer).await;
    assert!(
        said.contains("ended with the server before this one"),
        "{said}"
    );
    let reject = json!({"run": "r1", "proposal": 1, "reason": "no"});
    client.execute("starling.reject", reject).await;
    event_of(&mut client, "run_finished").await;
}

#[tokio::test]
async fn what_waits_at_an_orderly_end_waits_again() {
    let folder = project();
    let trajectories = folder.path().join(".trajectories");
    let start = proposing(&[(1, "a.py::f"), (2, "a.py::g")]);
    let mut client = TestClient::over(services(start, &trajectories), folder);
    client.initialize(full()).await;
    super::begin(&client, "x").await;
    event_of(&mut client, "review_asked").await;
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    // The script tells no beginning, which holds the folder of the run.
    assert!(find_restorable(&trajectories, client.folder.path(), &RestorePolicy::All).is_empty());
    let mut events = asked(&[(1, "a.py::f"), (2, "a.py::g")]);
    events.push(finished(StopReason::Cancelled));
    trajectory(client.folder.path(), "r2", client.folder.path(), events);
    let mut client = restarted(client.folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    let all = client.execute("starling.acceptAll", json!({})).await;
    assert_eq!(all, json!({"accepted": [{"run": "r2", "proposal": 2}]}));
    take_edit(&mut client, 1).await;
    take_edit(&mut client, 2).await;
    let end = event_of(&mut client, "run_finished").await;
    assert_eq!(end["event"]["applied"], json!(["a.py::f", "a.py::g"]));
}

#[test]
fn only_what_was_cut_short_and_waits_is_found() {
    let (folder, other) = (project(), project());
    let here = folder.path();
    let trajectories = here.join(".trajectories");
    let waits = || asked(&[(1, "a.py::f")]);
    let with = |event: Event| waits().into_iter().chain([event]).collect::<Vec<_>>();
    let ids = || -> Vec<String> {
        let found = find_restorable(&trajectories, here, &RestorePolicy::All);
        let waiting = found.into_iter().filter(|one| one.waits);
        waiting.map(|one| one.id.0).collect()
    };
    assert!(ids().is_empty(), "there is no folder");
    trajectory(here, "settled", here, with(finished(StopReason::Settled)));
    trajectory(here, "elsewhere", other.path(), waits());
    trajectory(here, "nothing", here, vec![said("hello")]);
    let rejected = Event::ProposalReviewed {
        proposal: starling_swarm::ProposalId(1),
        by: starling_swarm::ActorId::User,
        verdict: starling_core::Verdict::Reject {
            reason: "no".to_owned(),
        },
    };
    trajectory(here, "reviewed", here, with(rejected));
    std::fs::write(trajectories.join("broken.jsonl"), "{").unwrap();
    std::fs::write(trajectories.join("empty.jsonl"), "").unwrap();
    assert!(ids().is_empty());
    let live = trajectory(here, "live", here, waits());
    let writer = std::fs::File::open(&live).unwrap();
    writer.try_lock().unwrap();
    assert!(ids().is_empty(), "another server writes it");
    drop(writer);
    assert_eq!(ids(), ["live"]);
    // A last line that was cut is cut off.
    let torn = trajectory(here, "torn", here, waits());
    let whole = std::fs::read_to_string(&torn).unwrap();
    std::fs::write(&torn, format!("{whole}{{\"seq\": 3, \"at")).unwrap();
    assert_eq!(ids(), ["live", "torn"]);
    let empty = StopReason::LedgerEmpty {
        what: "60 of 60 model calls".to_owned(),
    };
    trajectory(here, "spent", here, with(finished(empty)));
    assert_eq!(ids(), ["live", "spent", "torn"]);
    let only = RestorePolicy::Only(RunId("spent".to_owned()));
    assert_eq!(find_restorable(&trajectories, here, &only).len(), 1);
    assert!(find_restorable(&trajectories, here, &RestorePolicy::Nothing).is_empty());
    assert_eq!(std::fs::read_to_string(&torn).unwrap(), whole);
}

#[tokio::test]
async fn a_set_of_which_one_part_is_refused_is_not_applied_at_all() {
    let folder = project();
    let set = asked(&[(1, "a.py::f"), (2, "a.py::g")]);
    trajectory(folder.path(), "r1", folder.path(), set);
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 2});
    client.execute("starling.accept", about.clone()).await;
    assert_eq!(take_edit(&mut client, 1).await, "yield");
    let (id, _) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, Ok(json!({"applied": false})));
    assert_eq!(take_edit(&mut client, 2).await, "return");
    event_of(&mut client, "proposal_conflicted").await;
    event_of(&mut client, "review_asked").await;
    // NoServices of it is there, so that all of it can be accepted again.
    client.execute("starling.accept", about).await;
    assert_eq!(take_edit(&mut client, 3).await, "yield");
    assert_eq!(take_edit(&mut client, 4).await, "yield");
    let first = event_of(&mut client, "proposal_applied").await;
    let second = event_of(&mut client, "proposal_applied").await;
    let ids = [&first, &second].map(|one| one["event"]["proposal"].clone());
    assert_eq!(ids, [json!(1), json!(2)]);
}

#[tokio::test]
async fn what_was_accepted_before_a_cancel_is_in_the_log() {
    let folder = project();
    trajectory(folder.path(), "r1", folder.path(), asked(&[(1, "a.py::f")]));
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 1});
    client.execute("starling.accept", about).await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    client
        .execute("starling.cancel", json!({"run": "r1"}))
        .await;
    make_edit(&client, id, &params, 1);
    event_of(&mut client, "proposal_applied").await;
    let end = event_of(&mut client, "run_finished").await;
    assert_eq!(end["event"]["applied"], json!(["a.py::f"]));
}

/// What a server recorded that was killed while it applied accepted proposals: the last one was sent.
fn killed_while_applying(proposals: &[(u32, &str)], sent: &[(u32, &str)]) -> Vec<Event> {
    let mut events = asked(proposals);
    let parts = events.last().unwrap().parts().to_vec();
    events.extend(parts.iter().map(|part| Event::ProposalReviewed {
        proposal: part.proposal,
        by: starling_swarm::ActorId::User,
        verdict: starling_core::Verdict::Accept,
    }));
    let mut text = BASE.to_owned();
    for (id, _) in sent {
        if let Some(unfinished) = unfinished(&events).pop() {
            events.push(unfinished.applied());
        }
        let part = parts.iter().find(|part| part.proposal.0 == *id).unwrap();
        let changes = part.over(&text).unwrap();
        let before = std::mem::take(&mut text);
        text = changes.apply(&before).unwrap();
        events.push(Event::ProposalApplying {
            proposal: part.proposal,
            symbols: part.symbols.clone(),
            change: AppliedChange {
                file: part.file.clone(),
                before: before.into(),
                changes,
                created: false,
                directories: Vec::new(),
                dependencies: Default::default(),
            },
        });
    }
    events
}

/// The events of a trajectory from a record on.
fn events_from(path: &Path, from: usize) -> Vec<String> {
    let story = std::fs::read_to_string(path).unwrap();
    let events = story.lines().enumerate().map(|(at, line)| {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["seq"], at, "{story}");
        record["event"]["event"].as_str().unwrap().to_owned()
    });
    events.skip(from).collect()
}

fn yielding(text: &str, nth: &[usize]) -> String {
    let parts = text.split("return").enumerate();
    parts.fold(String::new(), |made, (at, part)| match at {
        0 => part.to_owned(),
        at if nth.contains(&at) => format!("{made}yield{part}"),
        _ => format!("{made}return{part}"),
    })
}

async fn undo(client: &mut TestClient, version: i32) -> Value {
    let undone = client.connection.request(
        "workspace/executeCommand",
        json!({"command": "starling.undo", "arguments": [{"run": "r1"}]}),
    );
    take_edit(client, version).await;
    undone.await.unwrap();
    let (_, undone) = client.next_of("starling/undone").await;
    undone["proposals"].clone()
}

#[tokio::test]
async fn an_accepted_proposal_that_a_killed_server_did_not_send_or_make_waits_again() {
    let accepted = killed_while_applying(&[(1, "a.py::f")], &[]);
    let sent = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
    for events in [accepted, sent] {
        let folder = project();
        let recorded = events.len() + 1;
        let path = trajectory(folder.path(), "r1", folder.path(), events);
        let mut client = restarted(folder).await;
        open(&client, &format!("# typed since\n{BASE}"));
        let (_, said) = client.next_of("window/showMessage").await;
        let said = said["message"].as_str().unwrap();
        assert!(said.contains("a proposal of an earlier session waits"));
        event_of(&mut client, "review_asked").await;
        event_of(&mut client, "review_asked").await;
        assert_eq!(events_from(&path, recorded), ["review_asked"]);
        let about = json!({"run": "r1", "proposal": 1});
        client.execute("starling.accept", about).await;
        assert_eq!(take_edit(&mut client, 1).await, "yield");
        event_of(&mut client, "proposal_applied").await;
        assert_eq!(undo(&mut client, 2).await, json!([1]));
    }
}

#[tokio::test]
async fn a_proposal_that_a_killed_server_applied_comes_back_as_applied() {
    let folder = project();
    let events = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
    let recorded = events.len() + 1;
    let path = trajectory(folder.path(), "r1", folder.path(), events);
    let now = format!("# typed since\n{}", yielding(BASE, &[1]));
    std::fs::write(folder.path().join("a.py"), &now).unwrap();
    let mut client = restarted(folder).await;
    open(&client, &now);
    event_of(&mut client, "proposal_applied").await;
    assert_eq!(events_from(&path, recorded)[0], "proposal_applied");
    event_of(&mut client, "run_finished").await;
    let run = &state_of(&client).await[0];
    assert_eq!(run["proposals"][0]["state"], "applied", "{run}");
    assert_eq!(undo(&mut client, 1).await, json!([1]));
}

#[tokio::test]
async fn of_a_set_of_which_a_killed_server_applied_a_part_the_rest_is_offered() {
    let folder = project();
    let set = [(1, "a.py::f"), (2, "a.py::g")];
    // The first one is recorded as applied; of the second one only that it was sent.
    let events = killed_while_applying(&set, &set);
    let recorded = events.len() + 1;
    let path = trajectory(folder.path(), "r1", folder.path(), events);
    let now = yielding(BASE, &[1]);
    std::fs::write(folder.path().join("a.py"), &now).unwrap();
    let mut client = restarted(folder).await;
    open(&client, &now);
    event_of(&mut client, "review_asked").await;
    let again = event_of(&mut client, "review_asked").await;
    let reason = again["event"]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("the rest of a set: #1 of it is applied"),
        "{reason}"
    );
    assert_eq!(again["event"]["proposal"], 2);
    assert!(again["event"].get("with").is_none(), "{again}");
    assert_eq!(events_from(&path, recorded), ["review_asked"]);
    let states = |run: &Value| {
        let proposals = run["proposals"].as_array().unwrap().iter();
        let states = proposals.map(|one| one["state"].as_str().unwrap().to_owned());
        states.collect::<Vec<_>>()
    };
    assert_eq!(states(&state_of(&client).await[0]), ["applied", "waiting"]);
    let about = json!({"run": "r1", "proposal": 2});
    client.execute("starling.accept", about).await;
    assert_eq!(take_edit(&mut client, 1).await, "yield");
    event_of(&mut client, "run_finished").await;
    assert_eq!(undo(&mut client, 2).await, json!([2, 1]));
}

#[tokio::test]
async fn what_was_put_back_by_hand_is_not_called_undone_after_a_restart() {
    let folder = project();
    let events = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
    trajectory(folder.path(), "r1", folder.path(), events);
    let path = folder.path().join("a.py");
    std::fs::write(&path, yielding(BASE, &[1])).unwrap();
    let mut client = restarted(folder).await;
    event_of(&mut client, "proposal_applied").await;
    std::fs::write(&path, BASE).unwrap();
    client.execute("starling.undo", json!({"run": "r1"})).await;
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([]), "{undone}");
    let error = undone["error"].as_str().unwrap();
    assert!(error.contains("#1 is not in the text any more"), "{error}");
}

#[tokio::test]
async fn a_change_that_a_killed_server_took_back_in_a_closed_file_is_undone_after_a_restart() {
    let folder = project();
    let events = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
    let applied = |event: Event| match event {
        Event::ProposalApplying {
            proposal,
            symbols,
            change,
        } => Event::ProposalApplied {
            proposal,
            symbols,
            diff: String::new(),
            change: Some(change),
        },
        other => other,
    };
    let events = events.into_iter().map(applied).collect();
    trajectory(folder.path(), "r1", folder.path(), events);
    // The editor made the edit of the undo, and the server did not live to record it.
    std::fs::write(folder.path().join("a.py"), BASE).unwrap();
    let mut client = restarted(folder).await;
    event_of(&mut client, "proposal_undone").await;
    let run = &state_of(&client).await[0];
    assert_eq!(run["proposals"][0]["state"], "undone", "{run}");
}

#[tokio::test]
async fn a_set_that_was_accepted_after_a_restart_is_undone_as_a_whole_or_not_at_all() {
    let folder = project();
    let set = asked(&[(1, "a.py::f"), (2, "a.py::g")]);
    trajectory(folder.path(), "r1", folder.path(), set);
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 2});
    client.execute("starling.accept", about).await;
    for version in [1, 2] {
        assert_eq!(take_edit(&mut client, version).await, "yield");
    }
    event_of(&mut client, "run_finished").await;
    let typed = yielding(BASE, &[1, 3]).replacen("yield 1", "yield 1 + 0", 1);
    client.connection.notify(
        "textDocument/didChange",
        json!({
            "textDocument": {"uri": client.uri(), "version": 4},
            "contentChanges": [{"text": typed}],
        }),
    );
    client.execute("starling.undo", json!({"run": "r1"})).await;
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([]), "{undone}");
    let error = undone["error"].as_str().unwrap();
    assert!(error.contains("#1 stays: a.py, line"), "{error}");
    let held = "#2 stays: it belongs together with #1, which stays";
    assert!(error.contains(held), "{error}");
    let alone = client.connection.request(
        "workspace/executeCommand",
        json!({"command": "starling.undo", "arguments": [{"run": "r1", "proposal": 2}]}),
    );
    assert_eq!(take_edit(&mut client, 4).await, "return");
    alone.await.unwrap();
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([2]), "{undone}");
    let warning = undone["warning"].as_str().unwrap();
    assert!(warning.contains("#1 belongs together with #2"), "{warning}");
}

#[tokio::test]
async fn the_other_part_of_a_set_that_leads_the_rest_is_offered() {
    let folder = project();
    let set = [(1, "a.py::f"), (2, "a.py::g")];
    // The one that was asked about is applied, the other one is not.
    let events = killed_while_applying(&set, &[(2, "a.py::g")]);
    trajectory(folder.path(), "r1", folder.path(), events);
    let now = yielding(BASE, &[3]);
    std::fs::write(folder.path().join("a.py"), &now).unwrap();
    let found = find_restorable(
        &folder.path().join(".trajectories"),
        folder.path(),
        &RestorePolicy::All,
    );
    let view = crate::session::restore::view_of(&found[0].records);
    let waiting: Vec<u32> = view.lead_proposals().map(|(lead, _)| lead.0).collect();
    assert_eq!(waiting, [1]);
    // What is found once is not recorded again.
    drop(found);
    let path = folder.path().join(".trajectories/r1.jsonl");
    let story = std::fs::read(&path).unwrap();
    find_restorable(
        &folder.path().join(".trajectories"),
        folder.path(),
        &RestorePolicy::All,
    );
    assert_eq!(std::fs::read(&path).unwrap(), story);
}

#[tokio::test]
async fn a_change_that_only_a_document_of_the_editor_has_is_not_made_twice() {
    for verdict in ["starling.accept", "starling.reject"] {
        let folder = project();
        let events = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
        trajectory(folder.path(), "r1", folder.path(), events);
        let mut client = restarted(folder).await;
        event_of(&mut client, "review_asked").await;
        event_of(&mut client, "review_asked").await;
        // The editor still has the document that the killed server changed, and did not save it.
        open(&client, &yielding(BASE, &[1]));
        let about = json!({"run": "r1", "proposal": 1, "reason": "no"});
        client.execute(verdict, about).await;
        event_of(&mut client, "proposal_applied").await;
        event_of(&mut client, "run_finished").await;
        assert_eq!(undo(&mut client, 1).await, json!([1]));
    }
}

#[tokio::test]
async fn a_change_that_nobody_reviewed_and_that_only_the_editor_has_is_undone() {
    let folder = project();
    let mut events = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
    events.retain(|event| event.parts().is_empty());
    let recorded = events.len() + 1;
    let path = trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    event_of(&mut client, "run_finished").await;
    assert_eq!(events_from(&path, recorded), [""; 0], "nobody knows yet");
    open(&client, &yielding(BASE, &[1]));
    assert_eq!(undo(&mut client, 1).await, json!([1]));
}

#[tokio::test]
async fn an_edit_that_the_client_makes_after_its_server_was_killed_is_known() {
    let folder = project();
    let events = asked(&[(1, "a.py::f")]);
    let recorded = events.len() + 1;
    let path = trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 1});
    client.execute("starling.accept", about).await;
    client.next_of("workspace/applyEdit").await;
    assert_eq!(events_from(&path, recorded), ["proposal_applying"]);
    // As the killed server leaves it; the client makes the edit all the same.
    let story = std::fs::read_to_string(&path).unwrap();
    let folder = project();
    let root = |folder: &Path| folder.canonicalize().unwrap().display().to_string();
    let story = story.replace(&root(client.folder.path()), &root(folder.path()));
    let trajectories = folder.path().join(".trajectories");
    std::fs::create_dir(&trajectories).unwrap();
    std::fs::write(trajectories.join("r1.jsonl"), story).unwrap();
    let now = yielding(BASE, &[1]);
    std::fs::write(folder.path().join("a.py"), &now).unwrap();
    let mut client = restarted(folder).await;
    open(&client, &now);
    event_of(&mut client, "proposal_applied").await;
    assert_eq!(undo(&mut client, 1).await, json!([1]));
}

#[tokio::test]
async fn a_question_is_in_the_trajectory_before_the_client_hears_of_it() {
    let start = scripted(async |scene: RunScript| {
        // The client is told faster than the disk writes.
        for _ in 0..200 {
            scene.log.event(said("hello"));
        }
        for event in asked(&[(1, "a.py::f")]) {
            scene.log.event(event);
        }
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    });
    let folder = project();
    let services = services(start, &folder.path().join(".trajectories"));
    let mut client = TestClient::over(services, folder);
    client.initialize(full()).await;
    let run = super::begin(&client, "x").await;
    event_of(&mut client, "review_asked").await;
    let story = super::story_of(client.folder.path(), &run);
    assert!(
        story
            .iter()
            .any(|one| one["event"]["event"] == "review_asked")
    );
}

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

pub(super) async fn state_of(client: &TestClient) -> Value {
    let state = client.connection.request("starling/state", Value::Null);
    state.await.unwrap()["runs"].clone()
}

#[tokio::test]
async fn a_run_whose_server_crashed_is_shown_as_interrupted_and_run_again() {
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
    // Until it is run again, each later server review_actions it.
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
async fn a_run_that_ends_with_its_server_is_interrupted_and_one_that_the_user_stops_is_not() {
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
async fn runs_that_ended_are_history_until_they_are_forgotten() {
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

#[tokio::test]
async fn an_undo_in_an_interrupted_run_is_in_its_trajectory() {
    let folder = project();
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
            directories: Vec::new(),
            dependencies: Default::default(),
        }),
    });
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
    assert_eq!(states(), [starling_history::ChangeState::Undone]);
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    // The run is still offered, as undone, until it is forgotten; then its trajectory has one end.
    let mut client = restarted(client.folder).await;
    event_of(&mut client, "run_finished").await;
    let run = &state_of(&client).await[0];
    assert_eq!(run["proposals"][0]["state"], "undone", "{run}");
    client.execute("starling.forget", json!({})).await;
    let story = super::story_of(client.folder.path(), "r1");
    let kinds: Vec<&Value> = story.iter().map(|one| &one["event"]["event"]).collect();
    assert_eq!(
        kinds[kinds.len() - 2..],
        ["proposal_undone", "run_finished"]
    );
    let seqs = story.iter().map(|one| one["seq"].as_u64().unwrap());
    assert!(seqs.eq(0..story.len() as u64), "{kinds:?}");
}

/// Its last request was cut off: no turn tells of it, and the end does.
#[tokio::test]
async fn what_an_interrupted_run_spent_is_what_its_end_said() {
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
