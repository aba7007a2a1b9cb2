//! What the user can do about a run that ended because its model was not available.

use serde::{Deserialize, Serialize};

use starling_models::weights;

/// A remedy that a client offers next to *Try again*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "remedy", rename_all = "snake_case")]
pub enum Remedy {
    /// Download the weights of a known local model, which are not on the disk.
    Download { model: String, bytes: u64 },
    /// Provide the key of an endpoint, which is missing or refused.
    Key,
    /// Start the endpoint, which does not answer.
    Endpoint,
    /// Choose another model: the configured one cannot be used.
    Model,
}

impl Remedy {
    /// Determines the remedy from the text of a `ModelError`; `None` for other errors.
    pub fn of(error: &str) -> Option<Remedy> {
        let has = |part: &str| error.contains(part);
        if let Some(model) = missing_weights(error) {
            return Some(model);
        }
        if has(", which holds its key, is not set")
            || has("request refused (401)")
            || has("request refused (403)")
        {
            return Some(Remedy::Key);
        }
        if has("this build of Starling has no local models") || has("no model is called") {
            return Some(Remedy::Model);
        }
        // If the editor did not answer, the message is not about an endpoint.
        let silent = !has("the editor refused the edit")
            && (has(": connection failed: ")
                || has(": no answer within ")
                || has(": the server answered 5"));
        silent.then_some(Remedy::Endpoint)
    }
}

fn missing_weights(error: &str) -> Option<Remedy> {
    let (_, rest) = error.split_once("fetch them by `starling models pull ")?;
    let (name, _) = rest.split_once('`')?;
    let known = weights::known().iter().find(|model| model.name == name)?;
    Some(Remedy::Download {
        model: name.to_owned(),
        bytes: known.bytes,
    })
}

/// Formats a size for a button: `1.1 GB`.
pub fn size(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::ModelError;
    use starling_models::weights::{DEFAULT_MODEL, WeightsError};

    fn unavailable(message: String) -> String {
        let model = "local".to_owned();
        ModelError::Unavailable { model, message }.to_string()
    }

    #[test]
    fn remedy_is_determined_from_the_model_error() {
        let missing = WeightsError::Missing {
            name: DEFAULT_MODEL.to_owned(),
            path: "/cache/x.gguf".into(),
        };
        let of = |error: String| Remedy::of(&error);
        let Some(Remedy::Download { model, bytes }) = of(unavailable(missing.to_string())) else {
            panic!("weights can be fetched");
        };
        assert_eq!(
            (model.as_str(), size(bytes).as_str()),
            (DEFAULT_MODEL, "1.1 GB")
        );
        let refused = |status| {
            of(ModelError::Refused {
                model: "gpt".to_owned(),
                status,
                message: "no".to_owned(),
            }
            .to_string())
        };
        assert_eq!(refused(401), Some(Remedy::Key));
        assert_eq!(refused(400), None);
        let unreachable = ModelError::Unreachable {
            model: "gpt".to_owned(),
            message: "Connection refused".to_owned(),
        };
        assert_eq!(of(unreachable.to_string()), Some(Remedy::Endpoint));
        assert_eq!(Remedy::of("the tests fail"), None);
        let late = "a.py: the editor refused the edit: no answer within 10 s";
        assert_eq!(Remedy::of(late), None);
    }

    #[test]
    fn missing_api_key_is_distinguished_from_other_errors() {
        use starling_config::Config;
        use starling_models::registry::Models;

        let opened = Models::open_with(&Config::default(), Some("openai:gpt"), &|_| None);
        let error = opened.err().unwrap().to_string();
        assert_eq!(Remedy::of(&error), Some(Remedy::Key), "{error}");
        let opened = Models::open_with(&Config::default(), Some("nobody"), &|_| None);
        let error = opened.err().unwrap().to_string();
        assert_eq!(Remedy::of(&error), Some(Remedy::Model), "{error}");
    }
}
