//! Budget of one run, shared by all its agents.
//!
//! Each model request reserves its worst case before it is sent, and is charged at that reservation
//! until the provider reports the usage. At any time, the spent and reserved amounts together are
//! within the limits of calls, tokens and dollars. A limit can be exceeded only if a provider
//! reports more than the reservation: the reported usage is charged, and later reservations for
//! that model grow accordingly.

mod amount;
mod call;
mod clock;
mod reservation;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use self::amount::Amount;
use self::clock::Clock;
use crate::run::ending::counted;
use starling_core::{Dollars, Limits, Tokens, WorstCase};

pub use self::call::CallBudget;
pub use self::clock::{ExternalTime, PersonWait, Work};
pub use self::reservation::Reservation;

/// Minimum length of a reply that is worth a request. If the budget has no room for the full reply,
/// a shorter reply is requested, down to this length.
pub const SHORTEST_ANSWER: Tokens = Tokens(1_024);

/// Amounts that a run has spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub calls: u32,
    pub prompt_tokens: Tokens,
    pub cached_tokens: Tokens,
    pub output_tokens: Tokens,
    pub dollars: Dollars,
    /// Calls to models without a known price.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_calls: u32,
    /// Tokens included above that no model reported: the worst cases of aborted calls.
    #[serde(default, skip_serializing_if = "is_none")]
    pub assumed_tokens: Tokens,
    pub seconds: f64,
    /// Seconds in which the run waited only for people. They do not count against the limit.
    pub waiting_seconds: f64,
    /// Seconds in which a model call was in progress.
    #[serde(default)]
    pub model_seconds: f64,
    /// Seconds in which tests were running.
    #[serde(default)]
    pub test_seconds: f64,
    /// Seconds in which a model call or tests were running. The remaining time is Starling's own.
    #[serde(default)]
    pub outside_seconds: f64,
    pub messages: u32,
    pub agents: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_none(tokens: &Tokens) -> bool {
    tokens.0 == 0
}

/// The error returned when a limit of the budget is reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the budget is used up: {what}")]
pub struct Exhausted {
    pub what: String,
}

/// Total of the spent and reserved amounts at one point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Committed {
    pub calls: u32,
    pub tokens: Tokens,
    pub dollars: Dollars,
}

/// The shared budget of one run.
#[derive(Debug, Clone)]
pub struct Budget {
    limits: Limits,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    account: Mutex<Account>,
    /// Notified when budget may have been freed or the queue has changed.
    freed: Notify,
    clock: Mutex<Clock>,
    /// Notified when the clock stops or continues.
    clock_changed: Notify,
}

#[derive(Debug, Default)]
struct Account {
    /// Without dollars and times, which are stored elsewhere.
    spent: Spent,
    spent_on_requests: Amount,
    /// Amount held by requests in progress.
    reserved: Amount,
    /// Callers waiting for budget, in order of arrival.
    queue: VecDeque<u64>,
    tickets: u64,
    /// For each model, the factor by which its provider exceeded the estimated prompt size.
    excess: HashMap<String, f64>,
}

