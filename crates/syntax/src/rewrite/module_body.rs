//! Replaces the body of a module by a text that a model wrote as a whole: the text of the file, or
//! only the module's own statements. Definitions that the text leaves out or abbreviates stay.

use super::super::{Symbol, SymbolTree};
use super::RewriteError;

/// Returns the new text of a module that has definitions, with line feeds as line breaks.
///
/// # Errors
/// [`RewriteError::WholeModule`] if it is unclear where the definitions stand among the statements.
pub(super) fn text(tree: &SymbolTree, written: &str) -> Result<String, RewriteError> {
    let written = written.replace("\r\n", "\n");
    let new = SymbolTree::parse(tree.file().clone(), written.as_str().into());
    let text = match new.module().children.is_empty() {
        true => around_definitions(tree, &written),
        false => with_definitions(tree, &new),
    };
    text.ok_or_else(|| RewriteError::WholeModule {
        file: tree.file().clone(),
    })
}

fn children(tree: &SymbolTree) -> impl Iterator<Item = &Symbol> {
    tree.module().children.iter().map(|child| tree.get(*child))
}

fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Returns the written text of the file, with the full text of each definition that it abbreviates.
/// Returns `None` if it lacks a definition or has them in another order.
fn with_definitions(tree: &SymbolTree, new: &SymbolTree) -> Option<String> {
    let mut left = children(tree).peekable();
    let (mut text, mut end) = (String::new(), 0);
    for symbol in children(new) {
        let is_next = |old: &&Symbol| old.contract.name == symbol.contract.name;
        let Some(old) = left.next_if(is_next) else {
            continue;
        };
        let old = with_line_feeds(old.definition.of(tree.text()));
        let range = symbol.definition;
        if is_abbreviation(range.of(new.text()), &old) {
            text.push_str(&new.text()[end..range.start]);
            text.push_str(old.trim_end());
            end = range.start + range.of(new.text()).trim_end().len();
        }
    }
    text.push_str(&new.text()[end..]);
    left.next().is_none().then_some(text)
}

/// Returns whether a definition is the beginning of another one, followed by an ellipsis.
fn is_abbreviation(written: &str, whole: &str) -> bool {
    let beginning = written.trim_end_matches(['.', '#', ' ', '\t', '\n']);
    written.trim_end().ends_with("...")
        && !whole.trim_end().ends_with("...")
        && whole.starts_with(beginning)
}

/// Returns the text of the file with other statements around its definitions. Returns `None` if it
/// is unclear which statements stand above a definition: where there are statements on both sides,
/// the last one above and the first one below must stay, next to each other.
fn around_definitions(tree: &SymbolTree, written: &str) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut start = 0;
    for child in children(tree) {
        parts.push(with_line_feeds(&tree.text()[start..child.span.start]));
        start = child.span.end;
    }
    parts.push(with_line_feeds(&tree.text()[start..]));
    let used: Vec<usize> = (0..parts.len())
        .filter(|at| !parts[*at].trim().is_empty())
        .collect();
    let mut rest = written.trim();
    if rest.is_empty() || used.is_empty() {
        return None;
    }
    for pair in used.windows(2) {
        let above = parts[pair[0]].trim().lines().next_back()?;
        let below = parts[pair[1]].trim().lines().next()?;
        let (first, second) = cut(rest, above, below)?;
        parts[pair[0]] = within(&parts[pair[0]], first);
        rest = second;
    }
    let last = *used.last()?;
    parts[last] = within(&parts[last], rest);
    let definitions = children(tree).map(|child| with_line_feeds(child.span.of(tree.text())));
    let mut text = String::new();
    let mut definitions = definitions.into_iter();
    for part in parts {
        text.push_str(&part);
        text.push_str(&definitions.next().unwrap_or_default());
    }
    Some(text)
}

/// Returns a part of a text with other statements, and with the blank lines around them as before.
fn within(part: &str, statements: &str) -> String {
    let start = part.len() - part.trim_start().len();
    let end = part.trim_end().len();
    format!("{}{}{}", &part[..start], statements.trim(), &part[end..])
}

/// Cuts a text between two lines that follow each other exactly once, apart from blank lines.
fn cut<'t>(text: &'t str, above: &str, below: &str) -> Option<(&'t str, &'t str)> {
    let mut found = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let rest = text[at..].trim_start_matches(['\n', ' ', '\t']);
        let next = rest.lines().next().unwrap_or_default();
        if line.trim_end() == above.trim_end() && next.trim_end() == below.trim_end() {
            if found.is_some() {
                return None;
            }
            found = Some((&text[..at], &text[at..]));
        }
    }
    found
}
