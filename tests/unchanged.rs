//! A run in which nothing is accepted leaves the user's files unchanged: contents, modes and times
//! of files and directories. Its tests are hostile, and the run continues anyway.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Paths with their times, mode, size and content.
type TreeState = BTreeMap<PathBuf, (i64, i64, u32, u64, Vec<u8>)>;

fn state(root: &Path) -> TreeState {
    let mut found = TreeState::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let of = path.symlink_metadata().unwrap();
        if of.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            waiting.extend(entries.map(|entry| entry.unwrap().path()));
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let of = (of.mtime(), of.mtime_nsec(), of.mode(), of.ino(), bytes);
        found.insert(path, of);
    }
    found
}

fn project(root: &Path) {
    for (path, text) in [
        ("work.py", "def value():\n    return 1\n"),
        ("tests/__init__.py", ""),
        (
            "tests/test_work.py",
            "import unittest\n\nimport work\n\n\nclass T(unittest.TestCase):\n    \
             def test_value(self):\n        self.assertEqual(work.value(), 1)\n",
        ),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/index", "index"),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Writes a recording whose only proposal breaks the test.
fn recording(file: &Path) {
    let symbol = "work.py::value";
    let wake = json!({"symbols": [{"symbol": symbol, "why": "recorded"}]});
    let propose = json!({"reason": "recorded", "source": "def value():\n    return 2\n"});
    let lines = [
        exchange("scout", "scout", "wake", &wake),
        exchange(&format!("agent {symbol}"), "agent", "propose", &propose),
    ];
    std::fs::write(file, lines.join("\n")).unwrap();
}

fn exchange(conversation: &str, role: &str, tool: &str, arguments: &Value) -> String {
    let call = json!({"id": "c", "name": tool, "arguments": arguments.to_string()});
    let reply = json!({
        "model": "recorded", "text": "", "tool_calls": [call], "finish": "tool_calls",
        "usage": {"prompt": 1, "cached": 0, "output": 1}, "cost": 0.0, "calls": 1,
    });
    let exchange = json!({
        "conversation": conversation, "role": role, "ordinal": 0, "prompt": [], "tools": [tool],
        "reply": {"Ok": reply}, "millis": 1,
    });
    json!({ "exchange": exchange }).to_string()
}

/// Runs the recording with these options. Returns the events and the paths that changed.
fn run(options: &[&str]) -> (Vec<Value>, Vec<PathBuf>) {
    let bed = tempfile::tempdir().unwrap();
    let (root, cache) = (bed.path().join("project"), bed.path().join("cache"));
    project(&root);
    let tape = bed.path().join("tape.jsonl");
    recording(&tape);
    let before = state(&root);
    let output = Command::new(env!("CARGO_BIN_EXE_starling"))
        .args(["run", "--json", "--approve", "auto", "--model"])
        .arg(format!("replay:{}", tape.display()))
        .arg("--repo")
        .arg(&root)
        .args(options)
        .arg("The function value is wrong.")
        .env("STARLING_CACHE_DIR", &cache)
        .env("XDG_CONFIG_HOME", &cache)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let after = state(&root);
    let paths = before.keys().chain(after.keys());
    let mut changed: Vec<PathBuf> = paths
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| path.strip_prefix(&root).unwrap().to_owned())
        .collect();
    changed.dedup();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines();
    let events = lines
        .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"))
        .map(|mut line| line["event"].take())
        .collect();
    (events, changed)
}

fn outcomes(events: &[Value]) -> Vec<&str> {
    let runs = events.iter().filter(|event| event["event"] == "tests_run");
    runs.filter_map(|event| event["report"]["outcome"].as_str())
        .collect()
}

#[test]
fn proposal_that_fails_its_tests_does_not_change_the_project() {
    let (events, changed) = run(&[]);
    assert_eq!(changed, [""; 0].map(PathBuf::from));
    assert_eq!(outcomes(&events)[..2], ["passed", "failed"], "{events:?}");
    let last = events.last().unwrap();
    assert_eq!(last["event"], "run_finished");
    assert_eq!(last["applied"], json!([]));
}

#[test]
fn tests_that_write_files_do_not_change_the_project() {
    let worst = "touch work.py tests .git/index; echo x > new.py; rm -rf .git; mkdir made; \
                 python3 -c 'import work; assert work.value() == 1'";
    let (events, changed) = run(&["--test", worst]);
    assert_eq!(changed, [""; 0].map(PathBuf::from));
    assert_eq!(outcomes(&events)[..2], ["passed", "failed"], "{events:?}");
}

#[test]
fn run_continues_after_tests_that_were_stopped() {
    let memory = "python3 -c \"x = b'x' * (10 << 30)\"";
    let bomb =
        "python3 -c 'exec(\"import os\\nwhile True:\\n try: os.fork()\\n except OSError: pass\")'";
    for (line, outcome) in [
        ("yes", "output_too_long"),
        (memory, "out_of_memory"),
        (bomb, "too_many_processes"),
        ("trap '' TERM; while :; do sleep 1; done", "timed_out"),
    ] {
        let bounds = [
            "-c",
            "sandbox.output_mb=1",
            "-c",
            "sandbox.memory_mb=300",
            "-c",
            "sandbox.processes=60",
            "-c",
            "tests.seconds=10",
        ];
        let (events, changed) = run(&[&["--test", line], &bounds[..]].concat());
        // No test is worse than before, so the proposal is accepted, and only its file changes.
        let own = ["", "work.py"].map(PathBuf::from);
        assert!(changed.iter().all(|path| own.contains(path)), "{changed:?}");
        assert_eq!(outcomes(&events).first(), Some(&outcome), "{events:?}");
        let woken = events.iter().any(|event| event["event"] == "turn_finished");
        assert!(woken, "{events:?}");
        assert_eq!(events.last().unwrap()["event"], "run_finished");
    }
}
