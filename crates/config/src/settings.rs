//! All settings. The doc comment of each field is shown by `config explain`, in the JSON schema and
//! in the manual.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use starling_core::{Approval, AskIntent, Driver, Limits, ToolCalling};

/// Configuration of Starling.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// The models, each under a name of your choice. Without any, the local model is used.
    pub models: BTreeMap<String, ModelConfig>,
    /// The models of each role.
    pub roles: RoleSettings,
    /// Limits of one run. The run stops when it reaches the first of them.
    pub limits: Limits,
    /// Options of a run.
    pub run: RunSettings,
    /// How the project's tests are run.
    pub tests: TestSettings,
    /// Limits and permissions of test runs.
    pub sandbox: SandboxSettings,
    /// Language servers.
    pub language: LanguageSettings,
    /// Timeouts and retries for endpoints.
    pub network: NetworkSettings,
}

/// One model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelConfig {
    /// The source of the model's answers: an endpoint with OpenAI's chat completions API (openai),
    /// a file of local weights (gguf), a recorded trajectory (replay), a file with a known change
    /// (oracle), another process on this machine (socket), or no model (none), which is enough for
    /// refactorings.
    pub kind: ModelKind,
    /// The model's name at the endpoint. Default: the name of the table.
    pub model: Option<String>,
    /// Base URL of the endpoint, for example `http://127.0.0.1:8080/v1`. Default: the environment
    /// variable OPENAI_BASE_URL, or else OpenAI's endpoint.
    pub base_url: Option<String>,
    /// Name of the environment variable with the API key, never the key itself. Default:
    /// OPENAI_API_KEY if `base_url` is not set either, otherwise no key is sent.
    pub api_key_env: Option<String>,
    /// Path of the weights (gguf; default: Starling's default model), the trajectory (replay), the
    /// known change (oracle), or the socket (socket).
    pub path: Option<String>,
    /// Context window in tokens, for prompt and answer together. Default: 32,768 for an endpoint;
    /// the value in the file for weights.
    pub context_window: Option<u64>,
    /// Maximum length of a single answer of an endpoint, in tokens. Default: 8,192. Longer answers
    /// are continued.
    pub max_output: Option<u64>,
    /// Request field that limits the answer. Default: `max_completion_tokens` for OpenAI's own
    /// endpoint, `max_tokens` for every other.
    pub output_limit: Option<OutputLimitField>,
    /// How tools are offered to an endpoint: by its own tool calling (native), or as text in the
    /// prompt (text). Default: native, and text after the server has refused a request because of
    /// its tools. Local weights always use text.
    #[schemars(schema_with = "tool_calling")]
    pub tool_calling: Option<ToolCalling>,
    /// Temperature to use instead of the one that Starling requests.
    pub temperature: Option<f64>,
    /// Request fields to leave out because the endpoint does not accept them, for example
    /// `temperature` or `seed`.
    pub omit: Vec<String>,
    /// Price in dollars per million prompt tokens. Default: the list price if it is known.
    pub price_prompt: Option<f64>,
    /// Price in dollars per million prompt tokens that the provider took from its cache. Default:
    /// `price_prompt`.
    pub price_cached: Option<f64>,
    /// Price in dollars per million answer tokens.
    pub price_output: Option<f64>,
}

fn tool_calling(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "enum": ["native", "text", null]})
}

/// The source of a model's answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ModelKind {
    #[default]
    Openai,
    Gguf,
    Replay,
    Oracle,
    Socket,
    None,
}

/// The request field that limits the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OutputLimitField {
    MaxTokens,
    MaxCompletionTokens,
}

/// The models of each role. Use names from `models`, or specifications as for `--model`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RoleSettings {
    /// Models of the agents that own symbols. Each name is the fallback of the one before. Default:
    /// the only model under `models`, or else the local model.
    pub agent: Vec<String>,
    /// Models of the scout, which picks the symbols where work begins; later names are fallbacks.
    /// Default: as `agent`.
    pub scout: Vec<String>,
    /// Models that each write a candidate for every change. Default: the agent's model writes the
    /// changes.
    pub editor: Vec<String>,
    /// Models of the proxy, which approves instead of the user if `run.approve` is `proxy`; later
    /// names are fallbacks. Default: as `agent`.
    pub proxy: Vec<String>,
}

/// Options of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunSettings {
    /// One agent for each symbol (swarm), or one agent for all symbols (single).
    pub driver: Driver,
    /// Who approves proposals: you (ask), a model (proxy), or nobody, so that every proposal that
    /// passes its checks is applied (auto).
    pub approve: Approval,
    /// When an agent's intent needs approval before code is written: never, only if the change
    /// alters a contract or more than two symbols (contract), or always.
    pub ask_intent: AskIntent,
    /// Files that agents may change although the files run outside the sandbox, as .gitignore
    /// globs. Without a match, only a person may accept a change of such a file.
    pub allow_write: Vec<String>,
    /// Whether examples in a task (Python, `>>>` lines, `$ pytest`, `$ python -m` with a module of
    /// the project) are run in the sandbox of the tests, before the first change and with each one.
    pub try_examples: bool,
    /// Temperature for every model instead of any other setting. Used to draw several samples of
    /// one task.
    pub temperature: Option<f64>,
    /// Seed for every model that supports seeds. Another number gives another sample.
    pub seed: Option<u32>,
}

