//! Tests of edits that arrive late or in another text, and of files that are open under another
//! name.

use std::path::Path;

use serde_json::{Value, json};

use super::begin;
use super::lenses::{client, full, open, project};
use crate::RunStarter;
use crate::samples::BASE;
use crate::testing::*;
use starling_core::{Effect, FileEdit};
use starling_swarm::StopReason;
use starling_text::ChangeSet;

pub(super) fn after() -> String {
    BASE.replace("return 1", "yield 1")
}

/// A run that makes one edit of a file and reports the result.
pub(super) fn editing(path: &'static str) -> RunStarter {
    scripted(async move |scene: RunScript| {
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

pub(super) async fn told(client: &mut TestClient) -> String {
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["event"]["event"] == "steered" {
            return params["event"]["text"].as_str().unwrap().to_owned();
        }
    }
}

/// Returns a client that did not answer an edit of a closed file in time, and the id of the edit
/// request.
async fn given_up() -> (TestClient, Value) {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    let told = told(&mut client).await;
    assert!(told.starts_with("not applied: "), "{told}");
    (client, id)
}

pub(super) fn write(client: &TestClient, text: &str) {
    std::fs::write(client.folder.path().join("a.py"), text).unwrap();
}

#[tokio::test(start_paused = true)]
async fn edit_of_closed_file_that_arrives_after_the_timeout_is_reverted() {
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
        // No second message is sent.
        let more = client.next_of("window/showMessage");
        let more = tokio::time::timeout(std::time::Duration::from_secs(60), more).await;
        assert!(more.is_err(), "{more:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn late_edit_that_the_user_typed_over_is_reported() {
    let (mut client, _) = given_up().await;
    write(&client, &after().replace("yield 1", "yield 1 + mine"));
    let (_, said) = client.next_of("window/showMessage").await;
    assert_eq!(said["type"], 2, "{said}");
    let said = said["message"].as_str().unwrap();
    assert!(said.contains("could not be taken back"), "{said}");
    assert!(said.contains("a.py"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn text_saved_by_the_user_is_not_mistaken_for_a_late_edit() {
    let (mut client, _) = given_up().await;
    write(&client, &BASE.replace("return 3", "return 4"));
    let said = client.next_of("window/showMessage");
    let said = tokio::time::timeout(std::time::Duration::from_secs(60), said).await;
    assert!(said.is_err(), "{said:?}");
}

/// Moves `a.py` to `real/a.py` and links `a.py` to it.
fn linked(folder: &Path) {
    std::fs::create_dir(folder.join("real")).unwrap();
    std::fs::rename(folder.join("a.py"), folder.join("real/a.py")).unwrap();
    std::os::unix::fs::symlink("real/a.py", folder.join("a.py")).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn open_buffer_is_found_by_all_paths_of_its_file() {
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
async fn uncertain_document_accepts_edits_after_reopening() {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    // The message that opened the document was lost.
    let start = json!({"line": 0, "character": 0});
    let change = json!({
        "textDocument": {"uri": client.uri(), "version": 2},
        "contentChanges": [{"range": {"start": start, "end": start}, "text": ""}],
    });
    client.connection.notify("textDocument/didChange", change);
    begin(&client, "x").await;
    let first = told(&mut client).await;
    assert!(
        first.contains("open the file (if it is open, close it first)"),
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

#[tokio::test]
async fn user_is_told_once_which_file_to_open_again_after_an_unreadable_change() {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    open(&client, BASE);
    for version in ["x", "y"] {
        let change = json!({
            "textDocument": {"uri": client.uri(), "version": version},
            "contentChanges": [{"text": BASE}],
        });
        client.connection.notify("textDocument/didChange", change);
    }
    begin(&client, "x").await;
    let (_, shown) = client.next_of("window/showMessage").await;
    let message = shown["message"].as_str().unwrap();
    assert!(
        message.contains("about") && message.contains("a.py"),
        "{message}"
    );
    assert!(
        message.contains("close the file and open it again"),
        "{message}"
    );
    // The second message has no warning of its own, and no edit goes to the old text.
    let refused = told(&mut client).await;
    assert!(
        refused.contains("open the file (if it is open, close it first)"),
        "{refused}"
    );
    let closed = json!({"textDocument": {"uri": client.uri()}});
    client.connection.notify("textDocument/didClose", closed);
    open(&client, BASE);
    begin(&client, "y").await;
    client.next_of("workspace/applyEdit").await;
}

#[tokio::test]
async fn edit_of_a_closed_file_counts_columns_without_the_byte_order_mark() {
    let first = |text: &str| text.replacen(&text[..3], "xyz", 1);
    let mut client = client(sending(first), project());
    client.initialize(full()).await;
    write(&client, &format!("\u{feff}{BASE}"));
    begin(&client, "x").await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let edit = &params["edit"]["documentChanges"][0]["edits"][0];
    let range = json!({
        "start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3},
    });
    assert_eq!(edit["range"], range, "{params}");
    write(&client, &format!("\u{feff}{}", first(BASE)));
    client.connection.reply(id, Ok(json!({"applied": true})));
    let told = told(&mut client).await;
    assert!(told.starts_with("Ok("), "{told}");
}

#[tokio::test]
async fn edit_of_a_closed_file_is_found_in_the_encoding_and_line_ends_of_the_file() {
    fn wide(text: &str) -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    }
    fn crlf(text: &str) -> Vec<u8> {
        text.replace('\n', "\r\n").into()
    }
    for stored in [wide, crlf] as [fn(&str) -> Vec<u8>; 2] {
        let mut client = client(sending(replaced), project());
        client.initialize(full()).await;
        let path = client.folder.path().join("a.py");
        std::fs::write(&path, stored(BASE)).unwrap();
        begin(&client, "x").await;
        let (id, _) = client.next_of("workspace/applyEdit").await;
        std::fs::write(&path, stored(&replaced(BASE))).unwrap();
        client.connection.reply(id, Ok(json!({"applied": true})));
        let told = told(&mut client).await;
        assert!(told.starts_with("Ok("), "{told}");
    }
}

/// A run that sends one edit as real runs do, rebased onto the current text, and logs the result.
pub(super) fn sending(after: fn(&str) -> String) -> RunStarter {
    scripted(move |scene: RunScript| async move {
        let name = file(if after(BASE) == NEW { "new.py" } else { "a.py" });
        let base: std::sync::Arc<str> = match after(BASE) == NEW {
            true => "".into(),
            false => BASE.into(),
        };
        let changes = ChangeSet::between(&base, &after(BASE));
        let symbols = [symbol("a.py::f")];
        let intent = starling_swarm::sending::AnnouncedEdit {
            log: &scene.log,
            proposal: starling_swarm::ProposalId(1),
            symbols: &symbols,
            deletes: false,
            root: None,
            directories: &[],
            dependencies: &Default::default(),
            cancel: &scene.cancel,
            permission: None,
            announced: None,
        };
        let purpose = starling_swarm::sending::Purpose::Propose(intent);
        let editor = &scene.outside.editor;
        let sent = starling_swarm::sending::send(editor, &name, &base, &changes, "f", purpose);
        scene.log.event(said(&format!("{:?}", sent.await)));
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

const NEW: &str = "x = 1\n";

pub(super) fn inserted(text: &str) -> String {
    text.replacen("    return 1", "    log()\n    return 1", 1)
}

pub(super) fn replaced(text: &str) -> String {
    text.replacen("return 1", "yield 1", 1)
}

/// Applies the edit of a request at its lines and columns, as an editor does.
pub(super) fn edited(text: &str, params: &Value) -> String {
    let operations = params["edit"]["documentChanges"].as_array().unwrap();
    let edits = operations.iter().find_map(|one| one["edits"].as_array());
    let mut rope = ropey::Rope::from_str(text);
    for edit in edits.unwrap().iter().rev() {
        let range = serde_json::from_value(edit["range"].clone()).unwrap();
        let new = edit["newText"].as_str().unwrap();
        crate::splice(&mut rope, range, new, starling_text::Encoding::Utf16);
    }
    rope.to_string()
}

pub(super) fn set(client: &TestClient, version: i32, text: &str) {
    let change = json!({
        "textDocument": {"uri": client.uri(), "version": version}, "contentChanges": [{"text": text}],
    });
    client.connection.notify("textDocument/didChange", change);
}

#[tokio::test(start_paused = true)]
async fn edit_misplaced_on_disk_is_reverted() {
    let mut client = client(sending(inserted), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let mine = format!("import re\n{BASE}");
    let misplaced = edited(&mine, &params);
    assert_ne!(misplaced, inserted(&mine));
    write(&client, &misplaced);
    client.connection.reply(id, Ok(json!({"applied": true})));
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let back = edited(&misplaced, &params);
    assert_eq!(back, mine, "{params}");
    write(&client, &back);
    client.connection.reply(id, Ok(json!({"applied": true})));
    let told = told(&mut client).await;
    assert!(told.starts_with("Err(Conflict"), "{told}");
    assert!(told.contains("it was taken back"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn edit_misplaced_in_a_new_buffer_is_reverted() {
    for change in [inserted as fn(&str) -> String, replaced] {
        let mut client = client(sending(change), project());
        client.initialize(full()).await;
        begin(&client, "x").await;
        let (id, params) = client.next_of("workspace/applyEdit").await;
        let mine = format!("import re\n{BASE}");
        open(&client, BASE);
        set(&client, 2, &mine);
        let misplaced = edited(&mine, &params);
        set(&client, 3, &misplaced);
        client.connection.reply(id, Ok(json!({"applied": true})));
        let (id, params) = client.next_of("workspace/applyEdit").await;
        assert_eq!(edited(&misplaced, &params), mine, "{params}");
        set(&client, 4, &mine);
        client.connection.reply(id, Ok(json!({"applied": true})));
        let told = told(&mut client).await;
        assert!(told.starts_with("Err(Conflict"), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn edit_whose_result_is_unclear_is_reported_and_not_sent_again() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    let unknown = "x = 0\n    yield 1\n";
    write(&client, unknown);
    client.connection.reply(id, Ok(json!({"applied": true})));
    let (_, said) = client.next_of("window/showMessage").await;
    let said = said["message"].as_str().unwrap();
    assert!(said.starts_with("a.py, line 2: "), "{said}");
    let told = told(&mut client).await;
    assert!(told.starts_with("Err(Conflict"), "{told}");
    let more = client.next_of("workspace/applyEdit");
    let more = tokio::time::timeout(std::time::Duration::from_secs(60), more).await;
    assert!(more.is_err(), "{more:?}");
    assert_eq!(
        std::fs::read_to_string(client.folder.path().join("a.py")).unwrap(),
        unknown
    );
}

pub(super) fn removed(text: &str) -> String {
    text.replacen("    return 3\n", "", 1)
}

pub(super) async fn pass(milliseconds: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
}

/// Fails if the server asks for an edit within a minute.
pub(super) async fn asks_for_no_edit(client: &mut TestClient) {
    let more = client.next_of("workspace/applyEdit");
    let more = tokio::time::timeout(std::time::Duration::from_secs(60), more).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn text_removed_by_a_misplaced_edit_is_restored_at_once() {
    for change in [removed as fn(&str) -> String, replaced] {
        for is_seen in [true, false] {
            let mut client = client(sending(change), project());
            client.initialize(full()).await;
            begin(&client, "x").await;
            let (id, params) = client.next_of("workspace/applyEdit").await;
            let mine = format!("import re\n{BASE}");
            if is_seen {
                write(&client, &mine);
                pass(300).await;
            }
            let misplaced = edited(&mine, &params);
            write(&client, &misplaced);
            let began = tokio::time::Instant::now();
            client.connection.reply(id, Ok(json!({"applied": true})));
            let (id, params) = client.next_of("workspace/applyEdit").await;
            assert_eq!(edited(&misplaced, &params), mine, "{is_seen}: {params}");
            write(&client, &mine);
            client.connection.reply(id, Ok(json!({"applied": true})));
            let told = told(&mut client).await;
            assert!(told.starts_with("Err(Conflict"), "{told}");
            assert!(told.contains("it was taken back"), "{told}");
            assert!(began.elapsed().as_secs() < 3, "{:?}", began.elapsed());
            asks_for_no_edit(&mut client).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unexpected_text_after_an_edit_is_reported_at_once_and_kept() {
    let mut client = client(sending(removed), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    let other = BASE.replace("return 1", "return 10");
    write(&client, &other);
    let began = tokio::time::Instant::now();
    client.connection.reply(id, Ok(json!({"applied": true})));
    let (_, said) = client.next_of("window/showMessage").await;
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    let said = said["message"].as_str().unwrap();
    assert!(said.starts_with("a.py, line 2: "), "{said}");
    assert!(said.contains("nothing more is written"), "{said}");
    let told = told(&mut client).await;
    assert!(told.starts_with("Err(Conflict"), "{told}");
    asks_for_no_edit(&mut client).await;
    assert_eq!(
        std::fs::read_to_string(client.folder.path().join("a.py")).unwrap(),
        other
    );
}

#[tokio::test(start_paused = true)]
async fn line_deleted_by_the_user_is_not_mistaken_for_a_late_edit() {
    let mut client = client(sending(removed), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    client.next_of("workspace/applyEdit").await;
    let told = told(&mut client).await;
    assert!(told.starts_with("Err(Editor"), "{told}");
    let other = BASE.replace("def g():\n", "");
    write(&client, &format!("import re\n{other}"));
    asks_for_no_edit(&mut client).await;
}

/// Edits the file that the task names.
fn editing_named() -> RunStarter {
    scripted(async move |scene: RunScript| {
        let editor = &scene.outside.editor;
        let name = file(&scene.task.text);
        let base = editor.current(&name).await.unwrap();
        let edit = FileEdit {
            changes: ChangeSet::between(&base.text, &replaced(&base.text)),
            file: name,
            base,
            label: "f".to_owned(),
            effect: Effect::Change,
        };
        let told = format!("{:?}", editor.apply(edit).await);
        scene.log.event(said(&told));
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

#[tokio::test(start_paused = true)]
async fn confirmed_edit_that_has_not_arrived_delays_only_edits_of_its_own_file() {
    let folder = folder(&[("a.py", BASE), ("b.py", BASE)]);
    let mut client = client(editing_named(), folder);
    client.initialize(full()).await;
    begin(&client, "a.py").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, Ok(json!({"applied": true})));
    let began = tokio::time::Instant::now();
    begin(&client, "b.py").await;
    let (_, params) = client.next_of("workspace/applyEdit").await;
    let uri = params["edit"]["documentChanges"][0]["textDocument"]["uri"].to_string();
    assert!(uri.contains("b.py"), "{params}");
    assert!(began.elapsed().as_secs() < 1, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn cancelled_run_does_not_send_its_queued_edit() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    client.next_of("workspace/applyEdit").await;
    let second = begin(&client, "y").await;
    pass(2_000).await;
    client
        .execute("starling.cancel", json!({"run": second}))
        .await;
    let told = told(&mut client).await;
    assert!(
        told.contains("the run ended before the edit was sent"),
        "{told}"
    );
    asks_for_no_edit(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_or_sent_after_shutdown() {
    let mut client = client(
        scripted(async |scene: RunScript| {
            scene.log.event(said("begun"));
            scene.cancel.cancelled().await;
            scene.log.event(said("too late"));
            let editor = &scene.outside.editor;
            let base = editor.current(&file("a.py")).await.unwrap();
            let edit = FileEdit {
                file: file("a.py"),
                changes: ChangeSet::between(&base.text, &replaced(&base.text)),
                base,
                label: "f".to_owned(),
                effect: Effect::Change,
            };
            assert!(editor.apply(edit).await.is_err());
            scene.log.event(finished(StopReason::Cancelled));
        }),
        project(),
    );
    client.initialize(full()).await;
    open(&client, BASE);
    begin(&client, "x").await;
    assert_eq!(told(&mut client).await, "begun");
    let farewell = client.connection.request("shutdown", Value::Null);
    farewell.await.unwrap();
    pass(60_000).await;
    while let Ok(message) = client.incoming.try_recv() {
        let what = format!("{message:?}");
        assert!(
            !what.contains("too late") && !what.contains("applyEdit"),
            "{what}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn edit_of_closed_file_is_applied_next_to_typed_text() {
    let mut client = client(sending(replaced), project());
    client.initialize(full()).await;
    begin(&client, "x").await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    write(&client, &format!("# by a formatter\n{}", after()));
    client.connection.reply(id, Ok(json!({"applied": true})));
    let told = told(&mut client).await;
    assert!(told.starts_with("Ok(Sent"), "{told}");
    // The reported result contains only the edit, not the line that the formatter added.
    assert!(!told.contains("formatter"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn file_that_appears_during_creation_keeps_its_text() {
    let mut new = full();
    new["workspace"]["workspaceEdit"]["resourceOperations"] = json!(["create", "delete"]);
    // Neovim empties an existing file unless the request contains `ignoreIfExists`.
    for (client_info, ignores) in [
        (json!({"name": "x"}), false),
        (json!({"name": "Neovim"}), true),
    ] {
        let mut client = client(sending(|_| NEW.to_owned()), project());
        client.initialize_with(new.clone(), client_info).await;
        begin(&client, "x").await;
        let (id, params) = client.next_of("workspace/applyEdit").await;
        let options = &params["edit"]["documentChanges"][0]["options"];
        let expected = json!({"overwrite": false, "ignoreIfExists": ignores});
        assert_eq!(*options, expected);
        let path = client.folder.path().join("new.py");
        std::fs::write(&path, "mine = 1\n").unwrap();
        if ignores {
            std::fs::write(&path, edited("mine = 1\n", &params)).unwrap();
            client.connection.reply(id, Ok(json!({"applied": true})));
            let (id, params) = client.next_of("workspace/applyEdit").await;
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, edited(&text, &params)).unwrap();
            client.connection.reply(id, Ok(json!({"applied": true})));
        } else {
            let refused = json!({"applied": false, "failureReason": "it is there"});
            client.connection.reply(id, Ok(refused));
        }
        let told = told(&mut client).await;
        assert!(told.starts_with("Err(Conflict"), "{told}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine = 1\n");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn file_open_under_a_link_is_read_from_its_buffer() {
    let start = scripted(async |scene: RunScript| {
        let index = scene.outside.index.snapshot();
        let prompt = index.read(&file("real/a.py")).unwrap();
        let texts = scene.outside.editor.open_texts().await.unwrap();
        let open = texts.iter().find(|(name, _)| *name == file("real/a.py"));
        scene
            .log
            .event(said(&format!("{}|{}", prompt, open.unwrap().1)));
        for event in crate::samples::asked(&[(1, "real/a.py::f")]) {
            scene.log.event(event);
        }
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    });
    let folder = project();
    linked(folder.path());
    let mut client = client(start, folder);
    client.initialize(full()).await;
    let unsaved = format!("# unsaved\n{BASE}");
    // `a.py` is the link.
    open(&client, &unsaved);
    let run = begin(&client, "x").await;
    assert_eq!(told(&mut client).await, format!("{unsaved}|{unsaved}"));
    while client.next_of("starling/event").await.1["event"]["event"] != "review_asked" {}
    let shown = json!({"run": run, "proposal": 1});
    let shown = client.connection.request("starling/proposal", shown);
    let shown = shown.await.unwrap();
    let shown = &shown["files"][0];
    assert_eq!(shown["before"], unsaved);
    assert_eq!(shown["version"], 1);
    assert_eq!(shown["uri"], client.uri());
}

#[tokio::test]
async fn no_edit_goes_to_a_file_whose_opening_cannot_be_read_until_it_is_opened_again() {
    let mut client = client(editing("a.py"), project());
    client.initialize(full()).await;
    // The message about `a.py` is not taken for one about the file that is open.
    let other = json!({"textDocument": {
        "uri": client.uri().as_str().unwrap().replace("a.py", "b.py"),
        "languageId": "python", "version": 1, "text": "x = 1\n",
    }});
    client.connection.notify("textDocument/didOpen", other);
    for _ in 0..2 {
        let unreadable = json!({"textDocument": {"uri": client.uri(), "text": 1}});
        client.connection.notify("textDocument/didOpen", unreadable);
    }
    begin(&client, "x").await;
    let (_, shown) = client.next_of("window/showMessage").await;
    let message = shown["message"].as_str().unwrap();
    assert!(
        message.contains("a.py, so") && !message.contains("b.py"),
        "{message}"
    );
    let refused = told(&mut client).await;
    assert!(
        refused.contains("open the file (if it is open, close it first)"),
        "{refused}"
    );
    open(&client, BASE);
    begin(&client, "y").await;
    let (_, edit) = client.next_of("workspace/applyEdit").await;
    let document = &edit["edit"]["documentChanges"][0]["textDocument"];
    assert_eq!(document["version"], 1, "{edit}");
}
