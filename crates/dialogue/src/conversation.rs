//! A conversation with a model. Messages are only appended, so that the prompt caches of model
//! providers hit, until the conversation nears the model's context window.

use starling_core::{ChatReply, ChatRequest, Message, ModelProfile, Role, Tokens, ToolSpec};

use crate::call::Call;
use crate::tool::ToolCost;

/// Maximum length of a reply to one request. Longer replies are continued in further requests.
pub const LONGEST_ANSWER: Tokens = Tokens(8192);

/// A conversation with a model.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// Name of the conversation. It is the same in every run of the same task, so that a recording
    /// can be matched.
    pub name: String,
    pub role: Role,
    pub messages: Vec<Message>,
    /// Sampling temperature; 0 means greedy.
    pub temperature: f32,
    /// Prefix of every reply.
    pub beginning: String,
    /// Text that follows the reply, if the model fills a gap in a text; empty for other
    /// conversations.
    pub following: String,
    /// Stop sequences.
    pub stop: Vec<String>,
    /// Maximum length of a reply.
    pub longest: Tokens,
    /// Number of replies so far.
    pub ordinal: u32,
    /// Number of messages that are already recorded in the trajectory.
    pub recorded: usize,
    /// The messages that contain tool results.
    pub(crate) results: Vec<ToolResults>,
    /// The message that replaces the turns that were left out.
    pub(crate) summary: Option<TurnsSummary>,
}

/// A message that contains tool results.
#[derive(Debug, Clone)]
pub(crate) struct ToolResults {
    /// Index of the message.
    pub at: usize,
    /// The calls, with the first line of each result.
    pub calls: Vec<(CallLabel, String)>,
    pub cost: ToolCost,
    pub is_left_out: bool,
}

/// The tool and the argument of a call.
pub(crate) type CallLabel = (String, String);

/// The message that replaces the turns that were left out, with its index and lines.
#[derive(Debug, Clone)]
pub(crate) struct TurnsSummary {
    pub at: usize,
    pub lines: Vec<String>,
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
            results: Vec::new(),
            summary: None,
        }
    }

    pub fn user(&mut self, text: impl Into<String>) {
        self.messages.push(Message::User { text: text.into() });
    }

    /// Adds a reply of the model.
    pub fn said(&mut self, reply: &ChatReply) {
        self.messages.push(Message::Assistant {
            text: reply.text.clone(),
            tool_calls: reply.tool_calls.clone(),
        });
    }

    /// Adds the results of a turn: one message for each native call, and one user message for all
    /// calls of the text protocol.
    pub fn results<A>(&mut self, results: Vec<(Call<A>, String)>) {
        let (mut plain, mut texts) = (Vec::new(), Vec::new());
        let mut cost = ToolCost::Lookup;
        for (call, text) in results {
            let shown = (call.label.clone(), first_line(&text));
            match call.call_id {
                Some(call_id) => {
                    self.results.push(ToolResults {
                        at: self.messages.len(),
                        calls: vec![shown],
                        cost: call.cost,
                        is_left_out: false,
                    });
                    self.messages.push(Message::Tool { call_id, text });
                }
                None => {
                    texts.push(format!("{} {}\n{text}", call.label.0, call.label.1));
                    plain.push(shown);
                    cost = cost.max(call.cost);
                }
            }
        }
        if !plain.is_empty() {
            self.results.push(ToolResults {
                at: self.messages.len(),
                calls: plain,
                cost,
                is_left_out: false,
            });
            self.user(texts.join("\n\n"));
        }
    }

    /// Replaces the system message by the system message of another conversation.
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
        self.results.clear();
        self.summary = None;
        self.temperature = 0.0;
        self.beginning.clear();
        self.recorded = self.recorded.min(self.messages.len());
    }

    /// Returns the maximum length of a reply to request from a model.
    pub fn longest_answer(&self, profile: &ModelProfile) -> Tokens {
        profile.max_output.min(self.longest)
    }

    /// Builds the next request of the conversation.
    pub fn request(&self, tools: Vec<ToolSpec>, profile: &ModelProfile) -> ChatRequest {
        ChatRequest {
            conversation: self.name.clone(),
            messages: self.messages.clone(),
            tools,
            max_output: self.longest_answer(profile),
            temperature: self.temperature,
            top_p: None,
            seed: Some(u64::from(self.ordinal)),
            beginning: self.beginning.clone(),
            following: self.following.clone(),
            stop: self.stop.clone(),
            format: starling_core::AnswerFormat::Free,
        }
    }
}

/// Returns the first line of a text, shortened.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(160).collect()
}
