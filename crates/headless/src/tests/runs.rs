//! Commands and events of runs.

use futures::FutureExt;
use serde_json::{Value, json};

use crate::testing::*;
use crate::{HeadlessError, RunNotification};
use starling_core::{Approval, IntentView, Limits, ProposalView, Verdict};
use starling_server::protocol::TargetParams;
use starling_swarm::{ActorId, Event, ProposalId, RunId, StopReason};

fn proposal(id: u32) -> TargetParams {
    TargetParams {
        proposal: Some(ProposalId(id)),
        ..TargetParams::default()
    }
}

fn intent_of(path: &str) -> TargetParams {
    TargetParams {
        symbol: Some(symbol(path)),
        ..TargetParams::default()
    }
}

fn view(id: u32) -> ProposalView {
    ProposalView {
        id,
        symbol: symbol("a.py::f"),
        symbols: vec![symbol("a.py::f")],
        reason: "because".to_owned(),
        diff: String::new(),
        evidence: String::new(),
        version: None,
    }
}

fn tell(verdict: &Verdict) -> Event {
    said(&serde_json::to_string(verdict).unwrap())
}

#[tokio::test]
async fn events_arrive_in_order_and_are_recorded() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |scene: RunScript| {
        for step in 0..200 {
            scene.log.event(said(&step.to_string()));
        }
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut run = editor.run(task("go")).await.unwrap();
    let mut sequence = Vec::new();
    let mut events = Vec::new();
    loop {
        let RunNotification::Event(params) = note(&mut run).await else {
            panic!("an intent");
        };
        assert_eq!(params.run, run.id);
        sequence.push(params.seq);
        events.push(params.event.clone());
        if matches!(params.event, Event::RunFinished { .. }) {
            break;
        }
    }
    assert_eq!(sequence, (0..201).collect::<Vec<u64>>());
    let path = run.trajectory.clone();
    editor.shutdown().await.unwrap();
    let lines = std::fs::read_to_string(path).unwrap();
    let written: Vec<Event> = lines
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            serde_json::from_value(line["event"].take()).unwrap()
        })
        .collect();
    assert_eq!(written, events);
}

#[tokio::test]
async fn run_parameters_override_the_defaults() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |scene: RunScript| {
        let Limits { calls, tokens, .. } = scene.task.limits;
        scene.log.event(said(&format!(
            "{} {:?} {calls} {tokens}",
            scene.task.text, scene.task.approval
        )));
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut params = task("x");
    params.approve = Some(Approval::Auto);
    params.limits.calls = Some(3);
    let mut run = editor.run(params).await.unwrap();
    assert_eq!(story(&mut run).await, ["x Auto 3 400.0k"]);
}

#[tokio::test]
async fn proposals_can_be_accepted_rejected_and_steered() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |scene: RunScript| {
        for id in 1..=3 {
            scene.log.event(review_asked(id, "a.py::f"));
            let verdict = scene
                .outside
                .approver
                .proposal(view(id))
                .await
                .verdict()
                .unwrap();
            scene.log.event(tell(&verdict));
        }
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut run = editor.run(task("go")).await.unwrap();
    let id = run.id.clone();
    assert!(matches!(event(&mut run).await, Event::ReviewAsked { .. }));
    let early = editor.accept(&id, proposal(2)).await.unwrap_err();
    assert!(
        early.to_string().contains("proposal #2 is not waiting"),
        "{early}"
    );
    editor.accept(&id, proposal(1)).await.unwrap();
    assert_eq!(event(&mut run).await, tell(&Verdict::Accept));
    assert!(matches!(event(&mut run).await, Event::ReviewAsked { .. }));
    editor.reject(&id, proposal(2), "too long").await.unwrap();
    let reason = "too long".to_owned();
    assert_eq!(event(&mut run).await, tell(&Verdict::Reject { reason }));
    assert!(matches!(event(&mut run).await, Event::ReviewAsked { .. }));
    editor.steer(&id, proposal(3), "use a set").await.unwrap();
    let text = "use a set".to_owned();
    assert_eq!(event(&mut run).await, tell(&Verdict::Steer { text }));
    assert_eq!(story(&mut run).await, [""; 0]);
    assert!(editor.accept(&id, proposal(1)).await.is_err());
}

#[tokio::test]
async fn intents_are_reviewed_by_symbol() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |scene: RunScript| {
        for name in ["a.py::f", "a.py::g"] {
            let intent = IntentView {
                symbol: symbol(name),
                intent: "rename it".to_owned(),
                reason: "clearer".to_owned(),
            };
            let verdict = scene.outside.approver.intent(intent).await;
            scene.log.event(tell(&verdict));
        }
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut run = editor.run(task("go")).await.unwrap();
    let id = run.id.clone();
    let RunNotification::Intent(intent) = note(&mut run).await else {
        panic!("no intent");
    };
    assert_eq!(intent.view.symbol, symbol("a.py::f"));
    editor.accept(&id, intent_of("a.py::f")).await.unwrap();
    // The next intent can arrive before the previous event.
    let mut notes = [note(&mut run).await, note(&mut run).await];
    notes.sort_by_key(|note| matches!(note, RunNotification::Intent(_)));
    let [
        RunNotification::Event(first),
        RunNotification::Intent(second),
    ] = notes
    else {
        panic!("{notes:?}");
    };
    assert_eq!(first.event, tell(&Verdict::Accept));
    assert_eq!(second.view.symbol, symbol("a.py::g"));
    editor.steer(&id, intent_of("a.py::g"), "no").await.unwrap();
    let text = "no".to_owned();
    assert_eq!(event(&mut run).await, tell(&Verdict::Steer { text }));
}

