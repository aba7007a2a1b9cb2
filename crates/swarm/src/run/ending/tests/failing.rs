//! Tests that fail at the end of a run, and whether they are part of the task.

use super::finished_run::{FinishedRun, ends, failing, is, report, settled};
use crate::event::ending::Proof;
use crate::event::events::StopReason;
use crate::evidence::ids::WHOLE_RUN;
use crate::task::goal::Goal;
use starling_core::{TestOutcome, TestStatus};

#[test]
fn task_to_add_a_test_is_done_despite_tests_that_failed_before() {
    use TestStatus::{Failed, Passed};
    let last = || report(TestOutcome::Failed, &[("new", Passed), ("red", Failed)]);
    let ended = |task: &str, before: &[&str]| {
        ends(&FinishedRun {
            last: Some(last()),
            before,
            task,
            ..FinishedRun::default()
        })
    };
    let headline = "Done: the new test passes; 1 test fails: red (it failed before), no part of \
                    the task";
    assert_eq!(
        ended("Add a test for parse.", &["red"]),
        is(Proof::AsBefore, headline)
    );
    assert_eq!(ended("Add a test for parse.", &[]).0, Proof::Unproven);
    assert_eq!(ended("Fix parse.", &["red"]).0, Proof::Unproven);
}

#[test]
fn failing_test_that_the_task_may_be_about_is_not_called_no_part_of_it() {
    let ends_with = |possible| {
        let cases = [("a", TestStatus::Passed), ("red", TestStatus::Failed)];
        ends(&FinishedRun {
            last: Some(report(TestOutcome::Failed, &cases)),
            before: &["a", "red"],
            required: &["a"],
            possible,
            ..FinishedRun::default()
        })
    };
    let but = "Done, but 1 test fails: red (it failed before); 1 test passes";
    assert_eq!(ends_with(&["red"]), is(Proof::Unproven, but));
    assert_eq!(ends_with(&[]).0, Proof::Proven);
}

#[test]
fn headline_of_a_failed_task_counts_the_unrelated_failing_tests() {
    let told = |ids: &[&str]| {
        ends(&FinishedRun {
            stop_reason: StopReason::TestsFail {
                failing: vec!["a".to_owned()],
            },
            last: Some(failing(ids)),
            ..FinishedRun::default()
        })
        .1
    };
    let is = |ids: &[&str], expected: &str| {
        let told = told(ids);
        assert!(told.starts_with(expected), "{told}");
    };
    is(&["a"], "Not done: 1 test fails: a;");
    let others = "Not done: 1 test fails: a (3 other tests fail, no part of the task);";
    is(&["a", "b", "c", "d"], others);
}

#[test]
fn unrelated_known_failures_do_not_make_a_change_unproven() {
    let run = |task, last: &[(&str, TestStatus)], required| FinishedRun {
        task,
        last: Some(report(TestOutcome::Failed, last)),
        before: &["red"],
        required,
        ..FinishedRun::default()
    };
    let ends = |task, last: &[(&str, TestStatus)], required| ends(&run(task, last, required));
    let cases = [("a", TestStatus::Passed), ("red", TestStatus::Failed)];
    let ends_as = |goal, task| {
        super::finished_run::ends(&FinishedRun {
            goal: Some(goal),
            ..run(task, &cases, &[])
        })
    };
    let rest = "1 test fails: red (it failed before), no part of the task";
    let stays = format!("Done: 1 test passes as before; {rest}");
    for task in [
        "Simplify f.",
        "red needs a file that we do not have, leave test `red`. Simplify f.",
    ] {
        assert_eq!(
            ends(task, &cases, &[]),
            is(Proof::AsBefore, &stays),
            "{task}"
        );
    }
    // A task that only deletes or renames something counts as a refactoring.
    let deleted = ends_as(Goal::Refactoring, "Delete `f`.");
    assert_eq!(deleted, is(Proof::AsBefore, &stays));
    let proven = format!("Done and proven: 1 test passes; {rest}");
    assert_eq!(
        ends("a fails, mend f", &cases, &["a"]),
        is(Proof::Proven, &proven)
    );
    let left = [("a", TestStatus::Passed), ("test_red", TestStatus::Failed)];
    let told = super::finished_run::ends(&FinishedRun {
        task: "f is wrong; test_red needs the network, leave it",
        last: Some(report(TestOutcome::Failed, &left)),
        before: &["test_red"],
        ..FinishedRun::default()
    });
    let told_rest = "1 test fails: test_red (it failed before), no part of the task";
    let expected = format!("Done: 1 test passes as before; {told_rest}");
    assert_eq!(told, is(Proof::AsBefore, &expected));
    // If no test shows the bug that the task describes, any failing test may be caused by it.
    let unproven = |found: (Proof, String)| assert_eq!(found.0, Proof::Unproven, "{}", found.1);
    unproven(ends("f is wrong", &cases, &[]));
    unproven(ends("Simplify f.", &cases, &["red"]));
    unproven(ends("Simplify f.", &cases[1..], &[]));
    let new = [cases[0], ("new", TestStatus::Failed)];
    unproven(ends("Simplify f.", &new, &[]));
}

