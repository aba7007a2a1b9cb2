//! New tests: checks whether the tests that a proposal adds ran, whether the run added any tests,
//! and whether these tests fail on the original code.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::check::documentation::is_documentation;
use crate::check::test_run::run_tests;
use crate::check::{expected, original_tests};
use crate::evidence::return_reason::ReturnReason;
use crate::evidence::without_change::WithoutChange;
use crate::state::checker::Checker;
use crate::state::draft::Draft;
use crate::task::goal::Goal;
use starling_core::{TestCase, TestOutcome, TestReport, TestStatus};
use starling_index::is_test_file;
use starling_syntax::{FilePath, Symbol, SymbolKind, SymbolPath, SymbolTree};

/// Maximum number of files with new tests. With more files, the new tests are not run on the
/// original code.
const FILES_MOST: usize = 20;

/// Runs the tests that the run added or changed on the original code. This happens only if the task
/// asks for new behaviour and code was changed as well. The results are reported at the end of the
/// run.
pub(crate) async fn try_without_the_change(checker: &Checker) {
    let asks_for_behaviour = match checker.goal {
        Goal::Bug
        | Goal::RedTests
        | Goal::NewTest
        | Goal::Feature
        | Goal::Documentation
        | Goal::Question => true,
        Goal::Refactoring => false,
    };
    if !asks_for_behaviour || checker.services.tests.command().is_none() {
        return;
    }
    let (without, after, latest) = {
        let state = checker.state();
        let without = state.without_the_run();
        (
            without,
            state.world.snapshot.clone(),
            state.tests.latest.clone(),
        )
    };
    let changed = expected::changed_files(&without, &after);
    let (tests, code): (Vec<FilePath>, Vec<FilePath>) = changed
        .into_iter()
        .filter(|file| !is_documentation(file))
        .partition(is_test_file);
    let (mut added, mut altered) = (Vec::new(), Vec::new());
    let mut world = without.clone();
    for file in tests {
        let text = after.read(&file).ok();
        if let Some(text) = &text {
            let base = without.read(&file).unwrap_or_else(|_| "".into());
            altered.extend(altered_between(&file, base.clone(), Arc::clone(text)));
            added.extend(added_between(&file, base, Arc::clone(text)));
        }
        world = world.with(file, text);
    }
    // The new tests in code files are inserted into the original code of these files.
    let own = original_tests::own_tests(checker, &without, latest.as_ref());
    for file in code.iter().filter(|file| own.are_beside(file)) {
        let (Ok(was), Ok(is)) = (without.read(file), after.read(file)) else {
            continue;
        };
        if let Some(swapped) = own.restored("", file, &is, &was) {
            altered.extend(altered_between(file, was, Arc::clone(&swapped.text)));
            world = world.with(file.clone(), Some(swapped.text));
        }
    }
    let tests = || added.iter().chain(&altered);
    let files: BTreeSet<String> = tests().map(|test| test.file.to_string()).collect();
    if code.is_empty() || files.is_empty() || files.len() > FILES_MOST {
        return;
    }
    let select = if checker.services.tests.selects() {
        files.into_iter().collect()
    } else {
        Vec::new()
    };
    let report = run_tests(checker, &world, select).await;
    if !matches!(report.outcome, TestOutcome::Passed | TestOutcome::Failed) {
        return;
    }
    let mut found = WithoutChange::default();
    for test in altered {
        if passes(&report, &test) == Some(false) {
            found.changed_fail.push(test.base_name().to_owned());
        }
    }
    for test in added {
        match passes(&report, &test) {
            Some(true) => found.passes.push(test.base_name().to_owned()),
            Some(false) => found.fails.push(test.base_name().to_owned()),
            None => {}
        }
    }
    checker.tests().at_end.new_tests = found;
}

/// Returns whether a test passes in a report; `None` if the report does not contain it. A file that
/// cannot be loaded counts as a failure of its tests.
pub(crate) fn passes(report: &TestReport, test: &SymbolPath) -> Option<bool> {
    let stem = test.file.name().trim_end_matches(".py");
    let in_file = |case: &&TestCase| {
        let mut words = case.id.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.any(|word| word == stem)
    };
    let mut of_file = report.cases.iter().filter(in_file).peekable();
    let own: Vec<&TestCase> = of_file.clone().filter(|case| is_of(case, test)).collect();
    let is_failure =
        |case: &&TestCase| matches!(case.status, TestStatus::Failed | TestStatus::Error);
    if own.is_empty() {
        let is_unloaded = of_file.any(|case| case.status == TestStatus::Error);
        return is_unloaded.then_some(false);
    }
    if own.iter().any(is_failure) {
        return Some(false);
    }
    let has_passed = own.iter().any(|case| case.status == TestStatus::Passed);
    has_passed.then_some(true)
}

