//! A task for a new test: whether the tests that a proposal adds were run, and whether the run added any.

use super::gate::Draft;
use super::goal::Goal;
use super::hub::Hub;
use super::reason::ReturnReason;
use crate::index::is_test_file;
use crate::ports::{TestReport, TestStatus};
use crate::syntax::{FilePath, SymbolKind, SymbolPath, SymbolTree};

/// Why a proposal for a new test is sent back: a test that it adds is not among those that ran. `None`
/// where all of them ran, or where the report does not list the tests that passed.
pub(super) fn not_run(
    hub: &Hub,
    draft: &Draft,
    report: Option<&TestReport>,
) -> Option<ReturnReason> {
    if hub.goal != Goal::NewTest || !is_test_file(&draft.file) {
        return None;
    }
    let report = report?;
    let lists_passed = |report: &TestReport| {
        let mut cases = report.cases.iter();
        cases.any(|case| case.status == TestStatus::Passed)
    };
    if !lists_passed(report) {
        return None;
    }
    let ran = |test: &SymbolPath| {
        report.cases.iter().any(|case| {
            let id = case.id.split('[').next().unwrap_or(&case.id);
            id.rsplit(['.', ':']).next() == Some(test.base_name())
        })
    };
    let mut added = added_tests(draft);
    added.retain(|test| !ran(test));
    let names: Vec<String> = added.iter().map(ToString::to_string).collect();
    match names.is_empty() {
        true => None,
        false => {
            let names = names.join(", ");
            Some(ReturnReason::new(
                format!(
                    "Not shown to the approver: the test command does not run {names}. Put the test where \
                     the other tests of the file are, with a name that the test runner finds."
                ),
                format!("the test command does not run {names}"),
            ))
        }
    }
}

/// The test functions that a draft adds to its file.
fn added_tests(draft: &Draft) -> Vec<SymbolPath> {
    let before = SymbolTree::parse(draft.file.clone(), draft.base.clone());
    let after = SymbolTree::parse(draft.file.clone(), draft.text.clone());
    let is_new_test = |path: &SymbolPath, kind: SymbolKind| {
        let is_function = matches!(kind, SymbolKind::Function | SymbolKind::Method);
        is_function && path.base_name().starts_with("test") && before.find(&path.name).is_none()
    };
    let symbols = after.symbols().iter();
    let added = symbols.filter(|symbol| is_new_test(&symbol.path, symbol.kind));
    added.map(|symbol| symbol.path.clone()).collect()
}

/// Why a run for a new test is not done: it changed no test file. Doctests stand in code.
pub(super) fn missing(hub: &Hub) -> Option<String> {
    let is_doctest = hub.task.text.to_lowercase().contains("doctest");
    let state = hub.state();
    let mut changed = state.applied.iter().map(|one| &one.file);
    let holds_tests = |file: &FilePath| is_test_file(file);
    let is_missing = hub.goal == Goal::NewTest && !is_doctest && !changed.any(holds_tests);
    is_missing.then(|| "the task asks for a new test, and no test file was changed".to_owned())
}
