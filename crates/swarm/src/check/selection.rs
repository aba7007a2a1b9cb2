//! Selects the tests for a change if running all tests takes long: tests that were named, tests
//! that fail without the change, and the nearest tests.

use std::collections::BTreeSet;

use crate::check::original_tests::own_tests;
use crate::check::own_tests::has_example;
use crate::check::shared_tests;
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::Tried;
use crate::lookup::Lookup;
use crate::state::checker::Checker;
use crate::state::test_scope::{Extent, Granularity};
use crate::task::asked::names_file;
use starling_index::is_test_file;
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::Snapshot;

/// If the project has at most this number of tests, all of them run once before the first change.
const SMALL: usize = 400;
const TESTS_MOST: usize = 60;
/// Minimum number of tests found by name. If fewer tests are found, the whole test file runs.
const FEW: usize = 3;
const NAMED_MOST: usize = 10;
const FAILING_MOST: usize = 20;
/// Maximum number of tests in the test files that run at the end of the run.
const AT_END_MOST: usize = 400;

/// Returns whether there are few enough tests to run all of them before the first change.
pub(crate) fn are_few(lookup: &Lookup) -> bool {
    lookup.index().test_count() <= SMALL
}

/// Tests to run, nearest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    chosen: Vec<SelectedEntry>,
    /// Whether at least one test was selected because it is near the change. The other tests are
    /// named in the task or failed before.
    has_near: bool,
}

/// A selected test or test file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SelectedEntry {
    /// The entry in the runner's format.
    entry: String,
    /// The file in the workspace, if it is known.
    file: Option<FilePath>,
    tests: usize,
}

impl Selection {
    /// Selects the tests that check a change of these symbols, which leads to the texts of `after`.
    pub(crate) fn near(checker: &Checker, symbols: &[SymbolPath], after: &Snapshot) -> Selection {
        let lookup = checker.lookup();
        let (named, failing, policy) = {
            let state = checker.tests();
            (
                state.selection.named.clone(),
                state.failing.clone(),
                state.selection.policy,
            )
        };
        let mut selection = Selection::default();
        for entry in named.iter().take(NAMED_MOST) {
            selection.add_named(&lookup, entry);
        }
        let failing = failing.iter().filter(|id| *id != WHOLE_RUN);
        for id in failing.take(FAILING_MOST) {
            selection.add_named(&lookup, id);
        }
        let of_tests = symbols.iter().filter(|symbol| is_test_file(&symbol.file));
        for symbol in of_tests {
            selection.has_near = true;
            match shared_tests::is_shared(&lookup, &symbol.file) {
                true => selection.add_up_to(&lookup, shared_tests::users(&lookup, symbol)),
                false => selection.add(&lookup, &SymbolPath::module(symbol.file.clone())),
            }
        }
        selection.add_examples(checker, symbols, after);
        selection.add_nearest(&lookup, symbols, policy.most);
        // What is called through a table of functions is tested by the tests of that table.
        let tables = users_as_value(&lookup, symbols);
        if !tables.is_empty() {
            selection.add_nearest(&lookup, &tables, policy.most);
        }
        match policy.by {
            Granularity::Test => selection,
            Granularity::File => selection.of_files(&lookup, TESTS_MOST),
        }
    }

    /// Selects the files of the tests nearest to all changed symbols.
    pub(crate) fn at_end(checker: &Checker, symbols: &[SymbolPath], now: &Snapshot) -> Selection {
        Selection::near(checker, symbols, now).of_files(&checker.lookup(), AT_END_MOST)
    }

    pub(crate) fn len(&self) -> usize {
        self.chosen.len()
    }

    /// Returns whether at least one test is near the change.
    pub(crate) fn has_near(&self) -> bool {
        self.has_near
    }

