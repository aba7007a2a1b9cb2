//! Decides at the end of a run which of the tests that still fail do not speak against its changes.
//!
//! - Tests are only context if they failed before, the run fixed a test that fits its task, and
//!   nothing connects the others with the task or with the changes.
//! - Cases of a parametrized test may stay red if the run fixed other cases of the same test.

use crate::check::required;
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::failing_ids;
use crate::state::checker::Checker;
use crate::state::test_state::TestState;
use crate::task::goal::Goal;
use crate::task::test_names::{names_case, names_function, parts};
use starling_core::{TestCase, TestReport, TestStatus};
use starling_syntax::SymbolPath;

/// Returns whether the tests that still fail are no part of the task, because the run fixed a test
/// that fits the task and none of the others does.
pub(crate) fn are_all(checker: &Checker, changed: &[SymbolPath]) -> bool {
    let (before, latest) = {
        let tests = checker.tests();
        match (&tests.before, &tests.latest) {
            (Some(before), Some(latest)) => (before.clone(), latest.clone()),
            _ => return false,
        }
    };
    let lookup = checker.lookup();
    let failed = cases(&before, &failing_ids(&before));
    let left = failing_ids(&latest);
    let is_known = |id: &String| *id != WHOLE_RUN && failed.iter().any(|case| case.id == *id);
    if left.is_empty() || !left.iter().all(is_known) {
        return false;
    }
    let passes = |case: &&TestCase| {
        let mut now = latest.cases.iter();
        now.any(|one| one.id == case.id && one.status == TestStatus::Passed)
    };
    let fixed: Vec<&TestCase> = failed.iter().filter(passes).collect();
    let left = cases(&before, &left);
    let fits = |case: &TestCase| required::share_a_word(&lookup, &checker.task.text, case);
    let is_fixed_in_part = |case: &TestCase| {
        let mut fixed = fixed.iter();
        fixed.any(|one| parts(&one.id).0 == parts(&case.id).0)
    };
    let is_context = |case: &TestCase| !is_fixed_in_part(case) && !fits(case);
    fixed.iter().any(|case| fits(case))
        && left.iter().all(is_context)
        && required::reached(&lookup, changed, &left).is_empty()
}

/// Returns whether all these tests are cases of parametrized tests that failed before the run, and
/// the run fixed another case of each of these tests. Such a run settles, and its end says which
/// cases are left. A case that the task names is a test of its own.
pub(crate) fn are_cases_of_fixed_tests(tests: &TestState, task: &str, failing: &[String]) -> bool {
    let Some(latest) = &tests.latest else {
        return false;
    };
    let is_fixed =
        |id: &str| tests.failing_before.contains(id) && !tests.flaky.unsteady_before.contains(id);
    let fixed = latest.cases.iter();
    let fixed = fixed.filter(|case| case.status == TestStatus::Passed && is_fixed(&case.id));
    let fixed: Vec<&str> = fixed.map(|case| parts(&case.id).0).collect();
    let may_stay = |id: &String| {
        let (function, case) = parts(id);
        !case.is_empty()
            && tests.failing_before.contains(id)
            && fixed.contains(&function)
            && !names_case(task, id)
    };
    !failing.is_empty() && failing.iter().all(may_stay)
}

/// Returns whether the task asks to make these tests pass as a whole, so that a run that fixed only
/// some of their cases is not done.
pub(crate) fn are_asked_for(goal: Goal, task: &str, tests: &[String]) -> bool {
    match goal {
        Goal::RedTests => true,
        Goal::Bug
        | Goal::NewTest
        | Goal::Feature
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => tests.iter().any(|id| names_function(task, id)),
    }
}

fn cases(report: &TestReport, ids: &[String]) -> Vec<TestCase> {
    let cases = report.cases.iter();
    cases
        .filter(|case| ids.contains(&case.id))
        .cloned()
        .collect()
}
