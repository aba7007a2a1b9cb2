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

/// Returns whether a test lies in a file, package or class whose failure to load has the id
/// `outer`: `test_a.py::test_x` in `test_a.py`, `test_a.T.test_x` in `test_a`.
pub(crate) fn is_inside(id: &str, outer: &str) -> bool {
    let rest = id.strip_prefix(outer).filter(|_| !outer.is_empty());
    rest.is_some_and(|rest| rest.starts_with("::") || rest.starts_with('.'))
}

/// Returns whether a test lies in a file: its id starts with the path or contains the module name.
pub(crate) fn is_in(id: &str, file: &str) -> bool {
    let module = file.rsplit('/').next().unwrap_or(file);
    let module = module.strip_suffix(".py").unwrap_or(module);
    let mut parts = id.split([':', '.', '/', '(', ')', ' ']);
    id.starts_with(file) || parts.any(|part| part == module)
}

/// Test id that represents the whole test command if its output does not identify single tests.
pub const WHOLE_RUN: &str = "(the test command)";
