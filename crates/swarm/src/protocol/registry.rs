//! Defines all tools of a run.

use std::sync::Arc;

use super::action::{Action, Propose, ToolSet};
use ToolSet::{Answerer, Owner, Scout, Solo};
use starling_core::ToolSpec;
use starling_dialogue::{Execute, LineArguments, Tool, ToolCost, Toolbox};

/// A tool of a run.
pub(crate) type RunTool = Tool<'static, ToolSet, Action>;
/// The tools of one role.
pub(crate) type RunToolbox = Toolbox<'static, ToolSet, Action>;

/// Executes the calls of one kind of tools.
type Executor = Arc<dyn Execute<Action>>;

/// The executors of read-only tools. The loop in which an agent works carries out all other calls.
/// Without executors, the toolbox can describe tools and parse calls, but not execute them.
#[derive(Clone, Default)]
pub(crate) struct Executors {
    /// Executes tools that read code.
    pub look: Option<Executor>,
    /// Executes questions to the owner of a symbol.
    pub ask: Option<Executor>,
    pub run_tests: Option<Executor>,
    pub try_code: Option<Executor>,
}

const ALL: &[ToolSet] = &[Scout, Owner, Solo, Answerer];

/// Returns all tools. The order is fixed, so that prompts begin alike and the provider's prompt
/// cache is used.
pub(crate) fn all(by: &Executors) -> Vec<RunTool> {
    let mut tools = reading(by);
    tools.extend(acting(by));
    tools.extend(ending());
    tools.push(trying(by));
    tools
}

fn reading(by: &Executors) -> Vec<RunTool> {
    use LineArguments::{Rest, Words};
    use ToolCost::Lookup;
    let tools: [RunTool; 5] = [
        Tool::new(
            "read",
            "Show the source of symbols or of ranges of lines.",
            ALL,
            Lookup,
            Action::Read,
        )
        .line("read", Words("symbols")),
        Tool::new(
            "outline",
            "List the symbols of a file with their signatures.",
            ALL,
            Lookup,
            Action::Outline,
        )
        .line("outline", Rest("file")),
        Tool::new(
            "search",
            "Find text or symbols in the code base.",
            ALL,
            Lookup,
            Action::Search,
        )
        .line("search", Rest("query")),
        Tool::new(
            "definition",
            "Where a name is defined, with the source.",
            ALL,
            Lookup,
            Action::Definition,
        )
        .line("definition", Rest("name")),
        Tool::new(
            "references",
            "Where a name is used.",
            ALL,
            Lookup,
            Action::References,
        )
        .line("references", Rest("name")),
    ];
    tools
        .into_iter()
        .map(|tool| tool.by(by.look.clone()))
        .collect()
}

fn acting(by: &Executors) -> Vec<RunTool> {
    use LineArguments::{FirstAndRest, None};
    use ToolCost::{Change, Command, Model};
    vec![
        Tool::new(
            "ask",
            "Ask the owner of a symbol a question.",
            &[Owner, Answerer],
            Model,
            Action::Ask,
        )
        .line("ask", FirstAndRest("symbol", "question"))
        .by(by.ask.clone()),
        Tool::new(
            "request_change",
            "Ask the owner of another symbol to change it.",
            &[Owner],
            Change,
            Action::Request,
        )
        .line("request", FirstAndRest("symbol", "reason")),
        Tool::new(
            "intent",
            "Say what you mean to change, before a change of a contract or of many symbols.",
            &[Owner, Solo],
            Change,
            Action::Intent,
        ),
        Tool::new(
            "propose",
            "Propose a change: give `source` (whole symbol) or `hunks`.",
            &[Owner, Solo],
            Change,
            |change: Propose| Action::Propose(Box::new(change)),
        ),
        Tool::new(
            "run_tests",
            "Run tests on the code as it is now.",
            &[Owner, Solo],
            Command,
            Action::RunTests,
        )
        .line("tests", None)
        .by(by.run_tests.clone()),
    ]
}

/// Returns the tools with which a model ends its work.
fn ending() -> Vec<RunTool> {
    vec![
        Tool::new(
            "wake",
            "Wake the owners of the symbols to be changed. Ends your work.",
            &[Scout],
            ToolCost::Change,
            Action::Wake,
        ),
        Tool::new(
            "finish",
            "End your work without a further proposal.",
            &[Owner, Solo, Scout],
            ToolCost::Change,
            Action::Finish,
        )
        .line("finish", LineArguments::Optional("summary")),
    ]
}

/// Returns the tool with which a model runs code.
fn trying(by: &Executors) -> RunTool {
    Tool::new(
        "try",
        "Run code in a private copy of the project, as the tests run: see an error or a value.",
        &[Scout, Owner, Solo],
        ToolCost::Command,
        Action::Try,
    )
    .line("try", LineArguments::Rest("python"))
    .by(by.try_code.clone())
}

/// Returns the tools of a role.
pub(crate) fn toolbox(role: ToolSet, by: &Executors) -> RunToolbox {
    Toolbox::of(role, all(by))
}

/// Returns the descriptions of the tools with these names, of any role. Unknown names are ignored.
pub fn described(names: &[String]) -> Vec<ToolSpec> {
    let specs = all(&Executors::default()).into_iter().map(|tool| tool.spec);
    specs.filter(|spec| names.contains(&spec.name)).collect()
}
