//! A client that knows nothing of Starling works by windows.

use serde_json::{Value, json};

use super::lenses::{client, open, project, proposing, reviewing};
use crate::headless::Incoming;
use crate::headless::testing::*;
use crate::server::testing::BASE;

fn windows() -> Value {
    json!({"window": {"showDocument": {"support": true}}, "experimental": null})
}

async fn opened(client: &mut Client) -> (Value, String, String) {
    let (id, params) = client.next_of("window/showDocument").await;
    let uri: tower_lsp::lsp_types::Url = serde_json::from_value(params["uri"].clone()).unwrap();
    let path = uri.to_file_path().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    (id, path.display().to_string(), text)
}

/// With a plugin that brings no commands: what is asked of it comes as windows.
fn with_plugin() -> Value {
    let mut capabilities = windows();
    capabilities["textDocument"] = json!({"codeLens": {}});
    capabilities["experimental"] = json!({"starling": {}});
    capabilities
}

#[tokio::test]
async fn a_client_without_a_plugin_is_told_by_a_message_and_never_asked() {
    let mut client = client(proposing(&[(1, "a.py::f")]), project());
    client.initialize(windows()).await;
    open(&client, BASE);
    let run = super::begin(&client, "x").await;
    let told = loop {
        match client.next().await {
            Incoming::Notification { method, params } => {
                assert!(!method.starts_with("starling/"), "{method}");
                if method == "window/showMessage" {
                    break params["message"].as_str().unwrap().to_owned();
                }
            }
            Incoming::Request { method, .. } => panic!("asked for {method}"),
        }
    };
    let expected = "Starling #1 for a.py::f: reason 1. To accept it, to reject it or to see its diff, take \
                    a code action there.";
    assert_eq!(told, expected);
    // A command asks: its user is there.
    let about = json!({"run": run, "proposal": 1});
    client.execute("starling.review", about).await;
    let (mut document, mut question) = (None, None);
    while document.is_none() || question.is_none() {
        match client.next().await {
            Incoming::Request { id, method, params } => match method.as_str() {
                "window/showDocument" => document = Some((id, params)),
                "window/showMessageRequest" => question = Some((id, params)),
                other => panic!("asked for {other}"),
            },
            Incoming::Notification { method, .. } => {
                assert!(!method.starts_with("starling/"), "{method}");
            }
        }
    }
    let (id, document) = document.unwrap();
    assert!(document["uri"].as_str().unwrap().ends_with("-1.diff"));
    client.connection.reply(id, Ok(json!({"success": true})));
    let (_, question) = question.unwrap();
    assert_eq!(question["message"], "Starling #1 for a.py::f: reason 1");
}

#[tokio::test]
async fn a_review_by_a_command_is_a_choice_with_a_reason() {
    let (mut client, run) = reviewing(&[(1, "a.py::f")], with_plugin()).await;
    let about = json!({"run": run, "proposal": 1});
    client.execute("starling.review", about).await;
    let (id, _) = client.next_of("window/showMessageRequest").await;
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
    let (mut client, run) = reviewing(&[(1, "a.py::f")], with_plugin()).await;
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
    // Where it is not opened, it is said.
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
async fn a_review_that_is_put_off_stays() {
    let (mut client, run) = reviewing(&[(1, "a.py::f")], with_plugin()).await;
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
    assert!(said.contains("does not wait for an answer"), "{said}");
}
