use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use starling_core::TryCode;
use starling_dialogue::ShortDescription;

/// The set of tools that a model gets, according to its role. A model that answers a question gets
/// no editing tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSet {
    Scout,
    Owner,
    /// The tools of the only agent of `--driver single`.
    Solo,
    Answerer,
}

/// An action that an agent can request.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Read(Read),
    Outline(OutlineFile),
    Search(Search),
    Definition(Name),
    References(Name),
    Ask(AskOwner),
    Request(RequestChange),
    Intent(Intent),
    Propose(Box<Propose>),
    RunTests(RunTests),
    Wake(Wake),
    Finish(FinishWork),
    Try(TryOut),
}

impl ShortDescription for Action {
    fn in_short(&self) -> String {
        match self {
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
            Action::Try(tried) => tried.in_one_line(),
        }
    }
}

// The comments of these structs are `//`, because models see their doc comments as descriptions.

// Arguments of the tool that reads symbols or lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Read {
    /// Symbol paths (path/to/file.py::Class.method), or files with a range of lines (path/to/file.py:120-180).
    #[serde(deserialize_with = "one_or_many")]
    pub symbols: Vec<String>,
}

// Arguments of the tool that lists the symbols of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutlineFile {
    /// path/to/file.py
    pub file: String,
}

// Arguments of the tool that searches lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// Words of one line, in any case, or a symbol's name.
    pub query: String,
    /// Only in files whose path holds this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

// Arguments of the tools that look up the definition of a name, or references to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Name {
    /// A function, method, class or attribute name.
    pub name: String,
}

// Arguments of the tool that asks the owner of a symbol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskOwner {
    /// Symbol path of the owner.
    pub symbol: String,
    pub question: String,
}

// Arguments of the tool that requests a change from the owner of a symbol.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RequestChange {
    /// Symbol path of the owner.
    pub symbol: String,
    /// What must hold afterwards, exactly, and why.
    pub reason: String,
}

impl<'de> Deserialize<'de> for RequestChange {
    /// Models also say what they want in other fields, such as `change`. The owner is told these, too, as
    /// lines of the reason.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            symbol: String,
            #[serde(default)]
            reason: String,
            #[serde(flatten)]
            others: BTreeMap<String, Value>,
        }
        let fields = Fields::deserialize(deserializer)?;
        let line = |(name, value): (&String, &Value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            Value::Null => String::new(),
            other => format!("{name}: {other}"),
        };
        let lines = fields.others.iter().map(line);
        let told = std::iter::once(fields.reason).chain(lines);
        let told: Vec<String> = told.filter(|line| !line.is_empty()).collect();
        if told.is_empty() {
            return Err(D::Error::missing_field("reason"));
        }
        Ok(RequestChange {
            symbol: fields.symbol,
            reason: told.join("\n"),
        })
    }
}

// Arguments of the tool with which an agent states its plan before it writes code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Intent {
    /// What you mean to change.
    pub intent: String,
    /// Why this is the best way.
    pub reason: String,
}

/// Replaces `old`, which occurs exactly once in the symbol, by `new`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    pub old: String,
    pub new: String,
}

/// A new symbol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddSymbol {
    /// The definition, with its decorators and comments.
    pub source: String,
    /// The symbol after which it stands; your own when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Put it at the end of the class `beside` instead of after it.
    #[serde(default)]
    pub inside: bool,
}

/// A change. Give `source` or `hunks` (or `add`, `delete`, `imports` alone).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Propose {
    /// What the change does and why it is right, in a sentence or two for the approver.
    #[serde(default)]
    pub reason: String,
    /// Symbol path to change; your own symbol when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// The whole new text of the symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Replacements inside the symbol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
    /// New symbols beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<AddSymbol>,
    /// Symbol paths to delete; path/to/file.py:: for the whole file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<String>,
    /// Import statements that the file needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
    /// Decorators, comments, docstrings or nested symbols go away on purpose.
    #[serde(default)]
    pub intended_losses: bool,
    /// Show it to the user although the checks object. Without effect where no user reviews.
    #[serde(default)]
    pub insist: bool,
    /// You have more to do after this one.
    #[serde(default)]
    pub more: bool,
}

impl Propose {
    /// Returns whether the change only replaces text that it quotes, and adds to it.
    pub(crate) fn is_patch(&self) -> bool {
        self.source.is_none() && self.delete.is_empty() && !self.hunks.is_empty()
    }
}

// Arguments of the tool that runs tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunTests {
    /// Test files or ids; all that the run uses when left out.
    #[serde(default)]
    pub select: Vec<String>,
}

// A symbol that the scout picked as a starting point, with an optional change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pick {
    /// Symbol path; path/to/file.py:: for a file that is to be made.
    pub symbol: String,
    /// What its owner should know: the cause and what must hold afterwards.
    #[serde(default)]
    pub why: String,
    /// The change itself, when you are sure of it and have seen the source: replacements inside the symbol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
    /// Or the whole new text of the symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Symbol paths to delete: the symbol itself, or others beside it in its file; path/to/file.py:: deletes the file. To move a file, delete it and give its text as `source` of the new path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<String>,
    /// Import statements that the change needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
    /// Decorators, comments or nested symbols go away on purpose.
    #[serde(default)]
    pub intended_losses: bool,
    /// Show it to the user although the checks object. Without effect where no user reviews.
    #[serde(default)]
    pub insist: bool,
}

impl Pick {
    /// Returns the change that the scout wrote for the owner of the symbol; `None` if the pick
    /// contains no change.
    pub fn draft(&self) -> Option<Propose> {
        let is_written = self.source.is_some() || !self.hunks.is_empty() || !self.delete.is_empty();
        is_written.then(|| Propose {
            reason: self.why.clone(),
            source: self.source.clone(),
            hunks: self.hunks.clone(),
            delete: self.delete.clone(),
            imports: self.imports.clone(),
            intended_losses: self.intended_losses,
            insist: self.insist,
            ..Propose::default()
        })
    }
}

// Arguments of the tool with which the scout starts the agents of the symbols that it picked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wake {
    pub symbols: Vec<Pick>,
}

// Arguments of the tool with which an agent ends its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FinishWork {
    /// What was done, or why nothing is to be done.
    #[serde(default)]
    pub summary: String,
}

// Arguments of the tool that runs code.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryOut {
    /// Python code. The value of a last expression is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Or a shell command (`python -m package --help`), run in the root of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// On which code: `now`, with your last proposal also if it came back; or `before` all changes.
    #[serde(default)]
    pub world: TriedWorld,
}

// The state of the workspace on which code is tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriedWorld {
    #[default]
    Now,
    Before,
}

impl TryOut {
    /// Returns the code to run; `None` unless the call has exactly one.
    pub(crate) fn code(&self) -> Option<TryCode> {
        match (&self.python, &self.command) {
            (Some(python), None) => Some(TryCode::Python(python.clone())),
            (None, Some(command)) => Some(TryCode::Command(command.clone())),
            (None, None) | (Some(_), Some(_)) => None,
        }
    }

    fn in_one_line(&self) -> String {
        self.code()
            .map_or_else(String::new, |code| code.in_one_line())
    }
}

/// Deserializes a list, or a single string, which models often send instead of a list.
fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    /// A list, or a single string.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    })
}
