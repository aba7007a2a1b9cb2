//! One attempt with its two deadlines: for the whole answer, and for a pause within it.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tokio::time::{Instant, sleep_until};

use super::RetryPolicy;
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, ModelError, ModelNotice, Tokens, WorstCase,
};

/// Forwards all reports to the caller and remembers the time of the last one.
pub(super) struct ActivityMonitor<'a> {
    watch: &'a dyn ChatWatch,
    /// Time of the last sign of life.
    seen: Mutex<Option<Instant>>,
}

impl<'a> ActivityMonitor<'a> {
    pub fn new(watch: &'a dyn ChatWatch) -> Self {
        ActivityMonitor {
            watch,
            seen: Mutex::default(),
        }
    }

    /// Returns whether any part of an answer has arrived.
    pub fn answer_began(&self) -> bool {
        self.seen().is_some()
    }

    /// Makes one attempt and ends it if it exceeds a deadline.
    pub async fn answer_in_time(
        &self,
        model: &dyn ChatModel,
        request: &ChatRequest,
        policy: &RetryPolicy,
    ) -> Result<ChatReply, ModelError> {
        tokio::select! {
            biased;
            answer = model.chat(request, self) => answer,
            after = self.silence(policy) => Err(ModelError::Timeout {
                model: model.profile().name.clone(),
                after,
            }),
        }
    }

    /// Waits until a deadline has passed and returns the length of that deadline.
    async fn silence(&self, policy: &RetryPolicy) -> std::time::Duration {
        let end = Instant::now() + policy.timeout;
        loop {
            let idle = self.seen().map(|last| last + policy.idle_timeout);
            let now = Instant::now();
            match idle {
                _ if end <= now => return policy.timeout,
                Some(idle) if idle <= now => return policy.idle_timeout,
                // Before the first sign of life there is no idle deadline; check again after the
                // idle timeout.
                None => sleep_until(end.min(now + policy.idle_timeout)).await,
                Some(idle) => sleep_until(end.min(idle)).await,
            }
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ChatWatch for ActivityMonitor<'_> {
    fn delta(&self, text: &str) {
        *self.seen() = Some(Instant::now());
        self.watch.delta(text);
    }

    fn notice(&self, notice: ModelNotice) {
        self.watch.notice(notice);
    }

    fn request_ended(&self, end: Result<&ChatReply, &ModelError>) {
        self.watch.request_ended(end);
    }

    async fn reserve(&self, next: &WorstCase) -> Option<Tokens> {
        self.watch.reserve(next).await
    }
}
