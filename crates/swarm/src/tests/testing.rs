//! The result of the tool `run_tests`, as an agent receives it.

use serde_json::json;

use super::bed::*;
use crate::evidence::ids::WHOLE_RUN;
use crate::{Event, TestEvidence};

const ONE: &str = "def f(x):\n    return x\n";

/// Runs an agent that calls `run_tests` with this selection. Returns the last prompt of the agent,
/// which contains the result.
async fn told(mut bed: Bed, select: &[&str]) -> String {
    let run = call("run_tests", json!({ "select": select }));
    let lines = [run, finish("seen")];
    bed.model = std::sync::Arc::new(Scripted::native().on("agent a.py::f", lines));
    bed.run().await;
    bed.model.prompts("agent a.py::f").pop().unwrap()
}

fn bed() -> Bed {
    Bed::new(&[("a.py", ONE)], Scripted::native()).begin(&["a.py::f"])
}

#[tokio::test(start_paused = true)]
async fn test_tool_reports_the_numbers_of_passed_and_failed_tests() {
    let text = told(bed().tests(|_| vec![]), &[]).await;
    assert!(
        text.contains("`fake tests` passes: 2 pass, 0 fail\n"),
        "{text}"
    );
    let wrong = |_: &str| vec![("t1".to_owned(), "AssertionError: 1 != 2".to_owned())];
    let text = told(bed().tests(wrong), &[]).await;
    assert!(
        text.contains("`fake tests` fails: 1 pass, 1 fail\n"),
        "{text}"
    );
    assert!(text.contains("AssertionError: 1 != 2"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn test_tool_says_that_the_command_takes_no_selection_only_if_one_was_requested() {
    let text = told(bed().tests(|_| vec![]), &["t1"]).await;
    assert!(text.contains("(the command takes no selection"), "{text}");
    let text = told(bed().tests(|_| vec![]), &[]).await;
    assert!(!text.contains("takes no selection"), "{text}");
    let mut selecting = bed().tests(|_| vec![]);
    selecting.selects = true;
    // A selected test is passed to the command in the command's own notation.
    let text = told(selecting, &["test_a.py::T.test_x"]).await;
    assert!(
        text.contains("`fake tests test_a.T.test_x` passes"),
        "{text}"
    );
    assert!(!text.contains("takes no selection"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn test_tool_shows_the_output_of_a_command_without_test_names() {
    let broken = |_: &str| vec![(WHOLE_RUN.to_owned(), "make: *** [test] Error 1".to_owned())];
    let text = told(bed().tests(broken), &[]).await;
    assert!(text.contains("`fake tests` fails\n"), "no counts: {text}");
    assert!(text.contains("make: *** [test] Error 1"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn test_tool_says_that_a_project_has_no_tests() {
    let text = told(bed(), &[]).await;
    assert!(text.contains("no tests that can be run here"), "{text}");
}

/// Runs an agent that makes one proposal. The test `t1` passes in the first run (before the
/// change), and fails in every later run, with the change or without it.
async fn proposed(selects: bool) -> Vec<crate::Event> {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let judge = move |_: &str| match runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => vec![],
        _ => vec![("t1".to_owned(), "timed out".to_owned())],
    };
    let lines = [whole("def f(x):\n    return x or 0\n"), finish("seen")];
    let model = Scripted::native().on("agent a.py::f", lines);
    let mut bed = Bed::new(&[("a.py", ONE)], model)
        .begin(&["a.py::f"])
        .tests(judge);
    bed.selects = selects;
    bed.run().await
}

fn is_applied(events: &[crate::Event]) -> bool {
    let applied = |event: &crate::Event| matches!(event, crate::Event::ProposalApplied { .. });
    events.iter().any(applied)
}

#[tokio::test(start_paused = true)]
async fn failure_that_also_occurs_without_the_change_is_not_blamed_on_it_if_the_test_can_run_alone()
{
    assert!(is_applied(&proposed(true).await));
    // If the command cannot run a single test, the failing test is not repeated, so its failure
    // counts against the change.
    assert!(!is_applied(&proposed(false).await));
}

#[tokio::test(start_paused = true)]
async fn check_result_says_why_no_tests_could_run() {
    let reason = |missing: Option<&str>| {
        let model = Scripted::native().on(
            "agent a.py::f",
            [whole("def f(x):\n    return x + 1\n"), finish("done")],
        );
        let mut bed = Bed::new(&[("a.py", ONE)], model).begin(&["a.py::f"]);
        bed.unknown = missing.map(str::to_owned);
        async move {
            let events = bed.run().await;
            events.into_iter().find_map(|event| match event {
                Event::ProposalChecked { evidence, .. } => Some(evidence.tests),
                _ => None,
            })
        }
    };
    let unknown = |reason: &str| {
        Some(TestEvidence::Unknown {
            reason: reason.to_owned(),
        })
    };
    let why = "no container of a-1: the daemon is away";
    assert_eq!(reason(Some(why)).await, unknown(why));
    let none = "no tests were found; give a command with --test";
    assert_eq!(reason(None).await, unknown(none));
}
