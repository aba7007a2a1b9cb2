//! What the index knows of one file.

use std::collections::HashMap;
use std::sync::Arc;

use super::words::{Term, all_words, is_counted};
use crate::syntax::{FilePath, Language, Symbol, SymbolKind, SymbolPath, SymbolTree};

/// How often the words of a symbol's own name count.
const NAME_WEIGHT: u16 = 4;

/// Terms and how often they occur, in order of the terms.
#[derive(Debug, Default)]
pub(super) struct Bag {
    counts: Box<[(Term, u16)]>,
    /// Of all occurrences.
    pub(super) length: u32,
}

impl Bag {
    #[cfg(test)]
    pub(super) fn of_text(text: &str) -> Self {
        let mut counts = HashMap::new();
        count(&mut counts, text, 1);
        Bag::of(counts)
    }

    fn of(counts: HashMap<Term, u16>) -> Self {
        let mut counts: Box<[_]> = counts.into_iter().collect();
        counts.sort_unstable();
        let length = counts.iter().map(|(_, count)| u32::from(*count)).sum();
        Bag { counts, length }
    }

    pub(super) fn count(&self, term: Term) -> u16 {
        let place = self.counts.binary_search_by_key(&term, |(term, _)| *term);
        place.map_or(0, |place| self.counts[place].1)
    }

    pub(super) fn has(&self, term: Term) -> bool {
        self.count(term) > 0
    }
}

/// One symbol of a file.
#[derive(Debug)]
pub(super) struct SymbolFacts {
    pub(super) path: SymbolPath,
    pub(super) kind: SymbolKind,
    /// First and last line, from 1.
    pub(super) lines: (u32, u32),
    /// The words of what it owns, not of its children.
    pub(super) bag: Bag,
}

impl SymbolFacts {
    /// The name of the symbol that holds this one.
    pub(super) fn owner_name(&self) -> Option<&str> {
        let (owner, _) = self.path.name.rsplit_once('.')?;
        let last = owner.rsplit('.').next().unwrap_or(owner);
        last.split('#').next()
    }
}

/// One file. Files without a grammar have no symbols: they are only searched.
#[derive(Debug)]
pub(super) struct FileFacts {
    pub(super) file: FilePath,
    pub(super) text: Arc<str>,
    pub(super) is_test: bool,
    pub(super) symbols: Vec<SymbolFacts>,
    pub(super) bag: Bag,
}

impl FileFacts {
    pub(super) fn read(file: FilePath, text: Arc<str>) -> Self {
        let is_test = is_test(&file);
        let (symbols, bag) = match Language::of(&file) {
            Language::Plain => (Vec::new(), Bag::default()),
            Language::Python => {
                // The tree is let go: trees of all files would be large, and few are asked for.
                let tree = SymbolTree::parse(file.clone(), text.clone());
                read_symbols(&tree)
            }
        };
        FileFacts {
            file,
            text,
            is_test,
            symbols,
            bag,
        }
    }
}

impl FileFacts {
    /// The dotted name of its module from the root, or from `src`.
    pub(super) fn module(&self) -> String {
        module_of(&self.file)
    }

    /// Whether its code may hold an identifier; quick, and `false` is certain.
    pub(super) fn may_hold(&self, name: &str) -> bool {
        let counted = !is_counted(name) || self.bag.has(Term::of(name));
        !name.is_empty() && !self.symbols.is_empty() && counted && self.text.contains(name)
    }

    /// The innermost symbol at a line, from 1.
    pub(super) fn owner(&self, line: u32) -> SymbolPath {
        let holds = |symbol: &&SymbolFacts| symbol.lines.0 <= line && line <= symbol.lines.1;
        // In order of their start: the last that holds the line is the innermost.
        let owner = self.symbols.iter().rev().find(holds);
        owner.map_or_else(
            || SymbolPath::module(self.file.clone()),
            |symbol| symbol.path.clone(),
        )
    }
}

pub(super) fn module_of(file: &FilePath) -> String {
    let path = file.as_str().trim_end_matches(".py");
    let path = path.strip_suffix("/__init__").unwrap_or(path);
    path.strip_prefix("src/").unwrap_or(path).replace('/', ".")
}

