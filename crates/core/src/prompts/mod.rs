//! One struct for each template in `prompts/`. Rendering is strict: a missing or misspelt field is
//! an error in the tests instead of a gap in a prompt.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// The data of a prompt template.
pub trait Prompt: Serialize {
    /// File name in `prompts/`.
    const TEMPLATE: &'static str;

    /// Returns the rendered prompt for a model.
    fn render(&self) -> String {
        let template = TEMPLATES
            .get_template(Self::TEMPLATE)
            .expect("every template is compiled by a test of this module");
        let text = template
            .render(minijinja::value::Serde(self))
            .expect("every template is rendered with its struct by a test of this module");
        format!("{}\n", text.trim())
    }
}

macro_rules! templates {
    ($($file:literal),* $(,)?) => {
        const SOURCES: &[(&str, &str)] = &[$(($file, include_str!(concat!("../../../../prompts/", $file)))),*];
    };
}

templates![
    "agent_system.md",
    "agent_system_small.md",
    "agent_system_small_explain.md",
    "agent_system_text.md",
    "answer_system.md",
    "answer_system_text.md",
    "ask.md",
    "ask_mend.md",
    "ask_owner.md",
    "ask_owner_system.md",
    "ask_system.md",
    "ask_system_small.md",
    "ask_system_text.md",
    "cause.md",
    "continue_call.md",
    "continue_text.md",
    "document_small.md",
    "document_system_small.md",
    "editor_system.md",
    "editor.md",
    "proxy_system.md",
    "proxy_system_text.md",
    "proxy.md",
    "scout_system.md",
    "scout_system_text.md",
    "scout.md",
    "solo_system.md",
    "solo_system_text.md",
    "fill_beside.md",
    "solo.md",
    "symbol.md",
    "symbol_small.md",
    "test_small.md",
    "test_system_small.md",
    "verify.md",
    "verify_system.md",
    "task.md",
];

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    environment.set_syntax(syntax.expect("the default delimiters are valid"));
    for (name, source) in SOURCES {
        environment
            .add_template(name, source)
            .expect("templates are compiled by a test");
    }
    environment
});

