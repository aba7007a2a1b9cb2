//! Reads the values of options of the command line.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

use starling_core::{Approval, Driver};
use starling_platform::files::PathExt;
use starling_swarm::ProposalId;

/// Reads who approves changes.
pub fn approval() -> impl TypedValueParser<Value = Approval> {
    named(&["ask", "proxy", "auto"])
}

/// Reads a driver by its name.
pub fn driver() -> impl TypedValueParser<Value = Driver> {
    named(&["swarm", "single"])
}

/// Reads one of the names that serde gives to the values of an enumeration.
fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names)
        .try_map(|name| serde_json::from_value::<T>(serde_json::Value::String(name)))
}

/// Reads a path and makes it absolute. Every option for a path is resolved here, because a run's
/// processes have other current directories.
pub fn path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(std::path::absolute::<PathBuf>)
}

/// Reads the path of a file or directory that exists, and resolves its links.
pub fn existing_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| path.canonical())
}

pub fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        Ok(_) | Err(_) => {
            Err("expected an amount in US dollars greater than 0, for example 0.25".to_owned())
        }
    }
}

pub fn proposal(text: &str) -> Result<ProposalId, String> {
    let number = text.strip_prefix('#').unwrap_or(text).parse();
    number
        .map(ProposalId)
        .map_err(|_| "expected the number of a proposal, for example 3".to_owned())
}
