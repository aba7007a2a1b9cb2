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
    let within = word.within.iter();
    within
        .map(|symbol| in_symbol(lookup, symbol, &word.name))
        .sum()
}

/// Counts the occurrences of a name in a symbol, or in the whole file of a module.
pub(super) fn in_symbol(lookup: &Lookup, symbol: &SymbolPath, name: &str) -> usize {
    match symbol.is_module() {
        true => in_range(lookup, &symbol.file, None, name),
        false => lookup.symbol(symbol).map_or(0, |found| {
            in_range(lookup, &symbol.file, Some(found.symbol.span), name)
        }),
    }
}

/// Returns whether a function, a class or a file that contained a name before contains it no more.
/// The name may have come to other code meanwhile, so occurrences are not compared in number.
pub(super) fn is_gone_somewhere(word: &Word, before: &Lookup, after: &Lookup) -> bool {
    let is_meant = |symbol: &SymbolPath| {
        let mut within = word.within.iter();
        word.within.is_empty() || within.any(|one| one.encloses(symbol))
    };
    let count = |lookup: &Lookup, symbol: &SymbolPath| in_symbol(lookup, symbol, &word.name);
    let files = before.files().iter();
    let mut code = files.filter(|file| {
        Language::of(file) == Language::Python && in_range(before, file, None, &word.name) > 0
    });
    code.any(|file| {
        let is_gone = |symbol: &SymbolPath| {
            is_meant(symbol) && count(before, symbol) > 0 && count(after, symbol) == 0
        };
        before
            .tree(file)
            .is_ok_and(|tree| tree.symbols().iter().any(|one| is_gone(&one.path)))
    })
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
