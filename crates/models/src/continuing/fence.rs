//! Handles code fences that a model opens again at the start of a continuation.

/// Whether a continuation began with a superfluous code fence, and which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReopenedFence {
    No,
    /// The continuation repeated the opening line of the fence that is still open.
    Inside,
    /// The continuation put the rest of a text that is not in a fence into a new fence.
    Around,
}

/// Removes an opening fence from a continuation if the fence cannot be intended.
///
/// Within an open fence, a line that opens a fence of the same kind and language can only repeat
/// the opening line, because a closing line names no language. In the middle of a line of bare
/// text, a fence is impossible. A fence without a language within an open fence closes the fence,
/// so it is kept.
pub(super) fn without_opening<'a>(text: &str, piece: &'a str) -> (ReopenedFence, &'a str) {
    let Some((line, rest)) = piece.split_once('\n') else {
        return (ReopenedFence::No, piece);
    };
    let Some(opening) = CodeFence::of_line(line) else {
        return (ReopenedFence::No, piece);
    };
    let (whole_lines, partial) = match text.rfind('\n') {
        Some(at) => text.split_at(at + 1),
        None => ("", text),
    };
    match open_fence(whole_lines) {
        Some(open) if !opening.language.is_empty() && opening == open => {
            (ReopenedFence::Inside, rest)
        }
        Some(_) => (ReopenedFence::No, piece),
        None if !partial.trim().is_empty() && CodeFence::of_line(partial).is_none() => {
            (ReopenedFence::Around, rest)
        }
        None => (ReopenedFence::No, piece),
    }
}

/// The opening or closing line of a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeFence<'a> {
    mark: char,
    length: usize,
    language: &'a str,
}

impl<'a> CodeFence<'a> {
    fn of_line(line: &'a str) -> Option<Self> {
        let bare = line.trim_start_matches(' ');
        if line.len() - bare.len() > 3 {
            return None;
        }
        let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let language = bare.trim_start_matches(mark);
        let length = bare.len() - language.len();
        (length >= 3 && !language.contains('`')).then_some(CodeFence {
            mark,
            length,
            language: language.trim(),
        })
    }

    fn closes(&self, open: &CodeFence<'_>) -> bool {
        self.mark == open.mark && self.length >= open.length && self.language.is_empty()
    }
}

/// Returns the fence that is still open at the end of the text.
fn open_fence(text: &str) -> Option<CodeFence<'_>> {
    let mut open: Option<CodeFence<'_>> = None;
    for fence in text.lines().filter_map(CodeFence::of_line) {
        open = match open {
            None => Some(fence),
            Some(outer) if fence.closes(&outer) => None,
            Some(outer) => Some(outer),
        };
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, piece: &str, expected: (ReopenedFence, &str)) {
        assert_eq!(
            without_opening(text, piece),
            expected,
            "{text:?} + {piece:?}"
        );
    }

    #[test]
    fn continuation_that_reopens_the_open_code_fence_loses_that_line() {
        let inside = ReopenedFence::Inside;
        check("a\n```python\nx = 1\n", "```python\ny\n", (inside, "y\n"));
        check("```python\nx =", "```python\n 1\n", (inside, " 1\n"));
        check("~~~~py\nx\n", "~~~~py\ny", (inside, "y"));
    }

    #[test]
    fn plausible_code_fences_in_a_continuation_are_kept() {
        let same = |text: &str, piece: &str| check(text, piece, (ReopenedFence::No, piece));
        same("```python\nx\n", "```\nDone.\n");
        same("````md\nx\n", "```python\nx\n");
        same("```md\nx\n", "```python\nx\n");
        same("```python\nx\n```\nAnd:\n", "```python\nx\n");
        same("Here it is:\n", "```python\nx\n");
        same("```python\nx\n", "    ```python\nx\n");
        same("```python\nx", "```python");
        same("text\n```pyth", "on\nx\n");
    }

    #[test]
    fn code_fence_that_interrupts_an_unfinished_line_is_removed() {
        check(
            "def f():\n    ret",
            "```python\nurn 1\n",
            (ReopenedFence::Around, "urn 1\n"),
        );
        check(
            "def f():\n    ",
            "```\nx\n",
            (ReopenedFence::No, "```\nx\n"),
        );
    }
}
