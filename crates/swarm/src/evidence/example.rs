//! What an example of the task does without a change and with it.

use std::fmt;

use serde::{Deserialize, Serialize};

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
        match self.before == self.after {
            true => format!("`{before}`, as before"),
            false => format!("before `{before}`, after `{after}`"),
        }
    }
}

impl fmt::Display for ExampleEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.in_words();
        writeln!(f, "example of the task: {told} ({})", self.code)
    }
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
