//! Refactorings that the user requests exactly, instead of in words.

use serde::{Deserialize, Serialize};

/// A refactoring that is carried out with the index, without a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Refactoring {
    /// Gives another name to a symbol or to a variable of a module.
    Rename {
        /// The symbol: `path/to/file.py::Class.method`, or a name that only one symbol has.
        symbol: String,
        to: String,
        /// Whether nothing is changed unless every use is certain.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        only_if_certain: bool,
    },
    /// Deletes a symbol or a variable of a module that nothing uses.
    Delete { symbol: String },
}

impl Refactoring {
    /// Returns whether the refactoring is made even if some uses are uncertain. Uncertain uses are left
    /// unchanged and listed.
    pub(crate) fn leaves_doubts(&self) -> bool {
        match self {
            Refactoring::Rename {
                only_if_certain, ..
            } => !only_if_certain,
            Refactoring::Delete { .. } => false,
        }
    }

    /// Returns the refactoring as the text of a task.
    pub fn in_words(&self) -> String {
        match self {
            Refactoring::Rename { symbol, to, .. } => format!("Rename `{symbol}` to `{to}`"),
            Refactoring::Delete { symbol } => format!("Delete `{symbol}`"),
        }
    }
}
