//! Agents that delete files.

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::*;

const LEGACY: &str =
    "def old(x):\n    return x\n\n\ndef older(x):\n    return old(x)\n\n\nprint(older(1))\n";
const USER: &str = "from legacy import old\n\n\ndef f(x):\n    return old(x)\n";
const TASK: &str = "Delete the module legacy.py, nothing uses it any more";

fn deletes(file: &str) -> Line {
    call("propose", json!({"reason": "unused", "delete": [file]}))
}

/// Returns the applied changes of a run.
fn applied(events: &[Event]) -> Vec<(ProposalId, AppliedChange)> {
    let change = |event: &Event| match event {
        Event::ProposalApplied {
            proposal,
            change: Some(change),
            ..
        } => Some((*proposal, change.clone())),
        _ => None,
    };
    events.iter().filter_map(change).collect()
}

fn bed(files: &[(&str, &str)], model: Scripted) -> Bed {
    Bed::new(files, model)
        .begin(&["legacy.py::"])
        .with(|task| task.text = TASK.to_owned())
        .tests(|_| Vec::new())
}

#[tokio::test(start_paused = true)]
async fn agent_deletes_a_file_and_an_undo_brings_it_back() {
    for name in ["legacy.py", "legacy.py::"] {
        let model = Scripted::native().on("agent legacy.py::", [deletes(name)]);
        let files = [("legacy.py", LEGACY), ("a.py", "x = 1\n")];
        let mut bed = bed(&files, model);
        let handle = bed.start();
        handle.finished().await;
        let events = handle.log.events();
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
        assert!(!bed.path("legacy.py").exists());
        let Some(Event::RunFinished { diff, .. }) = events.last() else {
            panic!()
        };
        assert!(
            diff.starts_with("--- a/legacy.py\n+++ /dev/null\n"),
            "{diff}"
        );
        let [(id, change)] = &applied(&events)[..] else {
            panic!("{events:#?}")
        };
        assert!(change.deleted.is_some() && *change.before == *LEGACY);
        assert_eq!(handle.undo(None).await, Ok(vec![*id]));
        assert_eq!(bed.read("legacy.py"), LEGACY);
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn undo_restores_the_permissions_of_a_deleted_file() {
    use std::os::unix::fs::PermissionsExt;
    let model = Scripted::native().on("agent legacy.py::", [deletes("legacy.py")]);
    let mut bed = bed(&[("legacy.py", LEGACY)], model);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bed.path("legacy.py"), executable).unwrap();
    let handle = bed.start();
    handle.finished().await;
    assert!(!bed.path("legacy.py").exists());
    handle.undo(None).await.unwrap();
    let mode = bed.path("legacy.py").metadata().unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o755);
}

#[tokio::test(start_paused = true)]
async fn undo_of_a_deletion_leaves_a_new_file_of_that_name() {
    let model = Scripted::native().on("agent legacy.py::", [deletes("legacy.py")]);
    let mut bed = bed(&[("legacy.py", LEGACY)], model);
    let handle = bed.start();
    handle.finished().await;
    std::fs::write(bed.path("legacy.py"), "mine = 1\n").unwrap();
    let refused = handle.undo(None).await.unwrap_err().to_string();
    assert!(
        refused.contains("there is a new file of this name"),
        "{refused}"
    );
    assert_eq!(bed.read("legacy.py"), "mine = 1\n");
    std::fs::write(bed.path("legacy.py"), LEGACY).unwrap();
    assert!(matches!(handle.undo(None).await, Err(UndoError::Gone(_))));
}

#[tokio::test(start_paused = true)]
async fn file_that_the_user_changed_meanwhile_is_not_deleted() {
    let model = Scripted::native().on("agent legacy.py::", [deletes("legacy.py"), finish("stop")]);
    let mut bed = bed(&[("legacy.py", LEGACY)], model);
    let typed = format!("{LEGACY}# note\n");
    *bed.editor.typing.lock().unwrap() = Some(("legacy.py".to_owned(), typed.clone()));
    let events = bed.run().await;
    assert_eq!(bed.read("legacy.py"), typed);
    let is_conflict = |event: &Event| matches!(event, Event::ProposalConflicted { .. });
    assert!(events.iter().any(is_conflict), "{events:#?}");
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    assert!(
        headline.contains("`legacy.py` is still there"),
        "{headline}"
    );
}

