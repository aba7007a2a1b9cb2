//! Finds tool calls in the text of an answer. Local models write each call as a JSON object in
//! `<tool_call>` tags. Small models sometimes omit the tags or write a code block instead.

use serde_json::Value;

use starling_core::ToolCall;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// Splits a streamed answer into text and tool calls.
pub struct ToolCallReader {
    /// The names of the tools in the request. If there are none, the whole answer is text.
    names: Vec<String>,
    text: String,
    /// Number of bytes of `text` that were already returned.
    given: usize,
}

impl ToolCallReader {
    pub fn new(names: Vec<String>) -> Self {
        Self {
            names,
            text: String::new(),
            given: 0,
        }
    }

    /// Adds a piece of the answer. Returns the text that cannot be part of a tool call.
    pub fn push(&mut self, piece: &str) -> &str {
        self.text.push_str(piece);
        let certain = self.certain().max(self.given);
        let from = std::mem::replace(&mut self.given, certain);
        &self.text[from..certain]
    }

    /// Ends the answer. Returns the remaining text and the tool calls.
    pub fn finish(self) -> (String, Vec<ToolCall>) {
        match self.calls() {
            Some(calls) => (String::new(), calls),
            None => (self.text[self.given..].to_owned(), Vec::new()),
        }
    }

    fn certain(&self) -> usize {
        if self.names.is_empty() {
            return self.text.len();
        }
        let start = self.text.trim_start();
        if start.starts_with(['{', '`']) {
            return 0;
        }
        let end = match self.text.find(OPEN) {
            Some(at) => at,
            None => {
                let held = (1..OPEN.len())
                    .rev()
                    .find(|len| self.text.ends_with(&OPEN[..*len]));
                self.text.len() - held.unwrap_or(0)
            }
        };
        // Blank lines before a call are not part of the text.
        self.text[..end].trim_end().len()
    }

    /// Returns the tool calls. Returns `None` if there are no calls, or if a call is invalid.
    fn calls(&self) -> Option<Vec<ToolCall>> {
        if self.names.is_empty() {
            return None;
        }
        let parts: Vec<&str> = match self.text.split_once(OPEN) {
            Some((_, rest)) => rest
                .split(OPEN)
                .map(|part| part.split_once(CLOSE).map_or(part, |(call, _)| call))
                .collect(),
            None => vec![without_fence(&self.text)?],
        };
        let calls = parts.into_iter().enumerate();
        calls
            .map(|(number, part)| self.call(number, part))
            .collect()
    }

    fn call(&self, number: usize, text: &str) -> Option<ToolCall> {
        let value: Value = serde_json::from_str(text.trim()).ok()?;
        let name = value.get("name")?.as_str()?;
        let arguments = match value.get("arguments")? {
            Value::String(text) => text.clone(),
            arguments => arguments.to_string(),
        };
        self.names
            .iter()
            .any(|known| known == name)
            .then(|| ToolCall {
                id: format!("call_{number}"),
                name: name.to_owned(),
                arguments,
            })
    }
}

/// Returns the JSON of an answer that is only a code block or a JSON object.
fn without_fence(text: &str) -> Option<&str> {
    let text = text.trim();
    match text.strip_prefix("```") {
        Some(rest) => rest
            .strip_prefix("json")
            .unwrap_or(rest)
            .strip_suffix("```"),
        None => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a text in pieces. Returns the text of the answer, and the calls as `name(arguments)`.
    fn split(text: &str, width: usize) -> (String, Vec<String>) {
        let mut reader = ToolCallReader::new(vec!["look".into()]);
        let mut streamed = String::new();
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(width) {
            streamed.push_str(reader.push(&piece.iter().collect::<String>()));
        }
        let (rest, calls) = reader.finish();
        let calls = calls
            .iter()
            .map(|call| format!("{}({})", call.name, call.arguments));
        (streamed + &rest, calls.collect())
    }

    #[test]
    fn tool_calls_are_found_in_any_format_and_any_pieces() {
        let call = r#"{"name": "look", "arguments": {"at": 1}}"#;
        for (text, before, count) in [
            (
                format!("I look.\n\n<tool_call>\n{call}\n</tool_call>"),
                "I look.",
                1,
            ),
            (
                format!("<tool_call>{call}</tool_call>\n<tool_call>{call}"),
                "",
                2,
            ),
            (call.to_owned(), "", 1),
            (format!("```json\n{call}\n```\n"), "", 1),
        ] {
            for width in 1..20 {
                let (streamed, calls) = split(&text, width);
                assert_eq!(streamed, before, "{text}");
                assert_eq!(calls, vec![r#"look({"at":1})"#; count], "{text}");
            }
        }
    }

    #[test]
    fn text_without_a_valid_tool_call_is_returned_unchanged() {
        for text in [
            "a < b <tool",
            "plain \n",
            "```python\nprint()\n```",
            r#"{"name": "other", "arguments": {}}"#,
            "<tool_call>broken</tool_call>",
        ] {
            for width in 1..20 {
                assert_eq!(split(text, width), (text.to_owned(), Vec::new()));
            }
        }
    }
}
