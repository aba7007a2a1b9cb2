//! Exact sums of calls, tokens and money, without rounding errors.

use std::ops::{Add, AddAssign, SubAssign};

use super::spent::{Committed, Exhausted, exhausted};
use starling_core::{Cost, Dollars, Limits, Tokens, WorstCase};

const NANOS_PER_DOLLAR: f64 = 1e9;

/// The actual or possible cost of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    calls: u32,
    /// Prompt and output tokens together.
    tokens: u64,
    /// Billionths of a dollar.
    nanos: u64,
}

/// A limit that an amount exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exceeded {
    Calls,
    Tokens,
    Dollars,
}

impl Amount {
    pub fn of_worst(worst: &WorstCase) -> Self {
        Amount::of(&Cost::of_unknown(worst))
    }

    pub fn of(cost: &Cost) -> Self {
        Amount {
            calls: cost.calls,
            tokens: (cost.usage.prompt + cost.usage.output).0,
            // The conversion saturates: negative amounts and NaN become 0.
            nanos: (cost.dollars.0 * NANOS_PER_DOLLAR).ceil() as u64,
        }
    }

    pub fn times(self, count: u32) -> Self {
        Amount {
            calls: self.calls.saturating_mul(count),
            tokens: self.tokens.saturating_mul(count.into()),
            nanos: self.nanos.saturating_mul(count.into()),
        }
    }

    pub fn is_nothing(self) -> bool {
        self == Amount::default()
    }

    pub fn dollars(self) -> Dollars {
        Dollars(self.nanos as f64 / NANOS_PER_DOLLAR)
    }

    /// Returns the first limit that this amount exceeds; `None` if it exceeds no limit.
    pub fn exceeded(self, limits: &Limits) -> Option<Exceeded> {
        let most = limits
            .dollars
            .map(|Dollars(most)| (most * NANOS_PER_DOLLAR) as u64);
        if self.calls > limits.calls {
            Some(Exceeded::Calls)
        } else if self.tokens > limits.tokens.0 {
            Some(Exceeded::Tokens)
        } else if most.is_some_and(|most| self.nanos > most) {
            Some(Exceeded::Dollars)
        } else {
            None
        }
    }
}

impl Exceeded {
    /// Returns the error for a request that would exceed the limits in addition to `spent`.
    pub fn exhausted(self, spent: Amount, next: &WorstCase, limits: &Limits) -> Exhausted {
        let next = Amount::of_worst(next);
        exhausted(match self {
            Exceeded::Calls => format!("{} of {} model calls", spent.calls, limits.calls),
            Exceeded::Tokens => format!(
                "{} of {} tokens, the next request may need {}",
                Tokens(spent.tokens),
                limits.tokens,
                Tokens(next.tokens),
            ),
            Exceeded::Dollars => format!(
                "{} of {}, the next request may cost {}",
                spent.dollars(),
                limits.dollars.unwrap_or_default(),
                next.dollars(),
            ),
        })
    }
}

impl Add for Amount {
    type Output = Amount;
    fn add(self, other: Amount) -> Amount {
        Amount {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            nanos: self.nanos.saturating_add(other.nanos),
        }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        *self = *self + other;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Amount) {
        self.calls = self.calls.saturating_sub(other.calls);
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.nanos = self.nanos.saturating_sub(other.nanos);
    }
}

impl From<Amount> for Committed {
    fn from(amount: Amount) -> Self {
        Committed {
            calls: amount.calls,
            tokens: Tokens(amount.tokens),
            dollars: amount.dollars(),
        }
    }
}