    /// Returns the number of selected test functions. The cases of a parametrized test function count
    /// as one.
    pub(crate) fn test_count(&self) -> usize {
        let mut functions: BTreeSet<&str> = BTreeSet::new();
        let counted = self.chosen.iter().filter(|one| {
            let function = one.entry.split('[').next().unwrap_or(&one.entry);
            functions.insert(function)
        });
        counted.map(|one| one.tests).sum()
    }

    /// Keeps the `most` nearest entries, at least one.
    pub(crate) fn keep_nearest(&mut self, most: usize) {
        self.chosen.truncate(most.max(1));
    }

    /// Returns the entries in the runner's format.
    pub(crate) fn entries(&self) -> Vec<String> {
        let entries = self.chosen.iter().map(|one| one.entry.clone());
        entries.collect()
    }

    /// Describes the selection for the evidence.
    pub(crate) fn tried(&self, checker: &Checker) -> Tried {
        let files: BTreeSet<&FilePath> = self
            .chosen
            .iter()
            .filter_map(|one| one.file.as_ref())
            .collect();
        Tried::Nearest {
            tests: self.test_count(),
            are_near: self.has_near,
            of: checker.lookup().index().test_count(),
            files: files.into_iter().cloned().collect(),
            whole_at_end: checker.tests().selection.scope.end == Extent::Whole,
        }
    }

    /// Adds the files whose doctests run, if a docstring of a changed symbol has an example. The
    /// whole file is added, because the id of a doctest contains names that the change may replace.
    fn add_examples(&mut self, checker: &Checker, symbols: &[SymbolPath], after: &Snapshot) {
        let without = checker.state().without_the_run();
        let own = own_tests(checker, &without, None);
        let has_example = |symbol: &&SymbolPath| {
            let in_text = |world: &Snapshot| {
                let tree = world.tree(&symbol.file);
                tree.is_ok_and(|tree| has_example(&tree, symbol))
            };
            own.run_examples_of(&symbol.file) && (in_text(after) || in_text(&without))
        };
        for symbol in symbols.iter().filter(has_example) {
            let entry = symbol.file.to_string();
            if self.chosen.iter().all(|one| one.entry != entry) {
                self.has_near = true;
                self.chosen.push(SelectedEntry {
                    entry,
                    file: Some(symbol.file.clone()),
                    // Examples are not test functions.
                    tests: 0,
                });
            }
        }
    }

    fn add_nearest(&mut self, lookup: &Lookup, symbols: &[SymbolPath], most: usize) {
        let index = lookup.index();
        let nearest = index.nearest_tests(symbols, most);
        let (files, names): (Vec<_>, Vec<_>) = nearest
            .iter()
            .map(|test| index.runnable(test))
            .partition(SymbolPath::is_module);
        let few = names.len() < FEW;
        self.has_near |= !names.is_empty() || !files.is_empty();
        self.add_up_to(
            lookup,
            names.into_iter().chain(files.into_iter().filter(|_| few)),
        );
    }

    /// Adds the found tests until the maximum number of tests is selected.
    fn add_up_to(&mut self, lookup: &Lookup, found: impl IntoIterator<Item = SymbolPath>) {
        let mut tests = 0;
        for test in found {
            let count = tests_of(lookup, &test);
            // The nearest file runs even if it contains more tests than the limit.
            if tests == 0 || tests + count <= TESTS_MOST {
                tests += count;
                self.add(lookup, &test);
            }
        }
    }

    fn add(&mut self, lookup: &Lookup, test: &SymbolPath) {
        let in_file = |one: &SelectedEntry| one.file.as_ref() == Some(&test.file);
        let entry = match test.is_module() {
            true => test.file.to_string(),
            false => test.to_string(),
        };
        let whole = test.file.to_string();
        if (self.chosen.iter()).any(|one| one.entry == entry || one.entry == whole) {
            return;
        }
        if test.is_module() {
            self.chosen.retain(|one| !in_file(one));
        }
        let tests = tests_of(lookup, test);
        let file = Some(test.file.clone());
        self.chosen.push(SelectedEntry { entry, file, tests });
    }

