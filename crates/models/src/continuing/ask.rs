//! Builds the request that asks a model to continue an answer that was cut off.

use super::join::{LineBreaks, partial_line, quote};
use starling_core::prompts::{ContinueCallPrompt, ContinueTextPrompt, Prompt};
use starling_core::{ChatRequest, Message, ToolCall};

/// Returns a request for the rest of a text.
pub(super) fn for_text(request: &ChatRequest, text: &str) -> ChatRequest {
    let ask = ContinueTextPrompt {
        quote: quote(text, LineBreaks::Real).to_owned(),
        whole_line: partial_line(text, LineBreaks::Real).is_empty(),
    };
    after(request, text.to_owned(), &ask)
}

/// Returns a request for the rest of a tool call's arguments. The call is quoted as text, because
/// servers reject an incomplete call.
pub(super) fn for_call(request: &ChatRequest, text: &str, call: &ToolCall) -> ChatRequest {
    let gap = if text.is_empty() { "" } else { "\n\n" };
    let shown = format!(
        "{text}{gap}Call of the tool {} with the arguments:\n{}",
        call.name, call.arguments
    );
    let ask = ContinueCallPrompt {
        name: call.name.clone(),
        quote: quote(&call.arguments, LineBreaks::Escaped).to_owned(),
    };
    after(request, shown, &ask)
}

/// Returns the conversation with one more exchange. The tools stay the same, because the provider's
/// prefix cache depends on them.
fn after(request: &ChatRequest, answer: String, ask: &impl Prompt) -> ChatRequest {
    let mut next = request.clone();
    next.messages.push(Message::Assistant {
        text: answer,
        tool_calls: Vec::new(),
    });
    next.messages.push(Message::User {
        text: ask.render().trim_end().to_owned(),
    });
    next
}
