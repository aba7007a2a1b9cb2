//! Reads symbols from a syntax tree.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;

use tree_sitter::{Node, Tree};

use super::definition::{contract, docstring, docstring_node, range_of};
use super::identifier::normalized;
use super::language::{Grammar, NodeKind};
use super::lines::Lines;
use super::span::Layout;
use super::{Contract, FilePath, Symbol, SymbolId, SymbolKind, SymbolPath};
use starling_text::ByteRange;

/// The symbols, syntax errors, comments and strings of one text.
pub(super) struct ReadSymbols {
    pub(super) symbols: Vec<Symbol>,
    pub(super) errors: Vec<ByteRange>,
    pub(super) comments: Vec<ByteRange>,
    pub(super) strings: Vec<ByteRange>,
}

impl ReadSymbols {
    /// Returns the only symbol of a file without a grammar, which covers the whole text.
    pub(super) fn plain(file: &FilePath, text: &str, lines: &Lines) -> Self {
        ReadSymbols {
            symbols: vec![module(file, text, lines, None)],
            errors: Vec::new(),
            comments: Vec::new(),
            strings: Vec::new(),
        }
    }
}

/// A definition in the syntax tree.
struct Definition<'t> {
    /// The node including decorators.
    outer: Node<'t>,
    inner: Node<'t>,
    name: Node<'t>,
    is_class: bool,
}

/// The relevant nodes of the syntax tree, in text order.
#[derive(Default)]
struct RelevantNodes<'t> {
    definitions: Vec<Definition<'t>>,
    comments: Vec<ByteRange>,
    strings: Vec<ByteRange>,
    raises: Vec<Node<'t>>,
    yields: Vec<Node<'t>>,
}

pub(super) fn read(
    grammar: &Grammar,
    tree: &Tree,
    file: &FilePath,
    text: &str,
    lines: &Lines,
) -> ReadSymbols {
    let root = tree.root_node();
    let found = RelevantNodes::of(grammar, root, text);
    let mut symbols = vec![module(file, text, lines, Some(root))];
    nest(&found, file, text, &mut symbols);
    set_spans(&found, text, lines, &mut symbols);
    for raise in &found.raises {
        note_raise(*raise, text, &mut symbols);
    }
    for found in &found.yields {
        note_yield(*found, &mut symbols);
    }
    ReadSymbols {
        symbols,
        errors: errors(root),
        comments: found.comments,
        strings: found.strings,
    }
}

impl<'t> RelevantNodes<'t> {
    fn of(grammar: &Grammar, root: Node<'t>, text: &str) -> Self {
        let mut found = RelevantNodes::default();
        let mut sign = grammar.next_sign(text, 0);
        let mut decorated = HashMap::new();
        let mut cursor = root.walk();
        walk(&mut cursor, |node| {
            match grammar.part(node) {
                Some(NodeKind::Class) => found.define(node, true),
                Some(NodeKind::Function) => found.define(node, false),
                Some(NodeKind::Decorated) => {
                    if let Some(inner) = node.child_by_field_name("definition") {
                        decorated.insert(inner.id(), node);
                    }
                }
                Some(NodeKind::Comment) => {
                    found.comments.push(range_of(node));
                    return ControlFlow::Break(());
                }
                Some(NodeKind::String) => {
                    found.strings.push(range_of(node));
                    // Only an f-string can contain relevant nodes. It has more than three children,
                    // while a plain string has at most three: its quotes and its content.
                    if node.child_count() <= 3 {
                        return ControlFlow::Break(());
                    }
                }
                Some(NodeKind::Raise) => found.raises.push(node),
                Some(NodeKind::Yield) => found.yields.push(node),
                Some(NodeKind::Leaf) => return ControlFlow::Break(()),
                Some(NodeKind::Expression) => {
                    // Most nodes of the tree are in expressions, and most expressions contain no
                    // relevant node, so an expression without a sign of a comment, a string or
                    // `yield` is skipped.
                    if sign < node.start_byte() {
                        sign = grammar.next_sign(text, node.start_byte());
                    }
                    if sign >= node.end_byte() && !node.has_error() {
                        return ControlFlow::Break(());
                    }
                }
                None => {}
            }
            ControlFlow::Continue(())
        });
        for definition in &mut found.definitions {
            if let Some(outer) = decorated.get(&definition.inner.id()) {
                definition.outer = *outer;
            }
        }
        found.sort();
        found
    }

    fn define(&mut self, node: Node<'t>, is_class: bool) {
        let name = node.child_by_field_name("name");
        if let Some(name) = name.filter(|name| name.kind() == "identifier" && !name.is_missing()) {
            self.definitions.push(Definition {
                outer: node,
                inner: node,
                name,
                is_class,
            });
        }
    }

    fn sort(&mut self) {
        self.definitions.sort_by_key(|found| {
            (
                found.outer.start_byte(),
                usize::MAX - found.outer.end_byte(),
            )
        });
        self.comments.sort();
        // Strings inside the fields of an f-string lie within the outer string.
        self.strings
            .sort_by_key(|string| (string.start, usize::MAX - string.end));
        self.strings.dedup_by(|inner, outer| outer.covers(*inner));
    }
}

fn module(file: &FilePath, text: &str, lines: &Lines, root: Option<Node<'_>>) -> Symbol {
    let span = ByteRange::new(0, text.len());
    Symbol {
        path: SymbolPath::module(file.clone()),
        kind: SymbolKind::Module,
        span,
        definition: span,
        name: ByteRange::new(0, 0),
        lines: lines.numbers(span),
        parent: None,
        children: Vec::new(),
        contract: Contract::default(),
        body: span,
        doc: root.and_then(|root| docstring(root, text)),
        docstring: root.and_then(docstring_node).map(range_of),
    }
}

