//! Decides which lines around a definition belong to its symbol.

use super::lines::{Columns, Lines, indentation, is_blank, is_space};
use starling_text::ByteRange;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A text with its lines and comments.
pub(super) struct Layout<'a> {
    pub(super) text: &'a str,
    pub(super) lines: &'a Lines,
    /// The ranges of the comments, in text order.
    pub(super) comments: &'a [ByteRange],
}

impl Layout<'_> {
    /// Returns the range of lines that belong to a definition: the comment lines directly above it
    /// that have the same indentation, the definition with the rest of its last line, and the
    /// following comment lines that are indented deeper.
    pub(super) fn span(&self, definition: ByteRange) -> ByteRange {
        ByteRange::new(self.start(definition.start), self.end(definition))
    }

    fn start(&self, definition: usize) -> usize {
        let line = self.lines.line_of(definition);
        let margin = self.margin(line);
        let indent = &self.text[margin.min(definition)..definition];
        if !indent.chars().all(is_space) {
            return definition;
        }
        if margin != self.lines.range(line).start {
            return margin;
        }
        let above = (0..line)
            .rev()
            .take_while(|line| self.is_own_comment(*line, indent))
            .last();
        above.map_or(margin, |line| self.margin(line))
    }

    /// Returns the offset at which the content of a line starts: after a byte order mark and form
    /// feeds, which belong to the file and not to a symbol.
    fn margin(&self, line: usize) -> usize {
        let range = self.lines.range(line);
        let content = range.of(self.text);
        let front = content.len()
            - content
                .trim_start_matches(|c| is_space(c) || c == BYTE_ORDER_MARK)
                .len();
        let skipped = content[..front]
            .rfind(['\u{c}', BYTE_ORDER_MARK])
            .map_or(0, |at| {
                at + content[at..].chars().next().map_or(0, char::len_utf8)
            });
        range.start + skipped
    }

    fn is_own_comment(&self, line: usize, indent: &str) -> bool {
        let range = self.lines.range(line);
        let margin = self.margin(line);
        let content = &self.text[margin..range.end];
        let first = line == 0 || margin == range.start;
        first
            && indentation(content) == indent
            && self.comment_at(margin + indent.len())
            && !is_file_header(line, content)
    }

    fn comment_at(&self, offset: usize) -> bool {
        self.comments
            .binary_search_by_key(&offset, |comment| comment.start)
            .is_ok()
    }

    fn end(&self, definition: ByteRange) -> usize {
        let line = self.lines.line_of(definition.end.saturating_sub(1));
        let line_end = self.lines.range(line).end;
        let rest = &self.text[definition.end..line_end];
        let after = rest.trim_start_matches(|c| is_space(c) || c == ';');
        if !is_blank(after) && !self.comment_at(line_end - after.len()) {
            return definition.end;
        }
        self.end_with_comments(line, self.indent_at(definition.start))
    }

    /// Returns the end of the last comment line after `line` that is indented deeper than `depth`,
    /// or the end of `line` if there is none.
    fn end_with_comments(&self, line: usize, depth: Columns) -> usize {
        let mut end = self.lines.range(line).end;
        for next in line + 1..self.lines.count() {
            let range = self.lines.range(next);
            let content = range.of(self.text);
            if is_blank(content) {
                continue;
            }
            let indent = indentation(content);
            let deeper = Columns::of(indent).wide > depth.wide;
            if !deeper || !self.comment_at(range.start + indent.len()) {
                break;
            }
            end = range.end;
        }
        end
    }

    fn indent_at(&self, offset: usize) -> Columns {
        let line = self.lines.line_of(offset);
        Columns::of(indentation(
            &self.text[self.margin(line)..self.lines.range(line).end],
        ))
    }
}

/// Returns whether a line is a `#!` line or an encoding declaration, which belong to the file.
fn is_file_header(line: usize, content: &str) -> bool {
    let is_encoding = || content.contains("coding:") || content.contains("coding=");
    (line == 0 && content.starts_with("#!")) || (line < 2 && is_encoding())
}
