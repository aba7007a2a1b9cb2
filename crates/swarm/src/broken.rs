//! Which code a changed contract breaks: calls that do not hold any more, overrides that cannot stand
//! in, and every mention of what is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::gate::Draft;
use super::lookup::{Found, Lookup};
use starling_index::{Certainty, Usage, is_test_file};
use starling_syntax::{
    Contract, FilePath, Receiver, Symbol, SymbolKind, SymbolPath, SymbolTree, arguments, object_of,
};

/// Uses of one symbol that are looked at.
const REFERENCES_MOST: usize = 400;
/// How deep classes are followed to those that inherit from them.
const HEIRS_DEEP: usize = 4;

/// A place that a changed contract breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Site {
    /// The innermost symbol.
    pub symbol: SymbolPath,
    pub line: u32,
    /// It defines the method anew.
    pub is_override: bool,
}

/// Where symbols were mentioned before they went: afterwards only their names are left to go by.
pub(super) type Mentions = BTreeMap<SymbolPath, BTreeSet<(FilePath, String)>>;

/// The symbols that a draft takes away, with their mentions.
pub(super) fn mentions_of_the_gone(lookup: &Lookup, draft: &Draft) -> Mentions {
    let after = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.text));
    let gone = draft
        .breaking
        .iter()
        .filter(|symbol| after.find(&symbol.name).is_none());
    let mentions = |symbol: &SymbolPath| {
        // Under another name, the import alone is wrong.
        let name = symbol.base_name().split('#').next().unwrap_or_default();
        let usages = sure_usages(lookup, symbol).into_iter();
        let named = usages.filter(|usage| usage.text.contains(name));
        let places = named.map(|usage| (usage.file, usage.text)).collect();
        (symbol.clone(), places)
    };
    gone.map(mentions).collect()
}

/// Which files are looked at for what a change breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Code,
    Tests,
}

impl Scope {
    fn includes(self, file: &FilePath) -> bool {
        is_test_file(file) == (self == Scope::Tests)
    }
}

/// The places, outside tests and outside the symbol itself, that a draft breaks by what it does to the
/// contract of `changed`. `lookup` is the workspace before the draft, or after it with the mentions of
/// what is gone.
pub(super) fn broken(
    lookup: &Lookup,
    draft: &Draft,
    changed: &SymbolPath,
    gone: &Mentions,
) -> Vec<Site> {
    broken_in(Scope::Code, lookup, draft, changed, gone)
}

/// The same in the files of one scope.
pub(super) fn broken_in(
    scope: Scope,
    lookup: &Lookup,
    draft: &Draft,
    changed: &SymbolPath,
    gone: &Mentions,
) -> Vec<Site> {
    let contract = |text: &Arc<str>| {
        let tree = SymbolTree::parse(draft.file.clone(), Arc::clone(text));
        tree.find(&changed.name)
            .map(|symbol| symbol.contract.clone())
    };
    let elsewhere = |symbol: &SymbolPath| !changed.encloses(symbol) && scope.includes(&symbol.file);
    if let Some(places) = gone.get(changed) {
        let mut sites = still_mentioned(lookup, places);
        sites.retain(|site| elsewhere(&site.symbol));
        return sites;
    }
    let (Some(old), Some(new)) = (contract(&draft.base), contract(&draft.text)) else {
        return Vec::new();
    };
    let mut usages = sure_usages(lookup, changed);
    usages.retain(|usage| usage.is_call && elsewhere(&usage.symbol));
    usages.retain(|usage| !holds(lookup, usage, changed, &old, &new));
    let calls = usages.into_iter().map(|usage| Site {
        symbol: usage.symbol,
        line: usage.line,
        is_override: false,
    });
    let mut sites = match scope {
        Scope::Code => overrides(lookup, changed, &new),
        Scope::Tests => Vec::new(),
    };
    sites.extend(calls);
    sites
}

/// The uses of a symbol, and of its class where it makes the objects of one, that are no mere guesses.
fn sure_usages(lookup: &Lookup, symbol: &SymbolPath) -> Vec<Usage> {
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

fn makes(symbol: &SymbolPath) -> bool {
    ["__init__", "__new__"].contains(&symbol.base_name())
}

/// The lines that mentioned what is gone, where they stand now.
fn still_mentioned(lookup: &Lookup, places: &BTreeSet<(FilePath, String)>) -> Vec<Site> {
    let mut sites = Vec::new();
    for (file, text) in places {
        let Ok(tree) = lookup.tree(file) else {
            continue;
        };
        let lines = (1..).zip(tree.text().lines());
        sites.extend(
            lines
                .filter(|(_, line)| line.trim() == text)
                .map(|(line, _)| Site {
                    symbol: tree.at_line(line).path.clone(),
                    line,
                    is_override: false,
                }),
        );
    }
    sites
}

/// Whether a call does the same under the newer contract.
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

/// Where a use begins, in bytes of its file.
fn offset(tree: &SymbolTree, usage: &Usage) -> usize {
    let line = (usage.line as usize).saturating_sub(1);
    let start = tree.line_starts().get(line).copied();
    start.unwrap_or_default() + usage.column as usize
}

/// Who gives the first argument of a method: the object, but not where the class itself is named.
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

/// The methods that override a changed one and cannot stand in for it.
fn overrides(lookup: &Lookup, changed: &SymbolPath, new: &Contract) -> Vec<Site> {
    let is_private = changed.base_name().starts_with("__") && !changed.base_name().ends_with("__");
    let Some((class, method)) = changed.name.rsplit_once('.') else {
        return Vec::new();
    };
    if makes(changed) || is_private {
        return Vec::new();
    }
    let mut classes = vec![SymbolPath::new(changed.file.clone(), class)];
    let mut sites = Vec::new();
    let mut next = 0;
    for _ in 0..HEIRS_DEEP {
        let (from, to) = (next, classes.len());
        next = to;
        for at in from..to {
            for heir in heirs(lookup, &classes[at]) {
                if !classes.contains(&heir.symbol.path) {
                    sites.extend(override_in(&heir, method, new));
                    classes.push(heir.symbol.path);
                }
            }
        }
    }
    for path in lookup.overrides(changed) {
        let is_known = sites.iter().any(|site| site.symbol == path);
        let own = lookup.symbol(&path).ok().filter(|_| !is_known);
        sites.extend(own.and_then(|own| misfit(&own.tree, &own.symbol, new)));
    }
    sites
}

/// The classes that name another among their bases.
fn heirs(lookup: &Lookup, class: &SymbolPath) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for usage in sure_usages(lookup, class) {
        if usage.is_call || usage.is_import || is_test_file(&usage.file) {
            continue;
        }
        let Ok(heir) = lookup.symbol(&usage.symbol) else {
            continue;
        };
        let at = offset(&heir.tree, &usage);
        let in_head = at >= heir.symbol.name.end && at < heir.symbol.body.start;
        let is_known = found
            .iter()
            .any(|known| known.symbol.path == heir.symbol.path);
        if heir.symbol.kind == SymbolKind::Class && in_head && !is_known {
            found.push(heir);
        }
    }
    found
}

fn override_in(heir: &Found, method: &str, new: &Contract) -> Option<Site> {
    let name = format!("{}.{method}", heir.symbol.path.name);
    misfit(&heir.tree, heir.tree.find(&name)?, new)
}

/// A method that cannot stand in for the one that it overrides.
fn misfit(tree: &SymbolTree, own: &Symbol, new: &Contract) -> Option<Site> {
    (!own.contract.stands_in_for(new)).then(|| Site {
        symbol: own.path.clone(),
        line: tree.line_of(own),
        is_override: true,
    })
}
