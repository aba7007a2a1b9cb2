//! Excerpts of a symbol's source, limited in size. An excerpt contains the most relevant lines and
//! the numbers of the omitted lines, which a model can then request.
//!
//! A [`Focus`] (search terms) determines which lines are [`chosen`]. They are formatted as source
//! with marks for the gaps ([`source`]) or with line numbers ([`numbered`]).

mod choose;
mod focus;
pub(crate) mod found;
#[cfg(test)]
mod tests;
mod write;

pub use choose::{Layout, chosen};
pub use focus::{Focus, stems};
pub use write::{numbered, source};

use std::collections::BTreeSet;

use crate::excerpt::found::Found;
use starling_core::Tokens;

/// Returns an excerpt of a symbol's source of limited size, and whether lines were omitted.
pub fn excerpt(found: &Found, focus: &Focus, most: Tokens) -> (String, bool) {
    let lines = chosen(found, focus, most, Layout::Source);
    let (first, last) = lines_of(found);
    let is_whole = lines.len() > last - first;
    match is_whole {
        true => (found.source().to_owned(), false),
        false => (source(found, &lines), true),
    }
}

/// Returns the first and last line of a symbol, counted from 1.
fn lines_of(found: &Found) -> (usize, usize) {
    (found.symbol.lines.0 as usize, found.symbol.lines.1 as usize)
}

/// Returns the line of a byte offset, counted from 1.
fn line_at(found: &Found, offset: usize) -> usize {
    let starts = found.tree.line_starts();
    starts.partition_point(|start| *start <= offset).max(1)
}

/// Returns the lines of a symbol's children, except for their heads (decorators and signatures).
fn inside_children(found: &Found) -> BTreeSet<usize> {
    let mut inside = BTreeSet::new();
    for child in &found.symbol.children {
        let child = found.tree.get(*child);
        inside.extend(child.lines.0 as usize..=child.lines.1 as usize);
        inside.remove(&line_at(found, child.name.start));
    }
    inside
}

/// Maximum length in lines of a head (decorators and signature) that is shown whole. Of a longer
/// head, only the line with the name is shown.
const LONG_HEAD: usize = 8;

/// Returns the lines of a symbol's decorators and signature.
fn head_of(found: &Found, symbol: &starling_syntax::Symbol) -> std::ops::RangeInclusive<usize> {
    let (first, name) = (
        line_at(found, symbol.definition.start),
        line_at(found, symbol.name.start),
    );
    let body = line_at(found, symbol.body.start);
    // The body of `def f(): return 1` is on the same line as the signature.
    let last = if body > name { body - 1 } else { name };
    match last - first < LONG_HEAD {
        true => first..=last,
        false => name..=name,
    }
}
