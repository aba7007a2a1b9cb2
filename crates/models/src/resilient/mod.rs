//! The one layer for deadlines, retries and fallbacks. Whatever it does is told to the watch.

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

/// How patient to be with each model of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// For one attempt as a whole.
    pub timeout: Duration,
    /// Between two signs of life, once the first has come.
    pub idle_timeout: Duration,
    /// Attempts with each model; at least one is made.
    pub attempts: u32,
    /// The longest first wait; it doubles with each attempt.
    pub base_delay: Duration,
    /// No wait is longer, whatever a server asks for.
    pub max_delay: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            attempts: 4,
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
        }
    }
}

/// A model and the patience that it is met with.
#[derive(Clone)]
pub struct ModelWithPolicy {
    pub model: Arc<dyn ChatModel>,
    pub policy: Policy,
}

/// A list of models that answers as one: the first that can.
pub struct ResilientModel {
    first: ModelWithPolicy,
    others: Vec<ModelWithPolicy>,
    waits: RetryDelays,
}

impl ResilientModel {
    /// Asks `first`, and when it fails the others, in their order; all with the same patience.
    pub fn new(first: Arc<dyn ChatModel>, others: Vec<Arc<dyn ChatModel>>, policy: Policy) -> Self {
        let attempted = |model| ModelWithPolicy { model, policy };
        let others = others.into_iter().map(attempted).collect();
        ResilientModel::of_each(attempted(first), others)
    }

    /// The same, each with a patience of its own.
    pub fn of_each(first: ModelWithPolicy, others: Vec<ModelWithPolicy>) -> Self {
        ResilientModel {
            first,
            others,
            waits: RetryDelays::random(),
        }
    }

    /// The same with waits that can be foretold.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.waits = RetryDelays::seeded(seed);
        self
    }

    /// All attempts with one model. The first request is reserved already; failed requests are
    /// added to `lost`.
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

/// The request as the budget allows it to be sent to this model: its answer may be shorter.
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
    /// That of the first model.
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
            // The first model is asked again by the caller, in another form.
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

/// A reply that covers the requests which were lost before it.
fn with_lost(mut reply: ChatReply, lost: Cost) -> ChatReply {
    if lost.calls > 0 {
        reply.calls = reply.calls.max(1) + lost.calls;
    }
    reply.usage = reply.usage + lost.usage;
    reply.cost += lost.dollars;
    reply
}
