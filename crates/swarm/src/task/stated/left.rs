//! Finds occurrences of an old name that a rename missed, while it replaced other occurrences of
//! the name.

use super::kept::KeptStrings;
use super::named::{Named, Word};
use super::{ExplicitEdit, ExplicitEdits, strings};
use crate::lookup::Lookup;
use crate::task::in_strings::{first_of, stands_in, words_of_gone};
use starling_index::{AttributeOf, Dangling, Index};
use starling_syntax::FilePath;

/// Returns the uses of an attribute that keep the old name, if they belong to a class that the task
/// means.
pub(super) fn of_attribute(word: &Word, to: &str, before: &Index, after: &Index) -> Vec<Dangling> {
    let of = match word.of.as_slice() {
        [] if word.is_member || before.is_attribute_only(&word.name) => AttributeOf::Only,
        [] => AttributeOf::Renamed,
        classes => AttributeOf::Classes(classes),
    };
    after.left_attribute(before, &word.name, to, of)
}

/// Describes where an attribute or a string still has the old name of a renamed word.
pub(super) fn left(
    (word, to): (&Word, &str),
    kept: &KeptStrings,
    before: &Lookup,
    after: &Lookup,
) -> Option<String> {
    let attributes = of_attribute(word, to, before.index(), after.index());
    let attributes = attributes.into_iter().map(|one| (one.file, one.line));
    let strings = strings::left(word, to, before, after).into_iter();
    let strings = strings
        .filter(|one| one.is_sure && !kept.hold(after, (&one.file, one.line), &word.name))
        .map(|one| (one.file, one.line));
    let mut places: Vec<(FilePath, u32)> = attributes.chain(strings).collect();
    places.sort();
    places.dedup();
    let places: Vec<String> = places
        .iter()
        .map(|(file, line)| format!("{file}:{line}"))
        .collect();
    (!places.is_empty()).then(|| format!("`{}` is still at {}", word.name, first_of(places)))
}

/// Returns the words that a task renames everywhere, with their new names.
fn words(statements: &ExplicitEdits) -> impl Iterator<Item = (&Word, &str)> {
    statements.all.iter().filter_map(|stated| match stated {
        ExplicitEdit::Renamed {
            from: Named::Word(word),
            to,
        } => (!word.is_partial).then_some((word, &**to)),
        ExplicitEdit::Renamed { .. } | ExplicitEdit::Deleted { .. } => None,
    })
}

/// Returns the uses of attributes that a change left with the old name, although it gave other uses
/// of the same kind the new name.
pub(crate) fn attributes(
    statements: &ExplicitEdits,
    before: &Index,
    after: &Index,
) -> Vec<Dangling> {
    let left = words(statements)
        .flat_map(|(word, to)| after.left_attribute(before, &word.name, to, AttributeOf::Renamed));
    left.collect()
}

/// Returns the strings that a change left with the old name, although it replaced the name in other
/// strings of the same kind. Each string comes with the old name.
pub(crate) fn in_strings(
    statements: &ExplicitEdits,
    before: &Lookup,
    after: &Lookup,
) -> Vec<(String, strings::StringWithOldName)> {
    let left = words(statements).flat_map(|(word, to)| {
        let left = strings::left(word, to, before, after).into_iter();
        let is_kept = |one: &strings::StringWithOldName| {
            let place = (&one.file, one.line);
            statements.kept.hold(after, place, &word.name)
        };
        let left = left.filter(move |one| !is_kept(one));
        left.map(|one| (word.name.clone(), one))
    });
    left.collect()
}

/// Describes the strings that consist only of a name which the task renames or deletes, if the code no longer
/// defines that name. If there are several such names, describes the strings of the first name only.
pub(crate) fn words_left(
    statements: &ExplicitEdits,
    before: &Lookup,
    after: &Lookup,
) -> Option<String> {
    let named = statements.all.iter().map(ExplicitEdit::named);
    let mut names = named.filter(|one| one.is_defined()).map(Named::base_name);
    names.find_map(|name| {
        let was_defined = before.index().is_defined(name);
        let strings = words_of_gone(after, name, &statements.kept);
        (was_defined && !strings.is_empty()).then(|| stands_in(name, "still occurs", &strings))
    })
}

/// Describes the strings that contain the old name of a renamed word and may, but need not, refer
/// to it. Only one of the renamed words is described.
pub(crate) fn unsure(
    statements: &ExplicitEdits,
    before: &Lookup,
    after: &Lookup,
) -> Option<String> {
    let left = in_strings(statements, before, after);
    let mut unsure = left.iter().filter(|(_, one)| !one.is_sure);
    let (name, _) = unsure.clone().next()?;
    let places = unsure.by_ref().filter(|(other, _)| other == name);
    let places: Vec<String> = places
        .map(|(_, one)| format!("{}:{}", one.file, one.line))
        .collect();
    Some(match places.len() {
        1 => format!("`{name}` still occurs in a string: {}", first_of(places)),
        count => format!(
            "`{name}` still occurs in {count} strings: {}",
            first_of(places)
        ),
    })
}
