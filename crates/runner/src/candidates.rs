//! The test runners of a project in order of preference. If a runner finds no test, the next one is
//! tried; the first runner that runs a test is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::command::Suite;
use super::detect::Framework;
use starling_core::{TestOutcome, TestReport};

/// The test runners that a project may use, in order of preference. Clones share the runner that is
/// kept.
#[derive(Debug, Clone)]
pub(super) struct Candidates {
    /// The list is never empty.
    suites: Arc<[Suite]>,
    kept: Arc<AtomicUsize>,
    /// Whether the kept runner has run a test.
    is_sure: Arc<AtomicBool>,
    /// Warnings for the user: why an interpreter or a preferred runner is not used.
    warnings: Arc<[String]>,
}

impl Candidates {
    /// Uses only the user's own command.
    pub(super) fn given(line: String) -> Self {
        Candidates::of(vec![Suite::Given(line)], Vec::new())
    }

    pub(super) fn of(suites: Vec<Suite>, warnings: Vec<String>) -> Self {
        Candidates {
            suites: suites.into(),
            kept: Arc::default(),
            is_sure: Arc::default(),
            warnings: warnings.into(),
        }
    }

    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the runner that is currently used.
    pub(super) fn current(&self) -> &Suite {
        &self.suites[self.kept.load(Ordering::Relaxed)]
    }

    /// Returns the runners to try for a selection of tests. Returns only the current runner if it
    /// has run a test, or if the selection names single tests, because their ids belong to one
    /// runner.
    pub(super) fn to_try(&self, select: &[String]) -> impl Iterator<Item = &Suite> {
        let names_tests = select.iter().any(|entry| !entry.ends_with(".py"));
        let most = match self.is_sure.load(Ordering::Relaxed) || names_tests {
            true => 1,
            false => self.suites.len(),
        };
        let kept = self.kept.load(Ordering::Relaxed);
        self.suites[kept..].iter().take(most)
    }

