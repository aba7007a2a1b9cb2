use std::sync::OnceLock;

use tree_sitter::{Parser, Query, Tree};

use super::FilePath;

/// A language that Starling knows by a grammar, or plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Python,
    /// No grammar: the whole file is one symbol.
    Plain,
}

impl Language {
    /// The language of a file, by its name.
    pub fn of(file: &FilePath) -> Self {
        match file.name().rsplit_once('.') {
            Some((_, "py" | "pyi" | "pyw")) => Language::Python,
            Some(_) | None => Language::Plain,
        }
    }

    pub(super) fn grammar(self) -> Option<&'static Grammar> {
        static PYTHON: OnceLock<Grammar> = OnceLock::new();
        match self {
            Language::Python => Some(PYTHON.get_or_init(|| {
                Grammar::new(
                    tree_sitter_python::LANGUAGE.into(),
                    include_str!("python.scm"),
                )
            })),
            Language::Plain => None,
        }
    }
}

/// A grammar and the query that finds in it what symbols are made of.
pub(super) struct Grammar {
    language: tree_sitter::Language,
    pub(super) query: Query,
    /// What the captures of the query mean, by their index.
    captures: Vec<Capture>,
}

/// The names that a query may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capture {
    Class,
    Function,
    /// A definition together with its decorators; `Inner` is the definition.
    Decorated,
    Inner,
    Name,
    Comment,
    String,
    Raise,
    Yield,
}

impl Capture {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "class" => Capture::Class,
            "function" => Capture::Function,
            "decorated" => Capture::Decorated,
            "inner" => Capture::Inner,
            "name" => Capture::Name,
            "comment" => Capture::Comment,
            "string" => Capture::String,
            "raise" => Capture::Raise,
            "yield" => Capture::Yield,
            _ => return None,
        })
    }
}

impl Grammar {
    fn new(language: tree_sitter::Language, query: &str) -> Self {
        let query = Query::new(&language, query).expect("the query is tested with its grammar");
        let captures = query
            .capture_names()
            .iter()
            .map(|name| Capture::named(name).expect("the query uses the names of `Capture`"))
            .collect();
        Grammar {
            language,
            query,
            captures,
        }
    }

    pub(super) fn capture(&self, index: u32) -> Capture {
        self.captures[index as usize]
    }

    pub(super) fn parse(&self, text: &str) -> Tree {
        let mut parser = Parser::new();
        parser
            .set_language(&self.language)
            .expect("the grammar is built for this version of tree-sitter");
        parser
            .parse(text, None)
            .expect("parsing has a language and is never cancelled")
    }
}
