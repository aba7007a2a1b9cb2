//! Definitions and references of a name.

use super::code::{Code, FileId, base_name};
use super::facts::is_test;
use super::names::{Binding, BindingKind, Role, ScopeId};
use super::resolve::{Certainty, References, Resolver, Source};
use super::segment::hash_of;
use starling_syntax::{FilePath, Language, SymbolKind, SymbolPath, references as references_in};
use starling_workspace::Snapshot;

/// Where a name is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub symbol: SymbolPath,
    pub kind: SymbolKind,
    /// First and last line, from 1.
    pub lines: (u32, u32),
    /// Where its name stands.
    pub line: u32,
}

/// A variable of a module: a constant, say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub file: FilePath,
    pub name: String,
    /// Where the module's body sets it: byte offsets of its name.
    pub set_at: Vec<u32>,
}

/// What a symbol is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    pub kind: SymbolKind,
    /// Where its name stands, from 1.
    pub line: u32,
    /// Decorators and `def …:`; empty for a module body.
    pub signature: String,
    /// The first paragraph of its docstring.
    pub doc: String,
}

/// Where a name is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    pub file: FilePath,
    /// From 1.
    pub line: u32,
    /// Bytes from the start of the line, from 0.
    pub column: u32,
    /// The line, without its indentation.
    pub text: String,
    /// The symbol that owns it.
    pub symbol: SymbolPath,
    pub is_call: bool,
    pub is_import: bool,
    /// That it is a use of what was asked for.
    pub certainty: Certainty,
}

/// Uses of a symbol, or of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usages {
    pub found: Vec<Usage>,
    /// Whether these are all; else the limit was reached, or the code is too entangled.
    pub complete: bool,
}

/// The symbols called `name`, code before tests. `Class.method`, `module.Class` and
/// `path/to/file.py::f` are the last part where the parts before fit; where nothing fits whole, the
/// last part alone decides.
pub(super) fn definitions(code: &Code, name: &str) -> Vec<Definition> {
    let mut found = called(code, name);
    let any_fits = found.iter().any(|(misfit, ..)| !misfit);
    found.retain(|(misfit, ..)| !(any_fits && *misfit));
    in_order(found)
}

/// The symbols that a name fits whole: `Stock.size` is never `Cart.size`.
pub(super) fn definitions_of(code: &Code, name: &str) -> Vec<Definition> {
    let mut found = called(code, name);
    found.retain(|(misfit, ..)| !misfit);
    in_order(found)
}

fn in_order(mut found: Vec<(bool, bool, Definition)>) -> Vec<Definition> {
    found.sort_by(|(_, test, a), (_, other, b)| (test, &a.symbol).cmp(&(other, &b.symbol)));
    found
        .into_iter()
        .map(|(.., definition)| definition)
        .collect()
}

/// The symbols of which the last part of a name is the own name: whether the whole does not fit, whether it
/// is of a test, and what it is.
fn called(code: &Code, name: &str) -> Vec<(bool, bool, Definition)> {
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
            line: symbol.line,
        };
        found.push((!fits, code.is_test(file), definition));
    }
    found
}

pub(super) fn describe(code: &Code, symbol: &SymbolPath) -> Option<Description> {
    let found = code.symbol(code.number_of(symbol)?);
    Some(Description {
        kind: found.kind,
        line: found.line,
        signature: found.signature.to_owned(),
        doc: found.doc.to_owned(),
    })
}

/// The variables of modules called `name`: `module.NAME` and `path/to/file.py::NAME` where the parts before fit.
/// What a module also imports, or defines as a class or a function, is none of them.
pub(super) fn variables(code: &Code, name: &str) -> Vec<Variable> {
    let (wanted, name) = split(name.trim());
    let last = base_name(&name);
    let mut found = Vec::new();
    for file in code.mentioning(last) {
        let whole = format!(".{}.{last}", code.module(file));
        let path = code.path(file);
        let fits = wanted.as_ref().is_none_or(|wanted| wanted == path);
        if !fits || !ends_with_name(&whole, &name) {
            continue;
        }
        let names = Source::names(code, file).unwrap_or_default();
        let bindings = names
            .find(last)
            .map(|id| names.bindings(ScopeId::MODULE, id));
        let bindings = bindings.unwrap_or_default();
        let is_value = |one: &Binding| matches!(one.kind, BindingKind::Value { .. });
        let at = |one: &Binding| names.occurrence(one.occurrence).map(|found| found.at);
        if !bindings.is_empty() && bindings.iter().all(is_value) {
            found.push(Variable {
                file: path.clone(),
                name: last.to_owned(),
                set_at: bindings.iter().filter_map(at).collect(),
            });
        }
    }
    found
}

