//! Tests of the program when the reader of its output goes away.

use std::process::Stdio;

use serde_json::Value;

use super::project::{CommandResult, NEW, OLD, RunningProgram, TestProject};

/// Runs a command whose stdout or stderr nobody reads.
fn unread(bed: &TestProject, args: &[&str], stdout: bool, stderr: bool) -> CommandResult {
    let mut child = bed
        .starling()
        .args(args)
        .env("STARLING_LOG", "info")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if stdout {
        drop(child.stdout.take());
    }
    if stderr {
        drop(child.stderr.take());
    }
    CommandResult::of(&child.wait_with_output().unwrap())
}

#[test]
fn run_goes_on_to_its_end_when_its_output_is_closed() {
    for (stdout, stderr) in [(true, false), (false, true), (true, true)] {
        for json in [false, true] {
            let bed = TestProject::new();
            let model = bed.tape(&[NEW]);
            let mut args = vec!["run", "--approve", "auto", "--model", &model, "Simplify f."];
            args.extend(json.then_some("--json"));
            let said = unread(&bed, &args, stdout, stderr);
            assert_eq!(said.code, Some(0), "{stdout} {stderr} {json}: {said:?}");
            assert_eq!(bed.work(), NEW, "{stdout} {stderr} {json}: {said:?}");
        }
    }
}

/// Runs a command whose stdout is a full disk.
#[cfg(target_os = "linux")]
fn on_full_disk(bed: &TestProject, args: &[&str]) -> CommandResult {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = bed.starling();
    let output = command.args(args).stdout(full.unwrap()).output();
    CommandResult::of(&output.unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn end_of_a_run_and_of_an_undo_is_on_stderr_if_stdout_cannot_be_written() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let args = ["run", "--json", "--approve", "auto", "--model", &model];
    let said = on_full_disk(&bed, &[&args as &[&str], &["Simplify f."]].concat());
    assert_eq!(bed.work(), NEW);
    assert_eq!(said.code, Some(4), "{said:?}");
    for part in [
        "stdout cannot be written: No space left",
        "Done: ",
        "changed",
    ] {
        assert!(said.err.contains(part), "no {part:?}: {said:?}");
    }
    let said = on_full_disk(&bed, &["undo", "--yes", "--json"]);
    assert_eq!(bed.work(), OLD);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.err.contains("taken back"), "{said:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn run_and_undo_change_nothing_if_stdout_cannot_be_written_from_the_start() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let args = ["run", "--approve", "auto", "--model", &model, "Simplify f."];
    let unchanged = |args: &[&str], text: &str| {
        let said = on_full_disk(&bed, args);
        assert_eq!(bed.work(), text);
        assert_eq!(said.code, Some(1), "{said:?}");
        let told = "nothing was changed: stdout cannot be written: No space left";
        assert!(said.err.contains(told), "{said:?}");
    };
    unchanged(&args, OLD);
    assert_eq!(bed.say(&args).code, Some(0));
    unchanged(&["undo", "--yes"], NEW);
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!((said.code, bed.work().as_str()), (Some(0), OLD), "{said:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn session_of_a_question_is_kept_if_stdout_cannot_be_written() {
    let bed = TestProject::new();
    let model = super::ask::told(&bed, &["`f` gives one [work.py:2]."]);
    let args = ["ask", "--session", "one.json", "--model", &model];
    let question = "What does `f` return in work.py?";
    let said = on_full_disk(&bed, &[&args as &[&str], &[question]].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
    let text = std::fs::read_to_string(bed.root().join("one.json")).unwrap();
    let session: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(session["turns"][0]["question"], question);
}

#[test]
fn run_goes_on_to_its_end_when_the_reader_stops_early() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--approve", "auto", "--model", &model, "Simplify f."]);
    let mut program = RunningProgram::begin(command);
    program.hear("tests before");
    let RunningProgram { child, out, .. } = program;
    drop(out);
    let said = CommandResult::of(&child.wait_with_output().unwrap());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_eq!(bed.work(), NEW);
}

#[test]
fn run_stops_at_a_question_that_nobody_can_see() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &model, "Simplify f."]);
    let RunningProgram { mut child, out, .. } = RunningProgram::begin(command);
    drop(out);
    // An answer could still come.
    let stdin = child.stdin.take();
    let said = CommandResult::of(&child.wait_with_output().unwrap());
    drop(stdin);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("stdout is closed"), "{said:?}");
    assert_eq!(bed.work(), OLD);
}

#[test]
fn commands_that_print_end_quietly_when_their_output_is_closed() {
    let bed = TestProject::new();
    for args in [
        &["undo", "--list"] as &[&str],
        &["undo", "--list", "--json"],
        &["undo"],
        &["review"],
        &["trust", "--list"],
        &["trust"],
        &["models", "list"],
        &["config", "explain"],
        &["config", "explain", "--json"],
        &["index"],
        &["locate", "f"],
        &["init"],
        &["help"],
    ] {
        let code = bed.say(args).code;
        std::fs::remove_file(bed.dir.path().join("config/starling/config.toml")).ok();
        for (stdout, stderr) in [(true, false), (false, true)] {
            let said = unread(&bed, args, stdout, stderr);
            assert_eq!(said.code, code, "{args:?}: {said:?}");
            assert!(!said.err.contains("panicked"), "{args:?}: {said:?}");
            std::fs::remove_file(bed.dir.path().join("config/starling/config.toml")).ok();
        }
    }
}

#[test]
fn undo_takes_everything_back_when_its_output_is_closed() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let args = ["run", "--approve", "auto", "--model", &model, "Simplify f."];
    assert_eq!(bed.say(&args).code, Some(0));
    let said = unread(&bed, &["undo", "--yes"], true, true);
    assert_eq!((said.code, bed.work().as_str()), (Some(0), OLD));
}
