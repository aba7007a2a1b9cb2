//! The names and ranges of the symbols of a text, also of a text with syntax errors.

use std::collections::{BTreeMap, BTreeSet};

use super::{contents, name, parent};
use crate::{SymbolKind, SymbolTree};
use starling_text::ByteRange;

/// The symbols of one text except the module, ordered by their start.
pub(super) struct Outline<'t> {
    text: &'t str,
    symbols: Vec<(String, ByteRange)>,
    /// The names of the symbols that are classes.
    classes: BTreeSet<String>,
}

impl<'t> Outline<'t> {
    pub(super) fn of(tree: &'t SymbolTree) -> Self {
        let symbols = tree.symbols()[1..].iter();
        let classes = symbols
            .clone()
            .filter(|symbol| symbol.kind == SymbolKind::Class);
        Outline {
            text: tree.text(),
            classes: classes.map(|symbol| name(symbol).to_owned()).collect(),
            symbols: symbols
                .map(|symbol| (name(symbol).to_owned(), symbol.span))
                .collect(),
        }
    }

    /// Builds the outline only from `def` and `class` lines and their indentation, so that
    /// unfinished code elsewhere in the text does not change the result.
    pub(super) fn by_indentation(tree: &'t SymbolTree) -> Self {
        let text = tree.text();
        let mut symbols: Vec<(String, ByteRange)> = Vec::new();
        // The symbols that enclose the current line, as pairs of indentation and index.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut classes = BTreeSet::new();
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
            if line.starts_with("class ") {
                classes.insert(name.clone());
            }
            open.push((indent, symbols.len()));
            symbols.push((name, ByteRange::new(start, text.len())));
        }
        Outline {
            text,
            symbols,
            classes,
        }
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the name of the innermost symbol at an offset, or an empty name for the module.
    fn owner(&self, at: usize) -> &str {
        let around = |(_, span): &&(String, ByteRange)| span.contains(at);
        let innermost = self.symbols.iter().rev().find(around);
        innermost.map_or("", |(name, _)| name)
    }

    /// Returns the owner of each non-blank line of a range.
    pub(super) fn owners(&self, range: ByteRange) -> impl Iterator<Item = &str> {
        contents(self.text, range).map(|at| self.owner(at))
    }

    pub(super) fn has(&self, wanted: &str) -> bool {
        wanted.is_empty() || self.symbols.iter().any(|(name, _)| name == wanted)
    }

    pub(super) fn is_class(&self, name: &str) -> bool {
        self.classes.contains(name)
    }

    /// Returns the number of symbols with this name, including redefinitions.
    pub(super) fn count(&self, wanted: &str) -> usize {
        let wanted = unnumbered(wanted);
        let same = |(name, _): &&(String, ByteRange)| unnumbered(name) == wanted;
        self.symbols.iter().filter(same).count()
    }

    /// Returns how many symbols with the same parent stand before a symbol.
    pub(super) fn place(&self, wanted: &str) -> Option<usize> {
        self.siblings(wanted).position(|(name, _)| name == wanted)
    }

    /// Returns the text of a symbol.
    pub(super) fn text_of(&self, wanted: &str) -> Option<&'t str> {
        let (_, span) = self.symbols.iter().find(|(name, _)| name == wanted)?;
        Some(span.of(self.text))
    }

    /// Returns the text of a symbol if no other definition of its name has the same text.
    pub(super) fn only_text(&self, wanted: &str) -> Option<&'t str> {
        let (_, span) = self.symbols.iter().find(|(name, _)| name == wanted)?;
        let (name, text) = (unnumbered(wanted), span.of(self.text).trim_end());
        let same = |(other, span): &&(String, ByteRange)| {
            unnumbered(other) == name && span.of(self.text).trim_end() == text
        };
        (self.symbols.iter().filter(same).count() == 1).then_some(text)
    }

    /// Returns the previous and the next symbol with the same parent, with their text.
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

    /// Returns the other symbols with the same parent as `wanted` that do not exist in the outline
    /// `other`.
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

/// Returns a symbol path without redefinition numbers: `f#2` becomes `f`.
pub(super) fn unnumbered(name: &str) -> String {
    let parts = name.split('.');
    let parts = parts.map(|part| part.split('#').next().unwrap_or(part));
    parts.collect::<Vec<&str>>().join(".")
}

/// Returns the name that a `def` or `class` line defines.
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
