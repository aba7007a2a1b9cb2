//! Native tool calls: creates schemas from the action types, and parses calls.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;

use super::Asked;
use super::action::{
    Action, AskOwner, FinishWork, Intent, Name, OutlineFile, Propose, Read, RequestChange,
    RunTests, Search, ToolSet, Wake,
};
use starling_core::{ToolCall, ToolSpec};

/// The tools, in a fixed order, so that provider caches hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Read,
    Outline,
    Search,
    Definition,
    References,
    Ask,
    RequestChange,
    Intent,
    Propose,
    RunTests,
    Wake,
    Finish,
}

const READING: [Tool; 5] = [
    Tool::Read,
    Tool::Outline,
    Tool::Search,
    Tool::Definition,
    Tool::References,
];

fn tools_of(toolset: ToolSet) -> Vec<Tool> {
    let more: &[Tool] = match toolset {
        ToolSet::Scout => &[Tool::Wake],
        ToolSet::Owner => &[
            Tool::Ask,
            Tool::RequestChange,
            Tool::Intent,
            Tool::Propose,
            Tool::RunTests,
            Tool::Finish,
        ],
        ToolSet::Solo => &[Tool::Intent, Tool::Propose, Tool::RunTests, Tool::Finish],
        ToolSet::Answerer => &[Tool::Ask],
    };
    READING.iter().chain(more).copied().collect()
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Read => "read",
            Tool::Outline => "outline",
            Tool::Search => "search",
            Tool::Definition => "definition",
            Tool::References => "references",
            Tool::Ask => "ask",
            Tool::RequestChange => "request_change",
            Tool::Intent => "intent",
            Tool::Propose => "propose",
            Tool::RunTests => "run_tests",
            Tool::Wake => "wake",
            Tool::Finish => "finish",
        }
    }

    fn spec(self) -> ToolSpec {
        let (description, parameters) = match self {
            Tool::Read => (
                "Show the source of symbols or of ranges of lines.",
                schema::<Read>(),
            ),
            Tool::Outline => (
                "List the symbols of a file with their signatures.",
                schema::<OutlineFile>(),
            ),
            Tool::Search => ("Find text or symbols in the code base.", schema::<Search>()),
            Tool::Definition => (
                "Where a name is defined, with the source.",
                schema::<Name>(),
            ),
            Tool::References => ("Where a name is used.", schema::<Name>()),
            Tool::Ask => (
                "Ask the owner of a symbol a question.",
                schema::<AskOwner>(),
            ),
            Tool::RequestChange => (
                "Ask the owner of another symbol to change it.",
                schema::<RequestChange>(),
            ),
            Tool::Intent => (
                "Say what you mean to change, before a change of a contract or of many symbols.",
                schema::<Intent>(),
            ),
            Tool::Propose => (
                "Propose a change: give `source` (whole symbol) or `hunks`.",
                schema::<Propose>(),
            ),
            Tool::RunTests => ("Run tests on the code as it is now.", schema::<RunTests>()),
            Tool::Wake => (
                "Wake the owners of the symbols to be changed. Ends your work.",
                schema::<Wake>(),
            ),
            Tool::Finish => (
                "End your work without a further proposal.",
                schema::<FinishWork>(),
            ),
        };
        ToolSpec {
            name: self.name().to_owned(),
            description: description.to_owned(),
            parameters,
        }
    }

    fn read(self, arguments: &str) -> Result<Action, serde_json::Error> {
        fn of<T: DeserializeOwned>(arguments: &str) -> Result<T, serde_json::Error> {
            serde_json::from_str(if arguments.trim().is_empty() {
                "{}"
            } else {
                arguments
            })
        }
        Ok(match self {
            Tool::Read => Action::Read(of(arguments)?),
            Tool::Outline => Action::Outline(of(arguments)?),
            Tool::Search => Action::Search(of(arguments)?),
            Tool::Definition => Action::Definition(of(arguments)?),
            Tool::References => Action::References(of(arguments)?),
            Tool::Ask => Action::Ask(of(arguments)?),
            Tool::RequestChange => Action::Request(of(arguments)?),
            Tool::Intent => Action::Intent(of(arguments)?),
            Tool::Propose => Action::Propose(Box::new(of(arguments)?)),
            Tool::RunTests => Action::RunTests(of(arguments)?),
            Tool::Wake => Action::Wake(of(arguments)?),
            Tool::Finish => Action::Finish(of(arguments)?),
        })
    }
}

/// Returns the tools of a toolset with their descriptions.
pub fn specs(toolset: ToolSet) -> Vec<ToolSpec> {
    tools_of(toolset).into_iter().map(Tool::spec).collect()
}

/// Returns the tools with these names, of any toolset. Unknown names are ignored.
pub fn described(names: &[String]) -> Vec<ToolSpec> {
    let all = READING.into_iter().chain([
        Tool::Ask,
        Tool::RequestChange,
        Tool::Intent,
        Tool::Propose,
        Tool::RunTests,
        Tool::Wake,
        Tool::Finish,
    ]);
    all.filter(|tool| names.iter().any(|name| name == tool.name()))
        .map(Tool::spec)
        .collect()
}

/// Parses a native call to an action, or returns why it is invalid.
pub fn parse(call: &ToolCall, toolset: ToolSet) -> Asked {
    let known = tools_of(toolset);
    let action = match known.iter().find(|tool| tool.name() == call.name) {
        None => {
            let names: Vec<&str> = known.iter().map(|tool| tool.name()).collect();
            Err(format!("There is no tool `{}`. The tools are: {}.", call.name, names.join(", ")))
        }
        Some(tool) => tool.read(&call.arguments).map_err(|error| {
            format!("The arguments of `{}` cannot be read: {error}. Send the call again with valid JSON.", call.name)
        }),
    };
    let argument = match &action {
        Ok(action) => short_argument(action),
        Err(_) => call.arguments.chars().take(80).collect(),
    };
    Asked {
        call_id: Some(call.id.clone()),
        label: (call.name.clone(), argument),
        action,
    }
}

/// Returns the argument of an action in a short form for the user.
fn short_argument(action: &Action) -> String {
    let text = match action {
        Action::Read(read) => read.symbols.join(" "),
        Action::Outline(outline) => outline.file.clone(),
        Action::Search(search) => search.query.clone(),
        Action::Definition(name) | Action::References(name) => name.name.clone(),
        Action::Ask(ask) => ask.symbol.clone(),
        Action::Request(request) => request.symbol.clone(),
        Action::Intent(intent) => intent.intent.clone(),
        Action::Propose(propose) => propose.symbol.clone().unwrap_or_default(),
        Action::RunTests(tests) => tests.select.join(" "),
        Action::Wake(wake) => wake
            .symbols
            .iter()
            .map(|pick| pick.symbol.as_str())
            .collect::<Vec<_>>()
            .join(" "),
        Action::Finish(finish) => finish.summary.clone(),
    };
    text.chars().take(120).collect()
}

/// Returns a JSON schema without the parts that models do not need.
pub fn schema<T: JsonSchema>() -> serde_json::Value {
    let generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    prune(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        object.remove("description");
    }
    schema
}

fn prune(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(object) => {
            for key in ["$schema", "title", "default"] {
                if !object.get(key).is_some_and(serde_json::Value::is_object) {
                    object.remove(key);
                }
            }
            if let Some(serde_json::Value::Array(types)) = object.get("type").cloned()
                && let Some(first) = types.first()
            {
                object.insert("type".to_owned(), first.clone());
            }
            object.values_mut().for_each(prune);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(prune),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}
