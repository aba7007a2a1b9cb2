//! Finds the tests that use shared test files, which contain no tests themselves: fixtures in a
//! `conftest.py`, helpers and data. A test runner that is given such a file runs no test.

use std::collections::BTreeSet;

use crate::check::test_files;
use crate::lookup::Lookup;
use crate::task::whole_word::has_word;
use starling_syntax::{FilePath, Symbol, SymbolKind, SymbolPath};

/// Maximum number of test files that are searched.
const FILES_MOST: usize = 400;

/// Returns whether a changed file belongs to the tests but contains no tests itself.
pub(crate) fn is_shared(lookup: &Lookup, file: &FilePath) -> bool {
    !test_files::is_module(file) && lookup.index().tests_in(file) == 0
}

/// Returns the tests that use a changed symbol of a shared test file, directly or through other
/// fixtures and helpers: single tests, or the modules of whole test files. If the users are
/// unknown, returns all test files below the nearest parent folder that contains tests.
pub(crate) fn users(lookup: &Lookup, symbol: &SymbolPath) -> Vec<SymbolPath> {
    let below = files_below(lookup, &symbol.file);
    let found = match name_of_use(lookup, symbol) {
        Some(name) => users_of(lookup, &symbol.file, name),
        None => Vec::new(),
    };
    match found.is_empty() {
        true => below.into_iter().map(SymbolPath::module).collect(),
        false => found,
    }
}

/// Returns the name by which tests use a symbol. Returns `None` for an autouse fixture and for a
/// fixture that is registered under another name.
fn name_of_use(lookup: &Lookup, symbol: &SymbolPath) -> Option<String> {
    let base = symbol.name.split('.').next().unwrap_or_default();
    let base = base.split('#').next().unwrap_or(base);
    let tree = lookup.tree(&symbol.file).ok()?;
    let decorators = &tree.find(base)?.contract.decorators;
    let is_hidden = decorators
        .iter()
        .any(|one| one.contains("autouse") || one.contains("name=") || one.contains("hookimpl"));
    let is_hook = base.starts_with("pytest_");
    (!base.is_empty() && !is_hidden && !is_hook).then(|| base.to_owned())
}

/// Returns the test files below the nearest parent folder of a file that contains test files.
fn files_below(lookup: &Lookup, file: &FilePath) -> Vec<FilePath> {
    let mut folder = file.directory();
    loop {
        let is_below = |other: &&FilePath| is_in(other, folder);
        let files = lookup.files().iter().filter(is_below);
        let with_tests = files.filter(|other| lookup.index().tests_in(other) > 0);
        let found: Vec<FilePath> = with_tests.cloned().collect();
        if !found.is_empty() || folder.is_empty() {
            return found;
        }
        folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
    }
}

fn is_in(file: &FilePath, folder: &str) -> bool {
    let inside = file.directory().strip_prefix(folder);
    folder.is_empty() || inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the tests that mention a name, directly or through other symbols that mention it.
fn users_of(lookup: &Lookup, file: &FilePath, name: String) -> Vec<SymbolPath> {
    let is_conftest = file.name() == "conftest.py";
    let folder = if is_conftest { file.directory() } else { "" };
    let files = lookup.files().iter();
    let files = files.filter(|other| starling_index::is_test_file(other) && is_in(other, folder));
    let trees: Vec<_> = files
        .take(FILES_MOST)
        .filter_map(|other| lookup.tree(other).ok())
        .collect();
    let mut found: BTreeSet<SymbolPath> = BTreeSet::new();
    let mut known = BTreeSet::from([name.clone()]);
    let mut next = vec![name];
    while let Some(name) = next.pop() {
        let saying = trees.iter().filter(|tree| has_word(tree.text(), &name));
        for tree in saying {
            for symbol in tree
                .symbols()
                .iter()
                .filter(|one| says(tree.text(), one, &name))
            {
                let base = symbol.path.base_name();
                let is_function = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method);
                if is_function && base.starts_with("test") {
                    found.insert(lookup.index().runnable(&symbol.path));
                } else if is_function && known.insert(base.to_owned()) {
                    next.push(base.to_owned());
                } else if !is_function && lookup.index().tests_in(tree.file()) > 0 {
                    found.insert(SymbolPath::module(tree.file().clone()));
                }
            }
        }
    }
    found.into_iter().collect()
}

/// Returns whether the code of a symbol mentions a name. Imports do not count as a mention.
fn says(text: &str, symbol: &Symbol, name: &str) -> bool {
    let code = symbol.definition.of(text);
    match symbol.kind {
        SymbolKind::Function | SymbolKind::Method => has_word(code, name),
        SymbolKind::Class | SymbolKind::Module => text.lines().any(|line| {
            let is_mark = line.contains("usefixtures") || line.contains("pytestmark");
            is_mark && has_word(line, name)
        }),
    }
}
