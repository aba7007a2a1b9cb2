//! The tools of one role: their descriptions for models, the parsing of calls in a reply, and the
//! execution of these calls.

use futures::future::join_all;
use starling_core::{ChatReply, Finish, ToolCall, ToolCalling, ToolSpec};
use starling_workspace::UnusualPaths;

use crate::call::{Call, SHOWN, ShortDescription};
use crate::line::command;
use crate::tool::{Tool, ToolCost};

/// The tools of one role, in a fixed order, so that the prompt caches of model providers hit.
pub struct Toolbox<'a, U, A> {
    tools: Vec<Tool<'a, U, A>>,
    /// End of the message to a model that calls an unknown tool, after "There is no tool `name`".
    absent: &'static str,
}

impl<'a, U: Copy + PartialEq, A: ShortDescription + 'static> Toolbox<'a, U, A> {
    /// Creates the toolbox with those of `all` tools that a role may use.
    pub fn of(user: U, all: impl IntoIterator<Item = Tool<'a, U, A>>) -> Self {
        let tools = all.into_iter().filter(|tool| tool.users.contains(&user));
        Toolbox {
            tools: tools.collect(),
            absent: "",
        }
    }

    /// Sets the end of the message to a model that calls an unknown tool, after "There is no tool
    /// `name`".
    pub fn absent(mut self, told: &'static str) -> Self {
        self.absent = told;
        self
    }

    /// Returns the tools to send with a request. The text protocol sends none.
    pub fn specs(&self, calling: ToolCalling) -> Vec<ToolSpec> {
        match calling {
            ToolCalling::Native => self.tools.iter().map(|tool| tool.spec.clone()).collect(),
            ToolCalling::Text => Vec::new(),
        }
    }

    /// Returns the calls of a reply. Native calls count in both protocols. The text of the reply is
    /// parsed by `text`, but only in the text protocol and only if the reply is complete.
    pub fn calls(
        &self,
        calling: ToolCalling,
        reply: &ChatReply,
        text: impl FnOnce(&str) -> Vec<Call<A>>,
    ) -> Vec<Call<A>> {
        let native: Vec<Call<A>> = reply
            .tool_calls
            .iter()
            .map(|call| self.native(call))
            .collect();
        let is_cut = reply.finish == Finish::Length;
        match calling {
            ToolCalling::Text if native.is_empty() && !is_cut => text(&reply.text),
            ToolCalling::Text | ToolCalling::Native => native,
        }
    }

    fn native(&self, call: &ToolCall) -> Call<A> {
        let name = &call.name;
        let tool = self.tools.iter().find(|tool| tool.spec.name == *name);
        let action = match tool {
            Some(tool) => tool.read(&call.arguments).map_err(|error| {
                format!(
                    "The arguments of `{name}` cannot be read: {error}. Send the call again with valid JSON."
                )
            }),
            None => {
                let names = self.tools.iter().map(|tool| tool.spec.name.as_str());
                let names = names.collect::<Vec<&str>>().join(", ");
                let absent = self.absent;
                Err(format!(
                    "There is no tool `{name}`{absent}. The tools are: {names}."
                ))
            }
        };
        let argument = match &action {
            Ok(action) => action.in_short(),
            Err(_) => call.arguments.clone(),
        };
        Call {
            call_id: Some(call.id.clone()),
            tool: name.clone(),
            label: (name.clone(), argument.chars().take(SHOWN).collect()),
            cost: tool.map_or(ToolCost::Lookup, |tool| tool.cost),
            action,
        }
    }

    /// Returns the call in a line of the text protocol, or `None` if the line is no call: it does
    /// not begin with `@`, or the word is not a tool (but a decorator or a mention, for example).
    pub fn line(&self, line: &str, paths: &UnusualPaths) -> Option<Call<A>> {
        let (word, rest) = command(line)?;
        let (tool, form) = self.tools.iter().find_map(|tool| {
            let form = tool.line.as_ref()?;
            (form.word == word).then_some((tool, form))
        })?;
        let action = tool.read(&form.read(rest, paths)?).map_err(|error| {
            format!("The arguments of `@{word}` cannot be read: {error}. Send the line again.")
        });
        Some(Call {
            call_id: None,
            tool: tool.spec.name.clone(),
            label: (format!("@{word}"), rest.chars().take(SHOWN).collect()),
            cost: tool.cost,
            action,
        })
    }

    /// Returns the calls of all lines of a text.
    pub fn lines(&self, text: &str, paths: &UnusualPaths) -> Vec<Call<A>> {
        text.lines()
            .filter_map(|line| self.line(line, paths))
            .collect()
    }

    /// Executes a call by the executor of its tool, and returns the result for the model. The
    /// result of an invalid call is its error. Returns `None` if the tool has no executor; then
    /// [`Turns::act`](crate::Turns::act) has to execute the call.
    pub async fn execute(&self, call: &Call<A>) -> Option<String> {
        let action = match &call.action {
            Ok(action) => action,
            Err(error) => return Some(error.clone()),
        };
        let tool = self.tools.iter().find(|tool| tool.spec.name == call.tool)?;
        let executor = tool.executor.as_ref()?;
        Some(executor.execute(action).await)
    }
    /// Executes calls concurrently. The result of a call without an executor is empty.
    pub async fn execute_all(&self, calls: Vec<Call<A>>) -> Vec<(Call<A>, String)> {
        let one = |call: Call<A>| async move {
            let text = self.execute(&call).await;
            (call, text.unwrap_or_default())
        };
        join_all(calls.into_iter().map(one)).await
    }
}
