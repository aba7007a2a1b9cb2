//! Joins the continuations of a text that was cut off.
//!
//! A model that is asked to continue may repeat the unfinished line from its start. Such a
//! repetition is only removed if the text was cut within a line and the continuation begins with
//! the start of that line. If the text was cut between two lines, nothing is removed, so repeated
//! lines are kept. If the start of the line is not distinctive (a ruler, a number, the same word
//! twice), the continuation is used unchanged.

use super::fence::{self, ReopenedFence};

/// Maximum part of the answer that the continuation request quotes, in lines and in bytes.
const QUOTED_LINES: usize = 3;
const QUOTED_BYTES: usize = 400;

/// How line breaks are written: as characters, or as escapes within a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineBreaks {
    Real,
    Escaped,
}

impl LineBreaks {
    fn ends(self) -> &'static [&'static str] {
        match self {
            LineBreaks::Real => &["\n"],
            LineBreaks::Escaped => &["\n", "\\n"],
        }
    }

    /// Returns the byte offset of the last line.
    fn last_start(self, text: &str) -> usize {
        let starts = self.ends().iter();
        starts
            .filter_map(|end| text.rfind(end).map(|at| at + end.len()))
            .max()
            .unwrap_or(0)
    }

    fn starts(self, text: &str) -> bool {
        self.ends().iter().any(|end| text.starts_with(end)) || text.starts_with('\r')
    }

    /// Returns the text without its last line break.
    fn trim_end(self, text: &str) -> &str {
        let trimmed = self.ends().iter().find_map(|end| text.strip_suffix(end));
        trimmed.unwrap_or(text)
    }
}

/// Returns the unfinished last line, or an empty text if the text ends with a line break.
pub(super) fn partial_line(text: &str, breaks: LineBreaks) -> &str {
    &text[breaks.last_start(text)..]
}

/// Returns the end of the text to quote to the model: whole lines if they are short enough.
pub(super) fn quote(text: &str, breaks: LineBreaks) -> &str {
    let fits = |start: &usize| text.len() - start <= QUOTED_BYTES;
    let starts = last_line_starts(text, breaks, QUOTED_LINES);
    let start = starts.into_iter().rev().find(fits).unwrap_or_else(|| {
        let mut at = text.len() - QUOTED_BYTES;
        while !text.is_char_boundary(at) {
            at += 1;
        }
        at
    });
    &text[start..]
}

/// Returns the start of the unfinished line and of each of the `more` lines before it, last line
/// first.
fn last_line_starts(text: &str, breaks: LineBreaks, more: usize) -> Vec<usize> {
    let mut starts = vec![breaks.last_start(text)];
    let mut start = starts[0];
    while start > 0 && starts.len() <= more {
        start = breaks.last_start(breaks.trim_end(&text[..start]));
        starts.push(start);
    }
    starts
}

/// A text that grows with each continuation.
#[derive(Debug)]
pub(super) struct JoinedText {
    text: String,
    /// Whether a continuation of bare text opened a code fence, which must be removed at the end.
    wrapped: bool,
}

impl JoinedText {
    pub fn new(text: String) -> Self {
        JoinedText {
            text,
            wrapped: false,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends a continuation. Returns whether the text grew.
    pub fn push(&mut self, piece: &str) -> bool {
        let (reopened, piece) = match without_repeat(&self.text, piece, LineBreaks::Real) {
            Some(rest) => (ReopenedFence::No, rest),
            None => fence::without_opening(&self.text, piece),
        };
        let piece = match reopened {
            ReopenedFence::No => piece,
            ReopenedFence::Inside | ReopenedFence::Around => {
                without_repeat(&self.text, piece, LineBreaks::Real).unwrap_or(piece)
            }
        };
        self.wrapped |= reopened == ReopenedFence::Around;
        self.text.push_str(piece);
        !piece.is_empty()
    }

    /// Returns the text of an answer that the model completed.
    pub fn into_whole(self) -> String {
        match self.text.trim_end().strip_suffix("\n```") {
            Some(inside) if self.wrapped => format!("{inside}\n"),
            Some(_) | None => self.text,
        }
    }

    /// Returns the text of an answer that is still incomplete.
    pub fn into_partial(self) -> String {
        self.text
    }
}

/// Returns the rest of a continuation that begins by repeating the end of the text, or `None` if it
/// does not repeat anything.
pub(super) fn without_repeat<'a>(
    text: &str,
    piece: &'a str,
    breaks: LineBreaks,
) -> Option<&'a str> {
    let partial = partial_line(text, breaks);
    if !is_telling(partial) {
        return None;
    }
    without_line(partial, piece, breaks)
        .or_else(|| without_words(partial, piece))
        .or_else(|| without_lines(text, partial, piece, breaks))
}

/// Removes a repeated unfinished line, unless the continuation also makes sense with the line.
fn without_line<'a>(partial: &str, piece: &'a str, breaks: LineBreaks) -> Option<&'a str> {
    let rest = piece.strip_prefix(partial)?;
    let is_list_of_one_word = goes_on_with(rest, partial.trim());
    let would_leave_blanks =
        partial.ends_with([' ', '\t']) && (rest.is_empty() || breaks.starts(rest));
    (!is_list_of_one_word && !would_leave_blanks).then_some(rest)
}

/// Like [`without_line`], for a repetition that leaves out the indentation.
fn without_words<'a>(partial: &str, piece: &'a str) -> Option<&'a str> {
    let words = partial.trim_start();
    if words.len() == partial.len() || words.len() < 4 {
        return None;
    }
    let rest = piece.strip_prefix(words)?;
    (!goes_on_with(rest, words.trim_end())).then_some(rest)
}

/// Whether `rest` continues with the same words on the same line.
fn goes_on_with(rest: &str, words: &str) -> bool {
    rest.trim_start_matches([' ', '\t']).starts_with(words)
}

/// Removes a repetition of the unfinished line together with lines before it, of the quoted text,
/// or of the whole text. Of several possible repetitions, the shortest is removed.
fn without_lines<'a>(
    text: &str,
    partial: &str,
    piece: &'a str,
    breaks: LineBreaks,
) -> Option<&'a str> {
    let line = text.len() - partial.len();
    let mut starts = last_line_starts(text, breaks, QUOTED_LINES);
    starts.push(text.len() - quote(text, breaks).len());
    starts.push(0);
    starts.sort_unstable_by(|a, b| b.cmp(a));
    starts
        .into_iter()
        .filter(|start| *start != line)
        .map(|start| &text[start..])
        // A continuation that begins with a line break may simply end the unfinished line.
        .filter(|repeated| is_telling(repeated) && !breaks.starts(repeated))
        .find_map(|repeated| piece.strip_prefix(repeated))
}

/// Whether the start of a line is distinctive: it contains a word and does not just repeat one
/// character or word.
fn is_telling(partial: &str) -> bool {
    let letters = partial.chars().filter(|c| c.is_alphabetic()).count();
    letters >= 2 && !is_periodic(partial.trim().as_bytes())
}

fn is_periodic(bytes: &[u8]) -> bool {
    (1..=bytes.len() / 2)
        .filter(|period| bytes.len().is_multiple_of(*period))
        .any(|period| bytes[period..] == bytes[..bytes.len() - period])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lines_are_kept_wherever_the_text_is_cut() {
        let same = "        value += 1\n".repeat(9);
        let text = format!("{same}\n{same}\n\n{same}");
        for cut in 0..text.len() {
            let mut joined = JoinedText::new(text[..cut].to_owned());
            joined.push(&text[cut..]);
            assert_eq!(joined.as_str(), text, "cut at {cut}");
        }
    }
}
