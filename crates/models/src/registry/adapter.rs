//! Creates the adapter of a model from its settings.

use std::path::Path;
use std::sync::Arc;

use super::{ModelSource, Variables};
use crate::absent::NoModel;
use crate::openai::{ApiKey, OpenAiModel, OpenAiOptions, OutputLimit};
use crate::oracle::Oracle;
use crate::price::list_price;
use crate::replay::Replay;
use crate::socket::SocketModel;
use starling_config::{ModelConfig, ModelKind, OutputLimitField};
use starling_core::{ChatModel, ModelError, ModelProfile, Price, Tokens, ToolCalling};

/// The endpoint that is used if none is configured.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

const DEFAULT_WINDOW: u64 = 32_768;
const DEFAULT_OUTPUT: u64 = 8_192;
/// The context window of a replayed model. It is large because the recorded run already kept to the
/// real one.
const REPLAY_WINDOW: u64 = 1_000_000;

/// Creates the adapter of one model, without the outer layers.
pub(super) fn open(
    source: &ModelSource,
    variables: Variables<'_>,
) -> Result<Arc<dyn ChatModel>, ModelError> {
    match source.settings.kind {
        ModelKind::Openai => {
            let options = endpoint_options(source, variables)?;
            Ok(Arc::new(OpenAiModel::new(options)?))
        }
        ModelKind::Gguf => open_weights(source),
        ModelKind::Replay => Ok(Arc::new(open_replay(source)?)),
        ModelKind::Oracle => Ok(Arc::new(open_oracle(source)?)),
        ModelKind::Socket => Ok(Arc::new(open_socket(source))),
        ModelKind::None => Ok(Arc::new(NoModel::new(profile(
            source,
            REPLAY_WINDOW,
            ToolCalling::Native,
        )))),
    }
}

/// Checks whether a model can be opened, without connecting and without reading weights.
pub(super) fn check(source: &ModelSource, variables: Variables<'_>) -> Result<(), ModelError> {
    match source.settings.kind {
        ModelKind::Openai => OpenAiModel::check(&endpoint_options(source, variables)?),
        ModelKind::Gguf => weights_path(source).map(drop),
        ModelKind::Replay => open_replay(source).map(drop),
        ModelKind::Oracle => open_oracle(source).map(drop),
        // Whether a process listens at the socket is only known when a request is sent.
        ModelKind::Socket | ModelKind::None => Ok(()),
    }
}

/// Returns the price of a model if it is known. Local models are free.
pub fn price(source: &ModelSource) -> Option<Price> {
    let settings = &source.settings;
    match (settings.kind, settings.price_prompt, settings.price_output) {
        (
            ModelKind::Gguf
            | ModelKind::Replay
            | ModelKind::Oracle
            | ModelKind::Socket
            | ModelKind::None,
            _,
            _,
        ) => Some(Price::FREE),
        (ModelKind::Openai, Some(prompt), Some(output)) => Some(Price {
            prompt,
            cached: settings.price_cached.unwrap_or(prompt),
            output,
        }),
        (ModelKind::Openai, _, _) => list_price(served_name(source)),
    }
}

/// Returns the base URL of an endpoint.
pub fn base_url(settings: &ModelConfig, variables: Variables<'_>) -> String {
    settings
        .base_url
        .clone()
        .or_else(|| variables("OPENAI_BASE_URL").filter(|url| !url.is_empty()))
        .unwrap_or_else(|| DEFAULT_BASE_URL.to_owned())
}

/// Returns the environment variable with the key of an endpoint, or `None` if no key is needed.
pub fn key_variable(settings: &ModelConfig) -> Option<&str> {
    match (&settings.api_key_env, &settings.base_url) {
        (Some(variable), _) => Some(variable),
        // These are the variables that other OpenAI clients read.
        (None, None) => Some("OPENAI_API_KEY"),
        (None, Some(_)) => None,
    }
}

