//! Syntax errors of Python code: errors of the grammar, and code that the grammar accepts although
//! Python does not.

use std::collections::HashSet;
use std::ops::ControlFlow;

use tree_sitter::Node;

use super::lines::{Columns, is_blank};
use super::read::walk;
use super::{Parameter, SymbolKind, SymbolTree};

#[cfg(test)]
mod tests;

/// A position in the text where Python would report a syntax error, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxFlaw {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

/// Returns all syntax errors that can be found in the syntax tree, in the order of the text.
pub(super) fn flaws(tree: &SymbolTree) -> Vec<SyntaxFlaw> {
    let Some(root) = tree.root() else {
        let unparsed = tree.is_unparsed().then_some(SyntaxFlaw {
            at: 0,
            what: "it takes too long to parse",
        });
        return unparsed.into_iter().collect();
    };
    let mut flaws = Vec::new();
    walk(&mut root.walk(), |node| {
        if node.is_missing() {
            push(&mut flaws, node, "something is missing here");
        } else if node.is_error() {
            push(&mut flaws, node, "this cannot be parsed");
            return ControlFlow::Break(());
        }
        look_at(tree, node, &mut flaws);
        ControlFlow::Continue(())
    });
    for symbol in tree.symbols() {
        let parameters = symbol.contract.parameters.as_deref().unwrap_or_default();
        if let Some(what) = parameter_flaw(parameters) {
            flaws.push(SyntaxFlaw {
                at: symbol.name.start,
                what,
            });
        }
    }
    flaws.sort_by_key(|flaw| flaw.at);
    flaws
}

fn push(flaws: &mut Vec<SyntaxFlaw>, node: Node<'_>, what: &'static str) {
    flaws.push(SyntaxFlaw {
        at: node.start_byte(),
        what,
    });
}

fn look_at(tree: &SymbolTree, node: Node<'_>, flaws: &mut Vec<SyntaxFlaw>) {
    match node.kind() {
        "module" => check_block(tree, node, None, flaws),
        "block" => {
            if statements(node).next().is_none() {
                push(
                    flaws,
                    node,
                    "the block before this is empty: it needs a statement",
                );
            } else {
                check_block(tree, node, node.parent(), flaws);
            }
        }
        "elif_clause"
        | "else_clause"
        | "except_clause"
        | "except_group_clause"
        | "finally_clause" => {
            let depth = |node: Node<'_>| own_depth(tree, node.start_byte());
            let around = node.parent().and_then(depth);
            if depth(node)
                .zip(around)
                .is_some_and(|(own, around)| own != around)
            {
                push(
                    flaws,
                    node,
                    "its indentation differs from that of its statement",
                );
            }
        }
        "try_statement" => {
            let mut cursor = node.walk();
            let handled = node.named_children(&mut cursor).any(|child| {
                matches!(
                    child.kind(),
                    "except_clause" | "except_group_clause" | "finally_clause"
                )
            });
            if !handled {
                push(flaws, node, "this `try` has neither `except` nor `finally`");
            }
        }
        "return_statement" => match tree.owner(node.start_byte()).kind {
            SymbolKind::Module | SymbolKind::Class => {
                push(flaws, node, "`return` outside of a function")
            }
            SymbolKind::Function | SymbolKind::Method => {}
        },
        "exec_statement" => push(flaws, node, "a statement that exists only in Python 2"),
        // `print >> file, text` is a legal expression in Python 3.
        "print_statement" => {
            let first = node.named_child(0).map(|child| child.kind());
            if first != Some("chevron") {
                push(flaws, node, "a statement that exists only in Python 2");
            }
        }
        "argument_list" => check_arguments(node, flaws),
        _ => {}
    }
}

/// Returns the named children of a node without comments, for example the statements of a block.
pub(super) fn statements<'t>(block: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    (0..block.named_child_count())
        .filter_map(move |index| block.named_child(index as u32))
        .filter(|child| !child.is_extra())
}

/// Returns the indentation at an offset if only white space precedes it on its line.
fn own_depth(tree: &SymbolTree, offset: usize) -> Option<Columns> {
    let lines = tree.lines();
    let before = &tree.text()[lines.range(lines.line_of(offset)).start..offset];
    let before = before.trim_start_matches('\u{feff}');
    is_blank(before).then(|| Columns::of(before))
}

/// Checks that all statements of a block have the same indentation, and that it is deeper than the
/// indentation of `head`, the compound statement (such as `if`) that contains the block.
fn check_block(
    tree: &SymbolTree,
    block: Node<'_>,
    head: Option<Node<'_>>,
    flaws: &mut Vec<SyntaxFlaw>,
) {
    let mut expected = match head {
        None => Some(Columns::of("")),
        Some(_) => None,
    };
    let outside = head.and_then(|head| own_depth(tree, head.start_byte()));
    for statement in statements(block) {
        let Some(depth) = own_depth(tree, statement.start_byte()) else {
            continue;
        };
        if follows_continuation(tree, statement.start_byte()) {
            continue;
        }
        match expected {
            None => {
                expected = Some(depth);
                if outside.is_some_and(|outside| !depth.deeper_than(outside)) {
                    push(
                        flaws,
                        statement,
                        "this must be indented deeper than the head of its block",
                    );
                }
            }
            Some(expected) if expected != depth => {
                push(
                    flaws,
                    statement,
                    "its indentation differs from that of the previous statements",
                );
                return;
            }
            Some(_) => {}
        }
    }
}

/// Returns whether the previous line ends with a backslash. If so, the indentation has no meaning.
fn follows_continuation(tree: &SymbolTree, offset: usize) -> bool {
    let start = tree.lines().range(tree.lines().line_of(offset)).start;
    tree.text()[..start]
        .trim_end_matches(['\r', '\n'])
        .ends_with('\\')
}

fn check_arguments(list: Node<'_>, flaws: &mut Vec<SyntaxFlaw>) {
    let mut named = false;
    for argument in statements(list) {
        match argument.kind() {
            "keyword_argument" | "dictionary_splat" => named = true,
            "list_splat" | "parenthesized_list_splat" | "ERROR" => {}
            _ if named => {
                push(
                    flaws,
                    argument,
                    "a positional argument after a keyword argument",
                );
                return;
            }
            _ => {}
        }
    }
}

fn parameter_flaw(parameters: &[Parameter]) -> Option<&'static str> {
    let mut names = HashSet::new();
    let mut optional = false;
    for parameter in parameters {
        if !names.insert(parameter.name.as_str()) {
            return Some("two parameters of this function have the same name");
        }
        let is_positional = parameter.is_positional();
        if is_positional && optional && parameter.default.is_none() {
            return Some("a parameter without a default after a parameter with a default");
        }
        optional |= is_positional && parameter.default.is_some();
    }
    None
}
