//! Proposal ids, and functions that format lists of ids.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Number of a proposal within its run, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProposalId(pub u32);

impl fmt::Display for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Formats proposal ids as a comma-separated list.
pub fn ids(proposals: &[ProposalId]) -> String {
    let ids: Vec<String> = proposals.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

/// Joins test ids for display. [`WHOLE_RUN`] is written without its parentheses.
pub(crate) fn named(ids: &[String]) -> String {
    let name = |id: &String| match id == WHOLE_RUN {
        true => "the test command".to_owned(),
        false => id.clone(),
    };
    ids.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns the last `cap` bytes of a text, starting at a line if a line break is near.
pub fn tail(text: &str, cap: usize) -> &str {
    if text.len() <= cap {
        return text;
    }
    let mut start = text.len() - cap;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    match text[start..].find('\n') {
        Some(line_end) if line_end < 200 => &text[start + line_end + 1..],
        Some(_) | None => &text[start..],
    }
}

pub(crate) fn few(ids: &[String]) -> String {
    let shown = ids.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
    if ids.len() > 8 {
        format!("{shown} and {} more", ids.len() - 8)
    } else {
        shown
    }
}

/// Test id that represents the whole test command if its output does not identify single tests.
pub const WHOLE_RUN: &str = "(the test command)";
