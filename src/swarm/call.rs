//! One model call of a run: reserved in the ledger, watched, recorded.

use std::sync::Arc;

use tokio::time::Instant;

use super::event::{Event, Party};
use super::hub::Hub;
use super::ledger::{Exhausted, Outside};
use crate::ports::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Exchange, Message, ModelError, ModelNotice, Role,
    Tokens, ToolSpec,
};

/// The longest answer asked for in one request; longer ones are continued.
const LONGEST_ANSWER: Tokens = Tokens(8192);

/// A conversation with a model.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    /// The same in every run of the same task, so that a recording finds it.
    pub name: String,
    pub role: Role,
    pub messages: Vec<Message>,
    /// 0 is greedy.
    pub temperature: f32,
    ordinal: u32,
    recorded: usize,
}

/// Why a call gave no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum CallFailed {
    #[error(transparent)]
    Ledger(#[from] Exhausted),
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl Conversation {
    pub fn new(name: String, role: Role, system: String) -> Self {
        let messages = vec![Message::System { text: system }];
        Conversation {
            name,
            role,
            messages,
            temperature: 0.0,
            ordinal: 0,
            recorded: 0,
        }
    }

    pub fn user(&mut self, text: impl Into<String>) {
        self.messages.push(Message::User { text: text.into() });
    }

    /// Whether a model has said anything in it.
    pub fn is_answered(&self) -> bool {
        let says = |message: &Message| matches!(message, Message::Assistant { .. });
        self.messages.iter().any(says)
    }

    /// Back to the system message.
    pub fn forget(&mut self) {
        self.messages.truncate(1);
        self.recorded = self.recorded.min(self.messages.len());
    }

    /// Back to the first question, as if nothing had been answered.
    pub fn start_over(&mut self) {
        self.messages.truncate(2);
        self.recorded = self.recorded.min(self.messages.len());
    }

    fn estimate(&self, tools: &[ToolSpec]) -> Tokens {
        let call = |message: &Message| match message {
            Message::Assistant { tool_calls, .. } => tool_calls
                .iter()
                .map(|call| Tokens::estimate(&call.arguments))
                .sum::<Tokens>(),
            Message::System { .. } | Message::User { .. } | Message::Tool { .. } => Tokens(0),
        };
        let messages: Tokens = self
            .messages
            .iter()
            .map(|message| Tokens::estimate(message.text()) + call(message))
            .sum();
        let tools: Tokens = tools
            .iter()
            .map(|tool| Tokens::estimate(&tool.parameters.to_string()))
            .sum();
        messages + tools
    }
}

impl Hub {
    /// Asks a model for the next message of a conversation. The reply is not yet part of it.
    ///
    /// # Errors
    /// [`CallFailed`]; the user has been told by an event.
    pub async fn call(
        &self,
        who: &Party,
        model: &Arc<dyn ChatModel>,
        conversation: &mut Conversation,
        tools: Vec<ToolSpec>,
    ) -> Result<ChatReply, CallFailed> {
        let profile = model.profile();
        let max_output = profile.max_output.min(LONGEST_ANSWER);
        let reservation = match self
            .ledger
            .reserve_call(conversation.estimate(&tools) + max_output)
        {
            Ok(reservation) => reservation,
            Err(exhausted) => {
                self.state().exhausted.get_or_insert(exhausted.what.clone());
                return Err(exhausted.into());
            }
        };
        let role = conversation.role;
        let ordinal = conversation.ordinal;
        self.event(Event::TurnStarted {
            agent: who.clone(),
            role,
            conversation: conversation.name.clone(),
            turn: ordinal + 1,
        });
        let request = ChatRequest {
            conversation: conversation.name.clone(),
            messages: conversation.messages.clone(),
            tools,
            max_output,
            temperature: conversation.temperature,
            seed: Some(u64::from(ordinal)),
            stop: Vec::new(),
        };
        let began = Instant::now();
        let watch = Watch { hub: self, who };
        let result = model.chat(&request, &watch).await;
        self.ledger.was_outside(Outside::Model, began.elapsed());
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &result {
            Ok(reply) => {
                reservation.settle(reply);
                self.event(Event::TurnFinished {
                    agent: who.clone(),
                    role,
                    model: reply.model.clone(),
                    usage: reply.usage,
                    cost: reply.cost,
                    calls: reply.calls,
                    finish: reply.finish,
                    millis,
                });
            }
            Err(error) => {
                reservation.settle_failed();
                self.event(Event::TurnFailed {
                    agent: who.clone(),
                    role,
                    error: error.to_string(),
                });
            }
        }
        self.log.exchange(Exchange {
            conversation: request.conversation,
            role,
            ordinal,
            prompt: request
                .messages
                .iter()
                .skip(conversation.recorded)
                .cloned()
                .collect(),
            tools: request.tools.into_iter().map(|tool| tool.name).collect(),
            capability: Some((profile.tool_calling, profile.context_window)),
            reply: result.clone(),
            millis,
        });
        conversation.recorded = conversation.messages.len();
        conversation.ordinal += 1;
        Ok(result?)
    }
}

/// Turns what happens during a call into events.
struct Watch<'a> {
    hub: &'a Hub,
    who: &'a Party,
}

impl ChatWatch for Watch<'_> {
    fn delta(&self, _text: &str) {}

    fn notice(&self, notice: ModelNotice) {
        self.hub.event(Event::Notice {
            agent: self.who.clone(),
            notice,
        });
    }

    fn may_spend(&self, calls: u32, tokens: Tokens) -> bool {
        self.hub.ledger.has_room(calls, tokens)
    }
}