#[tokio::test(start_paused = true)]
async fn imported_module_is_deleted_only_together_with_its_imports() {
    let files = [("legacy.py", LEGACY), ("a.py", USER)];
    let alone = Scripted::native()
        .on("agent legacy.py::", [deletes("legacy.py")])
        .always("agent", finish("nothing"));
    let mut bed_alone = bed(&files, alone);
    let events = bed_alone.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    assert_eq!(bed_alone.read("legacy.py"), LEGACY);

    let without_import = call(
        "propose",
        json!({"reason": "r", "hunks": [{"old": "from legacy import old\n\n\n", "new": ""}]}),
    );
    let both = Scripted::native()
        .on("agent legacy.py::", [deletes("legacy.py")])
        .on("agent a.py::", [without_import])
        .on("agent a.py::f", [whole("def f(x):\n    return x\n")])
        .always("agent", finish("nothing"));
    let mut bed = bed(&files, both);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(!bed.path("legacy.py").exists());
    assert_eq!(bed.read("a.py"), "def f(x):\n    return x\n");
}

#[tokio::test(start_paused = true)]
async fn module_without_definitions_is_deleted_only_together_with_its_imports() {
    let files = [
        ("legacy.py", "RATE = 2\n"),
        (
            "a.py",
            "import legacy\n\n\ndef f(x):\n    return x * legacy.RATE\n",
        ),
    ];
    let model = Scripted::native()
        .on("agent legacy.py::", [deletes("legacy.py")])
        .always("agent", finish("nothing"));
    let mut bed = bed(&files, model);
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    assert!(bed.path("legacy.py").exists());
}

