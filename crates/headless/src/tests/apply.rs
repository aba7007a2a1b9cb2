//! Edits that a run sends to the headless editor. Each edit names the version of its document. An edit
//! for an older text is refused, and an edit counts as applied only when the new text has arrived.

use std::sync::Arc;

use crate::testing::*;
use starling_core::{ApplyError, CurrentText, DocVersion, EditorError, Effect, FileEdit};
use starling_swarm::sending::{AnnouncedEdit, Purpose, send};
use starling_swarm::{ProposalId, StopReason};
use starling_text::{ByteRange, ChangeSet};

fn edit(base: &CurrentText, from: &str, to: &str) -> FileEdit {
    let after = base.text.replace(from, to);
    FileEdit {
        file: file("a.py"),
        base: base.clone(),
        changes: ChangeSet::between(&base.text, &after),
        label: "a.py::f".to_owned(),
        effect: Effect::Change,
    }
}

/// Replaces `old` in `a.py` by another text. Reports the new version and the new text.
async fn replaces(scene: RunScript) {
    let editor = &scene.outside.editor;
    let base = editor.current(&file("a.py")).await.unwrap();
    let applied = editor.apply(edit(&base, "old", "neu🙂")).await.unwrap();
    scene.log.event(said(&format!("{:?}", applied.version)));
    scene.log.event(said(&applied.text));
    scene.log.event(finished(StopReason::Settled));
}

#[tokio::test]
async fn edit_of_a_closed_file_is_written_to_disk() {
    let folder = folder(&[("a.py", "x = 'ä'\r\nold\r\n")]);
    let editor = editor(&folder, replaces).await;
    let mut run = editor.run(task("go")).await.unwrap();
    let told = story(&mut run).await;
    assert_eq!(told, ["None", "x = 'ä'\r\nneu🙂\r\n"]);
    let disk = std::fs::read_to_string(folder.path().join("a.py")).unwrap();
    assert_eq!(disk, "x = 'ä'\r\nneu🙂\r\n");
}

#[tokio::test]
async fn edit_of_an_open_document_is_applied_and_saved() {
    let folder = folder(&[("a.py", "old old\n")]);
    let editor = editor(&folder, replaces).await;
    editor.open(&file("a.py")).unwrap();
    editor
        .type_text(&file("a.py"), ByteRange::new(0, 0), "# 🙂\n")
        .unwrap();
    let mut run = editor.run(task("go")).await.unwrap();
    let told = story(&mut run).await;
    assert_eq!(told, ["Some(DocVersion(3))", "# 🙂\nneu🙂 neu🙂\n"]);
    let disk = std::fs::read_to_string(folder.path().join("a.py")).unwrap();
    assert_eq!(disk, "# 🙂\nneu🙂 neu🙂\n");
}

