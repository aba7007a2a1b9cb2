//! Resolves definitions and references across files. The resolver follows imports and infers the
//! values of expressions from classes, annotations and simple assignments.

mod access;
mod annotation;
mod attribute;
mod calls;
mod class;
mod common_names;
mod dangling;
mod definition;
mod eval;
mod fixtures;
mod judge;
mod kin;
mod module;
mod module_imports;
mod outside;
mod protocols;
mod reach;
mod references;
mod resolver;
mod scope;
mod search;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod unheld;
mod value;

pub(super) use attribute::AttributeHolders;
pub(super) use calls::{Callee, SureCall};
pub use common_names::is_common;
pub use dangling::{Dangling, Holder};
pub(super) use definition::DefinedAt;
pub use kin::Heritage;
pub(super) use module::is_standard;
pub use module_imports::{ImportForm, ModuleImport};
pub(super) use reach::IndirectAccess;
pub use references::Certainty;
pub(super) use references::{References, Use};
pub(super) use resolver::Resolver;
pub(super) use source::{FileId, Source};
pub(super) use unheld::Body;
