//! Finds the symbols that a rewrite changed, and the code that it removed.

use std::collections::{HashMap, HashSet};

use super::super::{Loss, Symbol, SymbolId, SymbolTree};
use starling_text::ByteRange;

/// Returns the names of the symbols that were added or removed, or whose own text changed. The
/// symbols of the new tree come first, in order, followed by the removed symbols.
pub(super) fn touched(old: &SymbolTree, new: &SymbolTree, deleted: &[ByteRange]) -> Vec<String> {
    let now = matched(old, new, deleted, &[]);
    let mut was: Vec<Option<&Symbol>> = vec![None; new.symbols().len()];
    let mut removed = Vec::new();
    for (symbol, now) in old.symbols().iter().zip(now) {
        match now {
            Some(id) => was[id.0] = Some(symbol),
            None => removed.push(symbol),
        }
    }
    let mut touched = Vec::new();
    for (symbol, was) in new.symbols().iter().zip(was) {
        if was.map(|was| own_text(old, was)) != Some(own_text(new, symbol)) {
            touched.push(symbol.path.name.clone());
        }
    }
    removed.sort_by_key(|symbol| symbol.definition.start);
    for symbol in removed {
        if !touched.contains(&symbol.path.name) {
            touched.push(symbol.path.name.clone());
        }
    }
    touched
}

/// Returns the names of the symbols of the new tree that did not exist in the old tree.
pub(super) fn added(old: &SymbolTree, new: &SymbolTree, deleted: &[ByteRange]) -> Vec<String> {
    let now = matched(old, new, deleted, &[]);
    let known: HashSet<usize> = now.into_iter().flatten().map(|id| id.0).collect();
    let all = new.symbols().iter().enumerate();
    let added = all.filter(|(at, _)| !known.contains(at));
    added.map(|(_, symbol)| symbol.path.name.clone()).collect()
}

/// Returns for each symbol of the old tree the corresponding symbol of the new tree, or `None` if
/// it was removed. Definitions of the same name in the same scope are matched in order. If their
/// number changed, definitions with the same text are matched first. For example, if the first of
/// three is renamed, `f#2` becomes `f`. `renamed` are symbols that are known to have a new name.
fn matched(
    old: &SymbolTree,
    new: &SymbolTree,
    deleted: &[ByteRange],
    renamed: &[(SymbolId, SymbolId)],
) -> Vec<Option<SymbolId>> {
    let mut now: Vec<Option<SymbolId>> = vec![None; old.symbols().len()];
    now[0] = Some(SymbolId(0));
    for (old_id, new_id) in renamed {
        now[old_id.0] = Some(*new_id);
    }
    let is_deleted = |id: &SymbolId| {
        let span = old.get(*id).span;
        deleted.iter().any(|deleted| deleted.covers(span))
    };
    for (at, symbol) in old.symbols().iter().enumerate() {
        let Some(parent) = now[at] else {
            continue;
        };
        let kept = symbol.children.iter().filter(|id| !is_deleted(id));
        let kept = kept.filter(|id| !renamed.iter().any(|(was, _)| was == *id));
        let mut twins: HashMap<&str, (Vec<SymbolId>, Vec<SymbolId>)> = HashMap::new();
        for id in kept {
            let name = old.get(*id).contract.name.as_str();
            twins.entry(name).or_default().0.push(*id);
        }
        let children = new.get(parent).children.iter();
        for id in children.filter(|id| !renamed.iter().any(|(_, is)| is == *id)) {
            let name = new.get(*id).contract.name.as_str();
            twins.entry(name).or_default().1.push(*id);
        }
        for (was, is) in twins.into_values() {
            let text = (
                |id: &SymbolId| own_text(old, old.get(*id)),
                |id: &SymbolId| own_text(new, new.get(*id)),
            );
            for (was, is) in in_order(&was, &is, text) {
                now[was.0] = Some(is);
            }
        }
    }
    now
}

/// Matches the old definitions of a name with the new ones. If their numbers differ, definitions
/// with the same text are matched first, and the definitions between them are matched in order.
fn in_order(
    old: &[SymbolId],
    new: &[SymbolId],
    (old_text, new_text): (impl Fn(&SymbolId) -> String, impl Fn(&SymbolId) -> String),
) -> Vec<(SymbolId, SymbolId)> {
    let (mut pairs, mut from) = (Vec::new(), (0, 0));
    let pair = |old: &[SymbolId], new: &[SymbolId]| -> Vec<(SymbolId, SymbolId)> {
        old.iter().copied().zip(new.iter().copied()).collect()
    };
    if old.len() != new.len() {
        let texts: Vec<String> = new.iter().map(new_text).collect();
        for (at, id) in old.iter().enumerate() {
            let text = old_text(id);
            let same = texts[from.1..].iter().position(|other| *other == text);
            let Some(same) = same.map(|distance| from.1 + distance) else {
                continue;
            };
            pairs.extend(pair(&old[from.0..at], &new[from.1..same]));
            pairs.push((*id, new[same]));
            from = (at + 1, same + 1);
        }
    }
    pairs.extend(pair(&old[from.0..], &new[from.1..]));
    pairs
}

fn own_text(tree: &SymbolTree, symbol: &Symbol) -> String {
    let ranges = tree.own_ranges(symbol);
    ranges.iter().map(|range| range.of(tree.text())).collect()
}

/// Compares two trees and returns the code that was lost. The content of a `deleted` span does not
/// count as lost. A `target` (a symbol that was rewritten by name) may be renamed.
pub(super) fn losses(
    old: &SymbolTree,
    new: &SymbolTree,
    targets: &[&Symbol],
    deleted: &[ByteRange],
) -> Vec<Loss> {
    let is_deleted = |range: ByteRange| deleted.iter().any(|span| span.covers(range));
    let renamed = renames(old, new, targets, deleted);
    let now = matched(old, new, deleted, &renamed);
    let mut losses = Vec::new();
    let mut lost: HashSet<&str> = HashSet::new();
    for (symbol, now) in old.symbols().iter().zip(now) {
        if is_deleted(symbol.span) {
            continue;
        }
        match now {
            Some(now) => losses.extend(lost_parts(symbol, new.get(now))),
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

/// Returns the comments that were lost. A reworded or extended comment is not lost: a new comment
/// replaces one old comment if most of their words are the same.
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

/// Returns the old and the new symbol of each target that was renamed. A target was renamed if its
/// old name is missing and its parent has exactly one new child of the same kind.
fn renames(
    old: &SymbolTree,
    new: &SymbolTree,
    targets: &[&Symbol],
    deleted: &[ByteRange],
) -> Vec<(SymbolId, SymbolId)> {
    let now = matched(old, new, deleted, &[]);
    let known: HashSet<usize> = now.iter().flatten().map(|id| id.0).collect();
    let all = old.symbols().iter().enumerate();
    let missing = all.filter(|(at, symbol)| {
        let is_target = targets.iter().any(|target| target.path == symbol.path);
        is_target && now[*at].is_none()
    });
    missing
        .filter_map(|(at, target)| {
            let parent = now[target.parent?.0]?;
            let children = new.get(parent).children.iter();
            let mut added =
                children.filter(|id| !known.contains(&id.0) && new.get(**id).kind == target.kind);
            let only = added.next().filter(|_| added.next().is_none())?;
            Some((SymbolId(at), *only))
        })
        .collect()
}
