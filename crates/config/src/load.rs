//! Merges all configuration sources.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

use super::check::{check, secret_in_file};
use super::error::{ConfigError, ConfigWarning};
use super::key::{key_info, nearest};
use super::layer::{ConfigValue, ValueOrigin, insert, of_file, of_option, of_variables};
use super::project::{FileContent, ProjectFile};
use super::settings::Config;
use starling_core::Limits;
use starling_workspace::{MAX_FILE_BYTES, config_dir, read_text};

/// Whether the project's configuration file is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Trusted,
    NotTrusted,
    /// The file was trusted with other contents.
    Changed,
}

/// The sources of the configuration.
#[derive(Debug, Clone)]
pub struct ConfigSources {
    pub user_file: Option<PathBuf>,
    pub project_file: Option<ProjectFile>,
    pub trust: Trust,
    pub variables: Vec<(String, String)>,
    /// The values of the `-c` options.
    pub options: Vec<String>,
}

impl ConfigSources {
    /// Returns the sources of the current process for a project with this configuration file.
    pub fn of_process(project_file: ProjectFile, trust: Trust, options: Vec<String>) -> Self {
        ConfigSources {
            user_file: user_file(),
            project_file: Some(project_file),
            trust,
            variables: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            options,
        }
    }
}

/// Returns the path of the user's configuration file, whether or not it exists.
pub fn user_file() -> Option<PathBuf> {
    Some(config_dir()?.join("config.toml"))
}

/// Whether a configuration file was read, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    Read,
    Absent,
    /// The file exists, but the project is not trusted.
    NotTrusted,
    /// The file changed since the project was trusted.
    Changed,
}

/// The loaded configuration with its warnings and the state of each file.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    pub config: Config,
    pub warnings: Vec<ConfigWarning>,
    pub files: Vec<(PathBuf, FileState)>,
    origins: BTreeMap<String, ValueOrigin>,
}

impl LoadedConfig {
    /// Returns the source of a key's value.
    pub fn origin(&self, key: &str) -> ValueOrigin {
        self.origins
            .get(key)
            .cloned()
            .unwrap_or(ValueOrigin::Default)
    }
}

/// Loads and merges all sources. A missing file is not an error.
///
/// # Errors
/// Returns the first error, see [`ConfigError`].
pub fn load(sources: &ConfigSources) -> Result<LoadedConfig, ConfigError> {
    let mut merge = LayerMerger::default();
    if let Some(path) = &sources.user_file {
        merge.user_file(path)?;
    }
    if let Some(file) = &sources.project_file {
        merge.project_file(file, sources.trust)?;
    }
    for leaf in of_variables(&sources.variables)? {
        merge.leaf(leaf);
    }
    for option in &sources.options {
        merge.leaf(of_option(option)?);
    }
    merge.finish()
}

/// The owner of a configuration file.
#[derive(Debug, Clone, Copy)]
enum FileOwner {
    User,
    Project,
}

/// Whether a project's file may set a key. Only the user may choose endpoints, API keys, the
/// approver, and files that need no approval.
fn is_for_projects(key: &str) -> bool {
    let section = key.split('.').next().unwrap_or(key);
    !matches!(
        section,
        "models" | "roles" | "network" | "sandbox" | "telemetry"
    ) && !matches!(key, "run.approve" | "run.allow_write")
}

fn number(value: &Value) -> Option<f64> {
    value
        .as_float()
        .or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// The merged values so far, with their origins and warnings.
#[derive(Default)]
struct LayerMerger {
    table: Table,
    origins: BTreeMap<String, ValueOrigin>,
    warnings: Vec<ConfigWarning>,
    files: Vec<(PathBuf, FileState)>,
}

impl LayerMerger {
    fn user_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        match read_text(path, MAX_FILE_BYTES) {
            Ok(text) => self.text(path, &text, FileOwner::User),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.files.push((path.to_owned(), FileState::Absent));
                Ok(())
            }
            Err(error) => Err(ConfigError::Unreadable {
                path: path.to_owned(),
                message: error.to_string(),
            }),
        }
    }

    fn project_file(&mut self, file: &ProjectFile, trust: Trust) -> Result<(), ConfigError> {
        let path = file.path().to_owned();
        let (state, warning) = match (trust, file.content()) {
            (_, FileContent::Absent) => (FileState::Absent, None),
            (Trust::Trusted, FileContent::Text(text)) => {
                return self.text(&path, text, FileOwner::Project);
            }
            (Trust::Trusted, FileContent::Unreadable(message)) => {
                let message = message.clone();
                return Err(ConfigError::Unreadable { path, message });
            }
            (Trust::NotTrusted, FileContent::Text(_) | FileContent::Unreadable(_)) => {
                let path = path.clone();
                (
                    FileState::NotTrusted,
                    Some(ConfigWarning::NotTrusted { path }),
                )
            }
            (Trust::Changed, FileContent::Text(_) | FileContent::Unreadable(_)) => {
                let path = path.clone();
                let warning = ConfigWarning::ChangedSinceTrusted { path };
                (FileState::Changed, Some(warning))
            }
        };
        self.warnings.extend(warning);
        self.files.push((path, state));
        Ok(())
    }

    fn text(&mut self, path: &Path, text: &str, owner: FileOwner) -> Result<(), ConfigError> {
        self.files.push((path.to_owned(), FileState::Read));
        for leaf in of_file(path, text)? {
            let is_unknown = key_info(&leaf.key).is_none();
            if let Some(error) = secret_in_file(&leaf).filter(|_| is_unknown) {
                return Err(error);
            }
            match owner {
                FileOwner::Project if !is_for_projects(&leaf.key) || self.raises_limit(&leaf) => {
                    self.warnings.push(ConfigWarning::NotForProjects {
                        origin: leaf.origin,
                        key: leaf.key,
                    });
                }
                FileOwner::Project | FileOwner::User => self.leaf(leaf),
            }
        }
        Ok(())
    }

    /// Whether a project's value raises a limit. A project may only lower limits.
    fn raises_limit(&self, leaf: &ConfigValue) -> bool {
        let Some(limit) = leaf.key.strip_prefix("limits.") else {
            return false;
        };
        let defaults = Table::try_from(Limits::default()).unwrap_or_default();
        let set = self
            .table
            .get("limits")
            .and_then(|limits| limits.get(limit));
        match (
            number(&leaf.value),
            set.or_else(|| defaults.get(limit)).and_then(number),
        ) {
            (Some(wanted), Some(allowed)) => wanted > allowed,
            (None, _) | (_, None) => false,
        }
    }

    fn leaf(&mut self, leaf: ConfigValue) {
        if key_info(&leaf.key).is_none() {
            self.warnings.push(ConfigWarning::UnknownKey {
                nearest: nearest(&leaf.key),
                origin: leaf.origin,
                key: leaf.key,
            });
            return;
        }
        insert(&mut self.table, &leaf.key, leaf.value);
        self.origins.insert(leaf.key, leaf.origin);
    }

    fn finish(self) -> Result<LoadedConfig, ConfigError> {
        // The type of each value was already checked, so this error comes from no single source.
        let config = Config::deserialize(self.table).map_err(|error| ConfigError::Value {
            origin: ValueOrigin::Default,
            key: "configuration".to_owned(),
            message: error.message().to_owned(),
        })?;
        let loaded = LoadedConfig {
            config,
            warnings: self.warnings,
            files: self.files,
            origins: self.origins,
        };
        check(&loaded)?;
        Ok(loaded)
    }
}
