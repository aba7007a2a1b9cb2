//! Measures Starling's own overhead, without models and tests, on a tree of the size of Django's: a
//! run of the `starling` command whose model replies come from a recording.
//!
//! ```sh
//! STARLING_BENCH_TREE=path/to/django cargo bench --no-default-features --bench turn_overhead
//! ```
//!
//! The tree is copied, not changed. Without the variable, a tree of 2,800 files is generated.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const FILES: usize = 2_800;
const RUNS: usize = 5;

fn main() {
    let bed = tempfile::tempdir().expect("a temporary directory can be created");
    let root = tree(bed.path());
    std::fs::write(
        root.join("starling_bench.py"),
        "def slow(x):\n    return x\n",
    )
    .expect("the file can be written");
    let tape = bed.path().join("tape.jsonl");
    std::fs::write(&tape, recording()).expect("the recording can be written");
    println!(
        "{:>4} {:>7} {:>12} {:>12} {:>14}",
        "run", "turns", "start ms", "per turn ms", "whole run ms"
    );
    for run in 1..=RUNS {
        let events = events(&root, &tape, bed.path());
        let figures = RunOverhead::of(&events);
        println!(
            "{run:>4} {:>7} {:>12} {:>12.1} {:>14}",
            figures.turns, figures.start, figures.per_turn, figures.whole
        );
        std::fs::write(
            root.join("starling_bench.py"),
            "def slow(x):\n    return x\n",
        )
        .expect("the file can be written");
    }
    println!(
        "start: from the request to the first model call, the index of the whole tree included"
    );
    println!("per turn: between the end of a model call and the next one, tests left out");
}

fn tree(bed: &Path) -> PathBuf {
    let root = bed.join("tree");
    if let Some(given) = std::env::var_os("STARLING_BENCH_TREE") {
        let copied = Command::new("cp").arg("-r").arg(&given).arg(&root).status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "{}: not copied",
            given.display()
        );
        return root;
    }
    for at in 0..FILES {
        let folder = root.join(format!("package{}/part{}", at % 40, at % 7));
        std::fs::create_dir_all(&folder).expect("the directory can be created");
        let functions: String = (0..40)
            .map(|n| format!("def work_{at}_{n}(first, second=None):\n    \"\"\"Does {n}.\"\"\"\n    return [first, second, {n}]\n\n\n"))
            .collect();
        std::fs::write(folder.join(format!("module{at}.py")), functions)
            .expect("the file can be written");
    }
    root
}

fn recording() -> String {
    let agent = "agent starling_bench.py::slow";
    let lines = [
        exchange("scout", 0, "search", &json!({"query": "slow"})),
        exchange(
            "scout",
            1,
            "wake",
            &json!({"symbols": [{"symbol": "starling_bench.py::slow", "why": "it is slow"}]}),
        ),
        exchange(
            agent,
            0,
            "read",
            &json!({"symbols": ["starling_bench.py::slow"]}),
        ),
        exchange(agent, 1, "references", &json!({"name": "get"})),
        exchange(agent, 2, "definition", &json!({"name": "slow"})),
        exchange(agent, 3, "search", &json!({"query": "return first"})),
        exchange(
            agent,
            4,
            "propose",
            &json!({"reason": "faster", "source": "def slow(x):\n    return x or 0\n"}),
        ),
    ];
    lines.join("\n")
}

fn exchange(conversation: &str, ordinal: u32, tool: &str, arguments: &Value) -> String {
    let call =
        json!({"id": format!("c{ordinal}"), "name": tool, "arguments": arguments.to_string()});
    let reply = json!({
        "model": "recorded", "text": "", "tool_calls": [call], "finish": "tool_calls",
        "usage": {"prompt": 1, "cached": 0, "output": 1}, "cost": 0.0, "calls": 1,
    });
    let role = if conversation == "scout" {
        "scout"
    } else {
        "agent"
    };
    let exchange = json!({
        "conversation": conversation, "role": role, "ordinal": ordinal, "prompt": [], "tools": [tool],
        "reply": {"Ok": reply}, "millis": 0,
    });
    json!({ "exchange": exchange }).to_string()
}

fn events(root: &Path, tape: &Path, cache: &Path) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_starling"))
        .args([
            "run",
            "--json",
            "--approve",
            "auto",
            "--test",
            "true",
            "--model",
        ])
        .arg(format!("replay:{}", tape.display()))
        .arg("--repo")
        .arg(root)
        .arg("The function slow is slow.")
        .env("STARLING_CACHE_DIR", cache.join("cache"))
        .env("XDG_CONFIG_HOME", cache.join("config"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("starling runs");
    // The test command `true` does not run any test, so the change is not verified and the exit
    // status is 3.
    assert_eq!(
        output.status.code(),
        Some(3),
        "the run settles: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

/// The overhead of one run. Times are in milliseconds.
struct RunOverhead {
    turns: usize,
    start: u64,
    per_turn: f64,
    whole: u64,
}

impl RunOverhead {
    fn of(events: &[Value]) -> RunOverhead {
        let kind = |event: &Value| {
            event["event"]["event"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let at = |event: &Value| event["at_ms"].as_u64().unwrap_or_default();
        let starts: Vec<u64> = events
            .iter()
            .filter(|event| kind(event) == "turn_started")
            .map(at)
            .collect();
        let ends: Vec<u64> = events
            .iter()
            .filter(|event| kind(event) == "turn_finished")
            .map(at)
            .collect();
        let whole = events.last().map(at).unwrap_or_default();
        let tests: u64 = events
            .iter()
            .filter(|event| kind(event) == "tests_run")
            .filter_map(|event| event["event"]["report"]["millis"].as_u64())
            .sum();
        let before = events
            .iter()
            .find(|event| kind(event) == "tests_run")
            .and_then(|event| event["event"]["report"]["millis"].as_u64())
            .unwrap_or_default();
        let start = starts.first().copied().unwrap_or_default();
        let model: u64 = starts
            .iter()
            .zip(&ends)
            .map(|(start, end)| end - start)
            .sum();
        let rest = whole - start - model - (tests - before).min(whole - start);
        RunOverhead {
            turns: starts.len(),
            start,
            per_turn: rest as f64 / starts.len().max(1) as f64,
            whole,
        }
    }
}
