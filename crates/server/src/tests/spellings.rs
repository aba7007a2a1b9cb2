//! Documents whose URIs are not spelled as the server spells them.

use serde_json::json;

use super::begin;
use super::late::{edited, editing, told};
use super::lenses::{client, full, project};
use crate::samples::BASE;
use crate::testing::*;

/// Returns URIs that a client may use for `a.py`, each spelled differently from the server's URI.
fn spellings(client: &TestClient) -> Vec<String> {
    let uri = client.uri();
    let folder = uri.as_str().unwrap().strip_prefix("file://").unwrap();
    let folder = folder.strip_suffix("/a.py").unwrap();
    vec![
        format!("file://localhost{folder}/a.py"),
        format!("file://LOCALHOST{folder}/a.py"),
        format!("FILE://{folder}/a.py"),
        format!("file:{folder}/a.py"),
        format!("file://{folder}/./a.py"),
        format!("file://{folder}/sub/../a.py"),
        format!("file://{folder}/sub/%2e%2E/a.py"),
        format!("file://{folder}//a.py"),
        format!("file://{folder}/%61%2epy"),
    ]
}

#[tokio::test]
async fn edit_of_an_open_document_uses_the_clients_spelling_of_its_uri() {
    for at in 0..spellings(&TestClient::new(editing("a.py"))).len() {
        let mut client = client(editing("a.py"), project());
        client.initialize(full()).await;
        let uri = spellings(&client).remove(at);
        let unsaved = format!("# unsaved\n{BASE}");
        let document = json!({"uri": uri, "languageId": "python", "version": 1, "text": unsaved});
        let opened = json!({ "textDocument": document });
        client.connection.notify("textDocument/didOpen", opened);
        begin(&client, "x").await;
        let (id, params) = client.next_of("workspace/applyEdit").await;
        let edit = &params["edit"]["documentChanges"][0];
        assert_eq!(edit["textDocument"], json!({"uri": uri, "version": 1}));
        let text = edited(&unsaved, &params);
        let change = json!({
            "textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": text}],
        });
        client.connection.notify("textDocument/didChange", change);
        client.connection.reply(id, Ok(json!({"applied": true})));
        assert_eq!(told(&mut client).await, format!("applied: {text}"), "{uri}");
        let on_disk = std::fs::read_to_string(client.folder.path().join("a.py")).unwrap();
        assert_eq!(on_disk, BASE);
        // After the document is closed, an edit of the file has the server's own spelling of the
        // URI again.
        let closed = json!({"textDocument": {"uri": uri}});
        client.connection.notify("textDocument/didClose", closed);
        begin(&client, "y").await;
        let (_, params) = client.next_of("workspace/applyEdit").await;
        let edit = &params["edit"]["documentChanges"][0];
        let usual = json!({"uri": client.uri(), "version": null});
        assert_eq!(edit["textDocument"], usual);
    }
}
