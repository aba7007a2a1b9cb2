//! A server that was killed while it applied accepted proposals: the next server finds out which of them
//! were applied.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::lenses::{open, project};
use super::restart::{
    event_of, events_from, restarted, state_of, take_edit, trajectory, undo, yielding,
};
use crate::RestorePolicy;
use crate::killed_runs;
use crate::samples::{BASE, asked};
use crate::session::restore::{find_restorable, view_of};
use crate::testing::TestClient;
use serde_json::Value;
use starling_history::{DiskEditor, unfinished};
use starling_swarm::{AppliedChange, Dependencies, Event, ProposalId};

/// Returns the events of a server that was killed while it applied accepted proposals. It had sent
/// the edits of the proposals in `sent`, and recorded the result of all but the last of them.
pub(super) fn killed_while_applying(proposals: &[(u32, &str)], sent: &[(u32, &str)]) -> Vec<Event> {
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
                deleted: None,
                directories: Vec::new(),
                dependencies: Default::default(),
                text_without: None,
            },
        });
    }
    events
}

#[tokio::test]
async fn accepted_proposal_not_applied_by_killed_server_waits_again() {
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
async fn proposal_applied_by_killed_server_is_restored_as_applied() {
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
async fn unapplied_members_of_a_partly_applied_set_wait_again() {
    let folder = project();
    let set = [(1, "a.py::f"), (2, "a.py::g")];
    // The first member is recorded as applied, the second one only as sent.
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
async fn manual_revert_is_not_reported_as_undone_after_restart() {
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
async fn undo_in_closed_file_before_kill_is_detected_after_restart() {
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
    // The editor made the edit of the undo, and the server was killed before it could record it.
    std::fs::write(folder.path().join("a.py"), BASE).unwrap();
    let mut client = restarted(folder).await;
    event_of(&mut client, "proposal_undone").await;
    let run = &state_of(&client).await[0];
    assert_eq!(run["proposals"][0]["state"], "undone", "{run}");
}

#[tokio::test]
async fn unapplied_member_waits_again_if_the_lead_of_its_set_was_applied() {
    let folder = project();
    let set = [(1, "a.py::f"), (2, "a.py::g")];
    // The lead of the set is applied, the other member is not.
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
    // A second search does not record the same events again.
    drop(found);
    let path = folder.path().join(".trajectories/r1.jsonl");
    let trajectory_text = std::fs::read(&path).unwrap();
    find_restorable(
        &folder.path().join(".trajectories"),
        folder.path(),
        &RestorePolicy::All,
    );
    assert_eq!(std::fs::read(&path).unwrap(), trajectory_text);
}

#[tokio::test]
async fn change_of_a_killed_server_in_an_unsaved_document_is_not_applied_twice() {
    for verdict in ["starling.accept", "starling.reject"] {
        let folder = project();
        let events = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
        trajectory(folder.path(), "r1", folder.path(), events);
        let mut client = restarted(folder).await;
        event_of(&mut client, "review_asked").await;
        event_of(&mut client, "review_asked").await;
        // The editor still has the unsaved document that the killed server changed.
        open(&client, &yielding(BASE, &[1]));
        let about = json!({"run": "r1", "proposal": 1, "reason": "no"});
        client.execute(verdict, about).await;
        event_of(&mut client, "proposal_applied").await;
        event_of(&mut client, "run_finished").await;
        assert_eq!(undo(&mut client, 1).await, json!([1]));
    }
}

#[tokio::test]
async fn unreviewed_change_of_a_killed_server_in_an_unsaved_document_can_be_undone() {
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

/// Returns a client whose editor still has the unsaved document that a killed server changed without
/// a review, and the path of the trajectory.
async fn unrecorded_in_unsaved_document() -> (TestClient, PathBuf) {
    let folder = project();
    let mut events = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
    events.retain(|event| event.parts().is_empty());
    for event in &mut events {
        if let Event::ProposalReviewed { by, .. } = event {
            *by = starling_swarm::ActorId::Starling;
        }
    }
    let path = trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    let end = event_of(&mut client, "run_finished").await;
    let headline = end["event"]["ending"]["headline"].as_str().unwrap();
    let told = "an unsaved document may contain its change of a.py::f";
    assert!(headline.ends_with(told), "{headline}");
    open(&client, &yielding(BASE, &[1]));
    (client, path)
}

#[tokio::test]
async fn unreviewed_change_that_a_killed_server_made_in_an_unsaved_document_is_told() {
    let (mut client, path) = unrecorded_in_unsaved_document().await;
    event_of(&mut client, "proposal_applied").await;
    loop {
        let (_, said) = client.next_of("window/showMessage").await;
        let said = said["message"].as_str().unwrap();
        if said.contains("What it changed stays, and no person reviewed it: a.py::f.") {
            break;
        }
    }
    assert_eq!(
        state_of(&client).await[0]["proposals"][0]["state"],
        "applied"
    );
    let past = starling_history::PastRun::read(&path).unwrap();
    assert_eq!(past.applied().count(), 1);
}

#[tokio::test]
async fn undo_of_an_unrecorded_change_in_a_document_that_is_never_saved_can_be_done_again() {
    let (mut client, path) = unrecorded_in_unsaved_document().await;
    let file = client.folder.path().join("a.py");
    std::fs::write(&file, yielding(BASE, &[1])).unwrap();
    let saved = json!({"textDocument": {"uri": client.uri()}});
    client.connection.notify("textDocument/didSave", saved);
    assert_eq!(undo(&mut client, 1).await, json!([1]));
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    // The file still has the change.
    let mut past = starling_history::PastRun::read(&path).unwrap();
    let disk = DiskEditor::new(client.folder.path());
    past.detect_unrecorded_changes(&disk).await;
    assert_eq!(past.applied().count(), 1);
}

#[tokio::test]
async fn edit_applied_after_the_server_was_killed_is_detected() {
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
    // The server was killed after it sent the edit, and the client applied the edit.
    let trajectory_text = std::fs::read_to_string(&path).unwrap();
    let folder = project();
    let root = |folder: &Path| folder.canonicalize().unwrap().display().to_string();
    let trajectory_text =
        trajectory_text.replace(&root(client.folder.path()), &root(folder.path()));
    let trajectories = folder.path().join(".trajectories");
    std::fs::create_dir(&trajectories).unwrap();
    std::fs::write(trajectories.join("r1.jsonl"), trajectory_text).unwrap();
    let now = yielding(BASE, &[1]);
    std::fs::write(folder.path().join("a.py"), &now).unwrap();
    let mut client = restarted(folder).await;
    open(&client, &now);
    event_of(&mut client, "proposal_applied").await;
    assert_eq!(undo(&mut client, 1).await, json!([1]));
}

/// Returns the events of a run without a reviewer that was killed while it applied a set of two
/// changes. Both changes are recorded as about to be applied.
fn killed_amid_a_set() -> Vec<Event> {
    let mut events = asked(&[(1, "a.py::f"), (2, "a.py::g")]);
    let parts = events.pop().unwrap().parts().to_vec();
    for part in &parts {
        events.push(Event::ProposalChecked {
            proposal: part.proposal,
            evidence: crate::testing::evidence(),
        });
        events.push(Event::ProposalReviewed {
            proposal: part.proposal,
            by: starling_swarm::ActorId::Starling,
            verdict: starling_core::Verdict::Accept,
        });
    }
    let others = |id: ProposalId| {
        parts
            .iter()
            .map(move |part| part.proposal)
            .filter(move |one| *one != id)
    };
    let mut before: std::sync::Arc<str> = BASE.into();
    for part in &parts {
        let changes = part.over(&before).unwrap();
        let after = changes.apply(&before).unwrap().into();
        events.push(Event::ProposalApplying {
            proposal: part.proposal,
            symbols: part.symbols.clone(),
            change: AppliedChange {
                file: part.file.clone(),
                before: std::mem::replace(&mut before, after),
                changes,
                created: false,
                deleted: None,
                directories: Vec::new(),
                dependencies: Dependencies {
                    set: others(part.proposal).collect(),
                    ..Dependencies::default()
                },
                text_without: None,
            },
        });
    }
    events
}

fn half_applied(folder: &Path) -> Vec<String> {
    let runs = killed_runs(&folder.join(".trajectories"), folder);
    let sets = runs.iter().flat_map(|run| &run.sets);
    sets.map(starling_history::HalfSet::told).collect()
}

#[tokio::test]
async fn missing_part_of_a_set_accepted_without_review_is_offered_after_a_kill() {
    let folder = project();
    let events = killed_amid_a_set();
    let recorded = events.len() + 1;
    let path = trajectory(folder.path(), "r1", folder.path(), events);
    assert_eq!(
        half_applied(folder.path()),
        [""; 0],
        "nothing of it is there"
    );
    let now = yielding(BASE, &[1]);
    std::fs::write(folder.path().join("a.py"), &now).unwrap();
    let told = half_applied(folder.path());
    assert!(
        told[0].ends_with("#1 (a.py) is there, #2 (a.py) is missing"),
        "{told:?}"
    );
    assert_eq!(
        events_from(&path, recorded),
        [""; 0],
        "a look writes nothing"
    );
    let mut client = restarted(folder).await;
    open(&client, &now);
    let (_, said) = client.next_of("window/showMessage").await;
    let said = said["message"].as_str().unwrap();
    assert!(said.contains(&told[0]), "{said}");
    let asked = event_of(&mut client, "review_asked").await;
    assert_eq!(asked["event"]["proposal"], 2);
    assert_eq!(
        events_from(&path, recorded),
        ["proposal_applied", "review_asked"]
    );
    let about = json!({"run": "r1", "proposal": 2});
    client.execute("starling.accept", about).await;
    assert_eq!(take_edit(&mut client, 1).await, "yield");
    event_of(&mut client, "run_finished").await;
    assert_eq!(undo(&mut client, 2).await, json!([2, 1]));
}

#[test]
fn missing_part_of_a_set_is_not_offered_after_the_applied_part_was_undone() {
    let folder = project();
    let trajectories = folder.path().join(".trajectories");
    let waiting = |folder: &Path| -> Vec<u32> {
        let found = find_restorable(&trajectories, folder, &RestorePolicy::All);
        let records = found.iter().map(|one| view_of(&one.records));
        let leads = records.flat_map(|view| {
            let leads = view.lead_proposals().map(|(lead, _)| lead.0);
            leads.collect::<Vec<_>>()
        });
        leads.collect()
    };
    let path = trajectory(folder.path(), "r1", folder.path(), killed_amid_a_set());
    std::fs::write(folder.path().join("a.py"), yielding(BASE, &[1])).unwrap();
    assert_eq!(waiting(folder.path()), [2]);
    assert_eq!(half_applied(folder.path()).len(), 1, "until it is complete");
    let undone = Event::ProposalUndone {
        by_editor: false,
        unsaved: false,
        proposal: ProposalId(1),
    };
    let run = starling_history::find(&trajectories, &folder.path().canonicalize().unwrap(), "r1");
    starling_history::record(&run.unwrap(), vec![undone]).unwrap();
    std::fs::write(folder.path().join("a.py"), BASE).unwrap();
    assert_eq!(half_applied(folder.path()), [""; 0]);
    assert_eq!(waiting(folder.path()), [0; 0]);
    let last = events_from(&path, 0).pop();
    assert_eq!(last.as_deref(), Some("proposal_reviewed"));
}

#[test]
fn remains_of_a_killed_creation_of_a_file_are_removed_at_the_next_look() {
    let folder = project();
    let millis = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let events = vec![Event::ProposalApplying {
        proposal: ProposalId(1),
        symbols: Vec::new(),
        change: AppliedChange {
            file: starling_syntax::FilePath::new("sub/new.py"),
            before: "".into(),
            changes: starling_text::ChangeSet::between("", "x = 1\n"),
            created: true,
            deleted: None,
            directories: vec!["sub".to_owned()],
            dependencies: Dependencies::default(),
            text_without: None,
        },
    }];
    let path = trajectory(folder.path(), &format!("{millis}-1"), folder.path(), events);
    let sub = folder.path().join("sub");
    let leave = |more: Option<&str>| {
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::write(sub.join(".new.py.starling-write-2147483632-0"), "x").unwrap();
        if let Some(more) = more {
            std::fs::write(sub.join(more), "").unwrap();
        }
    };
    // The run is active: its trajectory is locked.
    leave(None);
    let file = std::fs::File::open(&path).unwrap();
    file.lock().unwrap();
    assert_eq!(half_applied(folder.path()), [""; 0]);
    assert_eq!(std::fs::read_dir(&sub).unwrap().count(), 1);
    drop(file);
    assert_eq!(half_applied(folder.path()), [""; 0]);
    assert!(!sub.exists());
    leave(Some("mine.py"));
    half_applied(folder.path());
    let left = std::fs::read_dir(&sub).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["mine.py"]);
}
