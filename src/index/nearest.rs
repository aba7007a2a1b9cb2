//! The tests that are likeliest to show whether a symbol works.

use std::collections::{HashMap, HashSet};

use super::bm25::{QueryTerm, Units, rank};
use super::code::{Code, FileId, SymbolNumber, is_test_function};
use super::facts::module_of;
use super::words::{Term, all_words};
use crate::syntax::SymbolPath;
use crate::workspace::{Held, Snapshot};

// What the words of a symbol's path are worth.
const NAME: f64 = 3.0;
const OWNER: f64 = 2.0;
const FILE: f64 = 1.0;
// What ties a test to a symbol; the best test by its words alone has 1.
const FILE_WORDS: f64 = 0.7;
const FILE_NAMED_AFTER: f64 = 1.0;
const IMPORTS: f64 = 0.2;
const SAME_DIRECTORY: f64 = 0.4;
const WORD_OF_PATH: f64 = 0.15;
const NAMED_AFTER: f64 = 0.4;

/// Test functions, nearest first; the module bodies of test files where no function says anything.
pub(super) fn nearest_tests(
    code: &Code,
    snapshot: &Snapshot,
    symbols: &[SymbolPath],
    limit: usize,
) -> Vec<SymbolPath> {
    let mut best: HashMap<SymbolPath, f64> = HashMap::new();
    for symbol in symbols {
        for (score, test) in scored(code, snapshot, symbol) {
            let known = best.entry(test).or_insert(score);
            *known = known.max(score);
        }
    }
    let mut found: Vec<(SymbolPath, f64)> = best.into_iter().collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found.truncate(limit);
    found.into_iter().map(|(path, _)| path).collect()
}

/// The tests of one symbol.
fn scored(code: &Code, snapshot: &Snapshot, symbol: &SymbolPath) -> Vec<(f64, SymbolPath)> {
    let target = Target::of(symbol);
    let is_test = |number: &SymbolNumber| is_test_function(&code.symbol(*number));
    let by_file = Units::files(code, |file| code.is_test(file));
    let by_file = rank(code, &by_file, &target.terms);
    let by_test = Units::symbols(code, |file, number| code.is_test(file) && is_test(&number));
    let by_test = rank(code, &by_test, &target.terms);

    let last = target.module.rsplit('.').next().unwrap_or_default();
    let may_import: HashSet<FileId> = code.mentioning(last).into_iter().collect();
    let said_in = target.said_in(code);
    let mut found: Vec<(f64, SymbolPath)> = Vec::new();
    for file in code.files().filter(|file| code.is_test(*file)) {
        let imports = may_import.contains(&file) && target.is_imported_in(code, snapshot, file);
        let near = FILE_WORDS * by_file[file.0 as usize] + target.ties(code, file, imports);
        let before = found.len();
        let mut any = false;
        for test in code.symbols_of(file).filter(is_test) {
            any = true;
            let own = by_test[test.0 as usize];
            if own > 0.0 && said_in.contains(&file) {
                let score = own + near + target.named_after(code.symbol(test).name);
                found.extend(code.path_of(test).map(|path| (score, path)));
            }
        }
        let tied = imports || target.names_file(code, file) > 0.0;
        if found.len() == before && tied && any {
            found.push((near, SymbolPath::module(code.path(file).clone())));
        }
    }
    found
}

/// What a test of a symbol would say.
struct Target {
    /// Empty for a module body.
    name: String,
    owner: String,
    /// Dotted.
    module: String,
    terms: Vec<QueryTerm>,
}

impl Target {
    fn of(symbol: &SymbolPath) -> Self {
        // A test calls a class, not its constructor.
        let shown = symbol
            .name
            .strip_suffix(".__init__")
            .unwrap_or(&symbol.name);
        let mut parts = shown
            .rsplit('.')
            .map(|part| part.split('#').next().unwrap_or(part));
        let mut target = Target {
            name: parts.next().unwrap_or_default().to_owned(),
            owner: parts.next().unwrap_or_default().to_owned(),
            module: module_of(&symbol.file),
            terms: Vec::new(),
        };
        for (text, weight) in [
            (target.name.clone(), NAME),
            (target.owner.clone(), OWNER),
            (target.module.clone(), FILE),
        ] {
            target.add_terms(&text, weight);
        }
        target
    }

    /// A whole word counts once, its parts share the same again.
    fn add_terms(&mut self, text: &str, weight: f64) {
        let words: Vec<&str> = all_words(text).collect();
        let share = weight / (words.len().max(2) - 1) as f64;
        for word in words {
            let whole = word.len() == text.len();
            let term = Term::of(word);
            if !self.terms.iter().any(|known| known.term == term) {
                self.terms.push(QueryTerm {
                    term,
                    word: word.to_lowercase(),
                    weight: if whole { weight } else { share },
                });
            }
        }
    }

