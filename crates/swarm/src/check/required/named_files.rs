//! Finds the failing tests of the test files, folders of tests and modules that a task names.

use std::collections::BTreeSet;

use super::modules;
use crate::lookup::Lookup;
use crate::task::whole_word::has_word;
use starling_core::TestCase;
use starling_index::is_test_file;
use starling_syntax::FilePath;

/// Returns the ids of the failing tests in a file or folder that a text names. If there are none,
/// returns those of a module whose tests the text names. `file_of` returns the file of a test.
pub(super) fn failing(
    lookup: &Lookup,
    text: &str,
    failing: &[TestCase],
    file_of: impl Fn(&TestCase) -> Option<FilePath>,
) -> BTreeSet<String> {
    let ids = |fits: &dyn Fn(&TestCase) -> bool| -> BTreeSet<String> {
        let fitting = failing.iter().filter(|case| fits(case));
        fitting.map(|case| case.id.clone()).collect()
    };
    let folders = folders(lookup, text);
    let is_named = |case: &TestCase| {
        file_of(case).is_some_and(|file| {
            let mut folders = folders.iter();
            names_file(text, &file) || folders.any(|folder| file.as_str().starts_with(folder))
        })
    };
    let in_files = ids(&is_named);
    match in_files.is_empty() {
        true => {
            let modules = modules::named(lookup, text);
            ids(&|case| modules::hold(&modules, case))
        }
        false => in_files,
    }
}

fn names_file(text: &str, file: &FilePath) -> bool {
    let stem = file.name().strip_suffix(".py");
    stem.is_some_and(|stem| has_word(text, stem))
}

/// Returns the folders of tests that a text names, each with a slash at its end. A folder with all
/// tests of the project names no tests in particular.
fn folders(lookup: &Lookup, text: &str) -> Vec<String> {
    let words = text.split_whitespace().filter(|word| word.contains('/'));
    let words = words.map(|word| format!("{}/", word.trim_matches(['/', '.', '`', ','])));
    let tests = || lookup.files().iter().filter(|file| is_test_file(file));
    let is_of_some = |folder: &String| {
        let holds = |file: &FilePath| file.as_str().starts_with(folder);
        tests().any(holds) && !tests().all(holds)
    };
    words.filter(is_of_some).collect()
}
