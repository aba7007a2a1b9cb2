//! Finds citations in a text, checks them against the files, and corrects small errors.

mod absence;
mod check;
mod claim;
mod denied;
mod mark;
mod stated_call;
#[cfg(test)]
mod tests;

pub use absence::Around;
pub use check::{CitationChecker, CitationVerdict, Refutation};
pub use claim::{CitedPart, Claim, Denial, claims, identifiers, without_citations};
pub use mark::{CitationMark, Files, marks};
pub use starling_swarm::reading::stems as words;
pub use stated_call::only_subject;

use serde::{Deserialize, Serialize};

/// Lines of a file that support an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    pub path: String,
    /// The first line, from 1.
    pub line: u32,
    /// The last line; equal to `line` for a single line.
    pub last_line: u32,
    /// The innermost symbol at the line; empty for the module body and for files without symbols.
    pub symbol: String,
    /// The text of the first line, without indentation.
    pub text: String,
}

impl Citation {
    /// Formats the citation as `path:line` or `path:first-last`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.path, range(self.line, self.last_line))
    }
}

/// Formats a line range as `12` or `12-18`.
pub fn range(first: u32, last: u32) -> String {
    match last > first {
        true => format!("{first}-{last}"),
        false => first.to_string(),
    }
}