#[tokio::test]
async fn agents_can_be_steered_and_runs_cancelled() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |mut scene: RunScript| {
        for _ in 0..2 {
            let (to, text) = scene.steered.recv().await.unwrap();
            let to = to.map_or("all".to_owned(), |symbol| symbol.to_string());
            scene.log.event(said(&format!("{to}: {text}")));
        }
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
    .await;
    let mut run = editor.run(task("go")).await.unwrap();
    let id = run.id.clone();
    // If the run is not open yet, the message is delivered when it opens.
    editor
        .steer(&id, intent_of("a.py::f"), "one")
        .await
        .unwrap();
    editor
        .steer(&id, TargetParams::default(), "two")
        .await
        .unwrap();
    assert_eq!(event(&mut run).await, said("a.py::f: one"));
    assert_eq!(event(&mut run).await, said("all: two"));
    editor.cancel(&id).await.unwrap();
    assert_eq!(event(&mut run).await, finished(StopReason::Cancelled));
    let nobody = editor.cancel(&RunId("x".into())).await.unwrap_err();
    assert_eq!(nobody.to_string(), "there is no run `x`");
}

#[tokio::test]
async fn applied_proposals_can_be_undone_after_the_run_ended() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |scene: RunScript| {
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut run = editor.run(task("go")).await.unwrap();
    let id = run.id.clone();
    story(&mut run).await;
    let one = editor.undo(&id, Some(ProposalId(1))).await.unwrap();
    assert_eq!(one, [ProposalId(1)]);
    let all = editor.undo(&id, None).await.unwrap();
    assert_eq!(all, [ProposalId(2), ProposalId(1)]);
    let unknown = editor.undo(&id, Some(ProposalId(9))).await.unwrap_err();
    let why = "there is no applied proposal #9".to_owned();
    assert_eq!(unknown, HeadlessError::NotUndone(why));
}

#[tokio::test]
async fn run_that_fails_to_start_reports_the_reason() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |_scene: RunScript| panic!("must not start")).await;
    let mut params = task("go");
    params.test = Some("broken".to_owned());
    let mut run = editor.run(params).await.unwrap();
    let Event::RunFinished { stop_reason, .. } = event(&mut run).await else {
        panic!("not finished");
    };
    let error = "no such command".to_owned();
    assert_eq!(stop_reason, StopReason::Failed { error });
}

#[tokio::test]
async fn concurrent_runs_are_independent() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |scene: RunScript| {
        scene.log.event(review_asked(1, "a.py::f"));
        let verdict = scene
            .outside
            .approver
            .proposal(view(1))
            .await
            .verdict()
            .unwrap();
        scene.log.event(Event::ProposalReviewed {
            proposal: ProposalId(1),
            by: ActorId::User,
            verdict,
        });
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut first = editor.run(task("one")).await.unwrap();
    let mut second = editor.run(task("two")).await.unwrap();
    assert!(matches!(event(&mut first).await, Event::ReviewAsked { .. }));
    assert!(matches!(
        event(&mut second).await,
        Event::ReviewAsked { .. }
    ));
    editor.accept(&second.id, proposal(1)).await.unwrap();
    assert!(matches!(
        event(&mut second).await,
        Event::ProposalReviewed { .. }
    ));
    assert!(first.notes.recv().now_or_never().is_none());
    editor.reject(&first.id, proposal(1), "no").await.unwrap();
    let Event::ProposalReviewed { verdict, .. } = event(&mut first).await else {
        panic!("not reviewed");
    };
    assert!(matches!(verdict, Verdict::Reject { .. }));
}

#[tokio::test]
async fn invalid_commands_are_rejected_with_a_reason() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |_scene: RunScript| {}).await;
    let execute = async |command: &str, arguments: Value| {
        let params = json!({"command": command, "arguments": arguments});
        let connection = editor.connection();
        let answer = connection.request("workspace/executeCommand", params).await;
        answer.unwrap_err()
    };
    for (command, arguments, code, text) in [
        ("starling.fly", json!([{}]), -32602, "there is no command"),
        ("starling.run", json!([]), -32602, "exactly one argument"),
        (
            "starling.run",
            json!([{"task": ""}]),
            -32602,
            "`task` is empty",
        ),
        ("starling.run", json!([{"task": 1}]), -32602, "starling.run"),
        (
            "starling.accept",
            json!([{"run": "x"}]),
            -32602,
            "`proposal`",
        ),
        (
            "starling.accept",
            json!([{"run": "x", "proposal": 1}]),
            -32000,
            "there is no run `x`",
        ),
        (
            "starling.undo",
            json!([{"run": "x"}]),
            -32000,
            "there is no run `x`",
        ),
    ] {
        let error = execute(command, arguments).await;
        let crate::RequestError::Refused { code: got, message } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*got, code, "{message}");
        assert!(message.contains(text), "{message}");
    }
}