#[tokio::test(start_paused = true)]
async fn module_that_a_script_runs_is_not_deleted() {
    for (file, text) in [
        ("run.sh", "#!/bin/sh\npython legacy.py --all\n"),
        ("Makefile", "all:\n\tpython -m legacy\n"),
        (
            "a.py",
            "import subprocess\n\nsubprocess.run([\"python\", \"legacy.py\"])\n",
        ),
    ] {
        let model = Scripted::native()
            .on("agent legacy.py::", [deletes("legacy.py")])
            .always("agent", finish("nothing"));
        let mut bed = bed(&[("legacy.py", LEGACY), (file, text)], model);
        let events = bed.run().await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::NotDone, "{file}: {headline}");
        assert_eq!(bed.read("legacy.py"), LEGACY);
    }
    let model = Scripted::native().on("agent legacy.py::", [deletes("legacy.py")]);
    let mut bed = bed(
        &[("legacy.py", LEGACY), ("README.md", "legacy.py is old.\n")],
        model,
    );
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn deletion_with_other_changes_of_the_file_is_refused() {
    let both = call(
        "propose",
        json!({"reason": "r", "delete": ["legacy.py"], "imports": ["import os"]}),
    );
    let model = Scripted::native().on("agent legacy.py::", [both, finish("stop")]);
    let mut bed = bed(&[("legacy.py", LEGACY)], model);
    let events = bed.run().await;
    assert_eq!(bed.read("legacy.py"), LEGACY);
    let why = malformed(&events).join("\n");
    assert!(why.contains("deletes the file: give it alone"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_function_does_not_delete_its_file() {
    let model = Scripted::native().on(
        "agent legacy.py::old",
        [deletes("legacy.py"), finish("stop")],
    );
    let mut bed = bed(&[("legacy.py", LEGACY)], model).begin(&["legacy.py::old"]);
    let events = bed.run().await;
    assert_eq!(bed.read("legacy.py"), LEGACY);
    let why = malformed(&events).join("\n");
    assert!(why.contains("legacy.py is not your symbol"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn emptied_file_is_deleted_if_the_task_asks_for_its_deletion() {
    let emptied = call(
        "propose",
        json!({"reason": "r", "hunks": [{"old": "RATE = 2\n", "new": ""}]}),
    );
    let model = Scripted::native().on("agent legacy.py::", [emptied]);
    let mut bed = bed(&[("legacy.py", "RATE = 2\n")], model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(!bed.path("legacy.py").exists());
}

#[tokio::test(start_paused = true)]
async fn document_is_deleted_by_its_name_or_by_an_empty_text() {
    for change in [
        json!({"reason": "r", "source": "", "intended_losses": true}),
        json!({"reason": "r", "delete": ["notes.txt"]}),
    ] {
        let model = Scripted::native()
            .on("scout", [wake(&["notes.txt::"])])
            .on("agent notes.txt", [call("propose", change)]);
        let files = [("a.py", "x = 1\n"), ("notes.txt", "to do\n")];
        let mut bed =
            Bed::new(&files, model).with(|task| task.text = "Delete the file notes.txt".to_owned());
        let events = bed.run().await;
        assert!(!bed.path("notes.txt").exists(), "{events:#?}");
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    }
}

const TEST: &str = "from m import f\n\n\ndef test_f():\n    assert f(1) == 2\n";

/// Runs an agent that deletes a failing test.
async fn delete_red_test(text: &str) -> (Bed, Vec<Event>) {
    let files = [("m.py", "def f(x):\n    return x\n"), ("test_m.py", TEST)];
    let model = Scripted::native()
        .on("agent test_m.py::", [deletes("test_m.py"), finish("stop")])
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&files, model)
        .begin(&["test_m.py::"])
        .with(|task| task.text = text.to_owned())
        .tests(|all| match all.contains("def test_f") {
            true => vec![("test_m.py::test_f".to_owned(), "assert 1 == 2".to_owned())],
            false => Vec::new(),
        });
    bed.lists = true;
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn failing_test_is_not_deleted_unless_the_task_asks_for_it() {
    let (bed, events) = delete_red_test("Make the failing test of f pass").await;
    assert_eq!(bed.read("test_m.py"), TEST, "{events:#?}");
    assert_ne!(stop(&events), StopReason::Settled);
    let (bed, events) = delete_red_test("Delete the file test_m.py").await;
    assert!(!bed.path("test_m.py").exists(), "{events:#?}");
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn module_is_deleted_with_its_tests_only_if_the_task_asks_for_both() {
    let test = "from legacy import old\n\n\ndef test_old():\n    assert old(1) == 1\n";
    let files = [("legacy.py", LEGACY), ("test_legacy.py", test)];
    for (task, may) in [
        (
            "Delete the file legacy.py and the file test_legacy.py",
            true,
        ),
        ("Delete the module legacy.py and its tests", true),
        ("Delete the module legacy.py", false),
    ] {
        let deletes = |file: &str, more: bool| {
            let symbol = format!("{file}::");
            let delete = json!({"reason": "r", "symbol": symbol, "delete": [file], "more": more});
            call("propose", delete)
        };
        let both = [
            call(
                "read",
                json!({"symbols": ["legacy.py::", "test_legacy.py::"]}),
            ),
            deletes("legacy.py", true),
            deletes("test_legacy.py", false),
            finish("done"),
        ];
        let mut bed = bed(&files, Scripted::native().on("solo", both)).begin(&[]);
        bed.task.driver = Driver::Single;
        bed.task.text = task.to_owned();
        bed.lists = true;
        let events = bed.run().await;
        let is_gone = |file: &str| !bed.path(file).exists();
        assert_eq!(is_gone("legacy.py"), may, "{task}: {events:#?}");
        assert_eq!(is_gone("test_legacy.py"), may, "{task}: {events:#?}");
        assert_eq!(
            stop(&events) == StopReason::Settled,
            may,
            "{task}: {events:#?}"
        );
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn guarded_linked_and_unlisted_files_are_not_deleted() {
    for file in ["link.py", "Makefile", ".gitignore"] {
        let symbol = format!("{file}::");
        let propose = json!({"reason": "r", "symbol": symbol, "delete": [file]});
        let model = Scripted::native().on("agent a.py::", [call("propose", propose), finish("n")]);
        let files = [
            ("a.py", "x = 1\n"),
            ("Makefile", "all:\n"),
            (".gitignore", "b\n"),
        ];
        let mut bed = Bed::new(&files, model).begin(&["a.py::"]);
        std::os::unix::fs::symlink("a.py", bed.path("link.py")).unwrap();
        bed.run().await;
        assert!(bed.path(file).symlink_metadata().is_ok(), "{file}");
    }
}

#[tokio::test(start_paused = true)]
async fn reviewer_sees_the_deletion_as_a_diff_to_dev_null() {
    let model = Scripted::native()
        .on("agent legacy.py::", [deletes("legacy.py")])
        .always("agent", finish("nothing"));
    let mut bed = bed(&[("legacy.py", LEGACY)], model).with(|task| {
        task.approval = Approval::Ask;
    });
    let events = bed.run().await;
    assert!(!bed.path("legacy.py").exists(), "{events:#?}");
    let asked = events.iter().find_map(|event| match event {
        Event::ReviewAsked { parts, diff, .. } => Some((parts.clone(), diff.clone())),
        _ => None,
    });
    let (parts, diff) = asked.unwrap();
    assert!(parts[0].deleted, "{parts:?}");
    assert!(
        diff.starts_with("--- a/legacy.py\n+++ /dev/null\n"),
        "{diff}"
    );
}

#[tokio::test(start_paused = true)]
async fn scout_hands_the_deletion_of_a_file_to_its_owner() {
    let pick = json!({"symbol": "legacy.py::", "why": "unused", "delete": ["legacy.py"]});
    let model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": [pick]}))])
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&[("legacy.py", LEGACY), ("a.py", "x = 1\n")], model)
        .with(|task| task.text = TASK.to_owned())
        .tests(|_| Vec::new());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(!bed.path("legacy.py").exists());
}
