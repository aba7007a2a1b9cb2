//! The symbol tree of one text.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tree_sitter::{Node, Tree};

use super::lines::{Lines, indentation};
use super::read::{ReadSymbols, read};
use super::{Contract, FilePath, Language, SymbolPath, normalized};
use starling_text::ByteRange;

#[cfg(test)]
mod tests;

/// The kind of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolKind {
    /// The module body, or a whole file without a grammar.
    Module,
    Class,
    Function,
    /// A function whose parent is a class.
    Method,
}

/// The index of a symbol in its tree. Index 0 is the module body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub usize);

/// A symbol of a text. Its span (the lines that belong to it) covers the spans of its children.
#[derive(Debug, Clone)]
pub struct Symbol {
    pub path: SymbolPath,
    pub kind: SymbolKind,
    /// The range from the first comment line or decorator of the symbol to the end of its last
    /// line, including the line break. The range consists of whole lines if the symbol shares no
    /// line with other code. Following comment lines that are indented deeper than the definition
    /// are included.
    pub span: ByteRange,
    /// The range of the `def`/`class` (or decorated definition) without the comments above it.
    pub definition: ByteRange,
    /// The range of the name in the definition; empty for the module.
    pub name: ByteRange,
    /// The one-based numbers of the first and the last line.
    pub lines: (u32, u32),
    pub parent: Option<SymbolId>,
    pub children: Vec<SymbolId>,
    pub contract: Contract,
    /// The range of the code after the signature; the whole text for the module.
    pub body: ByteRange,
    /// The first paragraph of the docstring, without quotes.
    pub doc: Option<String>,
    /// The range of the docstring's string literal.
    pub docstring: Option<ByteRange>,
}

/// The symbols of one text. Every byte belongs to exactly one innermost symbol.
#[derive(Debug, Clone)]
pub struct SymbolTree {
    file: FilePath,
    text: Arc<str>,
    lines: Lines,
    symbols: Vec<Symbol>,
    /// The ids of the symbols, sorted by name.
    by_name: Vec<SymbolId>,
    errors: Vec<ByteRange>,
    comments: Vec<ByteRange>,
    strings: Vec<ByteRange>,
    syntax: Option<Tree>,
}

impl SymbolTree {
    /// Parses a text. If that takes too much work (see [`SymbolTree::is_unparsed`]), the whole text
    /// becomes the module body and is reported as one syntax error.
    pub fn parse(file: FilePath, text: Arc<str>) -> Self {
        let lines = Lines::of(&text);
        let grammar = Language::of(&file).grammar();
        let syntax = grammar.and_then(|grammar| grammar.parse(&text));
        let reading = match (grammar, &syntax) {
            (Some(grammar), Some(syntax)) => read(grammar, syntax, &file, &text, &lines),
            (None, _) => ReadSymbols::plain(&file, &text, &lines),
            (Some(_), None) => ReadSymbols {
                errors: vec![ByteRange::new(0, text.len())],
                ..ReadSymbols::plain(&file, &text, &lines)
            },
        };
        let symbols = reading.symbols;
        let mut by_name: Vec<SymbolId> = (0..symbols.len()).map(SymbolId).collect();
        by_name.sort_by(|a, b| symbols[a.0].path.name.cmp(&symbols[b.0].path.name));
        SymbolTree {
            file,
            text,
            lines,
            symbols,
            by_name,
            errors: reading.errors,
            comments: reading.comments,
            strings: reading.strings,
            syntax,
        }
    }

    pub fn file(&self) -> &FilePath {
        &self.file
    }

    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    pub fn language(&self) -> Language {
        Language::of(&self.file)
    }

    /// Returns all symbols ordered by their start; the module body is first.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    pub fn module(&self) -> &Symbol {
        &self.symbols[0]
    }

    pub fn get(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.0]
    }

    /// Returns the symbol with a `SymbolPath::name`, for example `Class.method`, `f#2`, or an empty
    /// name for the module.
    pub fn find(&self, name: &str) -> Option<&Symbol> {
        let name = &*normalized(name);
        let place = self
            .by_name
            .binary_search_by(|id| self.get(*id).path.name.as_str().cmp(name));
        place.ok().map(|place| self.get(self.by_name[place]))
    }

    /// Returns the innermost symbol that owns the byte at an offset. An offset at or past the end
    /// of the text belongs to the module.
    pub fn owner(&self, offset: usize) -> &Symbol {
        let mut owner = self.module();
        loop {
            let before = owner
                .children
                .partition_point(|child| self.get(*child).span.start <= offset);
            let inner = before
                .checked_sub(1)
                .map(|index| self.get(owner.children[index]));
            match inner {
                Some(child) if child.span.contains(offset) => owner = child,
                Some(_) | None => return owner,
            }
        }
    }

    /// Returns the innermost symbol at a one-based line: the owner of the first non-blank
    /// character.
    pub fn at_line(&self, line: u32) -> &Symbol {
        let range = self.lines.range((line as usize).saturating_sub(1));
        self.owner(range.start + indentation(range.of(&self.text)).len())
    }

    /// Returns the one-based line of a symbol's name. Decorators and comments are on earlier lines.
    pub fn line_of(&self, symbol: &Symbol) -> u32 {
        self.lines.number_at(symbol.name.start)
    }

    /// Returns the parts of a symbol's span that do not belong to a child.
    pub fn own_ranges(&self, symbol: &Symbol) -> Vec<ByteRange> {
        let mut ranges = Vec::with_capacity(symbol.children.len() + 1);
        let mut start = symbol.span.start;
        for child in &symbol.children {
            let span = self.get(*child).span;
            ranges.push(ByteRange::new(start, span.start));
            start = span.end;
        }
        ranges.push(ByteRange::new(start, symbol.span.end));
        ranges.retain(|range| !range.is_empty());
        ranges
    }

    /// Returns whether the file has a grammar but was not parsed, because that would take too much
    /// work.
    pub fn is_unparsed(&self) -> bool {
        self.syntax.is_none() && self.language() != Language::Plain
    }

    /// Returns the ranges of the syntax errors.
    pub fn errors(&self) -> &[ByteRange] {
        &self.errors
    }

    /// Returns the ranges of all comments, in order.
    pub fn comments(&self) -> &[ByteRange] {
        &self.comments
    }

    /// Returns the ranges of all string literals, in order. A string inside an f-string is part of
    /// the f-string.
    pub fn strings(&self) -> &[ByteRange] {
        &self.strings
    }

    /// Returns whether a byte lies inside a string literal, after the first byte of the literal.
    pub(super) fn in_string(&self, offset: usize) -> bool {
        let before = self.strings.partition_point(|string| string.start < offset);
        before > 0 && offset < self.strings[before - 1].end
    }

    pub(super) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Returns the byte offsets of the line starts.
    pub fn line_starts(&self) -> &[usize] {
        self.lines.starts()
    }

    /// Returns the root of the syntax tree, or `None` for a file without a grammar.
    pub fn root(&self) -> Option<Node<'_>> {
        self.syntax.as_ref().map(Tree::root_node)
    }

    /// Returns the syntax node of a symbol's definition, without decorators.
    pub(super) fn node(&self, symbol: &Symbol) -> Option<Node<'_>> {
        if symbol.name.is_empty() {
            return None;
        }
        self.root()?
            .descendant_for_byte_range(symbol.name.start, symbol.name.end)?
            .parent()
    }
}
