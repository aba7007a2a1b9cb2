//! Source code as a model wrote it, with any indentation and any line breaks.

use std::sync::Arc;

use tree_sitter::Node;

use super::super::flaw::{flaws, statements};
use super::super::lines::{Columns, indentation, is_blank};
use super::super::{FilePath, Symbol, SymbolKind, SymbolTree};
use super::RewriteError;
use super::place::{CodeStyle, IndentStyle, style_of};
use starling_text::ByteRange;

/// Source code with its indentation removed and with LF line breaks.
pub(super) struct Source {
    lines: Vec<Line>,
    /// The syntax tree of the lines.
    pub(super) tree: SymbolTree,
}

/// A line of source code.
#[derive(Clone)]
struct Line {
    text: String,
    /// Whether the line starts inside a string, so that its indentation must not change.
    in_string: bool,
}

impl Source {
    /// Reads source code. `manner` is the code style at the position where the source is inserted.
    pub(super) fn read(file: &FilePath, written: &str, manner: &CodeStyle) -> Self {
        let written = written
            .trim_start_matches('\u{feff}')
            .replace("\r\n", "\n")
            .replace('\r', "\n");
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

    /// Returns the lines of a range as a separate source.
    pub(super) fn part(&self, range: ByteRange) -> Self {
        let lines = self.tree.lines();
        let (first, last) = lines.numbers(range);
        let part = self.lines[first as usize - 1..last as usize].to_vec();
        Source::at_margin(self.tree.file(), part)
    }

    /// Returns the source in the given code style, without a line break at the end.
    pub(super) fn fitted(&self, manner: &CodeStyle) -> String {
        let mut lines = self.lines.clone();
        let own = lines.iter().filter(|line| !line.in_string);
        if let Some(own) = style_of(own.map(|line| line.text.as_str())) {
            for line in lines.iter_mut().filter(|line| !line.in_string) {
                line.text = convert_line(&line.text, own, manner.style);
            }
        }
        shift(&mut lines, "", &manner.indent);
        joined(&lines, manner.line_break)
    }

    /// Removes a class that a model wrapped around the definitions for context.
    pub(super) fn unwrapped(mut self, classes: &[&Symbol]) -> Self {
        while let Some(inside) = self.inside_of_wrapper(classes) {
            self = self.part(inside);
        }
        self
    }

    fn inside_of_wrapper(&self, classes: &[&Symbol]) -> Option<ByteRange> {
        let [outer] = self.tree.module().children[..] else {
            return None;
        };
        let outer = self.tree.get(outer);
        let is_known = |class: &&Symbol| {
            class.kind == SymbolKind::Class && class.contract.name == outer.contract.name
        };
        let body = self.tree.node(outer)?.child_by_field_name("body")?;
        let first = self.tree.get(*outer.children.first()?);
        let last = self.tree.get(*outer.children.last()?);
        let is_wrapper = outer.kind == SymbolKind::Class
            && classes.iter().any(is_known)
            && statements(body).all(is_definition);
        is_wrapper.then(|| ByteRange::new(first.span.start, last.span.end))
    }

    /// Checks the syntax of the source.
    ///
    /// # Errors
    /// The source has a syntax error. If there are several, the first one is returned.
    pub(super) fn check_syntax(&self, symbol: &str) -> Result<(), RewriteError> {
        let Some(flaw) = flaws(&self.tree).into_iter().next() else {
            return Ok(());
        };
        let lines = self.tree.lines();
        let line = lines.range(lines.line_of(flaw.at)).of(self.tree.text());
        Err(RewriteError::SourceSyntax {
            symbol: symbol.to_owned(),
            line: lines.number_at(flaw.at),
            text: line.trim().to_owned(),
            what: flaw.what,
        })
    }

    /// Checks that all statements are definitions.
    ///
    /// # Errors
    /// The source has another statement. If there are several, the first one is returned.
    pub(super) fn check_only_definitions(&self, symbol: &str) -> Result<(), RewriteError> {
        let mut others = self.tree.root().into_iter().flat_map(statements);
        match others.find(|node| !is_definition(*node)) {
            Some(other) => Err(self.outside(symbol, other.start_byte())),
            None => Ok(()),
        }
    }

    /// Returns the error for code outside of the definition.
    pub(super) fn outside(&self, symbol: &str, at: usize) -> RewriteError {
        let lines = self.tree.lines();
        let line = lines.range(lines.line_of(at)).of(self.tree.text());
        RewriteError::CodeOutside {
            symbol: symbol.to_owned(),
            line: lines.number_at(at),
            text: line.trim().to_owned(),
        }
    }

    /// Removes blank lines between the comments at the top and the definition below, so that the
    /// comments become part of the definition.
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

fn is_definition(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "function_definition" | "class_definition" | "decorated_definition"
    )
}

/// Returns the lines of a text without leading and trailing blank lines.
fn lines_of(file: &FilePath, text: &str) -> Vec<Line> {
    // Indented source is parsed inside of an `if` block, because its first line would not parse
    // otherwise.
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

/// Restores the indentation of the first line, which models often leave out.
fn restore_first_indent(lines: &mut [Line], manner: &CodeStyle) {
    let Some((first, rest)) = lines.split_first_mut() else {
        return;
    };
    let indent = Columns::of(&manner.indent).wide;
    let widths: Vec<usize> = rest
        .iter()
        .filter(|line| !line.in_string && !is_blank(&line.text))
        .map(|line| Columns::of(indentation(&line.text)).wide)
        .collect();
    let least = widths.iter().min().copied().unwrap_or(0);
    let expected = if first.text.starts_with(['@', '#']) {
        indent
    } else {
        indent + Columns::of(&manner.unit()).wide
    };
    // A body that is indented by at most four columns is normal, whatever indentation the file
    // uses.
    let is_ordinary =
        expected != indent && least <= 4 && widths.iter().all(|width| width % least.max(1) == 0);
    let is_cut =
        indent > 0 && indentation(&first.text).is_empty() && least == expected && !is_ordinary;
    if is_cut {
        first.text.insert_str(0, &manner.indent);
    }
}

fn shift(lines: &mut [Line], from: &str, to: &str) {
    for line in lines.iter_mut().filter(|line| !line.in_string) {
        line.text = shift_line(&line.text, from, to);
    }
}

/// Replaces the indentation `from` by `to`. A line that is indented less than `from` keeps its
/// indentation relative to the other lines as far as possible. A blank line does not change.
pub(super) fn shift_line(line: &str, from: &str, to: &str) -> String {
    if from == to || is_blank(line) {
        return line.to_owned();
    }
    match line.strip_prefix(from) {
        Some(rest) => format!("{to}{rest}"),
        None => {
            let indent = indentation(line);
            let width = Columns::of(indent).wide + Columns::of(to).wide;
            let width = width.saturating_sub(Columns::of(from).wide);
            format!("{}{}", " ".repeat(width), &line[indent.len()..])
        }
    }
}

/// Converts the indentation of a line to another style.
pub(super) fn convert_line(line: &str, from: IndentStyle, to: IndentStyle) -> String {
    let indent = indentation(line);
    let converted = match (from, to) {
        (IndentStyle::Tabs, IndentStyle::Spaces(unit)) => indent.replace('\t', &" ".repeat(unit)),
        (IndentStyle::Spaces(unit), IndentStyle::Tabs) => {
            let width = Columns::of(indent).wide;
            "\t".repeat(width / unit) + &" ".repeat(width % unit)
        }
        (IndentStyle::Tabs, IndentStyle::Tabs)
        | (IndentStyle::Spaces(_), IndentStyle::Spaces(_)) => indent.to_owned(),
    };
    converted + &line[indent.len()..]
}
