//! A server that ended just after the editor had made an edit at the wrong position: the next server
//! finds the edit and tells its lines.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use starling_rpc::Incoming;

use super::killed::killed_while_applying;
use super::lenses::project;
use super::restart::{events_from, restarted, state_of, trajectory};
use crate::samples::BASE;
use crate::session::restore::find_restorable;
use crate::testing::*;
use crate::{RestorePolicy, killed_runs};
use starling_swarm::{Event, ProposalId, StopReason};
use starling_text::{Encoding, PositionedChange};

/// Returns a text with a line of the user in which the editor made the last edit of `events` at its
/// old lines and columns.
fn misplaced(events: &[Event]) -> String {
    let change = events.iter().rev().find_map(|event| match event {
        Event::ProposalApplying { change, .. } => Some(change),
        _ => None,
    });
    let change = change.unwrap();
    let mine = format!("# mine\n{}", change.before);
    let positioned = PositionedChange::new(&change.before, &change.changes, Encoding::Utf16);
    let text = positioned.applied_to(&mine).unwrap();
    assert_ne!(
        text,
        format!("# mine\n{}", change.changes.apply(&change.before).unwrap())
    );
    text
}

/// Returns the messages to the user until nothing comes for a minute.
async fn messages(client: &mut TestClient) -> Vec<String> {
    let mut messages = Vec::new();
    let wait = std::time::Duration::from_secs(60);
    while let Ok(Some(message)) = tokio::time::timeout(wait, client.incoming.recv()).await {
        if let Incoming::Notification { method, params } = message
            && method == "window/showMessage"
        {
            messages.push(params["message"].as_str().unwrap().to_owned());
        }
    }
    messages
}

/// The events of a server that was shut down: it recorded the conflict, but could tell nobody.
fn shut_down(mut events: Vec<Event>) -> Vec<Event> {
    events.push(Event::ProposalConflicted {
        proposal: ProposalId(1),
        why: "it could not be taken back (the editor has closed the connection)".to_owned(),
    });
    events.push(finished(StopReason::Cancelled));
    events
}

fn write_run(folder: &Path, events: Vec<Event>, text: &str, is_shut_down: bool) -> PathBuf {
    let path = trajectory(folder, "r1", folder, events);
    std::fs::write(folder.join("a.py"), text).unwrap();
    if is_shut_down {
        std::fs::write(path.with_extension("interrupted"), "").unwrap();
    }
    path
}

const TOLD: &str = "a.py, line 2: the file changed while the editor made Starling's edit #1";

#[tokio::test(start_paused = true)]
async fn edit_at_the_wrong_position_is_told_once_by_the_next_server_and_by_undo() {
    for is_shut_down in [false, true] {
        let folder = project();
        let mut events = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
        let text = misplaced(&events);
        if is_shut_down {
            events = shut_down(events);
        }
        let recorded = events.len() + 1;
        let path = write_run(folder.path(), events, &text, is_shut_down);
        let mut client = restarted(folder).await;
        let told = messages(&mut client).await;
        let of_edit: Vec<&String> = told.iter().filter(|one| one.contains(TOLD)).collect();
        assert_eq!(of_edit.len(), 1, "{told:?}");
        assert!(!told.iter().any(|one| one.contains("waits")), "{told:?}");
        assert_eq!(events_from(&path, recorded)[0], "proposal_conflicted");
        let run = &state_of(&client).await[0];
        assert_eq!(run["proposals"][0]["state"], "conflicted", "{run}");
        client.execute("starling.undo", json!({"run": "r1"})).await;
        let (_, undone) = client.next_of("starling/undone").await;
        assert_eq!(undone["proposals"], json!([]), "{undone}");
        let error = undone["error"].as_str().unwrap();
        assert!(error.starts_with(TOLD), "{error}");
        // The command line tells it as long as the edit is in the file; a server tells it once.
        client.connection.notify("exit", Value::Null);
        client.server.await.unwrap();
        let folder = client.folder;
        let now = std::fs::read_to_string(folder.path().join("a.py")).unwrap();
        assert_eq!(now, text);
        let runs = killed_runs(&folder.path().join(".trajectories"), folder.path());
        assert!(runs[0].misplaced[0].told().starts_with(TOLD), "{runs:?}");
        let mut client = restarted(folder).await;
        let told = messages(&mut client).await;
        assert!(!told.iter().any(|one| one.contains(TOLD)), "{told:?}");
    }
}

#[test]
fn no_part_of_a_set_with_an_edit_at_the_wrong_position_is_offered() {
    let folder = project();
    let set = [(1, "a.py::f"), (2, "a.py::g")];
    let events = killed_while_applying(&set, &[(1, "a.py::f")]);
    let text = misplaced(&events);
    write_run(folder.path(), events, &text, false);
    let trajectories = folder.path().join(".trajectories");
    let found = find_restorable(&trajectories, folder.path(), &RestorePolicy::All);
    assert!(!found[0].waits, "{found:?}");
    let conflicts = found[0].records.iter().filter(|one| {
        let line = serde_json::to_string(one).unwrap();
        line.contains("proposal_conflicted")
    });
    assert_eq!(conflicts.count(), 2);
}

#[test]
fn edit_that_is_not_in_the_file_any_more_is_not_told() {
    let folder = project();
    let events = killed_while_applying(&[(1, "a.py::f")], &[(1, "a.py::f")]);
    write_run(folder.path(), events, &format!("# mine\n{BASE}"), false);
    let trajectories = folder.path().join(".trajectories");
    assert!(killed_runs(&trajectories, folder.path()).is_empty());
    let found = find_restorable(&trajectories, folder.path(), &RestorePolicy::All);
    assert!(found[0].waits && found[0].misplaced.is_empty(), "{found:?}");
}