    /// Adds a test file by its path in the workspace, or a test by its id in the runner's format.
    fn add_named(&mut self, lookup: &Lookup, entry: &str) {
        let file = FilePath::new(entry.split("::").next().unwrap_or(entry));
        let known = lookup.files().binary_search(&file).is_ok();
        if !self.chosen.iter().any(|one| one.entry == entry) {
            self.chosen.push(SelectedEntry {
                entry: entry.to_owned(),
                tests: match known && entry == file.as_str() {
                    true => lookup.index().tests_in(&file),
                    false => 1,
                },
                file: known.then_some(file),
            });
        }
    }

    /// Replaces the tests by their files, up to `most` tests and at least one file.
    fn of_files(self, lookup: &Lookup, most: usize) -> Selection {
        let mut files = Selection {
            has_near: self.has_near,
            ..Selection::default()
        };
        let mut tests = 0;
        for one in self.chosen {
            let Some(file) = one.file else {
                files.chosen.push(one);
                continue;
            };
            let whole = SymbolPath::module(file);
            let count = tests_of(lookup, &whole);
            if tests == 0 || tests + count <= most {
                let known = files.chosen.len();
                files.add(lookup, &whole);
                tests += count * (files.chosen.len() - known);
            }
        }
        files
    }
}

/// Returns the modules outside tests that store or pass on one of the symbols as a value.
fn users_as_value(lookup: &Lookup, symbols: &[SymbolPath]) -> Vec<SymbolPath> {
    let uses = symbols.iter().flat_map(|one| lookup.uses_as_value(one));
    let files: BTreeSet<FilePath> = uses.map(|usage| usage.file).collect();
    let is_other =
        |file: &FilePath| !is_test_file(file) && symbols.iter().all(|symbol| symbol.file != *file);
    let files = files.into_iter().filter(is_other);
    files.map(SymbolPath::module).collect()
}

fn tests_of(lookup: &Lookup, test: &SymbolPath) -> usize {
    match test.is_module() {
        true => lookup.index().tests_in(&test.file).max(1),
        false => 1,
    }
}

/// Returns the tests that a text names: paths of test files, with an optional name after `::`, and
/// names that belong to only one test.
pub(crate) fn named_in(lookup: &Lookup, text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || "_./:-".contains(c);
    let mut found: Vec<String> = Vec::new();
    for word in text.split(|c: char| !is_part(c)) {
        let word = word.trim_end_matches(['.', ':']).trim_start_matches("./");
        if let Some(test) = by_path(lookup, word).or_else(|| by_name(lookup, word)) {
            let entry = match test.is_module() {
                true => test.file.to_string(),
                false => test.to_string(),
            };
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
    }
    found.truncate(NAMED_MOST);
    found
}

fn by_path(lookup: &Lookup, word: &str) -> Option<SymbolPath> {
    let (file, name) = word.split_once("::").unwrap_or((word, ""));
    let exact = FilePath::new(file);
    let mut of_name = lookup.files().iter().filter(|one| names_file(file, one));
    let file = match (of_name.next(), of_name.next()) {
        _ if lookup.files().binary_search(&exact).is_ok() => exact,
        // A file may be named without its folder, if it is the only one of this name.
        (Some(only), None) => only.clone(),
        _ => return None,
    };
    let holds_tests = lookup.index().tests_in(&file) > 0;
    holds_tests.then(|| {
        let named = SymbolPath::new(file, name.replace("::", "."));
        lookup.index().runnable(&named)
    })
}

fn by_name(lookup: &Lookup, word: &str) -> Option<SymbolPath> {
    let name = word.rsplit(['.', ':', '/']).next().unwrap_or(word);
    if !name.starts_with("test_") {
        return None;
    }
    let mut defined = lookup.index().definitions(name);
    defined.retain(|one| is_test_file(&one.symbol.file));
    match defined.as_slice() {
        [only] => Some(lookup.index().runnable(&only.symbol)),
        _ => None,
    }
}
