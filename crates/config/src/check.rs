//! Checks values that have the right type but are not valid.

use std::path::Path;

use super::error::ConfigError;
use super::load::LoadedConfig;
use super::settings::{ModelConfig, ModelKind};
use starling_core::Dollars;
use starling_workspace::PathPolicy;

/// Maximum configurable wait in seconds: one day.
const MOST_SECONDS: u64 = 86_400;

/// Returns an error for the first invalid value.
pub(super) fn check(loaded: &LoadedConfig) -> Result<(), ConfigError> {
    let wrong = |key: String, message: String| ConfigError::Value {
        origin: loaded.origin(&key),
        key,
        message,
    };
    let config = &loaded.config;
    for (name, model) in &config.models {
        if let Some((key, message)) = wrong_in_model(model) {
            return Err(wrong(format!("models.{name}.{key}"), message));
        }
    }
    let policy = PathPolicy::of(Path::new("/"));
    if let Err(bad) = policy.allowing(&config.run.allow_write) {
        return Err(wrong("run.allow_write".to_owned(), bad.to_string()));
    }
    let is_relative = |path: &&String| !Path::new(path).is_absolute();
    if let Some(path) = config.sandbox.readable.iter().find(is_relative) {
        let message = format!("{path:?} is not an absolute path");
        return Err(wrong("sandbox.readable".to_owned(), message));
    }
    let at_least_one = [
        ("limits.calls", u64::from(config.limits.calls)),
        ("limits.tokens", config.limits.tokens.0),
        ("limits.seconds", config.limits.seconds),
        ("limits.agents", u64::from(config.limits.agents)),
        ("limits.turns", u64::from(config.limits.turns)),
        ("tests.seconds", config.tests.seconds),
        ("language.seconds", config.language.seconds),
        ("network.timeout_seconds", config.network.timeout_seconds),
        ("network.idle_seconds", config.network.idle_seconds),
        ("network.attempts", u64::from(config.network.attempts)),
    ];
    for (key, value) in at_least_one {
        if value == 0 {
            return Err(wrong(key.to_owned(), "must be at least 1".to_owned()));
        }
        if key.ends_with("seconds") && value > MOST_SECONDS {
            let message = format!("must be at most {MOST_SECONDS} (one day)");
            return Err(wrong(key.to_owned(), message));
        }
    }
    match config.limits.dollars {
        Some(Dollars(dollars)) if !(dollars.is_finite() && dollars > 0.0) => Err(wrong(
            "limits.dollars".to_owned(),
            "must be more than 0; leave it out for no limit".to_owned(),
        )),
        Some(_) | None => Ok(()),
    }
}

fn wrong_in_model(model: &ModelConfig) -> Option<(&'static str, String)> {
    let say = |key, message: &str| Some((key, message.to_owned()));
    if let Some(variable) = &model.api_key_env
        && !is_variable_name(variable)
    {
        return say(
            "api_key_env",
            "is not the name of an environment variable, and may be a key. Put the key into a variable \
             and write the variable's name here, for example OPENAI_API_KEY. A key that stood in a file \
             should be replaced",
        );
    }
    if let Some(url) = &model.base_url
        && !(url.starts_with("http://") || url.starts_with("https://"))
    {
        return say("base_url", "must begin with http:// or https://");
    }
    if let Some(url) = &model.base_url
        && url.split('/').nth(2).is_some_and(|host| host.contains('@'))
    {
        return say(
            "base_url",
            "contains a user name or password; use api_key_env instead",
        );
    }
    let is_read = matches!(
        model.kind,
        ModelKind::Replay | ModelKind::Oracle | ModelKind::Socket
    );
    if is_read && model.path.is_none() {
        return say(
            "path",
            "is missing: a replay, an oracle or a socket needs the path of its file",
        );
    }
    let prices = [
        ("price_prompt", model.price_prompt),
        ("price_cached", model.price_cached),
        ("price_output", model.price_output),
        ("temperature", model.temperature),
    ];
    for (key, value) in prices {
        if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
            return say(key, "must be 0 or more");
        }
    }
    if model.price_prompt.is_some() != model.price_output.is_some() {
        return say(
            "price_prompt",
            "a price needs both price_prompt and price_output",
        );
    }
    [
        ("context_window", model.context_window),
        ("max_output", model.max_output),
    ]
    .into_iter()
    .find(|(_, value)| *value == Some(0))
    .map(|(key, _)| (key, "must be at least 1".to_owned()))
}

/// Whether a text looks like the name of an environment variable and not like an API key. An API
/// key can consist of the same characters as a name, so its length, its digits and known prefixes
/// of keys decide.
fn is_variable_name(text: &str) -> bool {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let starts_well = text
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let looks_random =
        text.len() > 20 && !text.contains('_') && text.chars().any(|c| c.is_ascii_digit());
    let known_prefix = ["sk_", "gsk_", "hf_", "ghp_", "pk_", "key_"]
        .iter()
        .any(|prefix| text.starts_with(prefix));
    plain && starts_well && text.len() <= 64 && !looks_random && !known_prefix
}
