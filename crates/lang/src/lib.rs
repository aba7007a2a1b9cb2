//! Language servers: finds them, starts them on demand, and requests facts about exact texts.
//! Results about other texts are rejected.
//!
//! A server runs on the user's own workspace and never writes there. Unsaved texts are sent to it
//! as open documents, and its cache is in a separate directory. [`ServerSupervisor`](keeper) sends one
//! request after another, so that the texts cannot change between their notification and the
//! response.

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
pub use find::{NotUsed, OwnPrograms, ProgramSearch, ServerProgram};
pub use service::{LanguageServers, ServerPool, ServerSelection, version};

/// Returns the names of the servers that need no configuration, by preference.
pub fn known_servers() -> Vec<String> {
    let names = known::KNOWN.iter().map(|known| known.name.to_owned());
    names.collect()
}
