//! The request that goes on with a cut answer.

use super::join::{LineBreaks, partial_line, quote};
use starling_core::prompts::{ContinueCallPrompt, ContinueTextPrompt, Prompt};
use starling_core::{ChatRequest, Message, ToolCall};

/// Asks for the rest of a text.
pub(super) fn for_text(request: &ChatRequest, text: &str) -> ChatRequest {
    let ask = ContinueTextPrompt {
        quote: quote(text, LineBreaks::Real).to_owned(),
        whole_line: partial_line(text, LineBreaks::Real).is_empty(),
    };
    after(request, text.to_owned(), &ask)
}

/// Asks for the rest of a call's arguments. The call is shown as text: servers take no half call.
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

/// The same conversation with one exchange more. Tools stay as they are: the provider's cache of the
/// prefix depends on them.
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
