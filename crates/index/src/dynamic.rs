//! Finds lookups by a name that code builds at run time: `getattr(self, "on_" + event)`,
//! `globals()[f"cmd_{name}"]`.

use std::collections::BTreeMap;

use super::read::on_all_cores;
use super::search::text_of;
use starling_syntax::{FilePath, Language, SymbolTree};
use starling_workspace::Snapshot;
use tree_sitter::Node;

/// Functions that take the name of an attribute, each with the index of that argument.
const BY_NAME: [(&str, usize); 6] = [
    ("getattr", 1),
    ("hasattr", 1),
    ("setattr", 1),
    ("delattr", 1),
    ("attrgetter", 0),
    ("methodcaller", 0),
];
/// A file without any of these words contains no lookup by name and is skipped.
const LOOKUPS: [&str; 6] = [
    "attr",
    "methodcaller",
    "globals",
    "locals",
    "vars",
    "__dict__",
];
/// Minimum length, in bytes, of the longest fixed text in a name that is built at run time.
const FIXED_LEAST: usize = 2;
/// Maximum number of assignments that are followed for one name.
const DEPTH_MOST: usize = 4;

/// A position where code looks up an attribute or a global by a name that is built at run time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DynamicUse {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
}

/// A part of a name that is built at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NamePiece {
    Text(String),
    /// A value that is only known at run time. It can be any text.
    Value,
}

/// Returns the positions that may look up `name` by a string that is built at run time. At least
/// one part of the string must be a literal in the code.
pub(super) fn dynamic_uses(snapshot: &Snapshot, name: &str) -> Vec<DynamicUse> {
    let files: Vec<&FilePath> = snapshot.files().iter().collect();
    let of_file = |file: &&FilePath| -> Vec<DynamicUse> {
        let is_python = Language::of(file) == Language::Python;
        let text = text_of(snapshot, file).filter(|_| is_python);
        let text = text.filter(|text| LOOKUPS.iter().any(|word| text.contains(word)));
        text.map_or_else(Vec::new, |text| {
            in_file(&SymbolTree::parse((*file).clone(), text), name)
        })
    };
    let found = on_all_cores(&files, || (), of_file);
    let mut found: Vec<DynamicUse> = found.into_iter().flatten().collect();
    found.sort();
    found.dedup();
    found
}

fn in_file(tree: &SymbolTree, name: &str) -> Vec<DynamicUse> {
    let mut found = Vec::new();
    let mut waiting: Vec<Node<'_>> = tree.root().into_iter().collect();
    while let Some(node) = waiting.pop() {
        let key = key_of(node, tree.text());
        if key.is_some_and(|key| may_be(&pieces(key, tree.text(), 0), name)) {
            found.push(DynamicUse {
                file: tree.file().clone(),
                line: node.start_position().row as u32 + 1,
            });
        }
        let mut cursor = node.walk();
        waiting.extend(node.children(&mut cursor));
    }
    found
}

/// Returns the expression that a node uses as a name in a lookup, or `None` if the node is not a
/// lookup.
fn key_of<'t>(node: Node<'t>, text: &str) -> Option<Node<'t>> {
    match node.kind() {
        "call" => {
            let function = node.child_by_field_name("function")?;
            let arguments = node.child_by_field_name("arguments")?;
            if function.kind() == "attribute"
                && is_named(function, "attribute", text, &["get", "pop"])
            {
                let object = function.child_by_field_name("object")?;
                return is_namespace(object, text)
                    .then(|| arguments.named_child(0))
                    .flatten();
            }
            let called = last_name(function, text)?;
            let (_, at) = BY_NAME.iter().find(|(name, _)| *name == called)?;
            arguments.named_child(*at as u32)
        }
        "subscript" => {
            let object = node.child_by_field_name("value")?;
            is_namespace(object, text)
                .then(|| node.child_by_field_name("subscript"))
                .flatten()
        }
        _ => None,
    }
}

