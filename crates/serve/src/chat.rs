//! `/v1/chat/completions`: from a request to a conversation.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::parameters::{Parameters, Settings, check_idle, parse};
use crate::server::Server;
use starling_core::{ChatRequest, Message, ToolCall, ToolSpec};

#[derive(Debug, Deserialize)]
struct Body {
    messages: Vec<WireMessage>,
    tools: Option<Vec<WireTool>>,
    tool_choice: Option<Value>,
    response_format: Option<Value>,
    #[serde(flatten)]
    parameters: Parameters,
}

#[derive(Debug, Deserialize)]
struct WireMessage {
    role: String,
    content: Option<Content>,
    tool_calls: Option<Vec<WireCall>>,
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    r#type: String,
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WireCall {
    id: Option<String>,
    function: WireCalledFunction,
}

#[derive(Debug, Deserialize)]
struct WireCalledFunction {
    name: String,
    arguments: String,
}

#[derive(Debug, Deserialize)]
struct WireTool {
    r#type: String,
    function: Option<WireFunction>,
}

#[derive(Debug, Deserialize)]
struct WireFunction {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

/// Reads a request.
///
/// # Errors
/// The request is invalid, or asks for something that is not supported.
pub fn read(server: &Server, body: Value) -> Result<(ChatRequest, Settings), ApiError> {
    check_idle(&body)?;
    let body: Body = parse(body)?;
    check_format(body.response_format.as_ref())?;
    let settings = body.parameters.settings(server)?;
    if body.messages.is_empty() {
        return Err(ApiError {
            param: Some("messages"),
            ..ApiError::invalid("`messages` is empty: send at least one message")
        });
    }
    let messages = body.messages.into_iter().map(message);
    let messages = messages.collect::<Result<Vec<_>, _>>()?;
    let tools = tools(body.tools.unwrap_or_default(), body.tool_choice.as_ref())?;
    let request = ChatRequest {
        conversation: conversation(&messages),
        messages,
        tools,
        max_output: settings.max_output,
        temperature: settings.temperature,
        top_p: settings.top_p,
        seed: settings.seed,
        beginning: String::new(),
        following: String::new(),
        stop: settings.stop.clone(),
    };
    Ok((request, settings))
}

/// Returns a name that all requests of one conversation share, so that the model finds its cache:
/// they begin with the same messages up to the user's first.
fn conversation(messages: &[Message]) -> String {
    let first = messages
        .iter()
        .position(|message| matches!(message, Message::User { .. }));
    let mut hash = DefaultHasher::new();
    messages[..first.map_or(messages.len(), |first| first + 1)].hash(&mut hash);
    format!("serve {:x}", hash.finish())
}

fn check_format(format: Option<&Value>) -> Result<(), ApiError> {
    match format
        .and_then(|format| format.get("type"))
        .and_then(Value::as_str)
    {
        None | Some("text") => Ok(()),
        Some(kind) => Err(ApiError::unsupported(
            "response_format",
            format!(
                "`response_format` {kind} is not supported, because the answers of this model are not \
                 held to a grammar: use text, and ask for JSON in a message"
            ),
        )),
    }
}

fn message(message: WireMessage) -> Result<Message, ApiError> {
    let text = text(message.content)?;
    match message.role.as_str() {
        "system" | "developer" => Ok(Message::System { text }),
        "user" => Ok(Message::User { text }),
        "assistant" => {
            let calls = message.tool_calls.unwrap_or_default().into_iter();
            let tool_calls = calls.map(|call| ToolCall {
                id: call.id.unwrap_or_default(),
                name: call.function.name,
                arguments: call.function.arguments,
            });
            Ok(Message::Assistant {
                text,
                tool_calls: tool_calls.collect(),
            })
        }
        "tool" => Ok(Message::Tool {
            call_id: message.tool_call_id.unwrap_or_default(),
            text,
        }),
        role => Err(ApiError::unsupported(
            "messages",
            format!("no message can have the role {role:?}: use system, user, assistant or tool"),
        )),
    }
}

fn text(content: Option<Content>) -> Result<String, ApiError> {
    let parts = match content {
        None => return Ok(String::new()),
        Some(Content::Text(text)) => return Ok(text),
        Some(Content::Parts(parts)) => parts,
    };
    let texts = parts
        .into_iter()
        .map(|part| match (part.r#type.as_str(), part.text) {
            ("text", Some(text)) => Ok(text),
            (kind, _) => Err(ApiError::unsupported(
                "messages",
                format!("a message has content of the type {kind:?}: this model reads text only"),
            )),
        });
    texts.collect()
}

fn tools(tools: Vec<WireTool>, choice: Option<&Value>) -> Result<Vec<ToolSpec>, ApiError> {
    match choice {
        None | Some(Value::Null) => {}
        Some(Value::String(choice)) if choice == "auto" => {}
        Some(Value::String(choice)) if choice == "none" => return Ok(Vec::new()),
        Some(other) => {
            let message = format!(
                "`tool_choice` {other} is not supported, because the model cannot be forced to call a \
                 tool: use \"auto\" or \"none\""
            );
            return Err(ApiError::unsupported("tool_choice", message));
        }
    }
    let tools = tools.into_iter().map(|tool| match tool.function {
        Some(function) if tool.r#type == "function" => Ok(ToolSpec {
            name: function.name,
            description: function.description.unwrap_or_default(),
            parameters: function.parameters.unwrap_or_else(|| serde_json::json!({})),
        }),
        _ => Err(ApiError::unsupported(
            "tools",
            format!(
                "tools of the type {:?} are not supported: use functions",
                tool.r#type
            ),
        )),
    });
    tools.collect()
}
