//! Reviews that waited when a server ended are offered again by the next server.

use std::path::Path;

use serde_json::{Value, json};

use super::lenses::{full, open, project, proposing};
use crate::RestorePolicy;
use crate::samples::{BASE, asked, asked_with_need};
use crate::session::restore::find_restorable;
use crate::testing::*;
use starling_core::Limits;
use starling_swarm::{Event, EventLog, RunId, StopReason};

/// Writes the trajectory of a run whose server was killed.
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
        request: None,
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

/// Starts a server in a directory with the trajectories of earlier runs.
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

/// Applies the edit that the server requests, which must be for the document version `version`.
/// Returns the inserted text.
pub(super) async fn take_edit(client: &mut TestClient, version: i32) -> String {
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

/// Returns the id of a run that began at a Unix time in seconds.
fn begun_at(seconds: u64) -> String {
    format!("{seconds}000-test")
}

#[tokio::test]
async fn evidence_of_an_earlier_run_names_the_files_that_were_changed_since() {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let told = json!("files changed since these checks: a.py");
    for (began, expected) in [(1_700_000_000, told), (now + 3600, Value::Null)] {
        let folder = project();
        let events = asked(&[(1, "a.py::f")]);
        trajectory(folder.path(), &begun_at(began), folder.path(), events);
        let mut client = restarted(folder).await;
        let params = event_of(&mut client, "review_asked").await;
        assert_eq!(params["event"]["evidence"]["outdated"], expected);
        let run = begun_at(began);
        let shown = client
            .connection
            .request("starling/proposal", json!({"run": run, "proposal": 1}))
            .await
            .unwrap();
        assert_eq!(shown["evidence"]["outdated"], expected, "{shown:#}");
    }
}

/// The waiting proposals of an earlier run cannot be checked again, because the run has no agents.
#[tokio::test]
async fn evidence_of_an_earlier_run_is_out_of_date_when_another_proposal_is_applied() {
    let folder = project();
    let events = [asked(&[(1, "a.py::f")]), asked(&[(2, "a.py::g")])].concat();
    trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 1});
    client.execute("starling.accept", about).await;
    take_edit(&mut client, 1).await;
    let checked = event_of(&mut client, "proposal_checked").await;
    assert_eq!(checked["event"]["proposal"], 2);
    let told = "applied since these checks: #1";
    assert_eq!(checked["event"]["evidence"]["outdated"], told);
}

#[tokio::test]
async fn restored_proposal_can_be_accepted_and_undone() {
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
    let trajectory_text = std::fs::read_to_string(path).unwrap();
    assert!(
        trajectory_text.contains("proposal_applied"),
        "{trajectory_text}"
    );
    let last: Value = serde_json::from_str(trajectory_text.lines().last().unwrap()).unwrap();
    assert_eq!(
        last["event"]["event"], "proposal_undone",
        "{trajectory_text}"
    );
    let seqs = trajectory_text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].clone());
    let expected = (0..trajectory_text.lines().count()).map(|seq| json!(seq));
    assert!(seqs.eq(expected), "{trajectory_text}");
    assert!(
        find_restorable(&kept.join(".trajectories"), &kept, &RestorePolicy::All).is_empty(),
        "nothing waits any more"
    );
}

/// Starts a server for a run in which proposal 1 needs proposal 2, and accepts proposal 1.
async fn accepted_with_need() -> TestClient {
    let folder = project();
    let mut events = asked(&[(2, "a.py::g")]);
    events.extend(asked_with_need((1, "a.py::f"), 2));
    trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 1});
    client.execute("starling.accept", about).await;
    client
}

#[tokio::test]
async fn accepted_restored_proposal_is_applied_after_the_proposal_that_it_needs() {
    let mut client = accepted_with_need().await;
    let about = json!({"run": "r1", "proposal": 2});
    client.execute("starling.accept", about).await;
    assert_eq!(take_edit(&mut client, 1).await, "yield");
    assert_eq!(take_edit(&mut client, 2).await, "yield");
    let end = event_of(&mut client, "run_finished").await;
    assert_eq!(end["event"]["applied"], json!(["a.py::g", "a.py::f"]));
}

