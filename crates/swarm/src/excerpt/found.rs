//! The result of a symbol lookup.

use std::sync::Arc;

use starling_syntax::{Symbol, SymbolTree};

/// A symbol and the tree that contains it.
pub struct Found {
    pub tree: Arc<SymbolTree>,
    pub symbol: Symbol,
}

impl Found {
    pub fn source(&self) -> &str {
        self.symbol.span.of(self.tree.text())
    }
}
