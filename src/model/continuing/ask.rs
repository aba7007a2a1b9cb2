//! The request that goes on with a cut answer.

use super::join::{LineBreaks, partial_line, quote};
use crate::ports::{ChatRequest, Message, ToolCall};

/// Asks for the rest of a text.
pub(super) fn for_text(request: &ChatRequest, text: &str) -> ChatRequest {
    let place = match partial_line(text, LineBreaks::Real) {
        "" => "The last line is whole, with its line break. Go on with the next line.",
        _ => {
            "The last line is not whole. Go on with exactly the next character, also when that is in the \
             middle of a word."
        }
    };
    let ask = include_str!("continue_text.md")
        .trim_end()
        .replace("{place}", place)
        .replace("{quote}", quote(text, LineBreaks::Real));
    after(request, text.to_owned(), ask)
}

/// Asks for the rest of a call's arguments. The call is shown as text: servers take no half call.
pub(super) fn for_call(request: &ChatRequest, text: &str, call: &ToolCall) -> ChatRequest {
    let gap = if text.is_empty() { "" } else { "\n\n" };
    let shown = format!(
        "{text}{gap}Call of the tool {} with the arguments:\n{}",
        call.name, call.arguments
    );
    let ask = include_str!("continue_call.md")
        .trim_end()
        .replace("{name}", &call.name)
        .replace("{quote}", quote(&call.arguments, LineBreaks::Escaped));
    after(request, shown, ask)
}

/// The same conversation with one exchange more. Tools stay as they are: the provider's cache of the
/// prefix depends on them.
fn after(request: &ChatRequest, answer: String, ask: String) -> ChatRequest {
    let mut next = request.clone();
    next.messages.push(Message::Assistant {
        text: answer,
        tool_calls: Vec::new(),
    });
    next.messages.push(Message::User { text: ask });
    next
}
