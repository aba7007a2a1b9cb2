//! Checks of what a run spends, as the providers count it, and of how long it works.

use std::collections::BTreeMap;
use std::time::Duration;

use starling_core::{Dollars, Tokens};
use starling_swarm::StopReason;

use super::{Judge, Request};

/// Tolerance for the time limit of a run, because its clock advances in steps.
const SLACK: Duration = Duration::from_secs(5);

/// The calls, tokens, costs and working time of a run, as the simulated providers count them.
#[derive(Default)]
pub struct Spending {
    pub calls: u32,
    pub tokens: Tokens,
    pub dollars: f64,
    /// Number of requests in the current turn of each conversation.
    pub of_turn: BTreeMap<String, u32>,
    /// Whether a provider replied without reporting usage.
    pub reported_nothing: bool,
    /// Whether a request failed after it started, so that its cost is unknown and its worst case
    /// counts.
    pub has_unknown_costs: bool,
    /// Whether a call failed after several requests.
    pub retried_in_vain: bool,
    at_work: u32,
    since: Duration,
    worked: Duration,
    is_over: bool,
}

impl Spending {
    /// Returns the kind of a request, relative to the first request of its turn.
    pub fn kind(&mut self, request: &Request) -> String {
        let count = self
            .of_turn
            .entry(request.conversation.clone())
            .or_default();
        *count += 1;
        let kind = match (request.provider.ends_with("fallback"), *count) {
            (true, _) => "fallbacks",
            (false, 1) => "calls at the same time",
            (false, _) => "retries",
        };
        kind.to_owned()
    }

    pub fn refund(&mut self, prompt: Tokens, dollars: f64) {
        self.tokens = self.tokens.saturating_sub(prompt);
        self.dollars -= dollars;
    }
}

impl Judge {
    pub(super) fn spend(&mut self, kind: &str, calls: u32, tokens: Tokens, dollars: f64) {
        let is_request = calls > 0;
        let spending = &mut self.spending;
        spending.calls += calls;
        spending.tokens += tokens;
        spending.dollars += dollars;
        let kind = match (kind, spending.reported_nothing) {
            ("fallbacks" | "retries", _) => kind.to_owned(),
            (_, true) => format!("{kind}, after a reported usage of 0"),
            (_, false) => kind.to_owned(),
        };
        let (calls, tokens, dollars) = (spending.calls, spending.tokens, spending.dollars);
        if calls > self.limits.calls && is_request {
            let kind = match (kind.split(", ").next(), self.spending.retried_in_vain) {
                (Some("calls at the same time"), true) => "after a call failed with its retries",
                (Some(kind), _) => kind,
                (None, _) => "",
            };
            let text = format!("{calls} calls of {}", self.limits.calls);
            self.broken(
                "spending stays within its limits",
                format!("calls: {kind}"),
                text,
            );
        }
        if tokens > self.limits.tokens {
            let text = format!("{tokens} tokens of {}", self.limits.tokens);
            self.broken(
                "spending stays within its limits",
                format!("tokens: {kind}"),
                text,
            );
        }
        if let Some(Dollars(most)) = self.limits.dollars
            && dollars > most + 1e-9
        {
            let text = format!("{dollars:.4} dollars of {most:.4}");
            self.broken(
                "spending stays within its limits",
                format!("dollars: {kind}"),
                text,
            );
        }
    }

    pub(super) fn work_starts(&mut self) {
        if self.spending.at_work == 0 {
            self.spending.since = self.now;
        }
        self.spending.at_work += 1;
    }

    pub(super) fn work_ends(&mut self) {
        self.spending.at_work -= 1;
        if self.spending.at_work == 0 {
            self.spending.worked += self.now.saturating_sub(self.spending.since);
        }
        let most = Duration::from_secs(self.limits.seconds) + SLACK;
        if self.spending.worked > most && !self.spending.is_over {
            self.spending.is_over = true;
            let text = format!("worked {:?} of {most:?}", self.spending.worked);
            let mechanism = "the clock stands while one review waits";
            self.broken(
                "spending stays within its limits",
                format!("seconds: {mechanism}"),
                text,
            );
        }
    }

    /// Checks that a budget is used up when a run ends because of it.
    pub(super) fn check_exhaustion(&mut self, reason: &StopReason) {
        let StopReason::LedgerEmpty { what } = reason else {
            return;
        };
        let spending = &self.spending;
        if what.ends_with("model calls") && spending.calls < self.limits.calls {
            let text = format!("{what}, but {} were made", spending.calls);
            self.broken(
                "a budget ends a run only when it is used up",
                "calls under way",
                text,
            );
            return;
        }
        let needed = what.split(" tokens, ").nth(1);
        let needed = needed.and_then(|rest| rest.split(' ').find_map(read_tokens));
        if let Some(needed) = needed
            && spending.tokens + needed < self.limits.tokens
            && !spending.reported_nothing
            && !spending.has_unknown_costs
        {
            let text = format!("{what}, but only {} are spent", spending.tokens);
            self.broken(
                "a budget ends a run only when it is used up",
                "tokens under way",
                text,
            );
        }
    }
}

/// Parses a formatted number of tokens, rounded up.
fn read_tokens(text: &str) -> Option<Tokens> {
    match text.strip_suffix('k') {
        Some(thousands) => {
            let thousands: f64 = thousands.parse().ok()?;
            Some(Tokens((thousands * 1000.0) as u64 + 100))
        }
        None => text.parse().ok().map(Tokens),
    }
}
