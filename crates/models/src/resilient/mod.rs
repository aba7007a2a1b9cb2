//! The layer for deadlines, retries and fallbacks. Each of its actions is reported to the
//! [`ChatWatch`].

mod pulse;
mod wait;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::pulse::ActivityMonitor;
use self::wait::RetryDelays;
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Cost, ModelError, ModelNotice, ModelProfile,
    WorstCase,
};

/// The timeouts and retries of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum time of one attempt.
    pub timeout: Duration,
    /// Maximum time between two signs of life, after the first one.
    pub idle_timeout: Duration,
    /// Number of attempts with each model; at least one is made.
    pub attempts: u32,
    /// Maximum delay before the second attempt. The maximum doubles with each attempt.
    pub base_delay: Duration,
    /// Maximum delay before any attempt, even if a server requests more.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            attempts: 4,
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
        }
    }
}

/// A model and its timeouts and retries.
#[derive(Clone)]
pub struct ModelWithPolicy {
    pub model: Arc<dyn ChatModel>,
    pub policy: RetryPolicy,
}

/// A list of models that acts as one model: the first model that succeeds answers.
pub struct ResilientModel {
    first: ModelWithPolicy,
    others: Vec<ModelWithPolicy>,
    waits: RetryDelays,
}

impl ResilientModel {
    /// Tries `first`, then the others in order, all with the same policy.
    pub fn new(
        first: Arc<dyn ChatModel>,
        others: Vec<Arc<dyn ChatModel>>,
        policy: RetryPolicy,
    ) -> Self {
        let attempted = |model| ModelWithPolicy { model, policy };
        let others = others.into_iter().map(attempted).collect();
        ResilientModel::of_each(attempted(first), others)
    }

    /// Like [`ResilientModel::new`], with a separate policy for each model.
    pub fn of_each(first: ModelWithPolicy, others: Vec<ModelWithPolicy>) -> Self {
        ResilientModel {
            first,
            others,
            waits: RetryDelays::random(),
        }
    }

    /// Makes the retry delays deterministic.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.waits = RetryDelays::seeded(seed);
        self
    }

    /// Makes all attempts with one model. The first request is already reserved in the budget; the
    /// cost of failed requests is added to `lost`.
    async fn attempts(
        &self,
        tried: &ModelWithPolicy,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
        lost: &mut Cost,
    ) -> Result<ChatReply, ModelError> {
        let ModelWithPolicy { model, policy } = tried;
        let mut attempt = 1;
        let mut sent = request.clone();
        loop {
            let pulse = ActivityMonitor::new(watch);
            let answer = pulse.answer_in_time(&**model, &sent, policy).await;
            watch.request_ended(answer.as_ref());
            let error = match answer {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let worst = WorstCase::of(&sent, model.profile());
            *lost += Cost::of_failure(&error, pulse.answer_began(), &worst);
            if !error.is_transient() || attempt >= policy.attempts {
                return Err(error);
            }
            let wait = self.waits.before_retry(&error, attempt, policy);
            attempt += 1;
            watch.notice(ModelNotice::Retrying {
                model: model.profile().name.clone(),
                attempt,
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                error: error.to_string(),
            });
            tokio::time::sleep(wait).await;
            match reserved(request, tried, watch).await {
                Some(next) => sent = next,
                None => return Err(error),
            }
        }
    }
}

/// Reserves budget for the request. The returned request may have a lower output limit.
async fn reserved(
    request: &ChatRequest,
    tried: &ModelWithPolicy,
    watch: &dyn ChatWatch,
) -> Option<ChatRequest> {
    let profile = tried.model.profile();
    let Some(max_output) = watch.reserve(&WorstCase::of(request, profile)).await else {
        tracing::warn!(model = %profile.name, "the budget has no room for another attempt");
        return None;
    };
    Some(ChatRequest {
        max_output,
        ..request.clone()
    })
}

#[async_trait]
impl ChatModel for ResilientModel {
    /// Returns the profile of the first model.
    fn profile(&self) -> &ModelProfile {
        self.first.model.profile()
    }

    fn fills(&self) -> bool {
        self.first.model.fills() && self.others.iter().all(|other| other.model.fills())
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let mut lost = Cost::default();
        let mut tried = &self.first;
        let mut others = self.others.iter();
        let mut sent = request.clone();
        loop {
            let error = match self.attempts(tried, &sent, watch, &mut lost).await {
                Ok(reply) => return Ok(with_lost(reply, lost)),
                Err(error) => error,
            };
            // The caller repeats the request to the first model without native tools.
            let is_first = std::ptr::eq(tried, &self.first);
            if is_first && let ModelError::NoTools { .. } = error {
                return Err(error);
            }
            let Some(next) = others.next() else {
                return Err(error);
            };
            match reserved(request, next, watch).await {
                Some(reserved) => sent = reserved,
                None => return Err(error),
            }
            watch.notice(ModelNotice::FellBack {
                from: tried.model.profile().name.clone(),
                to: next.model.profile().name.clone(),
                error: error.to_string(),
            });
            tried = next;
        }
    }
}

/// Adds the cost of the failed requests to a reply.
fn with_lost(mut reply: ChatReply, lost: Cost) -> ChatReply {
    if lost.calls > 0 {
        reply.calls = reply.calls.max(1) + lost.calls;
    }
    reply.usage = reply.usage + lost.usage;
    reply.cost += lost.dollars;
    reply
}
