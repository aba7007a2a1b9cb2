//! The cost of model requests: prices, the maximum cost of a request, and the actual cost.

use serde::{Deserialize, Serialize};

use super::model::{ChatReply, ChatRequest, Dollars, ModelError, ModelProfile, Usage};
use super::tokens::Tokens;

/// A price in dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub prompt: f64,
    pub cached: f64,
    pub output: f64,
}

impl Price {
    /// The price of a model that runs on the user's own machine.
    pub const FREE: Price = Price {
        prompt: 0.0,
        cached: 0.0,
        output: 0.0,
    };

    /// Returns the cost of one request.
    pub fn cost(&self, usage: Usage) -> Dollars {
        let fresh = usage.prompt.saturating_sub(usage.cached);
        let millionths = fresh.0 as f64 * self.prompt
            + usage.cached.0 as f64 * self.cached
            + usage.output.0 as f64 * self.output;
        Dollars(millionths / 1e6)
    }

    /// Returns the maximum cost of one request, whatever part of its prompt is cached.
    pub fn at_most(&self, prompt: Tokens, output: Tokens) -> Dollars {
        self.cost(Usage {
            prompt,
            cached: self.cached_in_worst_case(prompt),
            output,
        })
    }

    /// Returns how many tokens of a prompt must be cached for the prompt to cost most: none, or all of
    /// them if a cached token costs more than another one.
    fn cached_in_worst_case(&self, prompt: Tokens) -> Tokens {
        match self.cached > self.prompt {
            true => prompt,
            false => Tokens(0),
        }
    }
}

/// The maximum cost of one request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstCase {
    /// The configured name of the model.
    pub model: String,
    /// An upper bound of the prompt's length, see [`Tokens::at_most`].
    pub prompt: Tokens,
    /// The requested output limit.
    pub output: Tokens,
    /// The price of the model; `None` when it is unknown.
    pub price: Option<Price>,
}

impl WorstCase {
    /// Returns the worst case of sending `request` to the model with this profile.
    pub fn of(request: &ChatRequest, profile: &ModelProfile) -> Self {
        WorstCase {
            model: profile.name.clone(),
            prompt: request.prompt_at_most(),
            output: request.max_output.min(profile.max_output),
            price: profile.price,
        }
    }

    /// Returns the usage in the worst case, also with regard to the number of cached tokens.
    pub fn usage(&self) -> Usage {
        Usage {
            prompt: self.prompt,
            cached: self.cached_in_worst_case(self.prompt),
            output: self.output,
        }
    }

    /// Returns how many tokens of a prompt must be cached for the prompt to cost most. This number is
    /// used if the provider does not report a credible one.
    pub fn cached_in_worst_case(&self, prompt: Tokens) -> Tokens {
        let price = self.price.as_ref();
        price.map_or(Tokens(0), |price| price.cached_in_worst_case(prompt))
    }

    /// Returns the price of the worst case. A model without a price counts as free.
    pub fn dollars(&self) -> Dollars {
        self.price.map_or(Dollars(0.0), |price| {
            price.at_most(self.prompt, self.output)
        })
    }
}

/// The accumulated cost of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Number of requests that were sent.
    pub calls: u32,
    pub usage: Usage,
    pub dollars: Dollars,
}

impl Cost {
    /// Returns the cost of an answer, as the model reports it. An answer counts as at least one
    /// request.
    pub fn of_reply(reply: &ChatReply) -> Self {
        Cost {
            calls: reply.calls.max(1),
            usage: reply.usage,
            dollars: reply.cost,
        }
    }

    /// Returns the cost of a request with an unknown outcome: its worst case.
    pub fn of_unknown(worst: &WorstCase) -> Self {
        Cost {
            calls: 1,
            usage: worst.usage(),
            dollars: worst.dollars(),
        }
    }

