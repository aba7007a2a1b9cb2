//! A run while it starts and after it has ended.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::HeadlessEditor;
use crate::testing::*;
use starling_server::Services;
use starling_server::protocol::TargetParams;
use starling_swarm::{Event, StopReason};

/// Returns services whose runs open only after `ready` is notified.
fn slow(services: Services, ready: &Arc<Notify>) -> Services {
    let (open, ready) = (services.open, Arc::clone(ready));
    Services {
        open: Arc::new(move |opening| {
            let (open, ready) = (Arc::clone(&open), Arc::clone(&ready));
            Box::pin(async move {
                ready.notified().await;
                open(opening).await
            })
        }),
        ..services
    }
}

/// Starts an editor whose runs report the next three messages that the user sends. Returns the
/// editor, and the switch that lets its runs open.
async fn listening(folder: &tempfile::TempDir) -> (HeadlessEditor, Arc<Notify>) {
    let start = scripted(async |mut scene: RunScript| {
        for _ in 0..3 {
            let (to, text) = scene.steered.recv().await.unwrap();
            let to = to.map_or("all".to_owned(), |symbol| symbol.to_string());
            scene.log.event(said(&format!("{to}: {text}")));
        }
        scene.log.event(finished(StopReason::Settled));
    });
    let ready = Arc::new(Notify::new());
    let services = slow(
        services(start, &folder.path().join(".trajectories")),
        &ready,
    );
    let editor = HeadlessEditor::start(services, folder.path()).await;
    (editor.unwrap(), ready)
}

fn of(path: &str) -> TargetParams {
    TargetParams {
        symbol: Some(symbol(path)),
        ..TargetParams::default()
    }
}

#[tokio::test]
async fn user_messages_before_a_run_opens_are_delivered_in_order() {
    let folder = folder(&[]);
    let (editor, ready) = listening(&folder).await;
    let mut run = editor.run(task("go")).await.unwrap();
    editor
        .steer(&run.id, TargetParams::default(), "one")
        .await
        .unwrap();
    editor.steer(&run.id, of("a.py::f"), "two").await.unwrap();
    ready.notify_one();
    assert_eq!(event(&mut run).await, said("all: one"));
    assert_eq!(event(&mut run).await, said("a.py::f: two"));
    editor
        .steer(&run.id, TargetParams::default(), "three")
        .await
        .unwrap();
    assert_eq!(event(&mut run).await, said("all: three"));
}

#[tokio::test]
async fn run_cancelled_before_it_opens_never_begins() {
    let folder = folder(&[]);
    let (editor, ready) = listening(&folder).await;
    let mut run = editor.run(task("go")).await.unwrap();
    let early = editor.undo(&run.id, None).await.unwrap_err();
    assert!(
        early.to_string().contains("has changed nothing yet"),
        "{early}"
    );
    editor.cancel(&run.id).await.unwrap();
    let Event::RunFinished {
        stop_reason,
        summary,
        spent,
        ..
    } = event(&mut run).await
    else {
        panic!("not finished");
    };
    assert_eq!(stop_reason, StopReason::Cancelled);
    assert_eq!(summary, "the run was stopped before it began");
    assert_eq!(spent.calls, 0);
    ready.notify_one();
}

#[tokio::test]
async fn ended_run_rejects_user_messages_but_still_exists() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |scene: RunScript| {
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut run = editor.run(task("go")).await.unwrap();
    story(&mut run).await;
    // The server records the end of the run shortly after it sends the event.
    let late = loop {
        match editor.steer(&run.id, TargetParams::default(), "more").await {
            Ok(()) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(late.to_string().contains("has ended"), "{late}");
    editor.cancel(&run.id).await.unwrap();
}

#[tokio::test]
async fn oldest_ended_runs_are_forgotten() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |scene: RunScript| {
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut first = editor.run(task("first")).await.unwrap();
    story(&mut first).await;
    let forgotten = loop {
        let mut run = editor.run(task("more")).await.unwrap();
        story(&mut run).await;
        if let Err(error) = editor.undo(&first.id, None).await {
            break error;
        }
        editor.undo(&run.id, None).await.unwrap();
    };
    let expected = format!("there is no run `{}`", first.id.0);
    assert!(forgotten.to_string().contains(&expected), "{forgotten}");
}
