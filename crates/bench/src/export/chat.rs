//! Converts messages and tools to the OpenAI format, which trainers read.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use starling_core::{Message, ToolCall, ToolSpec};
use starling_swarm::described;

/// Converts a conversation. Tool calls are renumbered, because providers choose random ids.
pub fn messages(messages: &[Message]) -> Value {
    let mut calls = Calls::default();
    messages
        .iter()
        .map(|message| calls.message(message))
        .collect()
}

/// Returns tools by their names, with the descriptions that models get.
pub(super) fn tools(names: &[String]) -> Value {
    specs(&described(names))
}

/// Converts tools, with the descriptions that models get.
pub fn specs(specs: &[ToolSpec]) -> Value {
    let function = |spec: &ToolSpec| {
        json!({"type": "function", "function": {
            "name": spec.name, "description": spec.description, "parameters": spec.parameters,
        }})
    };
    specs.iter().map(function).collect()
}

/// Numbers the tool calls of a conversation, whose recorded ids differ between providers.
#[derive(Default)]
struct Calls {
    count: usize,
    /// The new id and the tool of each call, by its recorded id.
    named: BTreeMap<String, (String, String)>,
}

impl Calls {
    fn message(&mut self, message: &Message) -> Value {
        match message {
            Message::System { text } => json!({"role": "system", "content": text}),
            Message::User { text } => json!({"role": "user", "content": text}),
            Message::Assistant { text, tool_calls } if tool_calls.is_empty() => {
                json!({"role": "assistant", "content": text})
            }
            Message::Assistant { text, tool_calls } => {
                let calls: Vec<Value> = tool_calls.iter().map(|call| self.call(call)).collect();
                json!({"role": "assistant", "content": text, "tool_calls": calls})
            }
            Message::Tool { call_id, text } => {
                let known = self.named.get(call_id).cloned();
                let (id, name) = known.unwrap_or_else(|| (call_id.clone(), String::new()));
                json!({"role": "tool", "tool_call_id": id, "name": name, "content": text})
            }
        }
    }

    fn call(&mut self, call: &ToolCall) -> Value {
        let id = format!("call_{}", self.count);
        self.count += 1;
        let named = (id.clone(), call.name.clone());
        self.named.insert(call.id.clone(), named);
        json!({"id": id, "type": "function", "function": {
            "name": call.name, "arguments": call.arguments,
        }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_results_refer_to_their_tool_calls() {
        let call = |name: &str| ToolCall {
            id: "random".into(),
            name: name.into(),
            arguments: "{}".into(),
        };
        let said = |name| Message::Assistant {
            text: String::new(),
            tool_calls: vec![call(name)],
        };
        let result = Message::Tool {
            call_id: "random".into(),
            text: "R".into(),
        };
        let told = messages(&[said("read"), result.clone(), said("search"), result]);
        assert_eq!(told[0]["tool_calls"][0]["id"], "call_0");
        assert_eq!(told[1]["tool_call_id"], "call_0");
        assert_eq!(told[1]["name"], "read");
        assert_eq!(told[3]["tool_call_id"], "call_1");
        assert_eq!(told[3]["name"], "search");
    }

    #[test]
    fn known_tools_are_exported_with_their_parameters_and_unknown_ones_are_not() {
        let told = tools(&["propose".into(), "unknown".into()]);
        assert_eq!(told.as_array().unwrap().len(), 1);
        assert_eq!(told[0]["function"]["name"], "propose");
        assert_eq!(told[0]["function"]["parameters"]["type"], "object");
    }
}
