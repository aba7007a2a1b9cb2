use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterKind {
    PositionalOnly,
    Positional,
    KeywordOnly,
    VarPositional,
    VarKeyword,
}

/// One parameter; texts as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    pub kind: ParameterKind,
    pub annotation: Option<String>,
    pub default: Option<String>,
}

/// What others rely on: a change of it can break references.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    pub name: String,
    pub decorators: Vec<String>,
    /// `None` for a class or a module.
    pub parameters: Option<Vec<Parameter>>,
    /// Base classes and keywords of a class.
    pub bases: Vec<String>,
    pub returns: Option<String>,
    pub is_async: bool,
    pub is_generator: bool,
    /// Exception names in `raise` statements of the body, sorted, without repeats.
    pub raises: Vec<String>,
}

impl Contract {
    /// What differs, in words, for example `parameter "y" added (required)`. Empty when equal.
    pub fn changes(&self, newer: &Contract) -> Vec<String> {
        todo!()
    }
    /// Whether code that uses the older contract can break. Raised exceptions, annotations alone and added optional parameters at the end do not break.
    pub fn can_break(&self, newer: &Contract) -> bool {
        todo!()
    }
}
