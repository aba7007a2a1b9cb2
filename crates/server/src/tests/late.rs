//! Edits that the editor makes after they were given up, and files that are open under another name.

use std::path::Path;

use serde_json::{Value, json};

use super::begin;
use super::lenses::{client, full, open, project};
use crate::Starter;
use crate::samples::BASE;
use crate::testing::*;
use starling_core::{Effect, FileEdit};
use starling_swarm::StopReason;
use starling_text::ChangeSet;

fn after() -> String {
    BASE.replace("return 1", "yield 1")
}

/// Makes one edit of a file, and says what became of it.
pub(super) fn editing(path: &'static str) -> Starter {
    scripted(async move |scene: Scene| {
        let editor = &scene.outside.editor;
        let now = editor.current(&file(path)).await;
        let told = match now {
            Err(error) => format!("not read: {error}"),
            Ok(base) => {
                let after = base.text.replace("return 1", "yield 1");
                let edit = FileEdit {
                    file: file(path),
                    changes: ChangeSet::between(&base.text, &after),
                    base,
                    label: "a.py::f".to_owned(),
                    effect: Effect::Change,
                };
                match editor.apply(edit).await {
                    Ok(current) => format!("applied: {}", current.text),
                    Err(error) => format!("not applied: {error}"),
                }
            }
        };
        scene.log.event(said(&told));
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

pub(super) async fn told(client: &mut Client) -> String {
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["event"]["event"] == "steered" {
            return params["event"]["text"].as_str().unwrap().to_owned();
        }
    }
}

/// A client that was asked for an edit of a file that is not open, and did not answer in time.
async fn given_up() -> (Client, Value) {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    let told = told(&mut client).await;
    assert!(told.starts_with("not applied: "), "{told}");
    (client, id)
}

fn write(client: &Client, text: &str) {
    std::fs::write(client.folder.path().join("a.py"), text).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_late_edit_of_a_closed_file_is_taken_back_and_told_once() {
    for typed in ["", "# typed since\n"] {
        let (mut client, id) = given_up().await;
        write(&client, &format!("{typed}{}", after()));
        client.connection.reply(id, Ok(json!({"applied": true})));
        let (id, params) = client.next_of("workspace/applyEdit").await;
        let edit = &params["edit"]["documentChanges"][0]["edits"][0];
        assert_eq!(edit["newText"], "return", "{params}");
        write(&client, &format!("{typed}{BASE}"));
        client.connection.reply(id, Ok(json!({"applied": true})));
        let (_, said) = client.next_of("window/showMessage").await;
        let said = said["message"].as_str().unwrap();
        assert!(
            said.starts_with("a.py: ") && said.ends_with("it was taken back"),
            "{said}"
        );
        // Nothing more comes.
        let more = client.next_of("window/showMessage");
        let more = tokio::time::timeout(std::time::Duration::from_secs(60), more).await;
        assert!(more.is_err(), "{more:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_edit_that_was_typed_over_is_told() {
    let (mut client, _) = given_up().await;
    write(&client, &after().replace("yield 1", "yield 1 + mine"));
    let (_, said) = client.next_of("window/showMessage").await;
    assert_eq!(said["type"], 2, "{said}");
    let said = said["message"].as_str().unwrap();
    assert!(said.contains("could not be taken back"), "{said}");
    assert!(said.contains("a.py"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn what_the_user_saves_is_no_late_edit() {
    let (mut client, _) = given_up().await;
    write(&client, &BASE.replace("return 3", "return 4"));
    let said = client.next_of("window/showMessage");
    let said = tokio::time::timeout(std::time::Duration::from_secs(60), said).await;
    assert!(said.is_err(), "{said:?}");
}

/// Opens `real/a.py`, and links `a.py` to it.
fn linked(folder: &Path) {
    std::fs::create_dir(folder.join("real")).unwrap();
    std::fs::rename(folder.join("a.py"), folder.join("real/a.py")).unwrap();
    std::os::unix::fs::symlink("real/a.py", folder.join("a.py")).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn an_open_buffer_counts_by_all_names_of_its_file() {
    for (is_open, edited) in [("real/a.py", "a.py"), ("a.py", "real/a.py")] {
        let folder = project();
        linked(folder.path());
        let mut client = client(editing(edited), folder);
        client.initialize(full()).await;
        let path = client.folder.path().join(is_open);
        let uri = json!(tower_lsp::lsp_types::Url::from_file_path(path).unwrap());
        let unsaved = format!("# unsaved\n{BASE}");
        let document = json!({"uri": uri, "languageId": "python", "version": 7, "text": unsaved});
        let opened = json!({ "textDocument": document });
        client.connection.notify("textDocument/didOpen", opened);
        begin(&client, "x").await;
        let (id, params) = client.next_of("workspace/applyEdit").await;
        let edit = &params["edit"]["documentChanges"][0];
        assert_eq!(
            edit["textDocument"],
            json!({"uri": uri, "version": 7}),
            "{is_open}"
        );
        let text = format!("# unsaved\n{}", after());
        let change = json!({
            "textDocument": {"uri": uri, "version": 8}, "contentChanges": [{"text": text}],
        });
        client.connection.notify("textDocument/didChange", change);
        client.connection.reply(id, Ok(json!({"applied": true})));
        assert_eq!(told(&mut client).await, format!("applied: {text}"));
        let on_disk = std::fs::read_to_string(client.folder.path().join("a.py")).unwrap();
        assert_eq!(on_disk, BASE);
    }
}

#[tokio::test]
async fn a_file_in_doubt_takes_edits_again_when_it_was_opened_again() {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    // It was never opened: that message was lost.
    let change = json!({
        "textDocument": {"uri": client.uri(), "version": 2}, "contentChanges": [{"text": BASE}],
    });
    client.connection.notify("textDocument/didChange", change);
    begin(&client, "x").await;
    let first = told(&mut client).await;
    assert!(
        first.contains("close the file and open it again"),
        "{first}"
    );
    let closed = json!({"textDocument": {"uri": client.uri()}});
    client.connection.notify("textDocument/didClose", closed);
    open(&client, BASE);
    begin(&client, "y").await;
    let (_, params) = client.next_of("workspace/applyEdit").await;
    assert_eq!(
        params["edit"]["documentChanges"][0]["edits"][0]["newText"],
        "yield"
    );
}
