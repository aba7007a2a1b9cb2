use tree_sitter::Node;

use super::definition::range_of;
use super::identifier::other_spellings;
use super::{Arguments, SymbolTree, normalized};
use starling_text::ByteRange;

/// An occurrence of an identifier in code, outside of strings and comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub range: ByteRange,
    /// Line number, counted from 1.
    pub line: u32,
    /// Whether the name is called: `name(...)` or `x.name(...)`.
    pub is_call: bool,
    /// Whether the name is part of an import statement.
    pub is_import: bool,
    /// Whether the name is defined here, by a `def` or `class`.
    pub is_definition: bool,
}

/// Returns all identifiers called `name`, in order. In a file without a grammar, these are whole
/// words.
pub fn references(tree: &SymbolTree, name: &str) -> Vec<Reference> {
    if name.is_empty() {
        return Vec::new();
    }
    let text = tree.text();
    let words = text
        .match_indices(name)
        .map(|(start, _)| ByteRange::new(start, start + name.len()))
        .filter(|range| is_word(text, *range));
    match tree.root() {
        Some(root) => in_order(words, text, name)
            .into_iter()
            .filter_map(|range| {
                let node = root.descendant_for_byte_range(range.start, range.end)?;
                let is_name = node.kind() == "identifier" && range_of(node) == range;
                is_name.then(|| reference(tree, range, Some(node)))
            })
            .collect(),
        None => words.map(|range| reference(tree, range, None)).collect(),
    }
}

/// Returns the positions of a name, including other spellings that Python normalizes to the name.
fn in_order(words: impl Iterator<Item = ByteRange>, text: &str, name: &str) -> Vec<ByteRange> {
    let mut all: Vec<ByteRange> = words.collect();
    let others = other_spellings(text, name);
    all.extend(others.map(|(start, length)| ByteRange::new(start, start + length)));
    all.sort_unstable_by_key(|range| range.start);
    all
}

/// Returns the arguments of the call whose function name is at a byte offset, or `None` if there is
/// no call.
pub fn arguments(tree: &SymbolTree, name_at: usize) -> Option<Arguments> {
    let name = tree
        .root()?
        .descendant_for_byte_range(name_at, name_at + 1)?;
    let function = match name.parent() {
        Some(parent) if parent.kind() == "attribute" && is_field(name, parent, "attribute") => {
            parent
        }
        Some(_) | None => name,
    };
    let call = function
        .parent()
        .filter(|call| call.kind() == "call" && is_field(function, *call, "function"))?;
    let list = call.child_by_field_name("arguments")?;
    let mut given = Arguments::default();
    if list.kind() != "argument_list" {
        // A generator expression is the only argument of its call: `sum(x for x in y)`.
        given.positional = 1;
        return Some(given);
    }
    let mut cursor = list.walk();
    for argument in list
        .named_children(&mut cursor)
        .filter(|node| !node.is_extra())
    {
        match argument.kind() {
            "dictionary_splat" | "list_splat" => given.is_open = true,
            "keyword_argument" => {
                let name = argument.child_by_field_name("name")?;
                given
                    .keywords
                    .push(normalized(range_of(name).of(tree.text())).into_owned());
            }
            _ => given.positional += 1,
        }
    }
    Some(given)
}

/// Returns the text before the dot of the attribute whose name is at a byte offset.
pub fn object_of(tree: &SymbolTree, name_at: usize) -> Option<&str> {
    let name = tree
        .root()?
        .descendant_for_byte_range(name_at, name_at + 1)?;
    let attribute = name
        .parent()
        .filter(|parent| parent.kind() == "attribute" && is_field(name, *parent, "attribute"))?;
    Some(range_of(attribute.child_by_field_name("object")?).of(tree.text()))
}

fn is_word(text: &str, range: ByteRange) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let starts = text[..range.start].chars().next_back();
    let ends = text[range.end..].chars().next();
    !starts.is_some_and(is_part) && !ends.is_some_and(is_part)
}

fn reference(tree: &SymbolTree, range: ByteRange, node: Option<Node<'_>>) -> Reference {
    Reference {
        range,
        line: tree.lines().number_at(range.start),
        is_call: node.is_some_and(is_call),
        is_import: node.is_some_and(is_import),
        is_definition: node.is_some_and(is_definition),
    }
}

fn is_field(node: Node<'_>, parent: Node<'_>, field: &str) -> bool {
    parent
        .child_by_field_name(field)
        .is_some_and(|child| child.id() == node.id())
}

fn is_call(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else {
        return false;
    };
    match parent.kind() {
        "call" => is_field(node, parent, "function"),
        "attribute" if is_field(node, parent, "attribute") => parent
            .parent()
            .is_some_and(|call| call.kind() == "call" && is_field(parent, call, "function")),
        _ => false,
    }
}

