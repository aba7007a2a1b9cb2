//! Reduces the reply of a small model to the change that was requested.

use crate::protocol::Propose;
use starling_syntax::{Language, Symbol, SymbolPath, SymbolTree};

/// Reduces the source of a proposal to the target symbol; `None` if the target is not unique. Small
/// models often repeat imports and neighbouring symbols, which they must not change.
pub(crate) fn own_part(target: &SymbolPath, change: &Propose) -> Option<Propose> {
    let source = change.source.as_deref()?;
    let tree = SymbolTree::parse(target.file.clone(), source.into());
    let named = |symbol: &&Symbol| {
        !symbol.path.is_module() && symbol.path.base_name() == target.base_name()
    };
    let mut same = tree.symbols().iter().filter(named);
    let own = same
        .next()
        .filter(|_| same.next().is_none())?
        .span
        .of(source);
    Some(Propose {
        source: Some(own.to_owned()),
        ..change.clone()
    })
}

/// Returns the change without a stray closing code fence at the end of a document, which small
/// models often write. Returns `None` if there is no stray fence.
pub(crate) fn without_stray_fence(symbol: &SymbolPath, change: &Propose) -> Option<Propose> {
    let source = change.source.as_deref().filter(|_| is_document(symbol))?;
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let is_odd = source.lines().filter(is_fence).count() % 2 == 1;
    let rest = source.trim_end().strip_suffix("```").filter(|_| is_odd)?;
    rest.ends_with('\n').then(|| Propose {
        source: Some(rest.to_owned()),
        ..change.clone()
    })
}

/// Returns whether a symbol is a whole file without code.
pub(crate) fn is_document(symbol: &SymbolPath) -> bool {
    symbol.is_module() && Language::of(&symbol.file) == Language::Plain
}
