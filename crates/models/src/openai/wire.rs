//! Builds the request body with the types of `async-openai`.

use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls,
    ChatCompletionRequestAssistantMessage, ChatCompletionRequestMessage,
    ChatCompletionRequestSystemMessage, ChatCompletionRequestToolMessage,
    ChatCompletionRequestUserMessage, ChatCompletionStreamOptions, ChatCompletionTool,
    ChatCompletionTools, CreateChatCompletionRequest, FunctionCall, FunctionObject,
    StopConfiguration,
};
use serde_json::{Map, Value};

use super::{OpenAiOptions, OutputLimit};
use starling_core::{ChatRequest, Message, ToolCall, ToolCalling, ToolSpec};

/// Returns the body of a request without the fields that the user omits.
pub(super) fn body(
    options: &OpenAiOptions,
    request: &ChatRequest,
) -> serde_json::Result<Map<String, Value>> {
    let mut body = match serde_json::to_value(typed(options, request))? {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    body.retain(|field, _| !options.omit.iter().any(|omitted| omitted == field));
    Ok(body)
}

fn typed(options: &OpenAiOptions, request: &ChatRequest) -> CreateChatCompletionRequest {
    let profile = &options.profile;
    let calling = profile.tool_calling;
    let most = request.max_output.min(profile.max_output).0;
    let most = Some(u32::try_from(most).unwrap_or(u32::MAX));
    let (max_tokens, max_completion_tokens) = match options.output_limit {
        OutputLimit::MaxTokens => (most, None),
        OutputLimit::MaxCompletionTokens => (None, most),
    };
    let has_tools = calling == ToolCalling::Native && !request.tools.is_empty();
    #[expect(
        deprecated,
        reason = "`max_tokens` and `seed` are what compatible servers read"
    )]
    CreateChatCompletionRequest {
        model: options.model.clone(),
        messages: request
            .messages
            .iter()
            .map(|message| as_sent(message, calling))
            .collect(),
        stream: Some(true),
        stream_options: Some(ChatCompletionStreamOptions {
            include_usage: Some(true),
            include_obfuscation: None,
        }),
        max_tokens,
        max_completion_tokens,
        temperature: Some(options.temperature.unwrap_or(request.temperature)),
        // Servers parse the seed as a signed number.
        seed: request.seed.map(|seed| (seed & i64::MAX as u64) as i64),
        stop: (!request.stop.is_empty())
            .then(|| StopConfiguration::StringArray(request.stop.clone())),
        tools: has_tools.then(|| request.tools.iter().map(tool).collect()),
        ..CreateChatCompletionRequest::default()
    }
}

fn tool(tool: &ToolSpec) -> ChatCompletionTools {
    let function = FunctionObject {
        name: tool.name.clone(),
        description: Some(tool.description.clone()),
        parameters: Some(tool.parameters.clone()),
        strict: None,
    };
    ChatCompletionTools::Function(ChatCompletionTool { function })
}

fn as_sent(message: &Message, calling: ToolCalling) -> ChatCompletionRequestMessage {
    match (message, calling) {
        (Message::System { text }, _) => {
            ChatCompletionRequestMessage::System(ChatCompletionRequestSystemMessage {
                content: text.as_str().into(),
                name: None,
            })
        }
        (Message::User { text }, _) => user(text),
        (Message::Assistant { text, tool_calls }, ToolCalling::Native)
            if !tool_calls.is_empty() =>
        {
            // Some servers reject an empty text next to tool calls; all accept a missing one.
            ChatCompletionRequestMessage::Assistant(ChatCompletionRequestAssistantMessage {
                content: (!text.is_empty()).then(|| text.as_str().into()),
                tool_calls: Some(tool_calls.iter().map(call).collect()),
                ..ChatCompletionRequestAssistantMessage::default()
            })
        }
        (Message::Assistant { text, .. }, _) => {
            ChatCompletionRequestMessage::Assistant(text.as_str().into())
        }
        (Message::Tool { call_id, text }, ToolCalling::Native) => {
            ChatCompletionRequestMessage::Tool(ChatCompletionRequestToolMessage {
                content: text.as_str().into(),
                tool_call_id: call_id.clone(),
            })
        }
        // A server without tool support does not know the tool role either.
        (Message::Tool { text, .. }, ToolCalling::Text) => user(text),
    }
}

fn user(text: &str) -> ChatCompletionRequestMessage {
    ChatCompletionRequestMessage::User(ChatCompletionRequestUserMessage {
        content: text.into(),
        name: None,
    })
}

fn call(call: &ToolCall) -> ChatCompletionMessageToolCalls {
    ChatCompletionMessageToolCalls::Function(ChatCompletionMessageToolCall {
        id: call.id.clone(),
        function: FunctionCall {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        },
    })
}
