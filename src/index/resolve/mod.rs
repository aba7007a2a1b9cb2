//! Definitions and references over files: imports are followed, and what expressions are is worked
//! out as far as classes, annotations and plain assignments tell.

mod access;
mod annotation;
mod class;
mod definition;
mod eval;
mod judge;
mod memory;
mod module;
mod references;
mod resolver;
mod scope;
mod search;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod value;

pub use definition::DefinedAt;
pub use memory::Memory;
pub use references::{Certainty, References, Use};
pub use resolver::Resolver;
pub use source::{FileId, Source};
