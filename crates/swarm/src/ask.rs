//! Questions between agents. The owner answers in a separate conversation without editing tools, so
//! an owner that waits for an answer can still answer others.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use super::call::{CallFailed, Conversation};
use super::context;
use super::event::{AnswerSource, Event, Party};
use super::hub::Hub;
use super::lookup::{Lookup, cap};
use super::protocol::{self, Action, Asked, Seat};
use super::tools;
use starling_core::prompts::{AnswerSystem, AnswerSystemText, Prompt};
use starling_core::{Role, Tokens, ToolCalling};
use starling_syntax::{SymbolPath, signature};

/// Maximum number of turns for one answer.
const TURNS: u32 = 4;
/// Maximum time to wait for an answer.
const DEADLINE: Duration = Duration::from_secs(300);
const ANSWER_CAP: Tokens = Tokens(1_200);

/// Asks the owner of a symbol. `chain` holds all agents that wait for this answer, the asker last.
pub(super) fn ask<'a>(
    hub: &'a Arc<Hub>,
    chain: Vec<Party>,
    symbol: &'a str,
    text: &'a str,
) -> BoxFuture<'a, String> {
    async move {
        let lookup = hub.lookup();
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
            let mut state = hub.state();
            state.questions += 1;
            state.questions
        };
        let to = Party::Agent(owner.clone());
        hub.event(Event::Asked {
            question,
            from: from.clone(),
            to: to.clone(),
            text: text.to_owned(),
        });
        let (answer, source) = answer(hub, &chain, &owner, text).await;
        hub.event(Event::Answered {
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
    hub: &Arc<Hub>,
    chain: &[Party],
    owner: &SymbolPath,
    text: &str,
) -> (String, AnswerSource) {
    let lookup = hub.lookup();
    let known = || what_is_known(hub, &lookup, owner);
    if chain.contains(&Party::Agent(owner.clone())) {
        let note = "The owner is itself waiting in this chain of questions. What is known:";
        return (format!("{note}\n{}", known()), AnswerSource::Cycle);
    }
    let question = {
        let state = hub.state();
        let question = state.answers.question(owner, text);
        if let Some(answer) = state.answers.known(&question) {
            return (answer.to_owned(), AnswerSource::Memory);
        }
        question
    };
    if chain.len() >= hub.ledger.limits().depth as usize {
        return (
            format!(
                "The chain of questions is too long. What is known:\n{}",
                known()
            ),
            AnswerSource::Refused,
        );
    }
    if let Err(exhausted) = hub.ledger.count_message() {
        return (
            format!("{exhausted}. What is known:\n{}", known()),
            AnswerSource::Refused,
        );
    }
    let deadline = DEADLINE.min(hub.ledger.time_left());
    match tokio::time::timeout(deadline, by_model(hub, chain, owner, text)).await {
        Ok(Ok(answer)) => {
            hub.state().answers.keep(question, &answer);
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

/// Answers with the owner's model, which may read first.
async fn by_model(
    hub: &Arc<Hub>,
    chain: &[Party],
    owner: &SymbolPath,
    text: &str,
) -> Result<String, String> {
    let answer = match by_model_once(hub, chain, owner, text).await {
        Err(NoAnswer::Call(error)) if error.is_for_tools(&hub.outside.models.agent) => {
            by_model_once(hub, chain, owner, text).await
        }
        answer => answer,
    };
    answer.map_err(|error| error.to_string())
}

#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error(transparent)]
    Call(#[from] CallFailed),
    #[error("{TURNS} turns without an answer")]
    Undecided,
}

async fn by_model_once(
    hub: &Arc<Hub>,
    chain: &[Party],
    owner: &SymbolPath,
    text: &str,
) -> Result<String, NoAnswer> {
    let model = &hub.outside.models.agent;
    let calling = model.profile().tool_calling;
    let system = match calling {
        ToolCalling::Native => AnswerSystem {}.render(),
        ToolCalling::Text => AnswerSystemText {}.render(),
    };
    let asker = chain.last().map(party_name).unwrap_or_default();
    let name = format!(
        "answer {owner} to {asker}: {}",
        text.chars().take(60).collect::<String>()
    );
    let mut conversation = Conversation::new(name, Role::Agent, system);
    let intent = hub.intent_of(&Party::Agent(owner.clone()));
    conversation.user(context::question_prompt(
        hub,
        owner,
        &asker,
        text,
        intent.as_deref(),
    ));
    let me = Party::Agent(owner.clone());
    let chain: Vec<Party> = chain.iter().cloned().chain([me.clone()]).collect();
    for turn in 0..TURNS {
        let tools = if turn + 1 < TURNS {
            protocol::tools(calling, Seat::Answerer)
        } else {
            Vec::new()
        };
        let reply = hub.call(&me, model, &mut conversation, tools).await?;
        let asked = protocol::parse(calling, Seat::Answerer, &reply, &hub.unusual_paths());
        if asked.is_empty() && !reply.text.trim().is_empty() {
            return Ok(cap(reply.text.trim(), ANSWER_CAP));
        }
        conversation
            .messages
            .push(protocol::assistant_message(&reply));
        if asked.is_empty() {
            let what = protocol::nothing_asked(calling, Seat::Answerer, &reply);
            hub.event(Event::Malformed {
                agent: me.clone(),
                what: what.clone(),
            });
            conversation.user(what);
            continue;
        }
        let found = asked.into_iter().map(|one| look_up(hub, &chain, one));
        let results = join_all(found).await;
        for (one, text) in &results {
            tools::report(hub, &me, one, text);
        }
        conversation
            .messages
            .extend(protocol::result_messages(results));
    }
    Err(NoAnswer::Undecided)
}

async fn look_up(hub: &Arc<Hub>, chain: &[Party], asked: Asked) -> (Asked, String) {
    let text = match &asked.action {
        Err(error) => error.clone(),
        Ok(Action::Ask(question)) => {
            ask(hub, chain.to_vec(), &question.symbol, &question.question).await
        }
        Ok(action) => tools::look(hub, chain.last().and_then(Party::symbol), action)
            .await
            .unwrap_or_else(|| "An answer cannot change anything.".to_owned()),
    };
    (asked, text)
}

/// Describes a symbol without a model.
fn what_is_known(hub: &Hub, lookup: &Lookup, owner: &SymbolPath) -> String {
    let mut known = match lookup.symbol(owner) {
        Ok(found) => {
            let doc = found.symbol.doc.clone().unwrap_or_default();
            format!("{}\n{doc}", signature(&found.tree, &found.symbol))
        }
        Err(error) => error,
    };
    if let Some(intent) = hub.intent_of(&Party::Agent(owner.clone())) {
        known.push_str(&format!("\nIts owner means to: {intent}"));
    }
    known
}

pub(super) fn party_name(party: &Party) -> String {
    match party {
        Party::User => "the user".to_owned(),
        Party::Scout => "the scout".to_owned(),
        Party::Proxy => "the proxy user".to_owned(),
        Party::Starling => "Starling".to_owned(),
        Party::Solo => "the agent".to_owned(),
        Party::Agent(symbol) => symbol.to_string(),
    }
}
