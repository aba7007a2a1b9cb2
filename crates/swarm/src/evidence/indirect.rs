//! Calls that may reach a changed method through a related class, or through an object of unknown type.

use serde::{Deserialize, Serialize};

use crate::evidence::ids::few;
use starling_syntax::{FilePath, SymbolPath};

/// A call that may reach a changed method, although it names a method of a base class or the type
/// of its object is unknown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndirectCaller {
    /// The method that the call names; `None` if the type of the object is unknown.
    pub through: Option<SymbolPath>,
    pub file: FilePath,
    /// Line number of the call, counted from 1.
    pub line: u32,
}

/// Describes where a changed method may be called, for users and models.
pub(crate) fn in_words(callers: &[IndirectCaller]) -> String {
    let groups = callers.chunk_by(|one, next| one.through == next.through);
    let group = |group: &[IndirectCaller]| {
        let places = group.iter().map(|one| format!("{}:{}", one.file, one.line));
        let places = few(&places.collect::<Vec<_>>());
        match &group[0].through {
            Some(through) => format!("through `{}` at {places}", through.name),
            None => format!("on objects of unknown type at {places}"),
        }
    };
    let groups: Vec<String> = groups.map(group).collect();
    format!("may be called {}", groups.join(", and "))
}
