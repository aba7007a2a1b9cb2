//! Definitions and references of a name.

use std::sync::Arc;

use super::facts::FileFacts;
use super::words::{Term, words};
use crate::syntax::{FilePath, SymbolKind, SymbolPath, references as references_in};
use crate::workspace::Snapshot;

/// Where a name is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub symbol: SymbolPath,
    pub kind: SymbolKind,
    /// First and last line, from 1.
    pub lines: (u32, u32),
}

/// Where a name is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    pub file: FilePath,
    /// From 1.
    pub line: u32,
    /// The line, without its indentation.
    pub text: String,
    /// The symbol that owns it.
    pub symbol: SymbolPath,
    pub is_call: bool,
    pub is_import: bool,
}

/// Uses of a name. They go by the name alone: another thing of the same name is among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usages {
    pub found: Vec<Usage>,
    /// Whether these are all; else the limit was reached.
    pub complete: bool,
}

/// The symbols called `name`, code before tests. `Class.method` and `module.Class` are the last
/// part where the parts before fit; where nothing fits whole, the last part alone decides.
pub(super) fn definitions(files: &[Arc<FileFacts>], name: &str) -> Vec<Definition> {
    let name = name.trim().rsplit("::").next().unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or(name);
    if last.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for facts in files.iter().filter(|facts| facts.bag.has(Term::of(last))) {
        let symbols = facts.symbols.iter();
        for symbol in symbols.filter(|symbol| symbol.path.base_name() == last) {
            let whole = format!(".{}.{}", facts.module(), symbol.path.name);
            let fits = whole.ends_with(&format!(".{name}")) || symbol.path.name == name;
            found.push((!fits, facts.is_test, symbol));
        }
    }
    let any_fits = found.iter().any(|(misfit, ..)| !misfit);
    found.retain(|(misfit, ..)| !(any_fits && *misfit));
    found.sort_by_key(|(_, is_test, symbol)| (*is_test, &symbol.path));
    let definition = |(_, _, symbol): (bool, bool, &super::facts::SymbolFacts)| Definition {
        symbol: symbol.path.clone(),
        kind: symbol.kind,
        lines: symbol.lines,
    };
    found.into_iter().map(definition).collect()
}

/// Identifiers called as the last part of `name`, definitions left out, code before tests.
pub(super) fn references(
    files: &[Arc<FileFacts>],
    snapshot: &Snapshot,
    name: &str,
    limit: usize,
) -> Usages {
    let last = name.rsplit(['.', ':']).next().unwrap_or(name).trim();
    let mut usages = Usages {
        found: Vec::new(),
        complete: true,
    };
    let term = Term::of(last);
    // Names that are too short or too long for a word are not in any bag.
    let is_word = words(last).next().is_some();
    let mut candidates: Vec<_> = files
        .iter()
        .filter(|facts| (!is_word || facts.bag.has(term)) && facts.text.contains(last))
        .collect();
    candidates.sort_by_key(|facts| facts.is_test);
    for facts in candidates {
        let Ok(tree) = snapshot.tree(&facts.file) else {
            continue;
        };
        let found = references_in(&tree, last);
        for reference in found.into_iter().filter(|found| !found.is_definition) {
            if usages.found.len() == limit {
                usages.complete = false;
                return usages;
            }
            usages.found.push(Usage {
                file: facts.file.clone(),
                line: reference.line,
                text: line_at(tree.text(), reference.range.start).to_owned(),
                symbol: tree.owner(reference.range.start).path.clone(),
                is_call: reference.is_call,
                is_import: reference.is_import,
            });
        }
    }
    usages
}

/// The line around an offset, without white space at its ends.
fn line_at(text: &str, offset: usize) -> &str {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let end = text[offset..]
        .find('\n')
        .map_or(text.len(), |at| offset + at);
    text[start..end].trim()
}
