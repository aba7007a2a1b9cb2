//! Replaces text inside a symbol (patches with hunks of old and new text).

use super::super::lines::{Columns, indentation, is_blank, without_break};
use super::super::{Symbol, SymbolTree};
use super::place::{CodeStyle, IndentStyle, style_of};
use super::source::{convert_line, shift_line};
use super::{RewriteError, TextReplacement};
use starling_text::ByteRange;

pub(super) fn plan(
    tree: &SymbolTree,
    symbol: &Symbol,
    hunks: &[(String, String)],
) -> Result<Vec<TextReplacement>, RewriteError> {
    let manner = CodeStyle::of(tree, symbol);
    let in_breaks = |text: &str| text.replace("\r\n", "\n").replace('\n', manner.line_break);
    hunks
        .iter()
        .enumerate()
        .map(|(index, (old, new))| {
            let hunk = Hunk {
                tree,
                symbol,
                manner: &manner,
                number: index + 1,
                old: &in_breaks(old),
                new: &in_breaks(new),
            };
            hunk.plan()
        })
        .collect()
}

/// A hunk of a patch: the old text to find in a symbol, and its replacement.
struct Hunk<'a> {
    tree: &'a SymbolTree,
    symbol: &'a Symbol,
    manner: &'a CodeStyle,
    /// One-based number of the hunk.
    number: usize,
    old: &'a str,
    new: &'a str,
}

impl Hunk<'_> {
    fn plan(&self) -> Result<TextReplacement, RewriteError> {
        if self.old.trim().is_empty() {
            return Err(RewriteError::EmptyHunk {
                symbol: self.place(),
                hunk: self.number,
            });
        }
        let exact = self.exact();
        if !exact.is_empty() {
            let range = self.only(exact)?;
            return Ok(TextReplacement {
                range,
                insert: self.with_last_break(range),
            });
        }
        for lines in self.readings() {
            let found = self.by_lines(&lines);
            if !found.is_empty() {
                return self
                    .only(found)
                    .map(|range| self.replace_lines(range, &lines));
            }
        }
        Err(RewriteError::HunkNotFound {
            symbol: self.place(),
            hunk: self.number,
            hint: self.hint(),
        })
    }

    fn only(&self, found: Vec<ByteRange>) -> Result<ByteRange, RewriteError> {
        if let [range] = found[..] {
            return Ok(range);
        }
        let lines: Vec<String> = found
            .iter()
            .map(|range| self.tree.lines().number_at(range.start).to_string())
            .collect();
        Err(RewriteError::HunkAmbiguous {
            symbol: self.place(),
            hunk: self.number,
            count: found.len(),
            lines: lines.join(", "),
        })
    }

    /// Returns whether the patch may change a range. The range must be in the symbol's span. In a
    /// module body, it must also not overlap another symbol.
    fn may_change(&self, range: ByteRange) -> bool {
        let is_module = self.symbol.path.is_module();
        let is_of_child = |id: &super::super::SymbolId| {
            let span = self.tree.get(*id).span;
            range.start < span.end && span.start < range.end
        };
        self.symbol.span.covers(range)
            && !(is_module && self.symbol.children.iter().any(is_of_child))
    }

    fn exact(&self) -> Vec<ByteRange> {
        occurrences(self.tree.text(), self.symbol.span, self.old)
            .filter(|range| self.may_change(*range))
            .collect()
    }

    /// Returns the new text with a line break at its end only if the old text ends with one.
    /// Otherwise the patch could join the next line or add a blank line.
    fn with_last_break(&self, range: ByteRange) -> String {
        let mut new = self.new.to_owned();
        let (old_ends, new_ends) = (self.old.ends_with('\n'), new.ends_with('\n'));
        let ends_line = self.tree.text()[range.end..].starts_with(['\r', '\n']);
        if old_ends && !new.is_empty() && !new_ends {
            new.push_str(self.manner.line_break);
        } else if !old_ends && new_ends && ends_line {
            new.truncate(without_break(&new).len());
        }
        new
    }

    /// Returns the lines of `old` and `new` in two variants: as written, and converted to the
    /// indentation style of the file if it differs.
    fn readings(&self) -> Vec<HunkLines> {
        let as_written = HunkLines {
            old: lines_of(self.old),
            new: lines_of(self.new),
        };
        let mut readings = vec![];
        let style = style_of(
            as_written
                .old
                .iter()
                .chain(&as_written.new)
                .map(String::as_str),
        );
        if let Some(style) = style.filter(|style| differ(*style, self.manner.style)) {
            let convert = |lines: &[String]| {
                lines
                    .iter()
                    .map(|line| convert_line(line, style, self.manner.style))
                    .collect()
            };
            readings.push(HunkLines {
                old: convert(&as_written.old),
                new: convert(&as_written.new),
            });
        }
        readings.insert(0, as_written);
        readings
    }

    /// Returns the blocks of lines that equal the old lines, ignoring white space at line ends and
    /// a uniform difference in indentation. The last line break is not included.
    fn by_lines(&self, wanted: &HunkLines) -> Vec<ByteRange> {
        let text = self.tree.text();
        let lines = self.tree.lines();
        let first = lines.line_of(self.symbol.span.start);
        let last = lines.line_of(self.symbol.span.end.saturating_sub(1));
        let count = wanted.old.len();
        (first..=last)
            .filter(|line| line + count <= last + 1)
            .filter_map(|line| {
                let content = |index: usize| without_break(lines.range(line + index).of(text));
                let same = same_but_for_indentation(&wanted.old, content);
                let end = lines.range(line + count - 1);
                let end = end.start + content(count - 1).len();
                same.then(|| ByteRange::new(lines.range(line).start, end))
            })
            .filter(|range| self.may_change(*range))
            .collect()
    }

    fn replace_lines(&self, range: ByteRange, lines: &HunkLines) -> TextReplacement {
        let text = self.tree.text();
        if lines.new.is_empty() {
            let line = self.tree.lines().line_of(range.start.max(range.end - 1));
            return TextReplacement {
                range: ByteRange::new(range.start, self.tree.lines().range(line).end),
                insert: String::new(),
            };
        }
        let old = lines.old.iter().position(|line| !is_blank(line));
        let index = old.unwrap_or(0);
        let from = indentation(&lines.old[index]);
        let there = range.of(text).lines().nth(index).unwrap_or_default();
        let moved: Vec<String> = lines
            .new
            .iter()
            .map(|line| shift_line(line, from, indentation(there)))
            .collect();
        TextReplacement {
            range,
            insert: moved.join(self.manner.line_break),
        }
    }

    /// Returns the name of the symbol, or of the file for its module body.
    fn place(&self) -> String {
        match self.symbol.path.name.as_str() {
            "" => self.symbol.path.file.to_string(),
            name => name.to_owned(),
        }
    }

    /// Returns a hint for a hunk that was not found: where else the old text occurs, or the most
    /// similar lines of the symbol.
    fn hint(&self) -> String {
        let text = self.tree.text();
        let everywhere = ByteRange::new(0, text.len());
        if let Some(range) = occurrences(text, everywhere, self.old).next() {
            let owner = &self.tree.owner(range.start).path.name;
            let line = self.tree.lines().number_at(range.start);
            return if owner.is_empty() {
                format!("it is in the module body, at line {line}")
            } else {
                format!("it is in `{owner}`, at line {line}")
            };
        }
        let first = self.old.trim().lines().next().unwrap_or_default().trim();
        let (from, to) = self.symbol.lines;
        let lines: Vec<&str> = (from..=to)
            .map(|line| self.tree.lines().range(line as usize - 1).of(text).trim())
            .collect();
        let near = similar::get_close_matches(first, &lines, 3, 0.5);
        if near.is_empty() {
            return format!(
                "nothing in lines {from} to {to} looks like `{first}`: read them again"
            );
        }
        let near: Vec<String> = near
            .into_iter()
            .map(|near| {
                let at = lines.iter().position(|line| *line == near).unwrap_or(0);
                format!("line {}: `{near}`", from as usize + at)
            })
            .collect();
        format!("the lines most similar to `{first}`: {}", near.join("; "))
    }
}

