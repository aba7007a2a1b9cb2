//! Finds code that was lost in a rewrite, and comments such as `# ... rest unchanged` that a model
//! writes in place of code.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// A part of the code that is missing after a rewrite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lost", rename_all = "snake_case")]
pub enum Loss {
    Child { name: String },
    Decorator { text: String },
    Comment { text: String },
    Docstring,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Loss::Child { name } => write!(f, "the symbol `{name}`"),
            Loss::Decorator { text } => write!(f, "the decorator `{text}`"),
            Loss::Comment { text } => write!(f, "the comment `{text}`"),
            Loss::Docstring => f.write_str("the docstring"),
        }
    }
}
/// Words that mark omitted code.
const LEFT_OUT: &[&str] = &[
    "unchanged",
    "omitted",
    "elided",
    "snip",
    "snipped",
    "truncated",
    "unmodified",
    "abbreviated",
];

/// Words for remaining or existing parts. They mark an omission if the text starts or ends with an
/// ellipsis.
const REMAINDER: &[&str] = &[
    "rest",
    "remaining",
    "remainder",
    "existing",
    "previous",
    "original",
    "same",
    "other",
];

/// Words for code. They mark an omission if the text starts or ends with an ellipsis.
const CODE: &[&str] = &[
    "code",
    "method",
    "methods",
    "function",
    "functions",
    "class",
    "classes",
    "implementation",
    "logic",
    "body",
    "module",
    "file",
    "line",
    "lines",
    "imports",
    "definitions",
    "tests",
    "content",
    "contents",
    "everything",
];

/// Phrases that mark omitted code even without an ellipsis. `*` stands for any word of [`CODE`].
const PHRASES: &[&str] = &[
    "rest of the *",
    "rest of this *",
    "rest of *",
    "existing code",
    "existing implementation",
    "existing logic",
    "remaining code",
    "remaining implementation",
    "remaining logic",
    "previous code",
    "same as before",
    "as before",
    "remains the same",
    "remain the same",
    "stays the same",
    "omitted for brevity",
];

/// Filler words that may occur between the words of the other lists.
const FILLING: &[&str] = &[
    "the",
    "of",
    "this",
    "that",
    "all",
    "is",
    "are",
    "as",
    "and",
    "in",
    "for",
    "with",
    "no",
    "not",
    "it",
    "its",
    "remains",
    "remain",
    "stays",
    "stay",
    "keep",
    "keeps",
    "kept",
    "here",
    "goes",
    "above",
    "below",
    "before",
    "earlier",
    "brevity",
    "shown",
    "changes",
    "change",
    "needed",
    "else",
    "continues",
    "follows",
    "left",
    "exactly",
    "your",
    "from",
    "to",
];

/// Returns the numbers (counted from 1) and texts of the lines that stand for omitted code: `# ...
/// rest unchanged`, `# existing code`, `[omitted]`, or a lone `...` with a comment such as these.
/// Leaves out plain `...` bodies (stub, protocol, overload), ellipses in an index, string or
/// doctest, and lines that `before` already contains.
pub fn omission_marks(before: &str, after: &str) -> Vec<(u32, String)> {
    let known: HashSet<&str> = before.lines().map(str::trim).collect();
    let lines: Vec<&str> = after.lines().map(str::trim).collect();
    let is_comment = |index: Option<usize>| {
        let line = index.and_then(|index| lines.get(index));
        line.is_some_and(|line| whole_comment(line).is_some())
    };
    let mut quotes = TripleQuotes::default();
    let mut marks = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if quotes.pass(line) || known.contains(line) {
            continue;
        }
        // An ellipsis between other comment lines belongs to their text.
        let alone = !is_comment(index.checked_sub(1)) && !is_comment(Some(index + 1));
        if is_mark(line) || (alone && is_dots(line)) {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            marks.push((number, (*line).to_owned()));
        }
    }
    marks
}

/// Returns whether a line is a comment that contains only an ellipsis.
fn is_dots(line: &str) -> bool {
    let text = whole_comment(line).unwrap_or_default();
    let spaces = line.len() - text.len();
    matches!(text, "..." | "…") && spaces <= "// ".len()
}

fn is_mark(line: &str) -> bool {
    if let Some(comment) = whole_comment(line) {
        return says_left_out(comment, CommentPosition::OwnLine);
    }
    let bracketed = [('[', ']'), ('(', ')'), ('<', '>')]
        .iter()
        .find_map(|(open, close)| line.strip_prefix(*open)?.strip_suffix(*close));
    if let Some(inner) = bracketed {
        return says_left_out(inner, CommentPosition::OwnLine) && has_any(&words(inner), LEFT_OUT);
    }
    let comment = line
        .split_once('#')
        .or_else(|| line.split_once("//"))
        .filter(|(code, _)| {
            let code = code.trim_end();
            code.ends_with("...") || code == "pass" || code.ends_with('…')
        });
    if let Some((_, comment)) = comment {
        return says_left_out(comment, CommentPosition::AfterDots);
    }
    // An ellipsis followed by words is not code: `... rest of the function ...`.
    (line.starts_with("...") || line.starts_with('…'))
        && says_left_out(line, CommentPosition::OwnLine)
        && !words(line).is_empty()
}

