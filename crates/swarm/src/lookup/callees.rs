//! Finds the functions of the project that a function calls. The cause of a failure is often in a
//! function that is called by the code which matches the words of the task.

use crate::excerpt::found::Found;
use crate::lookup::Lookup;
use starling_index::{Definition, Position, is_test_file};
use starling_syntax::{Reference, SymbolKind, SymbolPath, references};

/// Maximum number of called names that are considered.
const NAMES: usize = 24;
/// Minimum length of a called name. Shorter names are shared by too many symbols.
const SHORTEST: usize = 3;

/// Rank of a callee; greater is better. The parts are: how well its name matches the focus (the
/// words of the task), whether it is in the file of the caller, and the number of focus names in
/// its source.
type Rank = (usize, bool, usize);

/// Returns the functions that a function calls directly, best first: those that match the focus
/// (the words of the task), and private helpers, whose names begin with an underscore.
pub(crate) fn callees(lookup: &Lookup, symbol: &SymbolPath, most: usize) -> Vec<SymbolPath> {
    let Ok(found) = lookup.symbol(symbol) else {
        return Vec::new();
    };
    match found.symbol.kind {
        SymbolKind::Function | SymbolKind::Method => {}
        SymbolKind::Module | SymbolKind::Class => return Vec::new(),
    }
    let mut callees: Vec<(Rank, SymbolPath)> = Vec::new();
    let called_names = called_names(found.source());
    let read_names = read_names(found.source());
    let names = called_names.iter().map(|name| (*name, NameUse::Call));
    let names = names
        .take(NAMES)
        .chain(read_names.iter().map(|name| (*name, NameUse::Read)));
    for (name, how) in names.take(2 * NAMES) {
        let Some(callee) = used(lookup, &found, name, how) else {
            continue;
        };
        let is_known = callees.iter().any(|(_, known)| *known == callee);
        // Functions inside this function are shown with it already.
        if is_known || symbol.encloses(&callee) || callee.is_module() || is_test_file(&callee.file)
        {
            continue;
        }
        if let Some(rank) = rank(lookup, symbol, &callee) {
            callees.push((rank, callee));
        }
    }
    callees.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    let best = callees.into_iter().take(most);
    best.map(|(_, callee)| callee).collect()
}

/// Returns the rank of a callee; `None` if it is not worth showing.
fn rank(lookup: &Lookup, caller: &SymbolPath, callee: &SymbolPath) -> Option<Rank> {
    let name = callee.base_name();
    let found = lookup.symbol(callee).ok()?;
    let (names, stems) = lookup.focus().shared_with(name);
    let inside = lookup.focus().shared_with(found.source()).0;
    let same_file = callee.file == caller.file;
    let is_helper = name.starts_with('_') && !name.starts_with("__");
    let speaks = names + stems > 0 || is_helper || (same_file && inside > 0);
    let is_class = found.symbol.kind == SymbolKind::Class;
    (speaks && (!is_class || names > 0 || is_helper)).then_some((
        2 * names + stems,
        same_file,
        inside,
    ))
}

/// The form in which a source uses a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameUse {
    Call,
    /// `self.name`, which may be a property.
    Read,
}

/// Resolves a name that a symbol uses, by imports and types. If that fails, returns the only
/// definition of the name in the project or in the file. A name that is read without a call must be
/// a property.
fn used(lookup: &Lookup, found: &Found, name: &str, how: NameUse) -> Option<SymbolPath> {
    let callee = meant(lookup, found, name, how)?;
    let is_property = || {
        let found = lookup.symbol(&callee).ok()?;
        let decorators = found.symbol.contract.decorators.iter();
        Some(decorators.clone().any(|one| one.contains("property")))
    };
    match how {
        NameUse::Call => Some(callee),
        NameUse::Read => is_property().unwrap_or_default().then_some(callee),
    }
}

fn meant(lookup: &Lookup, found: &Found, name: &str, how: NameUse) -> Option<SymbolPath> {
    let span = found.symbol.span;
    let here = |call: &Reference| {
        call.is_call == (how == NameUse::Call)
            && !call.is_definition
            && span.contains(call.range.start)
    };
    let call = references(&found.tree, name).into_iter().find(here)?;
    let line_start = found.tree.line_starts()[call.line as usize - 1];
    let column = found.tree.text()[line_start..call.range.start]
        .chars()
        .count()
        + 1;
    let at = Position {
        file: found.symbol.path.file.clone(),
        line: call.line,
        column: u32::try_from(column).ok()?,
    };
    let only = |mut defined: Vec<Definition>| match defined.len() {
        1 => defined.pop().map(|only| only.symbol),
        _ => None,
    };
    let resolved = lookup.index().definition_at(&at).ok()?;
    if resolved.certain {
        return only(resolved.found);
    }
    let mut defined = lookup.index().definitions(name);
    defined.retain(|one| !is_test_file(&one.symbol.file));
    let (same_file, _): (Vec<_>, Vec<_>) = defined
        .iter()
        .cloned()
        .partition(|one| one.symbol.file == found.symbol.path.file);
    only(defined).or_else(|| only(same_file))
}

/// Returns the distinct names before an opening bracket.
fn called_names(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, _) in source.match_indices('(') {
        let before = &source[..at];
        let start = before
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |end| end + 1);
        // The separator may be longer than one byte.
        let name = before.get(start..).unwrap_or_default();
        if name.len() > SHORTEST && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the distinct names after `self.` that are not called.
fn read_names(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, before) in source.match_indices("self.") {
        let rest = &source[at + before.len()..];
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let name = &rest[..end];
        let is_read = !rest[end..].starts_with('(');
        if is_read && name.len() > SHORTEST && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
