//! The known configuration keys, derived from the JSON schema of [`Config`]. Checks, help and
//! manual all use this list.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::settings::Config;

/// A configuration key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyInfo {
    /// The dotted key, for example `limits.calls`. The name of a model is written `NAME`:
    /// `models.NAME.base_url`.
    pub key: String,
    pub doc: String,
    /// The type: `integer`, `number`, `text`, `list of texts`, or the allowed words.
    pub kind: String,
    /// The default value as TOML; `None` if the key has no default.
    pub default: Option<String>,
}

/// Returns the JSON schema of the configuration file.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    settings
        .into_generator()
        .into_root_schema_for::<Config>()
        .to_value()
}

/// Returns all keys, sorted by name.
pub fn keys() -> &'static [KeyInfo] {
    static KEYS: OnceLock<Vec<KeyInfo>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let mut found = Vec::new();
        collect("", &schema(), &mut found);
        found
    })
}

/// Returns a key by its name. A model's key may contain the model's name or `NAME`.
pub fn key_info(key: &str) -> Option<&'static KeyInfo> {
    let general = general(key);
    keys().iter().find(|info| info.key == general)
}

/// Returns the known key that is most similar to an unknown one.
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

/// Whether a name is a section, which contains keys.
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

/// Returns the allowed words of an enum, which a schema can list in several ways.
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
