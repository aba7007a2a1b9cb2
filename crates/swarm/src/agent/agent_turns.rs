//! The conversation loop in which an agent does one piece of work: model calls and tool calls, turn
//! by turn.

use std::ops::ControlFlow;
use std::sync::Arc;

use async_trait::async_trait;

use crate::agent::act::act;
use crate::agent::new_conversation::conversation_of;
use crate::agent::outcome::{Ending, gave_up};
use crate::agent::small::PromptStep;
use crate::agent::toolbox::toolbox;
use crate::agent::{fill, small};
use crate::budget::CallFailed;
use crate::context::prompt_parts;
use crate::context::prompt_parts::is_small;
use crate::event::actor::actor_name;
use crate::event::events::{AgentOutcome, Event};
use crate::protocol::conversation::Conversation;
use crate::protocol::{self, Action, Asked, RunToolbox};
use crate::state::agent_state::AgentState;
use crate::state::run_context::RunContext;
use starling_core::{ChatModel, ChatReply, ModelProfile, ToolSpec};
use starling_dialogue::{TextReplyOutcome, ToolCallsOutcome, Turns};

/// Maximum number of consecutive unusable replies.
const MALFORMED_MOST: u32 = 3;

/// The reason that is reported if a rename or deletion, which was made from the index without a
/// model, failed its checks. A small model is not asked to fix it.
const BY_RULE: &str = "the change that was made without a model fails its checks, and a small model is not asked to fix it";

/// The reason that is reported if a refactoring was refused or rejected.
const REFACTORING: &str = "no model is asked to make the refactoring in another way";

/// The conversation loop of one agent for one piece of work.
pub(crate) struct AgentTurns<'a> {
    run: &'a Arc<RunContext>,
    agent: &'a mut AgentState,
    tools: RunToolbox,
}

impl<'a> AgentTurns<'a> {
    pub fn new(run: &'a Arc<RunContext>, agent: &'a mut AgentState) -> Self {
        let chain = [agent.actor.clone()];
        let tools = toolbox(run, agent.toolset(), &chain);
        AgentTurns { run, agent, tools }
    }

    fn model(&self) -> &'a Arc<dyn ChatModel> {
        &self.run.services.models.agent
    }

    /// Prepares the next step of a small model, which gets a different prompt in each turn. Returns
    /// `true` if the model must then be called with the prepared conversation.
    async fn prepare_small(&mut self) -> ControlFlow<Ending, bool> {
        let (run, agent) = (self.run, &mut *self.agent);
        if run.stated().are_by_rule() {
            return ControlFlow::Break(gave_up(BY_RULE));
        }
        match small::next_way(run, agent) {
            Some(PromptStep::Answer) => ControlFlow::Continue(true),
            Some(PromptStep::Fill { temperature }) => {
                match fill::fill(run, agent, temperature).await {
                    Some(ending) => ControlFlow::Break(ending),
                    None => ControlFlow::Continue(false),
                }
            }
            None => ControlFlow::Break(small::gave_up(run, agent)),
        }
    }
}

#[async_trait]
impl Turns for AgentTurns<'_> {
    type Action = Action;
    type End = Ending;
    type Failed = CallFailed;

    fn name(&self) -> String {
        actor_name(&self.agent.actor)
    }

    fn conversation(&mut self) -> &mut Conversation {
        let (run, actor) = (self.run, &self.agent.actor);
        let conversation = &mut self.agent.conversation;
        conversation.get_or_insert_with(|| conversation_of(run, actor))
    }

    fn profile(&self) -> &ModelProfile {
        self.model().profile()
    }

    async fn begin(&mut self, _turn: u32) -> ControlFlow<Ending, Option<Vec<ToolSpec>>> {
        if nothing_left_to_mend(self.run) {
            let ending = (AgentOutcome::NothingToChange, "the tests pass".to_owned());
            return ControlFlow::Break(ending);
        }
        if self.run.task.refactoring.is_some() {
            return ControlFlow::Break(gave_up(REFACTORING));
        }
        self.agent.begin_turn();
        let is_small = is_small(self.profile());
        if is_small && !self.prepare_small().await? {
            return ControlFlow::Continue(None);
        }
        if !is_small && !self.conversation().is_answered() {
            // Instructions for the current protocol replace the earlier ones, because the model's
            // provider may have rejected native tool calls since the conversation was created.
            let own_tools = conversation_of(self.run, &self.agent.actor);
            self.conversation().instruct(own_tools);
        }
        let calling = self.profile().tool_calling;
        ControlFlow::Continue(Some(self.tools.specs(calling)))
    }

    async fn call(&mut self, tools: Vec<ToolSpec>) -> Result<ChatReply, CallFailed> {
        let (run, model) = (self.run, self.model());
        let who = self.agent.actor.clone();
        run.call(&who, model, self.conversation(), tools).await
    }

    fn failed(&mut self, error: CallFailed) -> ControlFlow<Ending> {
        match error.is_for_tools(self.model()) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(gave_up(error.to_string())),
        }
    }

    fn calls(&mut self, reply: &ChatReply) -> Vec<Asked> {
        let (calling, role) = (self.profile().tool_calling, self.agent.toolset());
        let paths = self.run.unusual_paths();
        protocol::calls(&self.tools, calling, role, reply, &paths)
    }

    async fn hear(&mut self, reply: &ChatReply) -> TextReplyOutcome<Ending> {
        let calling = self.profile().tool_calling;
        let what = protocol::nothing_asked(calling, self.agent.toolset(), reply);
        TextReplyOutcome {
            told: Some(what.clone()),
            end: note_malformed(self.run, self.agent, what),
        }
    }

    async fn act(
        &mut self,
        _reply: &ChatReply,
        calls: Vec<Asked>,
    ) -> ToolCallsOutcome<Action, Ending> {
        if calls.iter().any(|one| one.action.is_ok()) {
            self.agent.malformed = 0;
        }
        let (results, ending) = act(self.run, self.agent, &self.tools, calls).await;
        let is_unusable = ending.is_none() && results.iter().all(|(one, _)| one.action.is_err());
        let mut errors = results
            .iter()
            .filter_map(|(one, _)| one.action.as_ref().err());
        let end = match errors.next().cloned() {
            Some(what) if is_unusable => note_malformed(self.run, self.agent, what),
            Some(_) | None => ending,
        };
        ToolCallsOutcome { results, end }
    }

    /// After a turn, adds the new messages in the agent's inbox to the conversation.
    fn after_turn(&mut self) {
        for cause in self.run.take_inbox(&self.agent.actor) {
            self.conversation().user(prompt_parts::cause_text(&cause));
        }
    }

    fn left_out(&mut self) {
        self.agent.repeats.clear();
    }
}

/// Returns whether a small model has nothing to fix because no test fails. If it is asked
/// nevertheless, a small model breaks working code.
fn nothing_left_to_mend(run: &RunContext) -> bool {
    let state = run.tests();
    is_small(run.services.models.agent.profile())
        && !state.required.ids.is_empty()
        && state.required.ids.is_disjoint(&state.failing)
}

fn note_malformed(run: &RunContext, agent: &mut AgentState, what: String) -> Option<Ending> {
    agent.malformed += 1;
    run.event(Event::Malformed {
        agent: agent.actor.clone(),
        what,
    });
    (agent.malformed >= MALFORMED_MOST).then(|| {
        gave_up(format!(
            "{MALFORMED_MOST} unusable replies in a row: the model neither proposes a change nor ends its \
             work in a form that can be read"
        ))
    })
}
