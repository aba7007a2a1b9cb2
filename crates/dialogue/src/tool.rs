//! The definition of a tool that models can call.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use starling_core::ToolSpec;

use crate::line::{LineArguments, LineSyntax};
use crate::schema::schema;

/// The cost of a tool call. Results that cost least to get again are the first that a
/// conversation leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolCost {
    /// Answered at once, from the index or from files.
    Lookup,
    /// Runs a command, for example tests.
    Command,
    /// Asks a model.
    Model,
    /// Changes something or ends the work, so that a second call would not return the same result.
    Change,
}

/// Executes the calls of one or more tools. It holds the resources that this needs.
#[async_trait]
pub trait Execute<A>: Send + Sync {
    /// Executes a call and returns its result for the model. The calls of a turn run concurrently.
    async fn execute(&self, action: &A) -> String;
}

/// Parses the JSON arguments of a call into an action.
type ReadArguments<A> = Arc<dyn Fn(&str) -> Result<A, serde_json::Error> + Send + Sync>;

/// A tool: its description for models, the roles that may use it, and its executor. `U` is the type
/// of roles; `A` is the type of actions into which calls of all tools are parsed.
pub struct Tool<'a, U, A> {
    pub spec: ToolSpec,
    pub users: Vec<U>,
    pub cost: ToolCost,
    /// How the tool is called in the text protocol; `None` if no line can call it.
    pub(crate) line: Option<LineSyntax>,
    read: ReadArguments<A>,
    pub(crate) executor: Option<Arc<dyn Execute<A> + 'a>>,
}

impl<'a, U: Copy, A: 'static> Tool<'a, U, A> {
    /// Creates a tool whose arguments have the type `T`. If it gets no executor (see [`Tool::by`]),
    /// its calls are executed by [`Turns::act`](crate::Turns::act).
    pub fn new<T: DeserializeOwned + JsonSchema + 'static>(
        name: &str,
        description: &str,
        users: &[U],
        cost: ToolCost,
        action: fn(T) -> A,
    ) -> Self {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: schema::<T>(),
        };
        let read = move |arguments: &str| serde_json::from_str(arguments).map(action);
        Tool {
            spec,
            users: users.to_vec(),
            cost,
            line: None,
            read: Arc::new(read),
            executor: None,
        }
    }

    /// Creates a tool that is not built in, for example a tool of an MCP server. Its arguments are
    /// any JSON; in the text protocol, its line contains its name and a JSON object.
    pub fn from_outside(
        spec: ToolSpec,
        users: &[U],
        cost: ToolCost,
        action: impl Fn(serde_json::Value) -> A + Send + Sync + 'static,
    ) -> Self {
        let line = LineSyntax {
            word: spec.name.clone(),
            arguments: LineArguments::Json,
        };
        let read = move |arguments: &str| serde_json::from_str(arguments).map(&action);
        Tool {
            spec,
            users: users.to_vec(),
            cost,
            line: Some(line),
            read: Arc::new(read),
            executor: None,
        }
    }

    /// Sets how the tool is called in the text protocol: `@word` and its arguments.
    pub fn line(mut self, word: &str, arguments: LineArguments) -> Self {
        self.line = Some(LineSyntax {
            word: word.to_owned(),
            arguments,
        });
        self
    }

    /// Sets the executor of the tool's calls.
    pub fn by(mut self, executor: Option<Arc<dyn Execute<A> + 'a>>) -> Self {
        self.executor = executor;
        self
    }

    /// Parses the arguments of a call, which are JSON that a model wrote. An empty text means no
    /// arguments.
    pub(crate) fn read(&self, arguments: &str) -> Result<A, serde_json::Error> {
        let is_empty = arguments.trim().is_empty();
        (self.read)(if is_empty { "{}" } else { arguments })
    }
}
