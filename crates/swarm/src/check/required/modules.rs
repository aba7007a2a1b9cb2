//! Finds the modules whose tests a task names, as in "fix the failing units tests", "make the tests
//! of the units module pass", or "fix the failing tests of units.py".

use std::collections::BTreeSet;

use crate::lookup::Lookup;
use crate::task::asked::{Token, names_file, sentences};
use starling_core::TestCase;
use starling_index::is_test_file;
use starling_syntax::FilePath;

const TESTS: [&str; 5] = ["test", "tests", "testsuite", "testcases", "suite"];
const OF: [&str; 5] = ["of", "for", "in", "from", "about"];
const FILLERS: [&str; 6] = ["the", "a", "our", "module", "file", "and"];
/// Words before "tests" that describe the kind of the tests. They never count as the name of a
/// module, even if the project has a module with this name.
const KINDS: [&str; 6] = ["unit", "integration", "failing", "red", "broken", "all"];

/// Returns the modules outside tests whose tests a task names, without their folders and `.py`.
pub(super) fn named(lookup: &Lookup, task: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for sentence in sentences(task) {
        for at in 0..sentence.len() {
            if is_any(&sentence[at], &TESTS) {
                found.extend(before(lookup, &sentence[..at]));
                found.extend(after(lookup, &sentence[at + 1..]));
            }
        }
    }
    found
}

/// Returns whether a test belongs to one of these modules, according to the name of its file:
/// `test_units.py` belongs to `units`.
pub(super) fn hold(modules: &BTreeSet<String>, case: &TestCase) -> bool {
    let (file, _) = case.id.split_once("::").unwrap_or((&case.id, ""));
    let file = FilePath::new(file);
    let Some(stem) = file.name().strip_suffix(".py") else {
        return false;
    };
    let of = stem
        .strip_prefix("test_")
        .or_else(|| stem.strip_suffix("_test"))
        .or_else(|| stem.strip_suffix("_tests"));
    of.is_some_and(|of| modules.contains(of))
}

fn is_any(token: &Token, known: &[&str]) -> bool {
    known.contains(&token.word.to_lowercase().as_str())
}

/// Returns the modules that are named directly before the word "tests": `the units and lots tests`.
fn before(lookup: &Lookup, words: &[Token]) -> Vec<String> {
    let near = words.iter().rev();
    let near = near.skip_while(|token| is_any(token, &["module", "module's", "file"]));
    let near = near.take_while(|token| !token.ends_clause);
    listed(lookup, near.filter(|token| !is_any(token, &KINDS)))
}

/// Returns the modules that are named after the word "tests": `tests of the units module`.
fn after(lookup: &Lookup, words: &[Token]) -> Vec<String> {
    match words.first().is_some_and(|token| is_any(token, &OF)) {
        true => listed(lookup, words[1..].iter()),
        false => Vec::new(),
    }
}

/// Returns the modules that are named at the beginning of a list of words.
fn listed<'t>(lookup: &Lookup, words: impl Iterator<Item = &'t Token>) -> Vec<String> {
    let mut modules = Vec::new();
    for token in words {
        match module(lookup, &token.word) {
            Some(module) => modules.push(module),
            None if is_any(token, &FILLERS) => {}
            None => break,
        }
    }
    modules
}

/// Returns the name of the module outside tests that a word names.
fn module(lookup: &Lookup, word: &str) -> Option<String> {
    let word = word.trim_end_matches("'s");
    let path = match word.ends_with(".py") {
        true => word.to_owned(),
        false => format!("{}.py", word.replace('.', "/")),
    };
    let mut files = lookup.files().iter();
    let file = files.find(|file| !is_test_file(file) && names_file(&path, file))?;
    file.name().strip_suffix(".py").map(str::to_owned)
}
