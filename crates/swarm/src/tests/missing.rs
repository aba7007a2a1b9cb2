//! A change cannot make tests disappear: a test that passed before and does not run with the change
//! counts as broken, and a test that failed is not fixed by its absence.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

const CODE: &str = "def f(x):\n    return x\n";
const TESTS: &str = "from a import f\n\n\ndef test_old():\n    assert f(1) == 1\n";
const RENAMED: &str = "def test_new():\n    assert f(1) == 1\n";
const OLD: &str = "test_a.py::test_old";

/// Returns the test results: `t1` does not run if a file contains `collect_ignore`. Otherwise, all
/// tests pass.
fn left_out(all: &str) -> Vec<(String, String)> {
    match all.contains("collect_ignore") {
        true => vec![("t1".to_owned(), GONE.to_owned())],
        false => Vec::new(),
    }
}

fn skipped(all: &str) -> Vec<(String, String)> {
    match all.contains("collect_ignore") {
        true => vec![("t1".to_owned(), SKIPPED.to_owned())],
        false => Vec::new(),
    }
}

/// Returns the test results: the test [`OLD`] passes if a file defines it. Otherwise, it does not
/// run.
fn old_is_there(all: &str) -> Vec<(String, String)> {
    match all.contains("def test_old") {
        true => vec![(OLD.to_owned(), PASSES.to_owned())],
        false => Vec::new(),
    }
}

fn bed(approval: Approval, lines: impl IntoIterator<Item = Line>) -> Bed {
    let model = Scripted::native()
        .on("agent a.py::f", lines)
        .always("proxy", say("ACCEPT"));
    Bed::new(&[("a.py", CODE)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = approval)
}

const HIDES: &str = "def f(x):\n    return x  # collect_ignore\n";

#[tokio::test(start_paused = true)]
async fn change_that_prevents_a_test_from_running_is_not_applied_automatically() {
    for approval in [Approval::Auto, Approval::Proxy] {
        for judge in [left_out, skipped] {
            let mut bed = bed(approval, [whole(HIDES), finish("no")]).tests(judge);
            let events = bed.run().await;
            assert_eq!(bed.read("a.py"), CODE, "{approval:?}: {events:#?}");
            assert!(bed.model.prompts("proxy").is_empty());
            let told = &malformed(&events)[0];
            assert!(told.contains("tests that passed before fail with this change (t1)"));
            assert!(told.contains("did not run now"), "{told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn review_shows_that_a_test_no_longer_runs() {
    let insists = call(
        "propose",
        json!({"reason": "r", "source": HIDES, "insist": true}),
    );
    let mut bed = bed(Approval::Ask, [insists, finish("done")]).tests(left_out);
    let events = bed.run().await;
    let shown = bed.approver.seen.lock().unwrap()[0].evidence.clone();
    assert!(shown.contains("BROKEN by this change (1): t1"), "{shown}");
    assert!(shown.contains("did not run now"), "{shown}");
    assert_eq!(bed.read("a.py"), HIDES);
    // The person accepted that this test no longer runs, so the run still ends successfully.
    assert_eq!(stop(&events), StopReason::Settled);
}

#[tokio::test(start_paused = true)]
async fn test_that_was_skipped_before_does_not_count_as_missing() {
    let changed = "def f(x):\n    return x or 0\n";
    let never = |_: &str| vec![("t1".to_owned(), SKIPPED.to_owned())];
    let mut bed = bed(Approval::Auto, [whole(changed), finish("done")]).tests(never);
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), changed, "{events:#?}");
    assert_eq!(stop(&events), StopReason::Settled);
}

#[tokio::test(start_paused = true)]
async fn test_with_an_id_that_differs_in_each_run_does_not_count_as_missing() {
    // The id of the third test differs in each run.
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let unstable = move |_: &str| {
        let run = runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        vec![(format!("test_a.py::t3[object at {run}]"), PASSES.to_owned())]
    };
    let changed = "def f(x):\n    return x or 0\n";
    let mut bed = bed(Approval::Auto, [whole(changed), finish("done")]).tests(unstable);
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), changed, "{events:#?}");
    assert_eq!(stop(&events), StopReason::Settled);
}

#[tokio::test(start_paused = true)]
async fn test_may_be_renamed_only_if_the_task_names_that_test() {
    for (task, may) in [
        ("Rename test_old to test_new.", true),
        ("Make f faster.", false),
        ("Rename f.", false),
    ] {
        let model = Scripted::native().on(
            "agent test_a.py::test_old",
            [whole(RENAMED), finish("done")],
        );
        let mut bed = Bed::new(&[("a.py", CODE), ("test_a.py", TESTS)], model)
            .begin(&["test_a.py::test_old"])
            .tests(old_is_there)
            .with(|own| {
                own.approval = Approval::Auto;
                own.text = task.to_owned();
            });
        let events = bed.run().await;
        assert_eq!(
            bed.read("test_a.py").contains("test_new"),
            may,
            "{task}: {events:#?}"
        );
        if may {
            assert_eq!(stop(&events), StopReason::Settled, "{task}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn code_change_that_disables_a_test_is_refused_even_if_the_task_names_the_test() {
    let gone = |all: &str| match all.contains("collect_ignore") {
        true => vec![(OLD.to_owned(), GONE.to_owned())],
        false => vec![(OLD.to_owned(), PASSES.to_owned())],
    };
    let mut bed = bed(Approval::Auto, [whole(HIDES), finish("done")])
        .tests(gone)
        .with(|task| task.text = "Rename test_old to test_new.".to_owned());
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), CODE, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn missing_test_is_detected_when_only_selected_tests_run() {
    let many: String = (0..500)
        .map(|at| format!("def test_{at}():\n    pass\n"))
        .collect();
    let hides = |all: &str| match all.contains("collect_ignore") {
        true => vec![
            (OLD.to_owned(), GONE.to_owned()),
            ("test_a.py".to_owned(), GONE.to_owned()),
        ],
        false => Vec::new(),
    };
    let model = Scripted::native().on("agent a.py::f", [whole(HIDES), finish("no")]);
    let files = [
        ("a.py", CODE),
        ("test_a.py", TESTS),
        ("test_many.py", many.as_str()),
    ];
    let mut bed = Bed::new(&files, model).begin(&["a.py::f"]).tests(hides);
    bed.selects = true;
    let mut bed = bed.with(|task| task.approval = Approval::Auto);
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), CODE, "{events:#?}");
    assert!(
        malformed(&events)[0].contains("did not run now"),
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn removing_a_failing_test_does_not_count_as_fixing_it() {
    let gone = |all: &str| match all.contains("collect_ignore") {
        true => vec![("t1".to_owned(), GONE.to_owned())],
        false => vec![("t1".to_owned(), "assert 1 == 2".to_owned())],
    };
    for approval in [Approval::Auto, Approval::Proxy] {
        let mut bed = bed(approval, [whole(HIDES), finish("no")])
            .tests(gone)
            .with(|task| task.text = "Make the tests pass.".to_owned());
        let events = bed.run().await;
        assert_eq!(bed.read("a.py"), CODE, "{approval:?}: {events:#?}");
        let told = &malformed(&events)[0];
        assert!(told.contains("none of the failing tests passes"), "{told}");
        assert!(told.contains("did not run now"), "{told}");
    }
}
