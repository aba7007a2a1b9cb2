//! The facts that the index stores about one file: its symbols, words and names, read from its
//! text.

use super::generated::is_generated;
use super::names::Names;
use super::words::{Term, each_word, is_counted, parts};
use starling_platform::processes::give_way;
use starling_syntax::{FilePath, Symbol, SymbolId, SymbolKind, SymbolTree, signature};
use starling_text::ByteRange;

/// The part of a symbol in which a word occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Field {
    /// The symbol's own name, or the file path for a module body.
    Name,
    Signature,
    Code,
    Doc,
    Comment,
    String,
}

impl Field {
    pub(super) const ALL: [Field; 6] = [
        Field::Name,
        Field::Signature,
        Field::Code,
        Field::Doc,
        Field::Comment,
        Field::String,
    ];
}

/// Number of occurrences of a word in each field of a symbol; 255 means 255 or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FieldCounts(pub(super) [u8; Field::ALL.len()]);

impl FieldCounts {
    pub(super) fn of(&self, field: Field) -> u8 {
        self.0[field as usize]
    }

    fn add(&mut self, field: Field) {
        let count = &mut self.0[field as usize];
        *count = count.saturating_add(1);
    }

    /// Returns the sum over all fields.
    pub(super) fn total(&self) -> u32 {
        self.0.iter().map(|count| u32::from(*count)).sum()
    }
}

/// One symbol of a file. Its words come from the text that the symbol owns, without the text of its
/// children.
#[derive(Debug)]
pub(super) struct SymbolFacts {
    /// Name as in [`starling_syntax::SymbolPath`].
    pub(super) name: String,
    pub(super) kind: SymbolKind,
    /// Index of the parent symbol in [`FileFacts::symbols`].
    pub(super) parent: Option<u32>,
    /// First and last line, counted from 1.
    pub(super) lines: (u32, u32),
    /// Line of the symbol's name, counted from 1.
    pub(super) line: u32,
    /// Decorators and `def …:`; empty for a module body.
    pub(super) signature: String,
    /// First paragraph of the docstring.
    pub(super) doc: String,
    /// Terms with their counts, in order of the terms.
    pub(super) terms: Vec<(Term, FieldCounts)>,
    /// Number of words in each field.
    pub(super) lengths: [u32; Field::ALL.len()],
}

/// The facts about one file in a language with a grammar.
#[derive(Debug)]
pub(super) struct FileFacts {
    pub(super) file: FilePath,
    pub(super) text: String,
    /// Number of bytes that were read. It is 0 for files that are generated or take too long to parse.
    pub(super) bytes_read: usize,
    /// Symbols in order of their start, the module body first.
    pub(super) symbols: Vec<SymbolFacts>,
    pub(super) names: Names,
}

impl FileFacts {
    pub(super) fn read(file: FilePath, text: String) -> Self {
        if is_generated(&text) {
            return FileFacts::by_path(file, text);
        }
        // The tree is dropped: keeping the trees of all files would take much memory, and only a
        // few are needed later.
        let tree = SymbolTree::parse(file.clone(), text.as_str().into());
        if tree.is_unparsed() {
            return FileFacts::by_path(file, text);
        }
        give_way();
        let marks = marks(&tree);
        let mut reader = WordCollector::default();
        let symbols = (0..tree.symbols().len())
            .map(|place| reader.symbol(&tree, tree.get(SymbolId(place)), &marks))
            .collect();
        give_way();
        FileFacts {
            file,
            names: Names::read(&tree),
            symbols,
            bytes_read: text.len(),
            text,
        }
    }

    /// Returns the facts of a file that is generated or takes too long to parse: only the words of
    /// its path.
    fn by_path(file: FilePath, text: String) -> Self {
        let mut reader = WordCollector::default();
        reader.words(module_words(&file), Field::Name);
        let (terms, lengths) = reader.counted();
        let module = SymbolFacts {
            name: String::new(),
            kind: SymbolKind::Module,
            parent: None,
            lines: (1, text.lines().count().max(1) as u32),
            line: 1,
            signature: String::new(),
            doc: String::new(),
            terms,
            lengths,
        };
        FileFacts {
            file,
            symbols: vec![module],
            names: Names::default(),
            bytes_read: 0,
            text,
        }
    }
}

