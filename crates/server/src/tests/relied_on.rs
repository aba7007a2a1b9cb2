//! An undo of a run on whose change another run relies.

use std::path::Path;

use serde_json::json;

use super::lenses::open;
use super::restart::{restarted, state_of, take_edit, trajectory};
use crate::testing::*;
use starling_swarm::{AppliedChange, Event, ProposalId, StopReason};
use starling_text::ChangeSet;

const BASE: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n";

/// Writes the trajectory of an ended run that applied a change.
fn ended(folder: &Path, name: &str, before: &str, after: &str) {
    let applied = Event::ProposalApplied {
        proposal: ProposalId(1),
        symbols: vec![symbol("a.py::f")],
        diff: String::new(),
        change: Some(AppliedChange {
            file: file("a.py"),
            before: before.into(),
            changes: ChangeSet::between(before, after),
            created: false,
            deleted: None,
            directories: Vec::new(),
            dependencies: Default::default(),
            text_without: None,
        }),
    };
    let events = vec![applied, finished(StopReason::Settled)];
    trajectory(folder, name, folder, events);
}

#[tokio::test]
async fn undo_of_an_earlier_run_names_the_run_that_relies_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let helper = format!("def helper(x):\n    return x\n\n\n{BASE}");
    let used = helper.replace("def g(x):\n    return x", "def g(x):\n    return helper(x)");
    ended(folder.path(), "r1", BASE, &helper);
    ended(folder.path(), "r2", &helper, &used);
    std::fs::write(folder.path().join("a.py"), &used).unwrap();
    let mut client = restarted(folder).await;
    open(&client, &used);
    while state_of(&client).await.as_array().map(Vec::len) != Some(2) {
        tokio::task::yield_now().await;
    }
    client.execute("starling.undo", json!({"run": "r1"})).await;
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([]));
    let error = undone["error"].as_str().unwrap();
    assert!(error.contains("run r2 relies on it"), "{error}");
    assert!(error.contains("`helper` in a.py::g"), "{error}");
    // A proposal that the user names is undone, with a warning.
    let named = json!({"run": "r1", "proposal": 1});
    client.execute("starling.undo", named).await;
    take_edit(&mut client, 1).await;
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([1]));
    let warning = undone["warning"].as_str().unwrap();
    assert!(warning.contains("run r2 relies on it"), "{warning}");
}
