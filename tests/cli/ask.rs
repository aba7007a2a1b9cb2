//! Tests of `starling ask` as a process.

use std::io::Write;

use serde_json::{Value, json};

use super::project::{OLD, RunningProgram, TestProject};

/// Writes a recording in which the model replies with these texts in order, and returns its model
/// name.
pub fn told(bed: &TestProject, texts: &[&str]) -> String {
    let exchange = |(ordinal, text): (usize, &&str)| {
        let reply = json!({
            "model": "recorded", "text": text, "tool_calls": [], "finish": "stop",
            "usage": {"prompt": 900, "cached": 0, "output": 20}, "cost": 0.5, "calls": 1,
        });
        let exchange = json!({
            "conversation": "ask", "role": "scout", "ordinal": ordinal, "prompt": [],
            "tools": [], "reply": {"Ok": reply}, "millis": 1,
        });
        json!({ "exchange": exchange }).to_string()
    };
    let lines: Vec<String> = texts.iter().enumerate().map(exchange).collect();
    let path = bed.write("ask.jsonl", &lines.join("\n"));
    format!("replay:{}", path.display())
}

#[test]
fn ask_answers_without_changing_files() {
    let bed = TestProject::new();
    let claim = "`f` gives one [work.py:2]; `gone` is not there [gone.py:1].";
    let model = told(&bed, &[claim, &format!("1: {claim}")]);
    let said = bed.say(&["ask", "--model", &model, "What does `f` return in work.py?"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let answer = "`f` gives one [work.py:2]; `gone` is not there [unverified].";
    assert!(said.out.starts_with(answer), "{said:?}");
    assert!(said.out.contains("\nwork.py:2 f return 1\n"), "{said:?}");
    assert!(said.err.contains("located work.py::"), "{said:?}");
    assert!(said.err.contains("$1.00,"), "{said:?}");
    assert_eq!(bed.work(), OLD);

    let said = bed.say(&[
        "ask",
        "--json",
        "--model",
        &model,
        "What does `f` return in work.py?",
    ]);
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(answer["question"], "What does `f` return in work.py?");
    let citation = &answer["citations"][0];
    assert_eq!(citation["path"], "work.py");
    assert_eq!(citation["line"], 2);
    assert_eq!(citation["symbol"], "f");
    assert_eq!(citation["text"], "return 1");
    assert_eq!(answer["dropped"][0]["citation"], "gone.py:1");
    assert_eq!(answer["steps"][0]["step"], "located");
    assert_eq!(answer["calls"], 2);
    assert_eq!(answer["prompt_tokens"], 1800);
    assert_eq!(answer["output_tokens"], 40);
    assert_eq!(answer["usd"], 1.0);
    assert!(answer["seconds"].is_number());
}

#[test]
fn ask_session_is_saved_and_continued() {
    let bed = TestProject::new();
    let model = told(&bed, &["`f` gives one [work.py:2]."]);
    for turns in 1..=2 {
        let said = bed.say(&[
            "ask",
            "--session",
            "s/one.json",
            "--model",
            &model,
            "What does `f` return in work.py?",
        ]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let text = std::fs::read_to_string(bed.root().join("s/one.json")).unwrap();
        let session: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(session["turns"].as_array().unwrap().len(), turns);
    }
    bed.write("project/s/bad.json", "{");
    bed.write(
        "project/s/other.json",
        &json!({"version": 1, "root": "/x", "turns": [], "findings": []}).to_string(),
    );
    for (file, because) in [
        ("s/bad.json", "not a session"),
        ("s/other.json", "the session belongs to /x"),
        ("s", "not a regular file"),
    ] {
        let said = bed.say(&["ask", "--session", file, "--model", &model, "What?"]);
        said.is_wrong_use(because);
    }
}

#[test]
fn invalid_ask_arguments_are_usage_errors() {
    let bed = TestProject::new();
    bed.say(&["ask", " "]).is_wrong_use("the question is empty");
    bed.say(&["ask", "--allow-write", "[", "x"])
        .is_wrong_use("[: not a valid .gitignore glob");
    bed.say(&["ask", "--budget-seconds", "0", "x"])
        .is_wrong_use("--budget-seconds");
    bed.say(&["ask", "--repo", "nowhere", "What?"])
        .is_wrong_use("nowhere");
    bed.say(&["ask", "--model", "unheard", "What?"])
        .is_wrong_use("no model is called");
    bed.say(&["ask", "--budget-tokens", "few", "What?"])
        .is_wrong_use("--budget-tokens");
    let model = told(&bed, &["x"]);
    std::fs::create_dir(bed.root().join("empty")).unwrap();
    bed.say(&["ask", "--repo", "empty", "--model", &model, "What?"])
        .is_wrong_use("no text file to read");
    let long = "why ".repeat(9_000);
    bed.say(&["ask", "--model", &model, &long])
        .is_wrong_use("shorten it");
}

#[test]
fn question_can_be_read_from_stdin() {
    let bed = TestProject::new();
    let model = told(&bed, &["`f` gives one [work.py:2]."]);
    let mut command = bed.starling();
    command.args(["ask", "--model", &model, "-"]);
    let mut talk = RunningProgram::begin(command);
    talk.write("What does `f` return?");
    drop(talk.child.stdin.take());
    let said = talk.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.starts_with("`f` gives one [work.py:2]."),
        "{said:?}"
    );

    let mut command = bed.starling();
    command.args(["ask", "--model", &model, "-"]);
    let mut talk = RunningProgram::begin(command);
    talk.child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(&[0xff, 0xfe])
        .unwrap();
    drop(talk.child.stdin.take());
    talk.end().is_wrong_use("cannot read stdin");
}

#[test]
fn answer_says_that_the_budget_is_used_up() {
    let bed = TestProject::new();
    let model = told(&bed, &["x"]);
    let said = bed.say(&[
        "ask",
        "--budget-tokens",
        "10",
        "--model",
        &model,
        "What does `f` return in work.py?",
    ]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("work.py:1"), "{said:?}");
    assert!(
        said.out.contains("best so far): the budget is used up"),
        "{said:?}"
    );
}
