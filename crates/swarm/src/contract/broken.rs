//! Finds the code that a changed contract breaks: calls that are no longer valid, reads of a property that
//! became a method, calls of a method that became a property, overrides that are no longer compatible, and
//! all mentions of removed symbols.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::check::property_uses::Turn;
use crate::lookup::Lookup;
use crate::state::contracts::Mentions;
use crate::state::draft::Draft;
use starling_index::{Certainty, Heritage, Usage, is_test_file};
use starling_syntax::{
    Contract, FilePath, Receiver, Symbol, SymbolKind, SymbolPath, SymbolTree, arguments, object_of,
};

/// Maximum number of uses of one symbol that are considered.
const REFERENCES_MOST: usize = 400;

/// A location in the code that a changed contract (the parts of a symbol on which its users rely,
/// such as the name and the parameters) breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokenLocation {
    /// The innermost symbol at the location.
    pub symbol: SymbolPath,
    pub line: u32,
    /// Whether the location is a method that overrides the changed method.
    pub is_override: bool,
    /// The method that a call at this location names, if the call can reach the changed method only
    /// through that method on some objects; `None` for a direct call.
    pub through: Option<SymbolPath>,
}

/// Returns the symbols that a draft removes, each with the locations that mention it before the
/// removal. A member that is removed together with its class has none if a base class has it, too.
pub(crate) fn mentions_of_the_gone(lookup: &Lookup, draft: &Draft) -> Mentions {
    let after = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.text));
    let gone = draft
        .breaking
        .iter()
        .filter(|symbol| after.find(&symbol.name).is_none());
    // Without the class, the same uses reach the member of the base class.
    let goes_with_class = |symbol: &SymbolPath| {
        let class = symbol.name.rsplit_once('.').map(|(class, _)| class);
        class.is_some_and(|class| after.find(class).is_none())
            && lookup.index().heritage(symbol) == Heritage::Overrides
    };
    let mentions = |symbol: &SymbolPath| {
        if goes_with_class(symbol) {
            return (symbol.clone(), BTreeSet::new());
        }
        // If a file imports the symbol under an alias, only the import mentions its name.
        let name = symbol.base_name().split('#').next().unwrap_or_default();
        let usages = sure_usages(lookup, symbol).into_iter();
        let named = usages.filter(|usage| usage.text.contains(name));
        let places = named.map(|usage| (usage.file, usage.text)).collect();
        (symbol.clone(), places)
    };
    gone.map(mentions).collect()
}

/// Which files are searched for broken code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Code,
    Tests,
}

impl Scope {
    fn includes(self, file: &FilePath) -> bool {
        is_test_file(file) == (self == Scope::Tests)
    }
}

/// Returns the locations that a draft breaks by changing the contract of `changed`, except
/// locations in tests and in the symbol itself. `lookup` is the workspace before the draft. If
/// `gone` contains the mentions of removed symbols, `lookup` may also be the workspace after the
/// draft.
pub(crate) fn broken(
    lookup: &Lookup,
    draft: &Draft,
    changed: &SymbolPath,
    gone: &Mentions,
) -> Vec<BrokenLocation> {
    broken_in(Scope::Code, lookup, draft, changed, gone)
}

/// Like [`broken`], but searches only the files of one scope.
pub(crate) fn broken_in(
    scope: Scope,
    lookup: &Lookup,
    draft: &Draft,
    changed: &SymbolPath,
    gone: &Mentions,
) -> Vec<BrokenLocation> {
    let contract = |text: &Arc<str>| {
        let tree = SymbolTree::parse(draft.file.clone(), Arc::clone(text));
        tree.find(&changed.name)
            .map(|symbol| symbol.contract.clone())
    };
    let elsewhere = |symbol: &SymbolPath| !changed.encloses(symbol) && scope.includes(&symbol.file);
    if let Some(places) = gone.get(changed) {
        let mut sites = still_mentioned(lookup, places);
        sites.retain(|site| elsewhere(&site.symbol));
        if !sites.is_empty() {
            let moved = uses_of_others(lookup, changed);
            sites.retain(|site| !means_another(lookup, site, changed.base_name(), &moved));
        }
        return sites;
    }
    let (Some(old), Some(new)) = (contract(&draft.base), contract(&draft.text)) else {
        return Vec::new();
    };
    let direct = sure_usages(lookup, changed).into_iter();
    let indirect = lookup.index().indirect_uses(changed).into_iter();
    let mut calls: Vec<(Usage, Option<SymbolPath>)> = direct.map(|usage| (usage, None)).collect();
    calls.extend(indirect.map(|one| (one.usage, one.through)));
    let turn = Turn::of(&old, &new);
    calls.retain(|(usage, _)| elsewhere(&usage.symbol) && !usage.is_import);
    calls.retain(|(usage, _)| {
        let is_turned = turn.is_some_and(|turn| turn.breaks(usage.is_call));
        is_turned || usage.is_call && !holds(lookup, usage, changed, &old, &new)
    });
    let calls = calls.into_iter().map(|(usage, through)| BrokenLocation {
        symbol: usage.symbol,
        line: usage.line,
        is_override: false,
        through,
    });
    let mut sites = match scope {
        Scope::Code => overrides(lookup, changed, &new),
        Scope::Tests => Vec::new(),
    };
    sites.extend(calls);
    sites
}

