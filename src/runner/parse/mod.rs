//! Results by test, read from what test runners print.

mod pytest;
mod sympy;
mod unittest;

use std::path::Path;

use crate::ports::{TestCase, TestOutcome, TestStatus};
use crate::workspace::End;

/// The tests that an output speaks of, in order of their first mention.
pub(super) fn cases(output: &str, root: &Path) -> Vec<TestCase> {
    let mut cases = Cases::default();
    pytest::read(output, root, &mut cases);
    unittest::read(output, root, &mut cases);
    sympy::read(output, root, &mut cases);
    cases.list
}

/// What a finished command says of the tests as a whole.
pub(super) fn outcome(end: End, cases: &[TestCase], output: &str) -> TestOutcome {
    let failed = cases
        .iter()
        .any(|case| matches!(case.status, TestStatus::Failed | TestStatus::Error));
    match end {
        End::TimedOut => TestOutcome::TimedOut,
        End::Exited(_) if failed => TestOutcome::Failed,
        // The shell found no such command, or may not run it.
        End::Exited(126 | 127) => TestOutcome::NotRun,
        End::Exited(_) if cases.is_empty() && ran_nothing(output) => TestOutcome::NotRun,
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

/// Tests by id, each once.
#[derive(Default)]
struct Cases {
    list: Vec<TestCase>,
    places: std::collections::HashMap<String, usize>,
}

impl Cases {
    /// Notes the status of a test. A failure stays one: a test that fails in a part of it, or whose
    /// clean-up fails, is reported more than once.
    fn note(&mut self, id: &str, status: TestStatus) -> &mut TestCase {
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

    /// Notes a failure with its message; further messages of the same test are left out.
    fn fail(&mut self, id: &str, status: TestStatus, message: String) {
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
    fn outcomes() {
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
}
