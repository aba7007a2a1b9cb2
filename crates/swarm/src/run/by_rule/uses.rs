//! Finds the uses of a name, and returns an error unless all of them are certain.

use std::collections::BTreeSet;

use super::doubts::{Doubt, Doubts, LikelyUses};
use super::hazards;
use crate::evidence::wording::counted;
use crate::lookup::Lookup;
use crate::task::examples::Examples;
use crate::task::in_strings::{self, first_of, looked_up, may_be_looked_up};
use starling_index::{Certainty, Usage, Usages, bound_at, is_test_file};
use starling_syntax::{FilePath, Symbol, SymbolId, SymbolKind, SymbolPath, SymbolTree};

/// Maximum number of uses that are rewritten.
const USES_MOST: usize = 2_000;

/// Returns all certain uses of a symbol, or of methods that change together.
///
/// # Errors
/// Returns the doubt if some uses are not certain, or not all uses are known.
pub(super) fn certain(
    lookup: &Lookup,
    related: &[SymbolPath],
    doubts: &mut Doubts,
) -> Result<Vec<Usage>, String> {
    let name = related.first().map_or("", SymbolPath::base_name);
    let mut all = Usages {
        found: Vec::new(),
        complete: true,
        gaps: Vec::new(),
    };
    let (mut is_class, mut is_member) = (false, false);
    let examples = Examples::of(lookup, name);
    for path in related {
        let usages = of_symbol(lookup, path, &examples)?;
        let kind = lookup.symbol(path)?.symbol.kind;
        is_class |= kind == SymbolKind::Class;
        is_member |= kind == SymbolKind::Method;
        all.found.extend(usages.found);
        all.complete &= usages.complete;
        all.gaps.extend(usages.gaps);
    }
    all.gaps.sort();
    all.gaps.dedup();
    // The same place may certainly use one of the methods, and another one only possibly.
    all.found
        .sort_by_key(|usage| (place(usage), usage.certainty));
    all.found.dedup_by_key(|usage| place(usage));
    let likely = changed_likely_uses(lookup, &all, related, doubts);
    for usage in all.found.iter_mut() {
        if likely.contains(&place(usage)) {
            usage.certainty = Certainty::Certain;
        }
        let is_sure_attribute = is_certain(usage) && is_attribute(lookup, usage);
        if is_sure_attribute && hazards::means_another(lookup, usage, related) {
            usage.certainty = Certainty::Possible;
        }
    }
    let is_changed = |usage: &&Usage| is_certain(usage) && likely.contains(&place(usage));
    let changed: Vec<Usage> = all.found.iter().filter(is_changed).cloned().collect();
    if !changed.is_empty() {
        let count = counted(changed.len(), "changed place");
        let why = format!("{count} may mean another `{name}`");
        doubts.report(Doubt::new(why, listed(&changed)));
    }
    let uses = sorted(all, name, doubts)?;
    if is_class || !is_member && doubts.modules_in_doubt() {
        doubts.add(no_attribute(lookup, name, &uses))?;
    } else if !is_member {
        let others = lookup.index().reads_of_namespaces(name);
        doubts.add(no_other_use(name, others, &uses))?;
    }
    Ok(uses)
}

/// Returns the uses on objects of unknown type that are changed as well: those of a name that nothing
/// else in the project has, and that types from outside do not commonly have.
fn changed_likely_uses(
    lookup: &Lookup,
    all: &Usages,
    related: &[SymbolPath],
    doubts: &Doubts,
) -> BTreeSet<(FilePath, u32, u32)> {
    let likely = all.found.iter();
    let likely = likely.filter(|usage| usage.certainty == Certainty::Likely);
    let likely: BTreeSet<_> = likely.map(place).collect();
    let are_changed = !likely.is_empty()
        && doubts.likely_uses() == LikelyUses::Changed
        && lookup.index().are_only_attributes(related);
    match are_changed {
        true => likely,
        false => BTreeSet::new(),
    }
}

