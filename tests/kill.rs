//! A run that is killed at any moment leaves the user's files in the state before or after a
//! complete accepted proposal, never between, and the next start removes its leftovers.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const FUNCTIONS: usize = 6;
const KILLS: usize = 20;

fn old(at: usize) -> String {
    format!("def f{at}():\n    return {at}\n")
}

fn new(at: usize) -> String {
    let lines: String = (0..60).map(|line| format!("    x = {line}\n")).collect();
    format!("def f{at}():\n{lines}    return {at} + x - x\n")
}

fn project(root: &Path) {
    let source: Vec<String> = (0..FUNCTIONS).map(old).collect();
    std::fs::write(root.join("work.py"), source.join("\n\n")).unwrap();
    let calls: String = (0..FUNCTIONS).map(|at| format!("work.f{at}(), ")).collect();
    let test = format!(
        "import unittest\n\nimport work\n\n\nclass T(unittest.TestCase):\n    def test_values(self):\n        \
         self.assertEqual([{calls}], list(range({FUNCTIONS})))\n"
    );
    std::fs::write(root.join("test_work.py"), test).unwrap();
}

/// Writes a recording in which the scout wakes all owners and each proposes its function.
fn recording(file: &Path) {
    let paths: Vec<String> = (0..FUNCTIONS).map(|at| format!("work.py::f{at}")).collect();
    let picks: Vec<Value> = paths
        .iter()
        .map(|path| json!({"symbol": path, "why": "recorded"}))
        .collect();
    let mut lines = vec![exchange(
        "scout",
        "scout",
        "wake",
        &json!({ "symbols": picks }),
    )];
    for (at, path) in paths.iter().enumerate() {
        let arguments = json!({"reason": "recorded", "source": new(at)});
        lines.push(exchange(
            &format!("agent {path}"),
            "agent",
            "propose",
            &arguments,
        ));
    }
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

/// Returns the names of a directory's entries, or nothing if it does not exist.
fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

fn starling(root: &Path, cache: &Path, recording: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
    let model = format!("replay:{}", recording.display());
    command
        .args([
            "run",
            "--json",
            "--approve",
            "auto",
            "--model",
            &model,
            "--repo",
        ])
        .arg(root)
        .arg("Rewrite the functions.")
        .env("STARLING_CACHE_DIR", cache)
        .env("XDG_CONFIG_HOME", cache)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Returns the number of new functions. Panics if the file contains anything but old and new
/// functions.
fn changed(root: &Path) -> usize {
    let text = std::fs::read_to_string(root.join("work.py")).unwrap();
    let mut rest = text.as_str();
    let mut count = 0;
    for at in 0..FUNCTIONS {
        let is_new = rest.starts_with(&new(at));
        let now = if is_new { new(at) } else { old(at) };
        rest = rest
            .strip_prefix(now.as_str())
            .unwrap_or_else(|| panic!("f{at} is between old and new:\n{text}"));
        count += usize::from(is_new);
        rest = if at + 1 < FUNCTIONS {
            rest.strip_prefix("\n\n").expect("blank lines stay")
        } else {
            rest
        };
    }
    assert_eq!(rest, "");
    count
}

/// Undoes the changes of the last run in a project, including changes that the killed run could not
/// record.
fn undo_all(root: &Path, cache: &Path, changes: usize) {
    let mut undo = Command::new(env!("CARGO_BIN_EXE_starling"));
    undo.args(["undo", "--yes", "--json", "--repo"]).arg(root);
    undo.env("STARLING_CACHE_DIR", cache);
    undo.env("XDG_CONFIG_HOME", cache);
    let said = undo.output().unwrap();
    let told: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert_eq!(told["undone"].as_array().unwrap().len(), changes, "{told}");
    assert_eq!(changed(root), 0, "the user's text is back: {told}");
}

/// Waits until a file is replaced by another.
fn replaced(file: &Path, run: &mut std::process::Child) {
    let number = |file: &Path| file.metadata().map(|data| data.ino()).ok();
    let before = number(file);
    while number(file) == before && run.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
}

#[test]
fn run_killed_while_applying_a_change_is_undone_completely() {
    let bed = tempfile::tempdir().unwrap();
    let (cache, tape) = (bed.path().join("cache"), bed.path().join("tape.jsonl"));
    recording(&tape);
    for kill in 0..6 {
        let root = bed.path().join(format!("kill{kill}"));
        std::fs::create_dir(&root).unwrap();
        project(&root);
        let mut run = starling(&root, &cache, &tape).spawn().unwrap();
        for _ in 0..=kill {
            replaced(&root.join("work.py"), &mut run);
        }
        run.kill().unwrap();
        run.wait().unwrap();
        let count = changed(&root);
        assert!(count > 0);
        undo_all(&root, &cache, count);
    }
}

#[test]
fn killed_run_leaves_only_complete_proposals_and_the_next_start_cleans_up() {
    let bed = tempfile::tempdir().unwrap();
    let (cache, tape) = (bed.path().join("cache"), bed.path().join("tape.jsonl"));
    recording(&tape);

    let whole = bed.path().join("whole");
    std::fs::create_dir(&whole).unwrap();
    project(&whole);
    let began = Instant::now();
    let status = starling(&whole, &cache, &tape).status().unwrap();
    let length = began.elapsed();
    assert!(status.success(), "the run by itself settles: {status}");
    assert_eq!(changed(&whole), FUNCTIONS);

    let mut between = 0;
    for kill in 0..KILLS {
        let root = bed.path().join(format!("kill{kill}"));
        std::fs::create_dir(&root).unwrap();
        project(&root);
        let mut run = starling(&root, &cache, &tape).spawn().unwrap();
        // The kills are spread over the run, with uneven distances.
        let share = (kill as f64 + ((kill * 7919) % 13) as f64 / 13.0) / KILLS as f64;
        std::thread::sleep(length.mul_f64(share).max(Duration::from_millis(1)));
        run.kill().unwrap();
        run.wait().unwrap();
        let count = changed(&root);
        between += usize::from(count > 0 && count < FUNCTIONS);
        undo_all(&root, &cache, count);
    }
    assert!(
        between > 0,
        "no kill fell into the time of the edits: the test shows nothing"
    );

    let last = bed.path().join("last");
    std::fs::create_dir(&last).unwrap();
    project(&last);
    assert!(starling(&last, &cache, &tape).status().unwrap().success());
    assert_eq!(
        entries(&cache.join("starling/shadows")),
        Vec::<String>::new()
    );
    assert_eq!(entries(&cache.join("shadows")), Vec::<String>::new());
    for kill in 0..KILLS {
        let mut left = entries(&bed.path().join(format!("kill{kill}")));
        left.retain(|name| name != "work.py" && name != "test_work.py");
        assert!(
            left.len() <= 1,
            "a killed write leaves its temporary file at most: {left:?}"
        );
    }
}
