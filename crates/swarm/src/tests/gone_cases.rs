//! Parametrized tests whose values the run changes, and with the values the ids of the cases.

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::Approval;

const CODE: &str = "def fee(x):\n    return x + 1\n";
const HIGHER: &str = "def fee(x):\n    return x + 2\n";
const SAME: &str = "def fee(x):\n    return 1 + x\n";
const TWO: [(u32, u32); 2] = [(3, 4), (7, 8)];

fn test(cases: &[(u32, u32)]) -> String {
    let cases: Vec<String> = cases.iter().map(|one| format!("{one:?}")).collect();
    let cases = cases.join(", ");
    format!(
        "@pytest.mark.parametrize(\"x, due\", [{cases}])\ndef test_fee(x, due):\n    assert fee(x) == due\n"
    )
}

/// Returns the results of the parametrized test for each pair of values. Pairs that are not in the
/// text do not run.
fn judge(all: &str) -> Vec<(String, String)> {
    let rise = if all.contains("x + 2") { 2 } else { 1 };
    let pairs = (1..9).flat_map(|x| (1..12).map(move |due| (x, due)));
    let results = pairs.map(|(x, due)| {
        let message = match (all.contains(&format!("({x}, {due})")), x + rise == due) {
            (false, _) => GONE,
            (true, true) => PASSES,
            (true, false) => "E   assert",
        };
        (
            format!("test_a.py::test_fee[{x}-{due}]"),
            message.to_owned(),
        )
    });
    results.collect()
}

/// The events of a run, and the final texts of the code file and of the test file.
struct RunResult {
    events: Vec<Event>,
    code: String,
    tests: String,
}

async fn outcome(code: &str, before: &[(u32, u32)], after: &[(u32, u32)], task: &str) -> RunResult {
    let proposed = |text: &str| {
        let change = json!({"reason": "because", "source": text, "intended_losses": true});
        call("propose", change)
    };
    let twice = |text: &str| {
        let end = finish("done");
        [proposed(text), proposed(text), end.clone(), end]
    };
    let mut model = Scripted::native().on("agent test_a.py::test_fee", twice(&test(after)));
    let mut begin = vec!["test_a.py::test_fee"];
    if code != CODE {
        model = model.on("agent a.py::fee", twice(code));
        begin.push("a.py::fee");
    }
    let old = format!("import pytest\nfrom a import fee\n\n\n{}", test(before));
    let files = [("a.py", CODE), ("test_a.py", old.as_str())];
    let mut bed = Bed::new(&files, model)
        .begin(&begin)
        .tests(judge)
        .with(|own| {
            own.approval = Approval::Auto;
            own.text = task.to_owned();
        });
    bed.selects = true;
    let events = bed.run().await;
    RunResult {
        code: bed.read("a.py"),
        tests: bed.read("test_a.py"),
        events,
    }
}

fn gone_cases(events: &[Event]) -> Vec<String> {
    let gone = events.iter().filter_map(|event| match event {
        Event::ProposalChecked { evidence, .. } => match evidence.counting().0 {
            TestEvidence::Known { uncounted, .. } => Some(uncounted.gone_cases.clone()),
            TestEvidence::Unknown { .. } => None,
        },
        _ => None,
    });
    let mut gone: Vec<String> = gone.flatten().collect();
    gone.sort();
    gone.dedup();
    gone
}

#[tokio::test(start_paused = true)]
async fn changed_values_of_a_parametrized_test_do_not_count_as_removed_tests() {
    let found = outcome(
        HIGHER,
        &TWO,
        &[(3, 5), (7, 9)],
        "Let fee charge 2 and update test_fee.",
    )
    .await;
    assert_eq!(found.code, HIGHER, "{:#?}", found.events);
    assert!(found.tests.contains("(3, 5)"), "{:#?}", found.events);
    let gone = ["test_a.py::test_fee[3-4]", "test_a.py::test_fee[7-8]"];
    assert_eq!(gone_cases(&found.events), gone);
}

/// The old cases fail with the change, and the task does not ask to change them.
#[tokio::test(start_paused = true)]
async fn changing_the_values_of_a_test_does_not_hide_that_an_old_case_fails() {
    let found = outcome(HIGHER, &TWO, &[(3, 5), (7, 9)], "Make fee faster.").await;
    assert_eq!(found.code, CODE, "{:#?}", found.events);
}

#[tokio::test(start_paused = true)]
async fn evidence_names_the_removed_cases_of_a_parametrized_test() {
    let found = outcome(SAME, &TWO, &[(3, 4)], "Make fee faster.").await;
    assert!(!found.tests.contains("(7, 8)"), "{:#?}", found.events);
    assert_eq!(gone_cases(&found.events), ["test_a.py::test_fee[7-8]"]);
}

#[tokio::test(start_paused = true)]
async fn replacing_the_values_of_a_failing_case_does_not_count_as_fixing_it() {
    let before = [(3, 5), (7, 8)];
    let found = outcome(CODE, &before, &TWO, "Fix the failing tests.").await;
    assert!(found.tests.contains("(3, 5)"), "{:#?}", found.events);
    // This task is not about the failing test. The old case stays, and the headline reports that it
    // fails.
    let found = outcome(CODE, &before, &TWO, "Make fee faster.").await;
    assert_eq!(gone_cases(&found.events), [""; 0]);
    let Some(Event::RunFinished {
        ending: Some(ending),
        ..
    }) = found.events.last()
    else {
        panic!("{:#?}", found.events);
    };
    let told = "1 test fails: test_a.py::test_fee[3-5] (it failed before)";
    assert!(ending.headline.contains(told), "{}", ending.headline);
}

/// The change removes all values, so that no case of the test runs any more.
#[tokio::test(start_paused = true)]
async fn change_that_removes_all_cases_of_a_test_is_not_applied() {
    let found = outcome(CODE, &TWO, &[], "Make fee faster.").await;
    assert!(found.tests.contains("(7, 8)"), "{:#?}", found.events);
}