/// Result of checking a request against the budget.
enum Room {
    /// The request fits with a reply of this length.
    Fits(Tokens),
    /// The request may fit after other requests have ended.
    Later,
    Never(Exhausted),
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        Budget {
            limits,
            shared: Arc::new(Shared {
                account: Mutex::default(),
                freed: Notify::new(),
                clock: Mutex::new(Clock::new(Instant::now())),
                clock_changed: Notify::new(),
            }),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reserves one model request.
    ///
    /// Waits in order of arrival while the request would fit if all other reservations were
    /// released unused. If no other reservation is held and the full reply does not fit, the
    /// reservation is for a shorter reply; see [`Reservation::max_output`].
    ///
    /// # Errors
    /// Returns [`Exhausted`] with the limit that has no room for the request.
    pub async fn reserve(&self, worst: WorstCase) -> Result<Reservation, Exhausted> {
        let ticket = Ticket::take(self);
        loop {
            let mut freed = pin!(self.shared.freed.notified());
            freed.as_mut().enable();
            {
                let mut account = self.account();
                let held = account.with_excess(&worst);
                match account.room(&self.limits, &held, ticket.number) {
                    Room::Fits(output) => {
                        account.queue.pop_front();
                        let held = WorstCase { output, ..held };
                        account.reserved += Amount::of_worst(&held);
                        return Ok(Reservation::new(self.clone(), worst, held));
                    }
                    Room::Never(exhausted) => return Err(exhausted),
                    Room::Later => {}
                }
            }
            freed.await;
        }
    }

    /// Returns whether `requests` requests with this worst case fit now, in addition to the current
    /// reservations.
    pub fn has_room(&self, requests: u32, worst: &WorstCase) -> bool {
        let account = self.account();
        let next = Amount::of_worst(&account.with_excess(worst)).times(requests);
        let used = account.spent_on_requests + account.reserved;
        (used + next).exceeded(&self.limits).is_none()
    }

    /// Returns the total of the spent and reserved amounts at this moment.
    pub fn committed(&self) -> Committed {
        let account = self.account();
        (account.spent_on_requests + account.reserved).into()
    }

    /// Counts one question or change request.
    ///
    /// # Errors
    /// Returns [`Exhausted`] when the limit of messages is reached.
    pub fn count_message(&self) -> Result<(), Exhausted> {
        let mut account = self.account();
        if account.spent.messages >= self.limits.messages {
            let messages = counted(self.limits.messages as usize, "message");
            return Err(exhausted(format!("{messages} between agents")));
        }
        account.spent.messages += 1;
        Ok(())
    }

    /// Counts one agent.
    ///
    /// # Errors
    /// Returns [`Exhausted`] when the limit of agents is reached.
    pub fn count_agent(&self) -> Result<(), Exhausted> {
        let mut account = self.account();
        if account.spent.agents >= self.limits.agents {
            return Err(exhausted(counted(self.limits.agents as usize, "agent")));
        }
        account.spent.agents += 1;
        Ok(())
    }

    /// Returns what the run has spent so far, without requests in progress.
    pub fn spent(&self) -> Spent {
        let account = self.account();
        let mut spent = account.spent.clone();
        spent.dollars = account.spent_on_requests.dollars();
        drop(account);
        self.clock().add_times(&mut spent);
        spent
    }

    fn account(&self) -> std::sync::MutexGuard<'_, Account> {
        let account = self.shared.account.lock();
        account.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// Returns the worst case, scaled by the factor by which the model's provider exceeded earlier
    /// estimates.
    fn with_excess(&self, worst: &WorstCase) -> WorstCase {
        let excess = self.excess.get(&worst.model).copied().unwrap_or(1.0);
        WorstCase {
            prompt: Tokens((worst.prompt.0 as f64 * excess).ceil() as u64),
            ..worst.clone()
        }
    }

    fn room(&self, limits: &Limits, worst: &WorstCase, ticket: u64) -> Room {
        if let (Some(limit), None) = (limits.dollars, worst.price) {
            return Room::Never(unpriced(&worst.model, limit));
        }
        let with = |used: Amount, output: Tokens| {
            let next = WorstCase {
                output,
                ..worst.clone()
            };
            (used + Amount::of_worst(&next)).exceeded(limits)
        };
        let shortest = worst.output.min(SHORTEST_ANSWER);
        let spent = self.spent_on_requests;
        if let Some(limit) = with(spent, shortest) {
            let least = WorstCase {
                output: shortest,
                ..worst.clone()
            };
            return Room::Never(limit.exhausted(spent, &least, limits));
        }
        let is_next = self.queue.front() == Some(&ticket);
        if !is_next {
            return Room::Later;
        }
        if with(spent + self.reserved, worst.output).is_none() {
            return Room::Fits(worst.output);
        }
        if !self.reserved.is_nothing() {
            return Room::Later;
        }
        Room::Fits(longest(shortest, worst.output, |output| {
            with(spent, output).is_none()
        }))
    }
}

/// Returns the greatest number from `least` to `most` that fits. `least` must fit.
fn longest(least: Tokens, most: Tokens, fits: impl Fn(Tokens) -> bool) -> Tokens {
    let (mut fitting, mut over) = (least.0, most.0.saturating_add(1));
    while over - fitting > 1 {
        let middle = fitting + (over - fitting) / 2;
        match fits(Tokens(middle)) {
            true => fitting = middle,
            false => over = middle,
        }
    }
    Tokens(fitting)
}

fn exhausted(what: String) -> Exhausted {
    Exhausted { what }
}

fn unpriced(model: &str, limit: Dollars) -> Exhausted {
    exhausted(format!(
        "the price of {model} is unknown, so the limit of {limit} cannot be kept; set price_prompt \
         and price_output of the model"
    ))
}

/// A position in the queue, released on drop.
struct Ticket<'a> {
    budget: &'a Budget,
    number: u64,
}

impl<'a> Ticket<'a> {
    fn take(budget: &'a Budget) -> Self {
        let mut account = budget.account();
        account.tickets += 1;
        let number = account.tickets;
        account.queue.push_back(number);
        Ticket { budget, number }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut account = self.budget.account();
        account.queue.retain(|number| *number != self.number);
        drop(account);
        self.budget.shared.freed.notify_waiters();
    }
}
