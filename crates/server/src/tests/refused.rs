//! Tests with editors that reply `applied: false` to an edit but apply it: only the text decides
//! whether an edit counts as applied.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::begin;
use super::late::{after, editing, set, told, write};
use super::lenses::{client, full, open, project};
use super::restart::{event_of, make_edit_and_reply, restarted, state_of, trajectory};
use crate::samples::{BASE, asked};
use crate::testing::*;

fn refusal() -> Value {
    json!({"applied": false, "failureReason": "busy"})
}

/// Fails if the server asks for another edit within a minute.
async fn asks_for_no_more_edits(client: &mut TestClient) {
    let more = client.next_of("workspace/applyEdit");
    let more = tokio::time::timeout(Duration::from_secs(60), more).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn refused_edit_counts_as_applied_when_its_text_arrives() {
    let milliseconds = [None, Some(0), Some(5), Some(1_500)];
    for delay in milliseconds {
        let mut client = client(editing("a.py"), project());
        client.initialize(full()).await;
        open(&client, BASE);
        begin(&client, "x").await;
        let (id, _) = client.next_of("workspace/applyEdit").await;
        match delay {
            None => {
                set(&client, 2, &after());
                client.connection.reply(id, Ok(refusal()));
            }
            Some(delay) => {
                client.connection.reply(id, Ok(refusal()));
                sleep(Duration::from_millis(delay)).await;
                set(&client, 2, &after());
            }
        }
        let told = told(&mut client).await;
        assert_eq!(told, format!("applied: {}", after()), "{delay:?}");
        asks_for_no_more_edits(&mut client).await;
    }
}

#[tokio::test(start_paused = true)]
async fn refused_edit_counts_as_applied_when_the_user_types_right_after_it() {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, Ok(refusal()));
    set(&client, 2, &after());
    set(&client, 3, &format!("# typed\n{}", after()));
    assert_eq!(told(&mut client).await, format!("applied: {}", after()));
    asks_for_no_more_edits(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn refused_edit_of_a_closed_file_counts_as_applied_when_its_text_is_on_disk_or_in_a_buffer() {
    for in_buffer in [true, false] {
        let mut client = client(editing("a.py"), project());
        client.initialize(full()).await;
        begin(&client, "x").await;
        let (id, _) = client.next_of("workspace/applyEdit").await;
        client.connection.reply(id, Ok(refusal()));
        sleep(Duration::from_millis(300)).await;
        if in_buffer {
            open(&client, BASE);
            set(&client, 2, &after());
        } else {
            write(&client, &after());
        }
        assert_eq!(told(&mut client).await, format!("applied: {}", after()));
        asks_for_no_more_edits(&mut client).await;
    }
}

#[tokio::test(start_paused = true)]
async fn refused_edit_whose_text_does_not_arrive_is_not_applied() {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, Ok(refusal()));
    let told = told(&mut client).await;
    assert!(told.starts_with("not applied: "), "{told}");
    assert!(told.contains("busy"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn refused_edit_that_arrives_after_it_was_given_up_is_reverted() {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, Ok(refusal()));
    let first = told(&mut client).await;
    assert!(first.starts_with("not applied: "), "{first}");
    set(&client, 2, &after());
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let edit = &params["edit"]["documentChanges"][0]["edits"][0];
    assert_eq!(edit["newText"], "return", "{params}");
    // This editor also refuses the undo but applies it.
    client.connection.reply(id, Ok(refusal()));
    set(&client, 3, BASE);
    let (_, said) = client.next_of("window/showMessage").await;
    let said = said["message"].as_str().unwrap();
    assert!(said.ends_with("it was taken back"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn given_up_edit_that_is_sent_again_is_not_reverted() {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, Ok(refusal()));
    let first = told(&mut client).await;
    assert!(first.starts_with("not applied: "), "{first}");
    begin(&client, "y").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    set(&client, 2, &after());
    client.connection.reply(id, Ok(json!({"applied": true})));
    assert_eq!(told(&mut client).await, format!("applied: {}", after()));
    asks_for_no_more_edits(&mut client).await;
}

#[tokio::test]
async fn proposal_whose_edit_was_refused_but_made_is_applied_once_and_can_be_undone() {
    let folder = project();
    trajectory(folder.path(), "r1", folder.path(), asked(&[(1, "a.py::f")]));
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 1});
    client.execute("starling.accept", about).await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    make_edit_and_reply(&client, id, &params, 1, refusal());
    loop {
        let (_, params) = client.next_of("starling/event").await;
        let event = params["event"]["event"].as_str().unwrap();
        let again = [
            "review_asked",
            "proposal_conflicted",
            "proposal_not_applied",
        ];
        assert!(!again.contains(&event), "{params}");
        if event == "run_finished" {
            assert_eq!(params["event"]["applied"], json!(["a.py::f"]));
            break;
        }
    }
    let undo = json!({"command": "starling.undo", "arguments": [{"run": "r1"}]});
    let undone = client.connection.request("workspace/executeCommand", undo);
    let (id, params) = client.next_of("workspace/applyEdit").await;
    assert_eq!(
        make_edit_and_reply(&client, id, &params, 2, refusal()),
        "return"
    );
    undone.await.unwrap();
    let (_, undone) = client.next_of("starling/undone").await;
    assert_eq!(undone["proposals"], json!([1]), "{undone}");
    let run = &state_of(&client).await[0];
    assert_eq!(run["proposals"][0]["state"], "undone", "{run}");
}
