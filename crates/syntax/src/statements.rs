//! Finds the statements of a function, as ranges of lines.

use tree_sitter::Node;

use super::{Symbol, SymbolKind, SymbolTree};
use starling_text::ByteRange;

/// The node kind for a block of statements in the Python grammar.
const BLOCK: &str = "block";

/// Returns the statements of a function in order, as ranges of whole lines without their last line
/// break. A compound statement is represented by its head (`if x:`). The docstring and nested
/// functions and classes are left out. The result is empty for a class, a module, and a file
/// without a grammar.
pub fn statements(tree: &SymbolTree, symbol: &Symbol) -> Vec<ByteRange> {
    let body = match symbol.kind {
        SymbolKind::Function | SymbolKind::Method => tree.node(symbol),
        SymbolKind::Module | SymbolKind::Class => None,
    };
    let Some(body) = body.and_then(|node| node.child_by_field_name("body")) else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    gather(body, &mut rows);
    rows.sort_unstable();
    rows.dedup();
    let lines = tree.lines();
    let text = tree.text();
    let range = |(first, last): (usize, usize)| {
        let whole = ByteRange::new(lines.range(first).start, lines.range(last).end);
        let shown = text[whole.start..whole.end].trim_end_matches(['\n', '\r']);
        ByteRange::new(whole.start, whole.start + shown.len())
    };
    let first_row = body.start_position().row;
    let is_docstring = |range: &ByteRange| {
        (symbol.docstring).is_some_and(|doc| doc.start >= range.start && doc.end <= range.end)
    };
    rows.into_iter()
        .filter(|(first, _)| *first >= first_row)
        .map(range)
        .filter(|range| !is_docstring(range))
        .collect()
}

/// Collects the row ranges of the statements in a block and its nested blocks.
fn gather(block: Node<'_>, rows: &mut Vec<(usize, usize)>) {
    let mut cursor = block.walk();
    for statement in block.named_children(&mut cursor) {
        match statement.kind() {
            "comment" | "function_definition" | "class_definition" | "decorated_definition" => {}
            _ => add(statement, rows),
        }
    }
}

/// Collects the rows of a statement or a clause (`else:`, `except E:`).
fn add(statement: Node<'_>, rows: &mut Vec<(usize, usize)>) {
    let first = statement.start_position().row;
    let mut last = None;
    let mut cursor = statement.walk();
    for child in statement.named_children(&mut cursor) {
        if child.kind() == BLOCK {
            last.get_or_insert(child.start_position().row.saturating_sub(1).max(first));
            gather(child, rows);
        } else if child.kind().ends_with("_clause") && holds_block(child) {
            add(child, rows);
        }
    }
    let last = last.unwrap_or(statement.end_position().row);
    let is_bare = matches!(statement.kind(), "else_clause" | "finally_clause")
        || statement.kind() == "try_statement";
    if !is_bare {
        rows.push((first, last));
    }
}

fn holds_block(node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .any(|child| child.kind() == BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FilePath;

    fn of(text: &str, name: &str) -> Vec<String> {
        let tree = SymbolTree::parse(FilePath::new("a.py"), text.into());
        let symbol = tree.find(name).unwrap();
        let ranges = statements(&tree, symbol).into_iter();
        ranges
            .map(|range| tree.text()[range.start..range.end].to_owned())
            .collect()
    }

    #[test]
    fn statements_are_whole_lines_and_compound_statements_only_their_heads() {
        let text = "\
class A:
    def f(self, x):
        \"\"\"Says what.

        More.
        \"\"\"
        # why
        y = g(
            x,
        )
        if y > 1:
            return y
        elif (
            x
        ):
            pass
        else:
            y += 1
        try:
            h()
        except E as e:
            raise
        finally:
            k()

        def inner():
            return 1

        for i in x: print(i)
        return y
";
        let expected = [
            "        y = g(\n            x,\n        )",
            "        if y > 1:",
            "            return y",
            "        elif (\n            x\n        ):",
            "            pass",
            "            y += 1",
            "            h()",
            "        except E as e:",
            "            raise",
            "            k()",
            "        for i in x: print(i)",
            "        return y",
        ];
        assert_eq!(of(text, "A.f"), expected);
        assert_eq!(of(text, "A.f.inner"), ["            return 1"]);
        assert!(of(text, "A").is_empty());
        assert_eq!(of(&text.replace('\n', "\r\n"), "A.f").len(), expected.len());
    }

    #[test]
    fn one_line_function_has_one_statement() {
        assert_eq!(of("def f(x): return x\n", "f"), ["def f(x): return x"]);
        assert_eq!(of("def f():\n    \"\"\"Doc.\"\"\"\n", "f"), [""; 0]);
    }
}