/// Returns the uses that certainly refer to a symbol. For a constructor, the uses of its class are
/// included.
pub(crate) fn sure_usages(lookup: &Lookup, symbol: &SymbolPath) -> Vec<Usage> {
    let of = |symbol: &SymbolPath| lookup.usages(&symbol.to_string(), REFERENCES_MOST).found;
    let mut found = of(symbol);
    if makes(symbol)
        && let Some((class, _)) = symbol.name.rsplit_once('.')
    {
        let made = of(&SymbolPath::new(symbol.file.clone(), class));
        found.extend(made.into_iter().filter(|usage| usage.is_call));
    }
    found.retain(|usage| usage.certainty != Certainty::Possible);
    found
}

/// Returns the calls that may reach a method but do not certainly refer to it, each with the method
/// that the call names.
pub(crate) fn indirect_calls(
    lookup: &Lookup,
    symbol: &SymbolPath,
) -> Vec<(Usage, Option<SymbolPath>)> {
    let mut through = lookup.index().indirect_uses(symbol);
    through.extend(lookup.index().uses_through_protocols(symbol));
    let through = through.into_iter();
    let mut calls: Vec<_> = through.map(|one| (one.usage, one.through)).collect();
    let place = |usage: &Usage| (usage.file.clone(), usage.line, usage.column);
    let known: BTreeSet<_> = calls.iter().map(|(usage, _)| place(usage)).collect();
    let mut unsure = lookup.usages(&symbol.to_string(), REFERENCES_MOST).found;
    unsure.retain(|one| one.certainty == Certainty::Possible && !known.contains(&place(one)));
    calls.extend(unsure.into_iter().map(|usage| (usage, None)));
    calls
}

fn makes(symbol: &SymbolPath) -> bool {
    ["__init__", "__new__"].contains(&symbol.base_name())
}

/// Returns the lines that mentioned a removed symbol before the removal and still exist, at their
/// current positions.
fn still_mentioned(lookup: &Lookup, places: &BTreeSet<(FilePath, String)>) -> Vec<BrokenLocation> {
    let mut sites = Vec::new();
    for (file, text) in places {
        let Ok(tree) = lookup.tree(file) else {
            continue;
        };
        let lines = (1..).zip(tree.text().lines());
        sites.extend(
            lines
                .filter(|(_, line)| line.trim() == text)
                .map(|(line, _)| BrokenLocation {
                    symbol: tree.at_line(line).path.clone(),
                    line,
                    is_override: false,
                    through: None,
                }),
        );
    }
    sites
}

/// Returns the uses of other symbols that have the same name as a removed symbol. Of a method, uses that
/// are only likely count if the other one has the same class, to which it was moved.
fn uses_of_others(lookup: &Lookup, gone: &SymbolPath) -> Vec<(FilePath, u32)> {
    let others = lookup.index().definitions(gone.base_name()).into_iter();
    let others = others
        .map(|one| one.symbol)
        .filter(|symbol| symbol != gone && !is_test_file(&symbol.file));
    let usages = others.flat_map(|symbol| {
        let mut uses = sure_usages(lookup, &symbol);
        let is_same = symbol.name == gone.name;
        uses.retain(|usage| is_same || usage.certainty == Certainty::Certain);
        uses
    });
    usages.map(|usage| (usage.file, usage.line)).collect()
}

