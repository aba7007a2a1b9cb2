//! The findings about the models.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Finding;
use starling_config::{Config, ModelKind};
use starling_core::Dollars;
use starling_models::openai::{ApiKey, ProbeResult, probe};
use starling_models::providers::{Provider, with_key};
use starling_models::registry::{
    ModelSource, RoleSources, Variables, base_url, key_variable, not_listed, price, role_sources,
};
use starling_models::serving;
use starling_models::weights::{self, WeightsError};

/// Maximum time to probe one endpoint.
const PROBE_DEADLINE: Duration = Duration::from_secs(5);

pub(super) async fn examine(
    config: &Config,
    choice: Option<&str>,
    variables: Variables<'_>,
) -> Vec<Finding> {
    let roles = match role_sources(config, choice) {
        Ok(roles) => roles,
        Err(error) => {
            let advice = "see `starling config explain roles`";
            return vec![Finding::fail("models", error.to_string(), advice)];
        }
    };
    let mut findings = vec![Finding::ok("models", parts(&roles))];
    findings.extend(keys(config, &roles, choice, variables));
    for source in distinct(&roles) {
        findings.push(match source.settings.kind {
            ModelKind::Openai => endpoint(source, variables).await,
            ModelKind::Gguf => local(source),
            ModelKind::Replay | ModelKind::Oracle => read_answers(source),
            ModelKind::None => Finding::ok(title(source), "no model is used".to_owned()),
            ModelKind::Socket => Finding::ok(
                title(source),
                "the replies come from another process (a socket)".to_owned(),
            ),
        });
        findings.extend(unpriced(source, config.limits.dollars));
    }
    findings.extend(serving::directory().into_iter().flat_map(|at| servers(&at)));
    findings
}

/// Reports the provider keys in the environment by name, never by value.
fn keys(
    config: &Config,
    roles: &RoleSources,
    choice: Option<&str>,
    variables: Variables<'_>,
) -> Vec<Finding> {
    let is_open = config.models.is_empty() && config.roles.agent.is_empty() && choice.is_none();
    let finding = |one: Provider| {
        let is_endpoint = |source: &&&ModelSource| source.settings.kind == ModelKind::Openai;
        let sources = distinct(roles);
        let users = sources.iter().filter(is_endpoint);
        let users = users.filter(|source| key_variable(&source.settings) == Some(one.variable));
        let users: Vec<&str> = users.map(|source| source.name.as_str()).collect();
        let set = format!("{} is set", one.variable);
        if !users.is_empty() {
            Finding::ok("key", format!("{set}: for {}", users.join(", ")))
        } else if is_open {
            let detail = format!("{set}, but no model is configured: the local one is used");
            let advice = format!("`starling init` configures a model of {}", one.name);
            Finding::warn("key", detail, advice)
        } else {
            Finding::ok("key", format!("{set}, but no configured model uses it"))
        }
    };
    with_key(variables).into_iter().map(finding).collect()
}

fn parts(roles: &RoleSources) -> String {
    let names = |sources: &[ModelSource]| {
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        names.join(" then ")
    };
    let editors = match roles.editors.as_slice() {
        [] => "the agent".to_owned(),
        editors => editors
            .iter()
            .map(|source| source.name.as_str())
            .collect::<Vec<_>>()
            .join(" and "),
    };
    format!(
        "agent: {}; scout: {}; editor: {editors}; proxy: {}",
        names(&roles.agent),
        names(&roles.scout),
        names(&roles.proxy)
    )
}

fn distinct(roles: &RoleSources) -> Vec<&ModelSource> {
    let mut found: Vec<&ModelSource> = Vec::new();
    for source in roles.all() {
        if found.iter().all(|other| other.name != source.name) {
            found.push(source);
        }
    }
    found
}

fn title(source: &ModelSource) -> String {
    format!("model {}", source.name)
}

