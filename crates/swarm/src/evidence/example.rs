//! The results of a task's example without and with a change.

use std::fmt;

use serde::{Deserialize, Serialize};

use starling_syntax::composed;

/// Maximum length of a result in the run's headline, in characters.
const AT_END: usize = 80;

/// The results of a task's example without and with a change. The results prove nothing, because
/// the task does not define the correct output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExampleEvidence {
    /// The code of the example as one line.
    pub code: String,
    /// The result without the change, as one line: the error, or the last line of the output.
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

/// Replaces each non-ASCII character by its code point, such as `\u{fc}`.
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

/// Describes the first example for the run's headline. Returns an empty text if there is no
/// example.
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
    fn results_that_look_the_same_are_shown_with_code_points() {
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
