//! The loop of turns: call the model, read the calls of its reply, carry them out, append their
//! results.

use std::ops::ControlFlow;

use async_trait::async_trait;
use starling_core::{ChatReply, ModelError, ModelProfile, ToolSpec};
use tracing::Instrument;

use crate::call::Call;
use crate::conversation::Conversation;

/// Why a model was not asked, or gave no reply.
pub trait ModelFailure {
    /// The model's error; `None` if it was not asked.
    fn of_model(&self) -> Option<&ModelError>;
}

/// What follows from a reply without a call.
pub struct AfterWords<E> {
    /// What the model is told; `None` if the reply does not become part of the conversation.
    pub told: Option<String>,
    pub end: Option<E>,
}

/// What follows from the calls of a reply: their results, and whether the work ends.
pub struct AfterCalls<A, E> {
    pub results: Vec<(Call<A>, String)>,
    pub end: Option<E>,
}

/// Who leads a conversation with a model: what differs between agents, the scout, and those who answer
/// questions. A hook that breaks ends the conversation.
#[async_trait]
pub trait Turns: Send {
    /// What the calls of its tools are read to.
    type Action: Send;
    /// How its work ends.
    type End: Send;
    type Failed: ModelFailure + Send;

    /// Name for the log.
    fn name(&self) -> String;

    fn conversation(&mut self) -> &mut Conversation;

    fn profile(&self) -> &ModelProfile;

    /// Prepares a turn, counted from 1, and returns the tools that the model is offered. `None` if the
    /// turn was used in another way, without a call of the model.
    async fn begin(&mut self, turn: u32) -> ControlFlow<Self::End, Option<Vec<ToolSpec>>>;

    /// Calls the model. The reply is not added to the conversation.
    async fn call(&mut self, tools: Vec<ToolSpec>) -> Result<ChatReply, Self::Failed>;

    /// Decides whether the next turn tries again after a failed call.
    fn failed(&mut self, error: Self::Failed) -> ControlFlow<Self::End>;

    /// Reads the calls of a reply.
    fn calls(&mut self, reply: &ChatReply) -> Vec<Call<Self::Action>>;

    /// Hears a reply without a call.
    async fn hear(&mut self, reply: &ChatReply) -> AfterWords<Self::End>;

    /// Carries out the calls of a reply.
    async fn act(
        &mut self,
        reply: &ChatReply,
        calls: Vec<Call<Self::Action>>,
    ) -> AfterCalls<Self::Action, Self::End>;

    /// Called after a turn that did not end the conversation.
    fn after_turn(&mut self) {}

    /// Called when earlier results were left out of the conversation, so that they may be asked for
    /// again.
    fn left_out(&mut self) {}
}

/// Leads a conversation for at most so many turns. Returns how it ended; `None` if no turn ended it.
pub async fn converse<T: Turns>(turns: &mut T, most: u32) -> Option<T::End> {
    for number in 1..=most {
        let span = tracing::info_span!("turn", agent = turns.name(), number);
        match turn(turns, number).instrument(span).await {
            ControlFlow::Break(end) => return Some(end),
            ControlFlow::Continue(()) => turns.after_turn(),
        }
    }
    None
}

async fn turn<T: Turns>(turns: &mut T, number: u32) -> ControlFlow<T::End> {
    let Some(tools) = turns.begin(number).await? else {
        return ControlFlow::Continue(());
    };
    let reply = match call(turns, tools).await {
        Ok(reply) => reply,
        Err(error) => return turns.failed(error),
    };
    let calls = turns.calls(&reply);
    let end = if calls.is_empty() {
        let heard = turns.hear(&reply).await;
        if let Some(told) = heard.told {
            turns.conversation().said(&reply);
            turns.conversation().user(told);
        }
        heard.end
    } else {
        turns.conversation().said(&reply);
        let acted = turns.act(&reply, calls).await;
        turns.conversation().results(acted.results);
        acted.end
    };
    match end {
        Some(end) => ControlFlow::Break(end),
        None => ControlFlow::Continue(()),
    }
}

/// Calls the model with a prompt that leaves room for its answer. A prompt that is too long all the
/// same is shortened once more.
async fn call<T: Turns>(turns: &mut T, tools: Vec<ToolSpec>) -> Result<ChatReply, T::Failed> {
    let profile = turns.profile().clone();
    if turns.conversation().make_room(&tools, &profile) {
        turns.left_out();
    }
    let reply = turns.call(tools.clone()).await;
    let is_too_long = |error: &T::Failed| {
        let error = error.of_model();
        error.is_some_and(|error| matches!(error, ModelError::TooLong { .. }))
    };
    match reply {
        Err(error) if is_too_long(&error) && turns.conversation().shorten() => {
            turns.left_out();
            turns.call(tools).await
        }
        reply => reply,
    }
}
