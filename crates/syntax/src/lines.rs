//! Lines of a text, and their indentation.

use starling_text::ByteRange;

/// The start offsets of the lines of a text. Lines end at LF, CRLF or a lone CR, as in editors and
/// Python.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    starts: Vec<usize>,
    len: usize,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            let breaks = match byte {
                b'\n' => true,
                b'\r' => bytes.get(at + 1) != Some(&b'\n'),
                _ => false,
            };
            if breaks {
                starts.push(at + 1);
            }
        }
        Lines {
            starts,
            len: text.len(),
        }
    }

    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns the zero-based line that contains a byte offset.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    /// Returns the range of a line with its line break. The range is empty past the end of the
    /// text.
    pub(super) fn range(&self, line: usize) -> ByteRange {
        let start_of = |line: usize| self.starts.get(line).copied().unwrap_or(self.len);
        ByteRange::new(start_of(line), start_of(line + 1))
    }

    /// Returns the one-based numbers of the first and the last line of a range.
    pub(super) fn numbers(&self, range: ByteRange) -> (u32, u32) {
        let last = if range.is_empty() {
            range.start
        } else {
            range.end - 1
        };
        (self.number_at(range.start), self.number_at(last))
    }

    /// Returns the one-based line number of an offset.
    pub(super) fn number_at(&self, offset: usize) -> u32 {
        u32::try_from(self.line_of(offset) + 1).unwrap_or(u32::MAX)
    }
}

/// Returns whether a character is white space inside a Python line. A form feed counts, and resets
/// the column count.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim_start_matches(is_space)
        .trim_end_matches(['\r', '\n'])
        .is_empty()
}

/// Returns the white space at the start of a line.
pub(super) fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(is_space).len()]
}

/// Returns a line without its line break.
pub(super) fn without_break(line: &str) -> &str {
    line.strip_suffix("\r\n")
        .or_else(|| line.strip_suffix(['\n', '\r']))
        .unwrap_or(line)
}

/// The width of an indentation. Like Python, it is measured twice: with tabs of eight columns, and
/// with tabs of one column. Two lines have the same depth if both widths are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) wide: usize,
    pub(super) narrow: usize,
}

impl Columns {
    pub(super) fn of(space: &str) -> Self {
        let mut columns = Columns { wide: 0, narrow: 0 };
        for c in space.chars() {
            match c {
                '\t' => {
                    columns.wide = columns.wide / 8 * 8 + 8;
                    columns.narrow += 1;
                }
                '\u{c}' => columns = Columns { wide: 0, narrow: 0 },
                _ => {
                    columns.wide += 1;
                    columns.narrow += 1;
                }
            }
        }
        columns
    }

    /// Returns whether the indentation is deeper in both measures.
    pub(super) fn deeper_than(self, other: Columns) -> bool {
        self.wide > other.wide && self.narrow > other.narrow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_lf_crlf_and_cr() {
        let text = "a\r\nb\rc\n\u{c}d";
        let lines = Lines::of(text);
        let parts: Vec<&str> = (0..lines.count())
            .map(|n| lines.range(n).of(text))
            .collect();
        assert_eq!(parts, ["a\r\n", "b\r", "c\n", "\u{c}d"]);
        assert_eq!(lines.numbers(ByteRange::new(3, 7)), (2, 3));
        assert_eq!(lines.range(9), ByteRange::new(text.len(), text.len()));
    }

    #[test]
    fn columns_are_counted_as_python_does() {
        assert_eq!(Columns::of("  \t "), Columns { wide: 9, narrow: 4 });
        assert_eq!(Columns::of("    \u{c} "), Columns { wide: 1, narrow: 1 });
        assert!(!Columns::of("\t").deeper_than(Columns::of("  ")));
    }

    #[test]
    fn blank_lines_indentation_and_line_breaks_are_detected() {
        assert!(is_blank(" \t\u{c}\r\n") && !is_blank(" x\n"));
        assert_eq!(indentation("\t  x "), "\t  ");
        assert_eq!(["a\r\n", "a\n", "a\r", "a"].map(without_break), ["a"; 4]);
    }
}
