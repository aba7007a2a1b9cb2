//! An answer to a review is for what was shown: if another version waits by now, it does nothing.

use serde_json::{Value, json};

use super::lenses::{client, full, open, project};
use super::restart::{event_of, state_of};
use crate::RunStarter;
use crate::samples::{BASE, asked};
use crate::testing::*;
use starling_core::{ProposalView, ReviewAnswer};
use starling_swarm::{Event, ProposalId, StopReason};

fn view(id: u32, version: u64) -> ProposalView {
    ProposalView {
        id,
        symbol: symbol("a.py::f"),
        symbols: vec![symbol("a.py::f")],
        reason: String::new(),
        diff: String::new(),
        evidence: String::new(),
        version: Some(version),
    }
}

/// Logs a review and returns the number of the event that asks for it.
fn ask(scene: &RunScript, proposals: &[(u32, &str)]) -> u64 {
    let numbered = asked(proposals).into_iter();
    let numbers: Vec<u64> = numbered.map(|event| scene.log.numbered(event)).collect();
    *numbers.last().unwrap()
}

/// A run that asks for a review of a proposal, and again after each edit. It logs the verdict.
fn asking() -> RunStarter {
    scripted(async |scene: RunScript| {
        loop {
            let version = ask(&scene, &[(1, "a.py::f")]);
            let answer = scene.outside.approver.proposal(view(1, version)).await;
            if let ReviewAnswer::Verdict(verdict) = answer {
                scene.log.event(said(&format!("{verdict:?}")));
                break;
            }
        }
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

/// Returns a client with a proposal that was asked about twice, and the run. The server shows the
/// question about the first version, whose id is returned too.
async fn edited_during_question(capabilities: Value) -> (TestClient, String, Value) {
    let mut client = client(asking(), project());
    client.initialize_as(capabilities).await;
    open(&client, BASE);
    let run = super::begin(&client, "x").await;
    until_waiting(&client).await;
    let about = json!({"run": run, "proposal": 1});
    client.execute("starling.review", about).await;
    let (id, _) = client.next_of("window/showMessageRequest").await;
    edit(&client, &run).await;
    (client, run, id)
}

async fn edit(client: &TestClient, run: &str) {
    let before = state_of(client).await[0]["proposals"][0]["version"].clone();
    let text = BASE.replace("return 1", "return 10");
    let files = json!([{"uri": client.uri(), "before": BASE, "text": text}]);
    let about = json!({"run": run, "proposal": 1, "version": before, "files": files});
    client.execute("starling.edit", about).await;
    loop {
        let proposal = state_of(client).await[0]["proposals"][0].clone();
        if proposal["state"] == "waiting" && proposal["version"] != before {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn until_waiting(client: &TestClient) {
    while state_of(client).await[0]["proposals"][0]["state"] != "waiting" {
        tokio::task::yield_now().await;
    }
}

fn asks() -> Value {
    json!({"window": {"showMessage": {}}, "textDocument": {"codeLens": {}}})
}

const CHANGED: &str =
    "proposal #1 changed since it was shown to you, so your answer did nothing: look at it again";

#[tokio::test]
async fn answer_to_an_old_question_does_nothing_and_the_new_version_is_asked_about() {
    for button in ["Accept", "Reject"] {
        let (mut client, _, id) = edited_during_question(asks()).await;
        client.connection.reply(id, Ok(json!({"title": button})));
        let (id, mut question) = client.next_of("window/showMessageRequest").await;
        if button == "Reject" {
            let expected = format!("Starling: {CHANGED}. Starling #1 for a.py::f: reason 1");
            assert_eq!(question["message"], expected);
        } else {
            assert!(question["message"].as_str().unwrap().contains(CHANGED));
        }
        let proposal = state_of(&client).await[0]["proposals"][0].clone();
        assert_eq!(proposal["state"], "waiting");
        client.connection.reply(id, Ok(json!({"title": button})));
        if button == "Reject" {
            let reasons;
            (reasons, question) = client.next_of("window/showMessageRequest").await;
            assert_eq!(question["message"], "Starling: why do you reject it?");
            let reason = json!({"title": "It is not needed"});
            client.connection.reply(reasons, Ok(reason));
        }
        while state_of(&client).await[0]["proposals"][0]["state"] == "waiting" {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn answer_to_an_old_question_for_a_reason_does_nothing() {
    let mut client = client(asking(), project());
    client.initialize_as(asks()).await;
    open(&client, BASE);
    let run = super::begin(&client, "x").await;
    until_waiting(&client).await;
    let about = json!({"run": run, "proposal": 1});
    client.execute("starling.reject", about).await;
    let (id, _) = client.next_of("window/showMessageRequest").await;
    edit(&client, &run).await;
    let reason = json!({"title": "It is not needed"});
    client.connection.reply(id, Ok(reason));
    let (_, question) = client.next_of("window/showMessageRequest").await;
    assert!(question["message"].as_str().unwrap().contains(CHANGED));
    until_waiting(&client).await;
}

#[tokio::test]
async fn command_for_an_old_version_is_refused_and_the_new_version_is_shown() {
    let (mut client, run, _) = edited_during_question(asks()).await;
    let version = state_of(&client).await[0]["proposals"][0]["version"].clone();
    let old = version.as_u64().unwrap() - 1;
    let about = |version: &Value| json!({"run": run, "proposal": 1, "version": version, "text": "t", "reason": "r"});
    for command in ["starling.accept", "starling.reject", "starling.steer"] {
        let why = super::refusal(&client, command, about(&json!(old))).await;
        assert!(why.contains(CHANGED), "{command}: {why}");
        let (_, question) = client.next_of("window/showMessageRequest").await;
        assert!(question["message"].as_str().unwrap().contains(CHANGED));
    }
    let files = json!([{"uri": client.uri(), "before": BASE, "text": "x = 1\n"}]);
    let edit = json!({"run": run, "proposal": 1, "version": old, "files": files});
    let why = super::refusal(&client, "starling.edit", edit).await;
    assert!(why.contains(CHANGED), "{why}");
    client.execute("starling.accept", about(&version)).await;
}

/// A run that asks about proposal 1, and asks about it again together with proposal 2.
fn growing() -> RunStarter {
    scripted(async |mut scene: RunScript| {
        let version = ask(&scene, &[(1, "a.py::f")]);
        tokio::select! {
            _ = scene.outside.approver.proposal(view(1, version)) => panic!("it was answered"),
            _ = scene.steered.recv() => {}
        }
        let version = ask(&scene, &[(2, "a.py::g"), (1, "a.py::f")]);
        let answer = scene.outside.approver.proposal(view(1, version)).await;
        scene.log.event(Event::ProposalReviewed {
            proposal: ProposalId(1),
            by: starling_swarm::ActorId::User,
            verdict: answer.verdict().unwrap(),
        });
    })
}

#[tokio::test]
async fn answer_about_one_proposal_does_not_accept_a_set_that_it_became_part_of() {
    let mut client = client(growing(), project());
    client.initialize(full()).await;
    open(&client, BASE);
    let run = super::begin(&client, "x").await;
    let first = event_of(&mut client, "review_asked").await;
    client
        .execute("starling.steer", json!({"run": run, "text": "go"}))
        .await;
    let second = event_of(&mut client, "review_asked").await;
    let about = |asked: &Value| json!({"run": run, "proposal": 1, "version": asked["seq"]});
    let why = super::refusal(&client, "starling.accept", about(&first)).await;
    assert!(why.contains(CHANGED), "{why}");
    client.execute("starling.accept", about(&second)).await;
    event_of(&mut client, "proposal_reviewed").await;
}
