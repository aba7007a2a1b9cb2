//! Detects flaky tests. A new failure is confirmed by another run on the same text, and a test that
//! the task is about has to pass several times.
//!
//! A test that both fails and passes on the same text is unsteady. An unsteady test does not count
//! against a change and proves nothing. A test that failed before the run and passes
//! now is run again on the text before the run.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::check::test_run::run_tests_within;
use crate::check::{expected, original_tests, required};
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::failing_ids;
use crate::state::checker::Checker;
use crate::state::epoch::Epoch;
use crate::state::test_scope::LONGEST;
use starling_core::{TestCase, TestOutcome, TestReport, TestStatus};
use starling_workspace::Snapshot;

/// Maximum number of new failures that are run again. More failures are not a coincidence.
const MOST: usize = 20;
/// Number of repeated runs of a test.
const TIMES: usize = 2;
/// Maximum duration of a test's first repetition if a second one is to follow, and of a whole command
/// that is to be repeated at all.
const QUICK: Duration = Duration::from_secs(10);
/// Last line of the message of a test that failed before the change, but not in every run.
const PASSED_BEFORE: &str =
    "failed before the change, and passed when it was run again on the same text";
/// Last line of the message of an unsteady test.
const PASSED_AGAIN: &str = "failed once, and passed when it was run again on the same text";

/// Repeats the failing tests of a report that are not in `failing`, the tests that fail without the
/// change. Tests that then pass are marked as unsteady in the report.
pub(crate) async fn confirm(
    checker: &Checker,
    world: &Snapshot,
    failing: &BTreeSet<String>,
    report: &mut TestReport,
) {
    let mut new = failing_ids(report);
    new.retain(|id| !failing.contains(id));
    run_again(checker, world, new, TIMES, report).await;
}

/// Repeats the failing tests of a report, up to `times` times.
async fn run_again(
    checker: &Checker,
    world: &Snapshot,
    mut open: Vec<String>,
    times: usize,
    report: &mut TestReport,
) {
    let missing = expected::marked(report);
    if open.len() > MOST || report.outcome != TestOutcome::Failed {
        return;
    }
    open.retain(|id| id != WHOLE_RUN && !missing.contains(id));
    for _ in 0..times {
        if open.is_empty() {
            return;
        }
        let Some(again) = once_more(checker, world, &open, report).await else {
            return;
        };
        open.retain(|id| !has_passed(&again, id));
        for case in &mut report.cases {
            let is_failure = matches!(case.status, TestStatus::Failed | TestStatus::Error);
            if is_failure && !open.contains(&case.id) && has_passed(&again, &case.id) {
                case.status = TestStatus::Unsteady;
                case.message = format!("{}\n{PASSED_AGAIN}", case.message.trim_end());
            }
        }
        // The command may fail for a reason other than a failing test.
        let none_fails = failing_ids(report).iter().all(|id| id == WHOLE_RUN);
        if none_fails && again.outcome == TestOutcome::Passed {
            report.outcome = TestOutcome::Passed;
            report.exit = again.exit;
        }
        if is_slow(&again) {
            return;
        }
    }
}

/// Runs the tests that failed before the run and pass now again on the text before the run, because
/// a test that failed there once may be flaky. Tests that pass in this repeated run are marked as
/// unsteady in the report, neither fixed nor broken. A test that the task is about is repeated only
/// on the text with the change. Nothing is run if the user changed the text since.
pub(crate) async fn doubt_fixed(checker: &Checker, report: &mut TestReport) {
    let (fixed, open, without) = {
        let state = checker.state();
        let failed = state
            .tests
            .failing_before
            .difference(&state.tests.required.ids);
        let is_fixed = |id: &&String| *id != WHOLE_RUN && has_passed(report, id);
        let fixed: BTreeSet<String> = failed.filter(is_fixed).cloned().collect();
        let known = &state.tests.flaky.failed_again | &state.tests.flaky.unsteady_before;
        let open: Vec<String> = fixed.difference(&known).cloned().collect();
        (fixed, open, state.without_the_run())
    };
    let is_few = !open.is_empty() && open.len() <= MOST;
    if is_few && expected::changed_files(&without, checker.services.index.snapshot()).is_empty() {
        again_without(checker, &without, open, report).await;
    }
    let unsteady = &checker.tests().flaky.unsteady_before & &fixed;
    for case in &mut report.cases {
        if case.status == TestStatus::Passed && unsteady.contains(&case.id) {
            case.status = TestStatus::Unsteady;
            case.message = PASSED_BEFORE.to_owned();
        }
    }
}

