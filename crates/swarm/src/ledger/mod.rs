//! The budget of one run, shared by all its agents. Every request to a model reserves its worst case
//! before it is sent, and is booked at that reservation until the provider reports its usage. At
//! every instant, what is spent and what is reserved are together within the limits of calls, tokens
//! and dollars. Only a provider that reports more than the reservation can exceed a limit: the report
//! is booked, and later reservations for that model grow by as much.

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
use super::ending::counted;
use starling_core::{Dollars, Limits, Tokens, WorstCase};

pub use self::call::CallBudget;
pub use self::clock::{Outside, PersonWait, Work};
pub use self::reservation::Reservation;

/// The shortest answer that is worth a request. Where the budget has no room for the whole answer,
/// a shorter one is asked for, down to this length.
pub const SHORTEST_ANSWER: Tokens = Tokens(1_024);

/// What a run has spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub calls: u32,
    pub prompt_tokens: Tokens,
    pub cached_tokens: Tokens,
    pub output_tokens: Tokens,
    pub dollars: Dollars,
    /// Calls of models whose price is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_calls: u32,
    /// Those of the tokens that no model reported: the worst cases of calls that were cut.
    #[serde(default, skip_serializing_if = "is_none")]
    pub assumed_tokens: Tokens,
    pub seconds: f64,
    /// Seconds in which the run waited for nothing but people; not counted against the limit.
    pub waiting_seconds: f64,
    /// Seconds in which a model was at work.
    #[serde(default)]
    pub model_seconds: f64,
    /// Seconds in which tests were at work.
    #[serde(default)]
    pub test_seconds: f64,
    /// Seconds in which either was: what is left is Starling's own.
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

/// The budget has no room for this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the budget is used up: {what}")]
pub struct Exhausted {
    pub what: String,
}

/// What is spent and what is reserved at one instant, together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Committed {
    pub calls: u32,
    pub tokens: Tokens,
    pub dollars: Dollars,
}

/// The shared budget of one run.
#[derive(Debug, Clone)]
pub struct Ledger {
    limits: Limits,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    account: Mutex<Account>,
    /// Notified when room may have become free, or the queue has moved.
    freed: Notify,
    clock: Mutex<Clock>,
    /// Notified when the clock stops or goes on.
    clock_changed: Notify,
}

#[derive(Debug, Default)]
struct Account {
    /// Without dollars and times, which are kept elsewhere.
    spent: Spent,
    spent_on_requests: Amount,
    /// Held by requests under way.
    reserved: Amount,
    /// Callers that wait for room, in the order in which they came.
    queue: VecDeque<u64>,
    tickets: u64,
    /// By how much providers exceeded the bound of a prompt, by model.
    excess: HashMap<String, f64>,
}

/// Whether a request fits.
enum Room {
    /// It fits with an answer of this length.
    Fits(Tokens),
    /// It may fit when other requests have ended.
    Later,
    Never(Exhausted),
}

impl Ledger {
    pub fn new(limits: Limits) -> Self {
        Ledger {
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

    /// Reserves one request to a model. Waits, first come first served, while the request would fit
    /// if the reservations of others came back unused. When nobody else holds a reservation and the
    /// whole answer does not fit, the reservation is for a shorter one, see
    /// [`Reservation::max_output`].
    ///
    /// # Errors
    /// [`Exhausted`] names the limit that has no room for the request.
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

    /// Whether `requests` like this one fit now, beside what is reserved.
    pub fn has_room(&self, requests: u32, worst: &WorstCase) -> bool {
        let account = self.account();
        let next = Amount::of_worst(&account.with_excess(worst)).times(requests);
        let used = account.spent_on_requests + account.reserved;
        (used + next).exceeded(&self.limits).is_none()
    }

    /// What is spent and what is reserved at this instant.
    pub fn committed(&self) -> Committed {
        let account = self.account();
        (account.spent_on_requests + account.reserved).into()
    }

    /// Counts one question or change request.
    ///
    /// # Errors
    /// [`Exhausted`] when the limit of messages is reached.
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
    /// [`Exhausted`] when the limit of agents is reached.
    pub fn count_agent(&self) -> Result<(), Exhausted> {
        let mut account = self.account();
        if account.spent.agents >= self.limits.agents {
            return Err(exhausted(counted(self.limits.agents as usize, "agent")));
        }
        account.spent.agents += 1;
        Ok(())
    }

    /// What the run has spent so far; requests under way are not in it.
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
    /// The worst case, raised by what this model's provider has exceeded it before.
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

/// The greatest number from `least`, which fits, up to `most` that fits.
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

/// A place in the queue; given up when it is dropped.
struct Ticket<'a> {
    ledger: &'a Ledger,
    number: u64,
}

impl<'a> Ticket<'a> {
    fn take(ledger: &'a Ledger) -> Self {
        let mut account = ledger.account();
        account.tickets += 1;
        let number = account.tickets;
        account.queue.push_back(number);
        Ticket { ledger, number }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut account = self.ledger.account();
        account.queue.retain(|number| *number != self.number);
        drop(account);
        self.ledger.shared.freed.notify_waiters();
    }
}
