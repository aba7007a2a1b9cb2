//! From names to what they stand for.

use super::ModelsError;
use starling_config::{Config, ModelConfig, ModelKind};

/// A model under its name, with all that is needed to open it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSource {
    pub name: String,
    pub settings: ModelConfig,
}

/// The models of each part; `editors` may be empty, the others are not.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleSources {
    pub agent: Vec<ModelSource>,
    pub scout: Vec<ModelSource>,
    pub editors: Vec<ModelSource>,
    pub proxy: Vec<ModelSource>,
}

impl RoleSources {
    /// Of every part; a model that plays several is there as often.
    pub fn all(&self) -> impl Iterator<Item = &ModelSource> {
        [&self.agent, &self.scout, &self.editors, &self.proxy]
            .into_iter()
            .flatten()
    }
}

/// What each part is played by.
///
/// # Errors
/// [`ModelsError::UnknownName`], and [`ModelsError::Ambiguous`] where nobody chose.
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

/// The only configured model, else the local one.
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

/// What a name or specification stands for. Configured names come first.
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
    if text == "local" {
        return Some(ModelConfig {
            kind: ModelKind::Gguf,
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
