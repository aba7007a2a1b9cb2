//! A client sends its own version of a waiting proposal.

use serde_json::{Value, json};

use super::lenses::{client, full, open, project};
use crate::RunStarter;
use crate::samples::{BASE, asked};
use crate::testing::*;
use starling_core::{ProposalView, ReviewAnswer};
use starling_swarm::{Event, ProposalId, StopReason};

const SET: &[(u32, &str)] = &[(1, "a.py::f"), (2, "a.py::g")];

/// Begins the review of a set, logs the texts of the user's version, and begins another review.
fn asking_twice() -> RunStarter {
    scripted(move |scene: RunScript| async move {
        for event in asked(SET) {
            scene.log.event(event);
        }
        let view = |id| ProposalView {
            id,
            symbol: symbol("a.py::g"),
            symbols: vec![symbol("a.py::g")],
            reason: String::new(),
            diff: String::new(),
            evidence: String::new(),
            version: None,
        };
        let ReviewAnswer::Edited(parts) = scene.outside.approver.proposal(view(2)).await else {
            panic!("it was not edited");
        };
        for part in parts {
            scene.log.event(Event::ProposalEdited {
                proposal: ProposalId(part.proposal),
                symbols: Vec::new(),
                diff: part.text.to_string(),
            });
        }
        for event in asked(&SET[1..]) {
            scene.log.event(event);
        }
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

/// Returns a client with a set of proposals that waits for review.
async fn waiting() -> (TestClient, String) {
    let mut client = client(asking_twice(), project());
    client.initialize(full()).await;
    open(&client, BASE);
    let run = super::begin(&client, "x").await;
    next_event(&mut client, "review_asked").await;
    (client, run)
}

async fn next_event(client: &mut TestClient, name: &str) -> Value {
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["event"]["event"] == name {
            return params["event"].clone();
        }
    }
}

async fn edit(client: &TestClient, run: &str, files: Value) -> Result<Value, String> {
    let argument = json!({"run": run, "proposal": 1, "files": files});
    let params = json!({"command": "starling.edit", "arguments": [argument]});
    let reply = client
        .connection
        .request("workspace/executeCommand", params);
    reply.await.map_err(|error| error.to_string())
}

fn file(client: &TestClient, text: &str) -> Value {
    json!([{"uri": client.uri(), "before": BASE, "text": text}])
}

#[tokio::test]
async fn users_edit_is_split_between_the_proposals_of_a_set() {
    let (mut client, run) = waiting().await;
    let of_f = BASE.replace("return 1", "return 10");
    let wanted = of_f.replace("return 3", "return 30");
    let reply = edit(&client, &run, file(&client, &wanted)).await;
    assert_eq!(reply, Ok(Value::Null));
    let state = client.connection.request("starling/state", json!({})).await;
    let state = state.unwrap();
    let first = &state["runs"][0]["proposals"][0];
    assert!(first["state"] != "rejected", "{first}");
    let (first, second) = (
        next_event(&mut client, "proposal_edited").await,
        next_event(&mut client, "proposal_edited").await,
    );
    assert_eq!(
        (&first["proposal"], &first["diff"]),
        (&json!(1), &json!(of_f))
    );
    let of_g = BASE.replace("return 3", "return 30");
    assert_eq!(
        (&second["proposal"], &second["diff"]),
        (&json!(2), &json!(of_g))
    );
    assert_eq!(next_event(&mut client, "review_asked").await["proposal"], 2);
}

#[tokio::test]
async fn invalid_user_edit_is_rejected_with_a_reason_and_the_proposal_keeps_waiting() {
    let (client, run) = waiting().await;
    let why = async |text: &str| edit(&client, &run, file(&client, text)).await.unwrap_err();
    let as_proposed = BASE
        .replace("return 1", "yield 1")
        .replace("return 3", "yield 3");
    assert!(why(&as_proposed).await.contains("accept it as it is"));
    assert!(why(BASE).await.contains("reject it instead"));
    assert!(why("def f(:\n").await.contains("syntax error in line 1"));
    let other = json!([{"uri": "file:///etc/passwd", "before": "", "text": "x"}]);
    let outside = edit(&client, &run, other).await.unwrap_err();
    assert!(outside.contains("lies outside of the project"), "{outside}");
    let none = edit(&client, &run, json!([])).await.unwrap_err();
    assert!(none.contains("`files` is empty"), "{none}");
    // The current text differs from `before` in the line that the user's version changes.
    let stale = BASE.replace("return 1", "return 0");
    let text = stale.replace("return 0", "return 5");
    let files = json!([{"uri": client.uri(), "before": stale, "text": text}]);
    let conflict = edit(&client, &run, files).await.unwrap_err();
    assert!(conflict.contains("changed in the same place"), "{conflict}");
    let state = client.connection.request("starling/state", json!({})).await;
    assert_eq!(
        state.unwrap()["runs"][0]["proposals"][0]["state"],
        "waiting"
    );
    let wanted = BASE.replace("return 1", "return 10");
    assert!(edit(&client, &run, file(&client, &wanted)).await.is_ok());
    let twice = edit(&client, &run, file(&client, &wanted))
        .await
        .unwrap_err();
    assert!(twice.contains("is not waiting"), "{twice}");
}

/// Asks for the review of one proposal, and reports whether it was accepted as it is.
fn asking_once() -> RunStarter {
    scripted(move |scene: RunScript| async move {
        for event in asked(&SET[..1]) {
            scene.log.event(event);
        }
        let view = ProposalView {
            id: 1,
            symbol: symbol("a.py::f"),
            symbols: vec![symbol("a.py::f")],
            reason: String::new(),
            diff: String::new(),
            evidence: String::new(),
            version: None,
        };
        let answer = scene.outside.approver.proposal(view).await;
        let is_edited = matches!(answer, ReviewAnswer::Edited(_));
        scene
            .log
            .event(said(if is_edited { "edited" } else { "as it is" }));
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

#[tokio::test]
async fn answers_of_one_proposal_are_carried_out_in_their_order() {
    for (command, extra) in [
        ("starling.accept", json!({"proposal": 1})),
        ("starling.acceptAll", json!({})),
        ("starling.reject", json!({"proposal": 1, "reason": "no"})),
        ("starling.steer", json!({"proposal": 1, "text": "other"})),
    ] {
        let mut client = client(asking_once(), project());
        client.initialize(full()).await;
        let run = super::begin(&client, "x").await;
        next_event(&mut client, "review_asked").await;
        let wanted = file(&client, &BASE.replace("return 1", "return 10"));
        let mut argument = json!({"run": run});
        let fields = argument.as_object_mut().unwrap();
        fields.extend(extra.as_object().unwrap().clone());
        let params = json!({"command": command, "arguments": [argument]});
        let connection = &client.connection;
        // The request is sent when its future is polled for the first time.
        let next = async { connection.request("workspace/executeCommand", params).await };
        let (edited, next) = tokio::join!(biased; edit(&client, &run, wanted), next);
        assert_eq!(edited, Ok(Value::Null), "{command}");
        match next {
            Ok(reply) => assert_eq!(reply, json!({"accepted": []}), "{command}"),
            Err(error) => assert!(error.to_string().contains("is not waiting"), "{error}"),
        }
        assert_eq!(super::late::told(&mut client).await, "edited", "{command}");
    }
}

#[tokio::test(start_paused = true)]
async fn buffer_that_begins_with_a_private_key_is_not_read() {
    use super::late::{editing, told};
    let mut client = super::lenses::client(editing("a.py"), super::lenses::project());
    client.initialize(super::lenses::full()).await;
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{}", crate::samples::BASE);
    super::lenses::open(&client, &key);
    super::begin(&client, "x").await;
    let told = told(&mut client).await;
    assert_eq!(
        told,
        "not read: a.py: it holds a private key; files that hold secrets are never read"
    );
}
