//! Removes tests from the required tests after a bug was fixed, if they only run the fixed code on the way to
//! other code. At first, all tests that run the named functions are required, because any of them may show
//! the bug. Once the tests that call a fixed function directly pass, the remaining failures come from other
//! code.

use std::collections::BTreeSet;

use super::wishes::{TestWords, Wishes};
use super::{ReachingTests, failing_cases, goal, named};
use crate::lookup::Lookup;
use crate::state::checker::Checker;
use crate::task::goal::Goal;
use starling_core::{TestCase, TestReport, TestStatus};
use starling_syntax::SymbolPath;

/// Removes required tests that still fail. Does nothing unless the change made a required test pass that uses
/// a changed symbol directly. A failing test is removed if it uses no changed and no named symbol directly,
/// and if the task neither names, quotes nor otherwise describes the test. If the change gave the test
/// another error, the test is recorded as possibly part of the task.
pub(crate) fn set_aside(checker: &Checker, changed: &[SymbolPath]) {
    let (before, latest, required, targets) = {
        let tests = checker.tests();
        match (&tests.before, &tests.latest) {
            (Some(before), Some(latest)) => (
                before.clone(),
                latest.clone(),
                tests.required.ids.clone(),
                tests.required.targets.clone(),
            ),
            _ => return,
        }
    };
    if goal(checker) != Goal::Bug || changed.is_empty() {
        return;
    }
    let is_required = |case: &TestCase| required.contains(&case.id);
    let failed: Vec<TestCase> = failing_cases(&before)
        .into_iter()
        .filter(is_required)
        .collect();
    let left: Vec<TestCase> = failing_cases(&latest)
        .into_iter()
        .filter(is_required)
        .collect();
    let lookup = checker.lookup();
    let reach = ReachingTests::of(&lookup, changed);
    let is_shown =
        |case: &TestCase| passes(&latest, case) && reach.is_used_by(&lookup, case) == Some(true);
    if left.is_empty() || !failed.iter().any(is_shown) {
        return;
    }
    let all: Vec<SymbolPath> = changed.iter().cloned().chain(targets).collect();
    let reach = ReachingTests::of(&lookup, &all);
    let task = &checker.task.text;
    let named = named(task, &failed);
    let wishes = Wishes::of(task);
    let is_beside = |case: &&TestCase| {
        !named.contains(&case.id)
            && failed.iter().any(|one| one.id == case.id)
            && wishes.fit(&TestWords::of(&lookup, case)).is_none()
            && !reach.is_run(&lookup, case)
            && reach.is_used_by(&lookup, case) == Some(false)
    };
    let beside: Vec<&TestCase> = left.iter().filter(is_beside).collect();
    let is_same = |case: &&&TestCase| {
        let mut failed = failed.iter().filter(|one| one.id == case.id);
        failed.any(|one| error_lines(one) == error_lines(case))
    };
    let changed_error = beside.iter().filter(|case| !is_same(case));
    let may_belong: BTreeSet<String> = changed_error.map(|case| case.id.clone()).collect();
    let mut tests = checker.tests();
    for case in beside {
        tests.required.ids.remove(&case.id);
    }
    tests.required.possible.extend(may_belong);
}

fn passes(report: &TestReport, case: &TestCase) -> bool {
    let mut cases = report.cases.iter();
    cases.any(|one| one.id == case.id && one.status == TestStatus::Passed)
}

/// Returns the lines of a failure message that describe the error, without code locations.
pub(crate) fn error_lines(case: &TestCase) -> Vec<&str> {
    let mut lines = case.message.lines().map(str::trim_end);
    let errors: Vec<&str> = lines
        .clone()
        .filter(|line| line.starts_with("E "))
        .collect();
    match errors.is_empty() {
        true => lines.rfind(|line| !line.is_empty()).into_iter().collect(),
        false => errors,
    }
}

impl ReachingTests<'_> {
    /// Returns whether the source of a test itself uses one of the symbols. Returns `None` if the source of
    /// the test is not found.
    fn is_used_by(&self, lookup: &Lookup, case: &TestCase) -> Option<bool> {
        let test = super::test_of(lookup, case)?;
        let mut users = self.users.iter().filter(|user| user.steps <= 1);
        Some(users.any(|user| test.encloses(&user.symbol)))
    }
}
