//! Files that change on disk: saved, reverted, renamed, deleted, or on another branch.

use serde_json::{Value, json};

use super::lenses::{client, full, open, project, proposing};
use crate::samples::BASE;
use crate::testing::TestClient;

const ONE: &[(u32, &str)] = &[(1, "a.py::f")];

/// Returns a client with a waiting proposal for `a.py`, which is not open.
async fn waiting() -> (TestClient, Value) {
    let mut client = client(proposing(ONE), project());
    client.initialize(full()).await;
    let run = super::begin(&client, "x").await;
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["event"]["event"] == "review_asked" {
            return (client, json!({"run": run, "proposal": 1}));
        }
    }
}

async fn file_of(client: &TestClient, proposal: &Value) -> Value {
    let request = client
        .connection
        .request("starling/proposal", proposal.clone());
    request.await.unwrap()["files"][0].clone()
}

/// Reports a change on disk, and waits until the proposal's conflict is as wanted.
async fn until_conflict(client: &TestClient, wanted: impl Fn(Option<&str>) -> bool) {
    let changes = json!({"changes": [{"uri": client.uri(), "type": 2}]});
    client
        .connection
        .notify("workspace/didChangeWatchedFiles", changes);
    loop {
        let state = client
            .connection
            .request("starling/state", Value::Null)
            .await
            .unwrap();
        if wanted(state["runs"][0]["proposals"][0]["conflict"].as_str()) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn waiting_proposal_is_rebased_over_changes_on_disk() {
    let (client, proposal) = waiting().await;
    let path = client.folder.path().join("a.py");
    // A change elsewhere in the file moves the proposal.
    std::fs::write(&path, format!("# another branch\n{BASE}")).unwrap();
    let file = file_of(&client, &proposal).await;
    assert!(
        file["after"]
            .as_str()
            .unwrap()
            .starts_with("# another branch\ndef f():\n    yield 1\n")
    );
    // A change of the same line is a conflict.
    std::fs::write(&path, BASE.replace("return 1", "return 100")).unwrap();
    until_conflict(&client, |why| why == Some("both sides changed line 2")).await;
    let file = file_of(&client, &proposal).await;
    assert_eq!(file["after"], Value::Null);
    // When the change on disk is reverted, the conflict disappears.
    std::fs::write(&path, BASE).unwrap();
    until_conflict(&client, |why| why.is_none()).await;
    let file = file_of(&client, &proposal).await;
    assert_eq!(file["after"], BASE.replacen("return", "yield", 1));
}

#[tokio::test]
async fn proposal_for_a_deleted_or_renamed_file_has_a_conflict() {
    let (client, proposal) = waiting().await;
    let path = client.folder.path().join("a.py");
    std::fs::rename(&path, client.folder.path().join("b.py")).unwrap();
    let gone = "a.py is gone: it was deleted or renamed since the change was made; put the file back, \
                or reject #1";
    until_conflict(&client, |why| why == Some(gone)).await;
    assert_eq!(file_of(&client, &proposal).await["after"], Value::Null);
}

#[tokio::test]
async fn open_buffer_takes_precedence_over_the_disk_until_it_is_closed() {
    let (client, proposal) = waiting().await;
    open(&client, &BASE.replace("return 1", "return 100"));
    let file = file_of(&client, &proposal).await;
    assert!(
        file["conflict"].is_string(),
        "the buffer counts, saved or not: {file}"
    );
    // The editor closes the document without saving it.
    let closed = json!({"textDocument": {"uri": client.uri()}});
    client.connection.notify("textDocument/didClose", closed);
    let file = file_of(&client, &proposal).await;
    assert_eq!(file["after"], BASE.replacen("return", "yield", 1));
    assert_eq!(file["version"], Value::Null);
}

#[tokio::test]
async fn state_request_accepts_absent_null_and_empty_parameters() {
    let (client, _) = waiting().await;
    for nothing in [Value::Null, json!({}), json!([])] {
        let state = client
            .connection
            .request("starling/state", nothing)
            .await
            .unwrap();
        assert_eq!(state["runs"].as_array().unwrap().len(), 1, "{state}");
    }
}
