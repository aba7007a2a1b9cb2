//! Runs the test command.

use std::time::Duration;

use crate::budget::ExternalTime;
use crate::check::unloaded;
use crate::evidence::test_evidence::LIMIT_NOTE;
use crate::state::checker::Checker;
use starling_core::{TestOutcome, TestReport, TestRequest};
use starling_workspace::Snapshot;

/// Runs the selected tests, or all tests if `select` is empty, on one state of the workspace.
pub(crate) async fn run_tests(
    checker: &Checker,
    world: &Snapshot,
    select: Vec<String>,
) -> TestReport {
    run_tests_within(checker, world, select, Duration::MAX).await
}

/// Same as [`run_tests`], with a time limit of `longest`.
pub(crate) async fn run_tests_within(
    checker: &Checker,
    world: &Snapshot,
    select: Vec<String>,
    longest: Duration,
) -> TestReport {
    let overlay = match world.contents() {
        Ok(contents) => contents.into_iter().collect(),
        Err(error) => return not_run(checker, error.to_string()),
    };
    let run = |deadline| {
        checker.services.tests.run(TestRequest {
            overlay,
            select,
            deadline,
        })
    };
    let (deadline, report) = in_turn(checker, longest, run).await;
    let mut report = match report {
        Ok(report) => report,
        Err(NoReply { late }) => TestReport {
            outcome: TestOutcome::TimedOut,
            exit: None,
            command: checker.services.tests.command().unwrap_or_default(),
            cases: Vec::new(),
            source: Default::default(),
            output: format!("no result within {} s", late.as_secs()),
            millis: u64::try_from(late.as_millis()).unwrap_or(u64::MAX),
        },
    };
    if report.outcome == TestOutcome::TimedOut {
        let note = limit_note(checker, deadline, longest);
        report.output = format!("{}\n{note}", report.output.trim_end());
    }
    let took = Duration::from_millis(report.millis);
    checker.budget.was_outside(ExternalTime::Tests, took);
    unloaded::note(checker, world, &report);
    report
}

/// No result came, although its time limit was exceeded by far.
pub(crate) struct NoReply {
    /// How long the result was awaited.
    pub late: Duration,
}

/// Runs the tests or other code of the project while nothing else of it runs, for at most `longest` and
/// no longer than a test run. Returns the time limit, which was given to `run`, and the result.
pub(crate) async fn in_turn<R: Future>(
    checker: &Checker,
    longest: Duration,
    run: impl FnOnce(Duration) -> R,
) -> (Duration, Result<R::Output, NoReply>) {
    let _turn = checker.testing.acquire().await;
    let _work = checker.budget.work();
    let deadline = test_deadline(checker).min(longest);
    // The runner enforces the deadline; this timeout is a fallback.
    let late = deadline + Duration::from_secs(10);
    let result = tokio::time::timeout(late, run(deadline)).await;
    (deadline, result.map_err(|_| NoReply { late }))
}

/// Reports that the tests cannot run on these texts.
fn not_run(checker: &Checker, reason: String) -> TestReport {
    TestReport {
        outcome: TestOutcome::NotRun,
        exit: None,
        command: checker.services.tests.command().unwrap_or_default(),
        cases: Vec::new(),
        source: Default::default(),
        output: reason,
        millis: 0,
    }
}

/// Describes the time limit that a test run reached, and what raises it.
fn limit_note(checker: &Checker, deadline: Duration, longest: Duration) -> String {
    let seconds = deadline.as_secs();
    let how = if deadline == longest {
        "the fixed limit for a selection of tests"
    } else if deadline == checker.task.test_deadline {
        "`tests.seconds` raises it"
    } else {
        "no more was left of the time of the run"
    };
    format!("{LIMIT_NOTE}{seconds} s ({how})")
}

/// Returns the deadline of one test run, limited by the remaining time of the run.
pub(crate) fn test_deadline(checker: &Checker) -> Duration {
    checker
        .task
        .test_deadline
        .min(checker.budget.time_left().max(Duration::from_secs(1)))
}

/// Returns why there is no test command.
pub(crate) fn no_tests(checker: &Checker) -> String {
    let missing = checker.services.tests.missing();
    let why = missing.unwrap_or("no tests were found; give a command with --test");
    why.to_owned()
}

/// Marks a command as failed if it ran tests before the run and runs none now.
pub(crate) fn failed_if_none_ran(checker: &Checker, mut report: TestReport) -> TestReport {
    if report.outcome == TestOutcome::NotRun && did_run_before(checker) {
        report.outcome = TestOutcome::Failed;
    }
    report
}

/// Returns whether tests ran before the run. If they did, a selection for which no test runs gives
/// no information about a change.
pub(crate) fn did_run_before(checker: &Checker) -> bool {
    let state = checker.tests();
    let before = state.before.as_ref().map(|before| before.outcome);
    before.is_some_and(|one| one != TestOutcome::NotRun)
}