/// Returns the text of a line that contains only a comment.
fn whole_comment(line: &str) -> Option<&str> {
    let text = line
        .strip_prefix("<!--")
        .map(|rest| rest.trim_end_matches("-->"))
        .or_else(|| {
            line.strip_prefix("/*")
                .map(|rest| rest.trim_end_matches("*/"))
        })
        .or_else(|| line.strip_prefix("//"))
        .or_else(|| line.strip_prefix("--"))
        .or_else(|| line.strip_prefix('#'))?;
    Some(text.trim())
}

/// The position of a comment on its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommentPosition {
    OwnLine,
    /// After a lone `...` or `pass` on the same line.
    AfterDots,
}

/// Returns whether a text means that code was omitted. All of its words must be in the lists above,
/// so that sentences about something else do not match.
fn says_left_out(text: &str, place: CommentPosition) -> bool {
    let trimmed = text.trim_matches(|c: char| !c.is_alphanumeric() && c != '.' && c != '…');
    let dots = ["...", "…"]
        .iter()
        .any(|dots| trimmed.starts_with(dots) || trimmed.ends_with(dots));
    let words = words(trimmed);
    let is_known = |word: &String| {
        let is_number = dots && word.bytes().all(|byte| byte.is_ascii_digit());
        let lists = [LEFT_OUT, REMAINDER, CODE, FILLING];
        is_number || lists.iter().any(|list| list.contains(&word.as_str()))
    };
    if words.is_empty() || words.len() > 12 || !words.iter().all(is_known) {
        return false;
    }
    let (left_out, remainder, code) = (
        has_any(&words, LEFT_OUT),
        has_any(&words, REMAINDER),
        has_any(&words, CODE),
    );
    let marked = dots || place == CommentPosition::AfterDots;
    left_out
        || (marked && (remainder || code))
        || PHRASES.iter().any(|phrase| has_phrase(&words, phrase))
}

/// Returns whether the words contain the phrase. `*` in the phrase stands for any word of [`CODE`].
fn has_phrase(words: &[String], phrase: &str) -> bool {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    words.windows(phrase.len()).any(|window| {
        window
            .iter()
            .zip(&phrase)
            .all(|(word, wanted)| match *wanted {
                "*" => CODE.contains(&word.as_str()),
                wanted => word == wanted,
            })
    })
}

fn has_any(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Tracks triple-quoted strings across lines.
#[derive(Default)]
struct TripleQuotes {
    open: Option<&'static str>,
}

impl TripleQuotes {
    /// Reads a line and returns whether it starts inside a triple-quoted string.
    fn pass(&mut self, line: &str) -> bool {
        let was_open = self.open.is_some();
        let mut rest = line;
        loop {
            match self.open {
                Some(quote) => match rest.split_once(quote) {
                    Some((_, after)) => (self.open, rest) = (None, after),
                    None => return was_open,
                },
                None => {
                    let first = ["\"\"\"", "'''"]
                        .into_iter()
                        .filter_map(|quote| rest.find(quote).map(|at| (at, quote)))
                        .min();
                    let comment = rest.find('#').unwrap_or(usize::MAX);
                    match first {
                        Some((at, quote)) if at < comment => {
                            (self.open, rest) = (Some(quote), &rest[at + quote.len()..]);
                        }
                        Some(_) | None => return was_open,
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_that_stands_for_omitted_code_is_found() {
        for line in [
            "# ... rest unchanged",
            "# ... existing code ...",
            "    # ...existing code...",
            "# rest of the method unchanged",
            "# (unchanged)",
            "... # same as before",
            "# [omitted]",
            "[omitted]",
            "# unchanged code here",
            "// ... rest of the function",
            "// ...",
            "# ...",
            "# …",
            "# existing code",
            "# Existing code here",
            "# The rest of the code remains the same",
            "# rest of the implementation",
            "# ... (rest of the class stays the same)",
            "# (... rest of the class ...)",
            "# remaining methods unchanged",
            "# ... other methods ...",
            "def f(self): ...  # unchanged",
            "pass  # rest of the method",
            "/* ... existing code ... */",
            "<!-- rest of the file unchanged -->",
            "... rest of the function ...",
            "# keep existing code",
            "# same as before",
            "# omitted for brevity",
        ] {
            let text = format!("x = 1\n{line}\n");
            assert_eq!(
                omission_marks("", &text),
                [(2, line.trim().to_owned())],
                "{line}"
            );
        }
    }

    #[test]
    fn ordinary_code_contains_no_omission_mark() {
        for text in [
            "...",
            "def f(self): ...",
            "x[..., 0]",
            "print('# ... rest unchanged')",
            "'''\n# ... rest unchanged\n'''",
            "x = 1  # unchanged",
            "# the rest is for the caller",
            "# remaining",
            "# If the file is unchanged, there is nothing to do",
            "# other",
            "# wait ...",
            "# see the code above",
            ">>> f()\n...\n",
            "... # doctest: +ELLIPSIS",
            "# existing users keep their names",
            "# --------",
            "#",
            "pass  # for now",
            "# the same file",
        ] {
            assert_eq!(omission_marks("", text), [], "{text}");
        }
    }

    #[test]
    fn omission_mark_that_existed_before_is_ignored() {
        let before = "def f():\n    # ...\n    pass\n";
        assert_eq!(
            omission_marks(before, "def f():\n        # ...\n        return 1\n"),
            []
        );
    }
}
