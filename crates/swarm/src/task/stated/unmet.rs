//! Detects renames and deletions that a task asks for and the run did not carry out.

use std::collections::BTreeSet;

use super::count::{count, in_symbol, is_gone_somewhere};
use super::kept::KeptStrings;
use super::named::{Named, Word, original_of, stub_of};
use super::{ExplicitEdit, ExplicitEdits, left, twins};
use crate::lookup::Lookup;
use crate::task::asked::names_file;
use crate::task::in_strings::{first_of, of_gone, put_together, stands_in};
use starling_index::newly_undefined;
use starling_syntax::{FilePath, Language, Symbol, SymbolKind, SymbolPath};

/// Describes why a requested rename or deletion is not complete; `None` if it is complete.
pub(super) fn unmet(
    stated: &ExplicitEdit,
    statements: &ExplicitEdits,
    before: &Lookup,
    after: &Lookup,
) -> Option<String> {
    let kept = &statements.kept;
    let still_used = |name: &str| still_used(before, after, name, statements.unsure_uses_stay);
    let to = match stated {
        ExplicitEdit::Renamed { to, .. } => Some(to.as_str()),
        ExplicitEdit::Deleted { .. } => None,
    };
    match stated.named() {
        Named::Symbol(symbol) => {
            let is_there = |file: &FilePath| {
                let symbol = SymbolPath::new(file.clone(), symbol.name.clone());
                after.symbol(&symbol).is_ok()
            };
            let left = left(after, &symbol.file, is_there);
            left.map(|file| format!("`{}` is still in {file}", symbol.name))
                .or_else(|| missing(after, to))
                .or_else(|| half_done(before, after, symbol.base_name(), to))
                .or_else(|| left_in_strings(after, symbol.base_name(), kept))
                .or_else(|| still_used(symbol.base_name()))
        }
        Named::Variable(variable) => {
            let name = &variable.name;
            let is_there = |file: &FilePath| {
                let there = after.index().variables(&format!("{file}::{name}"));
                !there.is_empty()
            };
            let left = left(after, &variable.file, is_there);
            left.map(|file| format!("`{name}` is still in {file}"))
                .or_else(|| missing(after, to))
                .or_else(|| left_in_strings(after, name, kept))
                .or_else(|| still_used(name))
        }
        Named::File(file) => {
            let is_there = |file: &FilePath| after.files().binary_search(file).is_ok();
            match (is_there(file), to) {
                (true, _) => Some(format!("`{file}` is still there")),
                (false, None) => None,
                (false, Some(to)) => {
                    let is_new = after.files().iter().any(|file| names_file(to, file));
                    (!is_new).then(|| format!("there is no `{to}`"))
                }
            }
        }
        Named::Word(word) => unmet_word(word, to, before, after)
            .or_else(|| left_in_stub(word, before, after))
            .or_else(|| match word.is_symbol {
                true => half_done(before, after, &word.name, to.filter(|_| !word.is_partial))
                    .or_else(|| left_in_strings(after, &word.name, kept))
                    .or_else(|| still_used(&word.name)),
                false => None,
            })
            .or_else(|| {
                let to = to.filter(|_| !word.is_partial)?;
                left::left((word, to), kept, before, after)
            }),
    }
}

/// Returns the module, or its stub, in which a symbol still exists.
fn left(
    after: &Lookup,
    module: &FilePath,
    is_there: impl Fn(&FilePath) -> bool,
) -> Option<FilePath> {
    let stub = stub_of(after, module);
    let files = std::iter::once(module.clone()).chain(stub);
    files.into_iter().find(|file| is_there(file))
}

/// Describes that the new name of a rename is not defined; `None` if it is.
fn missing(after: &Lookup, to: Option<&str>) -> Option<String> {
    let to = to.filter(|to| !after.index().is_defined(to))?;
    Some(format!("there is no `{to}`"))
}

/// Describes the strings that still contain a name which the code no longer defines.
fn left_in_strings(lookup: &Lookup, name: &str, kept: &KeptStrings) -> Option<String> {
    if lookup.index().is_defined(name) {
        return None;
    }
    let strings = of_gone(lookup, name, kept);
    match strings.is_empty() {
        true if kept.all => None,
        true => put_together(lookup, name),
        false => Some(stands_in(name, "still occurs", &strings)),
    }
}

/// Describes where the old name is still defined, if other definitions of this name in the same
/// scope were renamed.
fn half_done(before: &Lookup, after: &Lookup, old: &str, to: Option<&str>) -> Option<String> {
    let to = to?;
    let half = after.index().half_renamed(before.index(), old, to);
    let twins = twins::left(old, to, before, after);
    half.into_iter()
        .chain(twins)
        .next()
        .map(|one| format!("`{old}` is still in {}:{}", one.file, one.line))
}