async fn endpoint(source: &ModelSource, variables: Variables<'_>) -> Finding {
    let what = title(source);
    let settings = &source.settings;
    let url = base_url(settings, variables);
    let variable = key_variable(settings);
    let key = variable.and_then(|name| variables(name).filter(|key| !key.is_empty()));
    if let (Some(variable), None, Some(_)) = (variable, &key, &settings.api_key_env) {
        let detail = format!("{url} has no API key: {variable} is not set");
        return Finding::fail(what, detail, format!("set {variable} to the API key"));
    }
    let key = key.map(ApiKey);
    match probe(&source.name, &url, key.as_ref(), PROBE_DEADLINE).await {
        Err(error) => Finding::fail(what, error.to_string(), "correct base_url or the API key"),
        Ok(ProbeResult::Answers { models }) => match not_listed(source, &models) {
            None => Finding::ok(what, format!("{url} answers")),
            Some(unlisted) => Finding::warn(
                what,
                format!("{url} answers, but {unlisted}"),
                "correct the name of the model",
            ),
        },
        Ok(ProbeResult::Unclear { status }) => Finding::ok(
            what,
            format!("{url} responds (but does not list its models: {status})"),
        ),
        Ok(ProbeResult::KeyRefused { status }) => Finding::fail(
            what,
            format!("{url} rejects the API key ({status})"),
            match variable {
                Some(variable) => format!("set {variable} to a valid API key"),
                None => "set api_key_env to the environment variable with the API key".to_owned(),
            },
        ),
        Ok(ProbeResult::Unreachable { message }) => Finding::fail(
            what,
            format!("{url} cannot be reached: {message}"),
            "start the server, or correct base_url",
        ),
    }
}

fn local(source: &ModelSource) -> Finding {
    let what = title(source);
    if cfg!(not(feature = "local")) {
        return Finding::fail(
            what,
            "this build has no local models",
            "use a build with the feature `local`, or configure an endpoint",
        );
    }
    let wanted = source.settings.path.as_deref();
    of_weights(
        what,
        weights::path(wanted.unwrap_or(weights::DEFAULT_MODEL)),
    )
}

/// Reports the processes that serve local models.
pub(super) fn servers(directory: &Path) -> Vec<Finding> {
    let servers = serving::all_running(directory).into_iter();
    let finding = |server: serving::RunningServer| {
        let detail = format!(
            "{} at http://{}/v1 (process {}, window {})",
            server.model, server.address, server.process, server.window
        );
        Finding::ok("server", detail)
    };
    servers.map(finding).collect()
}

pub(super) fn of_weights(what: String, found: Result<PathBuf, WeightsError>) -> Finding {
    match found {
        Ok(path) => Finding::ok(what, format!("weights in {}{}", path.display(), place())),
        // Only a warning: the weights can be downloaded.
        Err(WeightsError::Missing { name, path }) => Finding::warn(
            what,
            format!(
                "its weights are not downloaded yet: {} is missing",
                path.display()
            ),
            format!("`starling models pull {name}` downloads them"),
        ),
        Err(error) => Finding::fail(
            what,
            error.to_string(),
            "correct the path of the weights, or configure an endpoint",
        ),
    }
}

/// Reports the device on which the local model runs.
#[cfg(feature = "local")]
fn place() -> String {
    format!("; it runs on {}", starling_local::device::name())
}

#[cfg(not(feature = "local"))]
fn place() -> String {
    String::new()
}

/// Checks the file of a model that replays a recording or a known change.
fn read_answers(source: &ModelSource) -> Finding {
    let path = source.settings.path.as_deref().unwrap_or_default();
    match Path::new(path).is_file() {
        true => Finding::ok(
            title(source),
            format!("replies are read from the recording {path}"),
        ),
        false => Finding::fail(
            title(source),
            format!("{path} is not a file"),
            "correct the path",
        ),
    }
}

/// Reports a model without a price. This is an error if there is a dollar limit, which needs
/// prices.
fn unpriced(source: &ModelSource, dollars: Option<Dollars>) -> Option<Finding> {
    if price(source).is_some() {
        return None;
    }
    let advice = "set price_prompt and price_output of the model";
    let finding = match dollars {
        Some(_) => Finding::fail,
        None => Finding::warn,
    };
    Some(finding(
        title(source),
        "its price is unknown, so its cost is not counted".to_owned(),
        advice,
    ))
}
