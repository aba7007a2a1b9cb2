//! A tool call whose arguments were cut off by the output limit.

use serde_json::{Deserializer, Value};

use super::join::{LineBreaks, without_repeat};
use starling_core::ToolCall;

/// The part of a call that was received so far.
#[derive(Debug)]
pub(super) struct CutCall {
    call: ToolCall,
}

/// Whether a text is complete JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonState {
    /// A complete JSON object that ends at this byte offset.
    Whole(usize),
    /// The start of a JSON object that may still be completed.
    Open,
    Broken,
}

fn state(text: &str) -> JsonState {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(Value::Object(_))) => JsonState::Whole(values.byte_offset()),
        Some(Ok(_)) => JsonState::Broken,
        Some(Err(error)) if error.is_eof() => JsonState::Open,
        Some(Err(_)) => JsonState::Broken,
        None => JsonState::Open,
    }
}

impl CutCall {
    /// Removes and returns the last call if its arguments are incomplete.
    pub fn take(calls: &mut Vec<ToolCall>) -> Option<Self> {
        let call = calls.pop_if(|call| !matches!(state(&call.arguments), JsonState::Whole(_)))?;
        Some(CutCall { call })
    }

    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    pub fn is_whole(&self) -> bool {
        matches!(state(&self.call.arguments), JsonState::Whole(_))
    }

    /// Adds a continuation: either the rest of the arguments as text, or the whole call again.
    /// Returns whether the arguments grew.
    pub fn push(&mut self, text: String, calls: Vec<ToolCall>) -> bool {
        let before = self.call.arguments.len();
        let again = calls.into_iter().find(|call| call.name == self.call.name);
        if let Some(again) = again {
            let is_better = matches!(state(&again.arguments), JsonState::Whole(_))
                || again.arguments.len() > before;
            if is_better {
                self.call.arguments = again.arguments;
            }
            return is_better;
        }
        self.push_text(without_fence(&text));
        self.call.arguments.len() > before || self.is_whole()
    }

    fn push_text(&mut self, piece: &str) {
        let arguments = &mut self.call.arguments;
        let from_start = piece.trim_start();
        if arguments.trim().is_empty() || from_start.starts_with(arguments.as_str()) {
            *arguments = from_start.to_owned();
        } else if let Some(rest) = without_repeat(arguments, piece, LineBreaks::Escaped) {
            arguments.push_str(rest);
        } else {
            let joined = format!("{arguments}{piece}");
            let is_written_anew = state(&joined) == JsonState::Broken
                && matches!(state(from_start), JsonState::Whole(_));
            *arguments = if is_written_anew {
                from_start.to_owned()
            } else {
                joined
            };
        }
        // A code fence or a remark after the object is not part of the arguments.
        if let JsonState::Whole(end) = state(arguments) {
            arguments.truncate(end);
        }
    }

    pub fn into_call(self) -> ToolCall {
        self.call
    }
}

/// Removes an opening code fence: the rest of a JSON text cannot begin with a fence and a raw line
/// break.
fn without_fence(text: &str) -> &str {
    let opened = text.trim_start().strip_prefix("```");
    match opened.and_then(|rest| rest.split_once('\n')) {
        Some((language, rest)) if language.chars().all(char::is_alphanumeric) => rest,
        Some(_) | None => text,
    }
}