/// Returns the path of a file without `.py`. Its words count as the name of the module body.
fn module_words(file: &FilePath) -> &str {
    file.as_str().trim_end_matches(".py")
}

/// Returns the ranges of the comments and strings of a file, in order.
fn marks(tree: &SymbolTree) -> Vec<(ByteRange, Field)> {
    let comments = tree.comments().iter().map(|range| (*range, Field::Comment));
    let strings = tree.strings().iter().map(|range| (*range, Field::String));
    let mut marks: Vec<_> = comments.chain(strings).collect();
    marks.sort_unstable_by_key(|(range, _)| range.start);
    marks
}

/// Collects the words of symbols, one symbol after the other, in a buffer that is reused.
#[derive(Default)]
struct WordCollector {
    /// The words of one symbol. Each number combines the hash of a word with the field of the word,
    /// which is stored in the lowest bits.
    words: Vec<u64>,
}

impl WordCollector {
    fn symbol(
        &mut self,
        tree: &SymbolTree,
        symbol: &Symbol,
        marks: &[(ByteRange, Field)],
    ) -> SymbolFacts {
        self.words.clear();
        let text = tree.text();
        for range in tree.own_ranges(symbol) {
            self.range(text, range, symbol, marks);
        }
        let is_module = symbol.kind == SymbolKind::Module;
        let name = if is_module {
            module_words(tree.file())
        } else {
            symbol.path.base_name()
        };
        self.words(name, Field::Name);
        let (terms, lengths) = self.counted();
        SymbolFacts {
            name: symbol.path.name.clone(),
            kind: symbol.kind,
            parent: symbol.parent.map(|id| id.0 as u32),
            lines: symbol.lines,
            line: tree.line_of(symbol),
            signature: signature(tree, symbol),
            doc: symbol.doc.clone().unwrap_or_default(),
            terms,
            lengths,
        }
    }

    /// Reads a part of a symbol's own text: the comments and strings in it, and the code between
    /// them.
    fn range(
        &mut self,
        text: &str,
        range: ByteRange,
        symbol: &Symbol,
        marks: &[(ByteRange, Field)],
    ) {
        let mut done = range.start;
        let first = marks.partition_point(|(mark, _)| mark.end <= range.start);
        for (mark, field) in marks[first..]
            .iter()
            .take_while(|(mark, _)| mark.start < range.end)
        {
            self.code(text, ByteRange::new(done, mark.start.max(done)), symbol);
            let field = match symbol.docstring {
                Some(doc) if doc == *mark => Field::Doc,
                Some(_) | None => *field,
            };
            let start = mark.start.max(done);
            done = mark.end.min(range.end);
            self.words(&text[start..done.max(start)], field);
        }
        self.code(text, ByteRange::new(done, range.end.max(done)), symbol);
    }

    fn code(&mut self, text: &str, range: ByteRange, symbol: &Symbol) {
        let body = symbol.body.start.clamp(range.start, range.end);
        for (start, end, field) in [
            (range.start, body, Field::Signature),
            (body, range.end, Field::Code),
        ] {
            self.words(&text[start..end], field);
        }
    }

    /// Adds every word of a text, and the parts of compound words.
    fn words(&mut self, text: &str, field: Field) {
        let words = &mut self.words;
        each_word(text, |word| {
            if !is_counted(word) {
                return;
            }
            words.push(Term::of(word).with(field));
            for part in parts(word).filter(|part| (2..word.len()).contains(&part.len())) {
                words.push(Term::of(part).with(field));
            }
        });
    }

    fn counted(&mut self) -> (Vec<(Term, FieldCounts)>, [u32; Field::ALL.len()]) {
        self.words.sort_unstable();
        let mut terms: Vec<(Term, FieldCounts)> = Vec::new();
        let mut lengths = [0; Field::ALL.len()];
        for word in &self.words {
            let (term, field) = Term::split(*word);
            lengths[field as usize] += 1;
            match terms.last_mut() {
                Some((last, counts)) if *last == term => counts.add(field),
                Some(_) | None => {
                    let mut counts = FieldCounts::default();
                    counts.add(field);
                    terms.push((term, counts));
                }
            }
        }
        (terms, lengths)
    }
}

