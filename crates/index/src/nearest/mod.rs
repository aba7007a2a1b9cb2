//! Selects the tests that are most likely to exercise given symbols.

mod beside;
mod runnable;
mod target;

use std::collections::HashMap;

use super::bm25::{DocumentBags, rank};
use super::code::{Code, FileId, SymbolNumber, is_test_function};
use super::words::{Term, all_words};
use beside::ModuleNameMentions;
pub(super) use runnable::{runnable, tests_in};
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::Snapshot;
use target::TestTarget;

// Weights of the signals that connect a test with a symbol. For comparison, the best word score is
// 1.
const FILE_WORDS: f64 = 1.0;
const FILE_NAMED_AFTER: f64 = 1.0;
const IMPORTS: f64 = 0.2;
const SAME_DIRECTORY: f64 = 0.4;
const WORD_OF_PATH: f64 = 0.15;
const NAMED_AFTER: f64 = 0.4;
const FILE_BESIDE: f64 = 0.5;
const TEST_BESIDE: f64 = 0.2;
/// Penalty for each further test of the same file, so that the selection covers several files.
const REPEATED: f64 = 0.1;
/// Number of best files that are checked for imports of the module.
const LOOK_INSIDE: usize = 64;

/// Returns the nearest test functions, best first. A test file is represented by its module body if
/// it is related but no function matches.
pub(super) fn nearest_tests(
    code: &Code,
    snapshot: &Snapshot,
    symbols: &[SymbolPath],
    limit: usize,
) -> Vec<SymbolPath> {
    let bags = TestWords::of(code);
    let mut best: HashMap<SymbolNumber, f64> = HashMap::new();
    let mut modules: HashMap<&FilePath, ModuleData> = HashMap::new();
    for symbol in symbols {
        let module = modules.entry(&symbol.file).or_insert_with(|| ModuleData {
            beside: ModuleNameMentions::of(code, &symbol.file, symbols),
            imported: HashMap::new(),
        });
        let target = TestTarget::of(symbol);
        for (test, score) in scored(code, snapshot, &bags, &target, module) {
            let known = best.entry(test).or_insert(score);
            *known = known.max(score);
        }
    }
    let mut found = spread(code, best);
    found.truncate(limit);
    found
        .into_iter()
        .filter_map(|test| code.path_of(test))
        .collect()
}

/// Data that is computed once for all symbols of one module.
struct ModuleData {
    beside: ModuleNameMentions,
    /// Whether a test file imports the module.
    imported: HashMap<FileId, bool>,
}

/// The words of all test files and of all tests, which are used to rank them.
struct TestWords {
    files: DocumentBags,
    tests: DocumentBags,
    /// The test files, each with the words of its path.
    paths: Vec<(FileId, Vec<Term>)>,
}

impl TestWords {
    fn of(code: &Code) -> Self {
        let is_test = |number| is_test_function(&code.symbol(number));
        TestWords {
            files: DocumentBags::files(code, |file| code.is_test(file)),
            tests: DocumentBags::symbols(code, |file, number| {
                code.is_test(file) && is_test(number)
            }),
            paths: code
                .files()
                .filter(|file| code.is_test(*file))
                .map(|file| {
                    let words = all_words(code.path(file).as_str());
                    (file, words.map(Term::of).collect())
                })
                .collect(),
        }
    }
}

/// A test file with its score for one symbol.
struct ScoredFile {
    file: FileId,
    score: f64,
    /// Whether the file mentions the name of the symbol or of its parent.
    says: bool,
    /// Whether the file is named after the symbol or imports its module.
    tied: bool,
}

/// Returns the scored tests of one symbol. A module body represents its file.
fn scored(
    code: &Code,
    snapshot: &Snapshot,
    bags: &TestWords,
    target: &TestTarget,
    module: &mut ModuleData,
) -> Vec<(SymbolNumber, f64)> {
    let by_test = rank(code, &bags.tests, &target.terms);
    let mut found = Vec::new();
    for near in near_files(code, snapshot, bags, target, module) {
        let is_test = |number: &SymbolNumber| is_test_function(&code.symbol(*number));
        let before = found.len();
        for test in code.symbols_of(near.file).filter(is_test) {
            let own = by_test[test.0 as usize];
            let others = module.beside.of_test(test);
            if near.says && own > 0.0 || others > 0.0 {
                let named = NAMED_AFTER * target.named_after(code.symbol(test).name);
                found.push((test, own + near.score + named + TEST_BESIDE * others));
            }
        }
        let mut symbols = code.symbols_of(near.file);
        if found.len() == before
            && near.tied
            && let Some(body) = symbols.next()
            && symbols.any(|number| is_test(&number))
        {
            found.push((body, near.score));
        }
    }
    found
}

/// Returns all test files with scores. Only the best ones are checked for imports.
fn near_files(
    code: &Code,
    snapshot: &Snapshot,
    bags: &TestWords,
    target: &TestTarget,
    module: &mut ModuleData,
) -> Vec<ScoredFile> {
    let words = rank(code, &bags.files, &target.terms);
    let said_in = target.said_in(code);
    let mut near: Vec<ScoredFile> = bags
        .paths
        .iter()
        .map(|(file, path)| {
            let file = *file;
            let named = target.names_file(code, file);
            let score = FILE_WORDS * words[file.0 as usize]
                + FILE_NAMED_AFTER * named
                + SAME_DIRECTORY * target.same_directory(code, file)
                + WORD_OF_PATH * target.words_of_path(path)
                + FILE_BESIDE * module.beside.of_file(file);
            ScoredFile {
                file,
                score,
                says: said_in.contains(&file),
                tied: named > 0.0,
            }
        })
        .collect();
    near.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
    let may_import = target.may_import(code);
    for near in near.iter_mut().take(LOOK_INSIDE) {
        let looked = module.imported.entry(near.file);
        let imports = *looked.or_insert_with(|| {
            may_import.contains(&near.file) && target.is_imported_in(code, snapshot, near.file)
        });
        if imports {
            near.score += IMPORTS;
            near.tied = true;
        }
    }
    near
}

