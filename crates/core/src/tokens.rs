//! Counts of tokens. All estimates of how many tokens a text or a prompt has are in this module.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use super::model::{Message, ToolCall, ToolSpec};

/// Tokens that a chat template adds around each message and around each tool.
const TEMPLATE: Tokens = Tokens(16);

/// A count of model tokens.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Tokens(pub u64);

impl Tokens {
    /// A cheap, slightly high estimate for text that was not tokenized: one token for 3.5 bytes.
    pub fn estimate(text: &str) -> Self {
        Tokens((text.len() as u64 * 2).div_ceil(7))
    }

    /// An upper bound for source code and prose that was not tokenized: one token for two bytes,
    /// and one for each digit and each byte that is not ASCII, which many vocabularies split.
    pub fn at_most(text: &str) -> Self {
        let is_split = |byte: &u8| byte.is_ascii_digit() || !byte.is_ascii();
        let split = text.bytes().filter(is_split).count() as u64;
        Tokens(split + (text.len() as u64 - split).div_ceil(2))
    }

    /// Returns the length of a prompt, including tools and chat template. `guess` returns the
    /// length of one text: [`Tokens::estimate`] or [`Tokens::at_most`].
    pub fn of_prompt(
        messages: &[Message],
        tools: &[ToolSpec],
        guess: impl Fn(&str) -> Tokens,
    ) -> Self {
        let call = |call: &ToolCall| guess(&call.name) + guess(&call.arguments) + TEMPLATE;
        let message = |message: &Message| {
            let calls = match message {
                Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
                Message::System { .. } | Message::User { .. } | Message::Tool { .. } => &[],
            };
            guess(message.text()) + calls.iter().map(call).sum() + TEMPLATE
        };
        let tool = |tool: &ToolSpec| {
            let parameters = tool.parameters.to_string();
            guess(&tool.name) + guess(&tool.description) + guess(&parameters) + TEMPLATE
        };
        let messages: Tokens = messages.iter().map(message).sum();
        messages + tools.iter().map(tool).sum() + TEMPLATE
    }

    pub fn saturating_sub(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_sub(other.0))
    }
}

impl Add for Tokens {
    type Output = Tokens;
    fn add(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Tokens>>(iter: I) -> Tokens {
        iter.fold(Tokens(0), Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n}"),
            n => write!(f, "{:.1}k", n as f64 / 1000.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_estimate_rounds_up_and_sums_saturate() {
        assert_eq!(Tokens::estimate(""), Tokens(0));
        assert_eq!(Tokens::estimate("a"), Tokens(1));
        assert_eq!(Tokens::estimate(&"a".repeat(7)), Tokens(2));
        assert_eq!(Tokens::estimate(&"a".repeat(8)), Tokens(3));
        assert_eq!(Tokens(u64::MAX) + Tokens(1), Tokens(u64::MAX));
        assert_eq!(Tokens(1).saturating_sub(Tokens(2)), Tokens(0));
        assert_eq!(
            [Tokens(1), Tokens(2)].into_iter().sum::<Tokens>(),
            Tokens(3)
        );
    }

    #[test]
    fn upper_bound_counts_digits_and_non_ascii_text_by_the_byte() {
        assert_eq!(Tokens::at_most(""), Tokens(0));
        assert_eq!(Tokens::at_most("abc"), Tokens(2));
        assert_eq!(Tokens::at_most("1234"), Tokens(4));
        assert_eq!(Tokens::at_most("漢字"), Tokens(6));
        let code = "def total(items):\n    return sum(item.price for item in items)\n";
        assert!(Tokens::at_most(code) > Tokens::estimate(code));
    }

    #[test]
    fn prompt_tokens_are_the_sum_of_its_messages_and_tools() {
        let user = Message::User {
            text: "a".repeat(7),
        };
        let call = ToolCall {
            id: String::new(),
            name: "b".repeat(7),
            arguments: "c".repeat(7),
        };
        let assistant = Message::Assistant {
            text: String::new(),
            tool_calls: vec![call],
        };
        let tool = ToolSpec {
            name: "d".repeat(7),
            description: String::new(),
            parameters: serde_json::json!({}),
        };
        let of = |messages: &[Message], tools: &[ToolSpec]| {
            Tokens::of_prompt(messages, tools, Tokens::estimate)
        };
        assert_eq!(of(&[], &[]), Tokens(16));
        assert_eq!(of(std::slice::from_ref(&user), &[]), Tokens(16 + 18));
        assert_eq!(of(&[user, assistant], &[]), Tokens(16 + 18 + 16 + 20));
        assert_eq!(of(&[], &[tool]), Tokens(16 + 16 + 2 + 1));
    }
}
