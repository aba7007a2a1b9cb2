//! Transforms a change to a newer version of the text for which it was made. A line diff of the two
//! versions gives the position of each edit. But a diff can confuse similar lines: the user may
//! have changed the edited line and copied its old text elsewhere. So each position is checked
//! against the symbols of both versions.

use std::collections::BTreeSet;
use std::sync::Arc;

pub use self::made::{MadeChange, OtherLines};
use self::outline::Outline;
use super::{FilePath, Language, Symbol, SymbolTree};
use starling_text::{ByteRange, Carried, ChangeSet, Conflict, Edit, whole_lines};

mod made;
mod outline;
#[cfg(test)]
mod tests;

/// Returns the change transformed to `current`, a newer version of its base text. An edit stays in
/// the symbol for which it was made, even if that symbol was renamed. A module-level edit stays at
/// module level. The change moves no line that is new in `current` to another symbol.
///
/// # Errors
/// The user and the change edited the same line, or the position of an edit in `current` is
/// uncertain.
pub fn carry(
    file: &FilePath,
    base: &str,
    changes: &ChangeSet,
    current: &str,
) -> Result<ChangeSet, Conflict> {
    if base == current {
        return Ok(changes.clone());
    }
    let carried = changes.over(base, &ChangeSet::between(base, current))?;
    checked(file, (base, changes), current, carried)
}

/// Like [`carry`], but compares whole lines. As a result, text that the user typed into a line does
/// not conflict with an edit of the line next to it.
///
/// # Errors
/// The errors are the same as those of [`carry`].
pub fn carry_lines(
    file: &FilePath,
    base: &str,
    changes: &ChangeSet,
    current: &str,
) -> Result<ChangeSet, Conflict> {
    let carried = changes.over(base, &ChangeSet::between_lines(base, current))?;
    checked(file, (base, changes), current, carried)
}

fn checked(
    file: &FilePath,
    (base, changes): (&str, &ChangeSet),
    current: &str,
    carried: Carried,
) -> Result<ChangeSet, Conflict> {
    let Some((first, _)) = carried.edits.first() else {
        return Ok(carried.changes);
    };
    let typed = ChangeSet::between_lines(base, current);
    let unsure = |edit: &Edit, why: String| Conflict {
        ours: edit.range,
        theirs: nearest(&typed, edit.range),
        unsure: Some(why),
    };
    // If no definition and no string changes, every line stays between the same two definitions, so
    // the positions need no check.
    let has_symbols = Language::of(file) != Language::Plain;
    if has_symbols && (rearranges(base, changes) || rearranges(base, &typed)) {
        let moved = carried.edits.iter().map(|(_, moved)| moved.clone());
        let made_in = TreesOfChange::new(file, current, &carried.changes, moved.collect());
        let made_for = TreesOfChange::new(file, base, changes, changes.edits().to_vec());
        let is_broken = made_for.is_broken() || made_in.is_broken();
        let (was, is) = (made_for.symbols(is_broken), made_in.symbols(is_broken));
        for (edit, moved) in &carried.edits {
            let places = (made_for.lines(edit), made_in.lines(moved));
            let same = same_symbols(&was, &is, places);
            if let Err(why) = same.and_then(|()| same_strings(&made_for, &made_in, places)) {
                return Err(unsure(edit, why));
            }
        }
        if let Some((owner, taker)) = takes_lines(&made_for, &made_in) {
            let why = format!("it would move lines of {owner} into {taker}");
            return Err(unsure(first, why));
        }
    }
    for (edit, _) in &carried.edits {
        if let Some(line) = typed_again(base, edit, &typed) {
            let why = format!("the similar line `{line}` was typed directly next to it");
            return Err(unsure(edit, why));
        }
    }
    Ok(carried.changes)
}

/// The symbol trees of a text before and after a change.
struct TreesOfChange {
    before: SymbolTree,
    after: SymbolTree,
    changes: ChangeSet,
    /// The edits of the change. Unlike the edits in the change set, adjacent edits are not joined.
    edits: Vec<Edit>,
}

/// The outlines of a text before and after a change.
struct OutlinePair<'t> {
    before: Outline<'t>,
    after: Outline<'t>,
}

impl TreesOfChange {
    fn new(file: &FilePath, text: &str, changes: &ChangeSet, edits: Vec<Edit>) -> Self {
        let after = changes.apply(text);
        let after = after.expect("the change set was made for this text");
        TreesOfChange {
            before: SymbolTree::parse(file.clone(), Arc::from(text)),
            after: SymbolTree::parse(file.clone(), Arc::from(after)),
            changes: changes.clone(),
            edits,
        }
    }

