//! Decides which tests run for a change: all of them, or only those near the change.

use std::time::Duration;

use starling_core::{TestCase, TestOutcome, TestReport, TestStatus};

/// Maximum duration of a run of selected tests.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);
/// If the whole test command takes no longer than this, it runs for every change.
pub(crate) const QUICK: Duration = Duration::from_secs(3);

/// Maximum number of tests near a change that are considered, and maximum number of their test
/// cases that run.
pub(crate) const NEAREST: usize = 20;

/// Whether a test run includes all tests, or only those near the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// The tests nearest to a change. At the end of the run, the files of these tests are run.
    Nearest,
}

/// Which tests run for each change (`checks`), and which run at the end of the run (`end`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TestScope {
    pub checks: Extent,
    pub end: Extent,
}

impl TestScope {
    pub(crate) const WHOLE: TestScope = TestScope {
        checks: Extent::Whole,
        end: Extent::Whole,
    };
    pub(crate) const NEAREST: TestScope = TestScope {
        checks: Extent::Nearest,
        end: Extent::Nearest,
    };

    /// Returns the scope that follows from the first run of all tests: its duration and outcome.
    pub(crate) fn after(whole: &TestReport) -> TestScope {
        match whole.outcome {
            TestOutcome::Passed | TestOutcome::Failed | TestOutcome::NotRun => {
                let is_quick = u128::from(whole.millis) <= QUICK.as_millis();
                let checks = if is_quick {
                    Extent::Whole
                } else {
                    Extent::Nearest
                };
                TestScope {
                    checks,
                    end: Extent::Whole,
                }
            }
            TestOutcome::TimedOut
            | TestOutcome::OutOfMemory
            | TestOutcome::TooManyProcesses
            | TestOutcome::OutputTooLong
            | TestOutcome::WroteTooMuch => TestScope::NEAREST,
        }
    }
}

/// How many tests are selected and by what, adjusted to earlier results of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SelectionPolicy {
    /// Number of tests nearest to a change that can finish in time.
    pub(crate) most: usize,
    pub(crate) by: Granularity,
}

/// Whether tests are selected by their ids or by their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Granularity {
    Test,
    File,
}

impl Default for SelectionPolicy {
    fn default() -> Self {
        SelectionPolicy {
            most: NEAREST,
            by: Granularity::Test,
        }
    }
}

impl SelectionPolicy {
    /// If the selected tests gave no result, neither with the change nor without it, returns the
    /// next policy to try; `None` if there is none or it is not needed.
    pub(crate) fn degrade(
        self,
        with: &TestReport,
        without: &TestReport,
    ) -> Option<SelectionPolicy> {
        let fewer = || {
            let most = self.most / 4;
            (most > 0).then_some(SelectionPolicy { most, ..self })
        };
        let too_long = |report: &TestReport| report.outcome == TestOutcome::TimedOut;
        let nearly = u128::from(without.millis) > LONGEST.as_millis() / 2;
        if too_long(with) && (too_long(without) || nearly) {
            return fewer();
        }
        let passes = |report: &TestReport| {
            let passed = |case: &TestCase| case.status == TestStatus::Passed;
            report.outcome == TestOutcome::Passed || report.cases.iter().any(passed)
        };
        if too_long(with) || passes(with) || passes(without) {
            return None;
        }
        // One unknown name, or one file that cannot be loaded, can fail the whole test run.
        match self.by {
            Granularity::Test => Some(SelectionPolicy {
                by: Granularity::File,
                ..self
            }),
            Granularity::File => fewer(),
        }
    }
}
