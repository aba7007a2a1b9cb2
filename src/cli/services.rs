//! The real services of a server: configuration, models, tests and snapshots.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::args::ConfigurationArgs;
use super::trust;
use starling_config::{self, Config, ConfigSources, LoadedConfig, ModelKind, ProjectFile};
use starling_core::{ProblemKind, TestRunner};
use starling_index::Index;
use starling_lang::{OwnPrograms, ProgramSearch, ServerPool, ServerSelection};
use starling_models::openai::{ApiKey, ProbeResult, probe};
use starling_models::providers::{Provider, with_key};
use starling_models::registry::{
    Models, Variables, base_url, key_variable, not_listed, role_sources,
};
use starling_models::weights::{self, DEFAULT_MODEL, Progress};
use starling_runner::{ProjectTests, SecretValues, TestSettings};
use starling_sandbox::{Bounds, Container, Policy, Shadows, Unconfined, cache_dir, sweep_scratch};
use starling_server::protocol::{ModelItem, ModelsReply, ProviderKey};
use starling_server::{OpenRequest, OpenedRun, RestorePolicy, RunDefaults, Services, swarm};
use starling_swarm::RoleModels;
use starling_workspace::{PathPolicy, Workspace, sweep_leftovers};

/// Delay of the first sweep, so that it does not slow down the start of a run.
const SWEEP_AFTER: Duration = Duration::from_secs(5);

/// Creates the services of the command line. `workers` executes the runs.
///
/// # Errors
/// There is no cache directory.
pub fn services(
    args: &ConfigurationArgs,
    workers: Handle,
    restore: RestorePolicy,
) -> anyhow::Result<Services> {
    let cache = cache_dir().context(
        "no home directory was found for the cache: set STARLING_CACHE_DIR to a directory",
    )?;
    let world = Arc::new(CliServices {
        args: args.clone(),
        cache: cache.clone(),
        shadows: OnceCell::new(),
        servers: ServerPool::new(cache.join("language")),
        secrets: Mutex::default(),
        models: Mutex::default(),
    });
    let (for_look, for_models, for_index) = (args.clone(), args.clone(), cache.clone());
    let for_policy = args.clone();
    Ok(Services {
        policy: Arc::new(move |root| path_policy(root, &for_policy)),
        ignored: Arc::new(move |root| ignored(root, &for_look)),
        open: Arc::new(move |opening| {
            let world = Arc::clone(&world);
            Box::pin(async move { world.open(opening).await })
        }),
        start: swarm(),
        fetch: Arc::new(fetch),
        index: Arc::new(move |root, overlay| {
            let overlay = overlay.into_iter().map(|(file, text)| (file, Some(text)));
            let snapshot = Workspace::open(root)?.snapshot(overlay.collect());
            Ok(Arc::new(Index::open(snapshot, for_index.clone())))
        }),
        models: Arc::new(move |root| {
            let config = configuration(root, &for_models)?.config;
            let variables = |name: &str| std::env::var(name).ok();
            Ok(model_list(&config, for_models.model.as_deref(), &variables))
        }),
        trajectories: cache.join("runs"),
        restore,
        workers,
    })
}

/// Returns the available models: configured models, the local model, and the providers whose keys
/// are in the environment.
fn model_list(config: &Config, choice: Option<&str>, variables: Variables<'_>) -> ModelsReply {
    let configured = config.models.iter().map(|(name, settings)| ModelItem {
        name: name.clone(),
        detail: detail(settings, variables),
    });
    let local = ModelItem {
        name: "local".to_owned(),
        detail: format!("{DEFAULT_MODEL}, on this machine, free"),
    };
    let key = |provider: Provider| ProviderKey {
        provider: provider.name.to_owned(),
        variable: provider.variable.to_owned(),
        prefix: (provider.variable == "OPENAI_API_KEY").then(|| "openai:".to_owned()),
    };
    let roles = role_sources(config, choice).ok();
    let chosen = roles.and_then(|roles| Some(roles.agent.first()?.name.clone()));
    let has_local = config.models.contains_key("local");
    ModelsReply {
        chosen,
        models: configured.chain((!has_local).then_some(local)).collect(),
        keys: with_key(variables).into_iter().map(key).collect(),
    }
}

