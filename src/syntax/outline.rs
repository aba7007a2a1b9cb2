use super::{Symbol, SymbolTree};

/// The signature lines of a symbol as written (decorators, `def …:` joined to one line), without the body.
pub fn signature(tree: &SymbolTree, symbol: &Symbol) -> String {
    todo!()
}

/// One line for each symbol: line number, indentation by depth, signature; `lines` at most, with a
/// note of how many were left out (deepest first).
pub fn outline(tree: &SymbolTree, lines: usize) -> String {
    todo!()
}
