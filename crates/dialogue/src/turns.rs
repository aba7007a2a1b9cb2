//! The loop of turns: request a reply from the model, parse the tool calls in the reply, execute
//! them, and append their results to the conversation.

use std::ops::ControlFlow;

use async_trait::async_trait;
use starling_core::{ChatReply, ModelError, ModelProfile, ToolSpec};
use tracing::Instrument;

use crate::call::Call;
use crate::conversation::Conversation;

/// An error for a missing reply of a model: the model was not called, or its call failed.
pub trait ModelFailure {
    /// Returns the model's error; `None` if the model was not called.
    fn of_model(&self) -> Option<&ModelError>;
}

/// The result of handling a reply without a tool call.
pub struct TextReplyOutcome<E> {
    /// The message that answers the model's reply; `None` if the reply is left out of the
    /// conversation.
    pub told: Option<String>,
    /// The result of the conversation, if the reply ends it.
    pub end: Option<E>,
}

/// The results of the tool calls of a reply, and whether the conversation ends.
pub struct ToolCallsOutcome<A, E> {
    pub results: Vec<(Call<A>, String)>,
    pub end: Option<E>,
}

/// Hooks that the loop in [`converse`] calls. Each kind of conversation implements them: those of
/// agents, of the scout (which picks symbols), and of the roles that answer questions. A hook that
/// returns `Break` ends the conversation.
#[async_trait]
pub trait Turns: Send {
    /// The type into which tool calls are parsed.
    type Action: Send;
    /// The result of the conversation.
    type End: Send;
    type Failed: ModelFailure + Send;

    /// Returns a name for log messages.
    fn name(&self) -> String;

    fn conversation(&mut self) -> &mut Conversation;

    fn profile(&self) -> &ModelProfile;

    /// Prepares a turn (turns are counted from 1) and returns the tools to offer to the model.
    /// Returns `None` if the model is not called in this turn.
    async fn begin(&mut self, turn: u32) -> ControlFlow<Self::End, Option<Vec<ToolSpec>>>;

    /// Calls the model. The reply is not added to the conversation.
    async fn call(&mut self, tools: Vec<ToolSpec>) -> Result<ChatReply, Self::Failed>;

    /// Decides whether the conversation continues with the next turn after a failed model call.
    fn failed(&mut self, error: Self::Failed) -> ControlFlow<Self::End>;

    /// Parses the tool calls of a reply.
    fn calls(&mut self, reply: &ChatReply) -> Vec<Call<Self::Action>>;

    /// Handles a reply without a tool call.
    async fn hear(&mut self, reply: &ChatReply) -> TextReplyOutcome<Self::End>;

    /// Executes the tool calls of a reply.
    async fn act(
        &mut self,
        reply: &ChatReply,
        calls: Vec<Call<Self::Action>>,
    ) -> ToolCallsOutcome<Self::Action, Self::End>;

    /// Called after a turn that did not end the conversation.
    fn after_turn(&mut self) {}

    /// Called when earlier results were left out of the conversation. The model may then repeat
    /// their calls.
    fn left_out(&mut self) {}
}

/// Runs a conversation for at most `most` turns. Returns its result, or `None` if no turn ended it.
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

/// Calls the model with a prompt that leaves room for its reply. If the model rejects the prompt as
/// too long anyway, the conversation is shortened and the call is repeated once.
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
