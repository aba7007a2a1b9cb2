//! Document sync: the server's text equals the editor's text.

use serde_json::json;

use crate::testing::*;
use crate::{HeadlessEditor, capabilities};
use starling_swarm::StopReason;
use starling_text::{ByteRange, Encoding};

const TEXT: &str = "# 🙂 grüße\r\ndef f():\r\n    return \"🧵\"\rlast";

/// Returns a run that reports the text of `a.py` twice: as the editor interface returns it, and
/// from the snapshot of the run.
fn tells_text() -> starling_server::RunStarter {
    scripted(async |scene: RunScript| {
        let current = scene.outside.editor.current(&file("a.py")).await.unwrap();
        scene.log.event(said(&current.text));
        let snapshot = scene.outside.index.snapshot().read(&file("a.py")).unwrap();
        scene.log.event(said(&snapshot));
        scene.log.event(finished(StopReason::Settled));
    })
}

async fn editor_with(folder: &tempfile::TempDir, encoding: Encoding) -> HeadlessEditor {
    let services = services(tells_text(), &folder.path().join(".trajectories"));
    HeadlessEditor::start_as(services, folder.path(), capabilities(&[encoding]))
        .await
        .unwrap()
}

async fn server_text(editor: &HeadlessEditor) -> String {
    let mut run = editor.run(task("tell")).await.unwrap();
    let texts = story(&mut run).await;
    assert_eq!(texts[0], texts[1], "the snapshot is the buffers' text");
    texts.into_iter().next().unwrap()
}

#[tokio::test]
async fn document_edits_arrive_in_every_position_encoding() {
    for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
        let folder = folder(&[("a.py", TEXT)]);
        let editor = editor_with(&folder, encoding).await;
        editor.open(&file("a.py")).unwrap();
        let mut expected = TEXT.to_owned();
        let at = |text: &str, what: &str| {
            let start = text.find(what).unwrap();
            ByteRange::new(start, start + what.len())
        };
        for (what, insert) in [
            ("grüße", "𝔤𝔯ü🧵🧵"),
            ("🧵\"", "x\"  # 🙂"),
            ("\r\ndef f", "\n\r\ndef 🙂g"),
            ("last", ""),
            ("return", "yield\r\n    return"),
        ] {
            let range = at(&expected, what);
            editor.type_text(&file("a.py"), range, insert).unwrap();
            expected.replace_range(range.start..range.end, insert);
        }
        assert_eq!(server_text(&editor).await, expected, "{encoding:?}");
        assert_eq!(editor.text(&file("a.py")).unwrap(), expected);
        editor.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn byte_order_mark_is_no_part_of_the_text_and_stays_in_the_file() {
    let folder = folder(&[("a.py", "\u{feff}x = 1\r\n")]);
    let editor = editor_with(&folder, Encoding::Utf16).await;
    assert_eq!(server_text(&editor).await, "x = 1\r\n");
    editor.open(&file("a.py")).unwrap();
    assert_eq!(server_text(&editor).await, "x = 1\r\n");
    let start = ByteRange::new(0, 0);
    editor.type_text(&file("a.py"), start, "y = 2\r\n").unwrap();
    editor.save(&file("a.py")).unwrap();
    let on_disk = std::fs::read_to_string(folder.path().join("a.py")).unwrap();
    assert_eq!(on_disk, "\u{feff}y = 2\r\nx = 1\r\n");
    editor.shutdown().await.unwrap();
}

#[tokio::test]
async fn closed_document_has_the_text_on_disk() {
    let folder = folder(&[("a.py", "disk\n")]);
    let editor = editor_with(&folder, Encoding::Utf16).await;
    assert_eq!(server_text(&editor).await, "disk\n");
    let a = file("a.py");
    editor.open(&a).unwrap();
    editor
        .type_text(&a, ByteRange::new(0, 4), "buffer")
        .unwrap();
    assert_eq!(server_text(&editor).await, "buffer\n");
    editor.close(&a).unwrap();
    assert_eq!(server_text(&editor).await, "disk\n");
    editor.open(&a).unwrap();
    editor.type_text(&a, ByteRange::new(0, 4), "saved").unwrap();
    editor.save(&a).unwrap();
    editor.close(&a).unwrap();
    assert_eq!(server_text(&editor).await, "saved\n");
}

#[tokio::test]
async fn change_without_a_range_replaces_the_whole_text() {
    let folder = folder(&[("a.py", "old\n")]);
    let editor = editor_with(&folder, Encoding::Utf16).await;
    editor.open(&file("a.py")).unwrap();
    let uri = tower_lsp::lsp_types::Url::from_file_path(folder.path().join("a.py")).unwrap();
    editor.connection().notify(
        "textDocument/didChange",
        json!({
            "textDocument": {"uri": uri, "version": 9},
            "contentChanges": [{"text": "new\n"}, {
                "range": {"start": {"line": 0, "character": 99}, "end": {"line": 7, "character": 0}},
                "text": "er",
            }],
        }),
    );
    assert_eq!(server_text(&editor).await, "newer");
}

/// Sends 2,000 messages of two kinds without waiting. Each run must see exactly the changes that
/// were sent before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_and_run_requests_keep_their_order() {
    let folder = folder(&[("a.py", "")]);
    let editor = editor_with(&folder, Encoding::Utf8).await;
    let a = file("a.py");
    editor.open(&a).unwrap();
    let mut runs = Vec::new();
    for batch in 0..100 {
        for step in 0..19 {
            let text = editor.text(&a).unwrap();
            let end = ByteRange::new(text.len(), text.len());
            editor
                .type_text(&a, end, &format!("{batch}.{step}\n"))
                .unwrap();
        }
        let before = editor.text(&a).unwrap();
        let params = json!({"command": "starling.run", "arguments": [task("tell")]});
        let connection = editor.connection();
        let request = connection.request("workspace/executeCommand", params);
        runs.push((before, request));
    }
    for (before, request) in runs {
        let reply: starling_server::protocol::RunReply =
            serde_json::from_value(request.await.unwrap()).unwrap();
        let mut run = editor.follow(reply).unwrap();
        // The second text comes from the snapshot, which is taken when the run starts. The first
        // one comes from the editor interface, which always returns the current text.
        let texts = story(&mut run).await;
        assert_eq!(texts[1], before);
    }
}
