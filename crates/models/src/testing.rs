//! Fixtures that the tests of this crate share.

// Only tests use this module, also those of other crates.
#![allow(clippy::unwrap_used)]

use starling_core::{
    ChatReply, ChatRequest, Dollars, Finish, Message, ModelProfile, Price, Tokens, ToolCalling,
    Usage,
};

pub fn profile(name: &str) -> ModelProfile {
    ModelProfile {
        name: name.to_owned(),
        context_window: Tokens(100_000),
        max_output: Tokens(512),
        tool_calling: ToolCalling::Native,
        replayed: false,
        price: Some(Price::FREE),
    }
}

pub fn request() -> ChatRequest {
    ChatRequest {
        conversation: "agent a.py::f".to_owned(),
        messages: vec![Message::User {
            text: "write it".to_owned(),
        }],
        tools: Vec::new(),
        max_output: Tokens(512),
        temperature: 0.0,
        top_p: None,
        seed: None,
        beginning: String::new(),
        following: String::new(),
        stop: Vec::new(),
        format: starling_core::AnswerFormat::Free,
    }
}

pub fn reply(model: &str, text: &str, finish: Finish) -> ChatReply {
    ChatReply {
        model: model.to_owned(),
        text: text.to_owned(),
        tool_calls: Vec::new(),
        finish,
        usage: Usage {
            prompt: Tokens(10),
            cached: Tokens(4),
            output: Tokens(3),
        },
        cost: Dollars(0.5),
        calls: 1,
    }
}
