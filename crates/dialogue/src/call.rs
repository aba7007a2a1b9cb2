//! One tool call of a model's reply.

use std::fmt::Debug;

use crate::tool::ToolCost;

/// Maximum number of characters of a call's argument that are shown.
pub(crate) const SHOWN: usize = 120;

/// Describes an action of a tool call in a few words, for the user.
pub trait ShortDescription {
    fn in_short(&self) -> String;
}

/// One call of a reply. `action` is `Err` with a message for the model if the call is invalid.
#[derive(Debug, Clone, PartialEq)]
pub struct Call<A> {
    /// Id of the native call; `None` in the text protocol.
    pub call_id: Option<String>,
    /// Name of the tool.
    pub tool: String,
    /// Tool and argument as the model wrote them, for the user and for the text protocol.
    pub label: (String, String),
    pub cost: ToolCost,
    pub action: Result<A, String>,
}

impl<A: Debug> Call<A> {
    /// Returns a string that is equal for equal calls.
    pub fn fingerprint(&self) -> String {
        format!("{:?}", (&self.label.0, &self.action))
    }
}
