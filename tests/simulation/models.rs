//! Simulated model providers: each request fails, is answered late, or gets the reply of an actor
//! that follows the protocol, errs, attacks or repeats itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Dollars, Finish, Message, ModelError,
    ModelProfile, Price, Role, Tokens, ToolCall, Usage,
};
use starling_models::continuing::ContinuingModel;
use starling_models::resilient::{ModelWithPolicy, ResilientModel, RetryPolicy};

use super::actors::{self, Reply};
use super::judge::Request;
use super::world::World;

/// Price of a fallback, as a multiple of the first model's price.
const FALLBACK_PRICE: f64 = 3.0;
/// Price of a prompt token and of an output token, in dollars.
const PROMPT_PRICE: f64 = 2e-6;
const OUTPUT_PRICE: f64 = 10e-6;
const MAX_OUTPUT: Tokens = Tokens(2_000);

/// Returns a model as a run uses it: simulated providers with retries, fallbacks and continuations.
pub fn model(world: &Arc<World>, role: Role, name: &str) -> Arc<dyn ChatModel> {
    let policy = RetryPolicy {
        timeout: Duration::from_secs(60),
        idle_timeout: Duration::from_secs(60),
        attempts: world.plan.attempts,
        ..RetryPolicy::default()
    };
    let provider = |name: String, factor: f64| ModelWithPolicy {
        model: Arc::new(Provider::new(Arc::clone(world), role, name, factor)),
        policy,
    };
    let first = provider(name.to_owned(), 1.0);
    let others = match world.plan.falls_back {
        true => vec![provider(format!("{name} fallback"), FALLBACK_PRICE)],
        false => Vec::new(),
    };
    let resilient = ResilientModel::of_each(first, others).with_seed(7);
    Arc::new(ContinuingModel::new(resilient).at_most(4))
}

/// A simulated model provider for one role.
struct Provider {
    world: Arc<World>,
    role: Role,
    profile: ModelProfile,
    price: f64,
}

impl Provider {
    fn new(world: Arc<World>, role: Role, name: String, price: f64) -> Self {
        let profile = ModelProfile {
            name,
            context_window: Tokens(100_000),
            max_output: MAX_OUTPUT,
            tool_calling: world.plan.calling,
            replayed: false,
            price: Some(Price {
                prompt: PROMPT_PRICE * price * 1e6,
                cached: PROMPT_PRICE * price * 1e6,
                output: OUTPUT_PRICE * price * 1e6,
            }),
        };
        Provider {
            world,
            role,
            profile,
            price,
        }
    }

    fn cost(&self, prompt: Tokens, output: Tokens) -> f64 {
        let dollars = prompt.0 as f64 * PROMPT_PRICE + output.0 as f64 * OUTPUT_PRICE;
        dollars * self.price
    }

    /// Returns the failure of a request, if it fails.
    async fn failure(&self, key: &str, watch: &dyn ChatWatch) -> Option<Failure> {
        let choices = &self.world.choices;
        let fails = |what: &str, percent| choices.deviates(&format!("{key} {what}"), percent);
        let model = self.profile.name.clone();
        let message = "simulated".to_owned();
        if fails("hangs", 1) {
            self.world.judge().charged_for_nothing();
            std::future::pending::<()>().await;
        }
        if fails("is rate limited", 2) {
            let error = ModelError::RateLimited {
                model,
                retry_after: None,
                message: String::new(),
            };
            return Some(Failure::unbilled(error));
        }
        if fails("fails with 500", 2) {
            let status = 500;
            return Some(Failure::unbilled(ModelError::Server {
                model,
                status,
                message,
            }));
        }
        if fails("breaks off", 2) {
            watch.delta(&"word ".repeat(50));
            let error = ModelError::Transport { model, message };
            return Some(Failure::billed(error));
        }
        if fails("is refused", 1) {
            let status = 400;
            return Some(Failure::unbilled(ModelError::Refused {
                model,
                status,
                message,
            }));
        }
        if fails("is unreadable", 1) {
            return Some(Failure::billed(ModelError::Malformed { model, message }));
        }
        None
    }
}