/// Returns whether an expression is a namespace dictionary: `globals()`, `vars(x)`, `x.__dict__`.
fn is_namespace(node: Node<'_>, text: &str) -> bool {
    match node.kind() {
        "call" => {
            let function = node.child_by_field_name("function");
            let called = function.and_then(|function| last_name(function, text));
            matches!(called, Some("globals" | "locals" | "vars"))
        }
        "attribute" => is_named(node, "attribute", text, &["__dict__"]),
        _ => false,
    }
}

fn is_named(node: Node<'_>, field: &str, text: &str, names: &[&str]) -> bool {
    let field = node.child_by_field_name(field);
    field.is_some_and(|field| names.contains(&&text[field.byte_range()]))
}

fn last_name<'t>(node: Node<'_>, text: &'t str) -> Option<&'t str> {
    match node.kind() {
        "identifier" => Some(&text[node.byte_range()]),
        "attribute" => {
            let name = node.child_by_field_name("attribute")?;
            Some(&text[name.byte_range()])
        }
        _ => None,
    }
}

/// Returns the parts of the text to which an expression evaluates.
fn pieces(node: Node<'_>, text: &str, depth: usize) -> Vec<NamePiece> {
    match node.kind() {
        "string" => of_string(node, text),
        "concatenated_string" | "parenthesized_expression" => {
            let mut cursor = node.walk();
            let parts = node.named_children(&mut cursor);
            parts.flat_map(|part| pieces(part, text, depth)).collect()
        }
        "binary_operator" => of_operator(node, text, depth),
        "call" => {
            let function = node.child_by_field_name("function");
            let format = function.filter(|one| is_named(*one, "attribute", text, &["format"]));
            let template = format.and_then(|format| format.child_by_field_name("object"));
            match template {
                Some(template) => with_fields(&pieces(template, text, depth), '{', '}'),
                None => vec![NamePiece::Value],
            }
        }
        "identifier" if depth < DEPTH_MOST => match assigned(node, text) {
            Some(value) => pieces(value, text, depth + 1),
            None => vec![NamePiece::Value],
        },
        _ => vec![NamePiece::Value],
    }
}

fn of_string(node: Node<'_>, text: &str) -> Vec<NamePiece> {
    let mut cursor = node.walk();
    let parts = node.named_children(&mut cursor);
    let parts = parts.filter_map(|part| match part.kind() {
        "string_content" => Some(NamePiece::Text(text[part.byte_range()].to_owned())),
        "interpolation" => Some(NamePiece::Value),
        _ => None,
    });
    parts.collect()
}

fn of_operator(node: Node<'_>, text: &str, depth: usize) -> Vec<NamePiece> {
    let side = |field| node.child_by_field_name(field);
    let (Some(left), Some(right), Some(operator)) = (side("left"), side("right"), side("operator"))
    else {
        return vec![NamePiece::Value];
    };
    match operator.kind() {
        "+" => {
            let mut all = pieces(left, text, depth);
            all.extend(pieces(right, text, depth));
            all
        }
        "%" => with_conversions(&pieces(left, text, depth)),
        _ => vec![NamePiece::Value],
    }
}

/// Returns the parts of a template, with [`NamePiece::Value`] for each field such as `{name}`.
fn with_fields(template: &[NamePiece], open: char, close: char) -> Vec<NamePiece> {
    split(template, |text| {
        let start = text.find(open)?;
        let end = start + text[start..].find(close)? + 1;
        Some((start, end))
    })
}

/// Returns the parts of a template, with [`NamePiece::Value`] for each conversion such as `%s`.
fn with_conversions(template: &[NamePiece]) -> Vec<NamePiece> {
    split(template, |text| {
        let start = text.find('%')?;
        let rest = text[start..].char_indices().skip(1);
        let mut rest = rest.skip_while(|(_, c)| !c.is_ascii_alphabetic());
        let (at, c) = rest.next()?;
        Some((start, start + at + c.len_utf8()))
    })
}

