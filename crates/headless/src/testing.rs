//! A headless editor for tests. Its server runs scripted runs.

// Only tests use this module, including the tests of other crates.
#![allow(clippy::unwrap_used)]

use std::future::Future;

pub use starling_server::testing::*;
use starling_swarm::Event;
use tempfile::TempDir;

use super::{HeadlessEditor, HeadlessRun, RunNotification};

/// Starts a headless editor over a folder. Its runs execute `script`.
pub async fn editor<F, Fut>(folder: &TempDir, script: F) -> HeadlessEditor
where
    F: Fn(RunScript) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let trajectories = folder.path().join(".trajectories");
    let services = services(scripted(script), &trajectories);
    HeadlessEditor::start(services, folder.path())
        .await
        .unwrap()
}

/// Returns the next event of a run.
pub async fn event(run: &mut HeadlessRun) -> Event {
    match note(run).await {
        RunNotification::Event(params) => params.event,
        RunNotification::Intent(intent) => panic!("an intent: {intent:?}"),
    }
}

pub async fn note(run: &mut HeadlessRun) -> RunNotification {
    let next = tokio::time::timeout(std::time::Duration::from_secs(30), run.notes.recv());
    next.await
        .expect("no event came")
        .expect("the server is gone")
}

/// Collects the texts of all [`said`] events until the run ends. A scripted run reports its results
/// by these events.
pub async fn story(run: &mut HeadlessRun) -> Vec<String> {
    let mut story = Vec::new();
    loop {
        match event(run).await {
            Event::Steered { text, .. } => story.push(text),
            Event::RunFinished { .. } => return story,
            other => panic!("not in the script: {other:?}"),
        }
    }
}
