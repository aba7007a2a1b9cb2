//! `starling config explain`: the meaning, value and origin of each setting.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use starling_config::{KeyInfo, LoadedConfig, is_section, key_info, keys, nearest};

/// One configuration setting, with its value and origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    pub key: String,
    /// The value as TOML; `None` if unset.
    pub value: Option<String>,
    /// The origin of the value.
    pub origin: String,
    pub default: Option<String>,
    /// The type of the setting.
    #[serde(rename = "type")]
    pub kind: String,
    pub doc: String,
}

/// The error for a key that no setting has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown setting {key}{}; `starling config explain` lists all settings", suggestion(.nearest))]
pub struct NoSuchKey {
    key: String,
    nearest: Option<String>,
}

fn suggestion(nearest: &Option<String>) -> String {
    match nearest {
        Some(key) => format!(": did you mean {key}?"),
        None => String::new(),
    }
}

/// Explains one setting, all settings of a section, or all settings.
///
/// # Errors
/// No setting has this key. The error suggests the nearest key.
pub fn explain(loaded: &LoadedConfig, key: Option<&str>) -> Result<Vec<Explained>, NoSuchKey> {
    let values = serde_json::to_value(&loaded.config).unwrap_or_default();
    let names = match key {
        None => names(loaded, ""),
        Some(key) if key_info(key).is_some() => vec![key.to_owned()],
        Some(section) if is_section(section) => names(loaded, &format!("{section}.")),
        Some(unknown) => {
            return Err(NoSuchKey {
                key: unknown.to_owned(),
                nearest: nearest(unknown),
            });
        }
    };
    let known = names
        .iter()
        .filter_map(|name| Some((name, key_info(name)?)));
    Ok(known
        .map(|(name, info)| explain_one(loaded, &values, name, info))
        .collect())
}

/// Returns the keys with a prefix. Model keys are repeated for each model, or listed once for the
/// placeholder `NAME`.
fn names(loaded: &LoadedConfig, prefix: &str) -> Vec<String> {
    let asked = prefix
        .strip_prefix("models.")
        .map(|rest| rest.trim_end_matches('.').to_owned())
        .filter(|name| !name.is_empty());
    let models: Vec<String> = match asked {
        Some(name) => vec![name],
        None if loaded.config.models.is_empty() => vec!["NAME".to_owned()],
        None => loaded.config.models.keys().cloned().collect(),
    };
    let expand = |info: &KeyInfo| match info.key.contains("NAME") {
        true => models
            .iter()
            .map(|model| info.key.replace("NAME", model))
            .collect(),
        false => vec![info.key.clone()],
    };
    let all = keys().iter().flat_map(expand);
    all.filter(|key| key.starts_with(prefix)).collect()
}

fn explain_one(loaded: &LoadedConfig, values: &Value, key: &str, info: &KeyInfo) -> Explained {
    let value = key
        .split('.')
        .try_fold(values, |value, name| value.get(name))
        .filter(|value| !value.is_null())
        .map(Value::to_string);
    Explained {
        key: key.to_owned(),
        value,
        origin: loaded.origin(key).to_string(),
        default: info.default.clone(),
        kind: info.kind.clone(),
        doc: info.doc.clone(),
    }
}

/// Formats settings for the terminal.
pub fn as_text(settings: &[Explained]) -> String {
    let mut text = String::new();
    for setting in settings {
        let value = setting.value.as_deref().unwrap_or("(unset)");
        let default = setting.default.as_deref().unwrap_or("(unset)");
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{} = {value}\n  from {}; default {default}; {}\n  {}\n",
            setting.key, setting.origin, setting.kind, setting.doc
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_config::{ConfigSources, Trust, load};

    fn loaded(options: &[&str]) -> LoadedConfig {
        load(&ConfigSources {
            user_file: None,
            project_file: None,
            trust: Trust::NotTrusted,
            variables: Vec::new(),
            options: options.iter().map(|text| (*text).to_owned()).collect(),
        })
        .unwrap()
    }

    fn text(options: &[&str], key: &str) -> String {
        as_text(&explain(&loaded(options), Some(key)).unwrap())
    }

    #[test]
    fn setting_is_explained_with_its_value_and_origin() {
        assert_eq!(
            text(&["limits.calls=20"], "limits.calls"),
            "limits.calls = 20\n  from option -c; default 60; integer\n  \
             Maximum number of requests to models, including retries and continuations.\n"
        );
        let unset = text(&[], "limits.dollars");
        assert!(
            unset
                .starts_with("limits.dollars = (unset)\n  from default; default (unset); number\n"),
            "{unset}"
        );
    }

    #[test]
    fn a_section_and_all_settings_can_be_listed() {
        let section = explain(&loaded(&[]), Some("tests")).unwrap();
        let names: Vec<_> = section.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(names, ["tests.command", "tests.setup", "tests.seconds"]);
        assert_eq!(explain(&loaded(&[]), None).unwrap().len(), keys().len());
    }

    #[test]
    fn settings_of_models_are_listed_under_the_model_names() {
        let options = ["models.big.model=x", "models.small.model=y"];
        let all = explain(&loaded(&options), None).unwrap();
        let is = |key: &str| all.iter().any(|one| one.key == key);
        assert!(is("models.big.base_url") && is("models.small.base_url"));
        assert!(!is("models.NAME.base_url"));
        let one = explain(&loaded(&options), Some("models.big")).unwrap();
        assert!(one.iter().all(|one| one.key.starts_with("models.big.")));
        assert!(text(&options, "models.big.model").starts_with("models.big.model = \"x\"\n"));
    }

    #[test]
    fn error_for_an_unknown_setting_suggests_the_nearest_one() {
        let error = explain(&loaded(&[]), Some("limit.call")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown setting limit.call: did you mean limits.calls?; `starling config explain` lists all settings"
        );
    }
}
