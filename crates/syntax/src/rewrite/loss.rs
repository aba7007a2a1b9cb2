//! Finds the symbols that a rewrite changed, and the code that it removed.

use std::collections::{HashMap, HashSet};

use super::super::{Loss, Symbol, SymbolTree};
use starling_text::ByteRange;

/// Returns the names of the symbols whose own text changed, or which were added or removed. The
/// symbols of the new tree come first, in order, followed by the removed symbols.
pub(super) fn touched(old: &SymbolTree, new: &SymbolTree, deleted: &[ByteRange]) -> Vec<String> {
    let mut removed = Vec::new();
    let mut before = HashMap::new();
    for (symbol, expected) in old.symbols().iter().zip(expected_names(old, deleted)) {
        match expected {
            Some(name) => {
                before.insert(name, symbol);
            }
            None => removed.push(symbol),
        }
    }
    let mut touched = Vec::new();
    for symbol in new.symbols() {
        let was = before.remove(&symbol.path.name);
        if was.map(|was| own_text(old, was)) != Some(own_text(new, symbol)) {
            touched.push(symbol.path.name.clone());
        }
    }
    removed.extend(before.into_values());
    removed.sort_by_key(|symbol| symbol.definition.start);
    for symbol in removed {
        if !touched.contains(&symbol.path.name) {
            touched.push(symbol.path.name.clone());
        }
    }
    touched
}

/// Returns the name that each symbol has after the deletions if nothing else changes. Redefinitions
/// such as `f#2` are renumbered. `None` marks a deleted symbol.
fn expected_names(tree: &SymbolTree, deleted: &[ByteRange]) -> Vec<Option<String>> {
    let mut names: Vec<Option<String>> = Vec::with_capacity(tree.symbols().len());
    let mut seen: HashMap<String, usize> = HashMap::new();
    for symbol in tree.symbols() {
        let parent = symbol.parent.map(|id| names[id.0].clone());
        let name = match parent {
            None => Some(String::new()),
            _ if deleted.iter().any(|span| span.covers(symbol.span)) => None,
            Some(None) => None,
            Some(Some(parent)) => {
                let dot = if parent.is_empty() { "" } else { "." };
                let name = format!("{parent}{dot}{}", symbol.contract.name);
                let count = seen.entry(name.clone()).or_insert(0);
                *count += 1;
                Some(if *count > 1 {
                    format!("{name}#{count}")
                } else {
                    name
                })
            }
        };
        names.push(name);
    }
    names
}

fn own_text(tree: &SymbolTree, symbol: &Symbol) -> String {
    let ranges = tree.own_ranges(symbol);
    ranges.iter().map(|range| range.of(tree.text())).collect()
}

/// Compares two trees and returns the lost code. The content of a `deleted` span does not count. A
/// `target` (a symbol that was rewritten by name) may be renamed.
pub(super) fn losses(
    old: &SymbolTree,
    new: &SymbolTree,
    targets: &[&Symbol],
    deleted: &[ByteRange],
) -> Vec<Loss> {
    let is_deleted = |range: ByteRange| deleted.iter().any(|span| span.covers(range));
    let renamed = renames(old, new, targets);
    let mut losses = Vec::new();
    let mut lost: HashSet<&str> = HashSet::new();
    for (symbol, expected) in old.symbols().iter().zip(expected_names(old, deleted)) {
        let Some(expected) = expected else {
            continue;
        };
        match new.find(&new_name(&expected, &renamed)) {
            Some(now) => losses.extend(lost_parts(symbol, now)),
            None => {
                let parent = symbol
                    .parent
                    .map_or("", |id| old.get(id).path.name.as_str());
                if !lost.contains(parent) {
                    losses.push(Loss::Child {
                        name: symbol.path.name.clone(),
                    });
                }
                lost.insert(&symbol.path.name);
            }
        }
    }
    let comments = old.comments().iter().filter(|range| !is_deleted(**range));
    let comments: Vec<&str> = comments.map(|range| text_of(old, *range)).collect();
    let now = new.comments().iter().map(|range| text_of(new, *range));
    losses.extend(lost_comments(&comments, &now.collect::<Vec<_>>()));
    losses
}

/// Returns the comments that were lost. A reworded or extended comment does not count: each new
/// comment accounts for one old comment with most of its words in common.
fn lost_comments(before: &[&str], after: &[&str]) -> Vec<Loss> {
    let gone = missing(before.iter().copied(), after.iter().copied());
    let mut fresh = missing(after.iter().copied(), before.iter().copied());
    let is_lost = |text: &&str| {
        let reworded = fresh.iter().position(|now| shares_most_words(text, now));
        reworded.map(|place| fresh.remove(place)).is_none()
    };
    gone.into_iter()
        .filter(is_lost)
        .map(|text| Loss::Comment {
            text: text.to_owned(),
        })
        .collect()
}

fn shares_most_words(old: &str, new: &str) -> bool {
    let words = |text: &str| -> HashSet<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let old = words(old);
    2 * old.intersection(&words(new)).count() > old.len()
}

fn text_of(tree: &SymbolTree, range: ByteRange) -> &str {
    range.of(tree.text()).trim_end()
}

fn lost_parts(old: &Symbol, new: &Symbol) -> Vec<Loss> {
    let decorators = |symbol: &'_ Symbol| symbol.contract.decorators.clone();
    let mut losses: Vec<Loss> = missing(decorators(old).into_iter(), decorators(new).into_iter())
        .into_iter()
        .map(|text| Loss::Decorator { text })
        .collect();
    if old.doc.is_some() && new.doc.is_none() {
        losses.push(Loss::Docstring);
    }
    losses
}

/// Returns the items of `before` that `after` lacks. Repeated items are counted.
fn missing<T: std::hash::Hash + Eq>(
    before: impl Iterator<Item = T>,
    after: impl Iterator<Item = T>,
) -> Vec<T> {
    let mut present: HashMap<T, usize> = HashMap::new();
    for item in after {
        *present.entry(item).or_default() += 1;
    }
    before
        .filter(|item| match present.get_mut(item) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            Some(_) | None => true,
        })
        .collect()
}

/// Returns the old and the new name of each renamed target. A missing target was renamed if its
/// parent has exactly one new child of the same kind.
fn renames<'t>(
    old: &'t SymbolTree,
    new: &'t SymbolTree,
    targets: &[&'t Symbol],
) -> Vec<(&'t str, &'t str)> {
    let parent = |tree: &'t SymbolTree, symbol: &Symbol| {
        symbol
            .parent
            .map_or("", |id| tree.get(id).path.name.as_str())
    };
    targets
        .iter()
        .filter(|target| new.find(&target.path.name).is_none())
        .filter_map(|target| {
            let mut added = new.symbols().iter().filter(|symbol| {
                old.find(&symbol.path.name).is_none()
                    && symbol.kind == target.kind
                    && parent(new, symbol) == parent(old, target)
            });
            let only = added.next().filter(|_| added.next().is_none())?;
            Some((target.path.name.as_str(), only.path.name.as_str()))
        })
        .collect()
}

fn new_name(name: &str, renamed: &[(&str, &str)]) -> String {
    renamed
        .iter()
        .find_map(|(old, new)| match name.strip_prefix(old)? {
            rest if rest.is_empty() || rest.starts_with('.') => Some(format!("{new}{rest}")),
            _ => None,
        })
        .unwrap_or_else(|| name.to_owned())
}
