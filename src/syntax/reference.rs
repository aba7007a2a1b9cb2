use super::SymbolTree;
use crate::text::ByteRange;

/// An identifier in code (not in strings or comments) with the name asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub range: ByteRange,
    /// From 1.
    pub line: u32,
    /// It is called here: `name(...)` or `x.name(...)`.
    pub is_call: bool,
    /// It stands in an import statement.
    pub is_import: bool,
    /// It is the name of a definition.
    pub is_definition: bool,
}

/// All identifiers called `name`. For a file without a grammar: whole words.
pub fn references(tree: &SymbolTree, name: &str) -> Vec<Reference> {
    todo!()
}
