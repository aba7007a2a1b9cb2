//! Predictions in the format of SWE-bench's graders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The proposed change for an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    pub instance_id: String,
    #[serde(default)]
    pub model_name_or_path: String,
    /// A unified diff; empty or missing if there is no change.
    #[serde(default)]
    pub model_patch: Option<String>,
}

/// Error when predictions cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PredictionsError {
    #[error("{}: {error}", .path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(
        "{}: {error}; expected predictions in the format of SWE-bench: JSON Lines, or a JSON list",
        .path.display()
    )]
    NoPredictions {
        path: PathBuf,
        error: serde_json::Error,
    },
    #[error("{}: the instance {id} has two predictions", .path.display())]
    Twice { path: PathBuf, id: String },
}

/// Returns all predictions in a file, by instance id. The file can contain JSON lines, a list, or
/// an object by instance id.
///
/// # Errors
/// Fails if the file cannot be read or has another format.
pub fn read_predictions(path: &Path) -> Result<BTreeMap<String, Prediction>, PredictionsError> {
    let text = std::fs::read_to_string(path).map_err(|error| PredictionsError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    let wrong = |error| PredictionsError::NoPredictions {
        path: path.to_owned(),
        error,
    };
    let mut found = BTreeMap::new();
    for prediction in parsed(&text).map_err(wrong)? {
        let id = prediction.instance_id.clone();
        if found.insert(id.clone(), prediction).is_some() {
            return Err(PredictionsError::Twice {
                path: path.to_owned(),
                id,
            });
        }
    }
    Ok(found)
}

fn parsed(text: &str) -> Result<Vec<Prediction>, serde_json::Error> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    if let Ok(by_instance) = serde_json::from_str::<BTreeMap<String, Prediction>>(text) {
        return Ok(by_instance.into_values().collect());
    }
    let rows = text.lines().filter(|row| !row.trim().is_empty());
    rows.map(serde_json::from_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<String, Prediction>, PredictionsError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        std::fs::write(&path, text).unwrap();
        read_predictions(&path)
    }

    const ONE: &str = r#"{"instance_id":"a__b-1","model_name_or_path":"m","model_patch":"P"}"#;

    #[test]
    fn predictions_are_read_from_json_lines_a_list_and_a_map() {
        for text in [
            ONE.to_owned(),
            format!("[{ONE}]"),
            format!("{{\"a__b-1\":{ONE}}}"),
        ] {
            let found = read(&text).unwrap();
            assert_eq!(found["a__b-1"].model_patch.as_deref(), Some("P"), "{text}");
        }
        let none = read(r#"{"instance_id":"x","model_patch":null}"#).unwrap();
        assert_eq!(none["x"].model_patch, None);
    }

    #[test]
    fn invalid_prediction_is_rejected() {
        assert!(read("nonsense").is_err());
        let twice = read(&format!("{ONE}\n{ONE}\n")).unwrap_err();
        assert!(twice.to_string().contains("a__b-1 has two predictions"));
    }
}
