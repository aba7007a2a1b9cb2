//! The actions of agents, and the two formats in which models request them: native tool calls and a
//! plain text protocol. The model's capability decides which format is used.

mod action;
pub(crate) mod against;
mod native;
mod plain;
pub(crate) mod verdict;

pub use action::{
    Action, AddSymbol, FinishWork, Hunk, Intent, Name, OutlineFile, Pick, Propose, Read,
    RequestChange, RunTests, Search, ToolSet,
};
pub use native::{described, schema};
pub use plain::{first_word, words};

use starling_core::{ChatReply, Finish, Message, ToolCalling, ToolSpec};
use starling_workspace::UnusualPaths;

/// One action that a reply requests. `Err` tells the model why the request is invalid.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Id of the native call; `None` in the text protocol.
    pub call_id: Option<String>,
    /// Tool and argument, as shown to the user.
    pub label: (String, String),
    pub action: Result<Action, String>,
}

impl Asked {
    /// Returns a string that is equal for equal calls.
    pub fn fingerprint(&self) -> String {
        format!("{:?}", (&self.label.0, &self.action))
    }
}

/// Returns the tools of a toolset; empty for the text protocol.
pub fn tools(calling: ToolCalling, toolset: ToolSet) -> Vec<ToolSpec> {
    match calling {
        ToolCalling::Native => native::specs(toolset),
        ToolCalling::Text => Vec::new(),
    }
}

/// Parses the actions of a reply. Tool calls are accepted in both protocols; text counts as actions
/// only in the text protocol. `paths` are recognized in text even if they contain unusual
/// characters.
pub fn parse(
    calling: ToolCalling,
    toolset: ToolSet,
    reply: &ChatReply,
    paths: &UnusualPaths,
) -> Vec<Asked> {
    let mut asked: Vec<Asked> = reply
        .tool_calls
        .iter()
        .map(|call| native::parse(call, toolset))
        .collect();
    let cut = reply.finish == Finish::Length;
    if calling == ToolCalling::Text && asked.is_empty() && !cut {
        asked = plain::parse(&reply.text, toolset, paths);
    }
    asked
}

/// Converts a reply to a message of the conversation.
pub fn assistant_message(reply: &ChatReply) -> Message {
    Message::Assistant {
        text: reply.text.clone(),
        tool_calls: reply.tool_calls.clone(),
    }
}

/// Converts the results of a turn to messages: one for each native call, and one user message for
/// the others.
pub fn result_messages(results: Vec<(Asked, String)>) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut plain = Vec::new();
    for (asked, text) in results {
        match asked.call_id {
            Some(call_id) => messages.push(Message::Tool { call_id, text }),
            None => plain.push(format!("{} {}\n{text}", asked.label.0, asked.label.1)),
        }
    }
    if !plain.is_empty() {
        messages.push(Message::User {
            text: plain.join("\n\n"),
        });
    }
    messages
}

/// Describes what is wrong with a reply that requests no action.
pub fn nothing_asked(calling: ToolCalling, toolset: ToolSet, reply: &ChatReply) -> String {
    let what = match (reply.finish, reply.text.trim().is_empty()) {
        (Finish::Filtered, _) => "The answer was withheld by the provider's filter.",
        (Finish::Length, _) => "The answer was cut by the output limit.",
        (_, true) => "The answer was empty.",
        (_, false) => "The answer asks for nothing.",
    };
    let how = match (calling, toolset) {
        (ToolCalling::Native, ToolSet::Scout) => "Call `wake`, or a reading tool.",
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

pub(crate) mod conversation;
#[cfg(test)]
mod tests;
