//! Tests with editors that apply an edit although they refused it or it is for an old version,
//! while other text changes: each edit is applied once, and the reported result matches the file.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::begin;
use super::late::{
    asks_for_no_edit, edited, inserted, pass, removed, replaced, sending, set, told, write,
};
use super::lenses::{client, full, open, project};
use super::restart::{event_of, restarted, trajectory};
use crate::samples::{BASE, asked};
use crate::testing::*;
use starling_rpc::Incoming;

/// A function that makes an edit in a text and returns the result.
type TextEditFn = fn(&str) -> String;

const ABOVE: TextEditFn = |text| format!("import re\n{text}");
const BELOW: TextEditFn = |text| format!("{text}# mine\n");

fn refusals() -> [Result<Value, String>; 2] {
    let refusal = json!({"applied": false, "failureReason": "busy"});
    [Ok(refusal), Err("busy".to_owned())]
}

fn refusal() -> Result<Value, String> {
    let [refusal, _] = refusals();
    refusal
}

fn applied() -> Result<Value, String> {
    Ok(json!({"applied": true}))
}

fn disk(client: &TestClient) -> String {
    std::fs::read_to_string(client.folder.path().join("a.py")).unwrap()
}

fn close(client: &TestClient) {
    let closed = json!({"textDocument": {"uri": client.uri()}});
    client.connection.notify("textDocument/didClose", closed);
}

/// Makes the next edit on disk, as an editor does in a file that is not open.
async fn make_on_disk(client: &mut TestClient) -> String {
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let text = edited(&disk(client), &params);
    write(client, &text);
    client.connection.reply(id, applied());
    text
}

