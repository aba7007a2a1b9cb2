//! Rewrites a file by operations on its symbols.

use std::sync::Arc;

use super::{Loss, Symbol, SymbolTree};
use starling_text::{ByteRange, ChangeSet, Edit};

mod add;
mod check;
mod delete;
mod error;
mod import;
mod line_ends;
mod loss;
mod module_body;
mod order;
mod patch;
mod place;
mod source;
mod standard;
mod whole;
mod written;

pub use error::RewriteError;
pub use import::module_imports;
pub use import::without_imports;
pub use written::divided;

#[cfg(test)]
mod tests;

/// A change of a file, described by its symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewrite {
    /// Replaces the whole symbol, including its children, by `source`. The source may have any
    /// indentation: it is shifted to the symbol's indentation, except inside strings. Line breaks
    /// are converted to those of the file.
    Whole { symbol: String, source: String },
    /// Replaces each `old` text by the `new` text. `old` must occur exactly once in the symbol.
    /// White space at line ends and a uniform difference in indentation are ignored.
    Patch {
        symbol: String,
        hunks: Vec<(String, String)>,
    },
    /// Adds new symbols after `beside`, or at the end of `beside` if it is a class and `place` is
    /// [`Place::Inside`]. If `beside` is the module body, the symbols are added at the end of the
    /// file. The `pass` of a class that contains nothing else is removed.
    Add {
        beside: String,
        place: Place,
        source: String,
    },
    /// Deletes the symbol and the blank lines after it. A block that would become empty gets a
    /// `pass`.
    Delete { symbol: String },
    /// Adds missing import statements to the module body: after the last top-level import before
    /// the first definition (not inside `if TYPE_CHECKING` or `try`), or else after the docstring.
    /// `from x import a` is merged into an existing one-line statement.
    Import { statements: Vec<String> },
}

/// The position of new symbols relative to an existing symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    After,
    Inside,
}

/// The result of a rewrite.
#[derive(Debug, Clone)]
pub struct Rewritten {
    pub changes: ChangeSet,
    pub text: String,
    pub tree: SymbolTree,
    /// Names of the symbols that were added or removed, or whose own text changed.
    pub touched: Vec<String>,
    /// Names of the symbols that are new. If a new definition of an existing name comes before the
    /// old definition, the new one has the name `f` and the old one becomes `f#2`.
    pub added: Vec<String>,
    pub losses: Vec<Loss>,
}

/// One text replacement that a rewrite consists of.
#[derive(Debug)]
struct TextReplacement {
    range: ByteRange,
    insert: String,
}

/// Applies all rewrites at once. Each rewrite refers to the text of `tree`.
///
/// # Errors
/// See [`RewriteError`]. If there is an error, nothing is changed.
pub fn rewrite(tree: &SymbolTree, rewrites: &[Rewrite]) -> Result<Rewritten, RewriteError> {
    let (mut targets, mut deleted) = (Vec::new(), Vec::new());
    for rewrite in rewrites {
        match rewrite {
            Rewrite::Whole { symbol, .. } | Rewrite::Patch { symbol, .. } => {
                targets.push(symbol_named(tree, symbol)?);
            }
            Rewrite::Delete { symbol } => deleted.push(symbol_named(tree, symbol)?),
            // The inserted code is checked when the insertion is planned.
            Rewrite::Add { .. } | Rewrite::Import { .. } => {}
        }
    }
    let mut plans = Vec::new();
    for rewrite in rewrites {
        plans.extend(planned(tree, rewrite, &deleted)?);
    }
    for plan in &mut plans {
        plan.insert = line_ends::kept(plan.range.of(tree.text()), &plan.insert);
    }
    let plans = apart(tree, plans)?;
    let changes = narrowed(tree, &plans);
    let text = changes
        .apply(tree.text())
        .expect("the change set was made for the text of the tree");
    let new = SymbolTree::parse(tree.file().clone(), Arc::from(text.as_str()));
    check::check(tree, &new, &changes, &plans, &targets)?;
    let spans: Vec<ByteRange> = deleted.iter().map(|symbol| symbol.span).collect();
    let touched = loss::touched(tree, &new, &spans);
    let added = loss::added(tree, &new, &spans);
    let losses = loss::losses(tree, &new, &targets, &spans);
    Ok(Rewritten {
        changes,
        text,
        tree: new,
        touched,
        added,
        losses,
    })
}

/// Returns the names of the symbols that differ between two versions of a file: first the symbols
/// of the new version in order, then the removed symbols.
pub fn touched(old: &SymbolTree, new: &SymbolTree) -> Vec<String> {
    loss::touched(old, new, &[])
}

fn planned(
    tree: &SymbolTree,
    rewrite: &Rewrite,
    deleted: &[&Symbol],
) -> Result<Vec<TextReplacement>, RewriteError> {
    let named = |name: &str| symbol_named(tree, name);
    Ok(match rewrite {
        Rewrite::Whole { symbol, source } => vec![whole::plan(tree, named(symbol)?, source)?],
        Rewrite::Patch { symbol, hunks } => patch::plan(tree, named(symbol)?, hunks)?,
        Rewrite::Add {
            beside,
            place,
            source,
        } => vec![add::plan(tree, named(beside)?, *place, source)?],
        Rewrite::Delete { symbol } => vec![delete::plan(tree, named(symbol)?, deleted)?],
        Rewrite::Import { statements } => import::plan(tree, statements)?,
    })
}

fn symbol_named<'t>(tree: &'t SymbolTree, name: &str) -> Result<&'t Symbol, RewriteError> {
    tree.find(name)
        .ok_or_else(|| RewriteError::no_symbol(tree, name))
}

/// Returns the replacements, sorted by position. Overlapping deletions are merged; other
/// overlaps are errors.
fn apart(
    tree: &SymbolTree,
    mut plans: Vec<TextReplacement>,
) -> Result<Vec<TextReplacement>, RewriteError> {
    plans.sort_by_key(|plan| (plan.range.start, plan.range.end));
    let mut apart: Vec<TextReplacement> = Vec::with_capacity(plans.len());
    for plan in plans {
        match apart.last_mut() {
            Some(last) if last.range.end > plan.range.start => {
                if !last.insert.is_empty() || !plan.insert.is_empty() {
                    return Err(RewriteError::Overlap {
                        first: tree.lines().number_at(last.range.start),
                        second: tree.lines().number_at(plan.range.start),
                    });
                }
                last.range.end = last.range.end.max(plan.range.end);
            }
            Some(_) | None => apart.push(plan),
        }
    }
    Ok(apart)
}

/// Returns the replacements as one change set whose edits contain only the differing bytes.
fn narrowed(tree: &SymbolTree, plans: &[TextReplacement]) -> ChangeSet {
    let text = tree.text();
    let edits = plans.iter().flat_map(|plan| {
        let changes = ChangeSet::between(plan.range.of(text), &plan.insert);
        let moved = |edit: &Edit| Edit {
            range: ByteRange::new(
                plan.range.start + edit.range.start,
                plan.range.start + edit.range.end,
            ),
            insert: edit.insert.clone(),
        };
        changes.edits().iter().map(moved).collect::<Vec<_>>()
    });
    ChangeSet::new(text.len(), edits.collect()).expect("the replacements do not overlap")
}
