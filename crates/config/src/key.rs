//! The known keys, read off the schema of [`Config`]: one source for checks, help and manual.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::settings::Config;

/// One key that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyInfo {
    /// Dotted; the name of a model is `NAME`: `limits.calls`, `models.NAME.base_url`.
    pub key: String,
    pub doc: String,
    /// `integer`, `number`, `text`, `list of texts`, or the words to choose from.
    pub kind: String,
    /// As TOML; `None` when unset.
    pub default: Option<String>,
}

/// The JSON schema of the configuration file.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    settings
        .into_generator()
        .into_root_schema_for::<Config>()
        .to_value()
}

/// All keys, by name.
pub fn keys() -> &'static [KeyInfo] {
    static KEYS: OnceLock<Vec<KeyInfo>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let mut found = Vec::new();
        collect("", &schema(), &mut found);
        found
    })
}

/// The key by its name, with a model's own name or with `NAME`.
pub fn key_info(key: &str) -> Option<&'static KeyInfo> {
    let general = general(key);
    keys().iter().find(|info| info.key == general)
}

/// The known key that looks most like this one.
pub fn nearest(key: &str) -> Option<String> {
    let parts: Vec<&str> = key.split('.').collect();
    let general = general(key);
    let known: Vec<&str> = keys().iter().map(|info| info.key.as_str()).collect();
    let found = *similar::get_close_matches(general.as_str(), &known, 1, 0.7).first()?;
    Some(match parts.get(1) {
        Some(name) => found.replace("NAME", name),
        None => found.to_owned(),
    })
}

/// Whether this is the name of a section, in which more keys stand.
pub fn is_section(key: &str) -> bool {
    let prefix = format!("{}.", general(key));
    keys().iter().any(|info| info.key.starts_with(&prefix))
}

fn general(key: &str) -> String {
    let mut parts: Vec<&str> = key.split('.').collect();
    if parts[0] == "models" && parts.len() > 1 {
        parts[1] = "NAME";
    }
    parts.join(".")
}

fn collect(prefix: &str, schema: &Value, found: &mut Vec<KeyInfo>) {
    let join = |name: &str| match prefix {
        "" => name.to_owned(),
        _ => format!("{prefix}.{name}"),
    };
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            collect(&join(name), property, found);
        }
    } else if let Some(entry) = schema
        .get("additionalProperties")
        .filter(|entry| entry.is_object())
    {
        collect(&join("NAME"), entry, found);
    } else {
        found.push(KeyInfo {
            key: prefix.to_owned(),
            doc: text(schema.get("description")).replace('\n', " "),
            kind: kind(schema),
            default: schema.get("default").and_then(as_toml),
        });
    }
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn kind(schema: &Value) -> String {
    if let Some(words) = words(schema) {
        return words.join(" | ");
    }
    let types = match schema.get("type") {
        Some(Value::Array(types)) => types.first(),
        other => other,
    };
    match types.and_then(Value::as_str).unwrap_or_default() {
        "string" => "text".to_owned(),
        "array" => "list of texts".to_owned(),
        other => other.to_owned(),
    }
}

/// The words of an enum, wherever the schema keeps them.
fn words(schema: &Value) -> Option<Vec<String>> {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words = words.iter().filter_map(Value::as_str);
        return Some(words.map(str::to_owned).collect());
    }
    ["anyOf", "oneOf"]
        .iter()
        .filter_map(|field| schema.get(field).and_then(Value::as_array))
        .flatten()
        .find_map(words)
}

fn as_toml(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(format!("{text:?}")),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    }
}
