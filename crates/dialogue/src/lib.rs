//! Conversations with models: their tools ([`Tool`], [`Toolbox`]), the loop of turns
//! ([`converse`]), and the shortening of a conversation that nears the model's context window.

mod call;
mod compact;
mod conversation;
mod line;
mod schema;
#[cfg(test)]
mod tests;
mod tool;
mod toolbox;
mod turns;

pub use call::{Call, ShortDescription};
pub use conversation::{Conversation, LONGEST_ANSWER};
pub use line::{LineArguments, first_word, words};
pub use schema::schema;
pub use tool::{Execute, Tool, ToolCost};
pub use toolbox::Toolbox;
pub use turns::{ModelFailure, TextReplyOutcome, ToolCallsOutcome, Turns, converse};
