//! Outcome of a proposal, as reported to its agent.

use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::evidence::return_reason::ReturnReason;
use crate::state::agent_state::AgentState;
use crate::state::run_context::RunContext;

/// Outcome of a proposal, with a message for the agent.
pub(crate) enum Outcome {
    Applied {
        text: String,
    },
    /// The agent has to fix the proposal.
    SentBack {
        why: ReturnReason,
    },
    /// The proposal fails on its own. It is kept, and is checked again together with the agent's
    /// next proposal.
    Kept {
        why: ReturnReason,
    },
    /// The agent cannot continue its work.
    Stopped {
        why: String,
    },
}

pub(crate) fn sent_back(why: impl Into<String>) -> Outcome {
    let why = ReturnReason::for_both(why);
    Outcome::SentBack { why }
}

/// Sends a proposal back to the agent and logs the refusal.
pub(crate) fn refuse(run: &RunContext, agent: &AgentState, why: ReturnReason) -> Outcome {
    tell_refused(run, agent, &why);
    Outcome::SentBack { why }
}

pub(crate) fn tell_refused(run: &RunContext, agent: &AgentState, why: &ReturnReason) {
    run.event(Event::ProposalRefused {
        agent: agent.actor.clone(),
        why: why.to_agent().to_owned(),
        shown: Some(why.to_user().to_owned()),
    });
}

/// Returns whether proposals of this agent that fail on their own may be kept for a later joint
/// check.
pub(crate) fn are_kept(agent: &AgentState) -> bool {
    agent.actor == ActorId::Solo
}