fn is_import(node: Node<'_>) -> bool {
    // The node may be nested in a dotted name, an alias or a relative module, which are nested in
    // the import statement.
    std::iter::successors(node.parent(), Node::parent)
        .take(4)
        .any(|around| {
            matches!(
                around.kind(),
                "import_statement" | "import_from_statement" | "future_import_statement"
            )
        })
}

fn is_definition(node: Node<'_>) -> bool {
    node.parent().is_some_and(|parent| {
        matches!(parent.kind(), "function_definition" | "class_definition")
            && is_field(node, parent, "name")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::FilePath;
    use super::*;

    /// Checks the references to `f`: each is a line number and its flags.
    fn check(file: &str, text: &str, expected: &[&str]) {
        let tree = SymbolTree::parse(FilePath::new(file), Arc::from(text));
        let found: Vec<String> = references(&tree, "f")
            .iter()
            .map(|reference| {
                let mut words = reference.line.to_string();
                for (holds, word) in [
                    (reference.is_call, " call"),
                    (reference.is_import, " import"),
                    (reference.is_definition, " definition"),
                ] {
                    words.push_str(if holds { word } else { "" });
                }
                words
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn arguments_of_a_call_are_counted_and_named() {
        let text = "f(1, a=2, b=f)\nx.f(c=3)\nf(**d)\nf\nf()\ng(f, a=1)\nf(1, *a)\nf(x for x in y)\nf.g(1)\nf(\n    1,  # one\n)\n";
        let tree = SymbolTree::parse(FilePath::new("a.py"), Arc::from(text));
        let told = |found: &Reference| {
            let given = arguments(&tree, found.range.start)?;
            let open = if given.is_open { " …" } else { "" };
            Some(format!(
                "{}{open} {}",
                given.positional,
                given.keywords.join(" ")
            ))
        };
        let given: Vec<Option<String>> = references(&tree, "f").iter().map(told).collect();
        let some = |text: &str| Some(text.to_owned());
        let expected = [
            some("1 a b"),
            None,
            some("0 c"),
            some("0 … "),
            None,
            some("0 "),
            None,
            some("1 … "),
            some("1 "),
            None,
            some("1 "),
        ];
        assert_eq!(given, expected);
    }

    #[test]
    fn object_before_the_dot_of_an_attribute_is_returned() {
        let text = "a.b.f()\nf()\nC.f(x)\nf.g\n";
        let tree = SymbolTree::parse(FilePath::new("a.py"), Arc::from(text));
        let before: Vec<Option<&str>> = references(&tree, "f")
            .iter()
            .map(|found| object_of(&tree, found.range.start))
            .collect();
        assert_eq!(before, [Some("a.b"), None, Some("C"), None]);
    }

    #[test]
    fn references_exclude_strings_comments_and_longer_names() {
        let text = "from m import f, g as f\nimport f.x\ndef f(): 'f'  # f\nclass A:\n    def f(self): return self.f(f)\nff = f_ = f(f=1).x\n@f\ndef g(): f.h(); x.f.y\nprint(f'{f()}')\n";
        let expected = [
            "1 import",
            "1 import",
            "2 import",
            "3 definition",
            "5 definition",
            "5 call",
            "5",
            "6 call",
            "6",
            "7",
            "8",
            "8",
            "9 call",
        ];
        check("m.py", text, &expected);
    }

    #[test]
    fn references_in_plain_text_are_whole_words() {
        check("notes.md", "f of ff\n(f)\n", &["1", "2"]);
        check("notes.md", "\u{e9}f f\u{e9}", &[]);
    }

    #[test]
    fn every_part_of_an_import_statement_is_a_reference() {
        let text = "from . import f\nfrom .f import g\nfrom .. import (\n    a as b,\n    f as c,\n)\nimport a.f.b\nfrom a.b.f import *\nf\n";
        let expected = [
            "1 import", "2 import", "5 import", "7 import", "8 import", "9",
        ];
        check("m.py", text, &expected);
    }

    #[test]
    fn only_the_called_name_is_marked_as_a_call() {
        let text =
            "await f()\nf[0]()\nf(x)(y)\na.f.b()\n(f)()\nx = f\ndel f\nglobal f\nf.a = g(f)\n";
        let expected = ["1 call", "2", "3 call", "4", "5", "6", "7", "8", "9", "9"];
        check("m.py", text, &expected);
    }

    #[test]
    fn references_are_found_in_invalid_code() {
        // An unclosed call does not count as a call.
        check("m.py", "f()\ndef (:\n    f(\n", &["1 call", "3"]);
        let tree = SymbolTree::parse(FilePath::new("m.py"), Arc::from("f()"));
        assert_eq!(references(&tree, ""), []);
        assert_eq!(references(&tree, "f()"), []);
        assert_eq!(references(&tree, "f")[0].range, ByteRange::new(0, 1));
    }
}