impl Default for RunSettings {
    fn default() -> Self {
        RunSettings {
            driver: Driver::default(),
            approve: Approval::default(),
            ask_intent: AskIntent::default(),
            allow_write: Vec::new(),
            try_examples: true,
            temperature: None,
            seed: None,
        }
    }
}

/// How the project's tests are run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TestSettings {
    /// Command that runs the tests. `{tests}` in it is replaced by the selected tests, `{files}` by
    /// their files. Default: detected from the project.
    pub command: Option<String>,
    /// Shell command that runs before each test command, in the same sandbox. Use it to start what
    /// the tests need, such as a service.
    pub setup: Option<String>,
    /// Time limit of one test run, in seconds.
    pub seconds: u64,
}

impl Default for TestSettings {
    fn default() -> Self {
        TestSettings {
            command: None,
            setup: None,
            seconds: 120,
        }
    }
}

/// Limits and permissions of test runs. Tests have no network and write only into their own copy of
/// the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxSettings {
    /// What to do if no sandbox is available: refuse to run tests, or allow them to run with only
    /// the limits of memory, processes, output and disk space.
    pub missing: SandboxMissing,
    /// Memory limit of one test run in megabytes, including temporary files.
    pub memory_mb: u64,
    /// Maximum number of processes and threads of one test run.
    pub processes: u32,
    /// Maximum output of one test run in megabytes.
    pub output_mb: u64,
    /// Maximum disk space of one test run in megabytes, in its copy of the project.
    pub disk_mb: u64,
    /// Names of additional environment variables that tests receive. Variables whose names look
    /// like secrets, or whose values hold a password, a token or a private key of known forms, are
    /// never passed.
    pub environment: Vec<String>,
    /// Directories in the home directory that tests may read in addition to toolchains, as absolute
    /// paths. Other directories are hidden.
    pub readable: Vec<String>,
    /// Container image to use instead of the sandbox: every test run gets its own container, with
    /// the project at /testbed. Images are never pulled.
    pub container: Option<String>,
    /// Command line client for the container, docker or podman. Default: the one that is installed.
    pub container_client: Option<String>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        SandboxSettings {
            missing: SandboxMissing::Refuse,
            memory_mb: 4096,
            processes: 1024,
            output_mb: 64,
            disk_mb: 4096,
            environment: Vec::new(),
            readable: Vec::new(),
            container: None,
            container_client: None,
        }
    }
}

/// Language servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LanguageSettings {
    /// Language servers for Python in order of preference; the first one that is installed checks
    /// every proposal. Each is a name (ty, basedpyright, pyright, jedi-language-server, pylsp) or a
    /// command with its arguments. An empty list disables the checks.
    pub servers: Vec<String>,
    /// Language servers for a second check of proposals in which the first server found nothing to
    /// fix. Default: no second check.
    pub thorough: Vec<String>,
    /// Time limit of one request to a server, in seconds. After it, the result is unknown.
    pub seconds: u64,
    /// Kinds of errors that return a proposal to its agent before anyone reviews it: syntax, name
    /// (an undefined name), import, call (wrong arguments), other. Errors of other kinds are only
    /// shown.
    pub stops: Vec<BlockingProblem>,
}

impl Default for LanguageSettings {
    fn default() -> Self {
        LanguageSettings {
            servers: [
                "ty",
                "basedpyright",
                "pyright",
                "jedi-language-server",
                "pylsp",
            ]
            .map(str::to_owned)
            .to_vec(),
            thorough: Vec::new(),
            seconds: 10,
            stops: vec![
                BlockingProblem::Syntax,
                BlockingProblem::Name,
                BlockingProblem::Import,
                BlockingProblem::Call,
            ],
        }
    }
}

/// What to do with tests if no sandbox is available.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SandboxMissing {
    #[default]
    Refuse,
    Allow,
}

/// A kind of error that returns a proposal to its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum BlockingProblem {
    Syntax,
    Name,
    Import,
    Call,
    Other,
}

/// Timeouts and retries for endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NetworkSettings {
    /// Time limit of one attempt at an answer, in seconds.
    pub timeout_seconds: u64,
    /// Maximum pause within an answer that has begun, in seconds.
    pub idle_seconds: u64,
    /// Number of attempts with one model before the next model of the list is tried.
    pub attempts: u32,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        NetworkSettings {
            timeout_seconds: 600,
            idle_seconds: 120,
            attempts: 4,
        }
    }
}