#[tokio::test]
async fn edit_of_an_outdated_text_is_rejected_as_stale() {
    let folder = folder(&[("a.py", "old\n")]);
    let editor = editor(&folder, async |scene: RunScript| {
        let editor = &scene.outside.editor;
        let other = CurrentText {
            text: Arc::from("older\n"),
            version: Some(DocVersion(1)),
        };
        let stale = Err(ApplyError::Stale { file: file("a.py") });
        assert_eq!(editor.apply(edit(&other, "old", "new")).await, stale);
        scene.log.event(said("stale"));
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut run = editor.run(task("closed")).await.unwrap();
    assert_eq!(story(&mut run).await, ["stale"]);
    editor.open(&file("a.py")).unwrap();
    let mut run = editor.run(task("open")).await.unwrap();
    assert_eq!(story(&mut run).await, ["stale"]);
    assert_eq!(editor.text(&file("a.py")).unwrap(), "old\n");
}

#[tokio::test]
async fn forbidden_paths_are_neither_read_nor_written() {
    let folder = folder(&[("a.py", "old\n"), (".env", "old\n"), ("conf", "old\n")]);
    let root = folder.path();
    std::os::unix::fs::symlink("/etc/passwd", root.join("out.py")).unwrap();
    std::os::unix::fs::symlink(".env", root.join("notes.txt")).unwrap();
    std::fs::create_dir(root.join(".git")).unwrap();
    std::fs::rename(root.join("conf"), root.join(".git/config")).unwrap();
    let editor = editor(&folder, async |scene: RunScript| {
        let editor = &scene.outside.editor;
        let base = editor.current(&file("a.py")).await.unwrap();
        for name in [".env", "notes.txt", "out.py", ".git/config"] {
            let error = editor.current(&file(name)).await.unwrap_err();
            assert!(matches!(error, EditorError::Forbidden { .. }), "{error}");
            let mut forbidden = edit(&base, "old", "new");
            forbidden.file = file(name);
            let error = editor.apply(forbidden).await.unwrap_err();
            assert!(matches!(error, ApplyError::Forbidden { .. }), "{error}");
        }
        let mut outside = edit(&base, "old", "new");
        outside.file = file("../a.py");
        let error = editor.apply(outside).await.unwrap_err();
        scene.log.event(said(&error.to_string()));
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut run = editor.run(task("go")).await.unwrap();
    let told = story(&mut run).await;
    assert!(told[0].contains("outside the workspace"), "{told:?}");
    for name in [".env", ".git/config"] {
        let disk = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(disk, "old\n", "{name}");
    }
}

#[tokio::test]
async fn one_of_two_concurrent_edits_is_stale() {
    let folder = folder(&[("a.py", "old\n")]);
    let editor = editor(&folder, async |scene: RunScript| {
        let editor = &scene.outside.editor;
        let base = editor.current(&file("a.py")).await.unwrap();
        let (one, two) = tokio::join!(
            editor.apply(edit(&base, "old", "one")),
            editor.apply(edit(&base, "old", "two")),
        );
        // The first edit is applied; the other one refers to a text that no longer exists.
        let (made, other) = match one {
            Ok(made) => (made, two),
            Err(_) => (two.unwrap(), one),
        };
        assert_eq!(other, Err(ApplyError::Stale { file: file("a.py") }));
        scene.log.event(said(&made.text));
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    let mut run = editor.run(task("closed")).await.unwrap();
    let made = story(&mut run).await;
    let disk = std::fs::read_to_string(folder.path().join("a.py")).unwrap();
    assert_eq!(made, [disk.as_str()]);
    assert!(["one\n", "two\n"].contains(&disk.as_str()), "{disk}");
}

/// Creates `pkg/new.py`, deletes it again, and reports both results.
async fn makes_and_deletes(scene: RunScript) {
    let editor = &scene.outside.editor;
    let nothing = CurrentText {
        text: "".into(),
        version: None,
    };
    let made = FileEdit {
        file: file("pkg/new.py"),
        base: nothing,
        changes: ChangeSet::between("", "x = 1\n"),
        label: "pkg/new.py::".to_owned(),
        effect: Effect::Create,
    };
    let after = match editor.apply(made.clone()).await {
        Ok(after) => after,
        Err(error) => {
            scene.log.event(said(&error.to_string()));
            scene.log.event(finished(StopReason::Settled));
            return;
        }
    };
    scene.log.event(said(&after.text));
    let again = editor.apply(made).await.unwrap_err();
    scene.log.event(said(&again.to_string()));
    let gone = FileEdit {
        file: file("pkg/new.py"),
        changes: ChangeSet::between(&after.text, ""),
        base: after,
        label: "undo".to_owned(),
        effect: Effect::Delete,
    };
    let left = editor.apply(gone.clone()).await.unwrap();
    scene.log.event(said(&format!("{left:?}")));
    let twice = editor.apply(gone).await.unwrap_err();
    scene.log.event(said(&twice.to_string()));
    scene.log.event(finished(StopReason::Settled));
}

#[tokio::test]
async fn edits_can_create_and_delete_a_file() {
    let folder = folder(&[("a.py", "")]);
    let editor = editor(&folder, makes_and_deletes).await;
    let mut run = editor.run(task("go")).await.unwrap();
    let stale = "pkg/new.py: the text changed before the edit was applied";
    let left = "CurrentText { text: \"\", version: None }";
    assert_eq!(story(&mut run).await, ["x = 1\n", stale, left, stale]);
    assert!(!folder.path().join("pkg/new.py").exists());
}

#[tokio::test]
async fn deletion_of_a_changed_document_is_stale() {
    let folder = folder(&[("a.py", "x\n")]);
    let editor = editor(&folder, async |scene: RunScript| {
        let editor = &scene.outside.editor;
        let gone = |base: &CurrentText| FileEdit {
            file: file("a.py"),
            changes: ChangeSet::between(&base.text, ""),
            base: base.clone(),
            label: "undo".to_owned(),
            effect: Effect::Delete,
        };
        let current = editor.current(&file("a.py")).await.unwrap();
        let other = CurrentText {
            text: "y\n".into(),
            ..current.clone()
        };
        let stale = editor.apply(gone(&other)).await.unwrap_err();
        scene.log.event(said(&stale.to_string()));
        editor.apply(gone(&current)).await.unwrap();
        let missing = editor.current(&file("a.py")).await.unwrap_err();
        scene.log.event(said(&missing.to_string()));
        scene.log.event(finished(StopReason::Settled));
    })
    .await;
    editor.open(&file("a.py")).unwrap();
    let mut run = editor.run(task("go")).await.unwrap();
    let told = story(&mut run).await;
    assert_eq!(
        told,
        [
            "a.py: the text changed before the edit was applied",
            "a.py: no such file"
        ]
    );
    assert!(!folder.path().join("a.py").exists());
}

/// Deletes `a.py` as a proposal, and then restores it. Reports both results.
async fn deletes_and_restores(scene: RunScript) {
    let (editor, file) = (&scene.outside.editor, file("a.py"));
    let base = editor.current(&file).await.unwrap().text;
    let root = scene.outside.index.snapshot().root().to_owned();
    let intent = AnnouncedEdit {
        log: &scene.log,
        proposal: ProposalId(1),
        symbols: &["a.py::".parse().unwrap()],
        deletes: true,
        root: Some(&root),
        directories: &[],
        dependencies: &Default::default(),
        cancel: &scene.cancel,
        permission: None,
        announced: None,
    };
    let changes = ChangeSet::between(&base, "");
    let sent = send(
        editor,
        &file,
        &base,
        &changes,
        "delete",
        Purpose::Propose(intent),
    )
    .await;
    match sent {
        Err(failure) => scene.log.event(said(failure.why())),
        Ok(sent) => {
            scene.log.event(said(&format!("{:?}", sent.effect)));
            let missing = editor.current(&file).await.unwrap_err();
            scene.log.event(said(&missing.to_string()));
            let inverse = ChangeSet::between("", &base);
            let gone = Arc::from("");
            let restored = send(editor, &file, &gone, &inverse, "undo", Purpose::Restore);
            let restored = restored.await.unwrap();
            scene.log.event(said(&restored.after));
        }
    }
    scene.log.event(finished(StopReason::Settled));
}

#[tokio::test]
async fn file_is_deleted_and_restored_whether_it_is_open_or_closed() {
    for opens in [false, true] {
        let folder = folder(&[("a.py", "x = 'ä'\r\n")]);
        let editor = editor(&folder, deletes_and_restores).await;
        if opens {
            editor.open(&file("a.py")).unwrap();
        }
        let mut run = editor.run(task("go")).await.unwrap();
        let told = story(&mut run).await;
        assert_eq!(told, ["Delete", "a.py: no such file", "x = 'ä'\r\n"]);
        let disk = std::fs::read_to_string(folder.path().join("a.py")).unwrap();
        assert_eq!(disk, "x = 'ä'\r\n");
    }
}

#[tokio::test]
async fn open_document_with_unsaved_text_is_not_deleted() {
    let folder = folder(&[("a.py", "x = 1\n")]);
    let editor = editor(&folder, deletes_and_restores).await;
    editor.open(&file("a.py")).unwrap();
    editor
        .type_text(&file("a.py"), ByteRange::new(0, 0), "# typed\n")
        .unwrap();
    let mut run = editor.run(task("go")).await.unwrap();
    let told = story(&mut run).await;
    assert!(
        told[0].contains("a.py has unsaved changes in the editor"),
        "{told:?}"
    );
    assert_eq!(editor.text(&file("a.py")).unwrap(), "# typed\nx = 1\n");
    assert!(folder.path().join("a.py").exists());
}
