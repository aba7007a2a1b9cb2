//! A run that is killed at any moment leaves the user's files in the state before or after a
//! complete accepted proposal, never between, and the next start removes its leftovers.

#![allow(clippy::unwrap_used)]

use std::io::Write;
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

/// The files that call the changed function.
const CALLERS: usize = 4;

/// A changed signature and its callers, which pass only together.
fn set_project(root: &Path) {
    std::fs::write(root.join("lib.py"), "def area(w, h):\n    return w * h\n").unwrap();
    let (mut imports, mut calls) = (String::new(), String::new());
    for at in 0..CALLERS {
        let caller =
            format!("from lib import area\n\n\ndef room{at}():\n    return area({at}, 3)\n");
        std::fs::write(root.join(format!("use{at}.py")), caller).unwrap();
        imports += &format!("import use{at}\n");
        calls += &format!("        self.assertEqual(use{at}.room{at}(), {})\n", at * 3);
    }
    let test = format!(
        "import unittest\n\n{imports}\n\nclass T(unittest.TestCase):\n    def test_rooms(self):\n{calls}"
    );
    std::fs::write(root.join("test_use.py"), test).unwrap();
}

/// Writes a recording in which the scout itself writes the parts of the set.
fn set_recording(file: &Path) {
    let area = "def area(size):\n    return size[0] * size[1]\n";
    let mut picks = vec![json!({"symbol": "lib.py::area", "why": "x", "source": area})];
    for at in 0..CALLERS {
        let source = format!("def room{at}():\n    return area(({at}, 3))\n");
        let symbol = format!("use{at}.py::room{at}");
        picks.push(json!({"symbol": symbol, "why": "x", "source": source}));
    }
    let line = exchange("scout", "scout", "wake", &json!({ "symbols": picks }));
    std::fs::write(file, line).unwrap();
}

/// Returns the texts of the files of the set.
fn set_texts(root: &Path) -> Vec<String> {
    let callers = (0..CALLERS).map(|at| format!("use{at}.py"));
    let files = ["lib.py".to_owned()].into_iter().chain(callers);
    files
        .map(|file| std::fs::read_to_string(root.join(file)).unwrap())
        .collect()
}

/// Returns the number of files of the set that have their new text.
fn set_changed(root: &Path) -> usize {
    let is_new = |text: &&String| text.contains("size[0]") || text.contains("area((");
    set_texts(root).iter().filter(is_new).count()
}

/// Kills runs until one leaves a part of the set only.
fn half_applied(bed: &Path, name: &str, cache: &Path, tape: &Path) -> std::path::PathBuf {
    for kill in 0..KILLS {
        let root = bed.join(format!("{name}{kill}"));
        std::fs::create_dir(&root).unwrap();
        set_project(&root);
        let mut run = starling(&root, cache, tape).spawn().unwrap();
        while set_changed(&root) == 0 && run.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        run.kill().unwrap();
        run.wait().unwrap();
        let count = set_changed(&root);
        assert!(count > 0, "the set is applied");
        if count <= CALLERS {
            return root;
        }
    }
    panic!("no kill fell between the edits of the set: the test shows nothing");
}

/// Runs a command of the program with these lines as input, and returns what it says.
fn said(arguments: &[&str], root: &Path, cache: &Path, lines: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
    command.args(arguments).arg("--repo").arg(root);
    command.env("STARLING_CACHE_DIR", cache);
    command.env("XDG_CONFIG_HOME", cache);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = program.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    let said = program.wait_with_output().unwrap();
    let (out, errors) = (&said.stdout, &said.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(errors)
    )
}

#[test]
fn set_that_a_kill_left_half_applied_is_told_and_can_be_completed_or_taken_back() {
    let bed = tempfile::tempdir().unwrap();
    let (cache, tape) = (bed.path().join("cache"), bed.path().join("tape.jsonl"));
    set_recording(&tape);
    let told = "changes that belong together are only partly in the files";

    let root = half_applied(bed.path(), "completed", &cache, &tape);
    let nothing = bed.path().join("nothing.jsonl");
    let empty = exchange("scout", "scout", "wake", &json!({"symbols": []}));
    std::fs::write(&nothing, empty).unwrap();
    let model = format!("replay:{}", nothing.display());
    let arguments = ["run", "--approve", "auto", "--model", &model, "Do nothing."];
    let run = said(&arguments, &root, &cache, "");
    assert!(run.contains(told), "{run}");
    let review = said(&["review"], &root, &cache, "a\n");
    assert!(review.contains(told), "{review}");
    assert_eq!(set_changed(&root), CALLERS + 1, "{review}");
    let list = said(&["undo", "--list"], &root, &cache, "");
    assert!(!list.contains(told), "{list}");

    let root = half_applied(bed.path(), "undone", &cache, &tape);
    let undo = said(&["undo", "--yes"], &root, &cache, "");
    assert!(undo.contains(told) && undo.contains("lib.py"), "{undo}");
    let original = bed.path().join("original");
    std::fs::create_dir(&original).unwrap();
    set_project(&original);
    assert_eq!(set_texts(&root), set_texts(&original), "{undo}");
    let review = said(&["review"], &root, &cache, "");
    assert!(review.contains("no proposal of this project"), "{review}");
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
    let told = serde_json::from_slice(&said.stdout);
    let told: Value = told.unwrap_or_else(|error| panic!("{error}: {said:?}"));
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
