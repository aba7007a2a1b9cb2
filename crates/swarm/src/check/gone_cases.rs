//! Cases of parametrized tests whose ids disappear because the change edits their test. The id of a
//! case contains its values (`test_x[3-4]`), so a change of the values replaces the id. The old
//! case does not count as a missing test as long as its test still has passing cases and no new
//! failing ones.
//!
//! This hides no broken test. The original text of the test runs as well
//! ([`original_tests`](crate::check::original_tests)), and an old case that fails with the change
//! counts unless the task asks to change the test. A case that failed before the change must not
//! disappear.

use std::collections::BTreeSet;

use crate::check::concerned;
use crate::check::expected::{self, WorldPair};
use crate::check::test_files::is_module;
use crate::evidence::test_evidence::GONE_CASE;
use crate::state::checker::Checker;
use starling_core::{TestCase, TestReport, TestStatus};
use starling_index::is_test_file;
use starling_syntax::FilePath;

/// Marks those cases of `expected` in a report that disappeared because the change edits their
/// test.
pub(crate) fn mark(
    checker: &Checker,
    worlds: WorldPair<'_>,
    expected: &BTreeSet<String>,
    report: &mut TestReport,
) {
    let seen: BTreeSet<&str> = report.cases.iter().map(|case| case.id.as_str()).collect();
    let absent = expected.iter().filter(|id| !seen.contains(id.as_str()));
    let absent: Vec<&String> = absent.filter(|id| test_of(id).is_some()).collect();
    if absent.is_empty() {
        return;
    }
    let failed = {
        let state = checker.tests();
        let before = &state.failing | &state.failing_before;
        &before | &state.required.ids
    };
    let changed = expected::changed_files(worlds.without, worlds.with);
    let changed: Vec<FilePath> = changed.into_iter().collect();
    let is_edited = |id: &String| {
        let is_shared = |file: &FilePath| is_test_file(file) && !is_module(file);
        let of_test = |file: &FilePath| expected::is_in(id, file.as_str()) || is_shared(file);
        changed.iter().any(of_test)
            && concerned::is_concerned(worlds.without, worlds.with, &changed, id)
    };
    let is_gone = |id: &&String| {
        !failed.contains(*id) && has_good_cases(report, expected, id) && is_edited(id)
    };
    let gone = absent.into_iter().filter(is_gone);
    let gone: Vec<TestCase> = gone
        .map(|id| TestCase {
            id: id.clone(),
            status: TestStatus::Skipped,
            message: GONE_CASE.to_owned(),
        })
        .collect();
    report.cases.extend(gone);
}

/// Returns the test function of a case: `test_a.py::test_x` for `test_a.py::test_x[3-4]`.
fn test_of(id: &str) -> Option<&str> {
    let (test, values) = id.split_once('[')?;
    (!values.is_empty()).then_some(test)
}

/// Returns whether the test function of a case has a passing case in a report, and no failing case
/// that is not in `expected`.
fn has_good_cases(report: &TestReport, expected: &BTreeSet<String>, id: &str) -> bool {
    let cases = || {
        let cases = report.cases.iter();
        cases.filter(|case| test_of(&case.id).is_some() && test_of(&case.id) == test_of(id))
    };
    let is_bad = |case: &TestCase| match case.status {
        TestStatus::Failed | TestStatus::Error | TestStatus::Unsteady => {
            !expected.contains(&case.id)
        }
        TestStatus::Passed | TestStatus::Skipped => false,
    };
    cases().any(|case| case.status == TestStatus::Passed) && !cases().any(is_bad)
}
