use super::{FilePath, Loss, SymbolTree};
use crate::text::ChangeSet;

/// One change of a file in terms of symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewrite {
    /// The whole symbol, children included, replaced by this source. The source may be written at any
    /// indentation: it is moved to the symbol's, inside strings nothing moves. Line breaks become those of the file.
    Whole {
        symbol: String,
        source: String,
    },
    /// Replaces each `old` (must occur exactly once in the symbol; white space at line ends forgiven,
    /// a uniform difference in indentation forgiven) by `new`.
    Patch {
        symbol: String,
        hunks: Vec<(String, String)>,
    },
    /// A new symbol after `beside` (a sibling, or when it is a class and `inside`, at its end; module body: at the end of the file).
    Add {
        beside: String,
        place: Place,
        source: String,
    },
    Delete {
        symbol: String,
    },
    /// Import statements to add to the module body, where missing: after the last top-level import
    /// (but not inside `if TYPE_CHECKING`/`try`), else after docstring and `__future__`. `from x import a` merges into an existing one when that is on one line.
    Import {
        statements: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    After,
    Inside,
}

/// Why a rewrite cannot be made. Each message tells a model what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    #[error("no symbol `{name}` in {file}; it has: {known}")]
    NoSymbol {
        file: FilePath,
        name: String,
        known: String,
    },
}

/// What a rewrite would do.
#[derive(Debug, Clone)]
pub struct Rewritten {
    pub changes: ChangeSet,
    pub text: String,
    pub tree: SymbolTree,
    /// Names of the symbols whose own bytes changed, were added or removed.
    pub touched: Vec<String>,
    pub losses: Vec<Loss>,
}

pub fn rewrite(tree: &SymbolTree, rewrites: &[Rewrite]) -> Result<Rewritten, RewriteError> {
    todo!()
}
