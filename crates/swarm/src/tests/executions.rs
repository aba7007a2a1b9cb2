//! What failing tests executed is shown to models and decides where the work begins.

use std::sync::{Arc, Mutex};

use super::bed::*;
use crate::*;
use starling_core::{ExecutedFrame, Executions, FailingExecution};
use starling_syntax::FilePath;

const SHOP: &str = "\
def total(prices):
    return sum(prices) + fee(len(prices))

def late(days):
    return days

def fee(count):
    return count - 1
";
const TESTS: &str = "\
from shop import late, total

def test_total():
    assert total([2]) == 2

def test_late():
    assert late(1) == 2
";

fn red(_: &str) -> Vec<(String, String)> {
    let total = "test_shop.py:4: in test_total\n    assert total([2]) == 2\nE   assert 1 == 2";
    let late = "test_shop.py:7: in test_late\n    assert late(1) == 2\nE   assert 1 == 2";
    vec![
        ("test_shop.py::test_total".to_owned(), total.to_owned()),
        ("test_shop.py::test_late".to_owned(), late.to_owned()),
    ]
}

fn execution(id: &str) -> FailingExecution {
    let values = match id.ends_with("test_total") {
        true => "prices = [2]",
        false => "days = 1",
    };
    let frame = ExecutedFrame {
        file: FilePath::new("shop.py"),
        line: 2,
        function: "f".to_owned(),
        values: vec![values.to_owned()],
    };
    FailingExecution {
        id: id.to_owned(),
        frames: vec![frame],
        lines: match id.ends_with("test_total") {
            true => [1, 2, 7, 8]
                .map(|line| (FilePath::new("shop.py"), line))
                .into(),
            false => [4, 5].map(|line| (FilePath::new("shop.py"), line)).into(),
        },
    }
}

/// Returns a test bed, and the selections of the runs that recorded executions.
fn bed(task: &str) -> (Bed, Arc<Mutex<Vec<Vec<String>>>>) {
    let model = Scripted::native()
        .on("scout", [wake(&["shop.py::total"])])
        .always("agent", finish("nothing"));
    let selections: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let kept = Arc::clone(&selections);
    let files = [("shop.py", SHOP), ("test_shop.py", TESTS)];
    let mut bed = Bed::new(&files, model)
        .tests(red)
        .with(|it| it.text = task.to_owned())
        .recording(move |select, failing| {
            kept.lock().unwrap().push(select.to_vec());
            Executions {
                failing: failing.iter().map(|id| execution(id)).collect(),
                passed: 30,
                passing: [(1, 30), (2, 30)]
                    .map(|(line, count)| ((FilePath::new("shop.py"), line), count))
                    .into(),
            }
        });
    bed.selects = true;
    (bed, selections)
}

#[tokio::test(start_paused = true)]
async fn prompt_shows_the_values_in_the_frames_of_the_failing_test_that_the_task_names() {
    let (mut bed, selections) = bed("test_shop.py::test_total fails");
    bed.run().await;
    assert_eq!(*selections.lock().unwrap(), [["test_shop.py"]]);
    let prompt = &bed.model.prompts("scout")[0];
    assert!(
        prompt.contains("<values>\nshop.py:2 in f: prices = [2]\n</values>"),
        "{prompt}"
    );
    assert!(!prompt.contains("days = 1"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn tests_that_the_task_neither_names_nor_quotes_are_not_recorded() {
    let (mut bed, selections) = bed("`late` forgets a day");
    bed.run().await;
    assert_eq!(*selections.lock().unwrap(), [[""; 0]; 0]);
    let prompt = &bed.model.prompts("scout")[0];
    assert!(!prompt.contains("<values>"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn all_failing_tests_are_recorded_if_the_task_names_none_of_them() {
    let (mut bed, _) = bed("Make the failing tests pass");
    bed.run().await;
    let prompt = &bed.model.prompts("scout")[0];
    for values in ["prices = [2]", "days = 1"] {
        assert!(prompt.contains(values), "{prompt}");
    }
}

/// Returns the symbols of code, with the first reason, in the order in which they were found.
fn located(events: &[Event]) -> Vec<(String, String)> {
    let candidates = events.iter().find_map(|event| match event {
        Event::Located { candidates, .. } => Some(candidates),
        _ => None,
    });
    let candidates = candidates.expect("the run located its start").iter();
    let code = candidates.filter(|one| one.symbol.file.as_str() == "shop.py");
    code.map(|one| (one.symbol.name.clone(), one.why[0].clone()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn code_that_only_the_named_failing_test_executes_is_the_first_candidate() {
    let (mut bed, _) = bed("test_shop.py::test_total fails");
    let events = bed.run().await;
    let why = "has lines run by the failing test and by none of 30 passing tests";
    assert_eq!(located(&events)[0], ("fee".to_owned(), why.to_owned()));
    let prompt = &bed.model.prompts("scout")[0];
    assert!(
        prompt.contains(&format!("`shop.py::fee` line 7 ({why}")),
        "{prompt}"
    );
}

#[tokio::test(start_paused = true)]
async fn failing_tests_that_the_task_neither_names_nor_quotes_do_not_decide_where_work_begins() {
    let (mut bed, _) = bed("`late` forgets a day");
    let events = bed.run().await;
    let first = &located(&events)[0];
    assert_eq!(first.0, "late", "{first:?}");
    assert!(
        !located(&events)
            .iter()
            .any(|(_, why)| why.contains("run by"))
    );
}
