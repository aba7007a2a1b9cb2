//! Represents source code as symbols: symbol trees, paths, contracts, outlines and rewrites. This
//! crate works on texts and does not read files.

mod carry;
mod contract;
mod definition;
mod flaw;
mod guard;
mod identifier;
mod invisible;
mod language;
mod lines;
mod literal;
mod outline;
mod path;
mod read;
mod reference;
mod rewrite;
mod span;
mod statements;
mod tree;

pub use carry::{MadeChange, OtherLines, carry, carry_lines};
pub use contract::{Arguments, Contract, Misfit, Parameter, ParameterKind, Receiver};
pub use guard::{Loss, omission_marks};
pub use identifier::{composed, normalized, written_at};
pub use invisible::HiddenCharacter;
pub use language::Language;
pub use literal::{StringLiteral, string_literals};
pub use outline::{outline, signature};
pub use path::{BadSymbolPath, FilePath, SymbolPath};
pub use reference::{Reference, arguments, object_of, references};
pub use rewrite::without_imports;
pub use rewrite::{
    Place, Rewrite, RewriteError, Rewritten, divided, module_imports, rewrite, touched,
};
pub use statements::statements;
pub use tree::{Symbol, SymbolId, SymbolKind, SymbolTree};
