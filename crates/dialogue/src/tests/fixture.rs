//! Test fixture: a toolbox with three tools, and a conversation whose model follows a script.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use starling_core::*;
use starling_workspace::UnusualPaths;

use crate::*;

/// The roles that may use the tools of the tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TestRole {
    Reader,
    Writer,
}

// Arguments of the tool `look`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Look {
    pub names: Vec<String>,
}

// Arguments of the tool `ask`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Ask {
    pub who: String,
    pub what: String,
}

// Arguments of the tool `end`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct End {
    #[serde(default)]
    pub why: String,
}

/// A parsed tool call of the test conversations.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Look(Look),
    Ask(Ask),
    End(End),
    Outside(serde_json::Value),
}

impl ShortDescription for Action {
    fn in_short(&self) -> String {
        match self {
            Action::Look(look) => look.names.join(" "),
            Action::Ask(ask) => ask.who.clone(),
            Action::End(end) => end.why.clone(),
            Action::Outside(value) => value.to_string(),
        }
    }
}

/// Executes every call by repeating its arguments.
pub struct EchoExecutor;

#[async_trait]
impl Execute<Action> for EchoExecutor {
    async fn execute(&self, action: &Action) -> String {
        format!("found {}", action.in_short())
    }
}

pub fn tools() -> Vec<Tool<'static, TestRole, Action>> {
    use TestRole::{Reader, Writer};
    let echo = || Some(Arc::new(EchoExecutor) as Arc<dyn Execute<Action>>);
    vec![
        Tool::new(
            "look",
            "Look.",
            &[Reader, Writer],
            ToolCost::Lookup,
            Action::Look,
        )
        .line("look", LineArguments::Words("names"))
        .by(echo()),
        Tool::new("ask_owner", "Ask.", &[Reader], ToolCost::Model, Action::Ask)
            .line("ask", LineArguments::FirstAndRest("who", "what"))
            .by(echo()),
        Tool::new("end", "End.", &[Writer], ToolCost::Change, Action::End)
            .line("end", LineArguments::Optional("why")),
    ]
}

pub fn toolbox(user: TestRole) -> Toolbox<'static, TestRole, Action> {
    Toolbox::of(user, tools())
}

pub fn reply(text: &str, calls: &[(&str, &str)]) -> ChatReply {
    let call = |(at, (name, arguments)): (usize, &(&str, &str))| ToolCall {
        id: format!("c{at}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    ChatReply {
        model: "m".to_owned(),
        text: text.to_owned(),
        tool_calls: calls.iter().enumerate().map(call).collect(),
        finish: Finish::Stop,
        usage: Usage::default(),
        cost: Dollars(0.0),
        calls: 1,
    }
}

pub fn look(name: &str) -> ChatReply {
    let arguments = format!("{{\"names\": [{name:?}]}}");
    reply("", &[("look", &arguments)])
}

pub fn profile(window: u64) -> ModelProfile {
    ModelProfile {
        name: "m".to_owned(),
        context_window: Tokens(window),
        max_output: Tokens(100),
        tool_calling: ToolCalling::Native,
        replayed: false,
        price: None,
    }
}

/// The failure of a scripted call.
#[derive(Debug)]
pub struct ScriptedFailure(pub ModelError);

impl ModelFailure for ScriptedFailure {
    fn of_model(&self) -> Option<&ModelError> {
        Some(&self.0)
    }
}

/// A conversation whose model follows a script. It has the tools of [`TestRole::Writer`].
pub struct ScriptedTurns {
    pub toolbox: Toolbox<'static, TestRole, Action>,
    pub conversation: Conversation,
    pub profile: ModelProfile,
    pub script: Mutex<VecDeque<Result<ChatReply, ModelError>>>,
    /// The messages of each request.
    pub asked: Vec<Vec<Message>>,
    /// Number of characters that are added to each tool result.
    pub padding: usize,
    pub times_left_out: usize,
    pub turns_over: usize,
}

impl ScriptedTurns {
    pub fn new(script: impl IntoIterator<Item = Result<ChatReply, ModelError>>) -> Self {
        let mut conversation = Conversation::new("c".to_owned(), Role::Agent, "system".to_owned());
        conversation.user("the task");
        ScriptedTurns {
            toolbox: toolbox(TestRole::Writer),
            conversation,
            profile: profile(100_000),
            script: Mutex::new(script.into_iter().collect()),
            asked: Vec::new(),
            padding: 0,
            times_left_out: 0,
            turns_over: 0,
        }
    }
}

#[async_trait]
impl Turns for ScriptedTurns {
    type Action = Action;
    type End = String;
    type Failed = ScriptedFailure;

    fn name(&self) -> String {
        "scripted".to_owned()
    }

    fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn begin(&mut self, turn: u32) -> ControlFlow<String, Option<Vec<ToolSpec>>> {
        match turn {
            99 => ControlFlow::Continue(None),
            _ => ControlFlow::Continue(Some(self.toolbox.specs(ToolCalling::Native))),
        }
    }

    async fn call(&mut self, tools: Vec<ToolSpec>) -> Result<ChatReply, ScriptedFailure> {
        let request = self.conversation.request(tools, &self.profile);
        self.asked.push(request.messages);
        let mut script = self.script.lock().unwrap();
        script.pop_front().expect("a line").map_err(ScriptedFailure)
    }

    fn failed(&mut self, error: ScriptedFailure) -> ControlFlow<String> {
        match error.0.is_transient() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(error.0.to_string()),
        }
    }

    fn calls(&mut self, reply: &ChatReply) -> Vec<Call<Action>> {
        let paths = UnusualPaths::default();
        let text = |text: &str| self.toolbox.lines(text, &paths);
        self.toolbox.calls(self.profile.tool_calling, reply, text)
    }

    async fn hear(&mut self, reply: &ChatReply) -> TextReplyOutcome<String> {
        let is_answer = !reply.text.is_empty();
        TextReplyOutcome {
            told: (!is_answer).then(|| "It was empty.".to_owned()),
            end: is_answer.then(|| reply.text.clone()),
        }
    }

    async fn act(
        &mut self,
        _reply: &ChatReply,
        calls: Vec<Call<Action>>,
    ) -> ToolCallsOutcome<Action, String> {
        let (mut results, mut end) = (Vec::new(), None);
        for call in calls {
            let text = self.toolbox.execute(&call).await;
            if let Ok(Action::End(ending)) = &call.action {
                end = Some(ending.why.clone());
            }
            let padding = "x".repeat(self.padding);
            results.push((call, format!("{}\n{padding}", text.unwrap_or_default())));
        }
        ToolCallsOutcome { results, end }
    }

    fn after_turn(&mut self) {
        self.turns_over += 1;
    }

    fn left_out(&mut self) {
        self.times_left_out += 1;
    }
}