/// Describes a configured model by its name and endpoint, or by its file.
fn detail(settings: &starling_config::ModelConfig, variables: Variables<'_>) -> String {
    match settings.kind {
        ModelKind::Openai => {
            let url = base_url(settings, variables);
            let model = settings.model.as_deref();
            model.map_or(url.clone(), |model| format!("{model} at {url}"))
        }
        ModelKind::None => "no model".to_owned(),
        ModelKind::Gguf | ModelKind::Replay | ModelKind::Oracle | ModelKind::Socket => {
            let path = settings.path.as_deref();
            path.unwrap_or(DEFAULT_MODEL).to_owned()
        }
    }
}

/// Downloads the weights of a known model for an editor.
fn fetch(model: &str, report: &mut dyn FnMut(u64, u64)) -> anyhow::Result<()> {
    weights::pull(model, &mut |progress| match progress {
        Progress::Waiting => {}
        Progress::Fetching { bytes, total, .. } | Progress::Checking { bytes, total } => {
            report(bytes, total);
        }
    })?;
    Ok(())
}

/// Reads the configuration for a project.
///
/// # Errors
/// The configuration is invalid; the error describes the first problem.
pub fn configuration(
    root: &Path,
    args: &ConfigurationArgs,
) -> Result<LoadedConfig, starling_config::ConfigError> {
    let file = ProjectFile::of(root);
    let trust = trust::of(root, args, &file);
    starling_config::load(&ConfigSources::of_process(file, trust, args.set.clone()))
}

/// Returns warnings about models that their endpoints do not list, before any token is spent. These
/// are only warnings, because some servers accept unlisted names.
pub async fn doubts(config: &Config, choice: Option<&str>) -> Vec<String> {
    const DEADLINE: Duration = Duration::from_secs(2);
    let variables = |name: &str| std::env::var(name).ok();
    let Ok(roles) = role_sources(config, choice) else {
        return Vec::new();
    };
    let mut asked: Vec<&str> = Vec::new();
    let mut doubts = Vec::new();
    for source in roles.all() {
        let settings = &source.settings;
        if settings.kind != ModelKind::Openai || asked.contains(&source.name.as_str()) {
            continue;
        }
        asked.push(&source.name);
        let key = key_variable(settings).and_then(variables);
        let key = key.filter(|key| !key.is_empty()).map(ApiKey);
        let url = base_url(settings, &variables);
        let found = probe(&source.name, &url, key.as_ref(), DEADLINE).await;
        if let Ok(ProbeResult::Answers { models }) = found {
            let unlisted = not_listed(source, &models);
            doubts.extend(unlisted.map(|what| format!("{}: {what}", source.name)));
        }
    }
    doubts
}

