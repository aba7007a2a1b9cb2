//! The ledger: what a run may still spend, shared by all its agents, reserved before it is spent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::ports::{ChatReply, Dollars, Tokens};

/// What one run may spend: its upper bounds, as they are configured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Requests to models, retries and continuations included.
    pub calls: u32,
    /// Tokens, prompts and answers together.
    pub tokens: Tokens,
    /// Money in dollars; when unset, no limit. Needs a price for every model.
    pub dollars: Option<Dollars>,
    /// Seconds from the request to the end.
    pub seconds: u64,
    /// Questions and change requests between agents.
    pub messages: u32,
    /// Agents woken.
    pub agents: u32,
    /// How long a chain of agents that ask one another may grow.
    pub depth: u32,
    /// Turns of one agent.
    pub turns: u32,
    /// Times that a failed check of one proposal goes back to its agent.
    pub repairs: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            calls: 60,
            tokens: Tokens(400_000),
            dollars: None,
            seconds: 1800,
            messages: 60,
            agents: 16,
            depth: 4,
            turns: 12,
            repairs: 3,
        }
    }
}

/// What a run has spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub calls: u32,
    pub prompt_tokens: Tokens,
    pub cached_tokens: Tokens,
    pub output_tokens: Tokens,
    pub dollars: Dollars,
    pub seconds: f64,
    /// Seconds in which the run waited for a person; not counted against the limit.
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

/// The ledger has no room for this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the budget is used up: {what}")]
pub struct Exhausted {
    pub what: String,
}

/// The shared account of one run.
#[derive(Debug, Clone)]
pub struct Ledger {
    limits: Limits,
    began: Instant,
    account: Arc<Mutex<Account>>,
}

/// Whose time it is that Starling waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    Model,
    Tests,
}

#[derive(Debug, Default)]
struct Account {
    spent: Spent,
    /// Reserved by calls under way.
    reserved_calls: u32,
    reserved_tokens: Tokens,
    waiting: u32,
    waiting_since: Option<Instant>,
    waited: Duration,
    /// When something outside was at work, in the order of its ends.
    outside: Vec<(Outside, Instant, Instant)>,
}

