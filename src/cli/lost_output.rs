//! Handles commands that change files but cannot write to stdout.

use std::io;

use anyhow::Context;

use super::Outcome;
use super::standard::note;
use super::view::text::{Line, Paint};

/// Returns an error if stdout cannot be written before a command has changed anything.
///
/// # Errors
/// The text was not written. The error says that nothing was changed.
pub fn before_a_change(written: io::Result<()>) -> anyhow::Result<()> {
    written.context("nothing was changed")
}

/// Writes the result of a command that has changed files to stderr instead, with the reason.
pub fn result_on_stderr(error: &io::Error, result: &[Line]) -> Outcome {
    note(format_args!("starling: {error}"));
    for line in result {
        note(line.paint(Paint::of_stderr()));
    }
    Outcome::OutputLost
}
