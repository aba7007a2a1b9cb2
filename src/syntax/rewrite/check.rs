//! Refuses a rewrite that breaks the syntax.

use std::sync::Arc;

use super::super::flaw::{Flaw, flaws};
use super::super::lines::{indentation, without_break};
use super::super::{Symbol, SymbolTree};
use super::RewriteError;
use crate::text::ChangeSet;

/// New flaws of `new`, which is `old` after `changes`, are an error. When `old` had flaws already,
/// the grammar may see them elsewhere now; then the touched symbols are looked at on their own.
pub(super) fn check(
    old: &SymbolTree,
    new: &SymbolTree,
    changes: &ChangeSet,
    touched: &[String],
) -> Result<(), RewriteError> {
    let found = flaws(new);
    if found.is_empty() {
        return Ok(());
    }
    let mut known: Vec<Flaw> = flaws(old);
    let were_known = known.len();
    for flaw in &mut known {
        flaw.at = changes.map_offset(flaw.at);
    }
    let Some(unknown) = found.iter().find(|flaw| !known.contains(flaw)) else {
        return Ok(());
    };
    if were_known == 0 {
        return Err(refused(new, unknown));
    }
    let mut symbols = touched
        .iter()
        .filter_map(|name| new.find(name))
        .filter(|symbol| !symbol.path.is_module())
        .peekable();
    if symbols.peek().is_none() && found.len() > were_known {
        return Err(refused(new, unknown));
    }
    for symbol in symbols {
        let before = old.find(&symbol.path.name);
        let known = before.map_or(0, |before| flaws_alone(old, before).len());
        let now = flaws_alone(new, symbol);
        if let Some(first) = now.first().filter(|_| now.len() > known) {
            return Err(refused(new, first));
        }
    }
    Ok(())
}

/// The flaws of a symbol's text without the rest of the file; offsets are those of the file.
pub(super) fn flaws_alone(tree: &SymbolTree, symbol: &Symbol) -> Vec<Flaw> {
    let text = symbol.span.of(tree.text());
    let head = if indentation(text).is_empty() {
        ""
    } else {
        "if 1:\n"
    };
    let alone = SymbolTree::parse(tree.file().clone(), Arc::from(format!("{head}{text}")));
    let mut flaws = flaws(&alone);
    for flaw in &mut flaws {
        flaw.at = symbol.span.start + flaw.at.saturating_sub(head.len());
    }
    flaws
}

fn refused(tree: &SymbolTree, flaw: &Flaw) -> RewriteError {
    let lines = tree.lines();
    let line = lines.range(lines.line_of(flaw.at)).of(tree.text());
    RewriteError::Syntax {
        file: tree.file().clone(),
        line: lines.number_at(flaw.at),
        text: without_break(line).trim().to_owned(),
        what: flaw.what,
    }
}
