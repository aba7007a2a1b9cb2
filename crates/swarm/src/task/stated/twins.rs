//! Finds incomplete renames of a name with several definitions in one scope, such as overloads, or
//! a property and its setter: some definitions have the new name, others still have the old one.

use crate::lookup::Lookup;
use starling_index::{Dangling, Holder};
use starling_syntax::{SymbolPath, SymbolTree};

/// Returns the definitions that keep the name `old` although other definitions of that name in the
/// same scope were renamed to `to`.
pub(crate) fn left(old: &str, to: &str, before: &Lookup, after: &Lookup) -> Vec<Dangling> {
    let count = |tree: &SymbolTree, of: &SymbolPath| {
        let symbols = tree.symbols().iter();
        symbols.filter(|one| one.path.is_twin_of(of)).count()
    };
    let mut left = Vec::new();
    for file in after.index().snapshot().overlay().keys() {
        let (Ok(was), Ok(is)) = (before.tree(file), after.tree(file)) else {
            continue;
        };
        for symbol in is.symbols() {
            let path = &symbol.path;
            if path.is_module() || path.base_name() != old {
                continue;
            }
            let scope = symbol.parent.map(|id| is.get(id).path.clone());
            let scope = scope.unwrap_or_else(|| SymbolPath::module(file.clone()));
            let name = match scope.is_module() {
                true => to.to_owned(),
                false => format!("{}.{to}", scope.name),
            };
            let renamed = SymbolPath::new(file.clone(), name);
            let are_fewer = count(&is, path) < count(&was, path);
            if are_fewer && count(&is, &renamed) > count(&was, &renamed) {
                left.push(Dangling {
                    line: is.line_of(symbol),
                    offset: 0,
                    symbol: scope,
                    name: old.to_owned(),
                    file: file.clone(),
                    of: Holder::Unknown,
                });
            }
        }
    }
    left
}
