//! Runs code on one state of the workspace.

use std::time::Duration;

use crate::budget::ExternalTime;
use crate::check::test_run::test_deadline;
use crate::state::checker::Checker;
use starling_core::{TestOutcome, TryCode, TryReport, TryRequest};
use starling_workspace::Snapshot;

/// Runs code on one state of the workspace. The time limit is `longest` or that of a test run,
/// whichever is shorter.
pub(crate) async fn try_code(
    checker: &Checker,
    world: &Snapshot,
    code: TryCode,
    longest: Duration,
) -> TryReport {
    let overlay = match world.contents() {
        Ok(contents) => contents.into_iter().collect(),
        Err(error) => return TryReport::not_run(error.to_string()),
    };
    let _turn = checker.testing.acquire().await;
    let _work = checker.budget.work();
    let deadline = test_deadline(checker).min(longest);
    let request = TryRequest {
        code,
        overlay,
        deadline,
    };
    // The runner enforces the deadline; this timeout is a fallback.
    let late = deadline + Duration::from_secs(10);
    let tried = tokio::time::timeout(late, checker.services.tests.try_code(request));
    let mut report = tried.await.unwrap_or_else(|_| TryReport {
        outcome: TestOutcome::TimedOut,
        exit: None,
        output: String::new(),
        frames: Vec::new(),
        millis: u64::try_from(late.as_millis()).unwrap_or(u64::MAX),
    });
    if report.outcome == TestOutcome::TimedOut {
        let output = report.output.trim_end();
        report.output = format!("{output}\nnote: stopped after {} s\n", deadline.as_secs());
    }
    let took = Duration::from_millis(report.millis);
    checker.budget.was_outside(ExternalTime::Tests, took);
    report
}
