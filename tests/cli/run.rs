//! A run of a task: its events, the directory in which it works, and the files that it writes.

use std::process::Command;

use serde_json::{Value, json};

use super::project::{CommandResult, NEW, TestProject, exchange};

#[test]
fn json_run_prints_events_changes_the_file_and_can_be_undone() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let args = ["run", "--json", "--approve", "auto", "--model", &tape];
    let said = bed.say(&[&args[..], &["tidy f up"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let events = said.events();
    let seqs: Vec<u64> = events
        .iter()
        .filter_map(|event| event["seq"].as_u64())
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    assert_eq!(events[0]["event"]["event"], "run_started");
    assert_eq!(events[0]["event"]["task"], "tidy f up");
    assert_eq!(events[0]["event"]["replayed"], true);
    let last = &events[events.len() - 1]["event"];
    assert_eq!(last["event"], "run_finished");
    assert_eq!(last["applied"], json!(["work.py::f"]));
    assert_eq!(bed.work(), NEW);
    // The complete patch is in the directory of the trajectory.
    let runs = bed.dir.path().join("cache/runs");
    let run = events[0]["run"].as_str().unwrap();
    let patch = std::fs::read_to_string(runs.join(format!("{run}.patch"))).unwrap();
    assert_eq!(json!(patch), last["diff"]);
    assert!(runs.join(format!("{run}.jsonl")).is_file());
}

#[test]
fn run_in_a_subdirectory_covers_the_whole_project() {
    let bed = TestProject::new();
    bed.write("project/pyproject.toml", "[project]\nname = \"work\"\n");
    let file = bed.write("project/sub/notes.py", "def g():\n    return 1\n\n\ng()\n");
    let tape = bed.tape(&[NEW]);
    let there = |args: &[&str]| {
        let mut command = bed.starling();
        command.current_dir(file.parent().unwrap()).args(args);
        CommandResult::of(&command.output().unwrap())
    };
    let run = ["run", "--approve", "auto", "--model", &tape, "tidy f up"];
    let said = there(&run);
    let root = bed.root().canonicalize().unwrap();
    let first = format!("project: {} (pyproject.toml)\n", root.display());
    assert!(said.out.starts_with(&first), "{said:?}");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(bed.work(), NEW);

    // A file can be named relative to the current directory or to the project.
    for named in ["notes.py::g", "sub/notes.py::g"] {
        let said = there(&["references", "--json", named]);
        let found: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(found["references"][0]["path"], "sub/notes.py", "{said:?}");
    }
    let said = there(&[
        "run",
        "--repo",
        ".",
        "--approve",
        "auto",
        "--model",
        &tape,
        "x",
    ]);
    let given = root.join("sub");
    let first = format!("project: {} (--repo)\n", given.display());
    assert!(said.out.starts_with(&first), "{said:?}");
}

#[test]
fn run_in_an_empty_directory_makes_no_model_call() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let empty = bed.dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let repo = empty.to_str().unwrap();
    let args = ["run", "--json", "--approve", "auto", "--model", &tape, "x"];
    let said = bed.say(&[&args[..], &["--repo", repo]].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
    let events = said.events();
    let last = &events[events.len() - 1]["event"];
    let error = last["stop_reason"]["error"].as_str().unwrap();
    assert!(error.contains("contains no files"), "{error}");
    assert_eq!(last["spent"]["calls"], 0);
}

#[test]
fn file_created_by_a_run_is_deleted_on_undo() {
    let bed = TestProject::new();
    let picked = json!({"symbols": [{"symbol": "work.py::f", "why": "recorded"}]});
    let source = "def g():\n    return 1\n";
    let made = json!({"reason": "r", "symbol": "pkg/help.py", "source": source});
    let lines = [
        exchange("scout", "scout", 0, "wake", &picked),
        exchange("agent work.py::f", "agent", 0, "propose", &made),
    ];
    let tape = bed.write("made.jsonl", &lines.join("\n"));
    let model = format!("replay:{}", tape.display());
    let said = bed.say(&[
        "run",
        "--json",
        "--approve",
        "auto",
        "--model",
        &model,
        "help f",
    ]);
    // No test reaches the function of the new file.
    assert_eq!(said.code, Some(3), "{said:?}");
    let path = bed.root().join("pkg/help.py");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), source);
    let events = said.events();
    let diff = events[events.len() - 1]["event"]["diff"].as_str().unwrap();
    assert!(
        diff.starts_with("--- /dev/null\n+++ b/pkg/help.py\n"),
        "{diff}"
    );
    let run = events[0]["run"].as_str().unwrap();
    let patch = bed.dir.path().join(format!("cache/runs/{run}.patch"));
    let undone = Command::new("git")
        .args(["apply", "-R"])
        .arg(&patch)
        .current_dir(bed.root())
        .status()
        .unwrap();
    assert!(undone.success());
    assert!(!path.exists());
}

#[test]
fn file_with_a_declared_encoding_is_read_and_changed() {
    let bed = TestProject::new();
    let old =
        b"# -*- coding: latin-1 -*-\r\nNAME = 'Ren\xe9'\r\n\r\ndef f():\r\n\treturn 2  # \xe9\r\n";
    std::fs::write(bed.root().join("work.py"), old).unwrap();
    std::fs::write(bed.root().join("wide.py"), b"\xff\xfed\0e\0f\0").unwrap();
    let symbols = bed.say(&["symbols", "f"]);
    assert!(symbols.out.contains("work.py:4"), "{symbols:?}");
    assert!(
        symbols
            .err
            .contains("1 file is not in the index: wide.py: UTF-16 text"),
        "{symbols:?}"
    );
    let index = bed.say(&["index", "--skipped"]);
    assert!(index.out.contains("1 file is not indexed"), "{index:?}");
    assert!(
        index.out.contains("\nwide.py: UTF-16 text; convert it"),
        "{index:?}"
    );

    let tape = bed.tape(&[
        "def f():\n\treturn len('\u{20ac}')  # \u{e9}\n",
        "def f():\n\treturn len('\u{e8}')  # \u{e9}\n",
    ]);
    let run = bed.say(&[
        "run",
        "--approve",
        "auto",
        "--model",
        &tape,
        "make test_f pass",
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.out
            .contains("does not have the character '€' in line 5"),
        "{run:?}"
    );
    let new =
        b"# -*- coding: latin-1 -*-\r\nNAME = 'Ren\xe9'\r\n\r\ndef f():\r\n\treturn len('\xe8')  # \xe9\r\n";
    let written = std::fs::read(bed.root().join("work.py")).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&written),
        String::from_utf8_lossy(new)
    );
    assert_eq!(written, new);
}

#[test]
fn line_endings_tabs_and_byte_order_marks_are_kept() {
    for (mark, end) in [("\u{feff}", "\r\n"), ("", "\r\n"), ("\u{feff}", "\n")] {
        let bed = TestProject::new();
        let text = |value: u8| {
            let lines = [
                "x = '\t'  # \r",
                "def f():",
                &format!("\treturn {value}"),
                "",
                "y = 2 ",
            ];
            format!("{mark}{}", lines.join(end))
        };
        std::fs::write(bed.root().join("work.py"), text(2)).unwrap();
        let tape = bed.tape(&["def f():\n\treturn 1\n"]);
        let run = bed.say(&[
            "run",
            "--approve",
            "auto",
            "--model",
            &tape,
            "make test_f pass",
        ]);
        assert_eq!(run.code, Some(0), "{mark:?} {end:?} {run:?}");
        assert_eq!(bed.work(), text(1), "{mark:?} {end:?}");
    }
}