    /// Returns the cost of a failed request. A request that the provider rejected costs no tokens.
    /// A request that the provider may have processed costs its worst case, because its usage is
    /// unknown. An answer that was cut off costs the received part. `answer_began` is whether any
    /// part of an answer had arrived.
    pub fn of_failure(error: &ModelError, answer_began: bool, worst: &WorstCase) -> Self {
        let sent = Cost {
            calls: 1,
            ..Cost::default()
        };
        if let ModelError::Endless { output, .. } = error {
            let received = WorstCase {
                output: worst.output.max(*output),
                ..worst.clone()
            };
            return Cost::of_unknown(&received);
        }
        if answer_began {
            return Cost::of_unknown(worst);
        }
        match error {
            ModelError::Unavailable { .. } => Cost::default(),
            // The provider's gateway timed out, but the model behind it may have processed the
            // request.
            ModelError::Server {
                status: 408 | 504 | 524,
                ..
            } => Cost::of_unknown(worst),
            ModelError::Unreachable { .. }
            | ModelError::RateLimited { .. }
            | ModelError::Server { .. }
            | ModelError::Refused { .. }
            | ModelError::NoTools { .. }
            | ModelError::TooLong { .. } => sent,
            ModelError::Timeout { .. }
            | ModelError::Transport { .. }
            | ModelError::Malformed { .. }
            | ModelError::Endless { .. } => Cost::of_unknown(worst),
        }
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.calls = self.calls.saturating_add(other.calls);
        self.usage = self.usage + other.usage;
        self.dollars += other.dollars;
    }
}

impl ChatRequest {
    /// Returns an upper bound of the prompt's length, including tools and chat template.
    pub fn prompt_at_most(&self) -> Tokens {
        let framed = Tokens::at_most(&self.beginning) + Tokens::at_most(&self.following);
        Tokens::of_prompt(&self.messages, &self.tools, Tokens::at_most) + framed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn worst() -> WorstCase {
        WorstCase {
            model: "m".to_owned(),
            prompt: Tokens(1_000),
            output: Tokens(100),
            price: Some(Price {
                prompt: 2.0,
                cached: 1.0,
                output: 10.0,
            }),
        }
    }

    #[test]
    fn cost_counts_cached_tokens_as_part_of_the_prompt() {
        let price = Price {
            prompt: 2.0,
            cached: 1.0,
            output: 10.0,
        };
        let usage = Usage {
            prompt: Tokens(1_000_000),
            cached: Tokens(400_000),
            output: Tokens(100_000),
        };
        let Dollars(cost) = price.cost(usage);
        assert!((cost - 2.6).abs() < 1e-9, "{cost}");
        assert_eq!(Price::FREE.cost(usage), Dollars(0.0));
        let Dollars(most) = price.at_most(usage.prompt, usage.output);
        assert!((most - 3.0).abs() < 1e-9, "{most}");
    }

    #[test]
    fn unknown_usage_costs_as_much_as_was_reserved_for_it() {
        for (prompt, cached) in [(2.0, 1.0), (1.0, 2.0), (1.0, 1.0)] {
            let worst = WorstCase {
                price: Some(Price {
                    prompt,
                    cached,
                    output: 10.0,
                }),
                ..worst()
            };
            let unknown = Cost::of_unknown(&worst);
            let cost = worst.price.unwrap().cost(unknown.usage);
            assert_eq!(cost, worst.dollars(), "{prompt} {cached}");
            assert_eq!(unknown.dollars, worst.dollars());
        }
    }

    #[test]
    fn failed_request_that_the_provider_may_have_processed_costs_its_worst_case() {
        let model = || "m".to_owned();
        let server = |status| ModelError::Server {
            model: model(),
            status,
            message: String::new(),
        };
        let timeout = ModelError::Timeout {
            model: model(),
            after: Duration::from_secs(1),
        };
        let unavailable = ModelError::Unavailable {
            model: model(),
            message: String::new(),
        };
        let cost = |error: &ModelError, began| Cost::of_failure(error, began, &worst());
        let whole = Cost::of_unknown(&worst());
        assert_eq!((whole.calls, whole.dollars), (1, Dollars(0.003)));
        assert_eq!(cost(&timeout, false), whole);
        assert_eq!(cost(&server(504), false), whole);
        assert_eq!(cost(&server(503), true), whole);
        let turned_away = cost(&server(503), false);
        assert_eq!(
            (turned_away.calls, turned_away.usage),
            (1, Usage::default())
        );
        assert_eq!(cost(&unavailable, false), Cost::default());
        let endless = |output| ModelError::Endless {
            model: model(),
            message: String::new(),
            output: Tokens(output),
        };
        let over = cost(&endless(worst().output.0 * 5), true);
        assert_eq!(over.usage.output.0, worst().output.0 * 5);
        assert!(over.dollars > whole.dollars);
        assert_eq!(cost(&endless(1), true), whole);
    }
}
