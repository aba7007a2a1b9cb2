//! Reads contracts and docstrings from the syntax tree of Python.

use tree_sitter::Node;

use super::{Contract, Parameter, ParameterKind, normalized};
use starling_text::ByteRange;

pub(super) fn range_of(node: Node<'_>) -> ByteRange {
    ByteRange::new(node.start_byte(), node.end_byte())
}

pub(super) fn contract(outer: Node<'_>, inner: Node<'_>, name: &str, text: &str) -> Contract {
    let mut cursor = outer.walk();
    let decorators = outer
        .named_children(&mut cursor)
        .filter(|child| child.kind() == "decorator")
        .map(|decorator| one_line(decorator, text))
        .collect();
    let field = |name: &str| inner.child_by_field_name(name);
    Contract {
        name: name.to_owned(),
        decorators,
        parameters: field("parameters").map(|parameters| parameters_of(parameters, text)),
        bases: field("superclasses").map_or_else(Vec::new, |bases| {
            let mut cursor = bases.walk();
            bases
                .named_children(&mut cursor)
                .filter(|base| !base.is_extra())
                .map(|base| one_line(base, text))
                .collect()
        }),
        returns: field("return_type").map(|returns| one_line(returns, text)),
        is_async: inner.child(0).is_some_and(|first| first.kind() == "async"),
        is_generator: false,
        raises: Vec::new(),
    }
}

fn parameters_of(list: Node<'_>, text: &str) -> Vec<Parameter> {
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut kind = ParameterKind::Positional;
    let mut cursor = list.walk();
    for node in list.named_children(&mut cursor) {
        match node.kind() {
            "positional_separator" => {
                for earlier in &mut parameters {
                    earlier.kind = ParameterKind::PositionalOnly;
                }
            }
            "keyword_separator" => kind = ParameterKind::KeywordOnly,
            _ if node.is_extra() || node.is_error() => {}
            _ => {
                let parameter = parameter(node, kind, text);
                if parameter.kind == ParameterKind::VarPositional {
                    kind = ParameterKind::KeywordOnly;
                }
                parameters.push(parameter);
            }
        }
    }
    parameters
}

fn parameter(node: Node<'_>, kind: ParameterKind, text: &str) -> Parameter {
    let named = node
        .child_by_field_name("name")
        .or_else(|| {
            let is_typed = node.kind() == "typed_parameter";
            is_typed.then(|| node.named_child(0)).flatten()
        })
        .unwrap_or(node);
    let part = |name: &str| {
        node.child_by_field_name(name)
            .map(|part| one_line(part, text))
    };
    let (kind, stars) = match named.kind() {
        "list_splat_pattern" => (ParameterKind::VarPositional, 1),
        "dictionary_splat_pattern" => (ParameterKind::VarKeyword, 2),
        _ => (kind, 0),
    };
    let written = one_line(named, text);
    let written = written.get(stars..).unwrap_or_default();
    Parameter {
        name: normalized(written.trim_start()).into_owned(),
        kind,
        annotation: part("type"),
        default: part("value"),
    }
}

/// Returns the name of the exception that a `raise` statement raises. For a call this is the called
/// name. A plain name counts only if it looks like a class, because other names are variables.
pub(super) fn raised(raise: Node<'_>, text: &str) -> Option<String> {
    let value = raise.named_child(0)?;
    if raise
        .child_by_field_name("cause")
        .is_some_and(|cause| cause.id() == value.id())
    {
        return None;
    }
    let name = match value.kind() {
        "call" => value.child_by_field_name("function")?,
        "identifier" | "attribute" => value,
        _ => return None,
    };
    if !matches!(name.kind(), "identifier" | "attribute") {
        return None;
    }
    let written = one_line(name, text);
    let last = written.rsplit('.').next().unwrap_or_default();
    let is_class = last.trim_start_matches('_').starts_with(char::is_uppercase);
    (value.kind() == "call" || is_class).then_some(written)
}

/// Returns the string literal that is the docstring of the definition or module with this body.
pub(super) fn docstring_node(body: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = body.walk();
    let first = body
        .named_children(&mut cursor)
        .find(|child| !child.is_extra())?;
    let mut string = first
        .named_child(0)
        .filter(|_| first.kind() == "expression_statement")?;
    if string.kind() == "concatenated_string" {
        string = string.named_child(0)?;
    }
    (string.kind() == "string" && first.named_child_count() == 1).then_some(string)
}

/// Returns the first paragraph of the docstring of a body, joined to one line.
pub(super) fn docstring(body: Node<'_>, text: &str) -> Option<String> {
    let string = docstring_node(body)?;
    let (open, close) = (
        string.child(0)?,
        string.child(string.child_count().checked_sub(1)?)?,
    );
    let prefix = range_of(open).of(text).to_ascii_lowercase();
    if prefix.contains(['b', 'f', 't']) || open.id() == close.id() {
        return None;
    }
    let content = text.get(open.end_byte()..close.start_byte())?;
    let paragraph: Vec<&str> = content
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .collect();
    Some(paragraph.join(" "))
}

/// Returns the text of a node on one line. Each line break and the indentation after it become one
/// space, or nothing inside brackets; comments are removed.
pub(super) fn one_line(node: Node<'_>, text: &str) -> String {
    let written = range_of(node).of(text);
    if !written.contains('\n') {
        return written.to_owned();
    }
    let mut joined = String::with_capacity(written.len());
    let mut cursor = node.walk();
    let mut done = node.start_byte();
    super::read::walk(&mut cursor, |part| {
        if part.kind() == "comment" {
            joined.push_str(&text[done..part.start_byte()]);
            done = part.end_byte();
        }
        std::ops::ControlFlow::Continue(())
    });
    joined.push_str(&text[done..node.end_byte()]);
    join_lines(&joined)
}

pub(super) fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_end_matches('\\').trim();
        if line.is_empty() {
            continue;
        }
        let opens = joined.ends_with(['(', '[', '{']);
        let closes = line.starts_with([')', ']', '}']);
        if !joined.is_empty() && !opens && !closes {
            joined.push(' ');
        }
        joined.push_str(line);
    }
    joined
}
