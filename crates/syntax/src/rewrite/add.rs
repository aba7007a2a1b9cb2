//! Adds new symbols to a file.

use tree_sitter::Node;

use super::super::definition::range_of;
use super::super::lines::{Columns, indentation, is_blank};
use super::super::{Language, Symbol, SymbolKind, SymbolTree};
use super::place::{CodeStyle, indent_at};
use super::source::Source;
use super::{Place, RewriteError, TextReplacement};
use starling_text::ByteRange;

pub(super) fn plan(
    tree: &SymbolTree,
    beside: &Symbol,
    place: Place,
    written: &str,
) -> Result<TextReplacement, RewriteError> {
    if tree.language() == Language::Plain {
        return Ok(append(tree, written));
    }
    let container = match (place, beside.parent) {
        (Place::After, Some(parent)) => tree.get(parent),
        (Place::After, None) | (Place::Inside, _) => beside,
    };
    let spot = match (place, beside.kind) {
        (Place::After | Place::Inside, SymbolKind::Module) => InsertionPoint::at_end(tree),
        (Place::Inside, SymbolKind::Class) => InsertionPoint::inside(tree, beside),
        (Place::Inside, SymbolKind::Function | SymbolKind::Method) => {
            return Err(RewriteError::NotAClass {
                symbol: beside.path.name.clone(),
            });
        }
        (Place::After, SymbolKind::Class | SymbolKind::Function | SymbolKind::Method) => {
            InsertionPoint::after(tree, beside)?
        }
    };
    let source = Source::read(tree.file(), written, &spot.manner).unwrapped(&[container]);
    check(tree, container, &source)?;
    Ok(spot.plan(tree, &source.fitted(&spot.manner)))
}

/// The position of a new symbol, and the code style there.
struct InsertionPoint {
    /// The range that the new symbol replaces: empty, or the placeholder `pass` or `...`.
    range: ByteRange,
    manner: CodeStyle,
    blank_lines: usize,
}

impl InsertionPoint {
    fn at_end(tree: &SymbolTree) -> Self {
        let mut manner = CodeStyle::of(tree, tree.module());
        manner.indent = String::new();
        let end = tree.text().len();
        InsertionPoint {
            range: ByteRange::new(end, end),
            manner,
            blank_lines: 2,
        }
    }

    fn after(tree: &SymbolTree, beside: &Symbol) -> Result<Self, RewriteError> {
        let end = beside.span.end;
        if end != tree.text().len() && !tree.text()[..end].ends_with('\n') {
            return Err(RewriteError::SharedLine {
                symbol: beside.path.name.clone(),
            });
        }
        let manner = CodeStyle::of(tree, beside);
        Ok(InsertionPoint {
            range: ByteRange::new(end, end),
            blank_lines: if manner.indent.is_empty() { 2 } else { 1 },
            manner,
        })
    }

    /// Returns the insertion point at the end of a class. A class body with only `pass` or `...` is
    /// replaced.
    fn inside(tree: &SymbolTree, class: &Symbol) -> Self {
        let mut manner = CodeStyle::of(tree, class);
        let text = tree.text();
        let mut range = ByteRange::new(class.span.end, class.span.end);
        let mut blank_lines = 1;
        let body = tree
            .node(class)
            .and_then(|node| node.child_by_field_name("body"));
        let first = body.and_then(|body| body.named_child(0));
        manner.indent.push_str(&manner.unit());
        if let (Some(body), Some(first)) = (body, first) {
            let lines = tree.lines();
            let line = lines.range(lines.line_of(first.start_byte()));
            let starts_line = is_blank(&text[line.start..first.start_byte()]);
            if starts_line {
                manner.indent = indent_at(tree, first.start_byte()).to_owned();
            }
            if is_placeholder(body, text) {
                let before = text[..first.start_byte()]
                    .trim_end_matches([' ', '\t'])
                    .len();
                range.start = if starts_line { line.start } else { before };
                blank_lines = 0;
            }
        }
        InsertionPoint {
            range,
            manner,
            blank_lines,
        }
    }

    /// Returns whether the next line of code is in the same block.
    fn is_sibling(&self, next: &str) -> bool {
        let width = |space: &str| Columns::of(space).wide;
        width(indentation(next)) >= width(&self.manner.indent)
    }

    /// Returns the replacement that inserts the source and the missing blank lines around it.
    fn plan(&self, tree: &SymbolTree, source: &str) -> TextReplacement {
        let text = tree.text();
        let line_break = self.manner.line_break;
        let (before, after) = (&text[..self.range.start], &text[self.range.end..]);
        let starts_line = before.is_empty() || before.ends_with('\n') || before == "\u{feff}";
        let mut insert = String::new();
        if !starts_line {
            insert.push_str(line_break);
        }
        if !before.trim_matches('\u{feff}').is_empty() {
            let there = blank_lines(before.lines().rev());
            insert.push_str(&line_break.repeat(self.blank_lines.saturating_sub(there)));
        }
        insert.push_str(source);
        if !after.is_empty() || text.ends_with('\n') || text.trim_matches('\u{feff}').is_empty() {
            insert.push_str(line_break);
        }
        let next = after.lines().find(|line| !is_blank(line));
        if next.is_some_and(|next| self.is_sibling(next)) {
            let there = blank_lines(after.lines());
            insert.push_str(&line_break.repeat(self.blank_lines.saturating_sub(there)));
        }
        TextReplacement {
            range: self.range,
            insert,
        }
    }
}

fn blank_lines<'t>(lines: impl Iterator<Item = &'t str>) -> usize {
    lines.take_while(|line| is_blank(line)).count()
}

fn is_placeholder(body: Node<'_>, text: &str) -> bool {
    let only = body
        .named_child(0)
        .filter(|_| body.named_child_count() == 1);
    only.is_some_and(|only| matches!(range_of(only).of(text), "pass" | "..."))
}

/// Appends text to a file without a grammar.
fn append(tree: &SymbolTree, written: &str) -> TextReplacement {
    let spot = InsertionPoint {
        blank_lines: 0,
        ..InsertionPoint::at_end(tree)
    };
    let source = written.replace("\r\n", "\n");
    let source = source
        .trim_end_matches('\n')
        .replace('\n', spot.manner.line_break);
    spot.plan(tree, &source)
}

/// Checks that the source contains only definitions and that none of them exists already.
fn check(tree: &SymbolTree, container: &Symbol, source: &Source) -> Result<(), RewriteError> {
    let label = "the new symbol";
    source.check_syntax(label)?;
    let definitions = &source.tree.module().children;
    if definitions.is_empty() {
        return Err(RewriteError::NoDefinition {
            symbol: label.to_owned(),
        });
    }
    source.check_only_definitions(label)?;
    for id in definitions {
        let new = &source.tree.get(*id).contract;
        let same = container
            .children
            .iter()
            .map(|id| tree.get(*id))
            .find(|there| {
                there.contract.name == new.name
                    && there.contract.decorators.is_empty()
                    && new.decorators.is_empty()
            });
        if let Some(there) = same {
            return Err(RewriteError::Exists {
                symbol: there.path.name.clone(),
            });
        }
    }
    Ok(())
}