    /// Returns whether a report shows that the runner found tests. If so, the runner is kept.
    pub(super) fn accept(&self, suite: &Suite, report: &TestReport) -> bool {
        let place = self.suites.iter().position(|one| one == suite);
        let place = place.unwrap_or_default();
        // A runner that is not the first choice must report at least one test.
        let is_shown = place == 0 || !report.cases.is_empty();
        let found = !found_none(suite, report) && is_shown;
        if found {
            self.kept.store(place, Ordering::Relaxed);
            self.is_sure.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Returns the report if no runner ran a test: the first report, with a reason for each runner.
    pub(super) fn none_ran(&self, reports: Vec<TestReport>) -> Option<TestReport> {
        let commands: Vec<String> = reports.iter().skip(1).map(ran_none).collect();
        let mut first = reports.into_iter().next()?;
        if first.outcome == TestOutcome::NotRun {
            say_plainly(&mut first);
            let notes = commands.into_iter().chain(self.warnings.iter().cloned());
            for note in notes {
                first.output.push_str(&format!("{note}\n"));
            }
        }
        Some(first)
    }
}

/// Returns whether a command ended without running a test. If `manage.py` fails to start, no test
/// has run.
fn found_none(suite: &Suite, report: &TestReport) -> bool {
    let is_manage_py = matches!(
        suite,
        Suite::Own {
            framework: Framework::ManagePy { .. },
            ..
        }
    );
    match report.outcome {
        TestOutcome::NotRun => true,
        TestOutcome::Failed => is_manage_py && report.cases.is_empty(),
        TestOutcome::Passed
        | TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => false,
    }
}

/// Describes a runner that ran no test, with its error message if it printed one.
fn ran_none(report: &TestReport) -> String {
    let complaint = complaint(&report.output);
    let complaint = complaint.map(|complaint| format!(" ({complaint})"));
    let complaint = complaint.unwrap_or_default();
    format!(
        "no test ran: `{}` found no tests{complaint}",
        report.command
    )
}

/// Returns the last error in the output of a runner that did not reach a test:
/// `ERROR: not found: x`, `pytest: error: unrecognized arguments: --cov`.
pub(super) fn complaint(output: &str) -> Option<&str> {
    let usage = |line: &str| line.starts_with("usage: ");
    let errors = output.lines().rev().filter_map(|line| {
        let error = line.split_once(": error: ").map(|(_, error)| error);
        error.or_else(|| line.strip_prefix("ERROR: "))
    });
    errors.map(str::trim).find(|error| !usage(error))
}

/// Replaces the output of a runner that found no test, including "OK", by a plain sentence.
fn say_plainly(report: &mut TestReport) {
    const CLOSING: [&str; 4] = ["Ran 0 tests", "NO TESTS RAN", "OK", "-----"];
    let is_empty_run = |line: &str| {
        [
            "Ran 0 tests",
            "NO TESTS RAN",
            "no tests ran",
            "collected 0 items",
        ]
        .iter()
        .any(|mark| line.contains(mark))
    };
    let is_rejected = |line: &str| line.contains(": error: unrecognized arguments");
    if !report
        .output
        .lines()
        .any(|line| is_empty_run(line) || is_rejected(line))
    {
        return;
    }
    let is_closing = |line: &&str| CLOSING.iter().any(|mark| line.starts_with(mark));
    let kept = report.output.lines().filter(|line| !is_closing(line));
    let mut output: String = kept
        .skip_while(|line| line.trim().is_empty())
        .map(|line| format!("{line}\n"))
        .collect();
    output.truncate(output.trim_end().len());
    if !output.is_empty() {
        output.push('\n');
    }
    report.output = format!("{output}{}\n", ran_none(report));
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::{TestCase, TestStatus};

    fn report(outcome: TestOutcome, cases: usize, output: &str) -> TestReport {
        let case = TestCase {
            id: "t".into(),
            status: TestStatus::Passed,
            message: String::new(),
        };
        TestReport {
            outcome,
            exit: Some(0),
            command: "runner".into(),
            cases: vec![case; cases],
            source: Default::default(),
            output: output.into(),
            millis: 0,
        }
    }

    fn suites() -> Vec<Suite> {
        let own = |framework| Suite::Own {
            framework,
            python: "/py".into(),
        };
        vec![
            own(Framework::ManagePy {
                directory: String::new(),
            }),
            own(Framework::Pytest),
        ]
    }

    #[test]
    fn first_test_runner_that_runs_a_test_is_used_from_then_on() {
        let suites = suites();
        let all = Candidates::of(suites.clone(), Vec::new());
        assert_eq!(all.to_try(&[]).count(), 2);
        assert_eq!(all.to_try(&["a.py".into()]).count(), 2);
        assert_eq!(all.to_try(&["a.py::test_x".into()]).count(), 1);
        for (outcome, cases) in [(TestOutcome::NotRun, 0), (TestOutcome::Failed, 0)] {
            assert!(!all.accept(&suites[0], &report(outcome, cases, "")));
        }
        assert!(!all.accept(&suites[1], &report(TestOutcome::Passed, 0, "")));
        assert_eq!(all.current(), &suites[0]);
        assert!(all.accept(&suites[1], &report(TestOutcome::Failed, 1, "")));
        assert_eq!(all.clone().current(), &suites[1]);
        assert_eq!(all.to_try(&[]).collect::<Vec<_>>(), [&suites[1]]);
    }

    #[test]
    fn report_of_a_command_that_ran_no_test_does_not_contain_ok() {
        let rule = "-".repeat(70);
        let unittest = format!("\n{rule}\nRan 0 tests in 0.000s\n\nOK\n");
        let newer = format!("loaded\n\n{rule}\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n");
        let pytest = "collected 0 items\n\n==== no tests ran in 0.01s ====\n";
        let said = "no test ran: `runner` found no tests\n";
        for (output, expected) in [
            (unittest.as_str(), said.to_owned()),
            (newer.as_str(), format!("loaded\n{said}")),
            (pytest, format!("{}\n{said}", pytest.trim_end())),
            (
                "collected 0 items\nERROR: not found: x\n",
                "collected 0 items\nERROR: not found: x\n\
                 no test ran: `runner` found no tests (not found: x)\n"
                    .to_owned(),
            ),
            (
                "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --cov\n",
                "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --cov\n\
                 no test ran: `runner` found no tests (unrecognized arguments: --cov)\n"
                    .to_owned(),
            ),
            ("sh: nope: not found\n", "sh: nope: not found\n".to_owned()),
        ] {
            let all = Candidates::of(suites(), Vec::new());
            let ran = vec![report(TestOutcome::NotRun, 0, output)];
            assert_eq!(all.none_ran(ran).unwrap().output, expected);
        }
    }

    #[test]
    fn report_says_why_another_test_runner_than_the_preferred_one_was_used() {
        let all = Candidates::of(suites(), vec!["pytest is missing".into()]);
        let none = || report(TestOutcome::NotRun, 0, "Ran 0 tests in 0.000s\n\nOK");
        let said = all.none_ran(vec![none(), none()]).unwrap().output;
        let line = "no test ran: `runner` found no tests\n";
        assert_eq!(said, format!("{line}{line}pytest is missing\n"));
    }
}
