//! Parts of a symbol's source for a reader who has little room: the lines that decide, before all
//! others, and the numbers of what is left out, so that one look can ask for exactly that.
//!
//! What a reader looks for ([`Focus`]) chooses the lines ([`chosen`]), which are written down as source
//! with marks for the gaps ([`source`]) or with their numbers ([`numbered`]).

mod choose;
mod focus;
#[cfg(test)]
mod tests;
mod write;

pub use choose::{Layout, chosen};
pub use focus::{Focus, stems};
pub use write::{numbered, source};

use std::collections::BTreeSet;

use super::lookup::Found;
use starling_core::Tokens;

/// The source of a symbol within a cap, and whether something was left out.
pub fn excerpt(found: &Found, focus: &Focus, most: Tokens) -> (String, bool) {
    let lines = chosen(found, focus, most, Layout::Source);
    let (first, last) = lines_of(found);
    let is_whole = lines.len() > last - first;
    match is_whole {
        true => (found.source().to_owned(), false),
        false => (source(found, &lines), true),
    }
}

/// First and last line of a symbol, from 1.
fn lines_of(found: &Found) -> (usize, usize) {
    (found.symbol.lines.0 as usize, found.symbol.lines.1 as usize)
}

/// The number of the line, from 1, of a byte.
fn line_at(found: &Found, offset: usize) -> usize {
    let starts = found.tree.line_starts();
    starts.partition_point(|start| *start <= offset).max(1)
}

/// The lines of a symbol that belong to its children, their heads aside.
fn inside_children(found: &Found) -> BTreeSet<usize> {
    let mut inside = BTreeSet::new();
    for child in &found.symbol.children {
        let child = found.tree.get(*child);
        inside.extend(child.lines.0 as usize..=child.lines.1 as usize);
        inside.remove(&line_at(found, child.name.start));
    }
    inside
}

/// A head that is longer is shown by the line of the name.
const LONG_HEAD: usize = 8;

/// The lines of a symbol's decorators and signature.
fn head_of(found: &Found, symbol: &starling_syntax::Symbol) -> std::ops::RangeInclusive<usize> {
    let (first, name) = (
        line_at(found, symbol.definition.start),
        line_at(found, symbol.name.start),
    );
    let body = line_at(found, symbol.body.start);
    // The body of `def f(): return 1` stands in the line of its signature.
    let last = if body > name { body - 1 } else { name };
    match last - first < LONG_HEAD {
        true => first..=last,
        false => name..=name,
    }
}
