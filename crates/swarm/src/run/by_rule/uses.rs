//! Finds the uses of a name, and returns an error unless all of them are certain.

use crate::evidence::wording::counted;
use crate::lookup::Lookup;
use crate::task::examples::Examples;
use crate::task::in_strings::{first_of, put_together, stands_in};
use starling_index::{Certainty, Usage, Usages};
use starling_syntax::{Symbol, SymbolKind, SymbolPath, SymbolTree};

/// Maximum number of uses that are rewritten.
const USES_MOST: usize = 2_000;

/// Returns all uses of a symbol.
///
/// # Errors
/// Returns a message if some uses are not certain, or if not all uses are known.
pub(super) fn certain(
    lookup: &Lookup,
    path: &SymbolPath,
    symbol: &Symbol,
) -> Result<Vec<Usage>, String> {
    if path.name.contains('#') {
        return Err(format!(
            "{} has several definitions of `{}`",
            path.file,
            path.base_name()
        ));
    }
    let mut usages = lookup.usages(&path.to_string(), USES_MOST);
    let examples = Examples::of(lookup, path.base_name());
    if let Some(index) = &examples.index {
        let found = index.references(&path.to_string(), USES_MOST).found;
        let found = examples.uses(lookup, found, path.base_name());
        usages.found.extend(found);
    }
    match symbol.kind {
        // A use through an object of unknown type is certain if no other class in the project has
        // an attribute of this name, unless code from outside holds the object.
        SymbolKind::Method if lookup.index().is_only_attribute(path) => {
            for usage in &mut usages.found {
                if usage.certainty == Certainty::Likely {
                    usage.certainty = Certainty::Certain;
                }
            }
        }
        SymbolKind::Method => {}
        // Uses of this name as an attribute of an object of unknown type are ignored, because the
        // symbol is not an attribute of an object.
        SymbolKind::Module | SymbolKind::Class | SymbolKind::Function => {
            usages
                .found
                .retain(|usage| is_certain(usage) || !is_attribute(lookup, usage));
        }
    }
    all_certain(usages, path.base_name())
}

/// Returns the uses sorted by file.
///
/// # Errors
/// Returns a message if some uses are not certain, or if not all uses are known.
pub(super) fn all_certain(usages: Usages, name: &str) -> Result<Vec<Usage>, String> {
    let (mut sure, unsure): (Vec<Usage>, Vec<Usage>) =
        usages.found.into_iter().partition(is_certain);
    if !unsure.is_empty() {
        let count = counted(unsure.len(), "place");
        let places = places(&unsure);
        return Err(format!("{count} may mean another `{name}`: {places}"));
    }
    sure.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    match usages.complete {
        true => Ok(sure),
        false => Err(unknown_uses(name)),
    }
}

/// Returns the error for a name of which some uses may not have been found.
pub(super) fn unknown_uses(name: &str) -> String {
    format!("some uses of `{name}` may not have been found")
}

/// Returns the certain uses of a symbol that is defined in a stub file. Only uses in stub files are
/// returned.
pub(super) fn of_stub(lookup: &Lookup, twin: &Symbol) -> Vec<Usage> {
    let usages = lookup.usages(&twin.path.to_string(), USES_MOST);
    let mut found = usages.found;
    found.retain(|usage| is_certain(usage) && usage.file.as_str().ends_with(".pyi"));
    found.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    found
}

fn is_certain(usage: &Usage) -> bool {
    usage.certainty == Certainty::Certain
}

fn is_attribute(lookup: &Lookup, usage: &Usage) -> bool {
    let tree = lookup.tree(&usage.file);
    tree.is_ok_and(|tree| tree.text()[..offset(&tree, usage)].ends_with('.'))
}

/// Checks that no string contains the name as a whole part, because code may look up the symbol by
/// such a string, and that no script or template uses the name.
///
/// # Errors
/// Returns a message that lists the strings, or the lines of scripts and templates.
pub(super) fn in_no_string(lookup: &Lookup, name: &str) -> Result<(), String> {
    let found = lookup.index().in_strings(name);
    if !found.is_empty() {
        return Err(stands_in(name, "occurs", &found));
    }
    match put_together(lookup, name) {
        Some(places) => Err(places),
        None => Ok(()),
    }
}

pub(super) fn places(uses: &[Usage]) -> String {
    let named = uses
        .iter()
        .map(|usage| format!("{}:{}", usage.file, usage.line));
    first_of(named.collect())
}

/// Returns the byte offset of a use in its file.
pub(super) fn offset(tree: &SymbolTree, usage: &Usage) -> usize {
    let line = (usage.line as usize).saturating_sub(1);
    let start = tree.line_starts().get(line).copied();
    start.unwrap_or_default() + usage.column as usize
}