/// Sorts by score, best first. Each further test of the same file is penalized.
fn spread(code: &Code, scores: HashMap<SymbolNumber, f64>) -> Vec<SymbolNumber> {
    let mut found: Vec<(SymbolNumber, f64)> = scores.into_iter().collect();
    let sort = |found: &mut Vec<(SymbolNumber, f64)>| {
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    };
    sort(&mut found);
    let mut named: HashMap<Option<FileId>, f64> = HashMap::new();
    for (test, score) in &mut found {
        let before = named.entry(code.file_of(*test)).or_insert(0.0);
        *score -= *before;
        *before += REPEATED;
    }
    sort(&mut found);
    found.into_iter().map(|(test, _)| test).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{code_of, snapshot_of};
    use super::*;

    fn near(symbol: &str) -> Vec<String> {
        let texts = [
            (
                "shop/cart.py",
                "class Cart:\n    def total(self):\n        pass\ndef empty():\n    pass\n",
            ),
            (
                "tests/test_cart.py",
                "from shop.cart import Cart\nclass T:\n    def test_total(self):\n        Cart().total()\n    def test_other(self):\n        pass\n",
            ),
            (
                "tests/test_report.py",
                "def test_sum():\n    assert report.total == 3\n",
            ),
            ("tests/test_tax.py", "def test_rate():\n    pass\n"),
        ];
        among(&texts, symbol, 3)
    }

    #[test]
    fn tests_that_mention_the_symbol_come_first() {
        let expected = [
            "tests/test_cart.py::T.test_total",
            "tests/test_report.py::test_sum",
        ];
        assert_eq!(near("shop/cart.py::Cart.total"), expected);
        assert_eq!(near("shop/cart.py::Cart.__init__"), expected[..1]);
    }

    #[test]
    fn test_file_named_after_the_module_is_returned_if_no_test_matches() {
        assert_eq!(near("shop/cart.py::empty"), ["tests/test_cart.py::"]);
        assert_eq!(near("shop/cart.py::"), ["tests/test_cart.py::"]);
        assert_eq!(near("shop/other.py::nothing"), [""; 0]);
    }

    /// Returns the nearest tests among these files.
    fn among(texts: &[(&str, &str)], symbol: &str, limit: usize) -> Vec<String> {
        let (code, snapshot) = (code_of(texts.iter().copied()), snapshot_of(texts));
        let tests = nearest_tests(&code, &snapshot, &[symbol.parse().unwrap()], limit);
        tests.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn test_named_after_the_symbol_comes_before_other_tests() {
        let texts = [
            (
                "tests/test_a.py",
                "from m import parse\ndef test_other():\n    parse()\n\ndef test_parse():\n    parse()\n",
            ),
            ("tests/test_b.py", "def test_b():\n    parse()\n"),
        ];
        let found = among(&texts, "m.py::parse", 9);
        assert_eq!(found[0], "tests/test_a.py::test_parse");
        assert_eq!(found.len(), 3);
        assert_eq!(found.last().unwrap(), "tests/test_b.py::test_b");
        assert_eq!(among(&texts, "m.py::parse", 0), [""; 0]);
        assert_eq!(among(&texts, "m.py::parse#2", 1), found[..1]);
    }

    #[test]
    fn tests_of_the_same_package_are_ranked_first() {
        let text = "def test_it():\n    assert load(1)\n";
        let texts = [("a/tests/test_x.py", text), ("b/tests/test_x.py", text)];
        assert_eq!(
            among(&texts, "b/m.py::load", 1),
            ["b/tests/test_x.py::test_it"]
        );
        assert_eq!(
            among(&texts, "a/m.py::load", 1),
            ["a/tests/test_x.py::test_it"]
        );
    }

    #[test]
    fn helpers_and_setup_methods_are_not_returned_as_tests() {
        let texts = [
            ("m.py", "def load(): pass\ndef test_load(): load()\n"),
            ("tests/conftest.py", "def load_all():\n    load()\n"),
            (
                "tests/test_m.py",
                "class TestLoad:\n    def setup(self): load()\n    def test_load(self): load()\n",
            ),
        ];
        assert_eq!(
            among(&texts, "m.py::load", 9),
            ["tests/test_m.py::TestLoad.test_load"]
        );
    }

    #[test]
    fn nearest_tests_are_spread_over_several_files() {
        let many: String = (0..9)
            .map(|at| format!("def test_{at}():\n    assert parse(load({at}))\n"))
            .collect();
        let texts = [
            ("tests/test_x.py", many.as_str()),
            (
                "tests/test_y.py",
                "def test_n():\n    assert parse(load(1))\n",
            ),
        ];
        // Without a penalty for further tests of the same file, `test_n` would be ranked last.
        let found = among(&texts, "m.py::parse", 9);
        let other = "tests/test_y.py::test_n".to_owned();
        assert!(found.contains(&other), "{found:?}");
    }

    #[test]
    fn nearest_tests_of_several_symbols_include_tests_of_each() {
        let texts = [
            ("tests/test_a.py", "def test_a():\n    one()\n"),
            ("tests/test_b.py", "def test_b():\n    two()\n"),
        ];
        let (code, snapshot) = (code_of(texts.iter().copied()), snapshot_of(&texts));
        let symbols = ["m.py::one", "n.py::two"].map(|path| path.parse().unwrap());
        let found = nearest_tests(&code, &snapshot, &symbols, 9);
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
