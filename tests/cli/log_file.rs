//! The log file of `--log-file`: its spans, and what is not in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::ask::told;
use super::project::{CommandResult, OLD, RunningProgram, TestProject};

/// Stands in the task, in the code, in replies, in the output of tests and in a file of secrets.
const CANARY: &str = "canary-7f3a9";

/// Reads the file as a browser does: the list may end without a bracket.
fn events(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.trim_end().trim_end_matches(',');
    let events: Vec<Value> = serde_json::from_str(&format!("{text}]")).unwrap();
    events[1..].to_vec()
}

fn kinds(events: &[Value]) -> BTreeSet<&str> {
    events
        .iter()
        .filter_map(|event| event["cat"].as_str())
        .collect()
}

/// Returns the kinds of spans around each span of a kind, in its lane.
fn around<'a>(events: &'a [Value], kind: &str) -> Vec<Vec<&'a str>> {
    let mut lanes: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let mut found = Vec::new();
    for event in events {
        let lane = lanes.entry(event["tid"].as_u64().unwrap()).or_default();
        let own = event["cat"].as_str().unwrap();
        match event["ph"].as_str().unwrap() {
            "B" => {
                if own == kind {
                    found.push(lane.clone());
                }
                lane.push(own);
            }
            _ => assert_eq!(lane.pop(), Some(own), "not nested"),
        }
    }
    assert!(lanes.values().all(Vec::is_empty), "not closed: {lanes:?}");
    found
}

#[test]
fn trace_of_a_run_contains_spans_but_no_text_of_the_project() {
    let bed = TestProject::new();
    let note = format!("\n\n# {CANARY}\nprint('{CANARY}')\n");
    std::fs::write(bed.root().join("work.py"), format!("{OLD}{note}")).unwrap();
    bed.write("project/.env", &format!("TOKEN={CANARY}\n"));
    let model = bed.tape(&[&format!("def f():\n    return 2 - 1  # {CANARY}\n")]);
    let log = bed.dir.path().join("run.json");
    let said = CommandResult::of(
        &bed.starling()
            .args(["run", "--approve", "auto", "--json", "--model", &model])
            .args(["--log-file", log.to_str().unwrap()])
            .arg(format!("change f in work.py: {CANARY}"))
            .env("API_KEY", CANARY)
            .env("STARLING_LOG", "trace")
            .output()
            .unwrap(),
    );
    assert!(bed.work().contains("2 - 1"), "{said:?}");
    assert!(
        !said.events().is_empty(),
        "standard output has the events alone"
    );
    let events = events(&log);
    for kind in ["request", "run", "agent", "turn", "model call", "tests"] {
        assert!(
            kinds(&events).contains(kind),
            "no {kind} in {:?}",
            kinds(&events)
        );
    }
    let calls = around(&events, "model call");
    assert!(calls.contains(&vec!["run", "turn"]), "the scout: {calls:?}");
    assert!(calls.contains(&vec!["agent", "turn"]), "{calls:?}");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains(CANARY) && !text.contains("return"), "{text}");
    assert!(text.contains("turn work.py::f"), "{text}");
}

#[test]
fn trace_of_a_question_contains_spans_but_no_text() {
    let bed = TestProject::new();
    let log = bed.dir.path().join("ask.json");
    let model = told(&bed, &[&format!("`f` gives {CANARY} [work.py:2].")]);
    let question = format!("What does `f` return in work.py? {CANARY}");
    let log_text = log.to_str().unwrap();
    let said = bed.say(&["--log-file", log_text, "ask", "--model", &model, &question]);
    assert!(said.out.contains(CANARY), "{said:?}");
    let events = events(&log);
    assert_eq!(around(&events, "model call")[0], ["question", "turn"]);
    assert!(!std::fs::read_to_string(&log).unwrap().contains(CANARY));
}

#[test]
fn trace_of_a_killed_language_server_contains_its_requests() {
    let bed = TestProject::new();
    let log = bed.dir.path().join("lsp.json");
    let mut command = bed.starling();
    command.args(["lsp", "--log-file"]).arg(&log);
    let mut talk = RunningProgram::begin(command);
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}},
    });
    let hello = hello.to_string();
    talk.write(&format!("Content-Length: {}\r\n\r\n{hello}", hello.len()));
    let answer = talk.message();
    assert_eq!(answer["result"]["serverInfo"]["name"], "starling");
    assert_eq!(around(&events(&log), "request"), [Vec::<&str>::new()]);
    talk.child.kill().unwrap();
    talk.end();
    let events = events(&log);
    assert_eq!(events[0]["name"], "request initialize");
    assert_eq!(events[0]["args"], json!({"method": "initialize"}));
}

#[test]
fn unwritable_log_file_is_a_usage_error() {
    let bed = TestProject::new();
    let said = bed.say(&["--log-file", "missing/run.json", "symbols", "f"]);
    said.is_wrong_use("missing/run.json: ");
}