/// Returns whether a file contains tests, judging by its path.
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

/// Returns the dotted name of a file's module, relative to the root or to `src`.
pub(super) fn module_of(file: &FilePath) -> String {
    let path = file.as_str().trim_end_matches(".py");
    let path = path.strip_suffix("/__init__").unwrap_or(path);
    path.strip_prefix("src/").unwrap_or(path).replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CART: &str = "\"\"\"Top doc.\"\"\"\nclass Cart(Base):\n    limit = 3\n    # about items\n    \
                        def add_item(self, thing):\n        '''Adds one.'''\n        # a note\n        \
                        raise Full('no room')\n";

    fn counts(facts: &FileFacts, symbol: &str, word: &str) -> FieldCounts {
        let symbol = facts.symbols.iter().find(|s| s.name == symbol).unwrap();
        let found = symbol
            .terms
            .iter()
            .find(|(term, _)| *term == Term::of(word));
        found.map_or(FieldCounts::default(), |(_, counts)| *counts)
    }

    #[test]
    fn words_are_counted_by_field_in_the_symbol_that_owns_them() {
        let facts = FileFacts::read(FilePath::new("shop/cart.py"), CART.into());
        let at = |symbol: &str, word: &str, field: Field| counts(&facts, symbol, word).of(field);
        let item = counts(&facts, "Cart.add_item", "item");
        assert_eq!(item.0, [1, 1, 0, 0, 1, 0], "name, signature, comment above");
        assert_eq!(at("Cart.add_item", "room", Field::String), 1);
        assert_eq!(at("Cart.add_item", "full", Field::Code), 1);
        assert_eq!(at("Cart.add_item", "adds", Field::Doc), 1);
        assert_eq!(at("Cart.add_item", "note", Field::Comment), 1);
        assert_eq!(at("Cart.add_item", "thing", Field::Signature), 1);
        assert_eq!(at("Cart", "base", Field::Signature), 1);
        assert_eq!(at("Cart", "limit", Field::Code), 1);
        assert_eq!(counts(&facts, "Cart", "room").total(), 0);
        assert_eq!(at("", "doc", Field::Doc), 1);
        assert_eq!(at("", "shop", Field::Name), 1);
        let cart = &facts.symbols[2];
        let counted: u32 = cart.terms.iter().map(|(_, counts)| counts.total()).sum();
        assert_eq!(cart.lengths.iter().sum::<u32>(), counted);
        assert_eq!(cart.parent, Some(1));
        assert_eq!(cart.signature, "def add_item(self, thing):");
        assert_eq!(cart.doc, "Adds one.");
    }

    #[test]
    fn generated_file_is_indexed_by_its_path_only() {
        let text = format!("# Generated by tool. DO NOT EDIT.\n{CART}");
        let facts = FileFacts::read(FilePath::new("shop/cart.py"), text);
        assert_eq!(facts.symbols.len(), 1);
        assert_eq!(counts(&facts, "", "cart").of(Field::Name), 1);
        assert_eq!(counts(&facts, "", "room").total(), 0);
        assert_eq!(facts.bytes_read, 0);
        assert_eq!(facts.names.occurrences().len(), 0);
    }

    #[test]
    fn facts_of_invalid_code_contain_a_module_symbol() {
        for text in [
            "",
            "\n",
            "é = 'ü' # ß\n",
            "def f(:\n  '''",
            "class",
            "f'{x!r:{y}}'\n",
        ] {
            let facts = FileFacts::read(FilePath::new("a.py"), text.into());
            assert!(!facts.symbols.is_empty());
        }
    }

    #[test]
    fn module_name_is_relative_to_src_and_omits_init() {
        assert_eq!(module_of(&FilePath::new("src/a/b.py")), "a.b");
        assert_eq!(module_of(&FilePath::new("a/b/__init__.py")), "a.b");
    }

    #[test]
    fn test_files_are_recognized_by_their_paths() {
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