/// A failed request.
struct Failure {
    error: ModelError,
    /// Whether the provider charges for the prompt.
    is_billed: bool,
}

impl Failure {
    fn billed(error: ModelError) -> Self {
        let is_billed = true;
        Failure { error, is_billed }
    }

    fn unbilled(error: ModelError) -> Self {
        let is_billed = false;
        Failure { error, is_billed }
    }
}

/// Reports to the judge, when dropped, that a request is over.
struct RequestGuard {
    world: Arc<World>,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.world.judge().request_ends();
    }
}

#[async_trait]
impl ChatModel for Provider {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let world = &self.world;
        let text: Vec<&str> = request.messages.iter().map(Message::text).collect();
        let text = text.join("\n");
        let prompt = Tokens(Tokens::estimate(&text).0 * 3 / 4);
        let key = world.next_key(&format!("{} {}", self.profile.name, request.conversation));
        world.judge().request_sent(&Request {
            conversation: request.conversation.clone(),
            provider: self.profile.name.clone(),
            text,
            prompt,
            dollars: self.cost(prompt, Tokens(0)),
        });
        let _in_flight = RequestGuard {
            world: Arc::clone(world),
        };
        world.wait(&key, world.plan.latencies.model).await;
        if let Some(failure) = self.failure(&key, watch).await {
            let mut judge = world.judge();
            match failure.is_billed {
                true => judge.charged_for_nothing(),
                false => judge.refund(prompt, self.cost(prompt, Tokens(0))),
            }
            return Err(failure.error);
        }
        let reply = actors::reply(world, self.role, &self.profile.name, request, &key);
        Ok(self.answer(request, &key, prompt, reply))
    }
}

impl Provider {
    fn answer(&self, request: &ChatRequest, key: &str, prompt: Tokens, reply: Reply) -> ChatReply {
        let world = &self.world;
        let written: usize = reply.calls.iter().map(|(_, text)| text.len()).sum();
        let output = Tokens((reply.text.len() + written) as u64 / 4).min(request.max_output);
        let dollars = self.cost(prompt, output);
        world.judge().replied(
            &request.conversation,
            &reply,
            output,
            self.cost(Tokens(0), output),
        );
        let says_nothing = world
            .choices
            .deviates(&format!("{key} reports no usage"), 2);
        let (usage, cost) = match says_nothing {
            true => {
                // Like the adapter of an endpoint, this replaces impossible usage by upper bounds.
                world.judge().reported_nothing();
                let (prompt, output) = (request.prompt_at_most(), output.max(request.max_output));
                let usage = Usage {
                    prompt,
                    cached: Tokens(0),
                    output,
                };
                (usage, self.cost(prompt, output))
            }
            false => {
                let cached = Tokens(0);
                let usage = Usage {
                    prompt,
                    cached,
                    output,
                };
                (usage, dollars)
            }
        };
        let calls = reply.calls.into_iter().enumerate();
        let calls: Vec<ToolCall> = calls
            .map(|(at, (name, arguments))| ToolCall {
                id: format!("{key} {at}"),
                name,
                arguments,
            })
            .collect();
        ChatReply {
            model: self.profile.name.clone(),
            text: reply.text,
            finish: match (reply.is_cut, calls.is_empty()) {
                (true, _) => Finish::Length,
                (false, true) => Finish::Stop,
                (false, false) => Finish::ToolCalls,
            },
            tool_calls: calls,
            usage,
            cost: Dollars(cost),
            calls: 1,
        }
    }
}

/// Returns a tool call with its arguments.
pub fn call(name: &str, arguments: serde_json::Value) -> (String, String) {
    (name.to_owned(), arguments.to_string())
}

pub fn finish(summary: &str) -> (String, String) {
    call("finish", json!({ "summary": summary }))
}