    /// Returns whether the text has syntax errors, for example because the user is typing.
    fn is_broken(&self) -> bool {
        !self.before.errors().is_empty() || !self.after.errors().is_empty()
    }

    fn symbols(&self, is_broken: bool) -> OutlinePair<'_> {
        let read = |tree| {
            if is_broken {
                Outline::by_indentation(tree)
            } else {
                Outline::of(tree)
            }
        };
        OutlinePair {
            before: read(&self.before),
            after: read(&self.after),
        }
    }

    /// Returns the range of whole lines that an edit changes, in the text before the change and in
    /// the text after it.
    fn lines(&self, edit: &Edit) -> (ByteRange, ByteRange) {
        let before = whole_lines(self.before.text(), edit);
        let earlier = self.edits.iter().take_while(|earlier| *earlier != edit);
        let start = earlier.fold(edit.range.start, |at, earlier| {
            at + earlier.insert.len() - earlier.range.len()
        });
        let inverse = Edit {
            range: ByteRange::new(start, start + edit.insert.len()),
            insert: edit.range.of(self.before.text()).to_owned(),
        };
        (before, whole_lines(self.after.text(), &inverse))
    }

    /// Returns the owners of each line that no edit changes: the symbol that contains the line
    /// before the change, and the symbol that contains it after the change.
    fn untouched(&self) -> Vec<(&str, &str)> {
        let text = self.before.text();
        let edits = self.changes.edits();
        let touched: Vec<ByteRange> = edits.iter().map(|edit| whole_lines(text, edit)).collect();
        let whole = ByteRange::new(0, text.len());
        let owners = |at: usize| {
            let after = self.after.owner(self.changes.map_offset(at));
            (name(self.before.owner(at)), name(after))
        };
        contents(text, whole)
            .filter(|at| !touched.iter().any(|range| range.contains(*at)))
            .map(owners)
            .collect()
    }
}

fn name(symbol: &Symbol) -> &str {
    &symbol.path.name
}

/// Returns the description of a symbol for conflict messages.
fn called(name: &str) -> String {
    match name {
        "" => "the module level".to_owned(),
        name => format!("`{name}`"),
    }
}

/// Returns the offset of the first non-blank character of each non-blank line in a range.
fn contents(text: &str, range: ByteRange) -> impl Iterator<Item = usize> {
    let mut at = range.start;
    range
        .of(text)
        .split_inclusive('\n')
        .filter_map(move |line| {
            let start = at;
            at += line.len();
            let content = line.trim_start();
            (!content.is_empty()).then(|| start + line.len() - content.len())
        })
}

/// Returns whether a change affects a line that may define a symbol, or that may begin or end a
/// string.
fn rearranges(base: &str, changes: &ChangeSet) -> bool {
    changes.edits().iter().any(|edit| {
        let before = whole_lines(base, edit);
        let removed = before.of(base);
        let head = &base[before.start.min(edit.range.start)..edit.range.start];
        let tail = &base[edit.range.end..before.end.max(edit.range.end)];
        let added = [head, &edit.insert, tail].concat();
        let signs = ["def", "class", "\"", "'"];
        let has_sign = |text: &str| signs.iter().any(|sign| text.contains(sign));
        has_sign(removed) || has_sign(&added)
    })
}

/// Returns the range of the user's edit that is nearest to `range`.
fn nearest(typed: &ChangeSet, range: ByteRange) -> ByteRange {
    let distance = |edit: &&Edit| {
        let before = range.start.saturating_sub(edit.range.end);
        before.max(edit.range.start.saturating_sub(range.end))
    };
    let nearest = typed.edits().iter().min_by_key(distance);
    nearest.map_or(range, |edit| edit.range)
}

/// Returns a line that the user typed directly before or after the lines of an edit and that
/// resembles an edited line. Such a line may be a copy of the edited line's old text, typed after
/// the line itself was changed. Lines that the user only changed do not count.
fn typed_again<'t>(base: &str, edit: &Edit, typed: &'t ChangeSet) -> Option<&'t str> {
    let lines = whole_lines(base, edit);
    if lines.is_empty() {
        return None;
    }
    let touches = |typed: &&Edit| typed.range.end == lines.start || typed.range.start == lines.end;
    let copies = |typed: &'t Edit| {
        let is_new = |line: &&str| copy_of(typed.range.of(base), line).is_none();
        let new = typed.insert.lines().filter(is_new);
        new.filter_map(|line| copy_of(lines.of(base), line)).next()
    };
    typed.edits().iter().filter(touches).find_map(copies)
}

