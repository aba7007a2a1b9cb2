//! Features from a file's surroundings: its tests, the other files of its directory, and the kind
//! of its directory.

use std::collections::HashMap;

use super::corpus::{Corpus, File};

/// Factors for the score of a test file: `BY_DIRECTORY` if not the test file itself but only its
/// directory is named after the tested file, `FAR` if it is in an unrelated directory.
const BY_DIRECTORY: f32 = 0.7;
const FAR: f32 = 0.7;
/// Number of neighbouring files that count.
const NEIGHBOURS: usize = 4;

/// Names of directories that do not contain the main code, in alphabetical order.
const APART: [&str; 27] = [
    "_vendor",
    "asv_benchmarks",
    "benchmarks",
    "bin",
    "build_tools",
    "conf",
    "deprecated",
    "doc",
    "docs",
    "example",
    "examples",
    "extern",
    "externals",
    "galleries",
    "gallery",
    "locale",
    "migrations",
    "packages",
    "release",
    "samples",
    "scripts",
    "testing",
    "third_party",
    "tools",
    "tutorial",
    "tutorials",
    "vendor",
];

/// Returns for each file how well the tests named after it match (`x.py` and `test_x.py`). The best
/// value is 1.
pub(super) fn tests_of(corpus: Corpus<'_>, words: &[f32]) -> Vec<f32> {
    let mut tests: HashMap<&str, Vec<(&str, f32)>> = HashMap::new();
    let all = corpus.files().iter().zip(words);
    for (file, score) in all.filter(|(file, _)| file.is_test) {
        let directory = file.path.directory();
        let name = file.path.name().trim_end_matches(".py");
        tests
            .entry(tested_module(name).unwrap_or(name))
            .or_default()
            .push((directory, *score));
        // `tests/x/test_y.py` may also test `x.py`.
        let around = directory.rsplit('/').next().unwrap_or_default();
        tests
            .entry(around)
            .or_default()
            .push((directory, BY_DIRECTORY * score));
    }
    let of_file = |file: &File| {
        let own = stem(file).trim_start_matches('_');
        let near = |(directory, score): &(&str, f32)| {
            let near = directory.starts_with(file.path.directory());
            if near { *score } else { FAR * score }
        };
        let found = tests.get(own).map_or(&[][..], Vec::as_slice);
        found.iter().map(near).fold(0.0, f32::max)
    };
    let files = corpus.files().iter();
    let mut found: Vec<f32> = files
        .map(|file| if file.is_test { 0.0 } else { of_file(file) })
        .collect();
    let most = found.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    found.iter_mut().for_each(|score| *score /= most);
    found
}

/// Returns for each file how well the best other files of its directory match.
pub(super) fn neighbours(corpus: Corpus<'_>, words: &[f32]) -> Vec<f32> {
    let mut best: HashMap<&str, Vec<f32>> = HashMap::new();
    for (file, score) in corpus.files().iter().zip(words) {
        best.entry(file.path.directory()).or_default().push(*score);
    }
    for scores in best.values_mut() {
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
        scores.truncate(NEIGHBOURS);
    }
    let others = |(file, own): (&File, &f32)| {
        let best = &best[file.path.directory()];
        let all: f32 = best.iter().sum();
        let others = if best.contains(own) { all - own } else { all };
        others / (NEIGHBOURS - 1) as f32
    };
    corpus.files().iter().zip(words).map(others).collect()
}

/// Returns whether a file is not part of the main code: documentation, examples, or vendored code.
pub(super) fn is_apart(path: &str) -> bool {
    let mut directories = path.split('/').rev().skip(1);
    directories.any(|part| APART.binary_search(&part).is_ok())
}

/// Returns the name of the module that a test file is named after: `x` for `test_x` and `x_test`.
pub(super) fn tested_module(name: &str) -> Option<&str> {
    let tested = name.strip_prefix("test_");
    tested.or_else(|| name.strip_suffix("_test"))
}

/// Returns the last part of a file's module name.
pub(super) fn stem(file: &File) -> &str {
    file.module.rsplit('.').next().unwrap_or(&file.module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_the_main_code_are_recognized_by_directory() {
        assert!(APART.is_sorted());
        assert!(is_apart("docs/conf.py") && is_apart("a/vendor/b.py"));
        assert!(!is_apart("a/docs.py") && !is_apart("doc.py"));
    }
}