fn endpoint_options(
    source: &ModelSource,
    variables: Variables<'_>,
) -> Result<OpenAiOptions, ModelError> {
    let settings = &source.settings;
    let base_url = base_url(settings, variables);
    let key = key_variable(settings).and_then(|name| variables(name).filter(|key| !key.is_empty()));
    let needs_key = settings.api_key_env.is_some() || base_url == DEFAULT_BASE_URL;
    if let (true, None, Some(variable)) = (needs_key, &key, key_variable(settings)) {
        return Err(ModelError::Unavailable {
            model: source.name.clone(),
            message: format!(
                "the environment variable {variable}, which holds its key, is not set"
            ),
        });
    }
    let output_limit = match settings.output_limit {
        Some(OutputLimitField::MaxTokens) => OutputLimit::MaxTokens,
        Some(OutputLimitField::MaxCompletionTokens) => OutputLimit::MaxCompletionTokens,
        None if base_url == DEFAULT_BASE_URL => OutputLimit::MaxCompletionTokens,
        None => OutputLimit::MaxTokens,
    };
    Ok(OpenAiOptions {
        profile: profile(source, DEFAULT_WINDOW, ToolCalling::Native),
        model: served_name(source).to_owned(),
        base_url,
        key: key.map(ApiKey),
        output_limit,
        temperature: settings.temperature.map(|value| value as f32),
        omit: settings.omit.clone(),
    })
}

/// Returns the model's name at the endpoint.
pub(super) fn served_name(source: &ModelSource) -> &str {
    source.settings.model.as_deref().unwrap_or(&source.name)
}

fn open_replay(source: &ModelSource) -> Result<Replay, ModelError> {
    let profile = profile(source, REPLAY_WINDOW, ToolCalling::Native);
    let path = source.settings.path.as_deref().unwrap_or_default();
    Replay::open(profile, Path::new(path))
}

fn open_socket(source: &ModelSource) -> SocketModel {
    let profile = profile(source, REPLAY_WINDOW, ToolCalling::Native);
    let path = source.settings.path.as_deref().unwrap_or_default();
    SocketModel::new(profile, path.into())
}

fn open_oracle(source: &ModelSource) -> Result<Oracle, ModelError> {
    let profile = profile(source, REPLAY_WINDOW, ToolCalling::Native);
    let path = source.settings.path.as_deref().unwrap_or_default();
    Oracle::open(profile, Path::new(path))
}

/// Opens a model in this process, even if another process serves the model.
#[cfg(feature = "local")]
pub fn open_in_process(source: &ModelSource) -> Result<Arc<dyn ChatModel>, ModelError> {
    local_model(source, &weights_path(source)?)
}

/// Returns the path of a model's weights.
///
/// # Errors
/// The weights are not on this machine.
#[cfg(feature = "local")]
pub fn weights_path(source: &ModelSource) -> Result<std::path::PathBuf, ModelError> {
    use crate::weights;

    let wanted = source.settings.path.as_deref();
    weights::path(wanted.unwrap_or(weights::DEFAULT_MODEL)).map_err(|error| {
        ModelError::Unavailable {
            model: source.name.clone(),
            message: error.to_string(),
        }
    })
}

#[cfg(feature = "local")]
fn open_weights(source: &ModelSource) -> Result<Arc<dyn ChatModel>, ModelError> {
    use crate::shared::SharedModel;

    let path = weights_path(source)?;
    let own = local_model(source, &path)?;
    Ok(match crate::serving::directory() {
        Some(servers) => Arc::new(SharedModel::new(own, servers, path)?),
        None => own,
    })
}

#[cfg(feature = "local")]
fn local_model(source: &ModelSource, path: &Path) -> Result<Arc<dyn ChatModel>, ModelError> {
    use starling_local::{LocalModel, LocalOptions};

    let settings = &source.settings;
    let model = LocalModel::open(LocalOptions {
        name: source.name.clone(),
        path: path.to_owned(),
        context_window: settings.context_window.map(Tokens),
        guesses: true,
        constraints: true,
    })?;
    Ok(Arc::new(model))
}

#[cfg(not(feature = "local"))]
fn open_weights(source: &ModelSource) -> Result<Arc<dyn ChatModel>, ModelError> {
    weights_path(source).map(|never| match never {})
}

#[cfg(not(feature = "local"))]
fn weights_path(source: &ModelSource) -> Result<std::convert::Infallible, ModelError> {
    Err(ModelError::Unavailable {
        model: source.name.clone(),
        message:
            "this build of Starling has no local models: use one built with the feature `local`, \
                  or configure an endpoint"
                .to_owned(),
    })
}

fn profile(source: &ModelSource, window: u64, tools: ToolCalling) -> ModelProfile {
    let settings = &source.settings;
    let window = settings.context_window.unwrap_or(window);
    ModelProfile {
        name: source.name.clone(),
        context_window: Tokens(window),
        max_output: Tokens(settings.max_output.unwrap_or(DEFAULT_OUTPUT).min(window)),
        tool_calling: settings.tool_calling.unwrap_or(tools),
        replayed: false,
        price: price(source),
    }
}
