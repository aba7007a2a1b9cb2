//! Assigns models to roles: turns configured names and specifications into models with all layers.

mod adapter;
mod spec;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::continuing::ContinuingModel;
use super::resilient::{ModelWithPolicy, ResilientModel, RetryPolicy};
use super::sampled::SampledModel;
use super::traced::TracedModel;
use starling_config::{Config, ModelKind, NetworkSettings};
use starling_core::{ChatModel, Dollars, ModelError};

use super::price::priced_models;
use adapter::served_name;
pub use adapter::{DEFAULT_BASE_URL, base_url, key_variable, price};
#[cfg(feature = "local")]
pub use adapter::{open_in_process, weights_path};
pub use spec::{ModelSource, RoleSources, resolve, role_sources};

/// Maximum number of names to suggest for an unknown name.
const NEAR_MOST: usize = 3;

/// A function that returns the value of an environment variable.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The models of a run, by role.
#[derive(Clone)]
pub struct Models {
    pub agent: Arc<dyn ChatModel>,
    pub scout: Arc<dyn ChatModel>,
    /// Models that each write a candidate for every change; empty if the agent writes the changes.
    pub editors: Vec<Arc<dyn ChatModel>>,
    pub proxy: Arc<dyn ChatModel>,
    unpriced: Vec<String>,
}

/// Why the models of a run cannot be opened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelsError {
    #[error("{}", unknown(.name, .known))]
    UnknownName { name: String, known: Vec<String> },
    #[error("several models are configured ({}): choose one in roles.agent, or use --model", .names.join(", "))]
    Ambiguous { names: Vec<String> },
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(
        "limits.dollars is set, but the price of {} is unknown: set price_prompt and price_output of the \
         model, or limit calls and tokens instead",
        .models.join(", ")
    )]
    Unpriced { models: Vec<String> },
}

fn unknown(name: &str, known: &[String]) -> String {
    let configured = configured(known);
    match name.split_once(':') {
        Some((provider, _)) => format!(
            "no provider is called {provider:?}: use openai:MODEL with OPENAI_BASE_URL set to the \
             provider's OpenAI-compatible address, local, gguf:PATH or replay:FILE, or the name of a \
             configured model ({configured})"
        ),
        None => format!(
            "no model is called {name:?}{}: {configured}; or use local, gguf:PATH, openai:MODEL, \
             replay:FILE",
            did_you_mean(&near(name, known))
        ),
    }
}

/// Returns the known names that are most similar to an unknown name.
fn near(name: &str, configured: &[String]) -> Vec<String> {
    let mut known: Vec<&str> = configured.iter().map(String::as_str).collect();
    known.push("local");
    let mut near: Vec<String> = similar(name, &known);
    let priced: Vec<&str> = priced_models().collect();
    let served = similar(name, &priced).into_iter();
    near.extend(served.map(|model| format!("openai:{model}")));
    near.truncate(NEAR_MOST);
    near
}

fn similar(name: &str, known: &[&str]) -> Vec<String> {
    let found = similar::get_close_matches(name, known, NEAR_MOST, 0.6);
    found.into_iter().map(str::to_owned).collect()
}

fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(" or ")),
    }
}

/// Returns a hint if the endpoint does not list the configured model. Returns `None` if the model
/// is listed or the list is empty.
pub fn not_listed(source: &ModelSource, listed: &[String]) -> Option<String> {
    let wanted = served_name(source);
    let is_same = |name: &String| name == wanted || name.strip_suffix(":latest") == Some(wanted);
    if listed.is_empty() || listed.iter().any(is_same) {
        return None;
    }
    let names: Vec<&str> = listed.iter().map(String::as_str).collect();
    let near = similar(wanted, &names);
    let hint = match (near.as_slice(), listed) {
        ([], [only]) => format!("; it lists {only} alone"),
        ([], _) => String::new(),
        (near, _) => format!("; did you mean {}?", near.join(" or ")),
    };
    Some(format!(
        "the endpoint does not list a model {wanted:?}{hint}"
    ))
}

fn configured(names: &[String]) -> String {
    match names {
        [] => "no model is configured".to_owned(),
        _ => format!("configured models are {}", names.join(", ")),
    }
}

impl Models {
    /// Opens the configured models. If `choice` is given, opens that model for all roles: a
    /// configured name, `local`, `gguf:PATH`, `openai:MODEL` or `replay:FILE`.
    ///
    /// # Errors
    /// See [`ModelsError`].
    pub fn open(config: &Config, choice: Option<&str>) -> Result<Models, ModelsError> {
        Models::open_with(config, choice, &|name| std::env::var(name).ok())
    }

