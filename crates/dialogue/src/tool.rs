//! A tool as a value.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use starling_core::ToolSpec;

use crate::line::{LineArguments, LineSyntax};
use crate::schema::schema;

/// What a call of a tool costs. Results that cost least to get again are the first that a
/// conversation leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolCost {
    /// Answered at once from what is known.
    Lookup,
    /// Runs a command, for example tests.
    Command,
    /// Asks a model.
    Model,
    /// Changes something or ends the work, so it cannot be called again for the same result.
    Change,
}

/// Carries out the calls of a tool. It holds what it needs for that, and may be shared by several
/// tools.
#[async_trait]
pub trait Execute<A>: Send + Sync {
    /// Returns the result for the model. The calls of a turn are carried out side by side.
    async fn execute(&self, action: &A) -> String;
}

type ReadArguments<A> = Arc<dyn Fn(&str) -> Result<A, serde_json::Error> + Send + Sync>;

/// A tool: what a model is told of it, who may use it, and what carries out its calls. `U` is the
/// kind of user, `A` what the calls of all tools are read to.
pub struct Tool<'a, U, A> {
    pub spec: ToolSpec,
    pub users: Vec<U>,
    pub cost: ToolCost,
    /// How it is called in the text protocol; `None` if it cannot be called there by a line.
    pub(crate) line: Option<LineSyntax>,
    read: ReadArguments<A>,
    pub(crate) executor: Option<Arc<dyn Execute<A> + 'a>>,
}

impl<'a, U: Copy, A: 'static> Tool<'a, U, A> {
    /// A tool whose arguments have the type `T`. Without an executor (see [`Tool::by`]), whoever
    /// leads the conversation carries its calls out.
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

    /// A tool that is described from outside, with arguments of any form. Its line in the text
    /// protocol has its name and a JSON object.
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

    /// Sets what carries out the calls of the tool.
    pub fn by(mut self, executor: Option<Arc<dyn Execute<A> + 'a>>) -> Self {
        self.executor = executor;
        self
    }

    /// Reads the arguments of a call, JSON as the model wrote it. No text means no arguments.
    pub(crate) fn read(&self, arguments: &str) -> Result<A, serde_json::Error> {
        let is_empty = arguments.trim().is_empty();
        (self.read)(if is_empty { "{}" } else { arguments })
    }
}
