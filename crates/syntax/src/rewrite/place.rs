//! Detects the indentation and the line breaks of the code around a symbol.

use super::super::lines::{Columns, indentation, is_blank};
use super::super::{Symbol, SymbolTree};
use starling_text::ByteRange;

/// The indentation style: tabs, or a number of spaces for each level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndentStyle {
    Tabs,
    Spaces(usize),
}

const USUAL: IndentStyle = IndentStyle::Spaces(4);

/// The code style around a symbol.
#[derive(Debug, Clone)]
pub(super) struct CodeStyle {
    /// The white space before the symbol's definition.
    pub(super) indent: String,
    pub(super) style: IndentStyle,
    pub(super) line_break: &'static str,
}

impl CodeStyle {
    pub(super) fn of(tree: &SymbolTree, symbol: &Symbol) -> Self {
        let whole = ByteRange::new(0, tree.text().len());
        CodeStyle {
            indent: indent_at(tree, symbol.definition.start).to_owned(),
            style: style_in(tree, symbol.span)
                .or_else(|| style_in(tree, whole))
                .unwrap_or(USUAL),
            line_break: break_in(symbol.span.of(tree.text()))
                .or_else(|| break_in(tree.text()))
                .unwrap_or("\n"),
        }
    }

    /// Returns one level of indentation.
    pub(super) fn unit(&self) -> String {
        match self.style {
            IndentStyle::Tabs => "\t".to_owned(),
            IndentStyle::Spaces(count) => " ".repeat(count),
        }
    }
}

/// Returns the white space before an offset on its line, or an empty text if other characters
/// precede it.
pub(super) fn indent_at(tree: &SymbolTree, offset: usize) -> &str {
    let lines = tree.lines();
    let before = &tree.text()[lines.range(lines.line_of(offset)).start..offset];
    let before = before
        .rsplit(['\u{c}', '\u{feff}'])
        .next()
        .unwrap_or_default();
    if is_blank(before) { before } else { "" }
}

/// Returns the style of the indented lines of a range, or `None` if no line is indented.
fn style_in(tree: &SymbolTree, range: ByteRange) -> Option<IndentStyle> {
    let lines = tree.lines();
    let first = lines.line_of(range.start);
    let starts = (first..lines.count())
        .map(|line| lines.range(line))
        .take_while(|line| line.start < range.end)
        .filter(|line| !tree.in_string(line.start));
    style_of(starts.map(|line| line.of(tree.text())))
}

/// Returns the indentation style of lines, relative to the first line.
pub(super) fn style_of<'a>(lines: impl Iterator<Item = &'a str>) -> Option<IndentStyle> {
    let (mut tabs, mut spaces, mut unit) = (0, 0, usize::MAX);
    let mut base = None;
    for line in lines.filter(|line| !is_blank(line)) {
        let indent = indentation(line);
        let width = Columns::of(indent).wide;
        let base = *base.get_or_insert(width);
        if indent.starts_with('\t') {
            tabs += 1;
        } else if indent.starts_with(' ') {
            spaces += 1;
        }
        if width > base {
            unit = unit.min(width - base);
        }
    }
    match tabs > spaces {
        true => Some(IndentStyle::Tabs),
        false => (unit != usize::MAX).then_some(IndentStyle::Spaces(unit)),
    }
}

/// Returns the more frequent line break of a text, or `None` if the text has no line breaks.
fn break_in(text: &str) -> Option<&'static str> {
    let all = text.matches('\n').count();
    let with_return = text.matches("\r\n").count();
    match (all, with_return * 2 > all) {
        (0, _) => None,
        (_, true) => Some("\r\n"),
        (_, false) => Some("\n"),
    }
}
