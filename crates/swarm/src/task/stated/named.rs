//! Resolves the words of a task to a symbol, variable, name or file of the project.

use super::sentence::{EntityKind, SentenceRequest};
use crate::lookup::Lookup;
use crate::task::asked::{Token, names_file};
use starling_index::{Variable, is_test_file};
use starling_syntax::{FilePath, SymbolKind, SymbolPath};

/// An entity that a task names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    Symbol(SymbolPath),
    /// A variable of a module.
    Variable(Variable),
    /// A name without a single definition in the index: an attribute, a parameter or an option.
    Word(Word),
    File(FilePath),
}

/// A name, and the files or symbols to which the task restricts it. Without a restriction, the name
/// is searched in all code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub name: String,
    pub within: Vec<SymbolPath>,
    /// Whether functions, methods or classes have this name, so that the task may mean one of them.
    pub is_symbol: bool,
    /// The classes whose attribute the task means, if it names classes.
    pub of: Vec<SymbolPath>,
    /// Whether the task says that the name is an attribute.
    pub is_member: bool,
    /// Whether the task says that the name is a parameter.
    pub is_parameter: bool,
    /// Whether the task says that the name occurs in strings.
    pub is_text: bool,
    /// Whether some uses of the name may stay: the task says so, or it restricts a deletion in words
    /// that name no file and no symbol.
    pub is_partial: bool,
    /// Words by which the task says what else keeps the name, in lower case: `member` in "Member keeps
    /// `loans`".
    pub kept_by: Vec<String>,
}

impl Named {
    /// Returns the last part of the name.
    pub fn base_name(&self) -> &str {
        match self {
            Named::Symbol(path) => path.base_name(),
            Named::Variable(variable) => &variable.name,
            Named::Word(word) => &word.name,
            Named::File(file) => file.as_str(),
        }
    }

    /// Returns whether the index contains definitions of the name.
    pub fn is_defined(&self) -> bool {
        match self {
            Named::Symbol(_) | Named::Variable(_) => true,
            Named::Word(word) => word.is_symbol,
            Named::File(_) => false,
        }
    }
}

/// The files and symbols to which a request is restricted.
pub(super) struct RequestScope {
    pub(super) files: Vec<FilePath>,
    pub(super) symbols: Vec<SymbolPath>,
    are_clear: bool,
}

/// Resolves the name in a request. Returns `None` if the project does not have the name, or if the
/// word may be an ordinary word instead of a name.
pub(super) fn find(lookup: &Lookup, wish: &SentenceRequest<'_>) -> Option<Named> {
    let word = wish.token.word.trim_start_matches('#');
    let name = word.trim_end_matches("()");
    let places = RequestScope::of(lookup, &wish.place);
    if let Some(file) = file(lookup, name, wish.kind) {
        return Some(Named::File(file));
    }
    // In `it should be called once`, "once" is not a name.
    let is_name = |to: &Token| to.is_quoted || is_code(&to.word);
    let is_called = wish.is_called && matches!(wish.kind, None | Some(EntityKind::Code));
    let is_clear = !is_called || wish.to.is_some_and(is_name);
    let is_text = wish.kind == Some(EntityKind::Text);
    if is_text && wish.to.is_none() {
        return None;
    }
    let may_be_symbol = places.are_clear && wish.kind != Some(EntityKind::Parameter) && !is_text;
    if may_be_symbol && wish.kind != Some(EntityKind::File) {
        let (symbols, variables) = defined(lookup, name, wish.kind, &places);
        match (symbols.as_slice(), variables.as_slice()) {
            ([symbol], _) => return Some(Named::Symbol(symbol.clone())),
            ([], [variable]) if is_clear => return Some(Named::Variable(variable.clone())),
            _ => {}
        }
    }
    let is_named = wish.token.is_quoted || wish.kind.is_some() || is_code(word);
    let is_renamed = wish.to.is_some() && places.are_clear && lookup.index().mentions(name);
    if wish.kind == Some(EntityKind::File)
        || name.is_empty()
        || !is_clear
        || !(is_named || is_renamed)
    {
        return None;
    }
    let whole = name;
    let name = match wish.token.with_dashes.starts_with('-') {
        true => wish.token.with_dashes.as_str(),
        false => name.rsplit(['.', ':']).next().unwrap_or(name),
    };
    let of = classes(lookup, whole, &places);
    let modules = places.files.iter().cloned().map(SymbolPath::module);
    let within: Vec<SymbolPath> = places.symbols.iter().cloned().chain(modules).collect();
    let is_parameter = wish.kind == Some(EntityKind::Parameter);
    let may_be_it = |symbol: &SymbolPath| {
        let is_within = within.is_empty() || within.iter().any(|one| one.encloses(symbol));
        symbol.base_name() == name && !is_test_file(&symbol.file) && is_within
    };
    let definitions = lookup.index().definitions_of(name);
    let mut word = Word {
        is_symbol: !is_parameter && definitions.iter().any(|one| may_be_it(&one.symbol)),
        name: name.to_owned(),
        within,
        of,
        is_member: wish.kind == Some(EntityKind::Member),
        is_parameter,
        is_text,
        is_partial: wish.to.is_none() && !places.are_clear,
        kept_by: Vec::new(),
    };
    let mut stands = super::count::count(lookup, &word) > 0;
    if !stands && wish.to.is_some() {
        // The task may have named a file or symbol that is only close to the name, so the
        // restriction is dropped.
        word.within.clear();
        stands = super::count::count(lookup, &word) > 0;
    }
    (stands || wish.to.is_some() && is_named).then_some(Named::Word(word))
}

