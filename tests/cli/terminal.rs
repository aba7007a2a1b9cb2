//! Tests of the program in a pseudo terminal.

use std::process::Command;

use super::project::{CommandResult, NEW, OLD, TestProject};

/// Runs a program in a pseudo terminal that reports 0 columns, and copies its output. Types the
/// second argument when the program asks a question.
const IN_TERMINAL: &str = r#"
import os, pty, signal, sys
signal.alarm(120)
typed, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
seen = b""
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    seen += data
    if typed and b"[a]ccept" in seen:
        os.write(terminal, typed.encode())
        typed = ""
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Runs `script`, which starts Starling with `args` in a pseudo terminal and types `typed`.
fn python(bed: &TestProject, script: &str, typed: &[&str], args: &[&str]) -> Command {
    let mut command = Command::new("python3");
    let starling = bed.starling();
    for (name, value) in starling.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .current_dir(bed.root())
        .env_remove("NO_COLOR")
        .args(["-c", script])
        .args(typed)
        .arg(starling.get_program())
        .args(args);
    command
}

fn in_terminal(bed: &TestProject, term: &str, typed: &str, args: &[&str]) -> CommandResult {
    let mut command = python(bed, IN_TERMINAL, &[typed], args);
    CommandResult::of(&command.env("TERM", term).output().unwrap())
}

#[test]
fn dumb_terminal_uses_plain_lines_for_output_and_answers() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let args = ["run", "--model", model.as_str(), "Simplify f."];
    let output = python(&bed, TYPE, &["", QUESTION, "?\na\n", ""], &args)
        .env("TERM", "dumb")
        .output();
    let said = CommandResult::of(&output.unwrap());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        !said.out.contains('\u{1b}'),
        "no colour, no movement: {said:?}"
    );
    assert!(
        said.out
            .contains("  s       steer: type what to do instead"),
        "{said:?}"
    );
    let enter = "press Enter after each key";
    assert_eq!(said.out.matches(enter).count(), 1, "{said:?}");
    assert!(said.out.contains("#1 accepted by you"), "{said:?}");
    assert_eq!(bed.work(), NEW);
}

#[test]
fn line_typed_as_the_question_appears_accepts_nothing_in_a_dumb_terminal() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let args = ["run", "--model", model.as_str(), "Simplify f."];
    let said = in_terminal(&bed, "dumb", "a\nq\n", &args);
    assert!(
        said.out.contains("line ignored: it was typed before"),
        "{said:?}"
    );
    assert_eq!(bed.work(), OLD, "{said:?}");
}

#[test]
fn rejection_reason_that_starts_with_a_is_not_read_as_accept_in_a_dumb_terminal() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let args = ["run", "--model", model.as_str(), "Simplify f."];
    let said = in_terminal(&bed, "dumb", "r\na plain 1 is nicer\nq\n", &args);
    assert!(
        said.out.contains("#1 rejected by you: a plain 1 is nicer"),
        "{said:?}"
    );
    assert_eq!(bed.work(), OLD, "{said:?}");
}

#[test]
fn terminal_replies_accept_nothing() {
    for string in [
        "\u{1b}_Ga\u{1b}\\",
        "\u{9f}Ga",
        "\u{1b}[>1a",
        "\u{1b}a",
        "\u{1b}[200~x\u{1b}[201~a",
    ] {
        let bed = TestProject::new();
        let model = bed.tape(&[NEW]);
        let args = ["run", "--model", model.as_str(), "Simplify f."];
        // Sent one second after the question, then Ctrl-C three seconds later.
        let output = python(&bed, TYPE, &["", QUESTION, string, "\u{3}"], &args)
            .env("TERM", "xterm")
            .output();
        let said = CommandResult::of(&output.unwrap());
        assert_eq!(bed.work(), OLD, "{string:?}: {said:?}");
        assert!(said.out.contains("Stopped by you"), "{string:?}: {said:?}");
    }
}

