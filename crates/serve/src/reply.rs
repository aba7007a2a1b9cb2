//! Answers in OpenAI's format, whole or as chunks of a stream.

use serde_json::{Value, json};

use crate::parameters::Settings;
use crate::server::{Server, now};
use crate::tool_calls::ToolCallReader;
use starling_core::{CallEvent, ChatReply, ChatRequest, Finish, ToolCall, Usage};

/// The kind of an answer: a chat message or a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Chat,
    Completion,
}

/// Builds the response for one answer.
pub struct ReplyWriter {
    form: Form,
    id: String,
    model: String,
    created: u64,
    include_usage: bool,
    calls: ToolCallReader,
    /// The text of the answer so far, without the tool calls.
    text: String,
}

impl ReplyWriter {
    pub fn new(server: &Server, form: Form, request: &ChatRequest, settings: &Settings) -> Self {
        let prefix = match form {
            Form::Chat => "chatcmpl",
            Form::Completion => "cmpl",
        };
        let names = request.tools.iter().map(|tool| tool.name.clone()).collect();
        Self {
            form,
            id: server.answer_id(prefix),
            model: server.name().to_owned(),
            created: now(),
            include_usage: settings.include_usage,
            calls: ToolCallReader::new(names),
            text: String::new(),
        }
    }

    /// Adds a piece of the answer. Returns the text that can already be sent.
    pub fn push(&mut self, piece: &str) -> String {
        let fresh = self.calls.push(piece).to_owned();
        self.text.push_str(&fresh);
        fresh
    }

    /// Returns the complete answer as one JSON body.
    pub fn whole(mut self, reply: &ChatReply) -> Value {
        let (rest, calls) =
            std::mem::replace(&mut self.calls, ToolCallReader::new(Vec::new())).finish();
        self.text.push_str(&rest);
        let finish = finish(reply.finish, &calls);
        let choice = match self.form {
            Form::Completion => json!({
                "index": 0, "text": self.text, "logprobs": null, "finish_reason": finish,
            }),
            Form::Chat => {
                let content =
                    (calls.is_empty() || !self.text.is_empty()).then_some(self.text.as_str());
                let mut message =
                    json!({ "role": "assistant", "content": content, "refusal": null });
                if !calls.is_empty() {
                    message["tool_calls"] = calls.iter().map(|call| self.call(call)).collect();
                }
                json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish })
            }
        };
        let object = match self.form {
            Form::Chat => "chat.completion",
            Form::Completion => "text_completion",
        };
        let mut body = self.frame(object);
        body["choices"] = json!([choice]);
        body["usage"] = usage(reply.usage);
        body
    }

    /// Returns the chunk that begins the stream. Only chats have such a chunk, with the role.
    pub fn first_chunk(&self) -> Option<Value> {
        (self.form == Form::Chat)
            .then(|| self.chunk(json!({ "role": "assistant", "content": "" }), None))
    }

    /// Returns the chunk for an event of the model call, if the client receives that event.
    pub fn event_chunk(&mut self, event: &CallEvent) -> Option<Value> {
        match event {
            CallEvent::Delta(piece) => {
                let fresh = self.push(piece);
                (!fresh.is_empty()).then(|| self.text_chunk(&fresh))
            }
            CallEvent::Started | CallEvent::Notice(_) | CallEvent::Done(_) => None,
        }
    }

    /// Returns the chunks that end the stream.
    pub fn last_chunks(mut self, reply: &ChatReply) -> Vec<Value> {
        let (rest, calls) =
            std::mem::replace(&mut self.calls, ToolCallReader::new(Vec::new())).finish();
        let mut chunks = Vec::new();
        if !rest.is_empty() {
            chunks.push(self.text_chunk(&rest));
        }
        for (index, call) in calls.iter().enumerate() {
            let mut call = self.call(call);
            call["index"] = index.into();
            chunks.push(self.chunk(json!({ "tool_calls": [call] }), None));
        }
        let end = match self.form {
            Form::Chat => json!({}),
            Form::Completion => json!(""),
        };
        chunks.push(self.chunk(end, Some(finish(reply.finish, &calls))));
        if self.include_usage {
            let mut last = self.frame(self.chunk_object());
            last["choices"] = json!([]);
            last["usage"] = usage(reply.usage);
            chunks.push(last);
        }
        chunks
    }

    fn text_chunk(&self, text: &str) -> Value {
        match self.form {
            Form::Chat => self.chunk(json!({ "content": text }), None),
            Form::Completion => self.chunk(json!(text), None),
        }
    }

    fn chunk(&self, delta: Value, finish: Option<&str>) -> Value {
        let content = match self.form {
            Form::Chat => "delta",
            Form::Completion => "text",
        };
        let mut chunk = self.frame(self.chunk_object());
        chunk["choices"] = json!([
            { "index": 0, content: delta, "logprobs": null, "finish_reason": finish }
        ]);
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn chunk_object(&self) -> &'static str {
        match self.form {
            Form::Chat => "chat.completion.chunk",
            Form::Completion => "text_completion",
        }
    }

    fn frame(&self, object: &str) -> Value {
        json!({ "id": self.id, "object": object, "created": self.created, "model": self.model })
    }

    /// Returns a tool call with a unique id.
    fn call(&self, call: &ToolCall) -> Value {
        json!({
            "id": format!("{}_{}", call.id, self.id),
            "type": "function",
            "function": { "name": call.name, "arguments": call.arguments },
        })
    }
}

fn finish(finish: Finish, calls: &[ToolCall]) -> &'static str {
    match finish {
        _ if !calls.is_empty() => "tool_calls",
        Finish::Stop | Finish::ToolCalls => "stop",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt.0,
        "completion_tokens": usage.output.0,
        "total_tokens": usage.prompt.0 + usage.output.0,
        "prompt_tokens_details": { "cached_tokens": usage.cached.0 },
    })
}
