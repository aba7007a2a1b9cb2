//! Adds the places that may still use what a run changed or removed to the problems at its end.

use std::collections::BTreeSet;

use crate::contract::possible;
use crate::lookup::Lookup;
use crate::state::run_context::RunContext;
use starling_syntax::{FilePath, SymbolPath};

/// Adds the places, except those that another problem already names. `before` is the workspace before the
/// run.
pub(crate) fn note(run: &RunContext, before: &Lookup, changed: &[SymbolPath]) {
    let files: BTreeSet<FilePath> = changed.iter().map(|symbol| symbol.file.clone()).collect();
    let files: Vec<FilePath> = files.into_iter().collect();
    let mut found = possible::left(run.stated(), before, &run.lookup(), &files);
    if !changed.is_empty() {
        found.splice(0..0, run.proposals().sets.doubts.clone());
    }
    let mut tests = run.tests();
    let problems = &mut tests.at_end.problems;
    let is_known = |problems: &[String], one: &str| {
        let mut words = one.split([' ', ',']);
        let place =
            words.find(|word| word.contains(|c: char| c.is_ascii_digit()) && word.contains(':'));
        place.is_some_and(|place| problems.iter().any(|problem| problem.contains(place)))
    };
    for one in found {
        if !is_known(problems, &one) {
            problems.push(one);
        }
    }
}
