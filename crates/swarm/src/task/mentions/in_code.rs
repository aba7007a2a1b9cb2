//! Mentions of a name in docstrings and comments of the code.

use super::prose::{is_like_code, is_word, spans};
use crate::lookup::Lookup;
use starling_syntax::{FilePath, Language, SymbolTree, references};
use starling_text::ByteRange;

/// Returns the lines of docstrings and comments that mention a name which the code no longer
/// defines, either in back-quotes or as a word that looks like a name of code. Doctest examples are
/// skipped, because they are checked as code.
pub(super) fn mentions(lookup: &Lookup, name: &str) -> Vec<(FilePath, u32)> {
    let mut found = Vec::new();
    for file in lookup.files().iter() {
        if Language::of(file) != Language::Python {
            continue;
        }
        let text = lookup.index().snapshot().read(file).ok();
        if !text.is_some_and(|text| text.contains(name)) {
            continue;
        }
        if let Ok(tree) = lookup.tree(file) {
            let lines = in_file(&tree, name).into_iter();
            found.extend(lines.map(|line| (file.clone(), line)));
        }
    }
    found
}

/// Returns the lines of strings in the code that are the name, or contain it as a word that looks
/// like a name of code, as help texts do.
pub(super) fn in_strings(lookup: &Lookup, name: &str) -> Vec<(FilePath, u32)> {
    let mut found = Vec::new();
    let files = lookup.files().iter();
    for file in files.filter(|file| Language::of(file) == Language::Python) {
        let text = lookup.index().snapshot().read(file).ok();
        if !text.is_some_and(|text| text.contains(name)) {
            continue;
        }
        let Ok(tree) = lookup.tree(file) else {
            continue;
        };
        let text = tree.text();
        for string in tree.strings() {
            let places = string.of(text).match_indices(name);
            let places = places.map(|(at, _)| string.start + at);
            let is_mention = |at: &usize| {
                let place = ByteRange::new(*at, *at + name.len());
                is_word(text, place) && is_like_code(text, place, name)
            };
            let lines = places.filter(is_mention);
            let lines = lines.map(|at| 1 + text[..at].matches('\n').count() as u32);
            found.extend(lines.map(|line| (file.clone(), line)));
        }
    }
    found
}

fn in_file(tree: &SymbolTree, name: &str) -> Vec<u32> {
    let text = tree.text();
    let docstrings = tree.symbols().iter().filter_map(|symbol| symbol.docstring);
    let prose: Vec<ByteRange> = docstrings.chain(tree.comments().iter().copied()).collect();
    let own = references(tree, name);
    let mut lines = Vec::new();
    for range in prose {
        let mut start = range.start;
        for written in range.of(text).split_inclusive('\n') {
            let is_example = [">>>", "..."]
                .iter()
                .any(|prompt| written.trim_start().starts_with(prompt));
            let spans = spans(written);
            let mut places = written.match_indices(name);
            let is_mentioned = !is_example
                && places.any(|(at, _)| {
                    let place = ByteRange::new(at, at + name.len());
                    let is_quoted = spans
                        .iter()
                        .any(|span| span.start <= at && place.end <= span.end);
                    is_word(written, place) && (is_quoted || is_like_code(written, place, name))
                });
            // A parameter or variable of the same name may be what the comment refers to.
            let around = tree.owner(start).span;
            let is_other = || {
                let mut own = own.iter();
                own.any(|one| around.start <= one.range.start && one.range.end <= around.end)
            };
            if is_mentioned && !is_other() {
                lines.push(1 + text[..start].matches('\n').count() as u32);
            }
            start += written.len();
        }
    }
    lines
}
