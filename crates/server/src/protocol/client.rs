//! Commands that a client can implement itself because they need a text from the user or a view.

/// A command that the client implements and the server offers in lenses and actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientCommand {
    Change,
    Ask,
    Reject,
    Steer,
    Diff,
    Why,
}

impl ClientCommand {
    pub const ALL: [ClientCommand; 6] = [
        ClientCommand::Change,
        ClientCommand::Ask,
        ClientCommand::Reject,
        ClientCommand::Steer,
        ClientCommand::Diff,
        ClientCommand::Why,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ClientCommand::Change => "starling.client.change",
            ClientCommand::Ask => "starling.client.ask",
            ClientCommand::Reject => "starling.client.reject",
            ClientCommand::Steer => "starling.client.steer",
            ClientCommand::Diff => "starling.client.diff",
            ClientCommand::Why => "starling.client.why",
        }
    }
}