/// Returns the first line of `text` that nearly equals one of `lines`. Lines with `def` or `class`
/// are skipped, because their names distinguish them.
fn copy_of<'t>(lines: &str, text: &'t str) -> Option<&'t str> {
    let is_code = |line: &&str| outline::defined(line).is_none();
    let lines: Vec<&str> = lines.lines().filter(is_code).map(str::trim).collect();
    text.lines()
        .filter(is_code)
        .map(str::trim)
        .find(|line| lines.iter().any(|known| is_near_copy(known, line)))
}

/// Returns whether two lines are similar: without surrounding white space, their common prefix and
/// suffix make up at least three quarters of the longer line. A line without letters and digits is
/// not similar to any line.
fn is_near_copy(one: &str, other: &str) -> bool {
    if !one.contains(char::is_alphanumeric) {
        return false;
    }
    let same = |(a, b): &(char, char)| a == b;
    let (long, short) = (one.chars().count(), other.chars().count());
    let (long, short) = (long.max(short), long.min(short));
    let front = one.chars().zip(other.chars()).take_while(same).count();
    let back = one.chars().rev().zip(other.chars().rev());
    let back = back.take_while(same).count().min(short - front);
    4 * (front + back) >= 3 * long
}

/// Checks that the lines of an edit have the same owners in both versions.
fn same_symbols(
    was: &OutlinePair<'_>,
    is: &OutlinePair<'_>,
    (old, new): ((ByteRange, ByteRange), (ByteRange, ByteRange)),
) -> Result<(), String> {
    let edited = old.0.of(was.before.text());
    let before = ((&was.before, old.0), (&is.before, new.0));
    let after = ((&was.after, old.1), (&is.after, new.1));
    for ((base, old), (now, new)) in [before, after] {
        let pairs = base.owners(old).zip(now.owners(new));
        for (was, is) in pairs.collect::<BTreeSet<(&str, &str)>>() {
            same_symbol((base, was), (now, is), edited)?;
        }
    }
    Ok(())
}

/// Checks that each edited line begins inside a string in both versions, or outside of strings in
/// both versions.
fn same_strings(
    was: &TreesOfChange,
    is: &TreesOfChange,
    (old, new): ((ByteRange, ByteRange), (ByteRange, ByteRange)),
) -> Result<(), String> {
    let before = ((&was.before, old.0), (&is.before, new.0));
    let after = ((&was.after, old.1), (&is.after, new.1));
    for ((base, old), (now, new)) in [before, after] {
        let was = contents(base.text(), old).map(|at| base.in_string(at));
        let is = contents(now.text(), new).map(|at| now.in_string(at));
        match was.zip(is).find(|(was, is)| was != is) {
            None => {}
            Some((true, _)) => {
                return Err("its text was inside a string, but the matching text is not".to_owned());
            }
            Some((false, _)) => {
                return Err(
                    "its text was outside of strings, but the matching text is inside a string"
                        .to_owned(),
                );
            }
        }
    }
    Ok(())
}

