//! The list prices of well-known models.

use std::sync::OnceLock;

use serde::Deserialize;

use starling_core::Price;

/// Returns the list price of a well-known model by its provider's name. A vendor prefix
/// (`openai/gpt-4o`) and a release suffix (`gpt-4o-2024-11-20`) are ignored.
pub fn list_price(model: &str) -> Option<Price> {
    let name = model.rsplit('/').next().unwrap_or(model);
    table()
        .iter()
        .find(|entry| entry.models.iter().any(|known| is_release(name, known)))
        .map(|entry| entry.price)
}

/// Returns the names of all models in the price table.
pub fn priced_models() -> impl Iterator<Item = &'static str> {
    table()
        .iter()
        .flat_map(|entry| entry.models.iter().map(String::as_str))
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

/// The contents of `prices.toml`.
#[derive(Deserialize)]
struct PriceTable {
    price: Vec<PriceEntry>,
}

/// The price of models that cost the same.
#[derive(Deserialize)]
struct PriceEntry {
    models: Vec<String>,
    #[serde(flatten)]
    price: Price,
}

fn table() -> &'static [PriceEntry] {
    static TABLE: OnceLock<Vec<PriceEntry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        toml::from_str::<PriceTable>(include_str!("prices.toml"))
            .expect("a test reads the table that is compiled in")
            .price
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_price_matches_dated_releases_but_not_similar_names() {
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
    fn price_table_lists_each_model_once() {
        let mut names: Vec<_> = table().iter().flat_map(|entry| &entry.models).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
