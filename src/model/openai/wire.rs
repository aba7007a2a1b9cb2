//! A request as the server reads it.

use serde_json::{Map, Value, json};

use super::OpenAiOptions;
use crate::ports::{ChatRequest, Message, ToolCall, ToolCalling};

/// The body of the request. Fields that the user left out on purpose are not in it.
pub(super) fn body(options: &OpenAiOptions, request: &ChatRequest) -> Value {
    let profile = &options.profile;
    let messages: Vec<Value> = request
        .messages
        .iter()
        .map(|message| as_json(message, profile.tool_calling))
        .collect();
    let mut body = Map::new();
    let mut put = |field: &str, value: Value| {
        if !options.omit.iter().any(|omitted| omitted == field) {
            body.insert(field.to_owned(), value);
        }
    };
    put("model", json!(options.model));
    put("messages", Value::Array(messages));
    put("stream", json!(true));
    put("stream_options", json!({"include_usage": true}));
    put(
        options.output_limit.field(),
        json!(request.max_output.min(profile.max_output).0),
    );
    put(
        "temperature",
        json!(options.temperature.unwrap_or(request.temperature)),
    );
    if let Some(seed) = request.seed {
        // Servers read a signed number.
        put("seed", json!(seed & i64::MAX as u64));
    }
    if !request.stop.is_empty() {
        put("stop", json!(request.stop));
    }
    match profile.tool_calling {
        ToolCalling::Native if !request.tools.is_empty() => put("tools", tools(request)),
        ToolCalling::Native | ToolCalling::Text => {}
    }
    Value::Object(body)
}

fn tools(request: &ChatRequest) -> Value {
    request
        .tools
        .iter()
        .map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            }})
        })
        .collect()
}

fn as_json(message: &Message, tools: ToolCalling) -> Value {
    match (message, tools) {
        (Message::System { text }, _) => json!({"role": "system", "content": text}),
        (Message::User { text }, _) => json!({"role": "user", "content": text}),
        (Message::Assistant { text, tool_calls }, ToolCalling::Native)
            if !tool_calls.is_empty() =>
        {
            // Some servers refuse an empty text beside tool calls, all accept its absence.
            let content = (!text.is_empty()).then_some(text);
            let calls: Vec<Value> = tool_calls.iter().map(call).collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        (Message::Assistant { text, .. }, _) => json!({"role": "assistant", "content": text}),
        (Message::Tool { call_id, text }, ToolCalling::Native) => {
            json!({"role": "tool", "tool_call_id": call_id, "content": text})
        }
        // A server that knows no tools knows no tool's role either.
        (Message::Tool { text, .. }, ToolCalling::Text) => json!({"role": "user", "content": text}),
    }
}

fn call(call: &ToolCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {
        "name": call.name,
        "arguments": call.arguments,
    }})
}
