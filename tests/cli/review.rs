//! Tests of `starling review`, on runs of the shipped program.

use serde_json::{Value, json};

use super::project::{NEW, OLD, RunningProgram, TestProject};

#[test]
fn proposal_waiting_at_the_end_of_a_run_can_be_reviewed_later_and_undone() {
    let bed = TestProject::new();
    let said = bed.waits(NEW);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out
            .ends_with("1 proposal waits for your review: `starling review`\n"),
        "{said:?}"
    );
    // A skipped proposal still waits, and so does one that nobody answered.
    for line in ["s", "q", ""] {
        let mut command = bed.starling();
        command.arg("review");
        let mut talk = RunningProgram::begin(command);
        talk.hear("[s]kip");
        if !line.is_empty() {
            talk.answer(line);
        }
        drop(talk.child.stdin.take());
        let said = talk.end();
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(
            said.out
                .contains("[a]ccept  [r]eject with a reason  [s]kip"),
            "{said:?}"
        );
        assert!(
            said.out.contains("+    return 2 - 1\n"),
            "the diff: {said:?}"
        );
        assert!(
            said.out.contains("1 proposal waits for your review"),
            "{said:?}"
        );
        assert_eq!(bed.work(), OLD);
    }
    let said = bed.answered(&["review"], &["a"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("✓ #1 changed work.py::f"), "{said:?}");
    assert!(said.out.ends_with("Undo: `starling undo`\n"), "{said:?}");
    assert_eq!(bed.work(), NEW);
    let said = bed.say(&["review"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("is waiting for review"), "{said:?}");
    assert_eq!(bed.say(&["undo", "--yes"]).code, Some(0));
    assert_eq!(bed.work(), OLD);
}

/// The lines of a pipe answer the proposals of one run after the other. The end of the input leaves
/// what has no answer waiting.
#[test]
fn piped_answers_are_used_in_order_and_their_end_leaves_the_rest_waiting() {
    let bed = TestProject::new();
    bed.waits(NEW);
    bed.waits("def f():\n    return 3 - 2\n");
    let piped = |lines: &str| {
        let mut command = bed.starling();
        command.arg("review");
        let mut talk = RunningProgram::begin(command);
        let mut stdin = talk.child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, lines.as_bytes()).unwrap();
        drop(stdin);
        talk.end()
    };
    for lines in ["", "s\n", "s\ns\n", "s\ns\ns\n"] {
        let said = piped(lines);
        assert_eq!(said.code, Some(1), "{lines:?}: {said:?}");
        let waits = "0 of 2 proposals answered, 0 changes applied";
        assert!(said.out.contains(waits), "{lines:?}: {said:?}");
        assert_eq!(bed.work(), OLD, "{lines:?}");
    }
    let said = piped("r no\na\n");
    assert!(said.out.contains("2 of 2 proposals answered"), "{said:?}");
}

#[test]
fn later_review_is_rebased_on_newer_edits_and_reports_conflicts() {
    let bed = TestProject::new();
    bed.waits(NEW);
    bed.type_text("def f():\n    return 1 + 0\n");
    let said = bed.answered(&["review"], &["a", "r no longer wanted"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = "conflict: work.py: both sides changed line 2; it cannot be accepted as it is";
    assert!(said.out.contains(told), "{said:?}");
    assert!(
        said.out.contains("rejected by you: no longer wanted"),
        "{said:?}"
    );
    assert_eq!(bed.work(), "def f():\n    return 1 + 0\n");
    assert!(
        said.out.contains(
            "work.py: both sides changed line 2; take your own change of it back, or reject #1"
        ),
        "{said:?}"
    );
    // The next proposal, with lines typed above its place.
    bed.type_text(OLD);
    bed.waits(NEW);
    bed.type_text(&format!("# mine\n\n{OLD}"));
    let said = bed.answered(&["review", "--json"], &["a"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let kinds: Vec<Value> = said
        .events()
        .iter()
        .map(|one| one["event"]["event"].clone())
        .collect();
    assert_eq!(kinds[0], "review_asked", "{said:?}");
    assert!(kinds.contains(&json!("proposal_applied")), "{said:?}");
    assert_eq!(bed.work(), format!("# mine\n\n{NEW}"));
    bed.type_text(OLD);
    bed.waits(NEW);
    bed.type_text(&format!("# mine\n\n{OLD}"));
    let said = bed.answered(&["review"], &["s"]);
    assert!(
        said.out.contains(" UTC, against an older text of work.py"),
        "{said:?}"
    );
    assert!(said.out.contains("checked at 20"), "{said:?}");
}

#[test]
fn review_reports_that_its_file_was_deleted_or_became_a_link() {
    let bed = TestProject::new();
    bed.waits(NEW);
    let file = bed.root().join("work.py");
    std::fs::rename(&file, bed.root().join("moved.py")).unwrap();
    let said = bed.answered(&["review"], &["a", "s"]);
    assert!(
        said.out.contains(
            "conflict: work.py is gone: it was deleted or renamed since the change was made; put the file \
             back, or reject #1"
        ),
        "{said:?}"
    );
    assert!(!said.out.contains("both sides"), "{said:?}");
    let outside = bed.dir.path().join("outside.py");
    std::fs::write(&outside, OLD).unwrap();
    std::os::unix::fs::symlink(&outside, &file).unwrap();
    let said = bed.answered(&["review"], &["a", "s"]);
    let told = "conflict: work.py may not be read any more, it may be a link now";
    assert!(said.out.contains(told), "{said:?}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), OLD);
}

#[test]
fn review_names_the_program_that_has_the_run_open() {
    let bed = TestProject::new();
    bed.waits(NEW);
    let runs = bed.dir.path().join("cache/runs");
    let trajectory = std::fs::read_dir(&runs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .unwrap();
    let file = std::fs::File::open(&trajectory).unwrap();
    file.try_lock().unwrap();
    let name = trajectory.file_stem().unwrap().to_str().unwrap();
    for args in [&["review"][..], &["review", name]] {
        let said = bed.say(args);
        assert_eq!(said.code, Some(1), "{said:?}");
        let told = format!("run {name}: 1 proposal waits for review, and ");
        assert!(said.out.starts_with(&told), "{said:?}");
        assert!(said.out.contains(" has the run open"), "{said:?}");
    }
    drop(file);
    assert_eq!(bed.answered(&["review"], &["a"]).code, Some(0));
    assert_eq!(bed.work(), NEW);
}