#[test]
fn terminal_without_a_size_is_treated_as_80_columns() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let args = [
        "run",
        "--approve",
        "auto",
        "--model",
        model.as_str(),
        "Simplify f.",
    ];
    let said = in_terminal(&bed, "xterm", "", &args);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains('\u{1b}'), "it is drawn over: {said:?}");
    // In a narrow terminal, the line would be truncated or wrapped.
    assert!(said.out.contains(" 0 calls · 0 tokens · 0 s"), "{said:?}");
    let text = said.out.replace("\u{1b}[0m", "").replace("\u{1b}[1m", "");
    assert!(text.contains("tests before: "), "{text}");
}

#[test]
fn keys_typed_as_the_question_appears_are_ignored_but_control_c_stops() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let args = ["run", "--model", model.as_str(), "Simplify f."];
    let said = in_terminal(&bed, "xterm", "bad\r\u{3}", &args);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out.contains("key ignored: the question just appeared"),
        "{said:?}"
    );
    assert!(said.out.contains("Stopped by you"), "{said:?}");
    assert_eq!(bed.work(), OLD);
}

/// Types a text before the program starts, and two others one and two seconds after a mark appears.
const TYPE: &str = r#"
import os, pty, signal, sys, threading
signal.alarm(60)
ahead, mark, first, second, *command = sys.argv[1:]
start, started = os.pipe()
pid, terminal = pty.fork()
if pid == 0:
    os.read(start, 1)
    os.execv(command[0], command)
os.write(terminal, ahead.encode())
os.write(started, b"x")
seen, is_timed = b"", False
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    seen += data
    if not is_timed and mark.encode() in seen:
        is_timed = True
        for seconds, text in [(1, first), (2, second)]:
            if text:
                threading.Timer(seconds, os.write, (terminal, text.encode())).start()
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

fn typed_ahead(bed: &TestProject, term: &str, typed: &[&str; 4], args: &[&str]) -> CommandResult {
    let output = python(bed, TYPE, typed, args).env("TERM", term).output();
    CommandResult::of(&output.unwrap())
}

/// The keys at the question about a proposal.
const QUESTION: &str = "[a]ccept";

/// Message about keys that were typed before a question.
const DROPPED: &str = "keys ignored: they were typed before the question could be read";

#[test]
fn lines_typed_ahead_do_not_trust_a_project() {
    for ahead in ["y\r", "ls\ry\r", "make y\ry\r"] {
        let bed = TestProject::new();
        let config = "[tests]\ncommand = \"true\"\n";
        bed.write("project/.starling/config.toml", config);
        // A recorded model works on no project, so there would be no question.
        let model = "openai:gpt-5-mini";
        let args = ["run", "--approve", "auto", "--model", model, "tidy f up"];
        let output = python(&bed, TYPE, &[ahead, DROPPED, "n\r", "\u{3}"], &args)
            .env("TERM", "xterm")
            .env("OPENAI_API_KEY", "x")
            .env("OPENAI_BASE_URL", "http://127.0.0.1:9")
            .output();
        let said = CommandResult::of(&output.unwrap());
        let asked = said.out.matches("Trust this project?").count();
        assert_eq!(asked, 2, "{said:?}");
        let list = bed.say(&["trust", "--list"]).out;
        assert!(list.starts_with("refused"), "{ahead:?}: {list}");
    }
}

#[test]
fn line_typed_ahead_takes_nothing_back() {
    let bed = TestProject::new();
    bed.applied(NEW);
    let said = typed_ahead(&bed, "xterm", &["y\r", DROPPED, "n\r", ""], &["undo"]);
    assert!(said.out.contains(DROPPED), "{said:?}");
    assert_eq!(bed.work(), NEW, "{said:?}");
    let said = typed_ahead(&bed, "xterm", &["y", DROPPED, "y\r", ""], &["undo"]);
    assert_eq!((said.code, bed.work().as_str()), (Some(0), OLD), "{said:?}");
}

