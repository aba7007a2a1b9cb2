//! Calls that may reach a changed method through a related class, or through an object of unknown type.

use serde::{Deserialize, Serialize};

use crate::evidence::ids::few;
use starling_syntax::{FilePath, SymbolPath};

/// A place from which a changed function may be called: a call that names a method of a base class
/// or whose object has an unknown type, or code that stores or passes on the function as a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndirectCaller {
    /// The method that the call names; `None` if the type of the object is unknown.
    pub through: Option<SymbolPath>,
    /// Whether the function is used as a value there, for example in a table of functions, so that
    /// its callers are unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_value: bool,
    pub file: FilePath,
    /// Line number of the call or of the use, counted from 1.
    pub line: u32,
}

/// Describes where a changed method may be called, for users and models.
pub(crate) fn in_words(callers: &[IndirectCaller]) -> String {
    let kind = |one: &IndirectCaller| (one.through.clone(), one.is_value);
    let groups = callers.chunk_by(|one, next| kind(one) == kind(next));
    let group = |group: &[IndirectCaller]| {
        let places = group.iter().map(|one| format!("{}:{}", one.file, one.line));
        let places = few(&places.collect::<Vec<_>>());
        match &group[0].through {
            Some(through) => format!("through `{}` at {places}", through.name),
            None if group[0].is_value => {
                format!("by code that is not known, because it is stored or passed on at {places}")
            }
            None => format!("on objects of unknown type at {places}"),
        }
    };
    let groups: Vec<String> = groups.map(group).collect();
    format!("may be called {}", groups.join(", and "))
}
