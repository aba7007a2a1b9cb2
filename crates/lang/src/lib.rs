//! Language servers: found, started when they are needed, asked about exact texts, and never believed
//! about others.
//!
//! A server runs on the user's own workspace and never writes there: texts that are not on disk are
//! shown to it as open documents, and what it keeps goes to a cache of its own. [`Keeper`](keeper) asks
//! it one question after another, so that between the showing of a text and the answer nothing changes.

mod answers;
mod convert;
mod documents;
mod find;
mod heard;
mod keeper;
mod known;
mod link;
mod names;
mod process;
mod quickfix;
mod service;
mod session;
#[cfg(test)]
mod tests;

pub use answers::{problems_of, spots_of};
pub use find::{NotUsed, OwnPrograms, Places, Program};
pub use service::{LanguageServers, ServerPool, Wanted, version};

/// The names of the servers that need no configuration, in the order in which they are used.
pub fn known_servers() -> Vec<String> {
    let names = known::KNOWN.iter().map(|known| known.name.to_owned());
    names.collect()
}
