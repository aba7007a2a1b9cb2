//! Resolves model names and specifications to settings.

use super::ModelsError;
use starling_config::{Config, ModelConfig, ModelKind};

/// A model's name and the settings that are needed to open it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSource {
    pub name: String,
    pub settings: ModelConfig,
}

/// The models of each role. Only `editors` may be empty.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleSources {
    pub agent: Vec<ModelSource>,
    pub scout: Vec<ModelSource>,
    pub editors: Vec<ModelSource>,
    pub proxy: Vec<ModelSource>,
}

impl RoleSources {
    /// Returns the models of all roles. A model with several roles is returned several times.
    pub fn all(&self) -> impl Iterator<Item = &ModelSource> {
        [&self.agent, &self.scout, &self.editors, &self.proxy]
            .into_iter()
            .flatten()
    }
}

/// Returns the models of each role.
///
/// # Errors
/// [`ModelsError::UnknownName`], or [`ModelsError::Ambiguous`] if several models are configured and
/// none is chosen.
pub fn role_sources(config: &Config, choice: Option<&str>) -> Result<RoleSources, ModelsError> {
    if let Some(choice) = choice {
        let only = vec![resolve(config, choice)?];
        return Ok(RoleSources {
            agent: only.clone(),
            scout: only.clone(),
            editors: Vec::new(),
            proxy: only,
        });
    }
    let list = |names: &[String]| -> Result<Vec<ModelSource>, ModelsError> {
        names.iter().map(|name| resolve(config, name)).collect()
    };
    let roles = &config.roles;
    let agent = match roles.agent.as_slice() {
        [] => vec![default_source(config)?],
        names => list(names)?,
    };
    let or_agent = |names: &[String]| match names {
        [] => Ok(agent.clone()),
        names => list(names),
    };
    Ok(RoleSources {
        scout: or_agent(&roles.scout)?,
        editors: list(&roles.editor)?,
        proxy: or_agent(&roles.proxy)?,
        agent,
    })
}

/// Returns the only configured model, or the local model if none is configured.
fn default_source(config: &Config) -> Result<ModelSource, ModelsError> {
    let mut names = config.models.keys();
    match (names.next(), names.next()) {
        (None, _) => resolve(config, "local"),
        (Some(only), None) => resolve(config, only),
        (Some(_), Some(_)) => Err(ModelsError::Ambiguous {
            names: config.models.keys().cloned().collect(),
        }),
    }
}

/// Resolves a name or specification. Configured names take precedence.
///
/// # Errors
/// [`ModelsError::UnknownName`].
pub fn resolve(config: &Config, name: &str) -> Result<ModelSource, ModelsError> {
    let settings = match config.models.get(name) {
        Some(settings) => settings.clone(),
        None => specification(name).ok_or_else(|| ModelsError::UnknownName {
            name: name.to_owned(),
            known: config.models.keys().cloned().collect(),
        })?,
    };
    Ok(ModelSource {
        name: name.to_owned(),
        settings,
    })
}

fn specification(text: &str) -> Option<ModelConfig> {
    let alone = match text {
        "local" => Some(ModelKind::Gguf),
        "none" => Some(ModelKind::None),
        _ => None,
    };
    if let Some(kind) = alone {
        return Some(ModelConfig {
            kind,
            ..ModelConfig::default()
        });
    }
    let (kind, rest) = text.split_once(':').filter(|(_, rest)| !rest.is_empty())?;
    let of_file = |kind| ModelConfig {
        kind,
        path: Some(rest.to_owned()),
        ..ModelConfig::default()
    };
    match kind {
        "gguf" => Some(of_file(ModelKind::Gguf)),
        "replay" => Some(of_file(ModelKind::Replay)),
        "oracle" => Some(of_file(ModelKind::Oracle)),
        "socket" => Some(of_file(ModelKind::Socket)),
        "openai" => Some(ModelConfig {
            model: Some(rest.to_owned()),
            ..ModelConfig::default()
        }),
        _ => None,
    }
}