fn same_symbol(
    (base, was): (&Outline<'_>, &str),
    (now, is): (&Outline<'_>, &str),
    edited: &str,
) -> Result<(), String> {
    if is_renumbered((base, was), (now, is)) {
        return Ok(());
    }
    if was != is {
        return match is_renamed((base, was), (now, is)) {
            true => Ok(()),
            false => Err(format!(
                "it was made in {}, but the matching text is now in {}",
                called(was),
                called(is)
            )),
        };
    }
    if !is_of_same_kind((base, was), (now, is)) {
        return Err(format!(
            "{}, or a symbol around it, was changed from a function to a class or the reverse",
            called(was)
        ));
    }
    if now.count(was) > base.count(was) {
        return Err(format!("there is now more than one {}", called(was)));
    }
    for (other, text) in now.beside(is) {
        if !base.has(other)
            && let Some(line) = copy_of(edited, text)
        {
            return Err(format!(
                "the new {} next to {} has a similar line: `{line}`",
                called(other),
                called(is)
            ));
        }
    }
    Ok(())
}

/// Returns whether a definition is one of several with the same name, and is the same in both
/// versions except for its number. Its text must be the same, and no other definition of the name
/// may have this text. Example: after the first of three overloads was renamed, `f#2` is `f`.
fn is_renumbered((base, was): (&Outline<'_>, &str), (now, is): (&Outline<'_>, &str)) -> bool {
    let are_several = base.count(was) > 1 || now.count(is) > 1;
    are_several
        && parent(was) == parent(is)
        && outline::unnumbered(was) == outline::unnumbered(is)
        && base.only_text(was).is_some()
        && base.only_text(was) == now.only_text(is)
}

/// Returns whether the user only renamed a symbol or its enclosing class: the old name is gone, the new
/// name is new and stands in the same place, no other symbol with the same parent was added or
/// removed, and the symbol has the same text except for the name. Otherwise the other name may belong to
/// other code.
fn is_renamed((base, was): (&Outline<'_>, &str), (now, is): (&Outline<'_>, &str)) -> bool {
    let (Some((gone, inside)), Some((new, inside_new))) = (missing(now, was), missing(base, is))
    else {
        return false;
    };
    inside == inside_new
        && is_of_same_kind((base, was), (now, is))
        && parent(gone) == parent(new)
        && base.beside_missing(gone, now).is_empty()
        && now.beside_missing(new, base).is_empty()
        && base.place(gone) == now.place(new)
        && base
            .text_of(was)
            .zip(now.text_of(is))
            .is_some_and(|texts| differs_in_name(texts, (&last_name(gone), &last_name(new))))
}

/// Returns the last part of a symbol path, without the number of a redefinition.
fn last_name(path: &str) -> String {
    let name = path.rsplit_once('.').map_or(path, |(_, name)| name);
    outline::unnumbered(name)
}

/// Returns whether two texts are equal except that the word `old` of the first may be `new` in the
/// second.
fn differs_in_name((was, is): (&str, &str), (old, new): (&str, &str)) -> bool {
    let ends_word = |letter: char| !letter.is_alphanumeric() && letter != '_';
    // Each part is a word with the character after it.
    let (mut was, mut is) = (
        was.trim_end().split_inclusive(ends_word),
        is.trim_end().split_inclusive(ends_word),
    );
    let is_name = |was: &str, is: &str| {
        let ends = was.strip_prefix(old).zip(is.strip_prefix(new));
        ends.is_some_and(|(was, is)| was == is && was.chars().all(ends_word))
    };
    loop {
        match (was.next(), is.next()) {
            (None, None) => return true,
            (Some(was), Some(is)) if was == is || is_name(was, is) => {}
            (Some(_), Some(_)) | (Some(_), None) | (None, Some(_)) => return false,
        }
    }
}

/// Returns whether two symbols, and the symbols around them, are classes or functions in both outlines.
fn is_of_same_kind((base, was): (&Outline<'_>, &str), (now, is): (&Outline<'_>, &str)) -> bool {
    let mut pairs = with_outer(was).zip(with_outer(is));
    pairs.all(|(was, is)| base.is_class(was) == now.is_class(is))
}

/// Returns a name and the names of the symbols around it, from the inside out.
fn with_outer(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |inner| match parent(inner) {
        "" => None,
        outer => Some(outer),
    })
}

fn parent(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(parent, _)| parent)
}

/// Returns the outermost prefix of the symbol path `name` that the outline lacks, and the rest of
/// the path.
fn missing<'n>(outline: &Outline<'_>, name: &'n str) -> Option<(&'n str, &'n str)> {
    let ends = name
        .match_indices('.')
        .map(|(at, _)| at)
        .chain([name.len()]);
    let mut ends = ends.filter(|_| !name.is_empty());
    let end = ends.find(|end| !outline.has(&name[..*end]))?;
    Some((&name[..end], &name[end..]))
}

/// Returns the old and the new symbol of a line, if the change would move the line to another
/// symbol in the newer text but not in the base text. Comments of a removed symbol may move.
/// Returns `None` if there is no such line, or if the newer text has syntax errors.
fn takes_lines(made_for: &TreesOfChange, made_in: &TreesOfChange) -> Option<(String, String)> {
    if made_in.is_broken() {
        return None;
    }
    let known: BTreeSet<(&str, &str)> = made_for.untouched().into_iter().collect();
    let (was, is) = (made_for.symbols(false), made_in.symbols(false));
    let is_known = |before: &str, after: &str| {
        let inside = |(was, is): &(&str, &str)| {
            let (rest, rest_now) = (before.strip_prefix(was), after.strip_prefix(is));
            rest.is_some_and(|rest| rest.starts_with('.')) && rest == rest_now
        };
        let pair = |(from, to): &(&str, &str)| {
            (*from == before || is_renumbered((&was.before, from), (&is.before, before)))
                && (*to == after || is_renumbered((&was.after, to), (&is.after, after)))
        };
        known.iter().any(pair) || known.iter().any(inside)
    };
    let goes = |name: &str| made_in.after.find(name).is_none();
    let stays = |before: &str, after: &str| is_renumbered((&is.before, before), (&is.after, after));
    let taken = made_in.untouched().into_iter();
    let mut taken = taken.filter(|(before, after)| {
        before != after && !goes(before) && !is_known(before, after) && !stays(before, after)
    });
    let (owner, taker) = taken.next()?;
    Some((called(owner), called(taker)))
}