/// Whether a file holds tests, by its path.
pub(super) fn is_test(file: &FilePath) -> bool {
    let name = file.name();
    let by_name = name.starts_with("test_")
        || name.ends_with("_test.py")
        || matches!(name, "tests.py" | "conftest.py");
    let mut directories = file.directory().split('/');
    by_name
        || directories.next() == Some("test")
        || file.directory().split('/').any(|d| d == "tests")
}

fn read_symbols(tree: &SymbolTree) -> (Vec<SymbolFacts>, Bag) {
    let mut whole: HashMap<Term, u16> = HashMap::new();
    count(&mut whole, tree.file().as_str(), 1);
    let symbols = tree.symbols().iter().map(|symbol| {
        let counts = own_terms(tree, symbol);
        for (term, n) in &counts {
            let total = whole.entry(*term).or_default();
            *total = total.saturating_add(*n);
        }
        SymbolFacts {
            path: symbol.path.clone(),
            kind: symbol.kind,
            lines: symbol.lines,
            bag: Bag::of(counts),
        }
    });
    let symbols = symbols.collect();
    (symbols, Bag::of(whole))
}

fn own_terms(tree: &SymbolTree, symbol: &Symbol) -> HashMap<Term, u16> {
    let mut counts = HashMap::new();
    for range in tree.own_ranges(symbol) {
        count(&mut counts, range.of(tree.text()), 1);
    }
    count(&mut counts, symbol.path.base_name(), NAME_WEIGHT);
    counts
}

fn count(counts: &mut HashMap<Term, u16>, text: &str, weight: u16) {
    for word in all_words(text) {
        let n = counts.entry(Term::of(word)).or_default();
        *n = n.saturating_add(weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_the_words_that_it_owns() {
        let text = "\"\"\"Top doc.\"\"\"\nclass Cart:\n    limit = 3\n    def add_item(self, thing):\n        raise Full('no room')\n";
        let facts = FileFacts::read(FilePath::new("shop/cart.py"), text.into());
        let has = |name: &str, word: &str| {
            let symbol = facts.symbols.iter().find(|s| s.path.name == name);
            symbol.unwrap().bag.count(Term::of(word))
        };
        assert_eq!(has("Cart.add_item", "item"), NAME_WEIGHT + 1);
        assert_eq!(has("Cart.add_item", "room"), 1);
        assert_eq!(has("Cart", "room"), 0);
        assert_eq!(has("Cart", "limit"), 1);
        assert_eq!(has("", "doc"), 1);
        assert_eq!(has("", "limit"), 0);
        assert!(facts.bag.has(Term::of("shop")) && facts.bag.has(Term::of("room")));
        assert!(
            FileFacts::read(FilePath::new("a.txt"), text.into())
                .symbols
                .is_empty()
        );
    }

    #[test]
    fn knows_its_module_and_the_owners_of_lines() {
        let text = "import x\nclass A:\n    def f(self):\n        pass\n\ny = 1\n";
        let facts = FileFacts::read(FilePath::new("src/a/b.py"), text.into());
        assert_eq!(facts.module(), "a.b");
        assert_eq!(module_of(&FilePath::new("a/b/__init__.py")), "a.b");
        let owners: Vec<_> = [1, 2, 3, 4, 6].map(|line| facts.owner(line).name).into();
        assert_eq!(owners, ["", "A", "A.f", "A.f", ""]);
        assert_eq!(facts.symbols[2].owner_name(), Some("A"));
        assert_eq!(facts.symbols[1].owner_name(), None);
    }

    #[test]
    fn knows_test_files() {
        for path in [
            "tests/a.py",
            "x/tests/y/a.py",
            "test/a.py",
            "test_a.py",
            "a/b_test.py",
            "app/tests.py",
            "conftest.py",
        ] {
            assert!(is_test(&FilePath::new(path)), "{path}");
        }
        for path in [
            "django/test/client.py",
            "testing/a.py",
            "contest.py",
            "latest.py",
        ] {
            assert!(!is_test(&FilePath::new(path)), "{path}");
        }
    }
}
