//! Retries after a refused proposal: the owner receives the failures, may try again a limited
//! number of times, and starts each time from the last accepted text.

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::{Approval, Verdict};

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";

fn hunk(old: &str, new: &str) -> Line {
    call(
        "propose",
        json!({"reason": "r", "hunks": [{"old": old, "new": new}]}),
    )
}

/// Returns the test results: the test `old` always fails, and `t1` fails if a file contains `return
/// None`.
fn no_none(all: &str) -> Vec<(String, String)> {
    let mut failing = vec![(
        "old".to_owned(),
        "AssertionError: known for long".to_owned(),
    )];
    if all.contains("return None") {
        let message =
            "test_a.py:2: in test_g\n    g(1)\na.py:6: in g\n    return f(x) + 1\nTypeError: None";
        failing.push(("t1".to_owned(), message.to_owned()));
    }
    failing
}

fn outcome(events: &[Event]) -> AgentOutcome {
    let finished = |event: &Event| match event {
        Event::AgentFinished { outcome, .. } => Some(outcome.clone()),
        _ => None,
    };
    events.iter().find_map(finished).expect("an end")
}

/// Returns why the agent gave up.
fn gave_up(events: &[Event]) -> String {
    match outcome(events) {
        AgentOutcome::GaveUp { why } => why,
        AgentOutcome::Changed | AgentOutcome::NothingToChange => panic!("{events:#?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_a_broken_test_starts_from_the_original_text_and_sees_only_new_failures() {
    let model = Scripted::native().on(
        "agent a.py::f",
        [
            hunk("return x", "return None"),
            // This hunk does not match, because the first attempt was not applied.
            hunk("return None", "return 2"),
            hunk("return x", "return x + 2"),
        ],
    );
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(no_none);
    let events = bed.run().await;
    assert_eq!(outcome(&events), AgentOutcome::Changed, "{events:#?}");
    assert!(bed.read("a.py").contains("return x + 2"));
    let prompts = bed.model.prompts("agent a.py::f");
    let told = prompts[1]
        .split("Not shown to the approver")
        .nth(1)
        .expect("evidence");
    assert!(told.contains("TypeError: None"), "{told}");
    assert!(!told.contains("known for long"), "{told}");
    let why = malformed(&events);
    assert!(why[1].contains("return None"), "{why:?}");
}

#[tokio::test(start_paused = true)]
async fn agent_gives_up_after_four_failed_attempts() {
    let model = Scripted::native().on(
        "agent a.py::f",
        (0..9).map(|at| whole(&format!("def f(x):\n    y = {at}\n    return None\n"))),
    );
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(no_none);
    let events = bed.run().await;
    let why = gave_up(&events);
    assert!(why.starts_with("4 attempts did not help"), "{why}");
    assert_eq!(bed.model.calls(), 4);
    assert_eq!(bed.read("a.py"), TWO);
}

#[tokio::test(start_paused = true)]
async fn repeated_proposal_of_a_small_model_is_not_checked_again() {
    let answer = "```python\ndef f(x):\n    return None\n```";
    let model = Scripted::small().on("agent a.py::f", (0..9).map(|_| say(answer)));
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(no_none);
    let events = bed.run().await;
    let why = gave_up(&events);
    assert!(why.starts_with("7 attempts, same answer: "), "{why}");
    assert_eq!(bed.model.calls(), 7);
    let is_check = |event: &&Event| matches!(event, Event::ProposalChecked { .. });
    assert_eq!(events.iter().filter(is_check).count(), 1, "{events:#?}");
    assert_eq!(bed.read("a.py"), TWO);
}

#[tokio::test(start_paused = true)]
async fn agent_that_gave_up_is_not_started_again_while_the_code_is_unchanged() {
    let answers = (0..20).map(|_| whole("def f(x):\n    return None\n"));
    let model = Scripted::native().on("agent a.py::f", answers);
    let red = |_: &str| {
        let message = "a.py:2: in f\n    return x\nAssertionError: 1 != 2";
        vec![("t1".to_owned(), message.to_owned())]
    };
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(red)
        .with(|task| task.text = "Make the tests pass.".into());
    let events = bed.run().await;
    assert!(gave_up(&events).starts_with("4 attempts, same answer"));
    assert_eq!(bed.model.calls(), 4, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn model_with_tools_gets_another_attempt_after_it_repeats_a_refused_proposal() {
    let wrong = || whole("def f(x):\n    return None\n");
    let right = whole("def f(x):\n    return x + 2\n");
    let model = Scripted::native().on("agent a.py::f", [wrong(), wrong(), wrong(), right]);
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(no_none);
    let events = bed.run().await;
    assert_eq!(outcome(&events), AgentOutcome::Changed, "{events:#?}");
    let same = |why: &&String| why.starts_with("the same answer again: tests that passed");
    assert_eq!(malformed(&events).iter().filter(same).count(), 1);
    let told = &bed.model.prompts("agent a.py::f")[3];
    assert!(told.contains("You proposed the same before"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn refused_proposal_may_be_repeated_together_with_a_change_request() {
    let text = "def f(x):\n    return g(x) * 3\n\n\ndef g(x):\n    return x + 2\n";
    let red = |all: &str| match all.contains("g(x) * 2") && all.contains("x + 1") {
        true => Vec::new(),
        false => vec![("t1".to_owned(), "AssertionError: f(1) must be 4".to_owned())],
    };
    let mine = || hunk("* 3", "* 2");
    let both = |arguments: serde_json::Value| {
        let change = json!({"reason": "r", "hunks": [{"old": "* 3", "new": "* 2"}]});
        Line::Call(vec![
            ("request_change".to_owned(), arguments),
            ("propose".to_owned(), change),
        ])
    };
    let wrong = json!({"symbol": "a.py::g", "what": "x + 1"});
    let right = json!({"symbol": "a.py::g", "reason": "g must return x + 1"});
    let model = Scripted::native()
        .on("agent a.py::f", [mine(), both(wrong), both(right)])
        .on("agent a.py::g", [hunk("x + 2", "x + 1")]);
    let mut bed = Bed::new(&[("a.py", text)], model)
        .begin(&["a.py::f"])
        .tests(red)
        .with(|task| task.text = "f(1) must be 4.".into());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let same = |why: &String| why.starts_with("the same answer again");
    assert!(!malformed(&events).iter().any(same), "{events:#?}");
    assert!(bed.read("a.py").contains("g(x) * 2"));
}

#[tokio::test(start_paused = true)]
async fn agent_may_finish_without_a_change_after_a_refused_proposal() {
    let model = Scripted::native().on(
        "agent a.py::f",
        [
            hunk("return x", "return None"),
            finish("it is right as it is"),
        ],
    );
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(no_none);
    let events = bed.run().await;
    assert_eq!(outcome(&events), AgentOutcome::NothingToChange);
    assert_eq!(bed.read("a.py"), TWO);
    assert_eq!(*bed.editor.writes.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn agent_is_told_to_ask_the_owner_of_the_function_in_which_the_test_failed() {
    let ask = call(
        "request_change",
        json!({"symbol": "a.py::g", "reason": "bear None"}),
    );
    let insist = call(
        "propose",
        json!({"reason": "r", "source": "def f(x):\n    return None\n", "insist": true}),
    );
    let model = Scripted::native()
        .on(
            "agent a.py::f",
            [hunk("return x", "return None"), ask, insist],
        )
        .on(
            "agent a.py::g",
            [whole("def g(x):\n    return (f(x) or 0) + 1\n")],
        );
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(|all| match all.contains("or 0") {
            true => Vec::new(),
            false => no_none(all),
        });
    let events = bed.run().await;
    let told = &bed.model.prompts("agent a.py::f")[1];
    assert!(
        told.contains("It is raised in a.py::g. When the cause is there, ask its owner"),
        "{told}"
    );
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("a.py").contains("f(x) or 0"));
}

#[tokio::test(start_paused = true)]
async fn long_failure_output_is_cut_after_a_whole_error() {
    let many = |_: &str| -> Vec<(String, String)> {
        (0..40)
            .map(|at| {
                (
                    format!("t{at}"),
                    format!("{}Error{at}: no", "deep in the code\n".repeat(20)),
                )
            })
            .collect()
    };
    let model = Scripted::native().on(
        "agent a.py::f",
        [call("run_tests", json!({})), finish("seen")],
    );
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(many);
    let events = bed.run().await;
    let report = events.iter().find_map(|event| match event {
        Event::TestsRun { report, .. } => Some(report.clone()),
        _ => None,
    });
    let evidence = TestEvidence::compare(&Default::default(), &report.expect("a run"));
    let TestEvidence::Known { details, .. } = evidence else {
        panic!()
    };
    assert!(details.starts_with("t0\ndeep in the code\n"), "{details}");
    assert!(details.contains("Error3: no"), "{details}");
    assert!(
        details.trim_end().ends_with("other errors are not shown)"),
        "{details}"
    );
    assert!(details.len() < 4_600, "{}", details.len());
}

#[tokio::test(start_paused = true)]
async fn log_keeps_a_rejected_proposal_and_the_revision_refers_to_it() {
    let model = Scripted::native().on(
        "agent a.py::f",
        [
            hunk("return x", "return 3"),
            hunk("return x", "return x + 1"),
        ],
    );
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Ask);
    let reject = Verdict::Reject {
        reason: "it ignores x".into(),
    };
    *bed.approver.verdicts.lock().unwrap() = vec![reject].into();
    let handle = bed.start();
    handle.finished().await;
    let events = handle.log.events();
    let made: Vec<(ProposalId, Option<ProposalId>, bool)> = events
        .iter()
        .filter_map(|event| match event {
            Event::ProposalMade {
                proposal,
                revises,
                diff,
                ..
            } => Some((*proposal, *revises, diff.contains("return 3"))),
            _ => None,
        })
        .collect();
    let (first, second) = (ProposalId(1), ProposalId(2));
    assert_eq!(made, [(first, None, true), (second, Some(first), false)]);
    // The accepted second proposal can be undone although the first one was rejected.
    assert_eq!(handle.undo(Some(second)).await, Ok(vec![second]));
    assert_eq!(bed.read("a.py"), TWO);
}

#[tokio::test(start_paused = true)]
async fn small_model_is_shown_the_tests_that_its_reply_broke() {
    let stats = "def mean(values):\n    return sum(values) / len(values)\n";
    let tests = "from stats import mean\n\n\ndef test_empty():\n    assert mean([]) == 0\n\n\n\
        def test_mean():\n    assert mean([2, 4]) == 3\n";
    let judge = |all: &str| {
        let of = |test: &str, line: u32, passes: bool| {
            let message = match passes {
                true => PASSES.to_owned(),
                false => format!("test_stats.py:{line}: in {test}\nE   assert 1 == 0"),
            };
            (format!("test_stats.py::{test}"), message)
        };
        let is_right = all.contains("if values else 0");
        let is_zero = all.contains("    return 0\n");
        vec![
            of("test_empty", 5, is_right || is_zero),
            of("test_mean", 9, !is_zero),
        ]
    };
    let reply = |line: &str| {
        say(&format!(
            "```python\ndef mean(values):\n    return {line}\n```"
        ))
    };
    let model = Scripted::small().on(
        "agent stats.py::mean",
        [
            reply("0"),
            reply("sum(values) / len(values) if values else 0"),
        ],
    );
    let mut bed = Bed::new(&[("stats.py", stats), ("test_stats.py", tests)], model)
        .begin(&["stats.py::mean"])
        .tests(judge)
        .with(|task| task.text = "mean() is wrong for an empty list".into());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let prompts = bed.model.prompts("agent stats.py::mean");
    let kept =
        "must go on passing:\n```python\ndef test_mean():\n    assert mean([2, 4]) == 3\n```";
    assert!(!prompts[0].contains("go on passing"), "{}", prompts[0]);
    assert!(prompts[1].contains(kept), "{}", prompts[1]);
}
