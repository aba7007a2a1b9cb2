//! Parses the result of each test from the output of test runners.

mod misuse;
mod pytest;
mod sympy;
mod unittest;

use std::path::Path;

use starling_core::{TestCase, TestOutcome, TestStatus};
use starling_sandbox::End;

/// Returns the tests that an output mentions, in order of first mention.
pub(super) fn cases(output: &str, root: &Path) -> Vec<TestCase> {
    let mut cases = Cases::default();
    pytest::read(output, root, &mut cases);
    others(output, root, &mut cases);
    cases.list
}

pub(super) use pytest::summary_line as summary_of_pytest;

/// Adds the tests of all runners except pytest that an output mentions.
pub(super) fn others(output: &str, root: &Path, cases: &mut Cases) {
    unittest::read(output, root, cases);
    sympy::read(output, root, cases);
}

/// Returns the overall test outcome of a finished command.
pub(super) fn outcome(end: End, cases: &[TestCase], output: &str) -> TestOutcome {
    let failed = cases
        .iter()
        .any(|case| matches!(case.status, TestStatus::Failed | TestStatus::Error));
    match end {
        End::TimedOut => TestOutcome::TimedOut,
        End::OutOfMemory => TestOutcome::OutOfMemory,
        End::TooManyProcesses => TestOutcome::TooManyProcesses,
        End::OutputTooLong => TestOutcome::OutputTooLong,
        End::WroteTooMuch => TestOutcome::WroteTooMuch,
        End::Exited(_) if misuse::names_no_module(cases) => TestOutcome::NotRun,
        End::Exited(_) if failed => TestOutcome::Failed,
        End::Exited(status)
            if cases.is_empty() && (ran_nothing(output) || misuse::is_misuse(status, output)) =>
        {
            TestOutcome::NotRun
        }
        End::Exited(0) => TestOutcome::Passed,
        End::Exited(_) => TestOutcome::Failed,
    }
}

fn ran_nothing(output: &str) -> bool {
    const NOTHING: [&str; 5] = [
        "no tests ran",
        "collected 0 items",
        "NO TESTS RAN",
        "Ran 0 tests",
        "tests finished: 0 passed, in",
    ];
    let ran = |line: &str| {
        line.strip_prefix("Ran ")
            .is_some_and(|rest| rest.starts_with(|c: char| ('1'..='9').contains(&c)))
    };
    NOTHING.iter().any(|text| output.contains(text)) && !output.lines().any(ran)
}

/// Tests by id, without duplicates.
#[derive(Default)]
pub(super) struct Cases {
    pub(super) list: Vec<TestCase>,
    places: std::collections::HashMap<String, usize>,
}

impl Cases {
    /// Records the status of a test. A failure is never overwritten, because a test whose subtest
    /// or cleanup fails is reported more than once.
    pub(super) fn note(&mut self, id: &str, status: TestStatus) -> &mut TestCase {
        let place = *self.places.entry(id.to_owned()).or_insert_with(|| {
            self.list.push(TestCase {
                id: id.to_owned(),
                status,
                message: String::new(),
            });
            self.list.len() - 1
        });
        let case = &mut self.list[place];
        if !matches!(case.status, TestStatus::Failed | TestStatus::Error) {
            case.status = status;
        }
        case
    }

    /// Records a failure with its message. Only the first message of a test is kept.
    pub(super) fn fail(&mut self, id: &str, status: TestStatus, message: String) {
        let case = self.note(id, status);
        if case.message.is_empty() {
            case.message = message;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(status: TestStatus) -> TestCase {
        TestCase {
            id: "t".into(),
            status,
            message: String::new(),
        }
    }

    #[test]
    fn outcome_is_derived_from_exit_status_cases_and_output() {
        let passed = [case(TestStatus::Passed)];
        let failed = [case(TestStatus::Passed), case(TestStatus::Error)];
        let of = |code, cases: &[TestCase], output| outcome(End::Exited(code), cases, output);
        assert_eq!(outcome(End::TimedOut, &failed, ""), TestOutcome::TimedOut);
        assert_eq!(of(0, &passed, ""), TestOutcome::Passed);
        assert_eq!(of(0, &[], "fine"), TestOutcome::Passed);
        assert_eq!(of(1, &[], "make: *** [test] Error 1"), TestOutcome::Failed);
        assert_eq!(of(0, &failed, "piped through tee"), TestOutcome::Failed);
        assert_eq!(of(127, &[], "sh: nox: not found"), TestOutcome::NotRun);
        assert_eq!(
            of(5, &[], "== no tests ran in 0.01s =="),
            TestOutcome::NotRun
        );
        assert_eq!(
            of(0, &[], "Ran 0 tests in 0.000s\n\nOK"),
            TestOutcome::NotRun
        );
        let second = "Ran 0 tests in 0.000s\nOK\nRan 5 tests in 0.1s\nOK";
        assert_eq!(of(0, &[], second), TestOutcome::Passed);
    }

    #[test]
    fn failed_case_stays_failed_and_keeps_its_first_message() {
        let mut cases = Cases::default();
        cases.note("a", TestStatus::Passed);
        cases.fail("b", TestStatus::Failed, "first".into());
        cases.fail("b", TestStatus::Error, "second".into());
        cases.note("b", TestStatus::Passed);
        cases.note("a", TestStatus::Skipped);
        cases.fail("a", TestStatus::Error, String::new());
        cases.fail("a", TestStatus::Error, "told later".into());
        let read: Vec<_> = cases
            .list
            .iter()
            .map(|case| (case.id.as_str(), case.status, case.message.as_str()))
            .collect();
        assert_eq!(
            read,
            [
                ("a", TestStatus::Error, "told later"),
                ("b", TestStatus::Failed, "first")
            ]
        );
    }

    #[test]
    fn output_without_tests_has_no_test_cases() {
        for output in [
            "",
            "\n\n",
            "make: Nothing to be done\n",
            "\u{0}\u{1f426}\n====\n",
        ] {
            assert!(
                super::cases(output, Path::new("/w")).is_empty(),
                "{output:?}"
            );
        }
        let of = |code, output| outcome(End::Exited(code), &[], output);
        assert_eq!(of(126, "permission denied"), TestOutcome::NotRun);
        assert_eq!(of(0, "collected 0 items\n"), TestOutcome::NotRun);
        assert_eq!(of(2, "usage: pytest\n"), TestOutcome::NotRun);
        assert_eq!(
            of(0, "Ran 12 tests in 1s\n\nRan 0 tests in 0s\n"),
            TestOutcome::Passed
        );
    }
}
