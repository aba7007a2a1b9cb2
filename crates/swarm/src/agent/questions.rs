//! Questions between agents. The owner of a symbol answers in a separate conversation without
//! editing tools, so an owner that itself waits for an answer can still answer others.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::agent::toolbox::toolbox;
use crate::agent::tools;
use crate::budget::CallFailed;
use crate::context::prompt_parts;
use crate::event::actor::{ActorId, actor_name};
use crate::event::events::{AnswerSource, Event};
use crate::lookup::{Lookup, cap};
use crate::protocol::conversation::Conversation;
use crate::protocol::{self, Action, Asked, RunToolbox, ToolSet};
use crate::state::run_context::RunContext;
use starling_core::prompts::{AnswerSystem, AnswerSystemText, Prompt};
use starling_core::{ChatReply, ModelProfile, Role, Tokens, ToolCalling, ToolSpec};
use starling_dialogue::{TextReplyOutcome, ToolCallsOutcome, Turns, converse};
use starling_syntax::{SymbolPath, signature};

/// Maximum number of turns for one answer.
const TURNS: u32 = 4;
/// Maximum time to wait for an answer.
const DEADLINE: Duration = Duration::from_secs(300);
const ANSWER_CAP: Tokens = Tokens(1_200);

/// Asks the owner of a symbol a question. `chain` contains all agents that wait for the answer,
/// directly or through other agents; the asking agent is last.
pub(crate) fn ask<'a>(
    run: &'a Arc<RunContext>,
    chain: Vec<ActorId>,
    symbol: &'a str,
    text: &'a str,
) -> BoxFuture<'a, String> {
    async move {
        let lookup = run.lookup();
        let owner = match lookup.address(symbol) {
            Ok(owner) => owner,
            Err(error) => return error,
        };
        let Some(from) = chain.last().cloned() else {
            return "Nobody asks.".to_owned();
        };
        if let Err(error) = lookup.symbol(&owner) {
            return error;
        }
        let question = {
            let mut state = run.agents();
            state.questions += 1;
            state.questions
        };
        let to = ActorId::Agent(owner.clone());
        run.event(Event::Asked {
            question,
            from: from.clone(),
            to: to.clone(),
            text: text.to_owned(),
        });
        let (answer, source) = answer(run, &chain, &owner, text).await;
        run.event(Event::Answered {
            question,
            from: to,
            to: from,
            text: answer.clone(),
            source,
        });
        answer
    }
    .boxed()
}

async fn answer(
    run: &Arc<RunContext>,
    chain: &[ActorId],
    owner: &SymbolPath,
    text: &str,
) -> (String, AnswerSource) {
    let lookup = run.lookup();
    let known = || what_is_known(run, &lookup, owner);
    if chain.contains(&ActorId::Agent(owner.clone())) {
        let note = "The owner is itself waiting in this chain of questions. What is known:";
        return (format!("{note}\n{}", known()), AnswerSource::Cycle);
    }
    let question = {
        let state = run.world();
        let question = state.answers.question(owner, text);
        if let Some(answer) = state.answers.known(&question) {
            return (answer.to_owned(), AnswerSource::Memory);
        }
        question
    };
    if chain.len() >= run.budget.limits().depth as usize {
        return (
            format!(
                "The chain of questions is too long. What is known:\n{}",
                known()
            ),
            AnswerSource::Refused,
        );
    }
    if let Err(exhausted) = run.budget.count_message() {
        return (
            format!("{exhausted}. What is known:\n{}", known()),
            AnswerSource::Refused,
        );
    }
    let deadline = DEADLINE.min(run.budget.time_left());
    match tokio::time::timeout(deadline, by_model(run, chain, owner, text)).await {
        Ok(Ok(answer)) => {
            run.world().answers.keep(question, &answer);
            (answer, AnswerSource::Model)
        }
        Ok(Err(why)) => (
            format!("No answer ({why}). What is known:\n{}", known()),
            AnswerSource::Refused,
        ),
        Err(_) => {
            let seconds = deadline.as_secs();
            (
                format!("No answer within {seconds} s. What is known:\n{}", known()),
                AnswerSource::Refused,
            )
        }
    }
}

/// Lets the owner's model answer a question. The model may call read-only tools first.
async fn by_model(
    run: &Arc<RunContext>,
    chain: &[ActorId],
    owner: &SymbolPath,
    text: &str,
) -> Result<String, String> {
    let answer = match by_model_once(run, chain, owner, text).await {
        Err(NoAnswer::Call(error)) if error.is_for_tools(&run.services.models.agent) => {
            by_model_once(run, chain, owner, text).await
        }
        answer => answer,
    };
    answer.map_err(|error| error.to_string())
}