    /// Like [`Models::open`], with a given environment.
    ///
    /// # Errors
    /// See [`ModelsError`].
    pub fn open_with(
        config: &Config,
        choice: Option<&str>,
        variables: Variables<'_>,
    ) -> Result<Models, ModelsError> {
        let roles = role_sources(config, choice)?;
        let mut opening = ModelOpener {
            network: &config.network,
            temperature: config.run.temperature,
            seed: config.run.seed,
            variables,
            opened: BTreeMap::new(),
            unpriced: Vec::new(),
        };
        let models = Models {
            agent: opening.chain(&roles.agent)?,
            scout: opening.chain(&roles.scout)?,
            editors: roles
                .editors
                .iter()
                .map(|source| opening.chain(std::slice::from_ref(source)))
                .collect::<Result<_, _>>()?,
            proxy: opening.chain(&roles.proxy)?,
            unpriced: Vec::new(),
        };
        Ok(Models {
            unpriced: opening.unpriced,
            ..models
        })
    }

    /// Checks whether [`Models::open`] would succeed, without connecting or reading weights. If a
    /// `limit` in dollars is given, also checks that all prices are known.
    ///
    /// # Errors
    /// See [`ModelsError`].
    pub fn check(
        config: &Config,
        choice: Option<&str>,
        limit: Option<Dollars>,
        variables: Variables<'_>,
    ) -> Result<(), ModelsError> {
        let roles = role_sources(config, choice)?;
        let mut unpriced = Vec::new();
        for source in roles.all() {
            adapter::check(source, variables)?;
            if adapter::price(source).is_none() && !unpriced.contains(&source.name) {
                unpriced.push(source.name.clone());
            }
        }
        match limit {
            Some(_) => priced(unpriced),
            None => Ok(()),
        }
    }

    /// Returns the models without a known price. Their requests count as free.
    pub fn unpriced(&self) -> &[String] {
        &self.unpriced
    }

    /// Checks that every model has a price, which a limit in dollars needs.
    ///
    /// # Errors
    /// [`ModelsError::Unpriced`] names the models without a price.
    pub fn require_prices(&self) -> Result<(), ModelsError> {
        priced(self.unpriced.clone())
    }
}

fn priced(unpriced: Vec<String>) -> Result<(), ModelsError> {
    match unpriced.is_empty() {
        true => Ok(()),
        false => Err(ModelsError::Unpriced { models: unpriced }),
    }
}

/// Maximum time for one answer of a local model, including the time in its queue.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(3600);

fn policy(kind: ModelKind, network: &NetworkSettings) -> RetryPolicy {
    let idle_timeout = Duration::from_secs(network.idle_seconds);
    match kind {
        ModelKind::Openai => RetryPolicy {
            timeout: Duration::from_secs(network.timeout_seconds),
            idle_timeout,
            attempts: network.attempts,
            ..RetryPolicy::default()
        },
        // A local failure is permanent because no network is involved, so there are no retries.
        ModelKind::Gguf
        | ModelKind::Replay
        | ModelKind::Oracle
        | ModelKind::Socket
        | ModelKind::None => RetryPolicy {
            timeout: LOCAL_TIMEOUT,
            idle_timeout,
            attempts: 1,
            ..RetryPolicy::default()
        },
    }
}

/// Opens each model once even if it has several roles: weights are large, and a replay counts its
/// answers.
struct ModelOpener<'a> {
    network: &'a NetworkSettings,
    temperature: Option<f64>,
    seed: Option<u32>,
    variables: Variables<'a>,
    opened: BTreeMap<String, Arc<dyn ChatModel>>,
    unpriced: Vec<String>,
}

impl ModelOpener<'_> {
    fn chain(&mut self, sources: &[ModelSource]) -> Result<Arc<dyn ChatModel>, ModelsError> {
        let mut models = Vec::new();
        for source in sources {
            models.push(ModelWithPolicy {
                model: self.adapter(source)?,
                policy: policy(source.settings.kind, self.network),
            });
        }
        let mut models = models.into_iter();
        let first = models.next().ok_or_else(|| ModelError::Unavailable {
            model: "roles".to_owned(),
            message: "a role needs at least one model".to_owned(),
        })?;
        // A recording already contains the results of the layers, so they are not applied again.
        if first.model.profile().replayed {
            return Ok(first.model);
        }
        let resilient = ResilientModel::of_each(first, models.collect());
        Ok(Arc::new(ContinuingModel::new(resilient)))
    }

    fn adapter(&mut self, source: &ModelSource) -> Result<Arc<dyn ChatModel>, ModelsError> {
        if let Some(model) = self.opened.get(&source.name) {
            return Ok(model.clone());
        }
        if adapter::price(source).is_none() {
            self.unpriced.push(source.name.clone());
        }
        let mut asked = source.clone();
        if self.temperature.is_some() {
            asked.settings.temperature = None;
        }
        let opened = adapter::open(&asked, self.variables)?;
        let model = self.sampled(Arc::new(TracedModel(opened)));
        self.opened.insert(source.name.clone(), model.clone());
        Ok(model)
    }

    /// Applies the run's temperature and seed to a model. A recording cannot answer differently.
    fn sampled(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        let asked_otherwise = self.temperature.is_some() || self.seed.is_some();
        if model.profile().replayed || !asked_otherwise {
            return model;
        }
        Arc::new(SampledModel {
            model,
            temperature: self.temperature.map(|value| value as f32),
            seed: self.seed.unwrap_or_default().into(),
        })
    }
}