/// Describes the code that still uses a name which is no longer defined. Leaves out uses on objects of
/// unknown type if `unsure_uses_stay`.
fn still_used(
    before: &Lookup,
    after: &Lookup,
    name: &str,
    unsure_uses_stay: bool,
) -> Option<String> {
    let index = after.index();
    if index.is_defined(name) {
        return None;
    }
    let left = match unsure_uses_stay {
        true => Vec::new(),
        false => index.left_uses(name),
    };
    let mut places: Vec<(FilePath, u32)> =
        left.into_iter().map(|one| (one.file, one.line)).collect();
    let changed: Vec<FilePath> = index.snapshot().overlay().keys().cloned().collect();
    let dangling = index.newly_dangling(before.index(), &changed).into_iter();
    let dangling = dangling.filter(|one| one.name == name);
    places.extend(dangling.map(|one| (one.file, one.line)));
    for file in &changed {
        let trees = (before.tree(file), after.tree(file));
        if let (Ok(old), Ok(new)) = trees {
            let undefined = newly_undefined(&old, &new).into_iter();
            let undefined = undefined.filter(|one| one.name == name);
            places.extend(undefined.map(|one| (file.clone(), one.line)));
        }
    }
    places.sort();
    places.dedup();
    let places = places.iter().map(|(file, line)| format!("{file}:{line}"));
    let places = first_of(places.collect());
    (!places.is_empty()).then(|| format!("`{name}` is still used at {places}"))
}

/// Describes a stub file that still declares a parameter or attribute which was renamed or deleted
/// in the function that the stub describes.
fn left_in_stub(word: &Word, before: &Lookup, after: &Lookup) -> Option<String> {
    let in_symbol = |lookup: &Lookup, symbol: &SymbolPath| in_symbol(lookup, symbol, &word.name);
    let stubs = after.files().iter().filter(|file| {
        let module = original_of(file);
        module.is_some_and(|module| after.files().binary_search(&module).is_ok())
    });
    for stub in stubs {
        let (Some(module), Ok(tree)) = (original_of(stub), after.tree(stub)) else {
            continue;
        };
        let is_left = |symbol: &&Symbol| {
            let own = SymbolPath::new(module.clone(), symbol.path.name.clone());
            let is_leaf = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method);
            is_leaf
                && in_symbol(before, &own) > 0
                && in_symbol(after, &own) == 0
                && after.symbol(&own).is_ok()
                && in_symbol(after, &symbol.path) > 0
        };
        if tree.symbols().iter().any(|symbol| is_left(&symbol)) {
            return Some(format!("`{}` is still in {stub}", word.name));
        }
    }
    None
}

/// Returns the functions with a parameter of a name, among those to which the task restricts it.
fn with_parameter(lookup: &Lookup, word: &Word) -> Vec<SymbolPath> {
    let is_within = |symbol: &SymbolPath| {
        word.within.is_empty() || word.within.iter().any(|one| one.encloses(symbol))
    };
    let files: BTreeSet<&FilePath> = match word.within.is_empty() {
        true => lookup.files().iter().collect(),
        false => word.within.iter().map(|one| &one.file).collect(),
    };
    let mut found = Vec::new();
    for file in files {
        if Language::of(file) != Language::Python {
            continue;
        }
        let text = lookup.index().snapshot().read(file).ok();
        if !text.is_some_and(|text| text.contains(&word.name)) {
            continue;
        }
        let Ok(tree) = lookup.tree(file) else {
            continue;
        };
        let takes = |symbol: &&Symbol| {
            let mut parameters = symbol.contract.parameters.iter().flatten();
            is_within(&symbol.path) && parameters.any(|one| one.name == word.name)
        };
        let functions = tree.symbols().iter().filter(takes);
        found.extend(functions.map(|symbol| symbol.path.clone()));
    }
    found
}

/// Describes why the rename or deletion of a plain name is not complete. It is complete if the old
/// name is gone from the files and symbols in question, or if the changed text contains the new
/// name.
fn unmet_word(word: &Word, to: Option<&str>, before: &Lookup, after: &Lookup) -> Option<String> {
    if word.is_parameter && !with_parameter(before, word).is_empty() {
        // A local variable of the name is not the parameter.
        let left = with_parameter(after, word);
        let first = left.first()?;
        if to.is_none() {
            return Some(format!("`{}` is still a parameter of {first}", word.name));
        }
    }
    let stood = count(before, word) > 0;
    let is_gone = || match (word.is_partial, to) {
        (true, None) => is_gone_somewhere(word, before, after),
        (_, _) => count(after, word) == 0,
    };
    if stood && is_gone() {
        return None;
    }
    let Some(to) = to else {
        return stood.then(|| format!("`{}` is still there", word.name));
    };
    let new = Word {
        name: to.to_owned(),
        within: Vec::new(),
        is_symbol: false,
        of: Vec::new(),
        is_member: false,
        is_parameter: false,
        is_text: false,
        is_partial: false,
        kept_by: Vec::new(),
    };
    let is_new = count(after, &new) > count(before, &new);
    match (is_new, stood) {
        (true, _) => None,
        (false, true) => Some(format!("`{}` is still there", word.name)),
        (false, false) => Some(format!("there is no `{to}`")),
    }
}
