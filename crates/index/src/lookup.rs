//! Looks up the definitions and references of a name.

use super::code::{Code, FileId, base_name};
use super::facts::is_test;
use super::names::{Binding, BindingKind, Role, ScopeId};
use super::resolve::{Certainty, IndirectAccess, References, Resolver, Source, Use};
use super::segment::hash_of;
use starling_syntax::{FilePath, Language, SymbolKind, SymbolPath, references as references_in};
use starling_workspace::Snapshot;

/// The definition of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub symbol: SymbolPath,
    pub kind: SymbolKind,
    /// First and last line of the definition, counted from 1.
    pub lines: (u32, u32),
    /// Line of the symbol's name, counted from 1.
    pub line: u32,
}

/// A module-level variable, such as a constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub file: FilePath,
    pub name: String,
    /// Byte offsets of the variable's name in the assignments of the module body.
    pub set_at: Vec<u32>,
}

/// The kind, signature and documentation of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    pub kind: SymbolKind,
    /// Line of the symbol's name, counted from 1.
    pub line: u32,
    /// Decorators and `def …:`; empty for a module body.
    pub signature: String,
    /// The first paragraph of the symbol's docstring.
    pub doc: String,
}

/// A use of a symbol or name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    pub file: FilePath,
    /// Line of the use, counted from 1.
    pub line: u32,
    /// Column of the use, in bytes from the start of the line.
    pub column: u32,
    /// The text of the line, without indentation.
    pub text: String,
    /// The innermost symbol that contains the use.
    pub symbol: SymbolPath,
    pub is_call: bool,
    pub is_import: bool,
    /// How certain it is that this is a use of the requested symbol.
    pub certainty: Certainty,
}

/// The uses of a symbol or of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usages {
    pub found: Vec<Usage>,
    /// False if uses may be missing: the limit was reached, the resolver ran out of steps, a module is not
    /// found, or objects from outside may hold objects of the class.
    pub complete: bool,
    /// The imports because of which uses may be missing, as files and lines, in order: their modules are
    /// not found and may be the symbol's module.
    pub gaps: Vec<(FilePath, u32)>,
}

/// A call or a read of an attribute that names one method, but may reach a method that overrides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndirectUse {
    pub usage: Usage,
    /// The method that the attribute names, usually a method of a base class. `None` if the object's class
    /// has no known method with that name.
    pub through: Option<SymbolPath>,
}

/// Returns the symbols called `name`, code before tests. For a qualified name (`Class.method`,
/// `module.Class`, `path/to/file.py::f`), returns the symbols that match all its parts, or the
/// symbols that match only the last part if there are none.
pub(super) fn definitions(code: &Code, name: &str) -> Vec<Definition> {
    let mut found = called(code, name);
    let any_fits = found.iter().any(|(misfit, ..)| !misfit);
    found.retain(|(misfit, ..)| !(any_fits && *misfit));
    in_order(found)
}

/// Returns the symbols that match all parts of a name: `Stock.size` never returns `Cart.size`.
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

/// Returns the symbols that match the last part of a name. The first flag of an entry is false if
/// the other parts match, too, and the second flag is true if the symbol is in a test.
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

/// Returns the module-level variables called `name`. For `module.NAME` and `path/to/file.py::NAME`
/// all parts must match. Names that the module also imports, or defines as a class or function, are
/// excluded.
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

