//! Writes an agent's first prompt, and later the messages about new work.

use std::sync::Arc;

use crate::agent::new_conversation::conversation_of;
use crate::agent::small;
use crate::context::agent_context::material;
use crate::context::prompt_parts::{
    cause_text, is_small, note_shown, remember_view, solo_prompt, symbol_prompt,
};
use crate::event::actor::ActorId;
use crate::event::events::Cause;
use crate::state::agent_state::AgentState;
use crate::state::run_context::RunContext;
use starling_core::Role;
use starling_syntax::SymbolPath;

/// Adds new work to the agent's conversation: the full context of its symbol the first time, and
/// only new facts later.
pub(crate) fn begin_work(run: &Arc<RunContext>, agent: &mut AgentState, causes: &[Cause]) {
    let actor = agent.actor.clone();
    // The text is recorded before the prompt is written, so that the prompt shows this text or a
    // newer one.
    if let ActorId::Agent(symbol) = &actor {
        remember_view(run, agent, &[symbol.to_string()]);
    }
    let cause = causes
        .iter()
        .filter(|cause| weighs(&actor, cause))
        .map(cause_text)
        .collect::<Vec<_>>()
        .join("\n");
    let text = match (&mut agent.conversation, &actor) {
        (Some(_), ActorId::Agent(symbol)) if is_small(run.services.models.agent.profile()) => {
            agent.cause.clear();
            return small::ask(run, agent, symbol);
        }
        // If the agent never replied to its first prompt, that prompt is replaced.
        (Some(conversation), ActorId::Agent(symbol)) if !conversation.is_answered() => {
            conversation.forget();
            let cause = format!("{}{cause}", accepted_already(agent));
            first_prompt(run, symbol, cause)
        }
        (Some(_), ActorId::Agent(symbol)) => {
            let now = run.lookup().read(&[symbol.to_string()]);
            let accepted = accepted_already(agent);
            format!("Your symbol as it is now:\n{now}\n{accepted}{cause}")
        }
        (Some(_), _) => cause,
        (None, ActorId::Agent(symbol)) if is_small(run.services.models.agent.profile()) => {
            let first = causes
                .iter()
                .all(|cause| matches!(cause, Cause::Picked { .. }));
            agent.cause = if first { String::new() } else { cause };
            agent.conversation = Some(conversation_of(run, &actor));
            return small::ask(run, agent, symbol);
        }
        (None, ActorId::Agent(symbol)) => first_prompt(run, symbol, cause),
        (None, _) => {
            let frozen = run.frozen.get().cloned().unwrap_or_default();
            let lookup = run.lookup();
            let material = material(run, Role::Agent);
            let shown = material.shown.iter().map(|one| one.symbol.as_str());
            note_shown(&lookup, &mut agent.told, shown);
            format!("{frozen}\n{}", solo_prompt(run, material, cause))
        }
    };
    agent
        .conversation
        .get_or_insert_with(|| conversation_of(run, &actor))
        .user(text);
}

pub(crate) fn first_prompt(run: &RunContext, symbol: &SymbolPath, cause: String) -> String {
    let frozen = run.frozen.get().cloned().unwrap_or_default();
    format!("{frozen}\n{}", symbol_prompt(run, symbol, cause))
}

/// Lists the agent's accepted changes from earlier pieces of work.
pub(crate) fn accepted_already(agent: &AgentState) -> String {
    let line =
        |reason: &String| format!("Accepted already, and part of the source above: {reason}\n");
    agent.accepted.iter().map(line).collect()
}

/// Returns whether the prompt must mention this cause of the work. For the agent of `--driver
/// single`, that the scout picked it needs no mention.
pub(crate) fn weighs(actor: &ActorId, cause: &Cause) -> bool {
    !matches!((actor, cause), (ActorId::Solo, Cause::Picked { .. }))
}