/// Returns the classes that a task names as owners of an attribute: `Battle` in `Battle.max_rounds`
/// and in `max_rounds of Battle`.
fn classes(lookup: &Lookup, name: &str, places: &RequestScope) -> Vec<SymbolPath> {
    let is_class = |symbol: &SymbolPath| {
        let found = lookup.symbol(symbol);
        found.is_ok_and(|found| found.symbol.kind == SymbolKind::Class)
    };
    let owner = name.rsplit_once('.').map_or("", |(owner, _)| owner);
    let in_file: Option<SymbolPath> = owner.parse().ok();
    let called = match (&in_file, owner) {
        (Some(_), _) | (None, "") => Vec::new(),
        (None, owner) => lookup.index().definitions_of(owner),
    };
    let called = called.into_iter().map(|one| one.symbol);
    let named = in_file.into_iter().chain(called);
    let mut named: Vec<SymbolPath> = named.chain(places.symbols.iter().cloned()).collect();
    named.retain(|symbol| !is_test_file(&symbol.file) && is_class(symbol));
    named
}

/// Returns the symbols and variables that have a name, are in the given files and symbols, and are
/// of the given kind if `kind` is set.
fn defined(
    lookup: &Lookup,
    name: &str,
    kind: Option<EntityKind>,
    places: &RequestScope,
) -> (Vec<SymbolPath>, Vec<Variable>) {
    let base = name.rsplit(['.', ':']).next().unwrap_or(name);
    let index = lookup.index();
    let is_meant = |symbol: &SymbolPath| {
        let is_twin = original_of(&symbol.file).is_some_and(|file| {
            let own = SymbolPath::new(file, plain(&symbol.name));
            lookup.symbol(&own).is_ok()
        });
        let is_member = symbol.name.contains('.') || kind != Some(EntityKind::Member);
        symbol.base_name() == base
            && !is_test_file(&symbol.file)
            && !is_twin
            && is_member
            && places.hold(symbol)
    };
    let found = index.definitions_of(name).into_iter();
    let mut symbols: Vec<SymbolPath> = found.map(|one| one.symbol).collect();
    symbols.retain(is_meant);
    if kind == Some(EntityKind::Variable) {
        symbols.clear();
    }
    let mut variables = index.variables(name);
    variables.retain(|one| {
        let is_twin = original_of(&one.file).is_some_and(|file| {
            let others = index.variables(&format!("{file}::{}", one.name));
            !others.is_empty()
        });
        !is_test_file(&one.file) && !is_twin && places.hold(&SymbolPath::module(one.file.clone()))
    });
    let may_be_variable = matches!(kind, None | Some(EntityKind::Variable));
    if !may_be_variable {
        variables.clear();
    }
    (symbols, variables)
}

