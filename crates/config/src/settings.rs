//! What can be set. The text of each field is what `config explain`, the schema and the manual show.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use starling_core::{Approval, AskIntent, Driver, Limits, ToolCalling};

/// Settings of Starling.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// Models, each under a name of your own choice. Without any, the local model is used.
    pub models: BTreeMap<String, ModelConfig>,
    /// Which models play which part.
    pub roles: Roles,
    /// What one run may spend. The run stops at the first limit that it reaches.
    pub limits: Limits,
    /// How a run goes.
    pub run: Run,
    /// The project's tests.
    pub tests: Tests,
    /// What tests may do.
    pub sandbox: Sandbox,
    /// Language servers.
    pub language: Language,
    /// Patience with endpoints.
    pub network: Network,
}

/// One model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelConfig {
    /// Where its answers come from: an endpoint that speaks OpenAI's chat completions, a file of
    /// weights run in the process, a recorded trajectory, a change that is known beforehand, or another process.
    pub kind: ModelKind,
    /// The name that the endpoint knows; when unset, the name of the table.
    pub model: Option<String>,
    /// The endpoint, for example `http://127.0.0.1:8080/v1`; when unset, the variable
    /// OPENAI_BASE_URL, else OpenAI's own.
    pub base_url: Option<String>,
    /// The name of the environment variable that holds the key, never the key itself. When unset, no
    /// key is sent; where `base_url` is unset too, that in OPENAI_API_KEY.
    pub api_key_env: Option<String>,
    /// The file of weights (gguf; when unset, Starling's own default) the trajectory (replay), the
    /// known change (oracle), or the socket file (socket).
    pub path: Option<String>,
    /// Prompt and answer together, in tokens; when unset, 32,768 for an endpoint, what the file says
    /// for weights.
    pub context_window: Option<u64>,
    /// The longest single answer of an endpoint, in tokens; when unset, 8,192. Longer answers are
    /// continued.
    pub max_output: Option<u64>,
    /// The field of the request that limits the answer; when unset, `max_completion_tokens` for
    /// OpenAI's own endpoint and `max_tokens` for every other.
    pub output_limit: Option<OutputLimitField>,
    /// How tools are offered to an endpoint: by its own tool calling, or as text in the prompt. When
    /// unset, `native`, and `text` from the first request on that the server refuses for its tools.
    /// Weights are always offered them as text.
    #[schemars(schema_with = "tool_calling")]
    pub tool_calling: Option<ToolCalling>,
    /// Used in place of the temperature that Starling would ask for.
    pub temperature: Option<f64>,
    /// Fields of the request that the endpoint does not accept, for example `temperature` or `seed`.
    pub omit: Vec<String>,
    /// Dollars per million prompt tokens; when unset, the list price where it is known.
    pub price_prompt: Option<f64>,
    /// Dollars per million prompt tokens that the provider took from its cache; when unset, as
    /// `price_prompt`.
    pub price_cached: Option<f64>,
    /// Dollars per million tokens of the answer.
    pub price_output: Option<f64>,
}

fn tool_calling(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "enum": ["native", "text", null]})
}

/// Where a model's answers come from.
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
}

/// The field of the request that limits the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OutputLimitField {
    MaxTokens,
    MaxCompletionTokens,
}

/// Which models play which part. Names are those of `models`; the specifications of `--model` work too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Roles {
    /// Owns a symbol. Each next name is the fallback of the one before. When empty, the only model
    /// under `models`, or the local one.
    pub agent: Vec<String>,
    /// Picks where work begins, with fallbacks. When empty, as `agent`.
    pub scout: Vec<String>,
    /// Each name writes a candidate of its own for every change. When empty, the agent writes.
    pub editor: Vec<String>,
    /// Stands in for the user where `run.approve` is `proxy`, with fallbacks. When empty, as `agent`.
    pub proxy: Vec<String>,
}

