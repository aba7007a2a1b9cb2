//! Grades by the names of tests, like SWE-bench's own grader, for instances without test commands.

use super::dataset::Answer;
use super::grade::Grade;
use starling_core::{TestCase, TestReport, TestStatus};

/// Maximum number of test names in a message.
const TOLD: usize = 5;

/// Grades a run of the hidden tests' files by the tests that the instance names.
pub(super) fn verdict(answer: &Answer, report: &TestReport) -> Grade {
    if answer.fail_to_pass.is_empty() {
        return Grade::Error("the data set has no FAIL_TO_PASS tests for this instance".into());
    }
    if report.cases.is_empty() {
        let last = report.output.trim().lines().next_back().unwrap_or_default();
        return Grade::Unresolved(format!("no test was run: {last}"));
    }
    for (list, names) in [
        ("FAIL_TO_PASS", &answer.fail_to_pass),
        ("PASS_TO_PASS", &answer.pass_to_pass),
    ] {
        let not: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| !passed(name, &report.cases))
            .collect();
        if !not.is_empty() {
            let told = not[..not.len().min(TOLD)].join(", ");
            return Grade::Unresolved(format!("{list}: {} tests did not pass: {told}", not.len()));
        }
    }
    Grade::Resolved
}

fn passed(name: &str, cases: &[TestCase]) -> bool {
    let id = id_of(name);
    let alone = format!(":{id}");
    let is_it = |case: &&TestCase| case.id == id || case.id.ends_with(&alone);
    cases
        .iter()
        .find(is_it)
        .is_some_and(|case| match case.status {
            TestStatus::Passed => true,
            TestStatus::Failed | TestStatus::Error | TestStatus::Skipped | TestStatus::Unsteady => {
                false
            }
        })
}

/// Returns the dotted id of a test: `test_x (a.T)` and `test_x (a.T.test_x)`, as unittest prints
/// them, become `a.T.test_x`.
fn id_of(name: &str) -> String {
    let parts = name
        .strip_suffix(')')
        .and_then(|name| name.split_once(" ("));
    match parts {
        Some((method, class)) if !method.contains(' ') => {
            let class = class.strip_suffix(&format!(".{method}")).unwrap_or(class);
            format!("{class}.{method}")
        }
        Some(_) | None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::TestOutcome;

    fn report(passed: &[&str], failed: &[&str]) -> TestReport {
        let case = |status: TestStatus| {
            move |id: &&str| TestCase {
                id: (*id).to_owned(),
                status,
                message: String::new(),
            }
        };
        let failed = failed.iter().map(case(TestStatus::Failed));
        TestReport {
            outcome: TestOutcome::Passed,
            exit: Some(0),
            command: String::new(),
            cases: passed
                .iter()
                .map(case(TestStatus::Passed))
                .chain(failed)
                .collect(),
            source: Default::default(),
            output: "last line".into(),
            millis: 1,
        }
    }

    fn graded(f2p: &[&str], p2p: &[&str], report: &TestReport) -> Grade {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let answer = Answer {
            patch: String::new(),
            test_patch: String::new(),
            fail_to_pass: owned(f2p),
            pass_to_pass: owned(p2p),
        };
        verdict(&answer, report)
    }

    #[test]
    fn test_names_of_each_framework_match_the_report() {
        let all = report(
            &["t/a.py::T::test_x[1]", "a.b.T.test_y", "s/t.py:test_z"],
            &[],
        );
        let names = [
            "t/a.py::T::test_x[1]",
            "test_y (a.b.T)",
            "test_y (a.b.T.test_y)",
        ];
        assert_eq!(graded(&names, &["test_z"], &all), Grade::Resolved);
    }

    #[test]
    fn grade_lists_the_tests_that_did_not_pass() {
        let told = |grade| match grade {
            Grade::Unresolved(why) | Grade::Error(why) => why,
            Grade::Resolved => String::new(),
        };
        let some = report(&["a::x"], &["a::y"]);
        assert_eq!(
            told(graded(&["a::y"], &[], &some)),
            "FAIL_TO_PASS: 1 tests did not pass: a::y"
        );
        let missing = told(graded(&["a::x"], &["a::gone"], &some));
        assert_eq!(missing, "PASS_TO_PASS: 1 tests did not pass: a::gone");
        assert_eq!(
            told(graded(&["a::x"], &[], &report(&[], &[]))),
            "no test was run: last line"
        );
        assert!(told(graded(&[], &[], &some)).contains("has no FAIL_TO_PASS"));
    }
}
