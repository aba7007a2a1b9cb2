//! The task and the answers of a user who writes them to standard input.

use super::project::{NEW, OLD, RunningProgram, TestProject};

#[test]
fn task_can_be_read_from_stdin() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--json", "--approve", "auto", "--model", &tape, "-"]);
    let mut talk = RunningProgram::begin(command);
    talk.answer("tidy f up,\nbut not slower");
    drop(talk.child.stdin.take());
    let said = talk.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let task = &said.events()[0]["event"]["task"];
    let task = task.as_str().unwrap().trim_end();
    assert_eq!(task, "tidy f up,\nbut not slower");
}

#[test]
fn review_without_a_terminal_is_refused_before_the_run() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "--approve", "ask", "tidy f up"]);
    command.stdin(std::process::Stdio::null());
    let out = command.output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{err}");
    let told = "there is no terminal to ask you on: use --approve auto or --approve proxy";
    assert!(
        err.contains(told) && !err.contains("read from stdin"),
        "{err}"
    );
}

#[test]
fn run_is_stopped_if_its_question_cannot_be_answered() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "tidy f up"]);
    let mut talk = RunningProgram::begin(command);
    drop(talk.child.stdin.take());
    let said = talk.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("your answers cannot be"), "{said:?}");
    assert!(!said.out.contains("Ctrl-C"), "{said:?}");
    assert!(
        said.out.contains("\nStopped by you; nothing was changed\n"),
        "{said:?}"
    );
    assert_eq!(bed.work(), OLD, "nothing is applied without leave");
}

#[test]
fn answers_are_read_as_lines() {
    let bed = TestProject::new();
    let tape = bed.tape(&["def f():\n    return 3 - 2\n", NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "tidy f up"]);
    let mut talk = RunningProgram::begin(command);
    talk.hear("[a]ccept");
    talk.answer("what?");
    talk.hear("[a]ccept");
    talk.answer("r too clever");
    talk.hear("rejected by you: too clever");
    talk.hear("[a]ccept");
    assert_eq!(bed.work(), OLD, "before the answer");
    talk.answer("a");
    let said = talk.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("REPLAY"), "{said:?}");
    assert!(
        said.out.contains("+    return 2 - 1\n"),
        "the diff: {said:?}"
    );
    assert!(
        !said.out.contains('\u{1b}'),
        "no colours in a pipe: {said:?}"
    );
    assert!(
        said.out.contains("\nDone: 1 test passes as before\n"),
        "{said:?}"
    );
    assert_eq!(bed.work(), NEW);
}

#[test]
fn answers_piped_ahead_of_their_questions_are_kept() {
    let bed = TestProject::new();
    let tape = bed.tape(&["def f():\n    return 3 - 2\n", NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "tidy f up"]);
    let mut talk = RunningProgram::begin(command);
    talk.write("r too clever\ny\n");
    drop(talk.child.stdin.take());
    let said = talk.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("rejected by you: too clever"), "{said:?}");
    assert_eq!(bed.work(), NEW);
}

#[test]
fn answers_are_read_as_lines_with_json_output() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--json", "--model", &tape, "tidy f up"]);
    let mut talk = RunningProgram::begin(command);
    talk.hear("\"event\":\"review_asked\"");
    talk.answer("q");
    let said = talk.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    let events = said.events();
    let last = &events[events.len() - 1]["event"];
    assert_eq!(last["stop_reason"]["reason"], "cancelled");
    assert_eq!(bed.work(), OLD);
}

#[test]
fn run_with_approval_ask_and_no_stdin_is_rejected_before_any_model_call() {
    let bed = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_starling"))
        .args([
            "run",
            "--approve",
            "ask",
            "--model",
            "openai:nobody",
            "--repo",
        ])
        .arg(bed.path())
        .arg("do it")
        .env("STARLING_CACHE_DIR", bed.path().join("cache"))
        .env("XDG_CONFIG_HOME", bed.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("--approve auto"),
        "{output:?}"
    );
}
