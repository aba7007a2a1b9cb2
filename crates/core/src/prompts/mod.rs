//! One struct for each template in `prompts/`, rendered strictly: a missing or misspelt field is an
//! error at test time, not an empty place in a prompt.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// A template and its data.
pub trait Prompt: Serialize {
    /// File name in `prompts/`.
    const TEMPLATE: &'static str;

    /// The text that a model reads.
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
    /// What an owner is and how it works, for models with tools.
    AgentSystem = "agent_system.md",
    /// For small models: one function, one answer.
    AgentSystemSmall = "agent_system_small.md",
    /// The same where it first says what is wrong.
    AgentSystemSmallExplain = "agent_system_small_explain.md",
    /// The same for a text file.
    DocumentSystemSmall = "document_system_small.md",
    /// The same for a new test.
    TestSystemSmall = "test_system_small.md",
    /// The same for models without tools.
    AgentSystemText = "agent_system_text.md",
    /// Answering a question: read-only.
    AnswerSystem = "answer_system.md",
    AnswerSystemText = "answer_system_text.md",
    /// Reports of a symbol to a reader: read-only.
    AskOwnerSystem = "ask_owner_system.md",
    /// Answers a user's question about the code: read-only.
    AskSystem = "ask_system.md",
    /// For small models: one prompt, no tools.
    AskSystemSmall = "ask_system_small.md",
    AskSystemText = "ask_system_text.md",
    EditorSystem = "editor_system.md",
    ProxySystem = "proxy_system.md",
    /// The same for models without tools.
    ProxySystemText = "proxy_system_text.md",
    ScoutSystem = "scout_system.md",
    ScoutSystemText = "scout_system_text.md",
    /// The one agent of `--driver single`.
    SoloSystem = "solo_system.md",
    SoloSystemText = "solo_system_text.md",
];

/// What all agents of a run share: the frozen part of their prompts.
#[derive(Debug, Clone, Serialize)]
pub struct TaskPrompt {
    pub task: String,
    /// The version of the Python that runs the tests; empty where it is not known.
    pub python: String,
    /// The repository's AGENTS.md, capped; empty when there is none.
    pub rules: String,
    /// What the tests said before the run; empty when they were not run or all pass.
    pub failures: String,
    /// A change is taken back without a test that shows it, and none fails.
    pub test_is_needed: bool,
    /// Names of tests that failed before the run and are no part of the task; empty when there are none.
    pub other_failures: String,
    /// Files that the task names and that are not there, one a line; empty when there are none.
    pub not_there: String,
}

impl Prompt for TaskPrompt {
    const TEMPLATE: &'static str = "task.md";
}

/// A piece of code with its place.
#[derive(Debug, Clone, Serialize)]
pub struct Excerpt {
    pub symbol: String,
    /// First line, from 1.
    pub line: u32,
    pub why: String,
    pub source: String,
    /// Where it is used, one a line, when that matters.
    pub uses: Vec<String>,
}

/// What an owner sees of its symbol.
#[derive(Debug, Clone, Serialize)]
pub struct SymbolPrompt {
    pub symbol: String,
    pub kind: String,
    pub language: String,
    pub line: u32,
    pub source: String,
    /// The source is shortened: children are shown by their signatures.
    pub shortened: bool,
    pub outline: String,
    /// Where it is used, one a line.
    pub callers: Vec<String>,
    /// What it calls and the task speaks of.
    pub callees: Vec<Excerpt>,
    pub tests: Vec<Excerpt>,
    /// The other owners at work and what each was told, one a line.
    pub others: Vec<String>,
    pub cause: String,
}

impl Prompt for SymbolPrompt {
    const TEMPLATE: &'static str = "symbol.md";
}

/// The same for small models: little, and in the order that they do best with.
#[derive(Debug, Clone, Serialize)]
pub struct SymbolSmallPrompt {
    pub task: String,
    /// Failing tests in words.
    pub failures: Vec<String>,
    /// Sources of tests that pass and that an earlier reply broke.
    pub to_keep: Vec<String>,
    pub cause: String,
    /// Whether the answer begins with what is wrong.
    pub explain: bool,
    pub kind: String,
    pub language: String,
    pub source: String,
}

impl Prompt for SymbolSmallPrompt {
    const TEMPLATE: &'static str = "symbol_small.md";
}

/// A text file that a small model changes.
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
    /// Function, method or class.
    pub kind: String,
    pub name: String,
    pub source: String,
    /// The file in which it will stand, or a part of it; empty where there is none.
    pub tests: String,
    /// A test of another file, where the file shows none.
    pub example: String,
    /// What a class of tests extends; empty where tests are functions.
    pub base: String,
}

