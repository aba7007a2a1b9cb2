//! Determines whether a test is known to fail without the changes of a run.

use super::facts::{LastCheck, RunFacts};
use crate::check::test_files::is_module;
use crate::event::ending::Proof;
use crate::task::goal::Goal;
use starling_core::{TestCase, TestOutcome, TestReport, TestStatus};

/// Returns the result of a run whose task does not ask for different behaviour: [`Proof::Proven`]
/// if a test fails without the change, otherwise [`Proof::AsBefore`]. If only tests were changed,
/// their results prove nothing.
pub(super) fn whole(facts: &RunFacts<'_>, passed: &str) -> (Proof, String) {
    let has_new = !facts.new_tests.fails.is_empty() || !facts.new_tests.passes.is_empty();
    let only_tests = facts.changed.iter().all(|one| is_module(&one.file));
    match is_shown(facts) {
        true if only_tests && !facts.changed.is_empty() => {
            let changed = match facts.changed {
                [_] => "the test was changed",
                _ => "the tests were changed",
            };
            let headline = format!("Done: {changed} as the task asks; {passed}");
            (Proof::AsBefore, headline)
        }
        true => (Proof::Proven, format!("Done and proven: {passed}")),
        false if has_new || facts.goal == Goal::NewTest => {
            (Proof::AsBefore, format!("Done: {passed}"))
        }
        false => (Proof::AsBefore, format!("Done: {passed} as before")),
    }
}

/// Returns whether a test, or the whole command, is known to fail without the run's change and to
/// pass with it.
fn is_shown(facts: &RunFacts<'_>) -> bool {
    let LastCheck::Known(report) = facts.last_check else {
        return false;
    };
    let is_fixed = |case: &TestCase| {
        let is_aside = facts.aim.aside.contains(&case.id);
        let did_fail = facts.required.contains(&case.id)
            || facts.failed_before.contains(&case.id) && !is_aside;
        case.status == TestStatus::Passed && did_fail
    };
    let mut cases = report.cases.iter();
    cases.any(is_fixed)
        || are_all_fixed(facts, report)
        || facts.new_tests.show_the_change()
        // If a test reporter lists the single tests, the result of the whole command does not
        // count.
        || (report.cases.is_empty() || !report.source.is_reporter()) && did_fail(facts, report)
}

/// Returns whether all tests pass now and at least one of them failed before the run. Flaky tests,
/// and tests that reach only code which the task does not name, are not counted as failed before.
pub(super) fn are_all_fixed(facts: &RunFacts<'_>, report: &TestReport) -> bool {
    let mut failed = facts.failed_before.iter();
    report.outcome == TestOutcome::Passed
        && failed.any(|id| !facts.aim.aside.contains(id) && !facts.unsteady.contains(id))
}

/// Returns whether a test command that passes now failed before the run.
pub(super) fn did_fail(facts: &RunFacts<'_>, report: &TestReport) -> bool {
    report.outcome == TestOutcome::Passed
        && facts.report_before.is_some_and(|before| {
            let is_same = before.command == report.command;
            is_same && before.outcome == TestOutcome::Failed && before.exit != Some(0)
        })
}
