//! Citations: found in a text, checked against the files, mended where they are a little off.

mod check;
mod claim;
mod mark;
#[cfg(test)]
mod tests;

pub use check::{Checker, Verdict};
pub use claim::{Cited, Claim, claims, identifiers};
pub use mark::{Files, Mark, marks};
pub use starling_swarm::reading::stems as words;

use serde::{Deserialize, Serialize};

/// Lines of a file that an answer rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    pub path: String,
    /// From 1.
    pub line: u32,
    /// The last line; that of a single line is `line`.
    pub last_line: u32,
    /// The innermost symbol at the line; empty for the module body and for files without symbols.
    pub symbol: String,
    /// The line, without its indentation.
    pub text: String,
}

impl Citation {
    /// `path:line` or `path:first-last`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.path, range(self.line, self.last_line))
    }
}

/// `12` or `12-18`.
pub fn range(first: u32, last: u32) -> String {
    match last > first {
        true => format!("{first}-{last}"),
        false => first.to_string(),
    }
}