/// Records which of these tests fail in every run without the change, and which also pass.
async fn again_without(
    checker: &Checker,
    before: &Snapshot,
    mut open: Vec<String>,
    first: &TestReport,
) {
    for _ in 0..TIMES {
        if open.is_empty() {
            return;
        }
        let Some(again) = once_more(checker, before, &open, first).await else {
            return;
        };
        let (pass, fail): (Vec<String>, Vec<String>) =
            open.into_iter().partition(|id| has_passed(&again, id));
        checker.tests().flaky.unsteady_before.extend(pass);
        open = fail;
        if is_slow(&again) {
            break;
        }
    }
    checker.tests().flaky.failed_again.extend(open);
}

/// Repeats the required tests and the fixed tests that pass in the report. Tests that do not pass
/// every time are marked as unsteady in the report.
async fn repeat_mended(checker: &Checker, world: &Snapshot, report: &mut TestReport) {
    let mut open: Vec<String> = {
        let state = checker.tests();
        let mended = &state.failing_before & &state.flaky.failed_again;
        state.required.ids.union(&mended).cloned().collect()
    };
    open.retain(|id| has_passed(report, id));
    for _ in 0..TIMES {
        if open.is_empty() {
            return;
        }
        let Some(again) = once_more(checker, world, &open, report).await else {
            return;
        };
        let (fails, passes): (Vec<String>, Vec<String>) =
            open.into_iter().partition(|id| does_not_pass(&again, id));
        open = passes;
        for id in fails {
            let message = again.cases.iter().find(|case| case.id == id);
            let message = message.map_or("", |case| case.message.trim_end());
            let message = format!(
                "{message}\npassed once, and did not pass when it was run again on the same text"
            );
            match report.cases.iter_mut().find(|case| case.id == id) {
                Some(case) => {
                    case.status = TestStatus::Unsteady;
                    case.message = message;
                }
                None => report.cases.push(TestCase {
                    id,
                    status: TestStatus::Unsteady,
                    message,
                }),
            }
        }
        if is_slow(&again) {
            return;
        }
    }
}

/// Checks the last report of a run for flaky tests, once for each epoch (version of the workspace):
/// tests that failed before may also be flaky, and required tests must pass every time. Returns
/// whether the report changed.
pub(crate) async fn at_end(checker: &Checker, report: &mut TestReport) -> bool {
    let (epoch, world, known) = {
        let mut state = checker.state();
        let is_known = |(epoch, _): &(Epoch, Vec<String>)| *epoch == state.world.epoch;
        if state.tests.flaky.repeated.as_ref().is_some_and(is_known) {
            return false;
        }
        state.tests.flaky.repeated = Some((state.world.epoch, Vec::new()));
        let known = state
            .tests
            .failing_before
            .difference(&state.tests.required.ids);
        let known: BTreeSet<String> = known.cloned().collect();
        (state.world.epoch, state.world.snapshot.clone(), known)
    };
    let was = report.clone();
    let mut failing = failing_ids(report);
    failing.retain(|id| known.contains(id));
    run_again(checker, &world, failing, 1, report).await;
    doubt_fixed(checker, report).await;
    repeat_mended(checker, &world, report).await;
    if *report == was {
        return false;
    }
    let mut state = checker.state();
    if state.world.epoch == epoch {
        let mut required: Vec<String> = unsteady(report).cloned().collect();
        required.retain(|id| state.tests.required.ids.contains(id));
        state.tests.flaky.repeated = Some((epoch, required));
        state.tests.latest = Some(report.clone());
    }
    true
}

/// Returns the failing tests of a report, and the required tests that do not always pass.
pub(crate) fn failing_at_end(checker: &Checker, report: &TestReport) -> Vec<String> {
    let state = checker.tests();
    let mut failing = failing_ids(report);
    let unsteady = unsteady(report);
    failing.extend(
        unsteady
            .filter(|id| state.required.ids.contains(*id))
            .cloned(),
    );
    failing
}