    /// How far a test file is called after the module or a part of the symbol, from 0 to 1.
    fn names_file(&self, code: &Code, file: FileId) -> f64 {
        let name = code
            .path(file)
            .name()
            .trim_end_matches(".py")
            .to_lowercase();
        let bare = name.trim_start_matches("test_").trim_end_matches("_test");
        let stem = self.module.rsplit('.').next().unwrap_or_default();
        let likeness = |part: &str| {
            let part = part.trim_matches('_').to_lowercase();
            if part.is_empty() || bare.is_empty() {
                0.0
            } else if part == bare {
                1.0
            } else if bare.len().min(part.len()) > 2
                && (part.starts_with(bare) || bare.starts_with(&part))
            {
                0.5
            } else {
                0.0
            }
        };
        let parts = [stem, &self.owner, &self.name];
        parts.into_iter().map(likeness).fold(0.0, f64::max)
    }

    /// What ties a file to the symbol, whatever its tests say.
    fn ties(&self, code: &Code, file: FileId, imports: bool) -> f64 {
        let mut ties = FILE_NAMED_AFTER * self.names_file(code, file);
        if imports {
            ties += IMPORTS;
        }
        let packages: Vec<&str> = self.module.split('.').collect();
        let around = code.module(file);
        let same = packages
            .iter()
            .zip(around.split('.'))
            .take_while(|(a, b)| *a == b);
        ties += SAME_DIRECTORY * same.count() as f64 / packages.len() as f64;
        let path: Vec<Term> = all_words(code.path(file).as_str()).map(Term::of).collect();
        let told = self
            .terms
            .iter()
            .filter(|term| term.word.len() > 2 && path.contains(&term.term));
        ties + WORD_OF_PATH * told.count() as f64
    }

    /// Whether a file imports the module, by its text.
    fn is_imported_in(&self, code: &Code, snapshot: &Snapshot, file: FileId) -> bool {
        match snapshot.held(code.path(file)) {
            Held::Text(text) => self.is_imported_by(&text),
            Held::OnDisk(_) => {
                let text = snapshot.glance(code.path(file));
                text.is_ok_and(|(text, _)| self.is_imported_by(&text))
            }
            Held::Nothing => false,
        }
    }

    fn is_imported_by(&self, text: &str) -> bool {
        ["from ", "import "].iter().any(|word| {
            let import = format!("{word}{}", self.module);
            text.match_indices(&import).any(|(at, _)| {
                let after = text[at + import.len()..].chars().next();
                !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
            })
        })
    }

    /// The files that say the name, or what holds it.
    fn said_in(&self, code: &Code) -> HashSet<FileId> {
        let words = [&self.name, &self.owner];
        let words = words.into_iter().filter(|word| !word.is_empty());
        let holders = words.flat_map(|word| code.postings(Term::of(word)));
        holders
            .filter_map(|(number, _)| code.file_of(number))
            .collect()
    }

    fn named_after(&self, test: &str) -> f64 {
        let test = test.to_lowercase();
        let names = [&self.name, &self.owner].map(|name| name.trim_matches('_').to_lowercase());
        let said = names
            .iter()
            .filter(|name| name.len() > 2 && test.contains(name.as_str()));
        NAMED_AFTER * said.count() as f64
    }
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
    fn tests_that_say_the_name_come_first() {
        let expected = [
            "tests/test_cart.py::T.test_total",
            "tests/test_report.py::test_sum",
        ];
        assert_eq!(near("shop/cart.py::Cart.total"), expected);
        assert_eq!(near("shop/cart.py::Cart.__init__"), expected[..1]);
    }

    #[test]
    fn the_file_named_after_the_module_stands_in() {
        assert_eq!(near("shop/cart.py::empty"), ["tests/test_cart.py::"]);
        assert_eq!(near("shop/cart.py::"), ["tests/test_cart.py::"]);
        assert_eq!(near("shop/other.py::nothing"), [""; 0]);
    }

    /// The nearest of the tests in these files.
    fn among(texts: &[(&str, &str)], symbol: &str, limit: usize) -> Vec<String> {
        let (code, snapshot) = (code_of(texts.iter().copied()), snapshot_of(texts));
        let tests = nearest_tests(&code, &snapshot, &[symbol.parse().unwrap()], limit);
        tests.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_test_called_after_the_symbol_comes_before_its_other_users() {
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
    fn tests_of_the_same_package_come_first() {
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
    fn only_tests_are_named() {
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
    fn an_import_is_told_from_a_longer_name() {
        let target = Target::of(&"a/b.py::f".parse().unwrap());
        assert!(target.is_imported_by("from a.b import f\n"));
        assert!(target.is_imported_by("import a.b"));
        assert!(target.is_imported_by("from a.b.c import g\n"));
        assert!(!target.is_imported_by("from a.bc import f\nimport a.b_c\n"));
        assert!(!target.is_imported_by("from a import b\n"));
    }
}
