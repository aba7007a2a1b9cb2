//! `starling doctor`: reports problems of the installation and how to fix them.

mod configuration;
mod language;
mod models;
mod system;

#[cfg(test)]
mod tests;

use std::path::Path;

use serde::Serialize;

use starling_config::{Config, ConfigError, LoadedConfig};
use starling_lang::ProgramSearch;
use starling_sandbox::cache_dir;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Ok,
    /// Something works less well than it could.
    Warn,
    /// A requested feature cannot work.
    Fail,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub health: Health,
    pub what: String,
    pub detail: String,
    /// The recommended action; empty if there is none.
    pub advice: String,
}

impl Finding {
    fn ok(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Finding {
            health: Health::Ok,
            what: what.into(),
            detail: detail.into(),
            advice: String::new(),
        }
    }

    fn warn(what: impl Into<String>, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding {
            health: Health::Warn,
            advice: advice.into(),
            ..Finding::ok(what, detail)
        }
    }

    fn fail(what: impl Into<String>, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding {
            health: Health::Fail,
            ..Finding::warn(what, detail, advice)
        }
    }
}

/// Checks everything that a run in this directory needs. Every check has a deadline.
pub async fn examine(
    root: &Path,
    loaded: &Result<LoadedConfig, ConfigError>,
    choice: Option<&str>,
    places: &ProgramSearch,
) -> Vec<Finding> {
    let mut findings = configuration::examine(loaded);
    if let Ok(loaded) = loaded {
        let variables = |name: &str| std::env::var(name).ok();
        findings.extend(models::examine(&loaded.config, choice, &variables).await);
        if let Some(cache) = cache_dir() {
            let cache = cache.join("language");
            findings.extend(language::examine(&loaded.config.language, places, &cache).await);
        }
    }
    let config = match loaded {
        Ok(loaded) => loaded.config.clone(),
        Err(_) => Config::default(),
    };
    findings.extend(system::examine(root, config).await);
    findings
}

/// Returns the worst health of the findings.
pub fn verdict(findings: &[Finding]) -> Health {
    findings
        .iter()
        .map(|finding| finding.health)
        .max()
        .unwrap_or(Health::Ok)
}

/// Formats the findings for the terminal: one line each, with the advice below.
pub fn as_text(findings: &[Finding]) -> String {
    let width = findings
        .iter()
        .map(|finding| finding.what.chars().count())
        .max()
        .unwrap_or(0);
    findings
        .iter()
        .map(|finding| {
            let health = match finding.health {
                Health::Ok => "ok  ",
                Health::Warn => "warn",
                Health::Fail => "FAIL",
            };
            let advice = match finding.advice.as_str() {
                "" => String::new(),
                advice => format!("      {:width$}  -> {advice}\n", ""),
            };
            format!(
                "{health}  {:width$}  {}\n{advice}",
                finding.what, finding.detail
            )
        })
        .collect()
}
