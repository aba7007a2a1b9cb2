//! What an example of the task does without a change and with it.

use std::fmt;

use serde::{Deserialize, Serialize};

use starling_syntax::composed;

/// Maximum number of characters of a result in the headline of a run.
const AT_END: usize = 80;

/// An example of the task, tried without a change and with it. It proves nothing, because nobody
/// says what it must print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExampleEvidence {
    /// The code in one line.
    pub code: String,
    /// The results in one line each: the error, or the last line of the output.
    pub before: String,
    pub after: String,
}

impl ExampleEvidence {
    /// Describes both results.
    pub fn in_words(&self) -> String {
        self.shortened(usize::MAX)
    }

    /// Describes both results, each with at most `most` characters.
    fn shortened(&self, most: usize) -> String {
        let (before, after) = (head(&self.before, most), head(&self.after, most));
        if self.before == self.after {
            format!("`{before}`, as before")
        } else if composed(&before) == composed(&after) {
            let (before, after) = (escaped(&before), escaped(&after));
            format!("before `{before}`, after `{after}`")
        } else {
            format!("before `{before}`, after `{after}`")
        }
    }
}

impl fmt::Display for ExampleEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.in_words();
        writeln!(f, "example of the task: {told} ({})", self.code)
    }
}

/// Writes each character outside of ASCII by its number, for example `\u{fc}`.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c.is_ascii() {
            true => escaped.push(c),
            false => escaped.extend(c.escape_unicode()),
        }
    }
    escaped
}

fn head(text: &str, most: usize) -> String {
    let mut head: String = text.chars().take(most).collect();
    if head.len() < text.len() {
        head.push('…');
    }
    head
}

/// Describes the first example for the end of a run; empty if there is none.
pub(crate) fn at_end(examples: &[ExampleEvidence]) -> String {
    match examples.first() {
        Some(first) => format!("; the example of the task: {}", first.shortened(AT_END)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &str, after: &str) -> String {
        let example = ExampleEvidence {
            code: "f()".to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        };
        example.in_words()
    }

    #[test]
    fn results_that_look_the_same_are_told_by_the_numbers_of_their_characters() {
        let words = told("'gr\u{fc}n'", "'gru\u{308}n'");
        assert_eq!(words, "before `'gr\\u{fc}n'`, after `'gru\\u{308}n'`");
        assert_eq!(
            told("'gr\u{fc}n'", "'gr\u{fc}n'"),
            "`'gr\u{fc}n'`, as before"
        );
        let words = told("'gr\u{fc}n'", "'gruen'");
        assert_eq!(words, "before `'gr\u{fc}n'`, after `'gruen'`");
    }
}
