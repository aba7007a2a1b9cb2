//! Deletes symbols from a file.

use tree_sitter::Node;

use super::super::definition::range_of;
use super::super::lines::{Columns, indentation, is_blank};
use super::super::{Symbol, SymbolKind, SymbolTree};
use super::place::CodeStyle;
use super::{RewriteError, TextReplacement};
use starling_text::ByteRange;

/// Plans the deletion of `symbol`. `all` are the symbols that are deleted together.
pub(super) fn plan(
    tree: &SymbolTree,
    symbol: &Symbol,
    all: &[&Symbol],
) -> Result<TextReplacement, RewriteError> {
    if symbol.kind == SymbolKind::Module {
        return Err(RewriteError::DeleteModule {
            file: tree.file().clone(),
        });
    }
    if takes_last_statement(tree, symbol, all) {
        let manner = CodeStyle::of(tree, symbol);
        let ends_line = symbol.span.of(tree.text()).ends_with('\n');
        let line_break = if ends_line { manner.line_break } else { "" };
        return Ok(TextReplacement {
            range: symbol.span,
            insert: format!("{}pass{line_break}", manner.indent),
        });
    }
    Ok(TextReplacement {
        range: with_blank_lines(tree, symbol, all),
        insert: String::new(),
    })
}

/// Returns whether a `pass` must replace the symbol, because the deletions leave no statement in
/// its block. Returns `true` only for the first statement of the block, so that only one `pass` is
/// inserted.
fn takes_last_statement(tree: &SymbolTree, symbol: &Symbol, all: &[&Symbol]) -> bool {
    let Some(block) = tree.node(symbol).and_then(block_around) else {
        return false;
    };
    let mut cursor = block.walk();
    let mut statements = block
        .named_children(&mut cursor)
        .filter(|child| !child.is_extra())
        .map(range_of)
        .peekable();
    let is_first = statements
        .peek()
        .is_some_and(|first| first.start == symbol.definition.start);
    is_first
        && statements.all(|statement| {
            all.iter()
                .any(|deleted| deleted.definition.start == statement.start)
        })
}

fn block_around(definition: Node<'_>) -> Option<Node<'_>> {
    let mut around = definition.parent()?;
    if around.kind() == "decorated_definition" {
        around = around.parent()?;
    }
    (around.kind() == "block").then_some(around)
}

/// Returns the span of a symbol with the blank lines after it. If all following symbols of its
/// block are also deleted, or if there are none, the blank lines before the symbol are included
/// instead.
fn with_blank_lines(tree: &SymbolTree, symbol: &Symbol, all: &[&Symbol]) -> ByteRange {
    let (text, lines) = (tree.text(), tree.lines());
    let ByteRange { mut start, mut end } = symbol.span;
    let starts_line = lines.range(lines.line_of(start)).start == start;
    let ends_line = end == text.len() || text[..end].ends_with('\n');
    if !starts_line || !ends_line {
        return symbol.span;
    }
    let depth = Columns::of(&CodeStyle::of(tree, symbol).indent).wide;
    let mut after = end;
    let (mut follows, mut is_past) = (false, false);
    // If the file ends without a line break, a symbol at the end of the file includes the last
    // line.
    let next = if text[..end].ends_with('\n') {
        lines.line_of(end)
    } else {
        lines.count()
    };
    for line in next..lines.count() {
        let range = lines.range(line);
        let content = range.of(text);
        let is_in = |one: &&Symbol| one.span.start <= range.start && range.start < one.span.end;
        if all.iter().any(is_in) {
            is_past = true;
            continue;
        }
        if !is_blank(content) {
            follows = Columns::of(indentation(content)).wide >= depth;
            break;
        }
        if !is_past {
            after = range.end;
        }
    }
    if follows {
        end = after;
    } else {
        for line in (0..lines.line_of(start)).rev() {
            let range = lines.range(line);
            if !is_blank(range.of(text)) {
                break;
            }
            start = range.start;
        }
    }
    ByteRange::new(start, end)
}
