//! Definitions and references of a name.

use super::code::{Code, FileId, base_name};
use crate::syntax::{FilePath, Language, SymbolKind, SymbolPath, references as references_in};
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

/// The symbols called `name`, code before tests. `Class.method`, `module.Class` and
/// `path/to/file.py::f` are the last part where the parts before fit; where nothing fits whole, the
/// last part alone decides.
pub(super) fn definitions(code: &Code, name: &str) -> Vec<Definition> {
    let (wanted, name) = split(name.trim());
    let last = base_name(&name);
    let mut found = Vec::new();
    for number in code.called(last) {
        let Some(file) = code.file_of(number) else {
            continue;
        };
        let symbol = code.symbol(number);
        let whole = format!(".{}.{}", code.module(file), symbol.name);
        let path = code.path(file);
        let fits =
            ends_with_name(&whole, &name) && wanted.as_ref().is_none_or(|wanted| wanted == path);
        let definition = Definition {
            symbol: SymbolPath::new(path.clone(), symbol.name),
            kind: symbol.kind,
            lines: symbol.lines,
        };
        found.push((!fits, code.is_test(file), definition));
    }
    let any_fits = found.iter().any(|(misfit, ..)| !misfit);
    found.retain(|(misfit, ..)| !(any_fits && *misfit));
    found.sort_by(|(_, test, a), (_, other, b)| (test, &a.symbol).cmp(&(other, &b.symbol)));
    found
        .into_iter()
        .map(|(.., definition)| definition)
        .collect()
}

/// The kind of a symbol, and the line of its name.
pub(super) fn place(code: &Code, symbol: &SymbolPath) -> Option<(SymbolKind, u32)> {
    let found = code.symbol(code.number_of(symbol)?);
    Some((found.kind, found.line))
}

/// The file of a symbol path, and the name with dots between its parts.
fn split(name: &str) -> (Option<FilePath>, String) {
    let file = name
        .split_once("::")
        .map(|(file, rest)| (FilePath::new(file), rest))
        .filter(|(file, _)| Language::of(file) != Language::Plain);
    let (file, name) = match file {
        Some((file, rest)) => (Some(file), rest),
        None => (None, name),
    };
    (file, name.replace("::", "."))
}

/// Whether the last parts of a dotted path are `name`. Without a number, each of several definitions
/// in one place is meant.
fn ends_with_name(path: &str, name: &str) -> bool {
    let numbered = name.contains('#');
    let mut there = path.rsplit('.').map(|part| match part.find('#') {
        Some(end) if !numbered => &part[..end],
        Some(_) | None => part,
    });
    name.rsplit('.').all(|part| there.next() == Some(part))
}

/// Identifiers called as the last part of `name`, definitions left out, code before tests.
pub(super) fn references(code: &Code, snapshot: &Snapshot, name: &str, limit: usize) -> Usages {
    let last = name.rsplit(['.', ':']).next().unwrap_or(name).trim();
    let last = last.split('#').next().unwrap_or(last);
    let mut usages = Usages {
        found: Vec::new(),
        complete: true,
    };
    let mut candidates: Vec<FileId> = code.mentioning(last);
    candidates.sort_by_key(|file| code.is_test(*file));
    for file in candidates {
        let Ok(tree) = snapshot.tree(code.path(file)) else {
            continue;
        };
        let found = references_in(&tree, last);
        for reference in found.into_iter().filter(|found| !found.is_definition) {
            if usages.found.len() == limit {
                usages.complete = false;
                return usages;
            }
            usages.found.push(Usage {
                file: code.path(file).clone(),
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