/// Returns the reasons why some of the project's settings are ignored.
fn ignored(root: &Path, args: &ConfigurationArgs) -> Vec<String> {
    match configuration(root, args) {
        Ok(loaded) => loaded.warnings.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// The services of the command line, shared by all runs of this process.
struct CliServices {
    args: ConfigurationArgs,
    cache: PathBuf,
    shadows: OnceCell<Shadows>,
    /// Language servers, which stay warm for later runs.
    servers: ServerPool,
    /// The secrets of each project, by its root.
    secrets: Mutex<HashMap<PathBuf, SecretValues>>,
    /// The models of the last run, kept because weights are slow to load.
    models: Mutex<Option<OpenModels>>,
}

/// Loaded models, with the configuration and `--model` choice that they were loaded for.
struct OpenModels {
    config: Config,
    choice: Option<String>,
    models: Models,
}

impl CliServices {
    async fn open(self: Arc<Self>, opening: OpenRequest) -> anyhow::Result<OpenedRun> {
        let workspace = Workspace::open(opening.root)?;
        let workspace_root = workspace.root().to_owned();
        let loaded = configuration(workspace.root(), &self.args)?;
        let workspace = workspace.allowing(&allowed_writes(&loaded.config, &self.args))?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let config = loaded.config;
        let secrets = self.secrets_of(&workspace_root);
        // In a large project this search takes long, and the first test run needs its result.
        secrets.refresh_in_background(&workspace_root);
        let defaults = defaults(&config);
        let models = self.models(&config, opening.model).await?;
        if opening.limits.over(&defaults.limits).dollars.is_some() {
            models.require_prices()?;
        }
        let overlay: BTreeMap<_, _> = opening
            .overlay
            .into_iter()
            .map(|(file, text)| (file, Some(text)))
            .collect();
        let cache = self.cache.clone();
        let open = move || Index::open(workspace.snapshot(overlay), cache);
        let index = Arc::new(spawn_blocking(open).await?);
        let read = index.clone();
        // Reading all files is slow, and the run needs the files anyway.
        spawn_blocking(move || read.warn_of_skipped());
        let shadows = self
            .shadows
            .get_or_try_init(|| self.first_shadows(workspace_root.clone(), policy(&config.sandbox)))
            .await?
            .clone();
        let shadows = shadows.hiding(self.args.hide_from_tests.iter().cloned());
        let shadows = match container(&config.sandbox) {
            Some(container) => shadows.in_containers(container),
            None => shadows,
        };
        let settings = TestSettings {
            command: opening.test.or(config.tests.command),
            setup: config.tests.setup,
            python: None,
            environment: config.sandbox.environment,
            readable: config.sandbox.readable.iter().map(PathBuf::from).collect(),
            secrets,
        };
        let tests = ProjectTests::detect(index.snapshot(), shadows, settings).await;
        if let Some(why) = tests.missing() {
            tracing::warn!("tests cannot run: {why}");
        }
        for why in tests.warnings() {
            tracing::warn!("{why}");
        }
        let places = places(&workspace_root, &self.args);
        let wanted = wanted(&config.language);
        let language = self.servers.service(index.snapshot(), &places, &wanted);
        Ok(OpenedRun {
            defaults,
            models: RoleModels {
                scout: models.scout,
                agent: models.agent,
                editors: models.editors,
                proxy: models.proxy,
            },
            tests: Arc::new(tests),
            language: Arc::new(language),
            index,
        })
    }

    fn secrets_of(&self, root: &Path) -> SecretValues {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.entry(root.to_owned()).or_default().clone()
    }

    /// Removes the shadows of dead processes, then determines how to create shadows.
    async fn first_shadows(&self, root: PathBuf, policy: Policy) -> anyhow::Result<Shadows> {
        let cache = self.cache.clone();
        let swept = spawn_blocking(move || sweep_scratch(&cache)).await?;
        tracing::info!(count = swept.len(), "removed shadows of dead processes");
        // The sweep walks the whole tree and would slow down the start of the run.
        tokio::spawn(async move {
            tokio::time::sleep(SWEEP_AFTER).await;
            spawn_blocking(move || sweep_leftovers(&root)).await
        });
        Ok(Shadows::open(&self.cache, policy).await?)
    }

    async fn models(
        self: &Arc<Self>,
        config: &Config,
        choice: Option<String>,
    ) -> anyhow::Result<Models> {
        let (world, config) = (Arc::clone(self), config.clone());
        let choice = choice.or_else(|| self.args.model.clone());
        let opened = spawn_blocking(move || {
            let mut last = world.models.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(open) = &*last
                && open.config == config
                && open.choice == choice
            {
                return Ok(open.models.clone());
            }
            let models = Models::open(&config, choice.as_deref())?;
            // A replay model has a position in its recording, so each run opens a new one.
            if !models.agent.profile().replayed {
                *last = Some(OpenModels {
                    config,
                    choice,
                    models: models.clone(),
                });
            }
            Ok::<_, anyhow::Error>(models)
        });
        opened.await?
    }
}

/// Returns the path policy of a project as its runs have it. If its configuration is invalid, a person
/// is needed wherever the default rules need one.
fn path_policy(root: &Path, args: &ConfigurationArgs) -> PathPolicy {
    let configured = || {
        let config = configuration(root, args).ok()?.config;
        let workspace = Workspace::open(root.to_owned()).ok()?;
        let workspace = workspace.allowing(&allowed_writes(&config, args)).ok()?;
        Some(workspace.snapshot(Default::default()).policy().clone())
    };
    configured().unwrap_or_else(|| PathPolicy::of(root))
}

/// Returns the globs of files that agents may change, from the configuration and the command line.
pub(super) fn allowed_writes(config: &Config, args: &ConfigurationArgs) -> Vec<String> {
    let globs = config.run.allow_write.iter().chain(&args.allow_write);
    globs.cloned().collect()
}

/// Returns the sandbox policy for tests from the configuration.
pub(super) fn policy(config: &starling_config::SandboxSettings) -> Policy {
    Policy {
        bounds: Bounds {
            memory: config.memory_mb.saturating_mul(1 << 20),
            processes: config.processes,
            output: config.output_mb.saturating_mul(1 << 20),
            disk: config.disk_mb.saturating_mul(1 << 20),
            ..Bounds::default()
        },
        unconfined: match config.missing {
            starling_config::SandboxMissing::Refuse => Unconfined::Refused,
            starling_config::SandboxMissing::Allow => Unconfined::Allowed,
        },
    }
}

/// Returns the container for tests, if one is configured.
fn container(config: &starling_config::SandboxSettings) -> Option<Container> {
    Some(Container {
        image: config.container.clone()?,
        client: match &config.container_client {
            Some(client) => client.into(),
            None => Container::client_found(),
        },
    })
}

/// Returns the search paths of language servers.
pub fn places(root: &Path, args: &ConfigurationArgs) -> ProgramSearch {
    ProgramSearch::of_process(root.to_owned(), own_programs(root, args))
}

/// Programs of the project are used only if the project is trusted.
fn own_programs(root: &Path, args: &ConfigurationArgs) -> OwnPrograms {
    match trust::of(root, args, &ProjectFile::of(root)) {
        starling_config::Trust::Trusted => OwnPrograms::Allowed,
        starling_config::Trust::NotTrusted | starling_config::Trust::Changed => {
            OwnPrograms::Refused
        }
    }
}

fn wanted(language: &starling_config::LanguageSettings) -> ServerSelection {
    let kind = |stop: &starling_config::BlockingProblem| match stop {
        starling_config::BlockingProblem::Syntax => ProblemKind::Syntax,
        starling_config::BlockingProblem::Name => ProblemKind::Name,
        starling_config::BlockingProblem::Import => ProblemKind::Import,
        starling_config::BlockingProblem::Call => ProblemKind::Call,
        starling_config::BlockingProblem::Other => ProblemKind::Other,
    };
    ServerSelection {
        fast: language.servers.clone(),
        thorough: language.thorough.clone(),
        stops: language.stops.iter().map(kind).collect(),
        deadline: Duration::from_secs(language.seconds),
    }
}

fn defaults(config: &Config) -> RunDefaults {
    RunDefaults {
        driver: config.run.driver,
        approval: config.run.approve,
        ask_intent: config.run.ask_intent,
        limits: config.limits.clone(),
        test_deadline: Duration::from_secs(config.tests.seconds),
        try_examples: config.run.try_examples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::{Approval, AskIntent, Driver};

    #[test]
    fn defaults_of_the_configuration_and_the_swarm_are_equal() {
        let defaults = defaults(&Config::default());
        assert_eq!(defaults.limits, Config::default().limits);
        assert_eq!(defaults.approval, Approval::Ask);
        assert_eq!(defaults.driver, Driver::Swarm);
        assert_eq!(defaults.ask_intent, AskIntent::Contract);
    }

    #[test]
    fn trust_option_does_not_cover_a_later_change_of_the_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".starling/config.toml");
        std::fs::create_dir(dir.path().join(".starling")).unwrap();
        let args = ConfigurationArgs {
            trust: true,
            ..ConfigurationArgs::default()
        };
        std::fs::write(&file, "[tests]\nseconds = 77\n").unwrap();
        let loaded = configuration(dir.path(), &args).unwrap();
        assert_eq!(loaded.config.tests.seconds, 77);
        assert_eq!(own_programs(dir.path(), &args), OwnPrograms::Allowed);

        std::fs::write(&file, "[language]\nservers = [\"./evil\"]\n").unwrap();
        let loaded = configuration(dir.path(), &args.clone()).unwrap();
        assert_eq!(
            loaded.config.language.servers,
            starling_lang::known_servers()
        );
        assert_eq!(loaded.config.tests.seconds, Config::default().tests.seconds);
        assert!(loaded.warnings[0].to_string().contains("it changed since"));
        assert_eq!(own_programs(dir.path(), &args), OwnPrograms::Refused);
    }

    #[test]
    fn available_models_and_api_keys_are_listed() {
        let variables = |name: &str| match name {
            "OPENAI_API_KEY" | "GROQ_API_KEY" => Some("secret".to_owned()),
            _ => None,
        };
        let mut config = Config::default();
        let names = |reply: &ModelsReply| -> Vec<String> {
            let models = reply.models.iter();
            models.map(|model| model.name.clone()).collect()
        };
        let fresh = model_list(&config, None, &variables);
        assert_eq!(fresh.chosen.as_deref(), Some("local"));
        assert_eq!(names(&fresh), ["local"]);
        let keys = fresh.keys.iter();
        let keys: Vec<_> = keys
            .map(|key| (key.variable.as_str(), key.prefix.as_deref()))
            .collect();
        assert_eq!(
            keys,
            [("OPENAI_API_KEY", Some("openai:")), ("GROQ_API_KEY", None)]
        );
        for name in ["big", "small"] {
            let model = starling_config::ModelConfig {
                base_url: Some("http://box/v1".to_owned()),
                model: Some(format!("{name}-1")),
                ..Default::default()
            };
            config.models.insert(name.to_owned(), model);
        }
        let two = model_list(&config, None, &variables);
        assert_eq!(two.chosen, None, "nobody chose one of two");
        assert_eq!(names(&two), ["big", "small", "local"]);
        assert_eq!(two.models[0].detail, "big-1 at http://box/v1");
        config.roles.agent = vec!["small".to_owned()];
        let chosen = model_list(&config, None, &variables).chosen;
        assert_eq!(chosen.as_deref(), Some("small"));
        let given = model_list(&config, Some("openai:x"), &variables).chosen;
        assert_eq!(given.as_deref(), Some("openai:x"));
    }

    #[test]
    fn sandbox_settings_become_the_sandbox_policy() {
        let mut sandbox = starling_config::SandboxSettings::default();
        assert_eq!(policy(&sandbox), Policy::default());
        sandbox.missing = starling_config::SandboxMissing::Allow;
        (sandbox.memory_mb, sandbox.processes) = (2, 3);
        (sandbox.output_mb, sandbox.disk_mb) = (4, 5);
        let policy = policy(&sandbox);
        assert_eq!(policy.unconfined, Unconfined::Allowed);
        let bounds = policy.bounds;
        let of = (bounds.memory, bounds.processes, bounds.output, bounds.disk);
        assert_eq!(of, (2 << 20, 3, 4 << 20, 5 << 20));
    }

    #[test]
    fn default_configuration_searches_all_known_language_servers() {
        let wanted = wanted(&Config::default().language);
        assert_eq!(wanted.fast, starling_lang::known_servers());
        assert!(wanted.thorough.is_empty());
        use ProblemKind::{Call, Import, Name, Syntax};
        assert_eq!(wanted.stops, [Syntax, Name, Import, Call].into());
        assert_eq!(wanted.deadline, Duration::from_secs(10));
    }

    #[test]
    fn run_settings_become_the_defaults_of_runs() {
        let mut config = Config::default();
        config.run.driver = Driver::Single;
        config.run.approve = Approval::Proxy;
        config.run.ask_intent = AskIntent::Always;
        let set = defaults(&config);
        assert_eq!(set.driver, Driver::Single);
        assert_eq!(set.approval, Approval::Proxy);
        assert_eq!(set.ask_intent, AskIntent::Always);
        config.limits.calls = 3;
        config.tests.seconds = 7;
        let defaults = defaults(&config);
        assert_eq!(defaults.limits.calls, 3);
        assert_eq!(defaults.test_deadline, Duration::from_secs(7));
    }
}
