//! One model call of a run, with its budget, its watcher and its record in the log.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::budget::{CallBudget, CallFailed, Exhausted, ExternalTime};
use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::protocol::conversation::Conversation;
use crate::state::run_context::RunContext;
use starling_core::{
    ChatModel, ChatReply, ChatWatch, Exchange, ModelError, ModelNotice, Tokens, ToolSpec, WorstCase,
};

impl RunContext {
    /// Calls a model for the next message of a conversation. The reply is not added to the
    /// conversation.
    ///
    /// # Errors
    /// Returns [`CallFailed`]. The failure has been logged as an event.
    pub async fn call(
        &self,
        who: &ActorId,
        model: &Arc<dyn ChatModel>,
        conversation: &mut Conversation,
        tools: Vec<ToolSpec>,
    ) -> Result<ChatReply, CallFailed> {
        self.tries().begin_turn(who);
        let profile = model.profile();
        let mut request = conversation.request(tools, profile);
        let worst = WorstCase::of(&request, profile);
        let budget = match CallBudget::open(&self.budget, worst).await {
            Ok(budget) => budget,
            Err(exhausted) => {
                self.is_exhausted(&exhausted);
                return Err(exhausted.into());
            }
        };
        request.max_output = budget.max_output();
        let role = conversation.role;
        let ordinal = conversation.ordinal;
        self.event(Event::TurnStarted {
            agent: who.clone(),
            role,
            conversation: conversation.name.clone(),
            turn: ordinal + 1,
        });
        let began = Instant::now();
        let result = {
            let watch = Watch {
                run: self,
                who,
                budget: &budget,
            };
            let _work = self.budget.work();
            model.chat(&request, &watch).await
        };
        self.budget
            .was_outside(ExternalTime::Model, began.elapsed());
        let cost = budget.close(Some(&result));
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &result {
            Ok(reply) => {
                self.event(Event::TurnFinished {
                    agent: who.clone(),
                    role,
                    model: reply.model.clone(),
                    usage: cost.usage,
                    cost: cost.dollars,
                    calls: cost.calls,
                    finish: reply.finish,
                    millis,
                });
            }
            Err(error) => {
                self.event(Event::TurnFailed {
                    agent: who.clone(),
                    role,
                    error: error.to_string(),
                    spent: cost,
                });
            }
        }
        // The model rejected tools, so the caller repeats the call with the text protocol. The
        // failed exchange is not recorded, because a replay uses the text protocol from the start.
        if let Err(ModelError::NoTools { .. }) = &result {
            return Ok(result?);
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

    /// Records that the budget is too small for a request. The run then ends as soon as no agent is
    /// at work.
    fn is_exhausted(&self, exhausted: &Exhausted) {
        self.agents()
            .exhausted
            .get_or_insert_with(|| exhausted.what.clone());
    }
}

/// Converts the progress of a call to events, and tracks its budget.
struct Watch<'a> {
    run: &'a RunContext,
    who: &'a ActorId,
    budget: &'a CallBudget,
}

#[async_trait]
impl ChatWatch for Watch<'_> {
    fn delta(&self, text: &str) {
        self.budget.delta(text);
    }

    fn notice(&self, notice: ModelNotice) {
        self.run.event(Event::Notice {
            agent: self.who.clone(),
            notice,
        });
    }

    fn request_ended(&self, end: Result<&ChatReply, &ModelError>) {
        self.budget.request_ended(end);
    }

    async fn reserve(&self, next: &WorstCase) -> Option<Tokens> {
        let reserved = self.budget.reserve_next(next).await;
        reserved
            .inspect_err(|exhausted| self.run.is_exhausted(exhausted))
            .ok()
    }
}