/// Returns the unsteady tests of a report.
pub(crate) fn unsteady(report: &TestReport) -> impl Iterator<Item = &String> {
    let cases = report.cases.iter();
    let unsteady = cases.filter(|case| case.status == TestStatus::Unsteady);
    unsteady.map(|case| &case.id)
}

/// The flaky tests of a run.
#[derive(Debug, Default)]
pub(crate) struct Unsteady {
    pub all: Vec<String>,
    /// Tests whose flakiness the run may have caused: tests that the task is about, tests in files
    /// that the run changed, and tests that reach a changed symbol.
    pub doubtful: Vec<String>,
}

/// Returns the flaky tests of the workspace at the end of the run.
pub(crate) fn known(checker: &Checker) -> Unsteady {
    let (cases, required, repeated, symbols, without, world, before) = {
        let state = checker.state();
        let cases = state.tests.latest.iter().flat_map(|report| &report.cases);
        let cases = cases.filter(|case| case.status == TestStatus::Unsteady);
        let cases: Vec<TestCase> = cases.cloned().collect();
        let symbols = state.proposals.changed_symbols();
        let without = state.without_the_run();
        let required = state.tests.required.ids.clone();
        let repeated = state
            .tests
            .flaky
            .repeated
            .clone()
            .map(|(_, required)| required);
        let repeated = repeated
            .filter(|_| state.tests.latest.is_none())
            .unwrap_or_default();
        (
            cases,
            required,
            repeated,
            symbols,
            without,
            state.world.snapshot.clone(),
            state.tests.flaky.unsteady_before.clone(),
        )
    };
    let mut beside = original_tests::known(checker).unwrap_or_default().unsteady;
    // No report exists after the changes were reverted.
    beside.extend(repeated);
    if cases.is_empty() && beside.is_empty() {
        return Unsteady::default();
    }
    let changed = expected::changed_files(&without, &world);
    let reached = required::reached(&checker.lookup(), &symbols, &cases);
    let is_doubtful = |id: &String| {
        let mut files = changed.iter();
        let mut is_changed = || files.any(|file| expected::is_in(id, file.as_str()));
        // If a test was unsteady before the run, the run is not the cause.
        required.contains(id) || !before.contains(id) && (reached.contains(id) || is_changed())
    };
    let all: Vec<String> = cases.iter().map(|case| case.id.clone()).collect();
    let mut doubtful = all.clone();
    doubtful.retain(is_doubtful);
    let mut found = Unsteady { all, doubtful };
    for id in beside {
        if !found.all.contains(&id) {
            found.all.push(id.clone());
        }
        if !found.doubtful.contains(&id) {
            found.doubtful.push(id);
        }
    }
    found
}

/// Runs the tests again on the same text. Returns `None` if that takes too long or gives no result.
async fn once_more(
    checker: &Checker,
    world: &Snapshot,
    tests: &[String],
    first: &TestReport,
) -> Option<TestReport> {
    let has_names = tests.iter().all(|id| id != WHOLE_RUN);
    let select = if checker.services.tests.selects() && has_names {
        tests.to_vec()
    } else if is_slow(first) {
        return None;
    } else {
        Vec::new()
    };
    let report = run_tests_within(checker, world, select, LONGEST).await;
    match report.outcome {
        TestOutcome::Passed | TestOutcome::Failed => Some(report),
        TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch
        | TestOutcome::NotRun => None,
    }
}

fn is_slow(report: &TestReport) -> bool {
    u128::from(report.millis) > QUICK.as_millis()
}

fn has_passed(report: &TestReport, id: &str) -> bool {
    let passed = |case: &TestCase| case.id == id && case.status == TestStatus::Passed;
    match id == WHOLE_RUN {
        true => report.outcome == TestOutcome::Passed,
        false => report.cases.iter().any(passed),
    }
}

/// Returns whether a report contains a test that does not pass.
fn does_not_pass(report: &TestReport, id: &str) -> bool {
    let is_told = id == WHOLE_RUN || report.cases.iter().any(|case| case.id == id);
    is_told && !has_passed(report, id)
}