/// Returns whether all mentions of a name at a location refer to another symbol, such as a moved
/// function that is imported there from its new module.
fn means_another(
    lookup: &Lookup,
    site: &BrokenLocation,
    name: &str,
    others: &[(FilePath, u32)],
) -> bool {
    let place = (site.symbol.file.clone(), site.line);
    let uses = others.iter().filter(|one| **one == place).count();
    let Ok(tree) = lookup.tree(&site.symbol.file) else {
        return false;
    };
    let line = tree
        .text()
        .lines()
        .nth((site.line as usize).saturating_sub(1));
    let words = line.map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_')));
    let mentions = words.into_iter().flatten().filter(|word| *word == name);
    uses > 0 && uses >= mentions.count()
}

/// Returns whether a call is still valid under the new contract and passes its arguments to the
/// same parameters.
fn holds(
    lookup: &Lookup,
    usage: &Usage,
    changed: &SymbolPath,
    old: &Contract,
    new: &Contract,
) -> bool {
    let Ok(tree) = lookup.tree(&usage.file) else {
        return false;
    };
    let Some(given) = arguments(&tree, offset(&tree, usage)) else {
        return false;
    };
    let receiver = receiver(lookup, &tree, usage, changed);
    old.call_holds(new, &given, receiver)
}

/// Returns the byte offset of a use in its file.
pub(super) fn offset(tree: &SymbolTree, usage: &Usage) -> usize {
    let line = (usage.line as usize).saturating_sub(1);
    let start = tree.line_starts().get(line).copied();
    start.unwrap_or_default() + usage.column as usize
}

/// Returns how the first argument of a method call is passed: implicitly by the object, or
/// explicitly if the class is named.
fn receiver(lookup: &Lookup, tree: &SymbolTree, usage: &Usage, changed: &SymbolPath) -> Receiver {
    let Ok(found) = lookup.symbol(changed) else {
        return Receiver::Given;
    };
    if found.symbol.kind != SymbolKind::Method {
        return Receiver::Given;
    }
    let decorated = |name: &str| {
        let decorators = found.symbol.contract.decorators.iter();
        decorators
            .clone()
            .any(|one| one.trim_start_matches('@') == name)
    };
    let class = changed.name.rsplit('.').nth(1).unwrap_or_default();
    let object = object_of(tree, offset(tree, usage));
    let of_class = object.is_some_and(|object| object.rsplit('.').next() == Some(class));
    match (
        decorated("staticmethod"),
        decorated("classmethod"),
        of_class,
    ) {
        (true, _, _) | (false, false, true) => Receiver::Given,
        (false, true, _) | (false, false, false) => Receiver::Bound,
    }
}

/// Returns the methods that override a changed method and are not compatible with it.
fn overrides(lookup: &Lookup, changed: &SymbolPath, new: &Contract) -> Vec<BrokenLocation> {
    let is_private = changed.base_name().starts_with("__") && !changed.base_name().ends_with("__");
    if makes(changed) || is_private {
        return Vec::new();
    }
    let mut overriding = lookup.index().overriding(changed);
    overriding.extend(lookup.overrides(changed));
    overriding.sort();
    overriding.dedup();
    // Skip properties with a setter and overloads, because it is unknown which of their definitions overrides
    // the changed symbol.
    let has_twin = |path: &SymbolPath| {
        let mut others = overriding.iter().filter(|other| *other != path);
        others.any(|other| other.is_twin_of(path))
    };
    let is_compared = |path: &&SymbolPath| !is_test_file(&path.file) && !has_twin(path);
    let overriding = overriding.iter().filter(is_compared);
    let own = overriding.filter_map(|path| lookup.symbol(path).ok());
    own.filter_map(|own| misfit(&own.tree, &own.symbol, new))
        .collect()
}

/// Returns the location of an overriding method if it is not compatible with the new contract;
/// `None` if it is compatible.
fn misfit(tree: &SymbolTree, own: &Symbol, new: &Contract) -> Option<BrokenLocation> {
    (!own.contract.stands_in_for(new)).then(|| BrokenLocation {
        symbol: own.path.clone(),
        line: tree.line_of(own),
        is_override: true,
        through: None,
    })
}
