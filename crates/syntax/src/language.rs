use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::OnceLock;

use memchr::{memchr3, memmem::Finder};
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Point, Tree};

use super::FilePath;

/// A language with a grammar, or plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Python,
    /// A file without a grammar, which is treated as one symbol.
    Plain,
}

impl Language {
    /// Returns the language of a file, based on the file extension.
    pub fn of(file: &FilePath) -> Self {
        match file.name().rsplit_once('.') {
            Some((_, "py" | "pyi" | "pyw")) => Language::Python,
            Some(_) | None => Language::Plain,
        }
    }

    pub(super) fn grammar(self) -> Option<&'static Grammar> {
        static PYTHON: OnceLock<Grammar> = OnceLock::new();
        match self {
            Language::Python => {
                Some(PYTHON.get_or_init(|| {
                    Grammar::new(tree_sitter_python::LANGUAGE.into(), PYTHON_PARTS)
                }))
            }
            Language::Plain => None,
        }
    }
}

/// A kind of syntax node that is relevant for finding symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// A class definition; has a field `name`.
    Class,
    /// A function definition; has a field `name`.
    Function,
    /// A definition with its decorators; has a field `definition`.
    Decorated,
    Comment,
    String,
    Raise,
    Yield,
    /// A node whose children do not matter.
    Leaf,
    /// An expression. Only comments, strings and `yield` inside of it matter.
    Expression,
}

const PYTHON_PARTS: &[(&str, NodeKind)] = &[
    ("class_definition", NodeKind::Class),
    ("function_definition", NodeKind::Function),
    ("decorated_definition", NodeKind::Decorated),
    ("comment", NodeKind::Comment),
    ("string", NodeKind::String),
    ("raise_statement", NodeKind::Raise),
    ("yield", NodeKind::Yield),
    ("identifier", NodeKind::Leaf),
    ("integer", NodeKind::Leaf),
    ("float", NodeKind::Leaf),
    ("true", NodeKind::Leaf),
    ("false", NodeKind::Leaf),
    ("none", NodeKind::Leaf),
    ("expression_statement", NodeKind::Expression),
    ("assignment", NodeKind::Expression),
    ("augmented_assignment", NodeKind::Expression),
    ("return_statement", NodeKind::Expression),
    ("assert_statement", NodeKind::Expression),
    ("import_statement", NodeKind::Expression),
    ("import_from_statement", NodeKind::Expression),
    ("parameters", NodeKind::Expression),
    ("call", NodeKind::Expression),
    ("argument_list", NodeKind::Expression),
    ("keyword_argument", NodeKind::Expression),
    ("attribute", NodeKind::Expression),
    ("subscript", NodeKind::Expression),
    ("binary_operator", NodeKind::Expression),
    ("unary_operator", NodeKind::Expression),
    ("comparison_operator", NodeKind::Expression),
    ("boolean_operator", NodeKind::Expression),
    ("not_operator", NodeKind::Expression),
    ("conditional_expression", NodeKind::Expression),
    ("parenthesized_expression", NodeKind::Expression),
    ("list", NodeKind::Expression),
    ("tuple", NodeKind::Expression),
    ("expression_list", NodeKind::Expression),
    ("pattern_list", NodeKind::Expression),
    ("dictionary", NodeKind::Expression),
    ("pair", NodeKind::Expression),
    ("list_comprehension", NodeKind::Expression),
    ("generator_expression", NodeKind::Expression),
];

/// The first characters of comments and strings, without the prefix of a string such as `r`. Every
/// comment and every string contains at least one of these bytes.
const PYTHON_SIGNS: [u8; 3] = *b"\"'#";
/// The keyword that every yielding expression contains.
const PYTHON_YIELD: &[u8] = b"yield";

/// A grammar, and the relevant kinds of its nodes.
pub(super) struct Grammar {
    language: tree_sitter::Language,
    /// The relevant kind for each of the grammar's node kinds, indexed by kind id. `None` for a
    /// node whose children are visited.
    parts: Vec<Option<NodeKind>>,
    signs: [u8; 3],
    yields: Finder<'static>,
}

/// The number of bytes that are passed to the parser at a time. Each time, they are counted as
/// work.
const CHUNK_BYTES: usize = 1 << 8;
/// The work that is counted each time the parser calls its progress callback. It calls it every 100
/// steps, and a step takes as long as reading about 32 bytes.
const STEPS_WORK: usize = 100 * 32;

/// Returns the maximum work for parsing a text, in bytes read. Ordinary code takes less than 100
/// for each byte, and text without any syntax takes 200. For each line continuation, and for each
/// comment line of a block, the grammar's scanner reads all earlier ones again, so a text with tens
/// of thousands of them would take hours.
const fn most_work(bytes: usize) -> usize {
    (1 << 26) + bytes.saturating_mul(256)
}