impl Ledger {
    pub fn new(limits: Limits) -> Self {
        Ledger {
            limits,
            began: Instant::now(),
            account: Arc::default(),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reserves one model call that may cost `tokens`.
    ///
    /// # Errors
    /// [`Exhausted`] names the limit that has no room for it.
    pub fn reserve_call(&self, tokens: Tokens) -> Result<Reservation, Exhausted> {
        let mut account = self.lock();
        let limits = &self.limits;
        let calls = account.spent.calls + account.reserved_calls;
        if calls >= limits.calls {
            return Err(exhausted(format!(
                "{} of {} model calls",
                calls, limits.calls
            )));
        }
        let used =
            account.spent.prompt_tokens + account.spent.output_tokens + account.reserved_tokens;
        if used + tokens > limits.tokens {
            return Err(exhausted(format!(
                "{used} of {} tokens, {tokens} more are needed",
                limits.tokens
            )));
        }
        if let Some(most) = limits.dollars
            && account.spent.dollars >= most
        {
            return Err(exhausted(format!("{} of {most}", account.spent.dollars)));
        }
        account.reserved_calls += 1;
        account.reserved_tokens += tokens;
        Ok(Reservation {
            ledger: self.clone(),
            tokens,
        })
    }

    /// Whether a call that is already reserved may send one more request, after `calls` requests of
    /// its own and with `tokens` in all.
    pub fn has_room(&self, calls: u32, tokens: Tokens) -> bool {
        let account = self.lock();
        let used =
            account.spent.prompt_tokens + account.spent.output_tokens + account.reserved_tokens;
        account.spent.calls + account.reserved_calls + calls <= self.limits.calls
            && used + tokens <= self.limits.tokens
    }

    /// Counts one question or change request.
    ///
    /// # Errors
    /// [`Exhausted`] when the limit of messages is reached.
    pub fn count_message(&self) -> Result<(), Exhausted> {
        let mut account = self.lock();
        if account.spent.messages >= self.limits.messages {
            return Err(exhausted(format!(
                "{} messages between agents",
                self.limits.messages
            )));
        }
        account.spent.messages += 1;
        Ok(())
    }

    /// Counts one agent.
    ///
    /// # Errors
    /// [`Exhausted`] when the limit of agents is reached.
    pub fn count_agent(&self) -> Result<(), Exhausted> {
        let mut account = self.lock();
        if account.spent.agents >= self.limits.agents {
            return Err(exhausted(format!("{} agents", self.limits.agents)));
        }
        account.spent.agents += 1;
        Ok(())
    }

    /// The time left; waiting for people does not count.
    pub fn time_left(&self) -> Duration {
        let account = self.lock();
        let run = self.began.elapsed().saturating_sub(account.waited());
        Duration::from_secs(self.limits.seconds).saturating_sub(run)
    }

    /// Returns when the time is up.
    pub async fn time_up(&self) {
        loop {
            let left = self.time_left();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.max(Duration::from_millis(10))).await;
        }
    }

    /// While the guard lives, the clock stands: a person is being waited for.
    pub fn wait_for_person(&self) -> PersonWait {
        let mut account = self.lock();
        account.waiting += 1;
        if account.waiting == 1 {
            account.waiting_since = Some(Instant::now());
        }
        PersonWait {
            ledger: self.clone(),
        }
    }

    /// Something outside was at work for so long, until now.
    pub fn was_outside(&self, what: Outside, took: Duration) {
        let now = Instant::now();
        let since = now.checked_sub(took).unwrap_or(self.began);
        let since = since.max(self.began);
        self.lock().outside.push((what, since, now));
    }

    pub fn spent(&self) -> Spent {
        let account = self.lock();
        let mut spent = account.spent.clone();
        spent.seconds = self.began.elapsed().as_secs_f64();
        spent.waiting_seconds = account.waited().as_secs_f64();
        let of = |wanted: &[Outside]| account.outside(wanted).as_secs_f64();
        spent.model_seconds = of(&[Outside::Model]);
        spent.test_seconds = of(&[Outside::Tests]);
        spent.outside_seconds = of(&[Outside::Model, Outside::Tests]);
        spent
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// How long at least one of these was at work.
    fn outside(&self, wanted: &[Outside]) -> Duration {
        let of_these = self
            .outside
            .iter()
            .filter(|(what, ..)| wanted.contains(what));
        let mut times: Vec<_> = of_these.map(|(_, since, until)| (*since, *until)).collect();
        times.sort();
        let mut total = Duration::ZERO;
        let mut counted = self.outside.iter().map(|(_, since, _)| *since).min();
        for (since, until) in times {
            let since = counted.map_or(since, |end| since.max(end));
            total += until.saturating_duration_since(since);
            counted = Some(until.max(since));
        }
        total
    }

    fn waited(&self) -> Duration {
        self.waited
            + self
                .waiting_since
                .map_or(Duration::ZERO, |since| since.elapsed())
    }
}

fn exhausted(what: String) -> Exhausted {
    Exhausted { what }
}

/// Room in the ledger for one call; given back when it is dropped without a settlement.
#[derive(Debug)]
pub struct Reservation {
    ledger: Ledger,
    tokens: Tokens,
}

impl Reservation {
    /// Books what the call really cost.
    pub fn settle(self, reply: &ChatReply) {
        let mut account = self.ledger.lock();
        account.spent.calls += reply.calls.max(1);
        account.spent.prompt_tokens += reply.usage.prompt;
        account.spent.cached_tokens += reply.usage.cached;
        account.spent.output_tokens += reply.usage.output;
        account.spent.dollars += reply.cost;
    }

    /// Books a call that failed: it counts, its tokens are unknown.
    pub fn settle_failed(self) {
        self.ledger.lock().spent.calls += 1;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut account = self.ledger.lock();
        account.reserved_calls -= 1;
        account.reserved_tokens = account.reserved_tokens.saturating_sub(self.tokens);
    }
}

/// See [`Ledger::wait_for_person`].
#[derive(Debug)]
pub struct PersonWait {
    ledger: Ledger,
}

impl Drop for PersonWait {
    fn drop(&mut self) {
        let mut account = self.ledger.lock();
        account.waiting -= 1;
        if account.waiting == 0
            && let Some(since) = account.waiting_since.take()
        {
            account.waited += since.elapsed();
        }
    }
}
