//! Recorded runs can be replayed by the shipped program, with the same changes and messages, marked
//! as replay.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn starling(cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
    command
        .env("STARLING_CACHE_DIR", cache)
        .env("XDG_CONFIG_HOME", cache)
        .stdin(Stdio::null());
    command
}

fn events(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"));
    lines.collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["event"]["event"].as_str())
        .collect()
}

#[test]
fn replayed_run_across_symbols_settles() {
    let cache = tempfile::tempdir().unwrap();
    let output = starling(cache.path())
        .args(["demo", "--replay", "--json"])
        .output()
        .unwrap();
    let events = events(&output);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(events[0]["event"]["replayed"], true);
    let kinds = kinds(&events);
    for kind in [
        "asked",
        "answered",
        "change_requested",
        "followed_up",
        "intent_reviewed",
        "proposal_applied",
    ] {
        assert!(kinds.contains(&kind), "no {kind} in {kinds:?}");
    }
    let last = &events[events.len() - 1]["event"];
    assert_eq!(last["event"], "run_finished");
    let applied: Vec<&str> = last["applied"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for symbol in [
        "parcels/quote.py::quote",
        "parcels/rates.py::season",
        "parcels/invoice.py::Invoice.total",
    ] {
        assert!(
            applied.contains(&symbol),
            "{symbol} is not among {applied:?}"
        );
    }
    assert!(
        applied
            .iter()
            .any(|symbol| symbol.starts_with("parcels/advice.py::")),
        "{applied:?}"
    );
}

#[test]
fn plain_output_labels_a_replay() {
    let cache = tempfile::tempdir().unwrap();
    let output = starling(cache.path())
        .args(["demo", "--replay"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(
        text.matches("REPLAY").count() >= 2,
        "at the beginning and at the end: {text}"
    );
}

#[test]
fn replayed_run_of_the_local_model_fixes_the_demo() {
    let bed = tempfile::tempdir().unwrap();
    let root = bed.path().join("demo");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(fixtures.join("demo"))
        .arg(&root)
        .status()
        .unwrap();
    assert!(copied.success());
    let recording = fixtures.join("replay/demo-local.jsonl");
    let first = std::fs::read_to_string(&recording).unwrap();
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    let output = starling(&bed.path().join("cache"))
        .args([
            "run",
            "--json",
            "--approve",
            "auto",
            "--model",
            "tape",
            "-c",
            "models.tape.kind=replay",
        ])
        .args(["-c", &format!("models.tape.path={}", recording.display())])
        .args([
            "-c",
            "models.tape.tool_calling=text",
            "-c",
            "models.tape.context_window=16384",
        ])
        .arg("--repo")
        .arg(&root)
        .arg(first["event"]["task"].as_str().unwrap())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let tests = Command::new("python3")
        .args(["-m", "unittest"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(
        tests.status.success(),
        "{}",
        String::from_utf8_lossy(&tests.stderr)
    );
}