/// Adds a symbol for each definition, with its parent and its path.
fn nest(found: &RelevantNodes<'_>, file: &FilePath, text: &str, symbols: &mut Vec<Symbol>) {
    let mut open = vec![SymbolId(0)];
    let mut seen: HashMap<(SymbolId, Cow<'_, str>), usize> = HashMap::new();
    for definition in &found.definitions {
        let range = trimmed(definition.outer, text);
        while open.len() > 1 && !symbols[open[open.len() - 1].0].definition.covers(range) {
            open.pop();
        }
        let parent = open[open.len() - 1];
        let id = SymbolId(symbols.len());
        let name = range_of(definition.name);
        let written = normalized(name.of(text));
        let count = seen.entry((parent, written.clone())).or_insert(0);
        *count += 1;
        let body = definition.inner.child_by_field_name("body");
        symbols.push(Symbol {
            path: path_in(&symbols[parent.0].path, file, &written, *count),
            kind: match (definition.is_class, symbols[parent.0].kind) {
                (true, _) => SymbolKind::Class,
                (false, SymbolKind::Class) => SymbolKind::Method,
                (false, SymbolKind::Module | SymbolKind::Function | SymbolKind::Method) => {
                    SymbolKind::Function
                }
            },
            span: range,
            definition: range,
            name,
            lines: (0, 0),
            parent: Some(parent),
            children: Vec::new(),
            contract: contract(definition.outer, definition.inner, &written, text),
            body: body.map_or(ByteRange::new(range.end, range.end), |body| {
                trimmed(body, text)
            }),
            doc: body.and_then(|body| docstring(body, text)),
            docstring: body.and_then(docstring_node).map(range_of),
        });
        symbols[parent.0].children.push(id);
        open.push(id);
    }
}

fn path_in(parent: &SymbolPath, file: &FilePath, name: &str, count: usize) -> SymbolPath {
    let mut full = String::with_capacity(parent.name.len() + name.len() + 4);
    if !parent.is_module() {
        full.push_str(&parent.name);
        full.push('.');
    }
    full.push_str(name);
    if count > 1 {
        full.push_str(&format!("#{count}"));
    }
    SymbolPath::new(file.clone(), full)
}

/// Sets the spans of the symbols, children before parents, so that a parent does not end before its
/// last child.
fn set_spans(found: &RelevantNodes<'_>, text: &str, lines: &Lines, symbols: &mut [Symbol]) {
    let layout = Layout {
        text,
        lines,
        comments: &found.comments,
    };
    for index in (1..symbols.len()).rev() {
        let mut span = layout.span(symbols[index].definition);
        if let Some(last) = symbols[index].children.last() {
            span.end = span.end.max(symbols[last.0].span.end);
        }
        symbols[index].span = span;
    }
    // If a comment could belong to the symbol before it or to the symbol after it, it belongs to
    // the symbol before it.
    for index in 0..symbols.len() {
        let inside = symbols[index].span;
        let mut free = inside.start;
        for child in symbols[index].children.clone() {
            let span = &mut symbols[child.0].span;
            span.start = span.start.max(free);
            free = span.end;
        }
        symbols[index].lines = lines.numbers(symbols[index].span);
    }
}

/// Returns the innermost symbol around a node.
fn holder<'s>(node: Node<'_>, symbols: &'s mut [Symbol]) -> &'s mut Symbol {
    let at = range_of(node);
    let before = symbols.partition_point(|symbol| symbol.definition.start <= at.start);
    let mut index = before.saturating_sub(1);
    while !symbols[index].definition.covers(at) {
        index = symbols[index].parent.map_or(0, |parent| parent.0);
    }
    &mut symbols[index]
}

fn note_raise(raise: Node<'_>, text: &str, symbols: &mut [Symbol]) {
    let Some(name) = super::definition::raised(raise, text) else {
        return;
    };
    let raises = &mut holder(raise, symbols).contract.raises;
    if let Err(place) = raises.binary_search(&name) {
        raises.insert(place, name);
    }
}

fn note_yield(found: Node<'_>, symbols: &mut [Symbol]) {
    let mut around = found.parent();
    while let Some(node) = around {
        match node.kind() {
            "lambda" => return,
            "function_definition" | "class_definition" => break,
            _ => around = node.parent(),
        }
    }
    holder(found, symbols).contract.is_generator = true;
}

/// Returns the range of a node without trailing white space.
fn trimmed(node: Node<'_>, text: &str) -> ByteRange {
    let range = range_of(node);
    ByteRange::new(range.start, range.start + range.of(text).trim_end().len())
}

/// Returns the ranges of the outermost error and missing nodes.
fn errors(root: Node<'_>) -> Vec<ByteRange> {
    let mut errors = Vec::new();
    let mut cursor = root.walk();
    walk(&mut cursor, |node| {
        if node.is_error() || node.is_missing() {
            errors.push(range_of(node));
            return ControlFlow::Break(());
        }
        if node.has_error() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    errors
}

/// Visits the nodes in text order. The children of a node are visited only if `enter` continues.
pub(super) fn walk<'t>(
    cursor: &mut tree_sitter::TreeCursor<'t>,
    mut enter: impl FnMut(Node<'t>) -> ControlFlow<()>,
) {
    loop {
        if enter(cursor.node()).is_continue() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}
