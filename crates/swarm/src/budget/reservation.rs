//! The reserved budget of one request, held from before it is sent until its cost is known.

use super::account::Budget;
use super::amount::Amount;
use starling_core::{ChatReply, Cost, ModelError, Tokens, WorstCase};

/// Safety factor: the observed excess of prompts over their estimates is multiplied by it.
const MARGIN: f64 = 1.1;

/// Reserved budget for one request. Dropping it charges the whole reservation, because the request
/// may have been sent and its cost was not reported.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    /// The worst case as estimated by the caller, before it was enlarged.
    asked: WorstCase,
    /// The reserved amount.
    held: WorstCase,
    /// The cost that is charged when the reservation ends.
    cost: Cost,
    /// Whether the cost is an assumed worst case, because the model reported no usage.
    is_assumed: bool,
}

impl Reservation {
    pub(super) fn new(budget: Budget, asked: WorstCase, held: WorstCase) -> Self {
        Reservation {
            cost: Cost::of_unknown(&held),
            budget,
            asked,
            held,
            is_assumed: true,
        }
    }

    /// Returns the maximum output that the request may ask for.
    pub fn max_output(&self) -> Tokens {
        self.held.output
    }

    /// Charges the cost of a reply, as the model reports it.
    pub fn answered(mut self, reply: &ChatReply) -> Cost {
        self.cost = Cost::of_reply(reply);
        self.is_assumed = false;
        if self.cost.calls == 1 {
            self.learn(reply.usage.prompt);
        }
        self.cost
    }

    /// Charges the cost of a failed request; see [`Cost::of_failure`].
    pub fn failed(mut self, error: &ModelError, answer_began: bool) -> Cost {
        self.cost = Cost::of_failure(error, answer_began, &self.held);
        self.cost
    }

    /// Charges the whole reservation, because the cost of the request will never be reported.
    pub fn abandoned(self) -> Cost {
        self.cost
    }

    /// Releases the reservation, because the request was not sent.
    pub fn release(mut self) {
        self.cost = Cost::default();
    }

    /// Raises the estimates of later prompts if the provider counted more tokens than reserved.
    fn learn(&self, prompt: Tokens) {
        if prompt <= self.held.prompt {
            return;
        }
        let seen = prompt.0 as f64 / self.asked.prompt.0.max(1) as f64 * MARGIN;
        let mut account = self.budget.account();
        let excess = account
            .excess
            .entry(self.asked.model.clone())
            .or_insert(1.0);
        *excess = excess.max(seen);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut account = self.budget.account();
        account.reserved -= Amount::of_worst(&self.held);
        account.spent_on_requests += Amount::of(&self.cost);
        let spent = &mut account.spent;
        spent.calls = spent.calls.saturating_add(self.cost.calls);
        spent.prompt_tokens += self.cost.usage.prompt;
        spent.cached_tokens += self.cost.usage.cached;
        spent.output_tokens += self.cost.usage.output;
        if self.is_assumed {
            spent.assumed_tokens += self.cost.usage.prompt + self.cost.usage.output;
        }
        if self.held.price.is_none() {
            spent.unpriced_calls = spent.unpriced_calls.saturating_add(self.cost.calls);
        }
        drop(account);
        self.budget.shared.freed.notify_waiters();
    }
}
