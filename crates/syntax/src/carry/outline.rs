//! The symbols of a text by their names and places, also of a text that the grammar cannot read.

use std::collections::BTreeMap;

use super::{contents, name, parent};
use crate::SymbolTree;
use starling_text::ByteRange;

/// The symbols of one text in order of their start, without the module.
pub(super) struct Outline<'t> {
    text: &'t str,
    symbols: Vec<(String, ByteRange)>,
}

impl<'t> Outline<'t> {
    pub(super) fn of(tree: &'t SymbolTree) -> Self {
        let symbols = tree.symbols()[1..].iter();
        Outline {
            text: tree.text(),
            symbols: symbols
                .map(|symbol| (name(symbol).to_owned(), symbol.span))
                .collect(),
        }
    }

    /// Reads nothing but the heads of definitions and the indentation, which unfinished code elsewhere
    /// does not change.
    pub(super) fn by_indentation(tree: &'t SymbolTree) -> Self {
        let text = tree.text();
        let mut symbols: Vec<(String, ByteRange)> = Vec::new();
        // Those around the line, with their indentation.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for at in contents(text, ByteRange::new(0, text.len())) {
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let indent = at - start;
            while let Some((_, symbol)) = open.pop_if(|(outer, _)| *outer >= indent) {
                symbols[symbol].1.end = start;
            }
            let line = text[at..].lines().next().unwrap_or("");
            let Some(defined) = defined(line) else {
                continue;
            };
            let name = match open.last() {
                Some((_, outer)) => format!("{}.{defined}", symbols[*outer].0),
                None => defined.to_owned(),
            };
            let times = seen.entry(name.clone()).or_default();
            *times += 1;
            let name = match *times {
                1 => name,
                times => format!("{name}#{times}"),
            };
            open.push((indent, symbols.len()));
            symbols.push((name, ByteRange::new(start, text.len())));
        }
        Outline { text, symbols }
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// The innermost symbol at an offset; empty for the module.
    fn owner(&self, at: usize) -> &str {
        let around = |(_, span): &&(String, ByteRange)| span.contains(at);
        let innermost = self.symbols.iter().rev().find(around);
        innermost.map_or("", |(name, _)| name)
    }

    /// The owner of each line of a range that is not blank.
    pub(super) fn owners(&self, range: ByteRange) -> impl Iterator<Item = &str> {
        contents(self.text, range).map(|at| self.owner(at))
    }

    pub(super) fn has(&self, wanted: &str) -> bool {
        wanted.is_empty() || self.symbols.iter().any(|(name, _)| name == wanted)
    }

    /// How many symbols have this name, counting second definitions.
    pub(super) fn count(&self, wanted: &str) -> usize {
        let wanted = unnumbered(wanted);
        let same = |(name, _): &&(String, ByteRange)| unnumbered(name) == wanted;
        self.symbols.iter().filter(same).count()
    }

    /// The neighbours of a symbol with the same parent, with their text.
    pub(super) fn beside(&self, wanted: &str) -> Vec<(&str, &'t str)> {
        let siblings: Vec<&(String, ByteRange)> = self.siblings(wanted).collect();
        let at = siblings.iter().position(|(name, _)| name == wanted);
        let Some(at) = at else { return Vec::new() };
        let neighbours = [at.checked_sub(1), Some(at + 1)];
        neighbours
            .into_iter()
            .flatten()
            .filter_map(|at| siblings.get(at))
            .map(|(name, span)| (name.as_str(), span.of(self.text)))
            .collect()
    }

    /// The other symbols with the same parent that another text does not have.
    pub(super) fn beside_missing(&self, wanted: &str, other: &Outline<'_>) -> Vec<&str> {
        self.siblings(wanted)
            .map(|(name, _)| name.as_str())
            .filter(|name| *name != wanted && !other.has(name))
            .collect()
    }

    fn siblings(&self, wanted: &str) -> impl Iterator<Item = &(String, ByteRange)> {
        let same =
            |(name, _): &&(String, ByteRange)| !wanted.is_empty() && parent(name) == parent(wanted);
        self.symbols.iter().filter(same)
    }
}

/// A name without the numbers of second definitions: `f#2` is another `f`.
fn unnumbered(name: &str) -> String {
    let parts = name.split('.');
    let parts = parts.map(|part| part.split('#').next().unwrap_or(part));
    parts.collect::<Vec<&str>>().join(".")
}

/// The name that the line defines.
pub(super) fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("async ").unwrap_or(line).trim_start();
    let rest = line
        .strip_prefix("def ")
        .or_else(|| line.strip_prefix("class "))?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    (!name.is_empty()).then_some(name)
}
