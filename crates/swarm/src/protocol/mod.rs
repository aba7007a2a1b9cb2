//! The actions of agents, and the two formats in which models request them: native tool calls and a
//! plain text protocol. The model's capability decides which format is used.

mod action;
mod plain;
mod registry;
pub(crate) mod verdict;

pub use action::{
    Action, AddSymbol, FinishWork, Hunk, Intent, Name, OutlineFile, Pick, Propose, Read,
    RequestChange, RunTests, Search, ToolSet, TriedWorld, TryOut,
};
pub use registry::described;
pub(crate) use registry::{Executors, RunToolbox, toolbox};

use starling_core::{ChatReply, Finish, Message, ToolCalling};
use starling_dialogue::Call;
use starling_workspace::UnusualPaths;

/// One action that a reply requests. If the request is invalid, its `action` is an `Err` with the
/// reason, as a message to the model.
pub type Asked = Call<Action>;

/// Parses the actions that a reply requests. Tool calls are accepted in both protocols; text counts
/// as actions only in the text protocol. The known `paths` are recognized in text even if they
/// contain spaces or other unusual characters.
pub fn parse(
    calling: ToolCalling,
    role: ToolSet,
    reply: &ChatReply,
    paths: &UnusualPaths,
) -> Vec<Asked> {
    calls(
        &toolbox(role, &Executors::default()),
        calling,
        role,
        reply,
        paths,
    )
}

/// Parses the actions of a reply for the tools of a role.
pub(crate) fn calls(
    tools: &RunToolbox,
    calling: ToolCalling,
    role: ToolSet,
    reply: &ChatReply,
    paths: &UnusualPaths,
) -> Vec<Asked> {
    tools.calls(calling, reply, |text| {
        plain::parse(tools, text, role, paths)
    })
}

/// Converts a reply to a message of the conversation.
pub fn assistant_message(reply: &ChatReply) -> Message {
    Message::Assistant {
        text: reply.text.clone(),
        tool_calls: reply.tool_calls.clone(),
    }
}

/// Returns a message to the model about a reply that requests no action.
pub fn nothing_asked(calling: ToolCalling, toolset: ToolSet, reply: &ChatReply) -> String {
    let what = match (reply.finish, reply.text.trim().is_empty()) {
        (Finish::Filtered, _) => "The answer was withheld by the provider's filter.",
        (Finish::Length, _) => "The answer was cut by the output limit.",
        (_, true) => "The answer was empty.",
        (_, false) => "The answer asks for nothing.",
    };
    let how = match (calling, toolset) {
        (ToolCalling::Native, ToolSet::Scout) => {
            "Call `wake`, a reading tool, or `finish` when there is nothing to do."
        }
        (ToolCalling::Native, ToolSet::Owner | ToolSet::Solo) => {
            "Call `propose` with the change, a reading tool, or `finish` when there is nothing to do."
        }
        (ToolCalling::Native | ToolCalling::Text, ToolSet::Answerer) => {
            "Reply with the answer as plain text."
        }
        (ToolCalling::Text, ToolSet::Scout) => "Reply with symbol paths from the list, one a line.",
        (ToolCalling::Text, ToolSet::Owner | ToolSet::Solo) => {
            "Reply with the whole changed symbol in one fenced code block, or with `@finish` and the reason."
        }
    };
    format!("{what} {how}")
}

/// Conversations with models.
pub(crate) mod conversation {
    pub(crate) use starling_dialogue::{Conversation, LONGEST_ANSWER};
}
#[cfg(test)]
mod tests;
