//! The tests that are likeliest to show whether a symbol works.

use std::sync::Arc;

use super::facts::{FileFacts, SymbolFacts};
use super::words::{Term, parts, words};
use crate::syntax::{SymbolKind, SymbolPath};

// What ties a test to a symbol.
const SAYS_NAME: f64 = 3.0;
const SAYS_OWNER: f64 = 2.0;
const NAMED_AFTER: f64 = 2.0;
const FILE_NAMED_AFTER: f64 = 3.0;
const IMPORTS: f64 = 1.5;
const SAME_WORD_IN_PATH: f64 = 0.5;

/// Test functions, and test files where no function fits, nearest first.
pub(super) fn nearest_tests(
    files: &[Arc<FileFacts>],
    symbol: &SymbolPath,
    limit: usize,
) -> Vec<SymbolPath> {
    let target = Target::of(symbol);
    let mut found: Vec<(f64, &SymbolPath)> = Vec::new();
    for facts in files.iter().filter(|facts| facts.is_test) {
        let near = target.file_score(facts);
        let before = found.len();
        for test in facts.symbols.iter().filter(|test| is_test(test)) {
            let said = target.test_score(test);
            if said > 0.0 {
                found.push((said + near, &test.path));
            }
        }
        let module = facts.symbols.first();
        if let Some(module) = module.filter(|_| found.len() == before && near >= FILE_NAMED_AFTER) {
            found.push((near, &module.path));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    found.truncate(limit);
    found.into_iter().map(|(_, path)| path.clone()).collect()
}

fn is_test(symbol: &SymbolFacts) -> bool {
    match symbol.kind {
        SymbolKind::Function | SymbolKind::Method => symbol.path.base_name().starts_with("test"),
        SymbolKind::Module | SymbolKind::Class => false,
    }
}

/// What a test of a symbol would say.
struct Target {
    /// Empty for a module body.
    name: String,
    owner: Option<String>,
    /// The last part of its module's name.
    stem: String,
    module: String,
    path_words: Vec<Term>,
}

impl Target {
    fn of(symbol: &SymbolPath) -> Self {
        let module = super::facts::module_of(&symbol.file);
        // A test calls a class, not its constructor.
        let shown = symbol
            .name
            .strip_suffix(".__init__")
            .unwrap_or(&symbol.name);
        let path = SymbolPath::new(symbol.file.clone(), shown);
        let owner = shown.rsplit_once('.').map(|(owner, _)| owner);
        let owner = owner.and_then(|owner| owner.rsplit('.').next());
        Target {
            name: path.base_name().to_owned(),
            owner: owner.map(str::to_owned),
            stem: module.rsplit('.').next().unwrap_or_default().to_owned(),
            path_words: path_words(symbol.file.as_str()),
            module,
        }
    }

    fn file_score(&self, facts: &FileFacts) -> f64 {
        let mut score = 0.0;
        let file_stem = facts.file.name().trim_end_matches(".py");
        let bare = file_stem
            .trim_start_matches("test_")
            .trim_end_matches("_test");
        if bare == self.stem.trim_start_matches('_') {
            score += FILE_NAMED_AFTER;
        }
        let import = format!("from {} import", self.module);
        if facts.text.contains(&import) || facts.text.contains(&format!("import {}", self.module)) {
            score += IMPORTS;
        }
        let shared = path_words(facts.file.as_str());
        let shared = shared.iter().filter(|word| self.path_words.contains(word));
        score + SAME_WORD_IN_PATH * shared.count() as f64
    }

    fn test_score(&self, test: &SymbolFacts) -> f64 {
        let says = |word: &str| !word.is_empty() && test.bag.has(Term::of(word));
        let mut score = 0.0;
        if says(&self.name) {
            score += SAYS_NAME;
        }
        if self.owner.as_deref().is_some_and(says) {
            score += SAYS_OWNER;
        }
        let bare = self.name.trim_matches('_');
        if bare.len() > 2 && test.path.name.to_lowercase().contains(&bare.to_lowercase()) {
            score += NAMED_AFTER;
        }
        score
    }
}

fn path_words(path: &str) -> Vec<Term> {
    let mut found: Vec<Term> = words(path.trim_end_matches(".py"))
        .flat_map(parts)
        .filter(|part| part.len() > 2 && !matches!(*part, "test" | "tests" | "init" | "src"))
        .map(Term::of)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::FilePath;

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
        let read = |(path, text): (&str, &str)| FileFacts::read(FilePath::new(path), text.into());
        let files: Vec<_> = texts.into_iter().map(read).map(Arc::new).collect();
        let tests = nearest_tests(&files, &symbol.parse().unwrap(), 3);
        tests.iter().map(ToString::to_string).collect()
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
}
