//! The wire protocol: messages between the server and a client that the test plays by hand.

use std::time::Duration;

use serde_json::{Value, json};

use crate::capabilities;
use crate::testing::*;
use starling_core::{ApplyError, CurrentText, Effect, FileEdit};
use starling_rpc::frames::MessageReader;
use starling_rpc::wire;
use starling_server::{ExitKind, RunStarter, serve};
use starling_swarm::StopReason;
use starling_text::{ChangeSet, Encoding};

fn waits_for_cancel() -> RunStarter {
    scripted(async |scene: RunScript| {
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

/// Replaces `old` by `new` and reports the result.
fn replaces() -> RunStarter {
    scripted(async |scene: RunScript| {
        let editor = &scene.outside.editor;
        let base = editor.current(&file("a.py")).await.unwrap();
        let changes = ChangeSet::between(&base.text, &base.text.replace("old", "new"));
        let edit = FileEdit {
            file: file("a.py"),
            base,
            changes,
            label: "a.py::f".to_owned(),
            effect: Effect::Change,
        };
        let told = match editor.apply(edit).await {
            Ok(current) => current.text.to_string(),
            Err(ApplyError::Stale { .. }) => "stale".to_owned(),
            Err(error) => error.to_string(),
        };
        scene.log.event(said(&told));
        scene.log.event(finished(StopReason::Settled));
    })
}

#[tokio::test]
async fn initialize_returns_the_server_capabilities() {
    let client = TestClient::new(waits_for_cancel());
    let answer = client
        .initialize(capabilities(&[Encoding::Utf32, Encoding::Utf16]))
        .await;
    insta::assert_json_snapshot!(answer["capabilities"]);
}

#[tokio::test]
async fn exit_notification_ends_the_server_while_stdin_stays_open() {
    let client = TestClient::new(waits_for_cancel());
    client.initialize(json!({})).await;
    let run = client.execute("starling.run", json!({"task": "x"})).await;
    client
        .connection
        .request("shutdown", Value::Null)
        .await
        .unwrap();
    client.connection.notify("exit", Value::Null);
    let kept_open = client.connection.clone();
    assert_eq!(client.ended().await, ExitKind::AfterShutdown);
    drop((kept_open, run));
}

#[tokio::test]
async fn closing_stdin_ends_the_server() {
    let client = TestClient::new(waits_for_cancel());
    client.initialize(json!({})).await;
    let TestClient {
        connection, server, ..
    } = client;
    drop(connection);
    let ended = tokio::time::timeout(Duration::from_secs(30), server);
    let leave = ended.await.expect("the server goes on").unwrap();
    assert_eq!(leave, ExitKind::Abrupt);
}

#[tokio::test]
async fn cancelling_the_progress_cancels_the_run() {
    let mut client = TestClient::new(waits_for_cancel());
    client
        .initialize(json!({"window": {"workDoneProgress": true}}))
        .await;
    let reply = client
        .execute("starling.run", json!({"task": "tidy\nup"}))
        .await;
    let (id, create) = client.next_of("window/workDoneProgress/create").await;
    client.connection.reply(id, Ok(Value::Null));
    let (_, begin) = client.next_of("$/progress").await;
    assert_eq!(begin["token"], create["token"]);
    assert_eq!(begin["value"]["kind"], "begin");
    assert_eq!(begin["value"]["title"], "Starling: tidy…");
    assert_eq!(begin["value"]["cancellable"], true);
    let token = json!({"token": create["token"]});
    client
        .connection
        .notify("window/workDoneProgress/cancel", token);
    let (_, end) = client.next_of("$/progress").await;
    assert_eq!(end["value"], json!({"kind": "end", "message": "over"}));
    assert!(reply["run"].is_string());
}

#[tokio::test]
async fn edit_is_versioned_and_annotated_if_the_client_supports_it() {
    let mut client = TestClient::new(replaces());
    client
        .initialize(json!({"workspace": {"workspaceEdit": {
            "documentChanges": true, "changeAnnotationSupport": {},
        }}}))
        .await;
    let open = json!({"textDocument": {
        "uri": client.uri(), "languageId": "python", "version": 7, "text": "🙂old\n",
    }});
    client.connection.notify("textDocument/didOpen", open);
    client.execute("starling.run", json!({"task": "x"})).await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    assert_eq!(params["label"], "Starling: a.py::f");
    let change = &params["edit"]["documentChanges"][0];
    assert_eq!(
        change["textDocument"],
        json!({"uri": client.uri(), "version": 7})
    );
    // Columns are UTF-16, because no other encoding was negotiated.
    let range = json!({"start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 5}});
    assert_eq!(
        change["edits"],
        json!([{"range": range, "newText": "new", "annotationId": "a.py::f"}])
    );
    assert_eq!(
        params["edit"]["changeAnnotations"],
        json!({"a.py::f": {"label": "a.py::f", "needsConfirmation": false}})
    );
    // The client sends the new text together with the user's next key press, and never replies to
    // the edit request.
    let change = json!({
        "textDocument": {"uri": client.uri(), "version": 8},
        "contentChanges": [{"range": range, "text": "new"}, {
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
            "text": "#",
        }],
    });
    client.connection.notify("textDocument/didChange", change);
    let (_, told) = client.next_of("starling/event").await;
    assert_eq!(told["event"]["text"], "🙂new\n");
    drop(id);
}

#[tokio::test]
async fn edit_counts_as_applied_only_when_the_client_sends_the_changed_text() {
    let mut client = TestClient::new(replaces());
    client
        .initialize(json!({"workspace": {"workspaceEdit": {"documentChanges": true}}}))
        .await;
    client.execute("starling.run", json!({"task": "x"})).await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, Ok(json!({"applied": true})));
    // The client opens the file only now and sends it with the new text, as VS Code does for a file
    // that was not open.
    let open = json!({"textDocument": {
        "uri": client.uri(), "languageId": "python", "version": 1, "text": "new\n",
    }});
    client.connection.notify("textDocument/didOpen", open);
    let (_, told) = client.next_of("starling/event").await;
    assert_eq!(told["event"]["text"], "new\n");
}

#[tokio::test(start_paused = true)]
async fn edit_is_refused_if_the_client_confirms_it_without_sending_the_text() {
    let mut client = TestClient::new(replaces());
    client
        .initialize(json!({"workspace": {"workspaceEdit": {"documentChanges": true}}}))
        .await;
    let open = json!({"textDocument": {
        "uri": client.uri(), "languageId": "python", "version": 1, "text": "old\n",
    }});
    client.connection.notify("textDocument/didOpen", open);
    client.execute("starling.run", json!({"task": "x"})).await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    client.connection.reply(id, Ok(json!({"applied": true})));
    let (_, told) = client.next_of("starling/event").await;
    let text = told["event"]["text"].as_str().unwrap();
    assert!(
        text.contains("refused") && text.contains("did not arrive"),
        "{text}"
    );
}

/// The client applies the edit only after the server's time limit.
#[tokio::test(start_paused = true)]
async fn edit_applied_after_the_time_limit_is_reverted() {
    for answer in [None, Some(json!({"applied": true}))] {
        let mut client = TestClient::new(replaces());
        client
            .initialize(json!({"workspace": {"workspaceEdit": {"documentChanges": true}}}))
            .await;
        let open = json!({"textDocument": {
            "uri": client.uri(), "languageId": "python", "version": 1, "text": "old\n",
        }});
        client.connection.notify("textDocument/didOpen", open);
        client.execute("starling.run", json!({"task": "x"})).await;
        let (id, _) = client.next_of("workspace/applyEdit").await;
        if let Some(answer) = answer {
            client.connection.reply(id, Ok(answer));
        }
        let (_, told) = client.next_of("starling/event").await;
        let text = told["event"]["text"].as_str().unwrap();
        assert!(text.contains("refused"), "{text}");
        let late = json!({
            "textDocument": {"uri": client.uri(), "version": 2},
            "contentChanges": [{"text": "new\n"}],
        });
        client.connection.notify("textDocument/didChange", late);
        let (_, params) = client.next_of("workspace/applyEdit").await;
        let edit = &params["edit"]["documentChanges"][0];
        assert_eq!(edit["textDocument"]["version"], 2);
        assert_eq!(edit["edits"][0]["newText"], "old");
    }
}

#[tokio::test]
async fn edit_that_the_client_refuses_is_stale_if_the_user_typed_meanwhile() {
    let mut client = TestClient::new(replaces());
    client
        .initialize(json!({"workspace": {"workspaceEdit": {"documentChanges": true}}}))
        .await;
    let open = json!({"textDocument": {
        "uri": client.uri(), "languageId": "python", "version": 1, "text": "old\n",
    }});
    client.connection.notify("textDocument/didOpen", open);
    client.execute("starling.run", json!({"task": "x"})).await;
    let (id, _) = client.next_of("workspace/applyEdit").await;
    let change = json!({
        "textDocument": {"uri": client.uri(), "version": 2},
        "contentChanges": [{"text": "typed\n"}],
    });
    client.connection.notify("textDocument/didChange", change);
    client.connection.reply(id, Ok(json!({"applied": false})));
    let (_, told) = client.next_of("starling/event").await;
    assert_eq!(told["event"]["text"], "stale");
}

#[tokio::test]
async fn client_without_versioned_edits_receives_no_edits() {
    let mut client = TestClient::new(replaces());
    client.initialize(json!({})).await;
    client.execute("starling.run", json!({"task": "x"})).await;
    let (_, told) = client.next_of("starling/event").await;
    let text = told["event"]["text"].as_str().unwrap();
    assert!(text.contains("versioned edits"), "{text}");
}

#[tokio::test]
async fn run_requires_an_open_folder() {
    let client = TestClient::new(waits_for_cancel());
    let params = json!({"capabilities": {}});
    client
        .connection
        .request("initialize", params)
        .await
        .unwrap();
    client.connection.notify("initialized", json!({}));
    let params = json!({"command": "starling.run", "arguments": [{"task": "x"}]});
    let request = client
        .connection
        .request("workspace/executeCommand", params);
    let error = request.await.unwrap_err();
    assert!(error.to_string().contains("open the folder"), "{error}");
}

#[tokio::test]
async fn run_ends_even_if_the_client_reads_no_messages() {
    let (done, is_done) = tokio::sync::oneshot::channel();
    let done = std::sync::Mutex::new(Some(done));
    let start = scripted(move |scene: RunScript| {
        let done = done.lock().unwrap().take().unwrap();
        async move {
            for step in 0..2000 {
                scene
                    .log
                    .event(said(&format!("{step} of a story that nobody reads")));
            }
            scene.log.event(finished(StopReason::Settled));
            done.send(()).unwrap();
        }
    });
    let folder = folder(&[]);
    let trajectories = folder.path().join(".trajectories");
    let (ours, theirs) = tokio::io::duplex(4096);
    let (answers, mut ours) = tokio::io::split(ours);
    let mut answers = MessageReader::new(answers);
    let (input, output) = tokio::io::split(theirs);
    tokio::spawn(serve(input, output, services(start, &trajectories)));
    let root = tower_lsp::lsp_types::Url::from_directory_path(folder.path()).unwrap();
    let params = json!({"rootUri": root, "capabilities": {"experimental": {"starling": {}}}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    wire::write(&mut ours, &hello).await.unwrap();
    answers.next::<Value>().await.unwrap().unwrap().unwrap();
    let params = json!({"command": "starling.run", "arguments": [{"task": "x"}]});
    let execute = "workspace/executeCommand";
    let run = json!({"jsonrpc": "2.0", "id": 2, "method": execute, "params": params});
    let initialized = json!({"jsonrpc": "2.0", "method": "initialized", "params": {}});
    wire::write(&mut ours, &initialized).await.unwrap();
    wire::write(&mut ours, &run).await.unwrap();
    // From here on, the client reads nothing.
    let ended = tokio::time::timeout(Duration::from_secs(30), is_done);
    ended.await.expect("the run waits for its reader").unwrap();
    let written = async {
        loop {
            if let Some(Ok(file)) = std::fs::read_dir(&trajectories)
                .ok()
                .and_then(|mut all| all.next())
                && std::fs::read_to_string(file.path())
                    .unwrap()
                    .lines()
                    .count()
                    == 2001
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let written = tokio::time::timeout(Duration::from_secs(30), written);
    written.await.expect("the trajectory waits for the reader");
}

/// Creates or deletes a file and reports the result.
fn edits_the_file_itself(effect: Effect) -> RunStarter {
    scripted(move |scene: RunScript| async move {
        let editor = &scene.outside.editor;
        let (name, after) = match effect {
            Effect::Create => ("new.py", "x = 1\n"),
            Effect::Change | Effect::Delete => ("a.py", ""),
        };
        let base = editor.current(&file(name)).await;
        let base = base.unwrap_or(CurrentText {
            text: "".into(),
            version: None,
        });
        let edit = FileEdit {
            file: file(name),
            changes: ChangeSet::between(&base.text, after),
            base,
            label: "a.py::f".to_owned(),
            effect,
        };
        let told = match editor.apply(edit).await {
            Ok(current) => format!("{current:?}"),
            Err(error) => error.to_string(),
        };
        scene.log.event(said(&told));
        scene.log.event(finished(StopReason::Settled));
    })
}

fn edits(operations: Value) -> Value {
    json!({"workspace": {"workspaceEdit": {
        "documentChanges": true, "resourceOperations": operations,
    }}})
}

#[tokio::test]
async fn new_file_is_sent_as_a_create_operation_and_a_text_edit() {
    let mut client = TestClient::new(edits_the_file_itself(Effect::Create));
    client.initialize(edits(json!(["create"]))).await;
    client.execute("starling.run", json!({"task": "x"})).await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let changes = &params["edit"]["documentChanges"];
    let uri = changes[0]["uri"].as_str().unwrap().to_owned();
    assert!(uri.ends_with("/new.py"), "{uri}");
    let options = json!({"overwrite": false, "ignoreIfExists": false});
    assert_eq!(
        changes[0],
        json!({"kind": "create", "uri": uri, "options": options})
    );
    assert_eq!(
        changes[1]["textDocument"],
        json!({"uri": uri, "version": null})
    );
    assert_eq!(changes[1]["edits"][0]["newText"], "x = 1\n");
    std::fs::write(client.folder.path().join("new.py"), "x = 1\n").unwrap();
    client.connection.reply(id, Ok(json!({"applied": true})));
    let (_, told) = client.next_of("starling/event").await;
    let text = told["event"]["text"].as_str().unwrap();
    assert!(text.contains("x = 1"), "{text}");
}

#[tokio::test]
async fn client_without_create_support_gets_no_create_operation() {
    let mut client = TestClient::new(edits_the_file_itself(Effect::Create));
    client.initialize(edits(json!(["delete"]))).await;
    client.execute("starling.run", json!({"task": "x"})).await;
    let (_, told) = client.next_of("starling/event").await;
    let text = told["event"]["text"].as_str().unwrap();
    assert!(text.contains("cannot create files"), "{text}");
}

#[tokio::test]
async fn deletion_is_sent_with_the_document_version() {
    let mut client = TestClient::new(edits_the_file_itself(Effect::Delete));
    client.initialize(edits(json!(["delete"]))).await;
    let open = json!({"textDocument": {
        "uri": client.uri(), "languageId": "python", "version": 3, "text": "old\n",
    }});
    client.connection.notify("textDocument/didOpen", open);
    client.execute("starling.run", json!({"task": "x"})).await;
    let (id, params) = client.next_of("workspace/applyEdit").await;
    let expected = json!([
        {"textDocument": {"uri": client.uri(), "version": 3}, "edits": []},
        {"kind": "delete", "uri": client.uri()},
    ]);
    assert_eq!(params["edit"]["documentChanges"], expected);
    let busy = json!({"applied": false, "failureReason": "busy"});
    client.connection.reply(id, Ok(busy));
    let (_, told) = client.next_of("starling/event").await;
    let text = told["event"]["text"].as_str().unwrap();
    assert!(text.contains("refused the edit: busy"), "{text}");
}

#[tokio::test]
async fn closed_file_is_deleted_on_disk_for_a_client_without_delete_support() {
    let mut client = TestClient::new(edits_the_file_itself(Effect::Delete));
    client.initialize(edits(json!(["create"]))).await;
    client.execute("starling.run", json!({"task": "x"})).await;
    let (_, told) = client.next_of("starling/event").await;
    let text = told["event"]["text"].as_str().unwrap();
    assert!(text.contains("text: \"\""), "{text}");
    assert!(!client.folder.path().join("a.py").exists());
}

#[tokio::test]
async fn open_file_stays_if_the_client_cannot_delete_it() {
    let mut client = TestClient::new(edits_the_file_itself(Effect::Delete));
    client.initialize(edits(json!(["create"]))).await;
    let open = json!({"textDocument": {
        "uri": client.uri(), "languageId": "python", "version": 3, "text": "old\n",
    }});
    client.connection.notify("textDocument/didOpen", open);
    client.execute("starling.run", json!({"task": "x"})).await;
    let (_, told) = client.next_of("starling/event").await;
    let text = told["event"]["text"].as_str().unwrap();
    assert!(text.contains("the file is open; close it first"), "{text}");
    assert!(client.folder.path().join("a.py").exists());
}
