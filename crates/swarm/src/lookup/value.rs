//! Uses of functions as values: in a table of functions, or as an argument.

use super::Lookup;
use starling_index::{Certainty, Usage};
use starling_syntax::{SymbolKind, SymbolPath};

/// Maximum number of uses of one symbol that are considered.
const USES_MOST: usize = 400;

impl Lookup {
    /// Returns whether a use of a function stores it or passes it on instead of calling it, so that
    /// its callers are not known from there.
    pub(crate) fn is_value(&self, symbol: &SymbolPath, usage: &Usage) -> bool {
        let is_plain = !usage.is_call && !usage.is_import && !usage.text.starts_with('@');
        is_plain && usage.certainty != Certainty::Possible && self.is_called(symbol)
    }

    /// Returns the uses of a function that store it or pass it on.
    pub(crate) fn uses_as_value(&self, symbol: &SymbolPath) -> Vec<Usage> {
        if !self.is_called(symbol) {
            return Vec::new();
        }
        let mut uses = self.usages(&symbol.to_string(), USES_MOST).found;
        uses.retain(|usage| self.is_value(symbol, usage));
        uses
    }

    /// Returns whether a symbol is a function or method, and not a property.
    fn is_called(&self, symbol: &SymbolPath) -> bool {
        let Ok(found) = self.symbol(symbol) else {
            return false;
        };
        let mut decorators = found.symbol.contract.decorators.iter();
        let is_function = match found.symbol.kind {
            SymbolKind::Function | SymbolKind::Method => true,
            SymbolKind::Module | SymbolKind::Class => false,
        };
        is_function && !decorators.any(|one| one.contains("property") || one.contains(".setter"))
    }
}
