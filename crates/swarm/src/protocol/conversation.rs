//! A conversation with a model.

use starling_core::{ChatRequest, Message, Role, Tokens, ToolSpec};

/// Maximum length of a reply to one request. Longer replies are continued in further requests.
pub(crate) const LONGEST_ANSWER: Tokens = Tokens(8192);

/// A conversation with a model.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    /// Name of the conversation. It is the same in every run of the same task, so that a recording
    /// can be matched.
    pub name: String,
    pub role: Role,
    pub messages: Vec<Message>,
    /// Sampling temperature; 0 means greedy.
    pub temperature: f32,
    /// Prefix of every reply.
    pub beginning: String,
    /// Text after a reply that fills a hole; empty for other conversations.
    pub following: String,
    /// Stop sequences.
    pub stop: Vec<String>,
    /// Maximum length of a reply.
    pub longest: Tokens,
    pub(crate) ordinal: u32,
    pub(crate) recorded: usize,
}

impl Conversation {
    pub fn new(name: String, role: Role, system: String) -> Self {
        let messages = vec![Message::System { text: system }];
        Conversation {
            name,
            role,
            messages,
            temperature: 0.0,
            beginning: String::new(),
            following: String::new(),
            stop: Vec::new(),
            longest: LONGEST_ANSWER,
            ordinal: 0,
            recorded: 0,
        }
    }

    pub fn user(&mut self, text: impl Into<String>) {
        self.messages.push(Message::User { text: text.into() });
    }

    /// Replaces the system message by that of another conversation.
    pub fn instruct(&mut self, other: Conversation) {
        if let (Some(mine), Some(system)) =
            (self.messages.first_mut(), other.messages.into_iter().next())
        {
            *mine = system;
        }
    }

    /// Replaces the system message.
    pub fn say_first(&mut self, system: String) {
        if let Some(first) = self.messages.first_mut() {
            *first = Message::System { text: system };
        }
    }

    /// Returns whether the conversation contains a reply.
    pub fn is_answered(&self) -> bool {
        let says = |message: &Message| matches!(message, Message::Assistant { .. });
        self.messages.iter().any(says)
    }

    /// Removes all messages except the system message, and resets the temperature to greedy.
    pub fn forget(&mut self) {
        self.messages.truncate(1);
        self.temperature = 0.0;
        self.beginning.clear();
        self.recorded = self.recorded.min(self.messages.len());
    }

    /// Builds the next request of the conversation.
    pub(crate) fn request(&self, tools: Vec<ToolSpec>, max_output: Tokens) -> ChatRequest {
        ChatRequest {
            conversation: self.name.clone(),
            messages: self.messages.clone(),
            tools,
            max_output,
            temperature: self.temperature,
            seed: Some(u64::from(self.ordinal)),
            beginning: self.beginning.clone(),
            following: self.following.clone(),
            stop: self.stop.clone(),
        }
    }
}