/// Whether the body of a module or a class of any file defines or sets a name.
pub(super) fn is_defined(code: &Code, name: &str) -> bool {
    code.mentioning(name).into_iter().any(|file| {
        let names = Source::names(code, file).unwrap_or_default();
        let bindings = names.find(name).map(|id| {
            let classes = names.classes().iter().map(|class| class.scope);
            let scopes = std::iter::once(ScopeId::MODULE).chain(classes);
            let bindings = scopes.flat_map(|scope| names.bindings(scope, id));
            bindings.copied().collect::<Vec<_>>()
        });
        bindings.into_iter().flatten().any(|one| is_own(one.kind))
    })
}

/// Whether a binding makes a name, and does not bring it from elsewhere.
fn is_own(kind: BindingKind) -> bool {
    match kind {
        BindingKind::Class(_)
        | BindingKind::Function(_)
        | BindingKind::Value { .. }
        | BindingKind::Attribute { .. } => true,
        BindingKind::Import(_)
        | BindingKind::Parameter { .. }
        | BindingKind::Global
        | BindingKind::Nonlocal => false,
    }
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

/// The uses of a symbol, found by imports, scopes and types, where `name` says which: by its path, or
/// as the only one of its name. Else the identifiers called as the last part of `name`. Definitions
/// are left out; the certain ones come first, code before tests.
pub(super) fn references(code: &Code, snapshot: &Snapshot, name: &str, limit: usize) -> Usages {
    let symbol = symbol_of(code, name.trim());
    let resolved = symbol.and_then(|symbol| uses(code, snapshot, &symbol));
    let mut usages = resolved.unwrap_or_else(|| by_name(code, snapshot, name, limit));
    usages
        .found
        .sort_by_key(|usage| (usage.certainty, is_test(&usage.file)));
    if usages.found.len() > limit {
        usages.found.truncate(limit);
        usages.complete = false;
    }
    usages
}

/// The one symbol that a name means. A bare name of a method may mean a function of elsewhere.
fn symbol_of(code: &Code, name: &str) -> Option<SymbolPath> {
    let path = name.parse::<SymbolPath>().ok();
    if let Some(path) = path.filter(|path| code.number_of(path).is_some()) {
        return Some(path);
    }
    let mut found = definitions(code, name);
    let only = found.pop().filter(|_| found.is_empty())?;
    let is_bare = only.kind == SymbolKind::Method && !name.contains('.');
    (!is_bare).then_some(only.symbol)
}

fn uses(code: &Code, snapshot: &Snapshot, symbol: &SymbolPath) -> Option<Usages> {
    let references = Resolver::new(code).references(symbol)?;
    usages(code, snapshot, &references)
}

/// Every place that means a variable of a module, those that set it among them.
pub(super) fn variable_uses(code: &Code, snapshot: &Snapshot, of: &Variable) -> Option<Usages> {
    let references = Resolver::new(code).variable_references(&of.file, &of.name)?;
    usages(code, snapshot, &references)
}

fn usages(code: &Code, snapshot: &Snapshot, references: &References) -> Option<Usages> {
    let mut usages = Usages {
        complete: references.complete,
        found: Vec::new(),
    };
    for file in references.uses.chunk_by(|a, b| a.file == b.file) {
        let known = code.find(&file[0].file)?;
        let text = snapshot.read(&file[0].file).ok();
        let text = text.filter(|text| hash_of(text) == code.view(known).hash);
        // The file changed since it was read into the index.
        let Some(text) = text else {
            usages.complete = false;
            continue;
        };
        let uses = file.iter().filter(|found| found.role != Role::Definition);
        usages.found.extend(uses.map(|found| {
            Usage {
                file: found.file.clone(),
                line: found.line,
                column: found.column,
                text: line_at(&text, found.offset as usize).to_owned(),
                symbol: found
                    .symbol
                    .clone()
                    .unwrap_or_else(|| SymbolPath::module(found.file.clone())),
                is_call: found.role == Role::Call,
                is_import: is_import(found.role),
                certainty: found.certainty,
            }
        }));
    }
    Some(usages)
}

fn is_import(role: Role) -> bool {
    match role {
        Role::ImportedModule | Role::ImportedName | Role::Alias => true,
        Role::Read
        | Role::Call
        | Role::Store
        | Role::Delete
        | Role::Definition
        | Role::Parameter
        | Role::Keyword
        | Role::Export
        | Role::Declared => false,
    }
}

fn by_name(code: &Code, snapshot: &Snapshot, name: &str, limit: usize) -> Usages {
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
            let start = reference.range.start;
            usages.found.push(Usage {
                file: code.path(file).clone(),
                line: reference.line,
                column: (start - line_start(tree.text(), start)) as u32,
                text: line_at(tree.text(), start).to_owned(),
                symbol: tree.owner(start).path.clone(),
                is_call: reference.is_call,
                is_import: reference.is_import,
                certainty: Certainty::Possible,
            });
        }
    }
    usages
}

/// The line around an offset, without white space at its ends.
fn line_at(text: &str, offset: usize) -> &str {
    let end = text[offset..]
        .find('\n')
        .map_or(text.len(), |at| offset + at);
    text[line_start(text, offset)..end].trim()
}

fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |at| at + 1)
}
