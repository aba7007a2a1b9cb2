//! Reads one configuration source into single values, each with its origin.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::error::ConfigError;
use super::key::{is_section, key_info, keys, nearest};
use super::settings::Config;

/// The source of a configuration value, for error messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueOrigin {
    Default,
    File {
        path: PathBuf,
        line: usize,
    },
    /// An environment variable, by name.
    Variable(String),
    /// The `-c` option on the command line.
    Option,
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueOrigin::Default => f.write_str("default"),
            ValueOrigin::File { path, line } => write!(f, "{}:{line}", path.display()),
            ValueOrigin::Variable(name) => write!(f, "environment variable {name}"),
            ValueOrigin::Option => f.write_str("option -c"),
        }
    }
}

/// A configuration value with its dotted key and its origin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConfigValue {
    pub key: String,
    pub value: Value,
    pub origin: ValueOrigin,
}

/// Reads the values of a file, including those with unknown keys.
pub(super) fn of_file(path: &Path, text: &str) -> Result<Vec<ConfigValue>, ConfigError> {
    let syntax = |error: toml::de::Error| ConfigError::Syntax {
        path: path.to_owned(),
        line: line_at(text, error.span().map_or(0, |span| span.start)),
        message: error.message().trim().to_owned(),
    };
    let values: Table = toml::from_str(text).map_err(syntax)?;
    // Check the types on the text first, because then an error has a line number.
    toml::from_str::<Config>(text).map_err(syntax)?;
    let places = DeTable::parse(text).map_err(syntax)?;
    if let Some((start, message)) = dotted(places.get_ref()) {
        return Err(ConfigError::Syntax {
            path: path.to_owned(),
            line: line_at(text, start),
            message: message.to_owned(),
        });
    }
    let mut leaves = Vec::new();
    collect("", &values, places.get_ref(), &mut |key, value, start| {
        leaves.push((key, value, line_at(text, start)));
    });
    leaves.sort_by_key(|(_, _, line)| *line);
    let leaf = |(key, value, line)| ConfigValue {
        key,
        value,
        origin: ValueOrigin::File {
            path: path.to_owned(),
            line,
        },
    };
    Ok(leaves.into_iter().map(leaf).collect())
}

/// Finds a quoted name that contains a dot, which dotted keys cannot represent. Returns its offset
/// and the error message.
fn dotted(places: &DeTable<'_>) -> Option<(usize, &'static str)> {
    let find = |table: &DeTable<'_>| {
        let mut names = table.iter().map(|(name, _)| name);
        let found = names.find(|name| name.get_ref().contains('.'))?;
        Some(found.span().start)
    };
    if let Some(start) = find(places) {
        return Some((
            start,
            "a quoted key must not contain a dot: remove the quotes",
        ));
    }
    let DeValue::Table(models) = places.get("models")?.get_ref() else {
        return None;
    };
    let message = "a model's name must not contain a dot: choose another name, and set `model` to the endpoint's name";
    Some((find(models)?, message))
}

fn collect(
    prefix: &str,
    values: &Table,
    places: &DeTable<'_>,
    found: &mut dyn FnMut(String, Value, usize),
) {
    for (name, place) in places.iter() {
        let Some(value) = values.get(name.get_ref().as_ref()) else {
            continue;
        };
        let key = match prefix {
            "" => name.get_ref().to_string(),
            _ => format!("{prefix}.{}", name.get_ref()),
        };
        match (value, Spanned::get_ref(place)) {
            (Value::Table(inner), DeValue::Table(places)) if key_info(&key).is_none() => {
                // An unknown section is reported as one unknown key.
                if is_section(&key) {
                    collect(&key, inner, places, found);
                } else {
                    found(key, value.clone(), name.span().start);
                }
            }
            _ => found(key, value.clone(), name.span().start),
        }
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.matches('\n').count() + 1
}

/// Parses the value of `-c key=value`.
pub(super) fn of_option(text: &str) -> Result<ConfigValue, ConfigError> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| ConfigError::NotAnAssignment {
            text: text.to_owned(),
        })?;
    let key = key.trim();
    if key_info(key).is_none() {
        return Err(ConfigError::UnknownKey {
            origin: ValueOrigin::Option,
            key: key.to_owned(),
            nearest: nearest(key),
        });
    }
    read_value(key, value.trim(), ValueOrigin::Option)
}

