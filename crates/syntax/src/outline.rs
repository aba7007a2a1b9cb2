use super::definition::join_lines;
use super::{Symbol, SymbolTree};
use starling_text::ByteRange;

/// Returns the signature of a symbol as source text, without its body and comments: each decorator,
/// then the `def …:` joined to one line. The result is empty for the module body.
pub fn signature(tree: &SymbolTree, symbol: &Symbol) -> String {
    let Some(node) = tree.node(symbol) else {
        return String::new();
    };
    let mut lines = symbol.contract.decorators.clone();
    let body = node.child_by_field_name("body");
    let mut cursor = node.walk();
    let colon = node
        .children(&mut cursor)
        .filter(|child| child.kind() == ":")
        .map(|child| child.end_byte())
        .next();
    let end = colon
        .or(body.map(|body| body.start_byte()))
        .unwrap_or(node.end_byte());
    lines.push(head(tree, ByteRange::new(node.start_byte(), end)));
    lines.join("\n")
}

/// Returns the text of a range on one line, without its comments.
fn head(tree: &SymbolTree, range: ByteRange) -> String {
    let text = tree.text();
    let mut kept = String::with_capacity(range.len());
    let mut done = range.start;
    let comments = tree.comments();
    let first = comments.partition_point(|comment| comment.start < range.start);
    for comment in comments[first..]
        .iter()
        .take_while(|comment| comment.end <= range.end)
    {
        kept.push_str(&text[done..comment.start]);
        done = comment.end;
    }
    kept.push_str(&text[done..range.end]);
    join_lines(&kept)
}

/// Returns one line for each symbol: line number, indentation by depth, and signature. If there are
/// more than `lines` symbols, the most deeply nested symbols are left out first, and the later
/// before the earlier ones. The last line then shows how many were left out.
pub fn outline(tree: &SymbolTree, lines: usize) -> String {
    let symbols = &tree.symbols()[1..];
    let depths: Vec<usize> = symbols.iter().map(|symbol| depth(tree, symbol)).collect();
    let mut order: Vec<usize> = (0..symbols.len()).collect();
    if symbols.len() > lines {
        // Reserve one line for the number of omitted symbols.
        order.sort_by_key(|index| (depths[*index], *index));
        order.truncate(lines.saturating_sub(1));
        order.sort_unstable();
    }
    let mut text = String::new();
    for index in &order {
        let symbol = &symbols[*index];
        let line = tree.lines().number_at(symbol.name.start);
        let indent = "  ".repeat(depths[*index]);
        let signature = signature(tree, symbol).replace('\n', " ");
        text.push_str(&format!("{line:>5}  {indent}{signature}\n"));
    }
    let left_out = symbols.len() - order.len();
    if left_out > 0 && lines > 0 {
        text.push_str(&format!("       … {left_out} more symbols\n"));
    }
    text
}

fn depth(tree: &SymbolTree, symbol: &Symbol) -> usize {
    std::iter::successors(symbol.parent, |id| tree.get(*id).parent)
        .count()
        .saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::FilePath;
    use super::*;

    const TEXT: &str = "\
import os

@final
@register(
    'a',  # why
)
class A(Base,
        metaclass=M):
    '''Doc.'''

    # of f
    async def f(
        self,
        x: int = 1,  # one
    ) -> dict[str,
              int]: return {}

    class B:
        def g(self): pass

def h(a): return a
";

    fn tree() -> SymbolTree {
        SymbolTree::parse(FilePath::new("m.py"), Arc::from(TEXT))
    }

    #[test]
    fn signature_contains_decorators_and_head_without_body() {
        let tree = tree();
        let of = |name: &str| signature(&tree, tree.find(name).expect("the symbol exists"));
        assert_eq!(
            of("A"),
            "@final\n@register('a',)\nclass A(Base, metaclass=M):"
        );
        assert_eq!(
            of("A.f"),
            "async def f(self, x: int = 1,) -> dict[str, int]:"
        );
        assert_eq!(of("h"), "def h(a):");
        assert_eq!(of(""), "");
    }

    #[test]
    fn outline_has_one_line_for_each_symbol() {
        let expected = "    7  @final @register('a',) class A(Base, metaclass=M):
   12    async def f(self, x: int = 1,) -> dict[str, int]:
   18    class B:
   19      def g(self):
   21  def h(a):
";
        assert_eq!(outline(&tree(), 5), expected);
    }

    #[test]
    fn outline_leaves_out_the_deepest_symbols_first() {
        let lines = |limit: usize| -> Vec<String> {
            let outline = outline(&tree(), limit);
            outline.lines().map(|line| line.trim().to_owned()).collect()
        };
        let short = lines(4);
        assert_eq!(short.len(), 4);
        assert!(
            short[0].starts_with("7 ")
                && short[1].starts_with("12 ")
                && short[2].starts_with("21 ")
        );
        assert_eq!(short[3], "… 2 more symbols");
        assert_eq!(lines(1), ["… 5 more symbols"]);
        assert!(lines(0).is_empty());
    }

    #[test]
    fn signatures_of_unusual_definitions_are_complete() {
        let text = "def a(x: int = {1: 2}[1], *, y: 'a:b' = lambda: 0) -> T: return x\nclass B: pass\nclass C(): x: int = 1\n\
                    async def d(\n    x,  # one:\n): pass\n@e\nclass F[T](G[T]): ...\n";
        let tree = SymbolTree::parse(FilePath::new("m.py"), Arc::from(text));
        let heads: Vec<String> = tree.symbols()[1..]
            .iter()
            .map(|symbol| signature(&tree, symbol))
            .collect();
        assert_eq!(
            heads,
            [
                "def a(x: int = {1: 2}[1], *, y: 'a:b' = lambda: 0) -> T:",
                "class B:",
                "class C():",
                "async def d(x,):",
                "@e\nclass F[T](G[T]):",
            ]
        );
    }

    #[test]
    fn outline_of_a_file_without_symbols_is_empty() {
        for (file, text) in [
            ("m.py", "x = 1\n"),
            ("m.py", ""),
            ("a.md", "def f(): pass\n"),
        ] {
            let tree = SymbolTree::parse(FilePath::new(file), Arc::from(text));
            assert_eq!(outline(&tree, 10), "");
            assert_eq!(signature(&tree, tree.module()), "");
        }
    }
}
