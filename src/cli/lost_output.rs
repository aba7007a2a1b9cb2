//! The end of a command that has changed files and cannot write its result to stdout.

use std::io;

use super::Outcome;
use super::standard::note;
use super::view::text::{Line, Paint};

/// Writes the result to stderr instead, with the reason.
pub fn result_on_stderr(error: &io::Error, result: &[Line]) -> Outcome {
    note(format_args!("starling: stdout cannot be written: {error}"));
    for line in result {
        note(line.paint(Paint::of_stderr()));
    }
    Outcome::OutputLost
}
