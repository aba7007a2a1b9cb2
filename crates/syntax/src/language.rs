use std::cell::RefCell;
use std::sync::OnceLock;

use memchr::{memchr3, memmem::Finder};
use tree_sitter::{Node, Parser, Tree};

use super::FilePath;

/// A language with a grammar, or plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Python,
    /// A file without a grammar: the whole file is one symbol.
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

/// The kinds of syntax nodes that matter when symbols are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
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

const PYTHON_PARTS: &[(&str, Part)] = &[
    ("class_definition", Part::Class),
    ("function_definition", Part::Function),
    ("decorated_definition", Part::Decorated),
    ("comment", Part::Comment),
    ("string", Part::String),
    ("raise_statement", Part::Raise),
    ("yield", Part::Yield),
    ("identifier", Part::Leaf),
    ("integer", Part::Leaf),
    ("float", Part::Leaf),
    ("true", Part::Leaf),
    ("false", Part::Leaf),
    ("none", Part::Leaf),
    ("expression_statement", Part::Expression),
    ("assignment", Part::Expression),
    ("augmented_assignment", Part::Expression),
    ("return_statement", Part::Expression),
    ("assert_statement", Part::Expression),
    ("import_statement", Part::Expression),
    ("import_from_statement", Part::Expression),
    ("parameters", Part::Expression),
    ("call", Part::Expression),
    ("argument_list", Part::Expression),
    ("keyword_argument", Part::Expression),
    ("attribute", Part::Expression),
    ("subscript", Part::Expression),
    ("binary_operator", Part::Expression),
    ("unary_operator", Part::Expression),
    ("comparison_operator", Part::Expression),
    ("boolean_operator", Part::Expression),
    ("not_operator", Part::Expression),
    ("conditional_expression", Part::Expression),
    ("parenthesized_expression", Part::Expression),
    ("list", Part::Expression),
    ("tuple", Part::Expression),
    ("expression_list", Part::Expression),
    ("pattern_list", Part::Expression),
    ("dictionary", Part::Expression),
    ("pair", Part::Expression),
    ("list_comprehension", Part::Expression),
    ("generator_expression", Part::Expression),
];

/// The bytes with which comments and strings start. Every comment and every string contains at
/// least one of them.
const PYTHON_SIGNS: [u8; 3] = *b"\"'#";
/// The keyword that every yielding expression contains.
const PYTHON_YIELD: &[u8] = b"yield";

/// A grammar, and the relevant kinds of its nodes.
pub(super) struct Grammar {
    language: tree_sitter::Language,
    /// The part for each node kind, indexed by kind id.
    parts: Vec<Option<Part>>,
    signs: [u8; 3],
    yields: Finder<'static>,
}

thread_local! {
    /// The parser is reused, because it keeps its memory between texts.
    static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
}

impl Grammar {
    fn new(language: tree_sitter::Language, named: &[(&str, Part)]) -> Self {
        let leaf = |number| (!language.node_kind_is_named(number)).then_some(Part::Leaf);
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

    pub(super) fn part(&self, node: Node<'_>) -> Option<Part> {
        self.parts
            .get(usize::from(node.kind_id()))
            .copied()
            .flatten()
    }

    pub(super) fn parse(&self, text: &str) -> Tree {
        PARSER.with_borrow_mut(|parser| {
            parser
                .set_language(&self.language)
                .expect("the grammar is built for this version of tree-sitter");
            parser
                .parse(text, None)
                .expect("parsing has a language and is never cancelled")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_node_kind_exists_in_the_grammar() {
        let language: tree_sitter::Language = tree_sitter_python::LANGUAGE.into();
        for (kind, _) in PYTHON_PARTS {
            assert_ne!(language.id_for_node_kind(kind, true), 0, "{kind}");
        }
    }
}