/// How a run goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Run {
    /// One agent per symbol, or one agent over all symbols.
    pub driver: Driver,
    /// Who approves proposals: you, a model in your place, or nobody (whatever passes its checks is
    /// applied).
    pub approve: Approval,
    /// When an agent's intent needs approval before code is written: never, when the change alters a
    /// contract or more than two symbols, or always.
    pub ask_intent: AskIntent,
    /// Files, as globs of .gitignore, that are changed like any other although they run outside the
    /// sandbox: elsewhere only a person may accept a change of them.
    pub allow_write: Vec<String>,
    /// Asked of every model in place of any other temperature: for samples of one task.
    pub temperature: Option<f64>,
    /// Another number gives another sample, where a model heeds it.
    pub seed: Option<u32>,
}

/// The project's tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tests {
    /// The command that runs the tests; when unset, it is found out. `{tests}` in it stands for selected
    /// tests, `{files}` for the files that they are in.
    pub command: Option<String>,
    /// A line for the shell that runs before each command of tests, beside them in their sandbox: it
    /// starts what they need, a service for example.
    pub setup: Option<String>,
    /// The longest that one test run may take.
    pub seconds: u64,
}

impl Default for Tests {
    fn default() -> Self {
        Tests {
            command: None,
            setup: None,
            seconds: 120,
        }
    }
}

/// What tests may do. They have no network and write only in their shadow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sandbox {
    /// What becomes of tests where no sandbox can be made: they do not run, or they run with nothing
    /// but the limits.
    pub missing: SandboxMissing,
    /// Megabytes of memory, temporary files included, that one test run may use.
    pub memory_mb: u64,
    /// Processes and threads that one test run may have at a time.
    pub processes: u32,
    /// Megabytes that one test run may print.
    pub output_mb: u64,
    /// Megabytes that one test run may leave on disk, in its shadow.
    pub disk_mb: u64,
    /// Names of further environment variables that tests are given. Those that sound like secrets are
    /// never given.
    pub environment: Vec<String>,
    /// Directories in the home directory that tests may read, besides toolchains. They do not see
    /// others.
    pub readable: Vec<String>,
    /// An image of a container: every test run gets a container of it in place of the sandbox, with the
    /// project at /testbed. Nothing is pulled.
    pub container: Option<String>,
    /// The command line client for that, docker or podman; when unset, the one that is found.
    pub container_client: Option<String>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Sandbox {
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
pub struct Language {
    /// Servers for Python in the order in which they are looked for; the first that is found checks
    /// every proposal. Each is a name (ty, basedpyright, pyright, jedi-language-server, pylsp) or a
    /// command with its arguments. When empty, none is started.
    pub servers: Vec<String>,
    /// The same for a second look at proposals in which the first found nothing to mend. When empty,
    /// there is none.
    pub thorough: Vec<String>,
    /// The longest that one question may take; then the answer is unknown.
    pub seconds: u64,
    /// Errors that send a proposal back before anybody is asked about it: syntax, name (nothing
    /// defines it), import, call (arguments that do not fit), other. Those that are not listed are
    /// shown.
    pub stops: Vec<Stop>,
}

impl Default for Language {
    fn default() -> Self {
        Language {
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
            stops: vec![Stop::Syntax, Stop::Name, Stop::Import, Stop::Call],
        }
    }
}

/// What becomes of tests without a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SandboxMissing {
    #[default]
    Refuse,
    Allow,
}

/// A kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Stop {
    Syntax,
    Name,
    Import,
    Call,
    Other,
}

/// Patience with endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Network {
    /// The longest that one attempt at an answer may take.
    pub timeout_seconds: u64,
    /// The longest pause within an answer that has begun.
    pub idle_seconds: u64,
    /// Attempts with one model before the next of its list is asked.
    pub attempts: u32,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            timeout_seconds: 600,
            idle_seconds: 120,
            attempts: 4,
        }
    }
}