/// Returns whether a case is a run of a test function.
fn is_of(case: &TestCase, test: &SymbolPath) -> bool {
    names(&case.id, test)
}

/// Returns whether an id names a test function.
fn names(id: &str, test: &SymbolPath) -> bool {
    let id = id.split('[').next().unwrap_or(id);
    id.rsplit(['.', ':']).next() == Some(test.base_name())
}

/// Returns why a proposal for a new test is sent back: a test that it adds did not run or was
/// skipped. Returns `None` if all of them ran, or if the report does not list passed tests.
pub(crate) fn not_run(
    checker: &Checker,
    draft: &Draft,
    report: Option<&TestReport>,
) -> Option<ReturnReason> {
    if checker.goal != Goal::NewTest || !is_test_file(&draft.file) {
        return None;
    }
    let report = report?;
    // A report that was parsed from printed output may omit passed tests.
    let lists_passed = |report: &TestReport| {
        let mut cases = report.cases.iter();
        report.source.is_reporter() && cases.any(|case| case.status == TestStatus::Passed)
    };
    if !lists_passed(report) {
        return None;
    }
    // A test that is skipped or expected to fail does not show that the code works.
    let ran = |test: &SymbolPath| {
        let mut cases = report.cases.iter();
        cases.any(|case| is_of(case, test) && case.status != TestStatus::Skipped)
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
                     the other tests of the file are, with a name that the test runner finds, and do not \
                     skip it or expect it to fail."
                ),
                format!("the test command does not run {names}"),
            ))
        }
    }
}

/// Returns whether a draft adds all of these tests.
pub(crate) fn are_all_added(draft: &Draft, ids: &[String]) -> bool {
    let added = match is_test_file(&draft.file) {
        true => added_tests(draft),
        false => Vec::new(),
    };
    let is_added = |id: &String| added.iter().any(|test| names(id, test));
    ids.iter().all(is_added)
}

/// Returns whether a draft adds test functions to a test file.
pub(crate) fn adds_tests(draft: &Draft) -> bool {
    is_test_file(&draft.file) && !added_tests(draft).is_empty()
}

/// Returns the test functions that a draft adds to its file.
fn added_tests(draft: &Draft) -> Vec<SymbolPath> {
    added_between(&draft.file, draft.base.clone(), draft.text.clone())
}

/// Returns the test functions of a file that are in `text` and not in `base`.
fn added_between(file: &FilePath, base: Arc<str>, text: Arc<str>) -> Vec<SymbolPath> {
    tests_between(file, base, text, |old, _| old.is_none())
}

/// Returns the test functions that are in both texts of a file and differ.
fn altered_between(file: &FilePath, base: Arc<str>, text: Arc<str>) -> Vec<SymbolPath> {
    tests_between(file, base, text, |old, new| {
        old.is_some_and(|old| old != new)
    })
}

/// Returns the test functions of `text` that `is_meant` selects. Its arguments are the text of the
/// function in `base`, if it exists there, and in `text`.
fn tests_between(
    file: &FilePath,
    base: Arc<str>,
    text: Arc<str>,
    is_meant: impl Fn(Option<&str>, &str) -> bool,
) -> Vec<SymbolPath> {
    let before = SymbolTree::parse(file.clone(), base);
    let after = SymbolTree::parse(file.clone(), text);
    let is_test = |symbol: &&Symbol| {
        let is_function = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method);
        is_function && symbol.path.base_name().starts_with("test")
    };
    let is_meant = |symbol: &&Symbol| {
        let old = before.find(&symbol.path.name);
        is_meant(
            old.map(|old| text_of(&before, old)),
            text_of(&after, symbol),
        )
    };
    let tests = after.symbols().iter().filter(is_test).filter(is_meant);
    tests.map(|symbol| symbol.path.clone()).collect()
}

fn text_of<'t>(tree: &'t SymbolTree, symbol: &Symbol) -> &'t str {
    &tree.text()[symbol.span.start..symbol.span.end]
}

/// Returns why a task for a new test is not done: the run changed no test file, or added one
/// without a test. Doctests may be in code files.
pub(crate) fn missing(checker: &Checker) -> Option<String> {
    let is_doctest = checker.task.text.to_lowercase().contains("doctest");
    let state = checker.state();
    let changed = state.proposals.changed_files();
    let without = state.without_the_run();
    let holds_tests = |file: &FilePath| {
        let is_old = || without.read(file).is_ok();
        let has_tests = || {
            let text = state.world.snapshot.read(file).ok();
            text.is_some_and(|text| !added_between(file, "".into(), text).is_empty())
        };
        is_test_file(file) && (is_old() || !file.name().ends_with(".py") || has_tests())
    };
    let is_missing =
        checker.goal == Goal::NewTest && !is_doctest && !changed.iter().any(holds_tests);
    is_missing.then(|| "the task asks for a new test, and none was added".to_owned())
}
