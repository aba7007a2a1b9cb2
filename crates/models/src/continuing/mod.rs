//! Completes answers that are longer than the output limit: requests the rest of a cut answer until
//! it is complete and joins the parts. This works for texts and for the arguments of a tool call.

mod ask;
mod call;
mod fence;
mod join;

#[cfg(test)]
mod tests;

use async_trait::async_trait;

use self::call::CutCall;
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Finish, ModelError, ModelNotice, ModelProfile,
    WorstCase,
};

/// Maximum number of continuations of one answer. 64 continuations of 512 tokens are about 30,000
/// tokens.
const MOST_CONTINUATIONS: u32 = 64;

/// Wraps a model and completes its cut answers.
pub struct ContinuingModel<M> {
    inner: M,
    most: u32,
}

impl<M: ChatModel> ContinuingModel<M> {
    pub fn new(inner: M) -> Self {
        ContinuingModel {
            inner,
            most: MOST_CONTINUATIONS,
        }
    }

    /// Sets the maximum number of continuations.
    pub fn at_most(mut self, continuations: u32) -> Self {
        self.most = continuations;
        self
    }

    /// Sends one request to the wrapped model and reports the end of the request, in case the model
    /// does not.
    async fn ask(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let answer = self.inner.chat(request, watch).await;
        watch.request_ended(answer.as_ref());
        answer
    }

    /// Sends one more request. If it fails, the answer stays incomplete: the part that was already
    /// paid for is kept, and the wrapped model has reported the failure.
    async fn next_piece(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
        so_far: &mut ChatReply,
        joined: usize,
    ) -> Option<ChatReply> {
        let worst = WorstCase::of(request, self.profile());
        let Some(max_output) = watch.reserve(&worst).await else {
            tracing::warn!(model = %so_far.model, "the budget has no room to continue a cut answer");
            return None;
        };
        let request = ChatRequest {
            max_output,
            ..request.clone()
        };
        watch.notice(ModelNotice::Continued {
            model: so_far.model.clone(),
            joined,
        });
        match self.ask(&request, watch).await {
            Ok(piece) => {
                so_far.usage = so_far.usage + piece.usage;
                so_far.cost += piece.cost;
                so_far.calls += piece.calls;
                Some(piece)
            }
            Err(error) => {
                tracing::warn!(model = %so_far.model, %error, "a cut answer could not be continued");
                None
            }
        }
    }

    /// Continues a text until the model completes it.
    async fn continue_text(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
        mut reply: ChatReply,
    ) -> ChatReply {
        let mut text = join::JoinedText::new(std::mem::take(&mut reply.text));
        for _ in 0..self.most {
            let next = ask::for_text(request, text.as_str());
            let joined = text.as_str().chars().count();
            let Some(piece) = self.next_piece(&next, watch, &mut reply, joined).await else {
                break;
            };
            let grew = text.push(&piece.text);
            reply.finish = piece.finish;
            if !piece.tool_calls.is_empty() {
                // A continuation of the text can end in tool calls, and these can be cut as well.
                reply.text = text.into_whole();
                reply.tool_calls = piece.tool_calls;
                return self.continue_call(request, watch, reply).await;
            }
            if reply.finish != Finish::Length || !grew {
                break;
            }
        }
        reply.text = match reply.finish {
            Finish::Length => text.into_partial(),
            Finish::Stop | Finish::ToolCalls | Finish::Filtered => text.into_whole(),
        };
        reply
    }

    /// Continues the arguments of the last call until they are complete.
    async fn continue_call(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
        mut reply: ChatReply,
    ) -> ChatReply {
        if reply.finish != Finish::Length {
            return reply;
        }
        let Some(mut cut) = CutCall::take(&mut reply.tool_calls) else {
            // The answer was cut between two calls: the received calls are complete, but others may be
            // missing.
            return reply;
        };
        for _ in 0..self.most {
            let next = ask::for_call(request, &reply.text, cut.call());
            let joined = cut.call().arguments.chars().count();
            let Some(piece) = self.next_piece(&next, watch, &mut reply, joined).await else {
                break;
            };
            let grew = cut.push(piece.text, piece.tool_calls);
            if cut.is_whole() || piece.finish != Finish::Length {
                if piece.finish != Finish::Length {
                    reply.finish = Finish::ToolCalls;
                }
                break;
            }
            if !grew {
                break;
            }
        }
        reply.tool_calls.push(cut.into_call());
        reply
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for ContinuingModel<M> {
    fn profile(&self) -> &ModelProfile {
        self.inner.profile()
    }

    fn fills(&self) -> bool {
        self.inner.fills()
    }

    /// `request.max_output` limits each part. An answer that could not be completed keeps
    /// [`Finish::Length`].
    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let reply = self.ask(request, watch).await?;
        // An answer that fills a hole or ends at a stop text is not continued beyond its limit.
        let is_piece = !request.following.is_empty() || !request.stop.is_empty();
        if reply.finish != Finish::Length || is_piece {
            return Ok(reply);
        }
        if !reply.tool_calls.is_empty() {
            return Ok(self.continue_call(request, watch, reply).await);
        }
        // The model spent its limit on reasoning, so there is no text to continue.
        if reply.text.is_empty() {
            return Ok(reply);
        }
        Ok(self.continue_text(request, watch, reply).await)
    }
}
