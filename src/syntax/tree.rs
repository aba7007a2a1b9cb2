//! The symbols of one text.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Contract, FilePath, Language, SymbolPath};
use crate::text::ByteRange;

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
    /// of its own) to the end of its last line, line break included.
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
    /// The first paragraph of the docstring, unquoted.
    pub doc: Option<String>,
}

/// The symbols of one text: every byte belongs to exactly one innermost symbol.
#[derive(Debug, Clone)]
pub struct SymbolTree {
    file: FilePath,
    text: Arc<str>,
    symbols: Vec<Symbol>,
    errors: Vec<ByteRange>,
}

impl SymbolTree {
    pub fn parse(file: FilePath, text: Arc<str>) -> Self {
        todo!()
    }
    pub fn file(&self) -> &FilePath {
        todo!()
    }
    pub fn text(&self) -> &Arc<str> {
        todo!()
    }
    pub fn language(&self) -> Language {
        todo!()
    }
    /// In order of their start; the module body first.
    pub fn symbols(&self) -> &[Symbol] {
        todo!()
    }
    pub fn get(&self, id: SymbolId) -> &Symbol {
        todo!()
    }
    /// By `SymbolPath::name`, e.g. `Class.method`, `f#2`, or empty for the module.
    pub fn find(&self, name: &str) -> Option<&Symbol> {
        todo!()
    }
    /// The innermost symbol that owns the byte.
    pub fn owner(&self, offset: usize) -> &Symbol {
        todo!()
    }
    /// The innermost symbol at a line, from 1.
    pub fn at_line(&self, line: u32) -> &Symbol {
        todo!()
    }
    /// The parts of a symbol's span that no child owns.
    pub fn own_ranges(&self, symbol: &Symbol) -> Vec<ByteRange> {
        todo!()
    }
    /// Where the grammar could not read the text.
    pub fn errors(&self) -> &[ByteRange] {
        todo!()
    }
}
