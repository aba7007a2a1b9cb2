//! All layers together.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::Deserialize;
use toml::{Table, Value};

use super::check::check;
use super::error::{ConfigError, ConfigWarning};
use super::key::{key_info, nearest};
use super::layer::{ConfigValue, ValueOrigin, insert, of_file, of_option, of_variables};
use super::project::{Content, ProjectFile};
use super::settings::Config;
use starling_core::Limits;
use starling_workspace::{MAX_FILE_BYTES, read_text};

/// Whether the project's own configuration may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Trusted,
    NotTrusted,
    /// It was trusted with another content.
    Changed,
}

/// Where settings are looked for.
#[derive(Debug, Clone)]
pub struct Sources {
    pub user_file: Option<PathBuf>,
    pub project_file: Option<ProjectFile>,
    pub trust: Trust,
    pub variables: Vec<(String, String)>,
    /// The values of `-c`.
    pub options: Vec<String>,
}

impl Sources {
    /// Those of this process for a project with this file.
    pub fn of_process(project_file: ProjectFile, trust: Trust, options: Vec<String>) -> Self {
        Sources {
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

/// The user's own file, whether it is there or not.
pub fn user_file() -> Option<PathBuf> {
    let dirs = etcetera::choose_base_strategy().ok()?;
    Some(dirs.config_dir().join("starling").join("config.toml"))
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    Read,
    Absent,
    /// It is there, but the project is not trusted.
    NotTrusted,
    /// It changed since the project was trusted.
    Changed,
}

/// The configuration, with what is to be known about it.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    pub config: Config,
    pub warnings: Vec<ConfigWarning>,
    pub files: Vec<(PathBuf, FileState)>,
    origins: BTreeMap<String, ValueOrigin>,
}

impl LoadedConfig {
    /// Where the value of a key comes from.
    pub fn origin(&self, key: &str) -> ValueOrigin {
        self.origins
            .get(key)
            .cloned()
            .unwrap_or(ValueOrigin::Default)
    }
}

/// Reads all layers.
///
/// # Errors
/// See [`ConfigError`]: the first thing that is wrong. A missing file is not.
pub fn load(sources: &Sources) -> Result<LoadedConfig, ConfigError> {
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

/// Whose file it is.
#[derive(Debug, Clone, Copy)]
enum FileOwner {
    User,
    Project,
}

/// Which keys a project may set. Where requests go, with which keys, who approves and what needs no
/// approval are the user's alone.
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
            (_, Content::Absent) => (FileState::Absent, None),
            (Trust::Trusted, Content::Text(text)) => {
                return self.text(&path, text, FileOwner::Project);
            }
            (Trust::Trusted, Content::Unreadable(message)) => {
                let message = message.clone();
                return Err(ConfigError::Unreadable { path, message });
            }
            (Trust::NotTrusted, Content::Text(_) | Content::Unreadable(_)) => {
                let path = path.clone();
                (
                    FileState::NotTrusted,
                    Some(ConfigWarning::NotTrusted { path }),
                )
            }
            (Trust::Changed, Content::Text(_) | Content::Unreadable(_)) => {
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

    /// A project may only lower what a run may spend.
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
        // Each value was read alone already, so an error here belongs to no single place.
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
