//! Runs code on one state of the workspace.

use std::time::Duration;

use crate::budget::ExternalTime;
use crate::check::test_run::{NoReply, in_turn};
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
    let run = |deadline| {
        checker.services.tests.try_code(TryRequest {
            code,
            overlay,
            deadline,
        })
    };
    let (deadline, report) = in_turn(checker, longest, run).await;
    let mut report = report.unwrap_or_else(|NoReply { late }| TryReport {
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