impl RequestScope {
    pub(super) fn of(lookup: &Lookup, told: &[&str]) -> Self {
        const NOWHERE: [&str; 11] = [
            "the", "our", "this", "my", "a", "whole", "project", "code", "codebase", "all", "files",
        ];
        let mut places = RequestScope {
            files: Vec::new(),
            symbols: Vec::new(),
            are_clear: true,
        };
        for (at, word) in told.iter().enumerate() {
            let word = word.trim_start_matches('@').trim_end_matches("()");
            let files = lookup.files().iter();
            let of_name: Vec<FilePath> =
                files.filter(|one| names_file(word, one)).cloned().collect();
            let symbols = lookup.index().definitions_of(word);
            let is_code_base = word == "base" && told[..at].ends_with(&["code"]);
            let is_filler = is_code_base
                || NOWHERE.contains(&word.to_lowercase().as_str())
                || EntityKind::of(word).is_some();
            if !of_name.is_empty() {
                places.files.extend(of_name);
            } else if !symbols.is_empty() && !is_filler {
                let symbols = symbols.into_iter().map(|one| one.symbol);
                let symbols = symbols.filter(|symbol| !is_test_file(&symbol.file));
                places.symbols.extend(symbols);
            } else {
                places.are_clear &= is_filler;
            }
        }
        places
    }

    /// Returns whether a symbol lies in one of the given files or symbols.
    fn hold(&self, symbol: &SymbolPath) -> bool {
        let in_file = self.files.is_empty() || self.files.contains(&symbol.file);
        let in_symbol = self.symbols.is_empty()
            || (self.symbols.iter()).any(|one| one.encloses(symbol) && one != symbol);
        in_file && in_symbol
    }
}

/// Returns the file that a word names by its path, its name or as a module; `None` unless there is
/// exactly one.
fn file(lookup: &Lookup, word: &str, kind: Option<EntityKind>) -> Option<FilePath> {
    let is_file = kind == Some(EntityKind::File);
    if word.contains("::") || !is_file && !word.contains('.') {
        return None;
    }
    let module = format!("{}.py", word.replace('.', "/"));
    let mut files = lookup
        .files()
        .iter()
        .filter(|file| names_file(word, file) || is_file && names_file(&module, file));
    let only = files.next()?;
    files.next().is_none().then(|| only.clone())
}

/// Returns the path of the module that a stub file (`.pyi`) describes.
pub(super) fn original_of(stub: &FilePath) -> Option<FilePath> {
    let path = stub.as_str().strip_suffix(".pyi")?;
    Some(FilePath::new(format!("{path}.py")))
}

/// Returns the stub file (`.pyi`) next to a module; `None` if there is none.
pub(crate) fn stub_of(lookup: &Lookup, module: &FilePath) -> Option<FilePath> {
    let path = module.as_str().strip_suffix(".py")?;
    let stub = FilePath::new(format!("{path}.pyi"));
    lookup.files().binary_search(&stub).is_ok().then_some(stub)
}

/// Returns a symbol's name without the numbers that distinguish repeated definitions.
pub(crate) fn plain(name: &str) -> String {
    let parts = name
        .split('.')
        .map(|part| part.split('#').next().unwrap_or(part));
    parts.collect::<Vec<_>>().join(".")
}

/// Returns whether a word looks like a name of code instead of a word of prose.
pub(super) fn is_code(word: &str) -> bool {
    let has_inner_capital = word.chars().skip(1).any(char::is_uppercase);
    word.contains(['_', '(', ':', '.']) || word.starts_with('-') || has_inner_capital
}

pub(super) fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(crate) fn is_identifier(name: &str) -> bool {
    name.chars().all(is_part) && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
