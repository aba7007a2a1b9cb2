//! Decides at the end of a run whether the tests that still fail are only context: they failed
//! before, the run fixed a test that fits its task, and nothing connects the others with the task
//! or with the changes.

use std::collections::BTreeSet;

use crate::check::required;
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::failing_ids;
use crate::lookup::Lookup;
use crate::state::checker::Checker;
use starling_core::{TestCase, TestReport, TestStatus};
use starling_index::content_words;
use starling_syntax::SymbolPath;

/// Words that fit any test of any task.
const OF_ANY_TEST: [&str; 15] = [
    "assert", "case", "code", "correct", "expect", "expected", "fail", "fix", "green", "mend",
    "pass", "raise", "red", "result", "test",
];

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
    let words = TaskWords::of(&checker.task.text);
    let is_fixed_in_part = |case: &TestCase| {
        let mut fixed = fixed.iter();
        fixed.any(|one| function(&one.id) == function(&case.id))
    };
    let is_context = |case: &TestCase| !is_fixed_in_part(case) && !words.fit(&lookup, case);
    fixed.iter().any(|case| words.fit(&lookup, case))
        && left.iter().all(is_context)
        && required::reached(&lookup, changed, &left).is_empty()
}

fn cases(report: &TestReport, ids: &[String]) -> Vec<TestCase> {
    let cases = report.cases.iter();
    cases
        .filter(|case| ids.contains(&case.id))
        .cloned()
        .collect()
}

/// Returns the id of a test without its parameters.
fn function(id: &str) -> &str {
    id.split('[').next().unwrap_or(id)
}

/// The words of a task that tell what it is about.
struct TaskWords(BTreeSet<String>);

impl TaskWords {
    fn of(task: &str) -> TaskWords {
        let mut words = content_words(task);
        words.retain(|word| !OF_ANY_TEST.contains(&word.as_str()));
        TaskWords(words)
    }

    /// Returns whether a test says one of the words in its name or in its source.
    fn fit(&self, lookup: &Lookup, case: &TestCase) -> bool {
        let source = required::test_of(lookup, case);
        let source = source.and_then(|test| lookup.symbol(&test).ok());
        let source = source.map_or(String::new(), |found| found.source().to_owned());
        let name = function(&case.id).rsplit([':', '.']).next();
        let said = content_words(&format!("{} {source}", name.unwrap_or_default()));
        !self.0.is_disjoint(&said)
    }
}
