//! The actors of a run: agents, the user, and other parts of the program that send messages.

use serde::{Deserialize, Serialize};

use starling_syntax::SymbolPath;

/// The sender or receiver of a message: an agent, identified by its symbol, or another part of a
/// run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorId {
    User,
    Scout,
    Proxy,
    /// The program itself, for example when it notifies an agent of a changed contract or of
    /// failing tests.
    Starling,
    Agent(SymbolPath),
    /// The one agent of `--driver single`, which owns no symbol.
    Solo,
}

impl ActorId {
    /// Returns the symbol that an agent owns.
    pub fn symbol(&self) -> Option<&SymbolPath> {
        match self {
            ActorId::Agent(symbol) => Some(symbol),
            ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling | ActorId::Solo => {
                None
            }
        }
    }
}

pub(crate) fn actor_name(actor: &ActorId) -> String {
    match actor {
        ActorId::User => "the user".to_owned(),
        ActorId::Scout => "the scout".to_owned(),
        ActorId::Proxy => "the proxy user".to_owned(),
        ActorId::Starling => "Starling".to_owned(),
        ActorId::Solo => "the agent".to_owned(),
        ActorId::Agent(symbol) => symbol.to_string(),
    }
}
