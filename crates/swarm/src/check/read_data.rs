//! Finds data files outside the test folders that affect test results: files that the test command
//! compares output with, and files with values that tests read and the code does not. These files
//! count as test files, so a change of such a file proves nothing by itself.

use std::collections::BTreeSet;

use crate::check::other_language::is_other_language;
use crate::check::test_files::is_of_tests;
use crate::state::checker::Checker;
use starling_index::is_test_file;
use starling_syntax::{FilePath, Language};
use starling_workspace::Snapshot;

/// Maximum number of files that are searched. In a larger project, no data file counts as a test
/// file.
const FILES_MOST: usize = 3_000;
/// File name extensions of data.
const ENDINGS: [&str; 14] = [
    "json", "jsonl", "csv", "tsv", "txt", "yaml", "yml", "xml", "html", "out", "expected",
    "golden", "snap", "dat",
];
/// Prefixes of file names that describe an environment, such as `requirements.txt`. These files are
/// not test data.
const LISTS: [&str; 4] = ["requirements", "constraints", "CMakeLists", "package"];

/// Returns the data files that the test command or tests read and that no code names, in the
/// workspace before the run. `commands` gives the lines of the commands, and the scripts that count
/// as tests; it is called once for each run.
pub(crate) fn of_tests(
    checker: &Checker,
    commands: impl FnOnce() -> (Vec<String>, BTreeSet<FilePath>),
) -> &BTreeSet<FilePath> {
    checker.read_data.get_or_init(|| {
        let (lines, scripts) = commands();
        named(checker.services.index.snapshot(), &lines, &scripts)
    })
}

/// Returns the data files that are named in `lines` of commands or in tests and that no code names.
/// `scripts` count as tests.
fn named(world: &Snapshot, lines: &[String], scripts: &BTreeSet<FilePath>) -> BTreeSet<FilePath> {
    let is_candidate = |file: &&FilePath| is_data(file) && !is_of_tests(world, file);
    let mut data: Vec<&FilePath> = world.files().iter().filter(is_candidate).collect();
    if data.is_empty() || world.files().len() > FILES_MOST {
        return BTreeSet::new();
    }
    let is_test =
        |file: &FilePath| is_test_file(file) || is_of_tests(world, file) || scripts.contains(file);
    let (tests, code): (Vec<&FilePath>, Vec<&FilePath>) = (world.files().iter())
        .filter(|file| Language::of(file) != Language::Plain || is_other_language(file))
        .partition(|file| is_test(file));
    let mut read = BTreeSet::new();
    for line in lines {
        read.extend(names_in(line));
    }
    for file in tests {
        if let Ok(text) = world.read(file) {
            read.extend(names_in(&text));
        }
    }
    data.retain(|file| read.contains(file.name()));
    for file in code {
        if data.is_empty() {
            break;
        }
        if let Ok(text) = world.read(file) {
            data.retain(|data| !mentions(&text, data));
        }
    }
    data.into_iter().cloned().collect()
}

/// Returns whether a file is data by its name.
pub(crate) fn is_data(file: &FilePath) -> bool {
    let name = file.name();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let is_list = LISTS.iter().any(|list| name.starts_with(list));
    !is_list && ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Returns the names of files in a text.
fn names_in(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let words = text.split(|c| !is_part(c));
    let names = words.filter(|word| word.contains('.'));
    names.map(str::to_owned).collect()
}

/// Returns whether code names a data file or the file's folder.
fn mentions(code: &str, data: &FilePath) -> bool {
    let folder = data.directory().rsplit('/').next().unwrap_or_default();
    let is_folder = |form: &str| code.contains(&form.replace('@', folder));
    let forms = [
        "\"@\"", "'@'", "/@\"", "/@'", "@/\"", "@/'", "@/*", "@/{", "@/%",
    ];
    code.contains(data.name()) || !folder.is_empty() && forms.into_iter().any(is_folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_workspace::Workspace;

    const TEST: &str = "E = open('shop/data/expected.json')\nIN = open('shop/rates.csv')\n";

    fn read(code: &str, lines: &[&str], scripts: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("shop/cart.py", code),
            ("shop/data/expected.json", "{}"),
            ("shop/data/other.json", "{}"),
            ("shop/rates.csv", "1"),
            ("expected.txt", "1"),
            ("requirements.txt", "x"),
            ("tests/test_cart.py", TEST),
            ("t.js", "require('./cart.js'); read('cases.json')\n"),
            ("cases.json", "{}"),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let world = Workspace::open(dir.path().to_owned()).unwrap();
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let scripts = scripts.iter().map(|file| FilePath::new(*file)).collect();
        let found = named(&world.snapshot(Default::default()), &lines, &scripts);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn data_file_named_only_by_tests_is_treated_as_part_of_the_tests() {
        let both = ["shop/data/expected.json", "shop/rates.csv"];
        assert_eq!(read("RATE = 1\n", &[], &[]), both);
        assert_eq!(read("open('rates.csv')\n", &[], &[]), both[..1]);
        assert_eq!(read("glob(HERE / 'data' / '*')\n", &[], &[]), both[1..]);
        assert_eq!(read("glob('shop/data/*.json')\n", &[], &[]), both[1..]);
        let command = "pip install -r requirements.txt; python3 a.py | diff - ./expected.txt";
        let all = ["expected.txt", both[0], both[1]];
        assert_eq!(read("RATE = 1\n", &[command], &[]), all);
        let line = "require('./cart.js'); read('cases.json')";
        let with_script = ["cases.json", both[0], both[1]];
        assert_eq!(read("RATE = 1\n", &[line], &["t.js"]), with_script);
        assert_eq!(read("open('cases.json')\n", &[line], &["t.js"]), both);
    }
}