impl Prompt for TestSmallPrompt {
    const TEMPLATE: &'static str = "test_small.md";
}

/// The failing tests as a file beside a text with a hole, for a small model.
#[derive(Debug, Clone, Serialize)]
pub struct FillBesidePrompt {
    pub tests: Vec<FillTest>,
}

impl Prompt for FillBesidePrompt {
    const TEMPLATE: &'static str = "fill_beside.md";
}

#[derive(Debug, Clone, Serialize)]
pub struct FillTest {
    pub source: String,
    /// What it says, by lines.
    pub says: Vec<String>,
}

/// Why an agent has work; `kind` is one of the causes of an event.
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

/// Asks for the rest of an answer that was cut.
#[derive(Debug, Clone, Serialize)]
pub struct ContinueTextPrompt {
    /// The end of what is there.
    pub quote: String,
    /// It ends with a line break.
    pub whole_line: bool,
}

impl Prompt for ContinueTextPrompt {
    const TEMPLATE: &'static str = "continue_text.md";
}

/// Asks for the rest of a tool's arguments that were cut.
#[derive(Debug, Clone, Serialize)]
pub struct ContinueCallPrompt {
    /// The tool.
    pub name: String,
    pub quote: String,
}

impl Prompt for ContinueCallPrompt {
    const TEMPLATE: &'static str = "continue_call.md";
}

/// What the scout chooses from.
#[derive(Debug, Clone, Serialize)]
pub struct ScoutPrompt {
    pub candidates: Vec<Excerpt>,
    /// What the file of the best imports.
    pub imports: String,
}

impl Prompt for ScoutPrompt {
    const TEMPLATE: &'static str = "scout.md";
}

/// What the one agent of `--driver single` begins with.
#[derive(Debug, Clone, Serialize)]
pub struct SoloPrompt {
    pub candidates: Vec<Excerpt>,
    /// What the file of the best imports.
    pub imports: String,
    pub cause: String,
}

impl Prompt for SoloPrompt {
    const TEMPLATE: &'static str = "solo.md";
}

/// What the proxy user decides on.
#[derive(Debug, Clone, Serialize)]
pub struct ProxyPrompt {
    pub task: String,
    /// Whose intent it is.
    pub symbol: String,
    /// What a proposal changes; empty for an intent.
    pub symbols: Vec<String>,
    pub reason: String,
    /// Empty for an intent.
    pub diff: String,
    pub evidence: String,
    /// Proposals accepted so far, as diffs, capped.
    pub accepted: String,
    /// Other owners at work, one a line.
    pub others: Vec<String>,
}

impl Prompt for ProxyPrompt {
    const TEMPLATE: &'static str = "proxy.md";
}

/// A change for an editor model to write.
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

/// An earlier question and its answer.
#[derive(Debug, Clone, Serialize)]
pub struct AskTurn {
    pub question: String,
    pub answer: String,
}

/// What a reader begins with who answers a question about the code.
#[derive(Debug, Clone, Serialize)]
pub struct AskPrompt {
    pub question: String,
    /// Sources with their places and line numbers, best first.
    pub excerpts: Vec<String>,
    /// Symbols that found no room.
    pub others: Vec<String>,
    /// Names with the places where they are used.
    pub uses: Vec<(String, String)>,
    /// Empty for small models.
    pub map: String,
    /// How many files there are, and in which folders.
    pub files: String,
    pub turns: Vec<AskTurn>,
    /// What owners have said before.
    pub findings: Vec<String>,
    /// Small models are told once more, at the end, what an answer looks like.
    pub small: bool,
}

impl Prompt for AskPrompt {
    const TEMPLATE: &'static str = "ask.md";
}

/// A question to the owner of a symbol, from the reader of a user's question.
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

/// A claim that goes back, and what is wrong with it.
#[derive(Debug, Clone, Serialize)]
pub struct RejectedClaim {
    pub claim: String,
    pub what: String,
}

/// Claims whose citations are wrong or missing.
#[derive(Debug, Clone, Serialize)]
pub struct AskMendPrompt {
    pub claims: Vec<RejectedClaim>,
}

impl Prompt for AskMendPrompt {
    const TEMPLATE: &'static str = "ask_mend.md";
}

/// What a verifier of changes is told.
#[derive(Debug, Clone, Serialize)]
pub struct VerifySystem {}

impl Prompt for VerifySystem {
    const TEMPLATE: &'static str = "verify_system.md";
}

/// A change that is to be given points.
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
