//! Adds a tracing span to each request to a model.

use std::sync::Arc;

use async_trait::async_trait;
use tracing::{Instrument, field};

use starling_core::{ChatModel, ChatReply, ChatRequest, ChatWatch, ModelError, ModelProfile};

/// A model whose requests are traced. The span contains no text of a prompt or a reply.
pub(super) struct TracedModel(pub(super) Arc<dyn ChatModel>);

#[async_trait]
impl ChatModel for TracedModel {
    fn profile(&self) -> &ModelProfile {
        self.0.profile()
    }

    fn fills(&self) -> bool {
        self.0.fills()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let span = tracing::info_span!(
            "model call",
            model = %self.profile().name,
            prompt_tokens = field::Empty,
            output_tokens = field::Empty,
            failed = field::Empty,
        );
        let result = self.0.chat(request, watch).instrument(span.clone()).await;
        match &result {
            Ok(reply) => {
                span.record("prompt_tokens", reply.usage.prompt.0);
                span.record("output_tokens", reply.usage.output.0);
            }
            Err(_) => {
                span.record("failed", true);
            }
        }
        result
    }
}