/// The lines of a hunk's old and new text.
struct HunkLines {
    old: Vec<String>,
    new: Vec<String>,
}

/// Splits a text into lines without line breaks and without blank lines at the end.
fn lines_of(text: &str) -> Vec<String> {
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Vec::new();
    }
    text.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn differ(one: IndentStyle, other: IndentStyle) -> bool {
    (one == IndentStyle::Tabs) != (other == IndentStyle::Tabs)
}

fn occurrences<'t>(
    text: &'t str,
    within: ByteRange,
    wanted: &'t str,
) -> impl Iterator<Item = ByteRange> + 't {
    let mut from = within.start;
    std::iter::from_fn(move || {
        let start = from + text.get(from..within.end)?.find(wanted)?;
        // Searches from the next character on, because the next occurrence may overlap this one.
        from = start + wanted.chars().next().map_or(1, char::len_utf8);
        Some(ByteRange::new(start, start + wanted.len()))
    })
}

fn same_but_for_indentation<'t>(wanted: &[String], there: impl Fn(usize) -> &'t str) -> bool {
    let mut distance = None;
    wanted.iter().enumerate().all(|(index, wanted)| {
        let there = there(index).trim_end();
        if wanted.trim_start() != there.trim_start() {
            return false;
        }
        let width = |line: &str| Columns::of(indentation(line)).wide as isize;
        let own = width(there) - width(wanted);
        is_blank(wanted) || *distance.get_or_insert(own) == own
    })
}
