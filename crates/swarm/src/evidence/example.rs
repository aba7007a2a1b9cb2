//! What an example of the task does without a change and with it.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    pub(crate) fn in_words(&self) -> String {
        let ExampleEvidence { before, after, .. } = self;
        match before == after {
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

/// Describes the first example for the end of a run; empty if there is none.
pub(crate) fn at_end(examples: &[ExampleEvidence]) -> String {
    match examples.first() {
        Some(first) => format!("; the example of the task: {}", first.in_words()),
        None => String::new(),
    }
}