/// Reads the variables named `STARLING_<SECTION>_<KEY>`. Variables that name no known section are
/// ignored because they may belong to other programs.
pub(super) fn of_variables(
    variables: &[(String, String)],
) -> Result<Vec<ConfigValue>, ConfigError> {
    let mut leaves = Vec::new();
    for (variable, value) in variables {
        let Some(name) = variable.strip_prefix("STARLING_") else {
            continue;
        };
        let name = name.to_lowercase();
        let origin = ValueOrigin::Variable(variable.clone());
        match key_of_variable(&name) {
            Some(key) => leaves.push(read_value(&key, value, origin)?),
            None => {
                let is_ours = name.split_once('_').filter(|(first, _)| is_section(first));
                if let Some((section, rest)) = is_ours {
                    leaves.push(ConfigValue {
                        key: format!("{section}.{rest}"),
                        value: Value::String(value.clone()),
                        origin,
                    });
                }
            }
        }
    }
    Ok(leaves)
}

/// Converts the name of a variable: `limits_calls` to `limits.calls`, `models_my_box_base_url` to
/// `models.my_box.base_url`.
fn key_of_variable(name: &str) -> Option<String> {
    keys().iter().find_map(|info| {
        let flat = info.key.replace('.', "_");
        match flat.split_once("NAME") {
            None => (flat == name).then(|| info.key.clone()),
            Some((before, after)) => {
                let model = name.strip_prefix(before)?.strip_suffix(after)?;
                let is_name = !model.is_empty() && !model.starts_with('_');
                is_name.then(|| info.key.replace("NAME", model))
            }
        }
    })
}

/// Parses a value as a person types it: TOML, unquoted text, or a list with commas.
fn read_value(key: &str, text: &str, origin: ValueOrigin) -> Result<ConfigValue, ConfigError> {
    let typed = toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("value"));
    let list = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| Value::String(part.to_owned()));
    let readings = typed
        .into_iter()
        .chain([Value::String(text.to_owned()), Value::Array(list.collect())]);
    let mut first_error = None;
    for value in readings {
        match Config::deserialize(nested(key, value.clone())) {
            Ok(_) => {
                return Ok(ConfigValue {
                    key: key.to_owned(),
                    value,
                    origin,
                });
            }
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let message = first_error.map_or_else(String::new, |error| error.message().trim().to_owned());
    let message = out_of_range(text, &message).map_or(message, str::to_owned);
    Err(ConfigError::Value {
        origin,
        key: key.to_owned(),
        message,
    })
}

/// Returns a message for a whole number that its key's type, or TOML, cannot represent.
fn out_of_range(text: &str, message: &str) -> Option<&'static str> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit() || c == b'_');
    // A number that TOML can represent is an invalid value, not one of another type.
    let is_out = text.parse::<i64>().is_err() || message.starts_with("invalid value: integer");
    let reason = match text.starts_with('-') {
        true => "the number is too small",
        false => "the number is too large",
    };
    (is_number && is_out).then_some(reason)
}

/// Returns nested tables that contain one value at a dotted key.
fn nested(key: &str, value: Value) -> Table {
    let mut table = Table::new();
    insert(&mut table, key, value);
    table
}

/// Inserts a value into a table at a dotted key.
pub(super) fn insert(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((section, rest)) => {
            let entry = table
                .entry(section)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = entry {
                insert(inner, rest, value);
            }
        }
    }
}
