//! Finds TODO comments that remain although the task asks to do them.

use crate::lookup::Lookup;
use crate::task::asked;
use starling_syntax::{SymbolKind, SymbolPath, SymbolTree};
use starling_text::ByteRange;

/// Maximum length of a quoted comment, in characters.
const QUOTED: usize = 80;

/// Describes the unchanged TODO comments of the symbols, if the task asks to do them.
pub(crate) fn left_todos(
    task: &str,
    (before, after): (&Lookup, &Lookup),
    symbols: &[SymbolPath],
) -> Vec<String> {
    let mut files: Vec<_> = symbols.iter().map(|symbol| &symbol.file).collect();
    files.sort();
    files.dedup();
    let mut found = Vec::new();
    for file in files {
        let (Ok(old), Ok(new)) = (before.tree(file), after.tree(file)) else {
            continue;
        };
        let comment =
            |tree: &SymbolTree, range: &ByteRange| range.of(tree.text()).trim().to_owned();
        let known: Vec<String> = (old.comments().iter())
            .map(|range| comment(&old, range))
            .collect();
        for range in new.comments() {
            let text = comment(&new, range);
            let place = belongs_to(&new, *range);
            let is_meant = symbols.iter().any(|symbol| symbol.encloses(&place));
            if is_meant && asked::to_do(task, &text) && known.contains(&text) {
                let line = 1 + new.text()[..range.start].matches('\n').count();
                let quoted: String = text.chars().take(QUOTED).collect();
                found.push(format!("the comment at {file}:{line} stays: {quoted}"));
            }
        }
    }
    found
}

/// Returns the symbol that a comment is about: the function around the comment, or the symbol below
/// a comment outside functions.
fn belongs_to(tree: &SymbolTree, comment: ByteRange) -> SymbolPath {
    let around = tree.owner(comment.start);
    let is_in_function = match around.kind {
        SymbolKind::Function | SymbolKind::Method => true,
        SymbolKind::Module | SymbolKind::Class => false,
    };
    if is_in_function {
        return around.path.clone();
    }
    let mut at = comment.end;
    loop {
        let rest = &tree.text()[at..];
        at += rest.len() - rest.trim_start().len();
        let next = tree.comments().iter().find(|next| next.start == at);
        match next {
            Some(next) if next.end > at => at = next.end,
            Some(_) | None => return tree.owner(at).path.clone(),
        }
    }
}
