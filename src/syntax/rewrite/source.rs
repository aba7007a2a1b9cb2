//! Source as a model writes it: at any indentation, with any line breaks.

use std::sync::Arc;

use super::super::lines::{Columns, indentation, is_blank};
use super::super::{FilePath, SymbolTree};
use super::place::{Manner, Style, style_of};
use crate::text::ByteRange;

/// Source moved to the left margin, with LF line breaks.
pub(super) struct Source {
    lines: Vec<Line>,
    /// The lines as parsed.
    pub(super) tree: SymbolTree,
}

#[derive(Clone)]
struct Line {
    text: String,
    /// It starts inside a string: nothing may be put before it or taken from it.
    in_string: bool,
}

impl Source {
    /// `manner` is that of the place for which the source is meant.
    pub(super) fn read(file: &FilePath, written: &str, manner: &Manner) -> Self {
        let written = written.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let mut lines = lines_of(file, &written);
        restore_first_indent(&mut lines, manner);
        Source::at_margin(file, lines)
    }

    fn at_margin(file: &FilePath, mut lines: Vec<Line>) -> Self {
        let indent = lines
            .first()
            .map_or(String::new(), |line| indentation(&line.text).to_owned());
        shift(&mut lines, &indent, "");
        let text = joined(&lines, "\n");
        let tree = SymbolTree::parse(file.clone(), Arc::from(text));
        Source { lines, tree }
    }

    /// The lines of a part of the source as a source of its own.
    pub(super) fn part(&self, range: ByteRange) -> Self {
        let lines = self.tree.lines();
        let (first, last) = lines.numbers(range);
        let part = self.lines[first as usize - 1..last as usize].to_vec();
        Source::at_margin(self.tree.file(), part)
    }

    /// The source as it must be written at a place, without a line break at the end.
    pub(super) fn fitted(&self, manner: &Manner) -> String {
        let mut lines = self.lines.clone();
        let own = lines.iter().filter(|line| !line.in_string);
        if let Some(own) = style_of(own.map(|line| line.text.as_str())) {
            convert(&mut lines, own, manner.style);
        }
        shift(&mut lines, "", &manner.indent);
        joined(&lines, manner.line_break)
    }

    /// Whether the line, from 0, has text at the margin or is indented less than its code.
    pub(super) fn text(&self) -> &str {
        self.tree.text()
    }

    /// Removes blank lines between the comments at the top and the definition below them, so that
    /// they become part of it.
    pub(super) fn close_up(self) -> Self {
        let is_comment = |line: &Line| line.text.starts_with('#');
        let top = self
            .lines
            .iter()
            .take_while(|line| is_comment(line) || is_blank(&line.text))
            .count();
        if !self.lines[..top].iter().any(|line| is_blank(&line.text)) || top == self.lines.len() {
            return self;
        }
        let kept = self
            .lines
            .into_iter()
            .enumerate()
            .filter(|(index, line)| *index >= top || !is_blank(&line.text))
            .map(|(_, line)| line)
            .collect();
        Source::at_margin(self.tree.file(), kept)
    }
}

/// The lines of the text without blank ones around it.
fn lines_of(file: &FilePath, text: &str) -> Vec<Line> {
    // Indented source is read as a block, or its first line would not parse.
    let first = text.lines().find(|line| !is_blank(line)).unwrap_or("");
    let head = if indentation(first).is_empty() {
        ""
    } else {
        "if 1:\n"
    };
    let tree = SymbolTree::parse(file.clone(), Arc::from(format!("{head}{text}")));
    let mut start = head.len();
    let mut lines = Vec::new();
    for line in text.split('\n') {
        lines.push(Line {
            text: line.to_owned(),
            in_string: tree.in_string(start),
        });
        start += line.len() + 1;
    }
    while lines.last().is_some_and(|line| is_blank(&line.text)) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| is_blank(&line.text)).count();
    lines.drain(..blank);
    lines
}

fn joined(lines: &[Line], line_break: &str) -> String {
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    texts.join(line_break)
}

/// Models often leave out the indentation of the first line alone.
fn restore_first_indent(lines: &mut [Line], manner: &Manner) {
    let Some((first, rest)) = lines.split_first_mut() else {
        return;
    };
    let indent = Columns::of(&manner.indent).wide;
    let least = rest
        .iter()
        .filter(|line| !line.in_string && !is_blank(&line.text))
        .map(|line| Columns::of(indentation(&line.text)).wide)
        .min();
    let expected = if first.text.starts_with(['@', '#']) {
        indent
    } else {
        indent + Columns::of(&manner.unit()).wide
    };
    let is_cut = indent > 0 && indentation(&first.text).is_empty() && least == Some(expected);
    if is_cut {
        first.text.insert_str(0, &manner.indent);
    }
}

/// Puts `to` in the place of the indentation `from`. A line that is indented less than `from`
/// keeps its distance to the others as far as the margin allows.
fn shift(lines: &mut [Line], from: &str, to: &str) {
    if from == to {
        return;
    }
    let movable = |line: &&mut Line| !line.in_string && !is_blank(&line.text);
    for line in lines.iter_mut().filter(movable) {
        let moved = match line.text.strip_prefix(from) {
            Some(rest) => format!("{to}{rest}"),
            None => {
                let indent = indentation(&line.text);
                let width = Columns::of(indent).wide + Columns::of(to).wide;
                let width = width.saturating_sub(Columns::of(from).wide);
                format!("{}{}", " ".repeat(width), &line.text[indent.len()..])
            }
        };
        line.text = moved;
    }
}

fn convert(lines: &mut [Line], from: Style, to: Style) {
    for line in lines.iter_mut().filter(|line| !line.in_string) {
        let indent = indentation(&line.text).to_owned();
        let converted = match (from, to) {
            (Style::Tabs, Style::Spaces(unit)) => indent.replace('\t', &" ".repeat(unit)),
            (Style::Spaces(unit), Style::Tabs) => {
                let width = Columns::of(&indent).wide;
                "\t".repeat(width / unit) + &" ".repeat(width % unit)
            }
            (Style::Tabs, Style::Tabs) | (Style::Spaces(_), Style::Spaces(_)) => continue,
        };
        line.text.replace_range(..indent.len(), &converted);
    }
}