fn of_symbol(lookup: &Lookup, path: &SymbolPath, examples: &Examples) -> Result<Usages, String> {
    let mut usages = lookup.usages(&path.to_string(), USES_MOST);
    if let Some(index) = &examples.index {
        let found = index.references(&path.to_string(), USES_MOST).found;
        let found = examples.uses(lookup, found, path.base_name());
        usages.found.extend(found);
    }
    match lookup.symbol(path)?.symbol.kind {
        SymbolKind::Method => {}
        // Uses of this name as an attribute of an object of unknown type are ignored, because the
        // symbol is not an attribute of an object.
        SymbolKind::Module | SymbolKind::Class | SymbolKind::Function => {
            usages
                .found
                .retain(|usage| is_certain(usage) || !is_attribute(lookup, usage));
        }
    }
    Ok(usages)
}

/// Returns the certain uses sorted by file.
///
/// # Errors
/// Returns the doubt if some uses are not certain, or not all uses are known.
pub(super) fn sorted(
    usages: Usages,
    name: &str,
    doubts: &mut Doubts,
) -> Result<Vec<Usage>, String> {
    let are_all_found = are_all_found(&usages, name);
    let (mut sure, unsure): (Vec<Usage>, Vec<Usage>) =
        usages.found.into_iter().partition(is_certain);
    if !unsure.is_empty() {
        let count = counted(unsure.len(), "place");
        let why = format!("{count} may mean another `{name}`");
        let doubt = Doubt::new(why, listed(&unsure));
        doubts.add_unsure(unsure, doubt)?;
    }
    doubts.add(are_all_found)?;
    sure.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    Ok(sure)
}

fn are_all_found(usages: &Usages, name: &str) -> Result<(), Doubt> {
    let why = unknown_uses(name);
    match usages.complete {
        true => Ok(()),
        false if usages.gaps.is_empty() => Err(why.into()),
        false => {
            let places = usages.gaps.iter();
            let places = places.map(|(file, line)| format!("{file}:{line}"));
            let why = format!("{why}: the module of an import is not found");
            Err(Doubt::new(why, places.collect()))
        }
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

fn place(usage: &Usage) -> (FilePath, u32, u32) {
    (usage.file.clone(), usage.line, usage.column)
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
/// Returns a doubt that lists the strings, or the lines of scripts and templates.
pub(super) fn in_no_string(lookup: &Lookup, name: &str) -> Result<(), Doubt> {
    in_no_string_but(lookup, name, &[])
}

/// Like [`in_no_string`], but ignores strings in `known` lines.
pub(super) fn in_no_string_but(
    lookup: &Lookup,
    name: &str,
    known: &[(FilePath, u32)],
) -> Result<(), Doubt> {
    let mut found = lookup.index().in_strings(name);
    found.retain(|one| !known.contains(&(one.file.clone(), one.line)));
    if !found.is_empty() {
        let why = in_strings::kind_of(name, "occurs", &found);
        return Err(Doubt::new(why, in_strings::places(&found)));
    }
    let places = looked_up(lookup, name);
    match places.is_empty() {
        true => Ok(()),
        false => Err(Doubt::new(may_be_looked_up(name), places)),
    }
}

/// Checks that no object of unknown type has the name as an attribute. Such an object may be the module
/// under another name, as `django.conf.settings` is.
///
/// # Errors
/// Returns a doubt that lists the places.
pub(super) fn no_attribute(lookup: &Lookup, name: &str, known: &[Usage]) -> Result<(), Doubt> {
    let mut others = lookup.index().reads_of_any(name);
    others.retain(|usage| !is_test_file(&usage.file));
    no_other_use(name, others, known)
}

/// Checks that all of `others` are `known` uses of the name.
fn no_other_use(name: &str, mut others: Vec<Usage>, known: &[Usage]) -> Result<(), Doubt> {
    let known: BTreeSet<_> = known.iter().map(place).collect();
    others.retain(|usage| !known.contains(&place(usage)));
    match others.is_empty() {
        true => Ok(()),
        false => {
            let why = format!("`{name}` may be used elsewhere as well");
            Err(Doubt::new(why, listed(&others)))
        }
    }
}

/// Checks that the modules that define or import a name bind it only once. A name that is bound
/// twice (`try: from fast import f`, `except ImportError: from slow import f`) cannot be renamed in only one
/// of the two places.
///
/// # Errors
/// Returns a message that lists the other definitions and imports.
pub(super) fn bound_once(
    lookup: &Lookup,
    (file, name): (&FilePath, &str),
    uses: &[Usage],
) -> Result<(), String> {
    let mut files: BTreeSet<&FilePath> = BTreeSet::from([file]);
    files.extend(uses.iter().filter(|one| one.is_import).map(|one| &one.file));
    let mut others = Vec::new();
    for file in files {
        let tree = lookup.tree(file)?;
        let line_at = |at: usize| tree.line_starts().partition_point(|start| *start <= at);
        let in_file = uses.iter().filter(|one| one.file == *file);
        let mut own: BTreeSet<usize> = in_file.map(|one| one.line as usize).collect();
        let defined = (tree.symbols().iter()).filter(|one| one.parent == Some(SymbolId(0)));
        let defined = defined.filter(|one| one.path.base_name() == name);
        own.extend(defined.map(|one| line_at(one.name.start)));
        let bound = bound_at(&tree, name).into_iter();
        let bound: Vec<usize> = bound.map(line_at).collect();
        let is_own = |line: &usize| own.contains(line);
        if bound.iter().any(is_own) {
            let rest = bound.iter().filter(|line| !is_own(line));
            others.extend(rest.map(|line| format!("{file}:{line}")));
        }
    }
    match others.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "`{name}` has another meaning as well, which would keep the name: {}",
            first_of(others)
        )),
    }
}

