//! Determines what the last test run of a run shows.

use super::facts::{LastCheck, RunFacts};
use super::phrases::{
    QUOTED, failed_before, failures, head, last_line, now_and_then, pass, pass_as_changed,
    with_status,
};
use super::shown::did_fail;
use crate::evidence::test_evidence::failing_ids;
use crate::evidence::wording::{counted, some_of};
use starling_core::{TestOutcome, TestReport, TestStatus};

/// The result of the last test run, as text for the headline of the run's summary.
pub(super) enum LastTestResult {
    /// The tests pass.
    Passes(String),
    /// Tests fail, or the fact that they pass proves nothing.
    Fails(String),
    /// No test ran to its end.
    Untested(String),
}

/// Returns what the last test run shows.
pub(super) fn checked(facts: &RunFacts<'_>) -> LastTestResult {
    let report = match facts.last_check {
        LastCheck::Absent { why } => {
            return LastTestResult::Untested(format!("no test ran ({why})"));
        }
        LastCheck::Known(report) => report,
    };
    if let Some(cut_short) = cut_short(report) {
        return LastTestResult::Untested(cut_short);
    }
    let passed = with_status(report, TestStatus::Passed);
    match report.outcome {
        TestOutcome::Passed if !facts.only_as_changed.is_empty() => {
            LastTestResult::Fails(pass_as_changed(facts.only_as_changed, &report.command))
        }
        TestOutcome::Passed if !facts.unheld.is_empty() => LastTestResult::Fails(format!(
            "the run also changed tests in {}, and could not run them with their original text",
            some_of(facts.unheld)
        )),
        TestOutcome::Passed if !facts.doubtful.is_empty() => {
            LastTestResult::Fails(now_and_then(facts.doubtful))
        }
        TestOutcome::Passed if passed == 0 && !facts.unsteady.is_empty() => {
            LastTestResult::Fails(now_and_then(facts.unsteady))
        }
        TestOutcome::Passed if passed == 0 && !report.cases.is_empty() => {
            let skipped = counted(report.cases.len(), "test");
            LastTestResult::Untested(format!("no test ran ({skipped} skipped)"))
        }
        TestOutcome::Passed if passed > 0 && report.source.is_reporter() => {
            LastTestResult::Passes(format!("{} {}", counted(passed, "test"), pass(passed)))
        }
        TestOutcome::Passed => by_command(facts, report, passed),
        TestOutcome::NotRun => {
            let command = &report.command;
            let said = last_line(&report.output);
            // The message of the test runner already contains the command.
            let said = said.strip_prefix(&format!("no test ran: `{command}` "));
            let said = head(said.unwrap_or(last_line(&report.output)), QUOTED);
            LastTestResult::Untested(format!("no test ran (`{command}`: {said})"))
        }
        TestOutcome::Failed
        | TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => {
            let failing = failing_ids(report);
            let before = failed_before(&failing, facts);
            LastTestResult::Fails(format!("{}{before}", failures(&failing, &report.command)))
        }
    }
}

/// Evaluates a test command that passes but has no test reporter. The code under test can print
/// text that looks like test results, so only the exit status counts: the changes are proven only
/// if the command failed before the run.
fn by_command(facts: &RunFacts<'_>, report: &TestReport, passed: usize) -> LastTestResult {
    let command = &report.command;
    let printed = format!("{} {}", counted(passed, "test"), pass(passed));
    match (did_fail(facts, report), passed) {
        (true, 0) => LastTestResult::Passes(format!("`{command}` failed before and passes now")),
        (true, _) => LastTestResult::Passes(format!(
            "`{command}` failed before and passes now ({printed} by what it printed)"
        )),
        (false, 0) => {
            let status = report.exit.unwrap_or_default();
            let why = match hidden(report) {
                Some(why) => format!("; it does not see {why}"),
                None => String::new(),
            };
            LastTestResult::Untested(format!(
                "the test command ran no test that Starling can see (its exit status was {status}{why})"
            ))
        }
        (false, _) => {
            let why = hidden(report).map(|why| format!("; Starling does not see {why}"));
            let why = why.unwrap_or_default();
            LastTestResult::Fails(format!("{printed} only by what `{command}` printed{why}"))
        }
    }
}

/// Returns why the results of single tests are not available. The runner adds this reason below the
/// output.
fn hidden(report: &TestReport) -> Option<&str> {
    let mut lines = report.output.lines().rev();
    lines.find_map(|line| line.strip_prefix("note: Starling does not see "))
}

/// Describes how a test run was stopped before its end; `None` if it completed.
pub(super) fn cut_short(report: &TestReport) -> Option<String> {
    match report.outcome {
        TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => Some(format!(
            "the tests {} after {} s",
            report.outcome.word(),
            report.millis.div_ceil(1000)
        )),
        TestOutcome::Passed | TestOutcome::Failed | TestOutcome::NotRun => None,
    }
}
