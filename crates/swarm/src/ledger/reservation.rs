//! Room for one request, from before it is sent until it is known what it cost.

use super::Ledger;
use super::amount::Amount;
use starling_core::{ChatReply, Cost, ModelError, Tokens, WorstCase};

/// Later bounds are this much above the excess that was seen.
const MARGIN: f64 = 1.1;

/// Room in the budget for one request. Dropping it books the whole reservation: the request may have
/// been sent, and nobody said what it cost.
#[derive(Debug)]
pub struct Reservation {
    ledger: Ledger,
    /// The worst case as the caller knows it.
    asked: WorstCase,
    /// What is reserved.
    held: WorstCase,
    /// Booked when the reservation ends.
    cost: Cost,
    /// The cost is the worst case: the model reported none.
    is_assumed: bool,
}

impl Reservation {
    pub(super) fn new(ledger: Ledger, asked: WorstCase, held: WorstCase) -> Self {
        Reservation {
            cost: Cost::of_unknown(&held),
            ledger,
            asked,
            held,
            is_assumed: true,
        }
    }

    /// The longest answer that the request may ask for.
    pub fn max_output(&self) -> Tokens {
        self.held.output
    }

    /// Books what an answer cost, as the model reports it.
    pub fn answered(mut self, reply: &ChatReply) -> Cost {
        self.cost = Cost::of_reply(reply);
        self.is_assumed = false;
        if self.cost.calls == 1 {
            self.learn(reply.usage.prompt);
        }
        self.cost
    }

    /// Books what a failed request cost, see [`Cost::of_failure`].
    pub fn failed(mut self, error: &ModelError, answer_began: bool) -> Cost {
        self.cost = Cost::of_failure(error, answer_began, &self.held);
        self.cost
    }

    /// Books the whole reservation: nobody will say what the request cost.
    pub fn abandoned(self) -> Cost {
        self.cost
    }

    /// Gives the room back: the request was not sent.
    pub fn release(mut self) {
        self.cost = Cost::default();
    }

    /// A provider that counts more than the bound raises the bounds of later prompts.
    fn learn(&self, prompt: Tokens) {
        if prompt <= self.held.prompt {
            return;
        }
        let seen = prompt.0 as f64 / self.asked.prompt.0.max(1) as f64 * MARGIN;
        let mut account = self.ledger.account();
        let excess = account
            .excess
            .entry(self.asked.model.clone())
            .or_insert(1.0);
        *excess = excess.max(seen);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut account = self.ledger.account();
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
        self.ledger.shared.freed.notify_waiters();
    }
}
