//! The tool `try`, with which agents run code.

use serde_json::{Value, json};

use super::bed::*;
use crate::Event;
use starling_core::{Driver, TryCode};

const ONE: &str = "def f(x):\n    return x\n";
const TWO: &str = "def f(x):\n    return x + 1\n";

fn tried(arguments: Value) -> Line {
    call("try", arguments)
}

/// A project with an agent of `f`. What is tried prints the code and how `f` adds, and fails if a
/// test could not pass.
fn bed(lines: Vec<Line>) -> Bed {
    let model = Scripted::native().on("agent a.py::f", lines);
    Bed::new(&[("a.py", ONE)], model)
        .begin(&["a.py::f"])
        .tests(|text| match text.contains("+ 2") {
            true => vec![("t1".to_owned(), "AssertionError".to_owned())],
            false => vec![],
        })
        .tries(|text, code| {
            let added = ["+ 2", "+ 1"].into_iter().find(|one| text.contains(one));
            let kind = match code {
                TryCode::Command(_) => "command",
                TryCode::Python(_) => "python",
                TryCode::Session(_) => "session",
            };
            let output = format!("{kind} {}\n{}\n", code.text(), added.unwrap_or("+ 0"));
            (output, i32::from(code.text() == "fail"))
        })
}

/// Returns the last prompt of the agent.
fn last(bed: &Bed) -> String {
    bed.model.prompts("agent a.py::f").pop().unwrap()
}

fn outcomes(events: &[Event]) -> Vec<(String, String)> {
    let used = |event: &Event| match event {
        Event::ToolUsed {
            tool,
            argument,
            outcome,
            ..
        } if tool == "try" => Some((argument.clone(), outcome.clone())),
        _ => None,
    };
    events.iter().filter_map(used).collect()
}

#[tokio::test(start_paused = true)]
async fn agent_sees_the_output_and_the_status_of_tried_code_and_the_log_has_one_line() {
    let mut bed = bed(vec![
        tried(json!({"python": "import a\nf(1)"})),
        tried(json!({"command": "fail"})),
        finish("seen"),
    ]);
    let events = bed.run().await;
    let told = last(&bed);
    let expected = "+ 0 (exit status 0, 0.1 s)\npython import a\nf(1)\n+ 0\n";
    assert!(told.contains(expected), "{told}");
    let expected = "+ 0 (exit status 1, 0.1 s)\ncommand fail\n";
    assert!(told.contains(expected), "{told}");
    let expected = [
        ("import a; f(1)", "+ 0 (exit status 0, 0.1 s)"),
        ("fail", "+ 0 (exit status 1, 0.1 s)"),
    ];
    let expected = expected.map(|(code, outcome)| (code.to_owned(), outcome.to_owned()));
    assert_eq!(outcomes(&events), expected);
}

#[tokio::test(start_paused = true)]
async fn code_is_tried_with_a_proposal_that_came_back_and_without_all_changes() {
    let two = TWO.replace("+ 1", "+ 2");
    let mut bed = bed(vec![
        call(
            "propose",
            json!({"reason": "r", "source": TWO, "more": true}),
        ),
        tried(json!({"python": "applied"})),
        whole(&two),
        tried(json!({"python": "drafted"})),
        tried(json!({"python": "original", "world": "before"})),
        finish("seen"),
    ]);
    bed.run().await;
    let told = last(&bed);
    let applied = "+ 1 (exit status 0, 0.1 s)\npython applied\n";
    assert!(told.contains(applied), "{told}");
    let drafted = "+ 2 (exit status 0, 0.1 s, with your proposal that is not applied)\n";
    assert!(told.contains(drafted), "{told}");
    let original = "+ 0 (exit status 0, 0.1 s, without the changes of this run)\n";
    assert!(told.contains(original), "{told}");
}

#[tokio::test(start_paused = true)]
async fn calls_without_code_and_calls_over_the_limit_of_a_turn_are_refused() {
    let call = |at: usize| ("try".to_owned(), json!({"python": format!("{at}")}));
    let mut bed = bed(vec![
        Line::Call((0..5).map(call).collect()),
        tried(json!({})),
        finish("seen"),
    ]);
    let events = bed.run().await;
    let told = last(&bed);
    assert!(
        told.contains("Not tried: the limit of 4 tries in one turn"),
        "{told}"
    );
    assert!(told.contains("Not tried: give either `python`"), "{told}");
    let outcomes = outcomes(&events);
    let refused = outcomes
        .iter()
        .filter(|(_, how)| how.starts_with("Not tried"));
    assert_eq!((outcomes.len(), refused.count()), (6, 2), "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn scout_and_the_single_agent_try_code() {
    let model = Scripted::native()
        .on("scout", [tried(json!({"python": "1"})), wake(&["a.py::f"])])
        .on("agent", [finish("seen")]);
    let mut bed = Bed::new(&[("a.py", ONE)], model).tries(|_, _| ("one\n".to_owned(), 0));
    bed.run().await;
    let told = bed.model.prompts("scout").pop().unwrap();
    assert!(told.contains("one (exit status 0, 0.1 s)\none\n"), "{told}");

    let model = Scripted::native().on("solo", [tried(json!({"python": "1"})), finish("seen")]);
    let mut bed = Bed::new(&[("a.py", ONE)], model)
        .tries(|_, _| ("one\n".to_owned(), 0))
        .with(|task| task.driver = Driver::Single);
    bed.run().await;
    let told = bed.model.prompts("solo").pop().unwrap();
    assert!(told.contains("one (exit status 0, 0.1 s)\none\n"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn model_is_told_why_code_cannot_be_tried() {
    let model = Scripted::native().on("agent", [tried(json!({"python": "1"})), finish("seen")]);
    let mut bed = Bed::new(&[("a.py", ONE)], model).begin(&["a.py::f"]);
    bed.run().await;
    let told = bed.model.prompts("agent").pop().unwrap();
    assert!(
        told.contains("Not tried: nothing can be tried in this test"),
        "{told}"
    );
}
