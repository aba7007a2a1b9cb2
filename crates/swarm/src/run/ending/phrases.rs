//! Parts of headlines.

use super::facts::RunFacts;
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::wording::some_of;
use starling_core::{TestReport, TestStatus};

/// Maximum length of quoted test output, in bytes.
pub(super) const QUOTED: usize = 160;

/// Describes the failing tests, for example `2 tests fail: a, b`.
pub(super) fn failures(failing: &[String], command: &str) -> String {
    let named: Vec<String> = failing
        .iter()
        .filter(|id| *id != WHOLE_RUN)
        .cloned()
        .collect();
    match named.len() {
        0 => format!("`{command}` fails"),
        1 => format!("1 test fails: {}", named[0]),
        many => format!("{many} tests fail: {}", some_of(&named)),
    }
}

/// Returns, in parentheses, the error of a failing test, if only one test fails and its error is
/// known.
pub(super) fn only_error(failing: &[String], report: &TestReport) -> String {
    const ERROR: usize = 100;
    let [only] = failing else {
        return String::new();
    };
    let case = report.cases.iter().find(|case| case.id == *only);
    let lines = case.map_or("", |case| &case.message).lines().map(str::trim);
    let errors = lines.clone().filter_map(|line| line.strip_prefix("E "));
    let of_unittest = lines.filter(|line| !line.starts_with("note: ")).rev();
    let mut errors = errors.chain(of_unittest.take(1)).map(str::trim);
    let error = errors.find(|line| !line.is_empty());
    error.map_or(String::new(), |error| format!(" ({})", head(error, ERROR)))
}

/// Describes the flaky tests, for example `1 test fails now and then: a`.
pub(super) fn now_and_then(ids: &[String]) -> String {
    let named: Vec<String> = ids.iter().filter(|id| *id != WHOLE_RUN).cloned().collect();
    match named.len() {
        0 => "the test command fails now and then".to_owned(),
        1 => format!("1 test fails now and then: {}", named[0]),
        many => format!("{many} tests fail now and then: {}", some_of(&named)),
    }
}

/// Describes the tests that pass only with the run's changes to test files, for example `2 tests
/// pass only as they were changed: a, b`.
pub(super) fn pass_as_changed(ids: &[String], command: &str) -> String {
    let named: Vec<String> = ids.iter().filter(|id| *id != WHOLE_RUN).cloned().collect();
    match named.len() {
        0 => format!("`{command}` passes only with test files that were changed"),
        1 => format!("1 test passes only as it was changed: {}", named[0]),
        many => format!(
            "{many} tests pass only as they were changed: {}",
            some_of(&named)
        ),
    }
}

/// Describes, in parentheses, which of the failing tests also failed before the run.
pub(super) fn failed_before(failing: &[String], facts: &RunFacts<'_>) -> String {
    let did_not_run = |id: &&String| facts.did_not_run.contains(*id);
    let known = |id: &&String| facts.failed_before.contains(*id) && !did_not_run(id);
    let known = failing.iter().filter(known).count();
    let unknown = failing.iter().filter(did_not_run).count();
    match (unknown, failing.len()) {
        (0, _) => {}
        (1, 1) => return " (it did not run before)".to_owned(),
        (unknown, all) if unknown == all => return " (these did not run before)".to_owned(),
        (unknown, _) if known == 0 => return format!(" ({unknown} did not run before)"),
        (unknown, _) => {
            return format!(" ({known} failed before, {unknown} did not run before)");
        }
    }
    match (known, failing.len()) {
        (0, _) => String::new(),
        (1, 1) => " (it failed before)".to_owned(),
        (2, 2) => " (both failed before)".to_owned(),
        (known, all) if known == all => " (all failed before)".to_owned(),
        (known, _) => format!(" ({known} failed before)"),
    }
}

pub(super) fn with_status(report: &TestReport, status: TestStatus) -> usize {
    let cases = report.cases.iter();
    cases.filter(|case| case.status == status).count()
}

pub(super) fn pass(number: usize) -> &'static str {
    match number {
        1 => "passes",
        _ => "pass",
    }
}

pub(super) fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end()
}

pub(super) fn last_line(output: &str) -> &str {
    let line = output.trim_end().lines().last();
    line.unwrap_or("it printed nothing")
}

/// Truncates a line that is longer than `most`.
pub(crate) fn head(line: &str, most: usize) -> String {
    match line.char_indices().find(|(at, _)| *at >= most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
