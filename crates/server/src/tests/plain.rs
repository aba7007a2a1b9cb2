//! A client without a Starling plugin uses standard LSP: messages, documents, code actions, lenses,
//! and questions if it shows them.

use serde_json::{Value, json};

use super::lenses::{client, open, project, proposing, reviewing};
use crate::samples::BASE;
use crate::testing::*;
use starling_core::{IntentView, Verdict};
use starling_rpc::Incoming;
use starling_swarm::{ActorId, Event, ProposalId, StopReason};

fn window() -> Value {
    json!({"window": {"showDocument": {"support": true}, "showMessage": {}}})
}

/// The capabilities of lsp-mode, as far as the server uses them.
fn lsp_mode() -> Value {
    json!({
        "workspace": {
            "codeLens": {"refreshSupport": true},
            "workspaceEdit": {"documentChanges": true},
        },
        "window": {"showMessage": null, "showDocument": null},
    })
}

/// Waits until the state of the first run satisfies `so`.
async fn until_state(client: &TestClient, so: impl Fn(&Value) -> bool) -> Value {
    loop {
        let state = client.connection.request("starling/state", Value::Null);
        let run = state.await.unwrap()["runs"][0].take();
        if so(&run) {
            return run;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Returns a client without a plugin with one waiting proposal.
async fn waiting(capabilities: Value) -> (TestClient, String) {
    let client = client(proposing(&[(1, "a.py::f")]), project());
    client.initialize_as(capabilities).await;
    open(&client, BASE);
    let run = super::begin(&client, "x").await;
    until_state(&client, |run| run["proposals"][0]["state"] == "waiting").await;
    (client, run)
}

/// Waits until the server has sent the messages that follow a reply to a command.
async fn quiet() {
    tokio::time::sleep(4 * crate::outgoing::AFTER_ANSWER).await;
}

async fn actions(client: &TestClient) -> Vec<Value> {
    let at = json!({"line": 0, "character": 5});
    let params = json!({
        "textDocument": {"uri": client.uri()}, "range": {"start": at, "end": at},
        "context": {"diagnostics": []},
    });
    let found = client.connection.request("textDocument/codeAction", params);
    found.await.unwrap().as_array().unwrap().clone()
}

async fn act(client: &TestClient, title: &str) {
    let actions = actions(client).await;
    let titles: Vec<&Value> = actions.iter().map(|one| &one["title"]).collect();
    let wanted = actions
        .iter()
        .find(|one| one["title"].as_str().unwrap().starts_with(title));
    let command = &wanted.unwrap_or_else(|| panic!("{title} is not in {titles:?}"))["command"];
    let name = command["command"].as_str().unwrap();
    client.execute(name, command["arguments"][0].clone()).await;
}

/// Returns all messages of the server so far. Fails if one of them is a question or not standard
/// LSP.
fn heard(client: &mut TestClient) -> Vec<(String, Value)> {
    let mut heard = Vec::new();
    while let Ok(message) = client.incoming.try_recv() {
        let (method, params) = match message {
            Incoming::Request { method, params, .. } => (method, params),
            Incoming::Notification { method, params } => (method, params),
        };
        assert!(!method.starts_with("starling/"), "{method} {params}");
        assert_ne!(method, "window/showMessageRequest", "{params}");
        assert_ne!(method, "window/showDocument", "{params}");
        heard.push((method, params));
    }
    heard
}

fn messages(heard: &[(String, Value)]) -> Vec<&str> {
    let said = heard
        .iter()
        .filter(|(method, _)| method == "window/showMessage");
    said.map(|(_, params)| params["message"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn client_without_lenses_can_review_with_code_actions() {
    let (mut client, run) = waiting(json!({})).await;
    act(&client, "Reject: It changes too much (Starling #1").await;
    until_state(&client, |run| run["proposals"][0]["state"] == "rejected").await;
    quiet().await;
    let heard = heard(&mut client);
    assert_eq!(
        messages(&heard),
        ["Starling #1 waits at a.py::f: code actions decide"]
    );
    let events = json!({"run": run});
    let events = client.connection.request("starling/events", events).await;
    assert!(events.unwrap().to_string().contains("It changes too much"));
}

#[tokio::test]
async fn lsp_mode_receives_only_lenses_and_standard_messages() {
    let (mut client, run) = waiting(lsp_mode()).await;
    let params = json!({"textDocument": {"uri": client.uri()}});
    let lenses = client.connection.request("textDocument/codeLens", params);
    assert_eq!(lenses.await.unwrap()[0]["command"]["title"], "Accept");
    // The lens contains no reason, and this client cannot show a question to ask for one.
    let about = json!({"run": run, "proposal": 1});
    client.execute("starling.review", about.clone()).await;
    client.execute("starling.reject", about).await;
    until_state(&client, |run| run["proposals"][0]["state"] == "rejected").await;
    client.execute("starling.cancel", json!({"run": run})).await;
    until_state(&client, |run| run["stage"] == "ended").await;
    quiet().await;
    let heard = heard(&mut client);
    let said = messages(&heard);
    assert!(said.iter().any(|text| text.contains("+    yield 1")));
    assert!(
        heard.iter().all(
            |(method, _)| ["window/showMessage", "workspace/codeLens/refresh"]
                .contains(&method.as_str())
        ),
        "{heard:?}"
    );
}

#[tokio::test]
async fn end_of_a_run_is_shown_as_a_message() {
    let start = scripted(async |scene: RunScript| scene.log.event(finished(StopReason::Settled)));
    let mut client = client(start, project());
    client.initialize_as(json!({})).await;
    super::begin(&client, "x").await;
    let (_, told) = client.next_of("window/showMessage").await;
    let text = told["message"].as_str().unwrap();
    assert!(text.starts_with("Starling: ") && text.len() > 12, "{text}");
}

#[tokio::test]
async fn intent_can_be_answered_with_a_code_action() {
    let start = scripted(async |scene: RunScript| {
        let view = IntentView {
            symbol: symbol("a.py::f"),
            intent: "returns 2".to_owned(),
            reason: "as asked".to_owned(),
        };
        let verdict = scene.outside.approver.intent(view).await;
        assert_eq!(verdict, Verdict::Accept);
        scene.log.event(finished(StopReason::Settled));
    });
    let mut client = client(start, project());
    client.initialize_as(json!({})).await;
    open(&client, BASE);
    super::begin(&client, "x").await;
    let (_, told) = client.next_of("window/showMessage").await;
    let text =
        "Starling: a.py::f asks for approval before it begins; answer with a code action there";
    assert_eq!(told["message"], text);
    act(&client, "Go ahead (Starling asks: returns 2)").await;
    until_state(&client, |run| run["stage"] == "ended").await;
    heard(&mut client);
}

async fn opened(client: &mut TestClient) -> (Value, String, String) {
    let (id, params) = client.next_of("window/showDocument").await;
    let uri: tower_lsp::lsp_types::Url = serde_json::from_value(params["uri"].clone()).unwrap();
    let path = uri.to_file_path().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    (id, path.display().to_string(), text)
}

#[tokio::test]
async fn review_command_shows_the_diff_and_a_question() {
    let (mut client, run) = reviewing(&[(1, "a.py::f")], window()).await;
    let about = json!({"run": run, "proposal": 1});
    client.execute("starling.review", about).await;
    // Both requests are sent at the same time, in any order.
    let (mut document, mut question) = (None, None);
    while document.is_none() || question.is_none() {
        match client.next().await {
            Incoming::Request { id, method, params } => match method.as_str() {
                "window/showDocument" => document = Some((id, params)),
                "window/showMessageRequest" => question = Some((id, params)),
                other => panic!("asked for {other}"),
            },
            Incoming::Notification { .. } => {}
        }
    }
    let (id, document) = document.unwrap();
    assert!(document["uri"].as_str().unwrap().ends_with("-1.diff"));
    client.connection.reply(id, Ok(json!({"success": true})));
    let (id, question) = question.unwrap();
    assert_eq!(question["message"], "Starling #1 for a.py::f: reason 1");
    client.connection.reply(id, Ok(json!({"title": "Reject"})));
    let (id, why) = client.next_of("window/showMessageRequest").await;
    assert_eq!(why["actions"].as_array().unwrap().len(), 3);
    client
        .connection
        .reply(id, Ok(json!({"title": "It changes too much"})));
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["event"]["event"] == "steered" {
            assert_eq!(params["event"]["text"], "It changes too much");
            break;
        }
    }
}

#[tokio::test]
async fn diff_and_reason_are_opened_as_documents() {
    let mut capabilities = window();
    capabilities["textDocument"] = json!({"codeLens": {}});
    let (mut client, run) = reviewing(&[(1, "a.py::f")], capabilities).await;
    let about = json!({"run": run, "proposal": 1});
    client.execute("starling.diff", about.clone()).await;
    let (id, path, text) = opened(&mut client).await;
    assert!(text.contains("-    return 1\n+    yield 1\n"), "{text}");
    client.connection.reply(id, Ok(json!({"success": true})));
    client.execute("starling.why", about).await;
    let (id, _, text) = opened(&mut client).await;
    assert!(
        text.contains("reason 1") && text.contains("tests: unknown"),
        "{text}"
    );
    // If the document is not opened, the text is shown as a message.
    client.connection.reply(id, Ok(json!({"success": false})));
    let (_, said) = client.next_of("window/showMessage").await;
    assert!(said["message"].as_str().unwrap().contains("reason 1"));
    for (command, proposal) in [
        ("starling.diff", 2),
        ("starling.why", 2),
        ("starling.review", 2),
    ] {
        let about = json!({"run": run, "proposal": proposal});
        let said = super::refusal(&client, command, about).await;
        assert!(said.contains("has no proposal #2"), "{said}");
    }
    client.connection.notify("exit", Value::Null);
    client.ended().await;
    assert!(
        !std::path::Path::new(&path).exists(),
        "what was shown is removed"
    );
}

#[tokio::test]
async fn postponed_review_keeps_waiting() {
    let mut capabilities = window();
    capabilities["textDocument"] = json!({"codeLens": {}});
    let (mut client, run) = reviewing(&[(1, "a.py::f")], capabilities).await;
    let about = json!({"run": run, "proposal": 1});
    client.execute("starling.review", about.clone()).await;
    let (id, _) = client.next_of("window/showMessageRequest").await;
    client.connection.reply(id, Ok(Value::Null));
    client.execute("starling.review", about.clone()).await;
    let (id, _) = client.next_of("window/showMessageRequest").await;
    client.connection.reply(id, Ok(json!({"title": "Accept"})));
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["event"]["event"] == "proposal_reviewed" {
            assert_eq!(params["event"]["verdict"]["verdict"], "accept");
            break;
        }
    }
    let said = super::refusal(&client, "starling.review", about).await;
    assert!(said.contains("is not waiting for an answer"), "{said}");
}

#[tokio::test]
async fn client_without_edit_support_gets_a_message_with_the_path_of_a_patch() {
    let no_edits = json!({"workspace": {
        "applyEdit": false, "workspaceEdit": {"documentChanges": true},
    }});
    let with_plugin = json!({"experimental": {"starling": {}}});
    for capabilities in [json!({}), no_edits, with_plugin] {
        let start = scripted(async |scene: RunScript| {
            let made = Event::ProposalMade {
                proposal: ProposalId(1),
                agent: ActorId::Agent(symbol("a.py::f")),
                symbols: vec![symbol("a.py::f")],
                reason: "because".to_owned(),
                diff: "-a\n+b\n".to_owned(),
                revises: None,
            };
            scene.log.event(made);
            scene.log.event(review_asked(1, "a.py::f"));
            scene.log.event(Event::ProposalNotApplied {
                proposal: ProposalId(1),
                why: "refused".to_owned(),
            });
            scene.log.event(review_asked(1, "a.py::f"));
            scene.cancel.cancelled().await;
            scene.log.event(finished(StopReason::Cancelled));
        });
        let mut client = client(start, project());
        client.initialize_as(capabilities).await;
        let run = super::begin(&client, "x").await;
        let path = client.folder.path().join(".trajectories");
        let path = path.join(format!("{run}.1.patch"));
        let path = path.to_str().unwrap();
        let mut said = Vec::new();
        while !said
            .iter()
            .any(|text: &String| text.contains("#1 was not applied"))
        {
            let (_, told) = client.next_of("window/showMessage").await;
            said.push(told["message"].as_str().unwrap().to_owned());
        }
        let told = said.last().unwrap();
        assert!(told.contains("does not support versioned edits"), "{told}");
        assert!(told.contains(&format!("git apply {path}")), "{told}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "-a\n+b\n");
        client.execute("starling.cancel", json!({"run": run})).await;
        let (_, end) = client.next_of("window/showMessage").await;
        let end = end["message"].as_str().unwrap();
        assert!(end.starts_with("Starling: over; this editor"), "{end}");
        assert!(end.contains(path), "{end}");
    }
}