#[test]
fn tests_that_fail_as_before_do_not_prove_a_change() {
    let but = |what: &str| is(Proof::Unproven, &format!("Done, but {what}"));
    assert_eq!(
        settled(failing(&["a", "b"]), &["a", "b"]),
        but("2 tests fail: a, b (both failed before)")
    );
    assert_eq!(
        settled(failing(&["a"]), &["a"]),
        but("1 test fails: a (it failed before)")
    );
    let many = ["a", "b", "c", "d", "e"];
    assert_eq!(
        settled(failing(&many), &many),
        but("5 tests fail: a, b, c, d and 1 more (all failed before)")
    );
    assert_eq!(
        settled(failing(&["a", "b"]), &["a"]),
        but("2 tests fail: a, b (1 failed before)")
    );
    assert_eq!(
        settled(failing(&[]), &[WHOLE_RUN]),
        but("`make check` fails (it failed before)")
    );
}

#[test]
fn headline_with_failing_tests_counts_the_passing_ones() {
    use TestStatus::{Failed, Passed};
    let cases = [("a", Passed), ("b", Passed), ("red", Failed)];
    let last = || report(TestOutcome::Failed, &cases);
    let headline = "Done, but 1 test fails: red (it failed before); 2 tests pass";
    assert_eq!(settled(last(), &["red"]), is(Proof::Unproven, headline));
    let (proof, headline) = ends(&FinishedRun {
        stop_reason: StopReason::TestsFail {
            failing: vec!["red".to_owned()],
        },
        last: Some(last()),
        ..FinishedRun::default()
    });
    assert_eq!(proof, Proof::NotDone);
    assert!(
        headline.starts_with("Not done: 2 tests pass; 1 test fails: red;"),
        "{headline}"
    );
}

#[test]
fn headline_counts_new_tests_beside_failing_ones() {
    let known = [("old", TestStatus::Passed), ("red", TestStatus::Failed)];
    let run = |new: &[&'static str]| {
        let new = new.iter().map(|id| (*id, TestStatus::Passed));
        let cases: Vec<_> = known.iter().copied().chain(new).collect();
        FinishedRun {
            task: "Add a test for Book: its label and reverse charge",
            changed: &["tests/test_items.py::"],
            last: Some(report(TestOutcome::Failed, &cases)),
            report_before: Some(report(TestOutcome::Failed, &known)),
            before: &["red"],
            ..FinishedRun::default()
        }
    };
    let rest = "1 test fails: red (it failed before), no part of the task";
    let two = run(&["label", "charge[a]", "charge[b]"]);
    let headline = format!("Done: the 2 new tests pass; {rest}");
    assert_eq!(ends(&two), is(Proof::AsBefore, &headline));
    let headline = format!("Done: the new test passes; {rest}");
    assert_eq!(ends(&run(&["label"])), is(Proof::AsBefore, &headline));
}

#[test]
fn headline_names_only_the_failing_tests_that_may_be_part_of_the_task() {
    use TestStatus::{Failed, Passed};
    let cases = [("a", Passed), ("b", Failed), ("c", Failed)];
    let run = FinishedRun {
        task: "format pads nothing",
        last: Some(report(TestOutcome::Failed, &cases)),
        before: &["a", "b", "c"],
        required: &["a"],
        possible: &["c"],
        ..FinishedRun::default()
    };
    let headline = "Done, but 1 test fails: c (it failed before) (1 other test fails, no part of the \
                    task); 1 test passes";
    assert_eq!(ends(&run), is(Proof::Unproven, headline));
}