fn split(template: &[NamePiece], find: impl Fn(&str) -> Option<(usize, usize)>) -> Vec<NamePiece> {
    let mut all = Vec::new();
    for piece in template {
        let NamePiece::Text(text) = piece else {
            all.push(NamePiece::Value);
            continue;
        };
        let mut rest = text.as_str();
        while let Some((start, end)) = find(rest) {
            all.push(NamePiece::Text(rest[..start].to_owned()));
            all.push(NamePiece::Value);
            rest = &rest[end..];
        }
        all.push(NamePiece::Text(rest.to_owned()));
    }
    all
}

/// Returns the only expression that the enclosing function assigns to a name.
fn assigned<'t>(name: Node<'t>, text: &str) -> Option<Node<'t>> {
    let mut around = name;
    while let Some(parent) = around.parent() {
        around = parent;
        if around.kind() == "function_definition" {
            break;
        }
    }
    let mut values: BTreeMap<usize, Node<'t>> = BTreeMap::new();
    let mut waiting = vec![around];
    while let Some(node) = waiting.pop() {
        if node.kind() == "assignment" && is_named(node, "left", text, &[&text[name.byte_range()]])
        {
            let value = node.child_by_field_name("right")?;
            values.insert(value.start_byte(), value);
        }
        let mut cursor = node.walk();
        waiting.extend(node.children(&mut cursor));
    }
    match values.len() {
        1 => values.into_values().next(),
        _ => None,
    }
}

/// Returns whether the parts can evaluate to `name`. Requires at least one run-time value, because
/// a text without run-time values is an ordinary string, and enough fixed text.
fn may_be(pieces: &[NamePiece], name: &str) -> bool {
    let texts = pieces.iter().filter_map(|piece| match piece {
        NamePiece::Text(text) => Some(text.len()),
        NamePiece::Value => None,
    });
    let has_value = pieces.contains(&NamePiece::Value);
    has_value && texts.max().unwrap_or_default() >= FIXED_LEAST && fits(pieces, name)
}

fn fits(pieces: &[NamePiece], name: &str) -> bool {
    match pieces {
        [] => name.is_empty(),
        [NamePiece::Text(text), rest @ ..] => name
            .strip_prefix(text.as_str())
            .is_some_and(|name| fits(rest, name)),
        [NamePiece::Value, rest @ ..] => {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            let mut ends = ends.collect::<Vec<_>>().into_iter();
            ends.any(|at| fits(rest, &name[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::snapshot_of;
    use super::*;

    fn lines(text: &str) -> Vec<u32> {
        let found = dynamic_uses(&snapshot_of(&[("a.py", text)]), "on_saved_file");
        found.iter().map(|one| one.line).collect()
    }

    #[test]
    fn lookup_by_a_name_built_at_run_time_is_found() {
        for key in [
            "'on_' + event",
            "f'on_{event}'",
            "'on_%s_file' % event",
            "'on_{}_{}'.format(a, b)",
            "kind + '_file'",
            "('on_' f'{event}')",
        ] {
            let lookups = [
                format!("x = 1\ngetattr(self, {key})\n"),
                format!("x = 1\nglobals()[{key}]()\n"),
                format!("x = 1\nvars(module).get({key})\n"),
                format!("x = 1\noperator.methodcaller({key})\n"),
            ];
            for text in lookups {
                assert_eq!(lines(&text), [2], "{text}");
            }
            let text = format!("def f(event):\n    key = {key}\n    return getattr(x, key)\n");
            assert_eq!(lines(&text), [3], "{text}");
        }
    }

    #[test]
    fn lookups_that_cannot_build_the_name_are_not_found() {
        for text in [
            "getattr(self, 'off_' + event)",
            "getattr(self, name)",
            "getattr(self, 'on_saved_file')",
            "getattr(self, '_' + name)",
            "print('on_' + event)",
            "table['on_' + event]",
            "'on_%s_line' % event",
            "getattr(self, f'on_{a}_line')",
        ] {
            assert_eq!(lines(text), [0; 0], "{text}");
        }
    }
}
