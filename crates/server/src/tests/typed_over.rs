//! The user types in the text that an edit under way removes: what was typed is restored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::begin;
use super::late::{asks_for_no_edit, edited, inserted, pass, set, told, write};
use super::lenses::{client, full, open, project};
use crate::RunStarter;
use crate::samples::BASE;
use crate::testing::*;
use starling_swarm::StopReason;
use starling_swarm::sending::{self, Purpose};
use starling_text::ChangeSet;

const NEW: &str = "x = 1\n";

/// A run that undoes the change of `name` from `before` to `after`, and reports the result.
fn undoing(name: &'static str, before: &str, after: &str) -> RunStarter {
    let (before, after): (Arc<str>, Arc<str>) = (before.into(), after.into());
    scripted(move |scene: RunScript| {
        let (before, after) = (Arc::clone(&before), Arc::clone(&after));
        async move {
            let inverse = ChangeSet::between(&after, &before);
            let purpose = match before.is_empty() {
                true => Purpose::TakeBackFile,
                false => Purpose::TakeBack,
            };
            let editor = &scene.outside.editor;
            let name = file(name);
            let sent = sending::send(editor, &name, &after, &inverse, "undo", purpose);
            scene.log.event(said(&format!("{:?}", sent.await)));
            scene.cancel.cancelled().await;
            scene.log.event(finished(StopReason::Cancelled));
        }
    })
}

fn applied() -> Result<Value, String> {
    Ok(json!({"applied": true}))
}

fn log_twice(text: &str) -> String {
    text.replacen("    return 1", "    log()\n    log(2)\n    return 1", 1)
}

/// Returns a client whose run undoes an insertion in `a.py`, and the undo request.
async fn undo_under_way(after: &str) -> (TestClient, Value, Value) {
    let folder = project();
    std::fs::write(folder.path().join("a.py"), after).unwrap();
    let mut client = client(undoing("a.py", BASE, after), folder);
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    (client, id, params)
}

async fn assert_taken_back(client: &mut TestClient) {
    let told = told(client).await;
    assert!(told.starts_with("Err(Conflict"), "{told}");
    assert!(
        told.contains("typed meanwhile; it was taken back"),
        "{told}"
    );
    asks_for_no_edit(client).await;
}

#[tokio::test(start_paused = true)]
async fn text_typed_in_a_line_that_an_undo_removes_is_restored_on_disk() {
    for change in [inserted as fn(&str) -> String, log_twice] {
        for replies_first in [true, false] {
            let after = change(BASE);
            let (mut client, id, params) = undo_under_way(&after).await;
            let typed = after.replace("log()", "log()  # mine");
            write(&client, &typed);
            pass(200).await;
            if replies_first {
                client.connection.reply(id.clone(), applied());
                pass(200).await;
            }
            assert_eq!(edited(&typed, &params), BASE);
            write(&client, BASE);
            if !replies_first {
                pass(200).await;
                client.connection.reply(id, applied());
            }
            let (id, params) = client.next_of("workspace/applyEdit").await;
            assert_eq!(edited(BASE, &params), typed, "{params}");
            write(&client, &typed);
            client.connection.reply(id, applied());
            assert_taken_back(&mut client).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn text_typed_in_a_line_that_an_undo_removes_is_restored_in_a_new_buffer() {
    let after = inserted(BASE);
    let (mut client, id, _) = undo_under_way(&after).await;
    open(&client, &after);
    let typed = after.replace("log()", "log()  # mine");
    set(&client, 2, &typed);
    set(&client, 3, BASE);
    client.connection.reply(id, applied());
    let (id, params) = client.next_of("workspace/applyEdit").await;
    assert_eq!(edited(BASE, &params), typed, "{params}");
    set(&client, 4, &typed);
    client.connection.reply(id, applied());
    assert_taken_back(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn line_that_the_user_typed_in_and_removed_stays_removed() {
    let after = inserted(BASE);
    let folder = project();
    let mut client = client(undoing("a.py", BASE, &after), folder);
    client.initialize(full()).await;
    open(&client, &after);
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    set(&client, 2, &after.replace("log()", "log()  # mine"));
    set(&client, 3, BASE);
    let refused = json!({"applied": false, "failureReason": "the document changed"});
    client.connection.reply(id, Ok(refused));
    let told = told(&mut client).await;
    assert!(told.starts_with("Ok(Sent"), "{told}");
    asks_for_no_edit(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn text_typed_in_a_file_that_an_undo_deletes_is_restored() {
    let folder = project();
    let path = folder.path().join("new.py");
    std::fs::write(&path, NEW).unwrap();
    let mut client = client(undoing("new.py", "", NEW), folder);
    let mut capabilities = full();
    let operations = json!(["create", "delete"]);
    capabilities["workspace"]["workspaceEdit"]["resourceOperations"] = operations;
    client.initialize(capabilities).await;
    begin(&client, "x").await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let operations = &params["edit"]["documentChanges"];
    assert!(operations.to_string().contains("delete"), "{params}");
    let typed = "x = 1\ny = 2\n";
    std::fs::write(&path, typed).unwrap();
    pass(200).await;
    std::fs::remove_file(&path).unwrap();
    client.connection.reply(id, applied());
    let (id, params) = client.next_of("workspace/applyEdit").await;
    assert_eq!(edited("", &params), typed, "{params}");
    std::fs::write(&path, typed).unwrap();
    client.connection.reply(id, applied());
    assert_taken_back(&mut client).await;
}