#[tokio::test]
async fn accepted_restored_proposal_is_reviewed_again_when_a_needed_proposal_is_rejected() {
    let mut client = accepted_with_need().await;
    let about = |proposal: u32| json!({"run": "r1", "proposal": proposal, "reason": "no"});
    client.execute("starling.reject", about(2)).await;
    let told = event_of(&mut client, "proposal_conflicted").await;
    let why = "it passes only with #2, which is not applied";
    assert_eq!(told["event"]["why"], why);
    event_of(&mut client, "review_asked").await;
    client.execute("starling.reject", about(1)).await;
    event_of(&mut client, "run_finished").await;
}

/// The user made the change in the meantime, or accepted the same proposal of another run.
#[tokio::test]
async fn accepting_a_restored_proposal_whose_text_is_there_already_changes_nothing() {
    let folder = project();
    trajectory(folder.path(), "r1", folder.path(), asked(&[(1, "a.py::f")]));
    let mut client = restarted(folder).await;
    open(&client, &yielding(BASE, &[1]));
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 1});
    client.execute("starling.accept", about).await;
    let applied = event_of(&mut client, "proposal_applied").await;
    assert_eq!(applied["event"]["diff"], "");
    let end = event_of(&mut client, "run_finished").await;
    assert_eq!(end["event"]["applied"], json!([]));
    let told = "Interrupted: its server ended in the middle; nothing was changed";
    assert_eq!(end["event"]["ending"]["headline"], told);
}

#[tokio::test]
async fn conflicting_restored_proposal_is_reviewed_again() {
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
    assert!(said.contains("ended with an earlier server"), "{said}");
    let reject = json!({"run": "r1", "proposal": 1, "reason": "no"});
    client.execute("starling.reject", reject).await;
    event_of(&mut client, "run_finished").await;
}

