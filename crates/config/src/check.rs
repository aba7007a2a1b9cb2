//! Checks values that have the right type but are not valid.

use std::path::Path;

use super::error::ConfigError;
use super::layer::ConfigValue;
use super::load::LoadedConfig;
use super::settings::{ModelConfig, ModelKind};
use starling_core::Dollars;
use starling_workspace::{PathPolicy, begins_like_token};
use toml::Value;

/// Maximum configurable wait in seconds: one day.
const MOST_SECONDS: u64 = 86_400;

/// Words in the names of settings that hold an API key or another secret.
const SECRET_WORDS: [&str; 8] = [
    "apikey",
    "apitoken",
    "accesskey",
    "accesstoken",
    "authtoken",
    "authorization",
    "password",
    "secret",
];
/// Like [`SECRET_WORDS`], for the ends of the names of a model's settings.
const SECRETS_OF_MODELS: [&str; 3] = ["key", "token", "bearer"];
/// Ends of the names of settings that say where a secret is.
const PLACES: [&str; 5] = ["env", "variable", "var", "file", "path"];

/// Returns an error if a file contains an API key or another secret. `value` is a value of a file
/// with an unknown key. The error does not show the secret.
pub(super) fn secret_in_file(value: &ConfigValue) -> Option<ConfigError> {
    let key = secret_key(&value.key, &value.value)?;
    Some(ConfigError::Value {
        origin: value.origin.clone(),
        key,
        message: "a key does not belong in a file. Put it into an environment variable, and write \
                  the variable's name as models.NAME.api_key_env, for example OPENAI_API_KEY. A key \
                  that stood in a file should be replaced"
            .to_owned(),
    })
}

/// Returns the dotted key of the first secret in a value.
fn secret_key(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Table(inner) => inner
            .iter()
            .find_map(|(name, value)| secret_key(&format!("{key}.{name}"), value)),
        Value::Array(items) => items.iter().find_map(|item| secret_key(key, item)),
        Value::String(_) => is_secret_name(key).then(|| key.to_owned()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => None,
    }
}

fn is_secret_name(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or(key).to_lowercase();
    let name = name.replace(['_', '-'], "");
    let is_of_model = key.starts_with("models.");
    let names_secret = SECRET_WORDS.iter().any(|word| name.contains(word))
        || is_of_model && SECRETS_OF_MODELS.iter().any(|end| name.ends_with(end));
    names_secret && !PLACES.iter().any(|end| name.ends_with(end))
}

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
    plain && starts_well && text.len() <= 64 && !looks_random && !begins_like_token(text)
}
