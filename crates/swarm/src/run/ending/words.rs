//! Results of runs that changed only documents, comments and docstrings.

use super::facts::{LastCheck, RunFacts};
use crate::check::documentation::is_documentation;
use crate::evidence::without_change::WithoutChange;
use crate::task::goal::Goal;
use starling_core::{TestCase, TestStatus};

/// Returns whether a run changed only documents, comments and docstrings, and no test shows the
/// change, as a doctest example in a docstring could. Returns `false` if the task names documents
/// and the run did not change them.
pub(super) fn is_all_documentation(facts: &RunFacts<'_>) -> bool {
    let WithoutChange {
        fails,
        passes,
        changed_fail,
        unshown_parts: _,
    } = facts.new_tests;
    let is_shown = [fails, passes, changed_fail]
        .iter()
        .any(|tests| !tests.is_empty());
    let is_fixed = |case: &TestCase| {
        case.status == TestStatus::Passed && facts.failed_before.contains(&case.id)
    };
    let fixes = match facts.last_check {
        LastCheck::Known(report) => report.cases.iter().any(is_fixed),
        LastCheck::Absent { .. } => false,
    };
    let is_of_tests = facts.goal == Goal::NewTest;
    let is_missed = facts.aim.missed.is_some();
    !is_missed && !is_of_tests && !is_shown && !fixes && (facts.only_words || are_documents(facts))
}

fn are_documents(facts: &RunFacts<'_>) -> bool {
    let mut files = facts.changed.iter().map(|symbol| &symbol.file);
    files.all(is_documentation)
}

pub(super) fn only_words(facts: &RunFacts<'_>) -> &'static str {
    match are_documents(facts) {
        true => "only documentation was changed",
        false => "only comments and docstrings were changed",
    }
}
