//! The shared budget of a run: limits, reservations and spent amounts.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::amount::Amount;
use super::clock::Clock;
use super::reservation::Reservation;
use super::spent::{Committed, Exhausted, SHORTEST_ANSWER, Spent, exhausted};
use crate::evidence::wording::counted;
use starling_core::{Dollars, Limits, Tokens, WorstCase};

/// The shared budget of one run.
#[derive(Debug, Clone)]
pub struct Budget {
    pub(super) limits: Limits,
    pub(super) shared: Arc<SharedBudget>,
}

/// The parts of a budget that all its clones share.
#[derive(Debug)]
pub(super) struct SharedBudget {
    pub(super) account: Mutex<Account>,
    /// Notified when budget may have been freed or the queue has changed.
    pub(super) freed: Notify,
    pub(super) clock: Mutex<Clock>,
    /// Notified when the clock stops or continues.
    pub(super) clock_changed: Notify,
}

/// The spent and reserved amounts of a run, and the callers that wait for budget.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Calls, tokens and messages that were spent. The dollars and times in it are not used:
    /// dollars are computed from [`Amount`], and times from the [`Clock`].
    pub(super) spent: Spent,
    pub(super) spent_on_requests: Amount,
    /// Amount held by requests in progress.
    pub(super) reserved: Amount,
    /// Callers waiting for budget, in order of arrival.
    pub(super) queue: VecDeque<u64>,
    pub(super) tickets: u64,
    /// For each model, the factor by which the prompt size that its provider reported exceeded the
    /// estimate.
    pub(super) excess: HashMap<String, f64>,
}

/// Result of checking a request against the budget.
pub(super) enum BudgetFit {
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
            shared: Arc::new(SharedBudget {
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
    /// Waits while the request does not fit but would fit if all other reservations were released
    /// unused. Requests are served in order of arrival. If no other reservation is held and the
    /// full reply does not fit, the reservation is for a shorter reply; see
    /// [`Reservation::max_output`].
    ///
    /// # Errors
    /// Returns [`Exhausted`] with the limit that the request would exceed.
    pub async fn reserve(&self, worst: WorstCase) -> Result<Reservation, Exhausted> {
        let ticket = Ticket::take(self);
        loop {
            let mut freed = pin!(self.shared.freed.notified());
            freed.as_mut().enable();
            {
                let mut account = self.account();
                let held = account.with_excess(&worst);
                match account.room(&self.limits, &held, ticket.number) {
                    BudgetFit::Fits(output) => {
                        account.queue.pop_front();
                        let held = WorstCase { output, ..held };
                        account.reserved += Amount::of_worst(&held);
                        return Ok(Reservation::new(self.clone(), worst, held));
                    }
                    BudgetFit::Never(exhausted) => return Err(exhausted),
                    BudgetFit::Later => {}
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

    /// Counts one message between agents: a question, a change request or a notification.
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

    /// Returns the amounts that the run has spent so far, without requests in progress.
    pub fn spent(&self) -> Spent {
        let account = self.account();
        let mut spent = account.spent.clone();
        spent.dollars = account.spent_on_requests.dollars();
        drop(account);
        self.clock().add_times(&mut spent);
        spent
    }

    pub(super) fn account(&self) -> std::sync::MutexGuard<'_, Account> {
        let account = self.shared.account.lock();
        account.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// Returns the worst case, enlarged by the factor by which the model's provider exceeded
    /// earlier estimates.
    pub(super) fn with_excess(&self, worst: &WorstCase) -> WorstCase {
        let excess = self.excess.get(&worst.model).copied().unwrap_or(1.0);
        WorstCase {
            prompt: Tokens((worst.prompt.0 as f64 * excess).ceil() as u64),
            ..worst.clone()
        }
    }

    pub(super) fn room(&self, limits: &Limits, worst: &WorstCase, ticket: u64) -> BudgetFit {
        if let (Some(limit), None) = (limits.dollars, worst.price) {
            return BudgetFit::Never(unpriced(&worst.model, limit));
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
            return BudgetFit::Never(limit.exhausted(spent, &least, limits));
        }
        let is_next = self.queue.front() == Some(&ticket);
        if !is_next {
            return BudgetFit::Later;
        }
        if with(spent + self.reserved, worst.output).is_none() {
            return BudgetFit::Fits(worst.output);
        }
        if !self.reserved.is_nothing() {
            return BudgetFit::Later;
        }
        BudgetFit::Fits(longest(shortest, worst.output, |output| {
            with(spent, output).is_none()
        }))
    }
}

/// Returns the greatest number from `least` to `most` that fits. `least` must fit.
pub(super) fn longest(least: Tokens, most: Tokens, fits: impl Fn(Tokens) -> bool) -> Tokens {
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

pub(super) fn unpriced(model: &str, limit: Dollars) -> Exhausted {
    exhausted(format!(
        "the price of {model} is unknown, so the limit of {limit} cannot be kept; set price_prompt \
         and price_output of the model"
    ))
}

/// A position in the queue, released on drop.
pub(super) struct Ticket<'a> {
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
