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
use super::layer::{Leaf, Origin, insert, of_file, of_option, of_variables};
use super::settings::Config;
use crate::swarm::Limits;

/// Whether the project's own configuration may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Trusted,
    NotTrusted,
}

/// Where settings are looked for.
#[derive(Debug, Clone)]
pub struct Sources {
    pub user_file: Option<PathBuf>,
    pub project_file: Option<PathBuf>,
    pub trust: Trust,
    pub variables: Vec<(String, String)>,
    /// The values of `-c`.
    pub options: Vec<String>,
}

impl Sources {
    /// Those of this process for the project at `root`.
    pub fn of_process(root: &Path, trust: Trust, options: Vec<String>) -> Self {
        Sources {
            user_file: user_file(),
            project_file: Some(root.join(".starling").join("config.toml")),
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
}

/// The configuration, with what is to be known about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<ConfigWarning>,
    pub files: Vec<(PathBuf, FileState)>,
    origins: BTreeMap<String, Origin>,
}

impl Loaded {
    /// Where the value of a key comes from.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Every key that was set, with its origin.
    pub fn set_keys(&self) -> impl Iterator<Item = (&str, &Origin)> {
        self.origins
            .iter()
            .map(|(key, origin)| (key.as_str(), origin))
    }
}

/// Reads all layers.
///
/// # Errors
/// See [`ConfigError`]: the first thing that is wrong. A missing file is not.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let mut merge = Merge::default();
    if let Some(path) = &sources.user_file {
        merge.file(path, Owner::User)?;
    }
    if let Some(path) = &sources.project_file {
        match sources.trust {
            Trust::Trusted => merge.file(path, Owner::Project)?,
            Trust::NotTrusted => merge.untrusted(path),
        }
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
enum Owner {
    User,
    Project,
}

/// Which keys a project may set. Where requests go, with which keys, and who approves are the user's
/// alone.
fn is_for_projects(key: &str) -> bool {
    let section = key.split('.').next().unwrap_or(key);
    !matches!(
        section,
        "models" | "roles" | "network" | "sandbox" | "telemetry"
    ) && key != "run.approve"
}

fn number(value: &Value) -> Option<f64> {
    value
        .as_float()
        .or_else(|| value.as_integer().map(|whole| whole as f64))
}

#[derive(Default)]
struct Merge {
    table: Table,
    origins: BTreeMap<String, Origin>,
    warnings: Vec<ConfigWarning>,
    files: Vec<(PathBuf, FileState)>,
}

impl Merge {
    fn file(&mut self, path: &Path, owner: Owner) -> Result<(), ConfigError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.files.push((path.to_owned(), FileState::Absent));
                return Ok(());
            }
            Err(error) => {
                return Err(ConfigError::Unreadable {
                    path: path.to_owned(),
                    message: error.to_string(),
                });
            }
        };
        self.files.push((path.to_owned(), FileState::Read));
        for leaf in of_file(path, &text)? {
            match owner {
                Owner::Project if !is_for_projects(&leaf.key) || self.raises_limit(&leaf) => {
                    self.warnings.push(ConfigWarning::NotForProjects {
                        origin: leaf.origin,
                        key: leaf.key,
                    });
                }
                Owner::Project | Owner::User => self.leaf(leaf),
            }
        }
        Ok(())
    }

    /// A project may only lower what a run may spend.
    fn raises_limit(&self, leaf: &Leaf) -> bool {
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

    fn untrusted(&mut self, path: &Path) {
        let state = if path.exists() {
            self.warnings.push(ConfigWarning::NotTrusted {
                path: path.to_owned(),
            });
            FileState::NotTrusted
        } else {
            FileState::Absent
        };
        self.files.push((path.to_owned(), state));
    }

    fn leaf(&mut self, leaf: Leaf) {
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

    fn finish(self) -> Result<Loaded, ConfigError> {
        // Each value was read alone already, so an error here belongs to no single place.
        let config = Config::deserialize(self.table).map_err(|error| ConfigError::Value {
            origin: Origin::Default,
            key: "configuration".to_owned(),
            message: error.message().to_owned(),
        })?;
        let loaded = Loaded {
            config,
            warnings: self.warnings,
            files: self.files,
            origins: self.origins,
        };
        check(&loaded)?;
        Ok(loaded)
    }
}