#[tokio::test]
async fn review_waiting_at_shutdown_waits_again() {
    let folder = project();
    let trajectories = folder.path().join(".trajectories");
    let start = proposing(&[(1, "a.py::f"), (2, "a.py::g")]);
    let mut client = TestClient::over(services(start, &trajectories), folder);
    client.initialize(full()).await;
    super::begin(&client, "x").await;
    event_of(&mut client, "review_asked").await;
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    // The scripted run logs no start event, so its trajectory does not name the project.
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
fn finds_only_interrupted_runs_with_waiting_reviews() {
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
    // A last line that was cut off is removed.
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
async fn set_of_proposals_is_not_applied_if_the_client_refuses_an_edit() {
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
    // No member is applied, so all of them can be accepted again.
    client.execute("starling.accept", about).await;
    assert_eq!(take_edit(&mut client, 3).await, "yield");
    assert_eq!(take_edit(&mut client, 4).await, "yield");
    let first = event_of(&mut client, "proposal_applied").await;
    let second = event_of(&mut client, "proposal_applied").await;
    let ids = [&first, &second].map(|one| one["event"]["proposal"].clone());
    assert_eq!(ids, [json!(1), json!(2)]);
}

#[tokio::test]
async fn accepted_proposal_is_applied_and_logged_even_if_the_run_is_cancelled() {
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

/// Returns the kinds of the events in a trajectory, beginning with the record number `from`.
pub(super) fn events_from(path: &Path, from: usize) -> Vec<String> {
    let trajectory_text = std::fs::read_to_string(path).unwrap();
    let events = trajectory_text.lines().enumerate().map(|(at, line)| {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["seq"], at, "{trajectory_text}");
        record["event"]["event"].as_str().unwrap().to_owned()
    });
    events.skip(from).collect()
}

pub(super) fn yielding(text: &str, nth: &[usize]) -> String {
    let parts = text.split("return").enumerate();
    parts.fold(String::new(), |made, (at, part)| match at {
        0 => part.to_owned(),
        at if nth.contains(&at) => format!("{made}yield{part}"),
        _ => format!("{made}return{part}"),
    })
}

pub(super) async fn undo(client: &mut TestClient, version: i32) -> Value {
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
async fn restored_set_is_undone_as_a_whole_or_not_at_all() {
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
async fn review_is_logged_before_the_client_is_notified() {
    let start = scripted(async |scene: RunScript| {
        // The client receives events faster than the disk writes them.
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
    let records = super::records_of(client.folder.path(), &run);
    assert!(
        records
            .iter()
            .any(|one| one["event"]["event"] == "review_asked")
    );
}

pub(super) async fn state_of(client: &TestClient) -> Value {
    let state = client.connection.request("starling/state", Value::Null);
    state.await.unwrap()["runs"].clone()
}

#[cfg(unix)]
/// Makes `a.py` a link to a file that only a person may change.
fn become_makefile(folder: &Path) {
    std::fs::rename(folder.join("a.py"), folder.join("Makefile")).unwrap();
    std::os::unix::fs::symlink("Makefile", folder.join("a.py")).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn restored_proposal_of_a_file_that_became_guarded_needs_a_yes_that_knows_it() {
    let about = json!({"run": "r1", "proposal": 1});
    for is_before in [true, false] {
        let folder = project();
        trajectory(folder.path(), "r1", folder.path(), asked(&[(1, "a.py::f")]));
        if is_before {
            become_makefile(folder.path());
        }
        let mut client = restarted(folder).await;
        let mut shown = event_of(&mut client, "review_asked").await;
        if !is_before {
            assert_eq!(shown["event"]["evidence"]["needs_person"], Value::Null);
            become_makefile(client.folder.path());
        }
        let all = client.execute("starling.acceptAll", json!({})).await;
        assert_eq!(all, json!({"accepted": []}));
        if !is_before {
            client.execute("starling.accept", about.clone()).await;
            let told = event_of(&mut client, "proposal_conflicted").await;
            let why = told["event"]["why"].as_str().unwrap();
            assert!(why.contains("only a person may change"), "{why}");
            shown = event_of(&mut client, "review_asked").await;
        }
        let needs = &shown["event"]["evidence"]["needs_person"];
        assert_eq!(needs[0]["file"], "a.py", "{shown}");
        assert_eq!(needs.as_array().map(Vec::len), Some(1), "{shown}");
        let all = client.execute("starling.acceptAll", json!({})).await;
        assert_eq!(all, json!({"accepted": []}));
        client.execute("starling.accept", about.clone()).await;
        let (_, params) = client.next_of("workspace/applyEdit").await;
        let edit = &params["edit"]["documentChanges"][0]["edits"][0];
        assert_eq!(edit["newText"], "yield", "{params}");
    }
}

#[tokio::test]
async fn restored_proposal_is_not_applied_to_a_file_that_declares_an_odd_encoding() {
    for encoding in ["utf-7", "unicode_escape"] {
        let folder = project();
        trajectory(folder.path(), "r1", folder.path(), asked(&[(1, "a.py::f")]));
        let declared = format!("# -*- coding: {encoding} -*-\n{BASE}");
        std::fs::write(folder.path().join("a.py"), &declared).unwrap();
        let mut client = restarted(folder).await;
        event_of(&mut client, "review_asked").await;
        let all = client.execute("starling.acceptAll", json!({})).await;
        assert_eq!(all, json!({"accepted": []}));
        let about = json!({"run": "r1", "proposal": 1});
        client.execute("starling.accept", about).await;
        let told = event_of(&mut client, "proposal_conflicted").await;
        let why = told["event"]["why"].as_str().unwrap();
        assert!(why.contains(encoding), "{why}");
        let text = std::fs::read_to_string(client.folder.path().join("a.py"));
        assert_eq!(text.unwrap(), declared);
    }
}

#[tokio::test]
async fn accept_all_leaves_out_a_restored_proposal_that_conflicts() {
    for is_open in [true, false] {
        let folder = project();
        let events = [asked(&[(1, "a.py::f")]), asked(&[(2, "a.py::g")])].concat();
        trajectory(folder.path(), "r1", folder.path(), events);
        let mine = BASE.replace("return 1", "return 10");
        if !is_open {
            std::fs::write(folder.path().join("a.py"), &mine).unwrap();
        }
        let mut client = restarted(folder).await;
        event_of(&mut client, "review_asked").await;
        event_of(&mut client, "review_asked").await;
        if is_open {
            open(&client, &mine);
        }
        let all = client.execute("starling.acceptAll", json!({})).await;
        let accepted = json!({"accepted": [{"run": "r1", "proposal": 2}]});
        assert_eq!(all, accepted, "{is_open}");
    }
}