thread_local! {
    /// The parser is reused, because it keeps its memory between texts.
    static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
}

impl Grammar {
    fn new(language: tree_sitter::Language, named: &[(&str, NodeKind)]) -> Self {
        let leaf = |number| (!language.node_kind_is_named(number)).then_some(NodeKind::Leaf);
        let mut parts: Vec<_> = (0..language.node_kind_count() as u16).map(leaf).collect();
        for (kind, part) in named {
            let number = language.id_for_node_kind(kind, true);
            parts[usize::from(number)] = Some(*part);
        }
        Grammar {
            language,
            parts,
            signs: PYTHON_SIGNS,
            yields: Finder::new(PYTHON_YIELD),
        }
    }

    /// Returns the first offset at or after `from` where a comment, a string or `yield` can start.
    pub(super) fn next_sign(&self, text: &str, from: usize) -> usize {
        let rest = &text.as_bytes()[from..];
        let [a, b, c] = self.signs;
        let sign = memchr3(a, b, c, rest).unwrap_or(rest.len());
        from + self.yields.find(&rest[..sign]).unwrap_or(sign)
    }

    pub(super) fn part(&self, node: Node<'_>) -> Option<NodeKind> {
        self.parts
            .get(usize::from(node.kind_id()))
            .copied()
            .flatten()
    }

    /// Returns the syntax tree, or `None` if parsing takes more work than [`most_work`] allows.
    pub(super) fn parse(&self, text: &str) -> Option<Tree> {
        self.parse_within(text, most_work(text.len())).0
    }

    /// Returns the syntax tree and the work that parsing took. The tree is `None` if that is more
    /// work than `most`.
    fn parse_within(&self, text: &str, most: usize) -> (Option<Tree>, usize) {
        let work = Cell::new(0_usize);
        let add = |more: usize| {
            work.set(work.get().saturating_add(more));
            work.get() <= most
        };
        let bytes = text.as_bytes();
        // If the limit is exceeded, the text seems to end here: the scanner stops at once, and the
        // parser stops at its next progress callback.
        let mut read = |at: usize, _: Point| {
            let rest = bytes.get(at..).unwrap_or_default();
            let chunk = &rest[..rest.len().min(CHUNK_BYTES)];
            match add(chunk.len()) {
                true => chunk,
                false => &[],
            }
        };
        let mut step = |_: &ParseState| match add(STEPS_WORK) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let options = ParseOptions::new().progress_callback(&mut step);
        let tree = PARSER.with_borrow_mut(|parser| {
            parser
                .set_language(&self.language)
                .expect("the grammar is built for this version of tree-sitter");
            let tree = parser.parse_with_options(&mut read, None, Some(options));
            parser.reset();
            tree
        });
        (tree.filter(|_| work.get() <= most), work.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parser_stops_on_text_that_needs_quadratic_work() {
        let grammar = Language::Python.grammar().unwrap();
        let long = 300_000;
        let comments = "    # c\n".repeat(long / 8);
        for text in [
            format!("x = 1{}\n", " \\\n".repeat(long / 3)),
            "\\\r\n".repeat(long / 3),
            format!("def f():\n{comments}    pass\n"),
        ] {
            let most = most_work(text.len());
            let (tree, work) = grammar.parse_within(&text, most);
            assert!(tree.is_none(), "{:?}", &text[..20]);
            // After the limit is exceeded, the parser stops at the next progress callback.
            assert!(work <= most + 2 * STEPS_WORK, "{work}");
            // The parser that was stopped can be used again.
            let next = grammar.parse("x = 1\n").unwrap();
            assert!(!next.root_node().has_error());
        }
    }

    #[test]
    fn tree_does_not_depend_on_the_pieces_in_which_the_text_is_passed() {
        let grammar = Language::Python.grammar().unwrap();
        let text = "def ä():\n    return 'é' + \"😀\"  # é\n".repeat(100);
        let whole = PARSER.with_borrow_mut(|parser| {
            parser.set_language(&grammar.language).unwrap();
            parser.parse(&text, None).unwrap()
        });
        let tree = grammar.parse(&text).unwrap();
        assert_eq!(tree.root_node().to_sexp(), whole.root_node().to_sexp());
        assert_eq!(tree.root_node().end_byte(), text.len());
    }

    #[test]
    fn every_listed_node_kind_exists_in_the_grammar() {
        let language: tree_sitter::Language = tree_sitter_python::LANGUAGE.into();
        for (kind, _) in PYTHON_PARTS {
            assert_ne!(language.id_for_node_kind(kind, true), 0, "{kind}");
        }
    }
}
