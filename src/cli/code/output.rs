//! How answers are printed.

use std::io::{self, Write};

use serde::Serialize;

use super::super::Outcome;
use super::super::languages;
use super::super::view::text::{Line, Paint, Style};
use starling_index::{Definition, Description, Index};
use starling_syntax::{SymbolKind, SymbolPath};

/// Says so where an answer is empty because no file of the project has symbols.
pub fn note_languages(index: &Index) {
    if !languages::has_symbols(index.snapshot().files()) {
        note(languages::NO_SYMBOLS);
    }
}

/// One symbol in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    pub path: String,
    /// Empty for the module body.
    pub symbol: String,
    pub kind: SymbolKind,
    /// From 1.
    pub line: u32,
    /// Decorators and `def …:`; empty for the module body.
    pub signature: String,
    /// The first paragraph of the docstring.
    pub doc: String,
}

impl Place {
    /// A symbol that may be defined in several places, or a place inside one.
    pub fn of(definition: &Definition, index: &Index) -> Place {
        let description = index.describe(&definition.symbol);
        let (signature, doc) =
            description.map_or_else(Default::default, |it| (it.signature, it.doc));
        Place {
            path: definition.symbol.file.to_string(),
            symbol: definition.symbol.name.clone(),
            kind: definition.kind,
            line: definition.line,
            signature,
            doc,
        }
    }

    pub fn at(symbol: &SymbolPath, description: Description) -> Place {
        Place {
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

/// Prints an answer for a program.
pub fn print_json(answer: &impl Serialize) -> anyhow::Result<Outcome> {
    let text = serde_json::to_string_pretty(answer)?;
    print(&[text])
}

/// Prints an answer for a reader.
pub fn print_lines(lines: &[Line]) -> anyhow::Result<Outcome> {
    let paint = Paint::of_stdout();
    let lines: Vec<String> = lines.iter().map(|line| line.paint(paint)).collect();
    print(&lines)
}

/// Whoever reads may stop when it has enough: that is no error.
fn print(lines: &[String]) -> anyhow::Result<Outcome> {
    let mut out = io::stdout().lock();
    let mut written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    written = written.and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Err(_) | Ok(()) => Ok(Outcome::Settled),
    }
}

/// Tells a reader what the answer does not say; the answer itself stays clean.
pub fn note(text: &str) {
    // stderr may be gone.
    let _ = writeln!(io::stderr(), "{text}");
}
