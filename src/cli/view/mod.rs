//! The display of a run in the terminal: pure functions from events to lines.

mod by_rule;
pub mod prompt;
pub mod state;
pub mod story;
pub mod summary;
pub mod text;
pub mod tree;
pub(in crate::cli) mod words;

#[cfg(test)]
mod tests;
