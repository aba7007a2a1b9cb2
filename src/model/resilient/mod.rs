//! The one layer for deadlines, retries and fallbacks. Whatever it does is told to the watch.

mod pulse;
mod wait;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::pulse::Pulse;
use self::wait::Waits;
use crate::ports::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, ModelError, ModelNotice, ModelProfile, Tokens,
    Usage,
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
pub struct Attempted {
    pub model: Arc<dyn ChatModel>,
    pub policy: Policy,
}

/// A list of models that answers as one: the first that can.
pub struct Resilient {
    first: Attempted,
    others: Vec<Attempted>,
    waits: Waits,
}

impl Resilient {
    /// Asks `first`, and when it fails the others, in their order; all with the same patience.
    pub fn new(first: Arc<dyn ChatModel>, others: Vec<Arc<dyn ChatModel>>, policy: Policy) -> Self {
        let attempted = |model| Attempted { model, policy };
        let others = others.into_iter().map(attempted).collect();
        Resilient::of_each(attempted(first), others)
    }

    /// The same, each with a patience of its own.
    pub fn of_each(first: Attempted, others: Vec<Attempted>) -> Self {
        Resilient {
            first,
            others,
            waits: Waits::random(),
        }
    }

    /// The same with waits that can be foretold.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.waits = Waits::seeded(seed);
        self
    }

    /// All attempts with one model.
    async fn attempts(
        &self,
        tried: &Attempted,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
        spent: &mut Spent,
    ) -> Result<ChatReply, ModelError> {
        let Attempted { model, policy } = tried;
        let mut attempt = 1;
        loop {
            let pulse = Pulse::new(watch);
            let answer = pulse.answer_in_time(&**model, request, policy).await;
            let error = match answer {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            spent.lost(&error, request, pulse.received());
            let lost = spent.usage.prompt + spent.usage.output;
            let affordable = watch.may_spend(spent.calls, lost);
            if !error.is_transient() || attempt >= policy.attempts || !affordable {
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
        }
    }
}

#[async_trait]
impl ChatModel for Resilient {
    /// That of the first model.
    fn profile(&self) -> &ModelProfile {
        self.first.model.profile()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let mut spent = Spent::default();
        let mut tried = &self.first;
        let mut others = self.others.iter();
        loop {
            let error = match self.attempts(tried, request, watch, &mut spent).await {
                Ok(reply) => return Ok(spent.add_to(reply)),
                Err(error) => error,
            };
            let Some(next) = others.next() else {
                return Err(error);
            };
            watch.notice(ModelNotice::FellBack {
                from: tried.model.profile().name.clone(),
                to: next.model.profile().name.clone(),
                error: error.to_string(),
            });
            tried = next;
        }
    }
}

/// What failed attempts cost.
#[derive(Debug, Default)]
struct Spent {
    calls: u32,
    usage: Usage,
}

impl Spent {
    /// An attempt that began to answer was worked on, and is counted by estimate. What it cost in
    /// money nobody says.
    fn lost(&mut self, error: &ModelError, request: &ChatRequest, received: Tokens) {
        self.calls += match error {
            ModelError::Unavailable { .. } => 0,
            ModelError::RateLimited { .. }
            | ModelError::Server { .. }
            | ModelError::Timeout { .. }
            | ModelError::Transport { .. }
            | ModelError::Refused { .. }
            | ModelError::TooLong { .. }
            | ModelError::Malformed { .. } => 1,
        };
        if received > Tokens(0) {
            let prompt = request
                .messages
                .iter()
                .map(|message| Tokens::estimate(message.text()))
                .sum();
            self.usage = self.usage
                + Usage {
                    prompt,
                    cached: Tokens(0),
                    output: received,
                };
        }
    }

    fn add_to(self, mut reply: ChatReply) -> ChatReply {
        reply.calls += self.calls;
        reply.usage = reply.usage + self.usage;
        reply
    }
}