macro_rules! fixed_prompts {
    ($($(#[$doc:meta])* $name:ident = $file:literal),* $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, Serialize)]
            pub struct $name {}
            impl Prompt for $name {
                const TEMPLATE: &'static str = $file;
            }
        )*
    };
}

fixed_prompts![
    /// Instructions for an owner (the agent of a symbol), for models with tools.
    AgentSystem = "agent_system.md",
    /// Instructions for small models, which answer one prompt about one function.
    AgentSystemSmall = "agent_system_small.md",
    /// Like [`AgentSystemSmall`], with a request to first explain what is wrong.
    AgentSystemSmallExplain = "agent_system_small_explain.md",
    /// Like [`AgentSystemSmall`], for a text file.
    DocumentSystemSmall = "document_system_small.md",
    /// Like [`AgentSystemSmall`], for a new test.
    TestSystemSmall = "test_system_small.md",
    /// Like [`AgentSystem`], for models without tools.
    AgentSystemText = "agent_system_text.md",
    /// Instructions for an agent that answers another agent's question without changing code.
    AnswerSystem = "answer_system.md",
    AnswerSystemText = "answer_system_text.md",
    /// Instructions for an owner that reports on its symbol to a reader (the agent that answers a
    /// user's question).
    AskOwnerSystem = "ask_owner_system.md",
    /// Instructions for answering a user's question about the code.
    AskSystem = "ask_system.md",
    /// Like [`AskSystem`], for small models: one prompt, no tools.
    AskSystemSmall = "ask_system_small.md",
    AskSystemText = "ask_system_text.md",
    EditorSystem = "editor_system.md",
    ProxySystem = "proxy_system.md",
    /// Like [`ProxySystem`], for models without tools.
    ProxySystemText = "proxy_system_text.md",
    ScoutSystem = "scout_system.md",
    ScoutSystemText = "scout_system_text.md",
    /// Instructions for the only agent of `--driver single`.
    SoloSystem = "solo_system.md",
    SoloSystemText = "solo_system_text.md",
];

/// The part of the prompt that all agents of a run share. It never changes during a run.
#[derive(Debug, Clone, Serialize)]
pub struct TaskPrompt {
    pub task: String,
    /// The Python version that runs the tests; empty if unknown.
    pub python: String,
    /// The repository's AGENTS.md, shortened; empty if there is none.
    pub rules: String,
    /// The failures of the tests before the run; empty if the tests were not run or all pass.
    pub failures: String,
    /// The values of variables where failing tests of the task failed, one frame per line; empty if
    /// they are not known.
    pub values: String,
    /// The examples of the task and their results on the unchanged code. Empty if no example could run.
    pub examples: String,
    /// Whether a change needs a new test: without one it is reverted, because no test fails before
    /// the change.
    pub test_is_needed: bool,
    /// Names of tests that failed before the run but do not belong to the task; empty if there are
    /// none.
    pub other_failures: String,
    /// Files that the task mentions but that do not exist, one per line; empty if there are none.
    pub not_there: String,
    /// Methods of related classes that the task renames or gives other parameters, with their calls, one
    /// per line; empty if there are none.
    pub method_families: String,
}

impl Prompt for TaskPrompt {
    const TEMPLATE: &'static str = "task.md";
}

/// A code excerpt with its location.
#[derive(Debug, Clone, Serialize)]
pub struct Excerpt {
    pub symbol: String,
    /// Number of the first line, from 1.
    pub line: u32,
    pub why: String,
    pub source: String,
    /// Code locations that use the symbol, one per line; empty if they are irrelevant.
    pub uses: Vec<String>,
}

/// An owner's view of its symbol.
#[derive(Debug, Clone, Serialize)]
pub struct SymbolPrompt {
    pub symbol: String,
    pub kind: String,
    pub language: String,
    pub line: u32,
    pub source: String,
    /// Whether the source is shortened, with children shown only by their signatures.
    pub shortened: bool,
    pub outline: String,
    /// Uses of the symbol, one per line.
    pub callers: Vec<String>,
    /// Symbols that this symbol calls and that the task mentions.
    pub callees: Vec<Excerpt>,
    pub tests: Vec<Excerpt>,
    /// The other active owners and their instructions, one per line.
    pub others: Vec<String>,
    pub cause: String,
}

impl Prompt for SymbolPrompt {
    const TEMPLATE: &'static str = "symbol.md";
}

/// Like [`SymbolPrompt`], for small models: less content, in the order with the best results.
#[derive(Debug, Clone, Serialize)]
pub struct SymbolSmallPrompt {
    pub task: String,
    /// Descriptions of failing tests.
    pub failures: Vec<String>,
    /// Sources of passing tests that an earlier reply broke.
    pub to_keep: Vec<String>,
    pub cause: String,
    /// Whether the answer must begin with an explanation of the error.
    pub explain: bool,
    pub kind: String,
    pub language: String,
    pub source: String,
}

impl Prompt for SymbolSmallPrompt {
    const TEMPLATE: &'static str = "symbol_small.md";
}

/// A text file for a small model to change.
#[derive(Debug, Clone, Serialize)]
pub struct DocumentSmallPrompt {
    pub task: String,
    pub file: String,
    pub source: String,
}

impl Prompt for DocumentSmallPrompt {
    const TEMPLATE: &'static str = "document_small.md";
}

/// A function for which a small model writes a test.
#[derive(Debug, Clone, Serialize)]
pub struct TestSmallPrompt {
    pub task: String,
    /// The kind of the symbol: function, method or class.
    pub kind: String,
    pub name: String,
    pub source: String,
    /// The file for the new test, or a part of it; empty if there is none.
    pub tests: String,
    /// A test from another file, if the test file contains no example.
    pub example: String,
    /// The base class of test classes; empty if tests are functions.
    pub base: String,
}

impl Prompt for TestSmallPrompt {
    const TEMPLATE: &'static str = "test_small.md";
}

/// The failing tests, shown to a small model as a separate file next to the text with a hole.
#[derive(Debug, Clone, Serialize)]
pub struct FillBesidePrompt {
    pub tests: Vec<FillTest>,
}

impl Prompt for FillBesidePrompt {
    const TEMPLATE: &'static str = "fill_beside.md";
}

/// A failing test and its output, for [`FillBesidePrompt`].
#[derive(Debug, Clone, Serialize)]
pub struct FillTest {
    pub source: String,
    /// The failure output, one entry per line.
    pub says: Vec<String>,
}

/// Why an agent was started. `kind` is one of the causes in the run's events.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CausePrompt {
    pub kind: &'static str,
    pub from: String,
    pub text: String,
    pub changes: Vec<String>,
    pub lines: Vec<u32>,
}

impl Prompt for CausePrompt {
    const TEMPLATE: &'static str = "cause.md";
}

/// Requests the rest of a text that was cut off.
#[derive(Debug, Clone, Serialize)]
pub struct ContinueTextPrompt {
    /// The last part of the text before it was cut off.
    pub quote: String,
    /// Whether the quoted text ends with a line break.
    pub whole_line: bool,
}

impl Prompt for ContinueTextPrompt {
    const TEMPLATE: &'static str = "continue_text.md";
}