#[tokio::test(start_paused = true)]
async fn refused_edit_of_a_changed_file_is_applied_once() {
    for (reply, change) in refusals()
        .into_iter()
        .zip([inserted as TextEditFn, replaced])
    {
        for is_cancelled in [false, true] {
            let mut client = client(sending(change), project());
            client.initialize(full()).await;
            let run = begin(&client, "x").await;
            let (id, params) = client.next_of("workspace/applyEdit").await;
            client.connection.reply(id, reply.clone());
            pass(200).await;
            write(&client, &BELOW(BASE));
            if is_cancelled {
                client.execute("starling.cancel", json!({"run": run})).await;
            }
            pass(1_000).await;
            write(&client, &edited(&BELOW(BASE), &params));
            let told = told(&mut client).await;
            assert!(told.starts_with("Ok(Sent"), "{is_cancelled}: {told}");
            asks_for_no_edit(&mut client).await;
            assert_eq!(disk(&client), BELOW(&change(BASE)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refused_edit_made_at_the_wrong_position_is_reverted() {
    for change in [inserted as TextEditFn, replaced, removed] {
        let mut client = client(sending(change), project());
        client.initialize(full()).await;
        begin(&client, "x").await;
        let (id, params) = client.next_of("workspace/applyEdit").await;
        client.connection.reply(id, refusal());
        pass(200).await;
        write(&client, &ABOVE(BASE));
        pass(1_000).await;
        write(&client, &edited(&ABOVE(BASE), &params));
        assert_eq!(make_on_disk(&mut client).await, ABOVE(BASE));
        let told = told(&mut client).await;
        assert!(told.starts_with("Err(Conflict"), "{told}");
        asks_for_no_edit(&mut client).await;
    }
}

#[tokio::test(start_paused = true)]
async fn refused_edit_of_a_changed_file_is_not_sent_again() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    write(&client, &BELOW(BASE));
    let began = Instant::now();
    client.connection.reply(id, refusal());
    let told = told(&mut client).await;
    assert!(told.starts_with("Err(Editor"), "{told}");
    assert!(told.contains("busy"), "{told}");
    assert!(began.elapsed().as_secs() >= 2, "{:?}", began.elapsed());
    // If the editor makes the edit after that, the edit is undone, and the user gets a message.
    pass(5_000).await;
    write(&client, &edited(&BELOW(BASE), &params));
    assert_eq!(make_on_disk(&mut client).await, BELOW(BASE));
    let (_, said) = client.next_of("window/showMessage").await;
    let said = said["message"].as_str().unwrap();
    assert!(said.ends_with("it was taken back"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn edit_that_the_user_made_first_is_not_made_twice() {
    for above in [false, true] {
        let mut client = client(sending(replaced), project());
        client.initialize(full()).await;
        begin(&client, "x").await;
        let (id, params) = client.next_of("workspace/applyEdit").await;
        let by_user = match above {
            true => ABOVE(&replaced(BASE)),
            false => replaced(BASE),
        };
        write(&client, &by_user);
        let told = told(&mut client).await;
        assert!(told.starts_with("Ok(Sent"), "{told}");
        write(&client, &edited(&by_user, &params));
        assert_ne!(disk(&client), by_user);
        client.connection.reply(id, applied());
        assert_eq!(make_on_disk(&mut client).await, by_user);
        let (_, said) = client.next_of("window/showMessage").await;
        let said = said["message"].as_str().unwrap();
        assert!(said.contains("already contained the same change"), "{said}");
        assert!(said.ends_with("it was taken back"), "{said}");
        asks_for_no_edit(&mut client).await;
    }
}

#[tokio::test(start_paused = true)]
async fn redo_before_the_reply_to_an_edit_is_kept() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let after = edited(BASE, &params);
    write(&client, &after);
    let told = told(&mut client).await;
    assert!(told.starts_with("Ok(Sent"), "{told}");
    for text in [BASE, &after] {
        write(&client, text);
        pass(600).await;
    }
    client.connection.reply(id, applied());
    asks_for_no_edit(&mut client).await;
    assert_eq!(disk(&client), after);
}

#[tokio::test(start_paused = true)]
async fn late_first_edit_is_reverted_after_the_same_edit_was_accepted_again() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, first) = client.next_of("workspace/applyEdit").await;
    write(&client, &ABOVE(BASE));
    client.connection.reply(id, refusal());
    let given_up = told(&mut client).await;
    assert!(given_up.starts_with("Err(Editor"), "{given_up}");
    begin(&client, "y").await;
    let after = make_on_disk(&mut client).await;
    assert_eq!(after, ABOVE(&replaced(BASE)));
    let second = told(&mut client).await;
    assert!(second.starts_with("Ok(Sent"), "{second}");
    asks_for_no_edit(&mut client).await;
    // The first edit arrives late, at the wrong position.
    let twice = edited(&after, &first);
    assert_ne!(twice, after);
    write(&client, &twice);
    assert_eq!(make_on_disk(&mut client).await, after);
    let (_, said) = client.next_of("window/showMessage").await;
    let said = said["message"].as_str().unwrap();
    assert!(said.ends_with("it was taken back"), "{said}");
    asks_for_no_edit(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn misplaced_edit_of_a_document_closed_meanwhile_is_corrected() {
    for reply in [applied(), refusal()] {
        let mut client = client(sending(replaced), project());
        client.initialize(full()).await;
        open(&client, BASE);
        begin(&client, "x").await;
        let (id, params) = client.next_of("workspace/applyEdit").await;
        let began = Instant::now();
        set(&client, 2, &ABOVE(BASE));
        write(&client, &ABOVE(BASE));
        close(&client);
        pass(200).await;
        write(&client, &edited(&ABOVE(BASE), &params));
        client.connection.reply(id, reply);
        assert_eq!(make_on_disk(&mut client).await, ABOVE(BASE));
        let told = told(&mut client).await;
        assert!(told.starts_with("Err(Conflict"), "{told}");
        assert!(began.elapsed().as_secs() < 3, "{:?}", began.elapsed());
        asks_for_no_edit(&mut client).await;
    }
}

#[tokio::test(start_paused = true)]
async fn edit_of_a_document_that_was_closed_meanwhile_counts_as_applied() {
    for reply in [applied(), refusal()] {
        let mut client = client(sending(replaced), project());
        client.initialize(full()).await;
        open(&client, BASE);
        begin(&client, "x").await;
        let (id, params) = client.next_of("workspace/applyEdit").await;
        let began = Instant::now();
        set(&client, 2, &BELOW(BASE));
        write(&client, &BELOW(BASE));
        close(&client);
        client.connection.reply(id, reply);
        pass(500).await;
        write(&client, &edited(&BELOW(BASE), &params));
        let told = told(&mut client).await;
        assert!(told.starts_with("Ok(Sent"), "{told}");
        assert!(began.elapsed().as_secs() < 3, "{:?}", began.elapsed());
        asks_for_no_edit(&mut client).await;
        assert_eq!(disk(&client), BELOW(&replaced(BASE)));
    }
}

#[tokio::test(start_paused = true)]
async fn edit_of_an_open_document_is_recognized_next_to_typed_text() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let began = Instant::now();
    // This editor ignores the version.
    set(&client, 2, &BELOW(BASE));
    set(&client, 3, &edited(&BELOW(BASE), &params));
    client.connection.reply(id, applied());
    let told = told(&mut client).await;
    assert!(told.starts_with("Ok(Sent"), "{told}");
    assert!(began.elapsed().as_secs() < 1, "{:?}", began.elapsed());
    asks_for_no_edit(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn late_edit_for_an_old_version_is_reverted_after_the_edit_was_sent_again() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    let (id, first) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, refusal());
    set(&client, 2, &ABOVE(BASE));
    let (id, second) = client.next_of("workspace/applyEdit").await;
    let after = edited(&ABOVE(BASE), &second);
    set(&client, 3, &after);
    client.connection.reply(id, applied());
    let told = told(&mut client).await;
    assert!(told.starts_with("Ok(Sent"), "{told}");
    pass(600).await;
    let twice = edited(&after, &first);
    set(&client, 4, &twice);
    let (id, params) = client.next_of("workspace/applyEdit").await;
    assert_eq!(edited(&twice, &params), after);
    set(&client, 5, &after);
    client.connection.reply(id, applied());
    asks_for_no_edit(&mut client).await;
}

/// Two edits of an open document are on their way: the first was refused, the second is for a newer
/// version. Returns the text of that version.
async fn two_on_their_way(client: &TestClient, first: Value) -> String {
    client.connection.reply(first, refusal());
    let typed = ABOVE(BASE);
    set(client, 2, &typed);
    typed
}

#[tokio::test(start_paused = true)]
async fn first_edit_made_late_while_the_second_is_refused_is_reverted() {
    for change in [inserted as TextEditFn, replaced, removed] {
        for refused_first in [false, true] {
            let mut client = client(sending(change), project());
            client.initialize(full()).await;
            open(&client, BASE);
            begin(&client, "x").await;
            let (id, first) = client.next_of("workspace/applyEdit").await;
            let typed = two_on_their_way(&client, id).await;
            let (id, _) = client.next_of("workspace/applyEdit").await;
            if refused_first {
                client.connection.reply(id.clone(), refusal());
            }
            write(&client, &typed);
            close(&client);
            pass(20).await;
            write(&client, &edited(&typed, &first));
            pass(500).await;
            if !refused_first {
                client.connection.reply(id, refusal());
            }
            assert_eq!(make_on_disk(&mut client).await, typed);
            let (_, said) = client.next_of("window/showMessage").await;
            let said = said["message"].as_str().unwrap();
            assert!(said.ends_with("it was taken back"), "{said}");
            asks_for_no_edit(&mut client).await;
            assert_eq!(disk(&client), typed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn first_edit_made_late_before_the_second_is_made_is_reverted() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    let (id, first) = client.next_of("workspace/applyEdit").await;
    let typed = two_on_their_way(&client, id).await;
    let (id, second) = client.next_of("workspace/applyEdit").await;
    write(&client, &typed);
    close(&client);
    pass(50).await;
    let with_first = edited(&typed, &first);
    write(&client, &with_first);
    pass(50).await;
    write(&client, &edited(&with_first, &second));
    client.connection.reply(id, applied());
    let minute = std::time::Duration::from_secs(60);
    while let Ok((id, params)) =
        tokio::time::timeout(minute, client.next_of("workspace/applyEdit")).await
    {
        write(&client, &edited(&disk(&client), &params));
        client.connection.reply(id, applied());
    }
    let text = disk(&client);
    assert!(text == typed || text == replaced(&typed), "{text}");
}

#[tokio::test(start_paused = true)]
async fn refused_edit_made_in_the_moment_of_another_change_is_told() {
    for is_late in [false, true] {
        let mut client = client(sending(replaced), project());
        client.initialize(full()).await;
        begin(&client, "x").await;
        let (id, params) = client.next_of("workspace/applyEdit").await;
        client.connection.reply(id, refusal());
        if is_late {
            let told = told(&mut client).await;
            assert!(told.starts_with("Err(Editor"), "{told}");
        }
        let text = edited(&ABOVE(BASE), &params);
        write(&client, &text);
        let (_, said) = client.next_of("window/showMessage").await;
        let said = said["message"].as_str().unwrap();
        assert!(said.starts_with("a.py, lines 1 to 2: "), "{said}");
        assert!(said.contains("look at these lines"), "{said}");
        if !is_late {
            let told = told(&mut client).await;
            assert!(told.starts_with("Err(Conflict"), "{told}");
        }
        asks_for_no_edit(&mut client).await;
        assert_eq!(disk(&client), text);
    }
}

#[tokio::test(start_paused = true)]
async fn edit_of_a_file_that_went_away_names_no_lines() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    std::fs::remove_file(client.folder.path().join("a.py")).unwrap();
    client.connection.reply(id, applied());
    let (_, said) = client.next_of("window/showMessage").await;
    let said = said["message"].as_str().unwrap();
    assert!(said.starts_with("a.py: the file went away"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn redo_of_an_edit_that_was_sent_again_is_kept() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, refusal());
    let typed = BELOW(BASE);
    set(&client, 2, &typed);
    let (id, second) = client.next_of("workspace/applyEdit").await;
    let after = edited(&typed, &second);
    set(&client, 3, &after);
    client.connection.reply(id, applied());
    let told = told(&mut client).await;
    assert!(told.starts_with("Ok(Sent"), "{told}");
    for (version, text) in (4..).zip([&typed, &after, &typed, &after]) {
        pass(300).await;
        set(&client, version, text);
    }
    asks_for_no_edit(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn edit_that_the_editor_skipped_is_sent_again_for_the_new_version() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    let began = Instant::now();
    set(&client, 2, &BELOW(BASE));
    // Neovim replies `applied: true` if it skips an edit because the buffer is newer than the edit.
    client.connection.reply(id, applied());
    let (_, again) = client.next_of("workspace/applyEdit").await;
    assert_eq!(edited(&BELOW(BASE), &again), BELOW(&replaced(BASE)));
    assert!(began.elapsed().as_secs() < 4, "{:?}", began.elapsed());
}

#[tokio::test]
async fn refused_undo_of_a_changed_file_is_applied_once() {
    let folder = project();
    trajectory(folder.path(), "r1", folder.path(), asked(&[(1, "a.py::f")]));
    let mut client = restarted(folder).await;
    event_of(&mut client, "review_asked").await;
    let about = json!({"run": "r1", "proposal": 1});
    client.execute("starling.accept", about).await;
    let after = make_on_disk(&mut client).await;
    event_of(&mut client, "run_finished").await;
    let undo = json!({"command": "starling.undo", "arguments": [{"run": "r1"}]});
    let undone = client.connection.request("workspace/executeCommand", undo);
    let (id, params) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, refusal());
    pass(100).await;
    write(&client, &BELOW(&after));
    pass(600).await;
    write(&client, &edited(&BELOW(&after), &params));
    undone.await.unwrap();
    let undone = loop {
        match client.next().await {
            Incoming::Request { method, params, .. } if method == "workspace/applyEdit" => {
                panic!("sent again: {params}");
            }
            Incoming::Notification { method, params } if method == "starling/undone" => {
                break params;
            }
            Incoming::Request { .. } | Incoming::Notification { .. } => {}
        }
    };
    assert_eq!(undone["proposals"], json!([1]), "{undone}");
    assert_eq!(disk(&client), BELOW(BASE));
}
