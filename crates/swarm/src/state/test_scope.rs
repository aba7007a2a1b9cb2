//! Decides how many tests run for a change.

use std::time::Duration;

use starling_core::{TestCase, TestOutcome, TestReport, TestStatus};

/// Time limit for a run of selected tests.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);
/// Maximum duration of the whole test command for which it runs for every change.
pub(crate) const QUICK: Duration = Duration::from_secs(2);

/// Maximum number of nearest tests that are considered, and of test cases in them that run.
pub(crate) const NEAREST: usize = 20;

/// The tests that a test run includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// The nearest tests of a change; at the end of the run, the files of these tests.
    Nearest,
}

/// Which tests run for each change, and which run at the end of the run.
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

    /// Returns the scope for a project with selectable tests, after all tests ran once.
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

/// The policy by which tests are selected in this run, adjusted to earlier results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SelectionPolicy {
    /// Number of nearest tests that finish in time.
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
    /// Returns the next selection policy to try, if the selected tests gave no result with the
    /// change and none without it.
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
