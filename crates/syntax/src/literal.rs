use tree_sitter::Node;

use super::SymbolTree;
use super::definition::range_of;
use starling_text::ByteRange;

/// A string literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringLiteral {
    /// The range with the prefix and the quotes.
    pub whole: ByteRange,
    /// The ranges of the literal text, without the format fields.
    pub written: Vec<ByteRange>,
}

/// Returns the string literals in a range of a file, such as an f-string and the strings in its format
/// fields: `f"{row['key']}"` and `'key'`.
pub fn string_literals(tree: &SymbolTree, range: ByteRange) -> Vec<StringLiteral> {
    let mut found = Vec::new();
    let root = tree.root();
    let node = root.and_then(|root| root.descendant_for_byte_range(range.start, range.end));
    if let Some(node) = node {
        add(node, &mut found);
    }
    found
}

/// Adds a string, and the strings that are nested in it.
fn add(node: Node<'_>, into: &mut Vec<StringLiteral>) {
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
    if node.kind() == "string" {
        let written = children.iter().filter(|one| one.kind() == "string_content");
        into.push(StringLiteral {
            whole: range_of(node),
            written: written.map(|one| range_of(*one)).collect(),
        });
    }
    for child in children {
        if child.kind() != "string_content" {
            add(child, into);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FilePath;
    use std::sync::Arc;

    #[test]
    fn strings_in_the_fields_of_an_f_string_are_literals_of_their_own() {
        let text = "f\"a{row['b']:{c}}d{f(\"e\")}\"\n";
        let tree = SymbolTree::parse(FilePath::new("a.py"), Arc::from(text));
        let found: Vec<String> = string_literals(&tree, tree.strings()[0])
            .iter()
            .map(|one| one.written.iter().map(|part| part.of(text)).collect())
            .collect();
        assert_eq!(found, ["ad", "b", "e"]);
    }
}
