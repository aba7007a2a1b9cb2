//! Printing of query results.

use std::io::{self, Write};

use serde::Serialize;

use super::super::Outcome;
use super::super::languages;
use super::super::standard::{note, unless_gone};
use super::super::view::text::{Line, Paint, Style};
use starling_index::{Definition, Description, Index};
use starling_syntax::{SymbolKind, SymbolPath};
use starling_text::harmless_json;

/// Prints a note if the project has no file with symbols, because results are empty then.
pub fn note_languages(index: &Index) {
    if !languages::has_symbols(index.snapshot().files()) {
        note(languages::NO_SYMBOLS);
    }
}

/// A symbol in a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SymbolLocation {
    pub path: String,
    /// The name of the symbol; empty for the module body.
    pub symbol: String,
    pub kind: SymbolKind,
    /// The line, from 1.
    pub line: u32,
    /// Decorators and `def …:`; empty for the module body.
    pub signature: String,
    /// The first paragraph of the docstring.
    pub doc: String,
}

impl SymbolLocation {
    /// Creates a location from a definition, with the description of its symbol.
    pub fn of(definition: &Definition, index: &Index) -> SymbolLocation {
        let description = index.describe(&definition.symbol);
        let (signature, doc) =
            description.map_or_else(Default::default, |it| (it.signature, it.doc));
        SymbolLocation {
            path: definition.symbol.file.to_string(),
            symbol: definition.symbol.name.clone(),
            kind: definition.kind,
            line: definition.line,
            signature,
            doc,
        }
    }

    pub fn at(symbol: &SymbolPath, description: Description) -> SymbolLocation {
        SymbolLocation {
            path: symbol.file.to_string(),
            symbol: symbol.name.clone(),
            kind: description.kind,
            line: description.line,
            signature: description.signature,
            doc: description.doc,
        }
    }

    pub fn line(&self) -> Line {
        let kind = kind_name(self.kind);
        Line::plain(&format!("{}:{}  ", self.path, self.line))
            .with(Style::Dim, &format!("{kind}  "))
            .with(Style::Bold, &self.symbol)
    }
}

pub fn kind_name(kind: SymbolKind) -> &'static str {
    match kind {
        SymbolKind::Module => "module",
        SymbolKind::Class => "class",
        SymbolKind::Function => "function",
        SymbolKind::Method => "method",
    }
}

/// Prints a result as JSON.
pub fn print_json(answer: &impl Serialize) -> anyhow::Result<Outcome> {
    let text = harmless_json(&serde_json::to_string_pretty(answer)?);
    print(&[text])
}

/// Prints a result for the terminal.
pub fn print_lines(lines: &[Line]) -> anyhow::Result<Outcome> {
    let paint = Paint::of_stdout();
    let lines: Vec<String> = lines.iter().map(|line| line.paint(paint)).collect();
    print(&lines)
}

/// Prints lines. A reader that closes the pipe early is not an error.
fn print(lines: &[String]) -> anyhow::Result<Outcome> {
    let mut out = io::stdout().lock();
    let written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    unless_gone(written.and_then(|()| out.flush()))?;
    Ok(Outcome::Settled)
}