#[test]
fn line_typed_ahead_chooses_no_model() {
    let bed = TestProject::new();
    let typed = ["2\rsome-model\r", DROPPED, "1\r", ""];
    let output = python(&bed, TYPE, &typed, &["init"])
        .env("TERM", "xterm")
        .env("OPENAI_API_KEY", "x")
        .output();
    let said = CommandResult::of(&output.unwrap());
    assert!(said.out.contains(DROPPED), "{said:?}");
    let written = bed.dir.path().join("config/starling/config.toml");
    let written = std::fs::read_to_string(written).unwrap();
    assert!(!written.contains("some-model"), "{written}");
}

#[test]
fn line_begun_before_its_question_accepts_nothing_in_a_dumb_terminal() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let args = ["run", "--model", model.as_str(), "Simplify f."];
    let typed = ["a", QUESTION, "\n", "q\n"];
    let said = typed_ahead(&bed, "dumb", &typed, &args);
    assert!(
        said.out.contains("line ignored: it was typed before"),
        "{said:?}"
    );
    assert_eq!(bed.work(), OLD, "{said:?}");
    let typed = ["r not", QUESTION, " this\n", "q\n"];
    let said = typed_ahead(&bed, "dumb", &typed, &args);
    assert!(
        said.out.contains("#1 rejected by you: not this"),
        "{said:?}"
    );
}

/// Answers each question with the next key, one second after the question. Between two questions an
/// editor is open and a message is printed.
const KEYS: &str = r#"
import os, pty, re, signal, sys, time
signal.alarm(60)
keys, between, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
seen, marks = b"", [b"[a]ccept"]
for said in between.split("|"):
    marks += [said.encode(), b"[a]ccept"]
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    # A line that is too long for the terminal stands on two.
    seen += data
    rest = re.sub(rb"\s+", b" ", re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen))
    while marks and marks[0] in rest:
        rest = rest.split(marks.pop(0), 1)[1]
        if len(marks) % 2 == 0:
            time.sleep(1)
            os.write(terminal, keys[0].encode())
            keys = keys[1:]
        seen = rest
    if not marks:
        marks = [b"\0"]
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

#[test]
fn proposal_edited_in_the_users_editor_is_accepted_with_the_edits() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let script = bed.root().join("../edit.sh");
    std::fs::write(&script, "printf '# Mine.\\n' >> \"$1\"\n").unwrap();
    let args = ["run", "--model", model.as_str(), "Simplify f."];
    let typed = ["ea", "your version is checked"];
    let output = python(&bed, KEYS, &typed, &args)
        .env("TERM", "xterm")
        .env_remove("VISUAL")
        .env("EDITOR", format!("sh {}", script.display()))
        .output();
    let said = CommandResult::of(&output.unwrap());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(bed.work(), format!("{NEW}# Mine.\n"), "{said:?}");
}

#[test]
fn edits_of_a_proposal_are_kept_if_they_are_rejected() {
    let bed = TestProject::new();
    let model = bed.tape(&[NEW]);
    let script = bed.root().join("../edit.sh");
    let mends =
        "grep -q '^oops(' \"$1\" && sed -i 's/^oops(/# Mine./' \"$1\" || echo 'oops(' >> \"$1\"\n";
    std::fs::write(&script, mends).unwrap();
    let args = ["run", "--model", model.as_str(), "Simplify f."];
    let typed = ["eea", "fix it, and save again|your version is checked"];
    let output = python(&bed, KEYS, &typed, &args)
        .env("TERM", "xterm")
        .env_remove("VISUAL")
        .env("EDITOR", format!("sh {}", script.display()))
        .output();
    let said = CommandResult::of(&output.unwrap());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(bed.work(), format!("{NEW}# Mine.\n"), "{said:?}");
}