/// Requests the rest of a tool call's arguments that were cut off.
#[derive(Debug, Clone, Serialize)]
pub struct ContinueCallPrompt {
    /// The name of the tool.
    pub name: String,
    pub quote: String,
}

impl Prompt for ContinueCallPrompt {
    const TEMPLATE: &'static str = "continue_call.md";
}

/// The symbols from which the scout (the agent that picks where to begin) chooses.
#[derive(Debug, Clone, Serialize)]
pub struct ScoutPrompt {
    pub candidates: Vec<Excerpt>,
    /// The imports in the file of the best candidate.
    pub imports: String,
}

impl Prompt for ScoutPrompt {
    const TEMPLATE: &'static str = "scout.md";
}

/// The starting context of the only agent of `--driver single`.
#[derive(Debug, Clone, Serialize)]
pub struct SoloPrompt {
    pub candidates: Vec<Excerpt>,
    /// The imports in the file of the best candidate.
    pub imports: String,
    pub cause: String,
}

impl Prompt for SoloPrompt {
    const TEMPLATE: &'static str = "solo.md";
}

/// An intent or a proposal for the proxy (a model in the user's place) to decide on.
#[derive(Debug, Clone, Serialize)]
pub struct ProxyPrompt {
    pub task: String,
    /// The symbol whose agent made the intent or the proposal.
    pub symbol: String,
    /// The symbols that a proposal changes; empty for an intent.
    pub symbols: Vec<String>,
    pub reason: String,
    /// The change as a diff; empty for an intent.
    pub diff: String,
    pub evidence: String,
    /// Diffs of the proposals accepted so far, shortened.
    pub accepted: String,
    /// The other active owners, one per line.
    pub others: Vec<String>,
}

impl Prompt for ProxyPrompt {
    const TEMPLATE: &'static str = "proxy.md";
}

/// A described change for an editor model to write as code.
#[derive(Debug, Clone, Serialize)]
pub struct EditorPrompt {
    pub symbol: String,
    pub language: String,
    pub source: String,
    pub change: String,
    pub task: String,
}

impl Prompt for EditorPrompt {
    const TEMPLATE: &'static str = "editor.md";
}

/// An earlier question with its answer.
#[derive(Debug, Clone, Serialize)]
pub struct AskTurn {
    pub question: String,
    pub answer: String,
}

/// The starting context of the agent that answers a user's question about the code.
#[derive(Debug, Clone, Serialize)]
pub struct AskPrompt {
    pub question: String,
    /// Sources with locations and line numbers, best match first.
    pub excerpts: Vec<String>,
    /// Matching symbols whose sources did not fit into the prompt.
    pub others: Vec<String>,
    /// Names and the locations where they are used.
    pub uses: Vec<(String, String)>,
    /// An overview of the project; empty for small models.
    pub map: String,
    /// The number of files and their directories.
    pub files: String,
    pub turns: Vec<AskTurn>,
    /// What owners (agents of symbols) answered to earlier questions about their symbols.
    pub findings: Vec<String>,
    /// Whether to repeat the answer format at the end, which helps small models.
    pub small: bool,
}

impl Prompt for AskPrompt {
    const TEMPLATE: &'static str = "ask.md";
}

/// A question from the agent that answers the user to the owner of a symbol.
#[derive(Debug, Clone, Serialize)]
pub struct AskOwnerPrompt {
    pub symbol: String,
    pub source: String,
    pub uses: String,
    pub question: String,
    pub why: String,
}

impl Prompt for AskOwnerPrompt {
    const TEMPLATE: &'static str = "ask_owner.md";
}

/// A rejected claim and what is wrong with it.
#[derive(Debug, Clone, Serialize)]
pub struct RejectedClaim {
    pub claim: String,
    pub what: String,
}

/// Asks for a correction of claims with wrong or missing citations.
#[derive(Debug, Clone, Serialize)]
pub struct AskMendPrompt {
    pub claims: Vec<RejectedClaim>,
}

impl Prompt for AskMendPrompt {
    const TEMPLATE: &'static str = "ask_mend.md";
}

/// Instructions for a verifier, which scores changes.
#[derive(Debug, Clone, Serialize)]
pub struct VerifySystem {}

impl Prompt for VerifySystem {
    const TEMPLATE: &'static str = "verify_system.md";
}

/// A change for the verifier to score.
#[derive(Debug, Clone, Serialize)]
pub struct VerifyPrompt {
    pub problem: String,
    pub patch: String,
}

impl Prompt for VerifyPrompt {
    const TEMPLATE: &'static str = "verify.md";
}

#[cfg(test)]
mod tests;