/// Returns whether the body of a module or class in any file defines or assigns a name. The stub of a
/// module of the workspace only declares.
pub(super) fn is_defined(code: &Code, name: &str) -> bool {
    let is_code = |file: &FileId| !is_stub_of_module(code, code.path(*file));
    let mut files = code.mentioning(name).into_iter().filter(is_code);
    files.any(|file| {
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

/// Returns whether a file is the stub of a module of the workspace: `a.pyi` next to `a.py`.
pub(super) fn is_stub_of_module(code: &Code, file: &FilePath) -> bool {
    let module = file.as_str().strip_suffix(".pyi");
    let module = module.map(|path| FilePath::new(format!("{path}.py")));
    module.is_some_and(|module| code.find(&module).is_some())
}

/// Returns whether a binding defines or assigns the name. Imports and declarations do not.
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

/// Splits a symbol path into its file, if any, and its name with dots between the parts.
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

/// Returns whether a dotted path ends with `name`. If `name` has no number suffix (`f#2`), the
/// suffixes in the path are ignored, so that every definition of that name matches.
fn ends_with_name(path: &str, name: &str) -> bool {
    let numbered = name.contains('#');
    let mut there = path.rsplit('.').map(|part| match part.find('#') {
        Some(end) if !numbered => &part[..end],
        Some(_) | None => part,
    });
    name.rsplit('.').all(|part| there.next() == Some(part))
}

/// Returns the uses of a symbol, without definitions, found by imports, scopes and types. `name`
/// must identify one symbol, by its path or as the only symbol of that name; otherwise the function
/// returns the identifiers that equal the last part of `name`. The most certain uses come first,
/// then code before tests.
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

/// Returns the only symbol that a name can refer to. A bare method name returns `None`, because it
/// may also refer to a function elsewhere.
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

/// Returns all uses of a module-level variable, including its assignments.
pub(super) fn variable_uses(code: &Code, snapshot: &Snapshot, of: &Variable) -> Option<Usages> {
    let references = Resolver::new(code).variable_references(&of.file, &of.name)?;
    usages(code, snapshot, &references)
}

/// Returns the calls and reads that may reach this method although they name another method.
pub(super) fn indirect_uses(
    code: &Code,
    snapshot: &Snapshot,
    method: &SymbolPath,
) -> Vec<IndirectUse> {
    let all = Resolver::new(code).indirect_uses(method);
    as_indirect_uses(code, snapshot, all)
}

/// Converts the results of the resolver to uses with their files and symbols.
pub(super) fn as_indirect_uses(
    code: &Code,
    snapshot: &Snapshot,
    all: Vec<IndirectAccess>,
) -> Vec<IndirectUse> {
    let of = |one: IndirectAccess| {
        let references = References {
            uses: vec![one.access],
            complete: true,
            gaps: Vec::new(),
        };
        Some(IndirectUse {
            usage: usages(code, snapshot, &references)?.found.pop()?,
            through: one.through,
        })
    };
    all.into_iter().filter_map(of).collect()
}

/// Returns the reads of an attribute on objects that may be of any class.
pub(super) fn reads_of_any(code: &Code, snapshot: &Snapshot, name: &str) -> Vec<Usage> {
    as_usages(code, snapshot, Resolver::new(code).reads_of_any(name))
}

/// Returns the reads of an attribute on modules that code looks up at run time, as in
/// `sys.modules["shop"].cart`.
pub(super) fn reads_of_namespaces(code: &Code, snapshot: &Snapshot, name: &str) -> Vec<Usage> {
    as_usages(
        code,
        snapshot,
        Resolver::new(code).reads_of_namespaces(name),
    )
}

/// Converts the uses that the resolver found to uses with their files and symbols.
fn as_usages(code: &Code, snapshot: &Snapshot, uses: Vec<Use>) -> Vec<Usage> {
    let references = References {
        uses,
        complete: true,
        gaps: Vec::new(),
    };
    let usages = usages(code, snapshot, &references);
    usages.map(|usages| usages.found).unwrap_or_default()
}

fn usages(code: &Code, snapshot: &Snapshot, references: &References) -> Option<Usages> {
    let mut usages = Usages {
        complete: references.complete,
        gaps: references.gaps.clone(),
        found: Vec::new(),
    };
    for file in references.uses.chunk_by(|a, b| a.file == b.file) {
        let known = code.find(&file[0].file)?;
        let text = snapshot.read(&file[0].file).ok();
        let text = text.filter(|text| hash_of(text) == code.view(known).hash);
        // The file changed since it was indexed.
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
        gaps: Vec::new(),
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

/// Returns the line at an offset, trimmed.
fn line_at(text: &str, offset: usize) -> &str {
    let end = text[offset..]
        .find('\n')
        .map_or(text.len(), |at| offset + at);
    text[line_start(text, offset)..end].trim()
}

fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::super::Index;
    use super::super::testing::snapshot_of;

    #[test]
    fn name_in_the_stub_of_a_module_does_not_count_as_defined() {
        let stub = "RATE: int\ndef fee(): ...\n";
        let is_defined = |files: &[(&str, &str)]| {
            let index = Index::new(snapshot_of(files));
            ["RATE", "fee"].map(|name| index.is_defined(name))
        };
        assert_eq!(
            is_defined(&[("a.pyi", stub), ("a.py", "X = 1\n")]),
            [false; 2]
        );
        assert_eq!(
            is_defined(&[("a.pyi", stub), ("b.py", "X = 1\n")]),
            [true; 2]
        );
    }
}
