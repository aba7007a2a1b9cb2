//! Documents with the path of a file that are not the file: the left side of a diff, an unsaved
//! buffer, a notebook cell.

use serde_json::{Value, json};

use super::begin;
use super::late::{editing, told};
use super::lenses::{client, full, open, project, reviewing};
use crate::samples::BASE;
use crate::testing::*;
use starling_swarm::StopReason;

/// Returns URIs that contain the path of `a.py` but do not refer to the file itself.
fn others(client: &TestClient) -> Vec<Value> {
    let uri = client.uri();
    let uri = uri.as_str().unwrap();
    let path = uri.strip_prefix("file://").unwrap();
    let others = [
        format!("git:{path}?%7B%22ref%22%3A%22~%22%7D"),
        format!("untitled:{path}"),
        format!("vscode-notebook-cell:{path}#W0sZ"),
        format!("{uri}?diff"),
        format!("{uri}#cell"),
    ];
    others.map(Value::from).to_vec()
}

fn open_other(client: &TestClient, uri: &Value) {
    let document = json!({"uri": uri, "languageId": "python", "version": 9, "text": "other = 1\n"});
    let opened = json!({ "textDocument": document });
    client.connection.notify("textDocument/didOpen", opened);
}

fn change_other(client: &TestClient, uri: &Value) {
    let change = json!({
        "textDocument": {"uri": uri, "version": 10}, "contentChanges": [{"text": "other = 2\n"}],
    });
    client.connection.notify("textDocument/didChange", change);
}

fn close_other(client: &TestClient, uri: &Value) {
    let closed = json!({"textDocument": {"uri": uri}});
    client.connection.notify("textDocument/didClose", closed);
}

#[tokio::test]
async fn uri_of_another_scheme_does_not_replace_the_buffer_of_a_file() {
    let unsaved = format!("# unsaved\n{BASE}");
    let steps: [fn(&TestClient, &Value); 3] = [open_other, change_other, close_other];
    for count in 1..=steps.len() {
        let mut client = client(editing("a.py"), project());
        client.initialize(full()).await;
        open(&client, &unsaved);
        for uri in others(&client) {
            steps[..count].iter().for_each(|step| step(&client, &uri));
        }
        begin(&client, "x").await;
        let (_, params) = client.next_of("workspace/applyEdit").await;
        let edit = &params["edit"]["documentChanges"][0];
        let document = json!({"uri": client.uri(), "version": 1});
        assert_eq!(edit["textDocument"], document, "after {count} steps");
        assert_eq!(edit["edits"][0]["range"]["start"]["line"], 2);
    }
}

#[tokio::test]
async fn uri_of_another_scheme_does_not_open_or_hide_a_file() {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    for uri in others(&client) {
        open_other(&client, &uri);
        change_other(&client, &uri);
    }
    begin(&client, "x").await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let edit = &params["edit"]["documentChanges"][0];
    let document = json!({"uri": client.uri(), "version": null});
    assert_eq!(edit["textDocument"], document);
    let after = BASE.replace("return 1", "yield 1");
    std::fs::write(client.folder.path().join("a.py"), &after).unwrap();
    client.connection.reply(id, Ok(json!({"applied": true})));
    assert_eq!(told(&mut client).await, format!("applied: {after}"));
}

#[tokio::test]
async fn text_of_a_uri_of_another_scheme_is_not_shown_to_models() {
    let start = scripted(async |scene: RunScript| {
        let texts = scene.outside.editor.open_texts().await.unwrap();
        scene.log.event(said(&format!("{texts:?}")));
        scene.log.event(finished(StopReason::Settled));
    });
    let mut client = client(start, folder(&[]));
    client.initialize(full()).await;
    for uri in others(&client) {
        open_other(&client, &uri);
    }
    begin(&client, "x").await;
    assert_eq!(told(&mut client).await, "[]");
}

#[tokio::test]
async fn requests_for_a_uri_of_another_scheme_return_nothing() {
    let (client, _) = reviewing(&[(1, "a.py::f")], full()).await;
    for uri in others(&client) {
        open_other(&client, &uri);
        let document = json!({"uri": uri});
        let at = json!({"line": 0, "character": 0});
        let range = json!({"start": at, "end": at});
        for (method, params) in [
            ("textDocument/codeLens", json!({"textDocument": document})),
            (
                "textDocument/hover",
                json!({"textDocument": document, "position": at}),
            ),
            (
                "textDocument/codeAction",
                json!({"textDocument": document, "range": range, "context": {"diagnostics": []}}),
            ),
        ] {
            let answer = client.connection.request(method, params).await.unwrap();
            assert_eq!(answer, Value::Null, "{method} {uri}");
        }
    }
}
