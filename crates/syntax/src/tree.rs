//! The symbols of one text.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tree_sitter::{Node, Tree};

use super::lines::{Lines, indentation};
use super::read::{Reading, read};
use super::{Contract, FilePath, Language, SymbolPath, normalized};
use starling_text::ByteRange;

#[cfg(test)]
mod tests;

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

/// Index of a symbol in its tree; 0 is the module body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub usize);

/// A symbol of a text. Its span holds its children's.
#[derive(Debug, Clone)]
pub struct Symbol {
    pub path: SymbolPath,
    pub kind: SymbolKind,
    /// From the first of its own comment lines or decorators (whole lines where it stands on lines
    /// of its own) to the end of its last line, line break included. Comment lines after it that
    /// are indented deeper than its definition are its own, too.
    pub span: ByteRange,
    /// The `def`/`class` (or decorated definition) without the comments above it.
    pub definition: ByteRange,
    /// The name in its definition; empty for the module.
    pub name: ByteRange,
    /// First and last line, from 1.
    pub lines: (u32, u32),
    pub parent: Option<SymbolId>,
    pub children: Vec<SymbolId>,
    pub contract: Contract,
    /// What stands below its signature; the whole text for the module.
    pub body: ByteRange,
    /// The first paragraph of the docstring, unquoted.
    pub doc: Option<String>,
    /// The string literal of the docstring.
    pub docstring: Option<ByteRange>,
}

/// The symbols of one text: every byte belongs to exactly one innermost symbol.
#[derive(Debug, Clone)]
pub struct SymbolTree {
    file: FilePath,
    text: Arc<str>,
    lines: Lines,
    symbols: Vec<Symbol>,
    /// In the order of their names.
    by_name: Vec<SymbolId>,
    errors: Vec<ByteRange>,
    comments: Vec<ByteRange>,
    strings: Vec<ByteRange>,
    syntax: Option<Tree>,
}

impl SymbolTree {
    pub fn parse(file: FilePath, text: Arc<str>) -> Self {
        let lines = Lines::of(&text);
        let grammar = Language::of(&file).grammar();
        let syntax = grammar.map(|grammar| grammar.parse(&text));
        let reading = match (grammar, &syntax) {
            (Some(grammar), Some(syntax)) => read(grammar, syntax, &file, &text, &lines),
            (None, _) | (_, None) => Reading::plain(&file, &text, &lines),
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

    /// In order of their start; the module body first.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    pub fn module(&self) -> &Symbol {
        &self.symbols[0]
    }

    pub fn get(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.0]
    }

    /// By `SymbolPath::name`, e.g. `Class.method`, `f#2`, or empty for the module.
    pub fn find(&self, name: &str) -> Option<&Symbol> {
        let name = &*normalized(name);
        let place = self
            .by_name
            .binary_search_by(|id| self.get(*id).path.name.as_str().cmp(name));
        place.ok().map(|place| self.get(self.by_name[place]))
    }

    /// The innermost symbol that owns the byte. An offset at or past the end belongs to the module.
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

    /// The innermost symbol at a line, from 1: the owner of the first character that is no white space.
    pub fn at_line(&self, line: u32) -> &Symbol {
        let range = self.lines.range((line as usize).saturating_sub(1));
        self.owner(range.start + indentation(range.of(&self.text)).len())
    }

    /// The line of a symbol's name, from 1; decorators and comments stand before it.
    pub fn line_of(&self, symbol: &Symbol) -> u32 {
        self.lines.number_at(symbol.name.start)
    }

    /// The parts of a symbol's span that no child owns.
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

    /// Where the grammar could not read the text.
    pub fn errors(&self) -> &[ByteRange] {
        &self.errors
    }

    /// All comments, in order.
    pub fn comments(&self) -> &[ByteRange] {
        &self.comments
    }

    /// All string literals, in order; those in the fields of an f-string are part of it.
    pub fn strings(&self) -> &[ByteRange] {
        &self.strings
    }

    /// Whether the byte lies inside a string literal, behind its first byte.
    pub(super) fn in_string(&self, offset: usize) -> bool {
        let before = self.strings.partition_point(|string| string.start < offset);
        before > 0 && offset < self.strings[before - 1].end
    }

    pub(super) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Where the lines start.
    pub fn line_starts(&self) -> &[usize] {
        self.lines.starts()
    }

    /// The root of the grammar's tree.
    pub fn root(&self) -> Option<Node<'_>> {
        self.syntax.as_ref().map(Tree::root_node)
    }

    /// The definition of a symbol in the grammar's tree, without decorators.
    pub(super) fn node(&self, symbol: &Symbol) -> Option<Node<'_>> {
        if symbol.name.is_empty() {
            return None;
        }
        self.root()?
            .descendant_for_byte_range(symbol.name.start, symbol.name.end)?
            .parent()
    }
}