/// Checks that no string is the name of the module: who loads the module by it may use any of its
/// variables, as Django uses the settings that `DJANGO_SETTINGS_MODULE` names.
///
/// # Errors
/// Returns a doubt that lists the strings.
pub(super) fn module_in_no_string(
    lookup: &Lookup,
    file: &FilePath,
    name: &str,
) -> Result<(), Doubt> {
    for module in module_names(file) {
        let mut found = lookup.index().in_strings(&module);
        let quoted = ['"', '\''].map(|quote| format!("{quote}{module}{quote}"));
        found.retain(|one| {
            let text = lookup.index().snapshot().read(&one.file);
            let text = text.as_deref().unwrap_or_default();
            let line = text.lines().nth((one.line as usize).saturating_sub(1));
            let is_whole = |line: &str| quoted.iter().any(|quoted| line.contains(quoted));
            line.is_some_and(|line| is_whole(line) && !line.contains("getLogger("))
        });
        if !found.is_empty() {
            let why = format!("`{module}` is loaded by its name, so `{name}` may be used there");
            return Err(Doubt::new(why, in_strings::places(&found)));
        }
    }
    Ok(())
}

/// Returns the names by which a module in a package can be imported, from different directories.
fn module_names(file: &FilePath) -> Vec<String> {
    let path = file.as_str();
    let Some(path) = path.strip_suffix(".py") else {
        return Vec::new();
    };
    let parts: Vec<&str> = path.trim_end_matches("/__init__").split('/').collect();
    let starts = 0..parts.len().saturating_sub(1);
    starts.map(|start| parts[start..].join(".")).collect()
}

pub(super) fn places(uses: &[Usage]) -> String {
    let mut named = listed(uses);
    named.dedup();
    first_of(named)
}

fn listed(uses: &[Usage]) -> Vec<String> {
    let named = uses.iter();
    named
        .map(|usage| format!("{}:{}", usage.file, usage.line))
        .collect()
}

/// Returns the byte offset of a use in its file.
pub(super) fn offset(tree: &SymbolTree, usage: &Usage) -> usize {
    let line = (usage.line as usize).saturating_sub(1);
    let start = tree.line_starts().get(line).copied();
    start.unwrap_or_default() + usage.column as usize
}
