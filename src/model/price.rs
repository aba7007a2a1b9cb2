//! What tokens cost: the table of list prices and the arithmetic.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::ports::{Dollars, Usage};

/// A price in dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Price {
    pub prompt: f64,
    pub cached: f64,
    pub output: f64,
}

impl Price {
    /// What runs on the user's own machine costs nothing.
    pub const FREE: Price = Price {
        prompt: 0.0,
        cached: 0.0,
        output: 0.0,
    };

    /// The cost of one request.
    pub fn cost(&self, usage: Usage) -> Dollars {
        let fresh = usage.prompt.saturating_sub(usage.cached);
        let millionths = fresh.0 as f64 * self.prompt
            + usage.cached.0 as f64 * self.cached
            + usage.output.0 as f64 * self.output;
        Dollars(millionths / 1e6)
    }
}

/// The list price of a well-known model, by the name that its provider gives it. A vendor in front
/// (`openai/gpt-4o`) and a release behind (`gpt-4o-2024-11-20`) make no difference.
pub fn list_price(model: &str) -> Option<Price> {
    let name = model.rsplit('/').next().unwrap_or(model);
    table()
        .iter()
        .find(|entry| entry.models.iter().any(|known| is_release(name, known)))
        .map(|entry| entry.price)
}

fn is_release(name: &str, known: &str) -> bool {
    let Some(rest) = name.strip_prefix(known) else {
        return false;
    };
    let release = rest.strip_prefix(['-', '@', ':']).unwrap_or("");
    rest.is_empty()
        || release == "latest"
        || (release.len() >= 3 && release.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

#[derive(Deserialize)]
struct Table {
    price: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    models: Vec<String>,
    #[serde(flatten)]
    price: Price,
}

fn table() -> &'static [Entry] {
    static TABLE: OnceLock<Vec<Entry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        toml::from_str::<Table>(include_str!("prices.toml"))
            .expect("a test reads the table that is compiled in")
            .price
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Tokens;

    #[test]
    fn names_and_their_releases_have_a_price_and_neighbours_do_not() {
        let full = list_price("gpt-4o").unwrap();
        assert_eq!(list_price("gpt-4o-2024-11-20"), Some(full));
        assert_eq!(list_price("openai/gpt-4o"), Some(full));
        assert_eq!(list_price("gpt-4o-latest"), Some(full));
        assert_ne!(list_price("gpt-4o-mini"), Some(full));
        assert_eq!(list_price("gpt-4o-something"), None);
        assert_eq!(list_price("gpt-4o-1"), None);
        assert_eq!(list_price("qwen2.5-coder"), None);
    }

    #[test]
    fn no_model_has_two_prices() {
        let mut names: Vec<_> = table().iter().flat_map(|entry| &entry.models).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn cached_tokens_are_part_of_the_prompt() {
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
    }
}
