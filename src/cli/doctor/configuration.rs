//! The findings about the configuration.

use super::Finding;
use starling_config::{ConfigError, FileState, LoadedConfig};

pub(super) fn examine(loaded: &Result<LoadedConfig, ConfigError>) -> Vec<Finding> {
    const WHAT: &str = "configuration";
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let advice = "fix the file; `starling config explain` lists all settings";
            return vec![Finding::fail(WHAT, error.to_string(), advice)];
        }
    };
    let files = loaded.files.iter().map(|(path, state)| {
        let said = match state {
            FileState::Read => "read",
            FileState::Absent => "does not exist; the defaults are used",
            FileState::NotTrusted => {
                "not read, because the project is not trusted (`starling trust`)"
            }
            FileState::Changed => {
                "not read, because it changed after the project was trusted (`starling trust`)"
            }
        };
        Finding::ok(WHAT, format!("{}: {said}", path.display()))
    });
    let warnings = loaded.warnings.iter().map(|warning| {
        Finding::warn(
            WHAT,
            warning.to_string(),
            "`starling config explain` lists all settings",
        )
    });
    files.chain(warnings).collect()
}
