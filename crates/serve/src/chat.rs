//! Converts requests to `/v1/chat/completions` into requests to the model.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::parameters::{Parameters, Settings, check_idle, parse};
use crate::server::Server;
use starling_core::{AnswerFormat, ChatRequest, Message, ToolCall, ToolSpec};

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

/// Parses the body of a request.
///
/// # Errors
/// The request is invalid or uses an unsupported feature.
pub fn read(server: &Server, body: Value) -> Result<(ChatRequest, Settings), ApiError> {
    check_idle(&body)?;
    let body: Body = parse(body)?;
    let settings = body.parameters.settings(server)?;
    if body.messages.is_empty() {
        return Err(ApiError {
            param: Some("messages"),
            ..ApiError::invalid("`messages` is empty: send at least one message")
        });
    }
    let messages = body.messages.into_iter().map(message);
    let messages = messages.collect::<Result<Vec<_>, _>>()?;
    let choice = body.tool_choice.as_ref();
    let tools = tools(body.tools.unwrap_or_default(), choice)?;
    let format = format(&tools, choice, body.response_format.as_ref())?;
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
        format,
    };
    Ok((request, settings))
}

/// Returns a name that all requests of one conversation share, so that the model reuses its cache.
/// The name depends only on the messages up to the first user message.
fn conversation(messages: &[Message]) -> String {
    let first = messages
        .iter()
        .position(|message| matches!(message, Message::User { .. }));
    let mut hash = DefaultHasher::new();
    messages[..first.map_or(messages.len(), |first| first + 1)].hash(&mut hash);
    format!("serve {:x}", hash.finish())
}

/// Returns the format required of the answer.
fn format(
    tools: &[ToolSpec],
    choice: Option<&Value>,
    format: Option<&Value>,
) -> Result<AnswerFormat, ApiError> {
    let kind = format.map(|format| format["type"].as_str().unwrap_or_default());
    let schema = match (kind, format) {
        (None | Some("text"), _) => None,
        (Some("json_object"), _) => Some(json!({"type": "object"})),
        (Some("json_schema"), Some(format)) if format["json_schema"]["schema"].is_object() => {
            Some(format["json_schema"]["schema"].clone())
        }
        (Some(_), _) => {
            return Err(ApiError::unsupported(
                "response_format",
                "`response_format` must be {\"type\": \"text\"}, {\"type\": \"json_object\"} or {\"type\": \
                 \"json_schema\", \"json_schema\": {\"schema\": {…}}}",
            ));
        }
    };
    let is_required = choice.is_some_and(|choice| choice == "required" || choice.is_object());
    match schema {
        Some(_) if is_required => Err(ApiError::unsupported(
            "response_format",
            "an answer cannot be both JSON and tool calls: leave out `response_format` or `tool_choice`",
        )),
        Some(schema) => Ok(AnswerFormat::Json(schema)),
        None if is_required && tools.is_empty() => Err(ApiError::unsupported(
            "tool_choice",
            "`tool_choice` requires a call, but `tools` is empty",
        )),
        None if is_required => Ok(AnswerFormat::ToolCalls),
        None => Ok(AnswerFormat::Free),
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
            format!("the role {role:?} is not supported: use system, user, assistant or tool"),
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
                format!("content of type {kind:?} is not supported: this model reads text only"),
            )),
        });
    texts.collect()
}

/// Returns the tools that the model may call.
fn tools(tools: Vec<WireTool>, choice: Option<&Value>) -> Result<Vec<ToolSpec>, ApiError> {
    let only = match choice {
        None | Some(Value::Null) => None,
        Some(Value::String(choice)) if choice == "auto" || choice == "required" => None,
        Some(Value::String(choice)) if choice == "none" => return Ok(Vec::new()),
        Some(choice) => Some(choice["function"]["name"].as_str().ok_or_else(|| {
            ApiError::unsupported(
                "tool_choice",
                "`tool_choice` must be \"auto\", \"none\", \"required\" or {\"type\": \"function\", \
                 \"function\": {\"name\": …}}",
            )
        })?),
    };
    let tools = tools.into_iter().map(|tool| match tool.function {
        Some(function) if tool.r#type == "function" => Ok(ToolSpec {
            name: function.name,
            description: function.description.unwrap_or_default(),
            parameters: function
                .parameters
                .unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        }),
        _ => Err(ApiError::unsupported(
            "tools",
            format!(
                "tools of the type {:?} are not supported: use functions",
                tool.r#type
            ),
        )),
    });
    let mut tools = tools.collect::<Result<Vec<ToolSpec>, ApiError>>()?;
    if let Some(only) = only {
        tools.retain(|tool| tool.name == only);
        if tools.is_empty() {
            let message = format!("`tool_choice` names {only:?}, which is not in `tools`");
            return Err(ApiError::unsupported("tool_choice", message));
        }
    }
    Ok(tools)
}
