//! Counts the occurrences of a name in the files and symbols to which a task restricts it.

use super::named::{Word, is_part};
use crate::lookup::Lookup;
use starling_syntax::{FilePath, Language, SymbolPath};
use starling_text::ByteRange;

/// Counts the occurrences of a name in the files and symbols of `word.within`, or in all Python
/// files if there are none. Occurrences in strings count, those in comments do not.
pub(super) fn count(lookup: &Lookup, word: &Word) -> usize {
    if word.within.is_empty() {
        let files = lookup.files().iter();
        let code = files.filter(|file| Language::of(file) == Language::Python);
        return code
            .map(|file| in_range(lookup, file, None, &word.name))
            .sum();
    }
    let in_symbol = |symbol: &SymbolPath| match symbol.is_module() {
        true => in_range(lookup, &symbol.file, None, &word.name),
        false => lookup.symbol(symbol).map_or(0, |found| {
            in_range(lookup, &symbol.file, Some(found.symbol.span), &word.name)
        }),
    };
    word.within.iter().map(in_symbol).sum()
}

pub(super) fn in_range(
    lookup: &Lookup,
    file: &FilePath,
    range: Option<ByteRange>,
    name: &str,
) -> usize {
    let text = lookup.index().snapshot().read(file);
    let text = text.ok().filter(|text| text.contains(name));
    let Some(tree) = text.and_then(|_| lookup.tree(file).ok()) else {
        return 0;
    };
    let text = tree.text();
    let range = range.unwrap_or(ByteRange::new(0, text.len()));
    let is_word = |at: usize| {
        let goes_on = |c: char| is_part(c) || c == '-' && name.starts_with('-');
        let before = text[..at].ends_with(goes_on);
        !before && !text[at + name.len()..].starts_with(goes_on)
    };
    let is_said = |at: usize| {
        let comments = tree.comments();
        let before = comments.partition_point(|comment| comment.start <= at);
        before == 0 || comments[before - 1].end <= at
    };
    let places = range.of(text).match_indices(name);
    let places = places.map(|(at, _)| range.start + at);
    places.filter(|at| is_word(*at) && is_said(*at)).count()
}