/// Why an owner's model gave no answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error(transparent)]
    Call(#[from] CallFailed),
    #[error("the model gave no answer within {TURNS} turns")]
    Undecided,
}

async fn by_model_once(
    run: &Arc<RunContext>,
    chain: &[ActorId],
    owner: &SymbolPath,
    text: &str,
) -> Result<String, NoAnswer> {
    let model = &run.services.models.agent;
    let calling = model.profile().tool_calling;
    let system = match calling {
        ToolCalling::Native => AnswerSystem {}.render(),
        ToolCalling::Text => AnswerSystemText {}.render(),
    };
    let asker = chain.last().map(actor_name).unwrap_or_default();
    let name = format!(
        "answer {owner} to {asker}: {}",
        text.chars().take(60).collect::<String>()
    );
    let mut conversation = Conversation::new(name, Role::Agent, system);
    let intent = run.agents().intent_of(&ActorId::Agent(owner.clone()));
    conversation.user(prompt_parts::question_prompt(
        run,
        owner,
        &asker,
        text,
        intent.as_deref(),
    ));
    let me = ActorId::Agent(owner.clone());
    let chain: Vec<ActorId> = chain.iter().cloned().chain([me.clone()]).collect();
    let mut answering = AnswerTurns {
        run,
        tools: toolbox(run, ToolSet::Answerer, &chain),
        me,
        conversation,
    };
    let answer = converse(&mut answering, TURNS).await;
    answer.unwrap_or(Err(NoAnswer::Undecided))
}

/// The conversation loop in which an owner's model answers a question.
struct AnswerTurns<'a> {
    run: &'a Arc<RunContext>,
    me: ActorId,
    tools: RunToolbox,
    conversation: Conversation,
}

#[async_trait]
impl Turns for AnswerTurns<'_> {
    type Action = Action;
    type End = Result<String, NoAnswer>;
    type Failed = CallFailed;

    fn name(&self) -> String {
        self.conversation.name.clone()
    }

    fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    fn profile(&self) -> &ModelProfile {
        self.run.services.models.agent.profile()
    }

    async fn begin(&mut self, turn: u32) -> ControlFlow<Self::End, Option<Vec<ToolSpec>>> {
        ControlFlow::Continue(Some(match turn < TURNS {
            true => self.tools.specs(self.profile().tool_calling),
            false => Vec::new(),
        }))
    }

    async fn call(&mut self, tools: Vec<ToolSpec>) -> Result<ChatReply, CallFailed> {
        let model = &self.run.services.models.agent;
        let conversation = &mut self.conversation;
        self.run.call(&self.me, model, conversation, tools).await
    }

    fn failed(&mut self, error: CallFailed) -> ControlFlow<Self::End> {
        ControlFlow::Break(Err(error.into()))
    }

    fn calls(&mut self, reply: &ChatReply) -> Vec<Asked> {
        let calling = self.profile().tool_calling;
        let paths = self.run.unusual_paths();
        protocol::calls(&self.tools, calling, ToolSet::Answerer, reply, &paths)
    }

    async fn hear(&mut self, reply: &ChatReply) -> TextReplyOutcome<Self::End> {
        let text = reply.text.trim();
        if !text.is_empty() {
            return TextReplyOutcome {
                told: None,
                end: Some(Ok(cap(text, ANSWER_CAP))),
            };
        }
        let calling = self.profile().tool_calling;
        let what = protocol::nothing_asked(calling, ToolSet::Answerer, reply);
        self.run.event(Event::Malformed {
            agent: self.me.clone(),
            what: what.clone(),
        });
        TextReplyOutcome {
            told: Some(what),
            end: None,
        }
    }

    async fn act(
        &mut self,
        _reply: &ChatReply,
        calls: Vec<Asked>,
    ) -> ToolCallsOutcome<Action, Self::End> {
        let results = self.tools.execute_all(calls).await;
        for (one, text) in &results {
            tools::report(self.run, &self.me, one, text);
        }
        ToolCallsOutcome { results, end: None }
    }
}

/// Describes a symbol from the index, without calling a model. It is returned when the owner cannot
/// answer.
fn what_is_known(run: &RunContext, lookup: &Lookup, owner: &SymbolPath) -> String {
    let mut known = match lookup.symbol(owner) {
        Ok(found) => {
            let doc = found.symbol.doc.clone().unwrap_or_default();
            format!("{}\n{doc}", signature(&found.tree, &found.symbol))
        }
        Err(error) => error,
    };
    if let Some(intent) = run.agents().intent_of(&ActorId::Agent(owner.clone())) {
        known.push_str(&format!("\nIts owner means to: {intent}"));
    }
    known
}
