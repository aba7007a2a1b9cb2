//! Rejects a rewrite that introduces syntax errors.

use std::sync::Arc;

use super::super::flaw::{SyntaxFlaw, flaws};
use super::super::lines::{indentation, without_break};
use super::super::{Symbol, SymbolTree};
use super::{RewriteError, TextReplacement};
use starling_text::{ByteRange, ChangeSet};

/// Returns an error if `changes`, which turn `old` into `new`, introduce syntax errors. If `old`
/// already has syntax errors, the grammar may report these errors at other positions in `new`. In
/// this case, only the `targets` (the symbols that were rewritten by name) are checked, each
/// without the rest of the file.
pub(super) fn check(
    old: &SymbolTree,
    new: &SymbolTree,
    changes: &ChangeSet,
    plans: &[TextReplacement],
    targets: &[&Symbol],
) -> Result<(), RewriteError> {
    let found = flaws(new);
    if found.is_empty() {
        return Ok(());
    }
    let mut known: Vec<SyntaxFlaw> = flaws(old);
    if known.is_empty() {
        return Err(refused(new, &found[0]));
    }
    for flaw in &mut known {
        flaw.at = changes.map_offset(flaw.at);
    }
    let unknown = found.iter().find(|flaw| !known.contains(flaw));
    for target in targets {
        if target.path.is_module() {
            if let Some(unknown) = unknown.filter(|_| found.len() > known.len()) {
                return Err(refused(new, unknown));
            }
            continue;
        }
        let before = flaws_alone(old, target.span).len();
        let now = flaws_alone(new, after(plans, target.span));
        if let Some(first) = now.first().filter(|_| now.len() > before) {
            return Err(refused(new, first));
        }
    }
    Ok(())
}

/// Returns the range that a span has after the replacements were applied. Text that was inserted at
/// the end of the span is included.
fn after(plans: &[TextReplacement], span: ByteRange) -> ByteRange {
    let moved = |offset: usize| {
        let before = plans.iter().filter(|plan| plan.range.end <= offset);
        let (inserted, removed) = before.fold((0, 0), |(inserted, removed), plan| {
            (inserted + plan.insert.len(), removed + plan.range.len())
        });
        offset + inserted - removed
    };
    ByteRange::new(moved(span.start), moved(span.end))
}

/// Returns the syntax errors of a symbol's text when it is parsed without the rest of the file.
/// Offsets are relative to the file.
pub(super) fn flaws_alone(tree: &SymbolTree, span: ByteRange) -> Vec<SyntaxFlaw> {
    let text = span.of(tree.text());
    let head = if indentation(text).is_empty() {
        ""
    } else {
        "if 1:\n"
    };
    let alone = SymbolTree::parse(tree.file().clone(), Arc::from(format!("{head}{text}")));
    let mut flaws = flaws(&alone);
    for flaw in &mut flaws {
        flaw.at = span.start + flaw.at.saturating_sub(head.len());
    }
    flaws
}

fn refused(tree: &SymbolTree, flaw: &SyntaxFlaw) -> RewriteError {
    let lines = tree.lines();
    let line = lines.range(lines.line_of(flaw.at)).of(tree.text());
    RewriteError::Syntax {
        file: tree.file().clone(),
        line: lines.number_at(flaw.at),
        text: without_break(line).trim().to_owned(),
        what: flaw.what,
    }
}
