//! Changes of a file in terms of symbols.

use std::sync::Arc;

use super::lines::Lines;
use super::{Loss, Symbol, SymbolTree};
use crate::text::{ByteRange, ChangeSet, Edit};

mod error;
mod place;
mod source;
mod whole;

pub use error::RewriteError;

#[cfg(test)]
mod tests;

/// One change of a file in terms of symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewrite {
    /// The whole symbol, children included, replaced by this source. The source may be written at any
    /// indentation: it is moved to the symbol's, inside strings nothing moves. Line breaks become those of the file.
    Whole {
        symbol: String,
        source: String,
    },
    /// Replaces each `old` (must occur exactly once in the symbol; white space at line ends forgiven,
    /// a uniform difference in indentation forgiven) by `new`.
    Patch {
        symbol: String,
        hunks: Vec<(String, String)>,
    },
    /// A new symbol after `beside` (a sibling, or when it is a class and `inside`, at its end; module body: at the end of the file).
    Add {
        beside: String,
        place: Place,
        source: String,
    },
    Delete {
        symbol: String,
    },
    /// Import statements to add to the module body, where missing: after the last top-level import
    /// (but not inside `if TYPE_CHECKING`/`try`), else after docstring and `__future__`. `from x import a` merges into an existing one when that is on one line.
    Import {
        statements: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    After,
    Inside,
}

/// What a rewrite would do.
#[derive(Debug, Clone)]
pub struct Rewritten {
    pub changes: ChangeSet,
    pub text: String,
    pub tree: SymbolTree,
    /// Names of the symbols whose own bytes changed, were added or removed.
    pub touched: Vec<String>,
    pub losses: Vec<Loss>,
}

/// One replacement that a rewrite asks for.
#[derive(Debug)]
struct Plan {
    range: ByteRange,
    insert: String,
}

/// Makes all rewrites at once, each in terms of the text of `tree`.
///
/// # Errors
/// See [`RewriteError`]; then nothing is to be changed.
pub fn rewrite(tree: &SymbolTree, rewrites: &[Rewrite]) -> Result<Rewritten, RewriteError> {
    let mut plans = Vec::new();
    for rewrite in rewrites {
        match rewrite {
            Rewrite::Whole { symbol, source } => {
                plans.push(whole::plan(tree, symbol_named(tree, symbol)?, source)?);
            }
            Rewrite::Patch { .. }
            | Rewrite::Add { .. }
            | Rewrite::Delete { .. }
            | Rewrite::Import { .. } => todo!(),
        }
    }
    let changes = combined(tree, plans)?;
    let text = changes
        .apply(tree.text())
        .expect("the change set was made for the text of the tree");
    let new = SymbolTree::parse(tree.file().clone(), Arc::from(text.as_str()));
    Ok(Rewritten {
        changes,
        text,
        tree: new,
        touched: Vec::new(),
        losses: Vec::new(),
    })
}

fn symbol_named<'t>(tree: &'t SymbolTree, name: &str) -> Result<&'t Symbol, RewriteError> {
    tree.find(name)
        .ok_or_else(|| RewriteError::no_symbol(tree, name))
}

/// The plans as one change set that touches only the bytes that differ.
fn combined(tree: &SymbolTree, plans: Vec<Plan>) -> Result<ChangeSet, RewriteError> {
    let text = tree.text();
    let mut ranges: Vec<ByteRange> = plans.iter().map(|plan| plan.range).collect();
    ranges.sort();
    for pair in ranges.windows(2) {
        if pair[0].end > pair[1].start {
            return Err(RewriteError::Overlap {
                first: Lines::of(text).number_at(pair[0].start),
                second: Lines::of(text).number_at(pair[1].start),
            });
        }
    }
    let mut edits = Vec::new();
    for plan in &plans {
        let changes = ChangeSet::between(plan.range.of(text), &plan.insert);
        edits.extend(changes.edits().iter().map(|edit| Edit {
            range: ByteRange::new(
                plan.range.start + edit.range.start,
                plan.range.start + edit.range.end,
            ),
            insert: edit.insert.clone(),
        }));
    }
    Ok(ChangeSet::new(text.len(), edits).expect("the ranges were checked above"))
}
