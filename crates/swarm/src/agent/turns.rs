//! The work of an agent, from the causes for which it was woken (given work) to an outcome.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use starling_dialogue::converse;

use crate::agent::act::{Proposed, proposed};
use crate::agent::agent_turns::AgentTurns;
use crate::agent::begin_work;
use crate::agent::outcome::{Ending, gave_up};
use crate::check::diagnose;
use crate::context::prompt_parts::is_small;
use crate::contract::follow_up;
use crate::event::actor::{ActorId, actor_name};
use crate::event::events::{AgentOutcome, Cause, Event};
use crate::evidence::wording::counted;
use crate::proposal::parts;
use crate::state::agent_state::AgentState;
use crate::state::attempts::Attempts;
use crate::state::run_context::RunContext;

/// Runs the agent in its own asynchronous task. The work starts only after the first test run, when
/// the common part of all prompts is known. The user may send an agent a message before that.
pub(crate) fn work_in_task(run: Arc<RunContext>, actor: ActorId) -> BoxFuture<'static, ()> {
    if let ActorId::Agent(symbol) = &actor {
        diagnose::prepare(&run, &symbol.file);
    }
    let work = async move {
        run.frozen.wait().await;
        work(&run, &actor).await;
    };
    work.boxed()
}

/// Runs the agent until it has no more work.
async fn work(run: &Arc<RunContext>, actor: &ActorId) {
    while let Some((mut agent, causes)) = run.take_work(actor) {
        let causes = with_something_to_do(run, actor, causes);
        if causes.is_empty() {
            run.event(Event::AgentFinished {
                agent: actor.clone(),
                outcome: AgentOutcome::NothingToChange,
                summary: "it fits the changed contract already".to_owned(),
            });
            run.park(agent);
            continue;
        }
        let (outcome, summary) = carry_out(run, &mut agent, &causes).await;
        agent.gave_up_at = match outcome {
            AgentOutcome::GaveUp { .. } => Some(run.world().epoch),
            AgentOutcome::Changed | AgentOutcome::NothingToChange => None,
        };
        decline_requests(run, &agent, &causes, &outcome, &summary);
        run.event(Event::AgentFinished {
            agent: actor.clone(),
            outcome,
            summary,
        });
        run.park(agent);
    }
}

/// Returns the causes that still need work, without follow-ups that have been resolved in the
/// meantime.
fn with_something_to_do(run: &RunContext, actor: &ActorId, causes: Vec<Cause>) -> Vec<Cause> {
    let ActorId::Agent(own) = actor else {
        return causes;
    };
    let is_left = |cause: &Cause| match cause {
        Cause::FollowUp { changed, .. } => follow_up::is_still_broken(run, own, changed),
        Cause::Picked { .. }
        | Cause::ChangeRequest { .. }
        | Cause::FailedTests { .. }
        | Cause::Problems { .. }
        | Cause::Steered { .. }
        | Cause::Declined { .. } => true,
    };
    causes.into_iter().filter(is_left).collect()
}

/// Carries out one piece of work and returns its outcome. `causes` are the reasons for this work.
async fn carry_out(run: &Arc<RunContext>, agent: &mut AgentState, causes: &[Cause]) -> Ending {
    let goes_on = agent.gave_up_at == Some(run.world().epoch);
    if !(goes_on && is_small(run.services.models.agent.profile())) {
        agent.attempts = Attempts::default();
        agent.broken.clear();
        agent.ways = 0;
        agent.filled.clear();
    }
    agent.intent_approved = false;
    agent.malformed = 0;
    agent.changed = false;
    parts::forget(run, agent);
    agent.repeats.clear();
    agent.part_of_joint_change |= causes.iter().any(|cause| match cause {
        Cause::ChangeRequest { .. } | Cause::FollowUp { .. } => true,
        Cause::Picked { .. }
        | Cause::FailedTests { .. }
        | Cause::Problems { .. }
        | Cause::Steered { .. }
        | Cause::Declined { .. } => false,
    });
    agent.wave = causes.iter().map(wave_of).max().unwrap_or_default();
    // The agent's changes are based on the workspace at this point. If the user edits a file later,
    // the agent does not know the edit until a prompt or a tool result shows it.
    agent.unread = Some(run.services.index.snapshot().clone());
    begin_work::begin_work(run, agent, causes);
    agent.begin_turn();
    if let Some(ending) = propose_draft(run, agent).await {
        return ending;
    }
    let most = run.budget.limits().turns;
    if let Some(ending) = converse(&mut AgentTurns::new(run, agent), most).await {
        return ending;
    }
    let turns = counted(most as usize, "turn");
    gave_up(format!("{turns} without an end"))
}

fn wave_of(cause: &Cause) -> u32 {
    match cause {
        Cause::FollowUp { wave, .. } => *wave,
        Cause::Picked { .. }
        | Cause::ChangeRequest { .. }
        | Cause::FailedTests { .. }
        | Cause::Problems { .. }
        | Cause::Steered { .. }
        | Cause::Declined { .. } => 0,
    }
}

/// Proposes the change that the scout (the agent that picks symbols) already wrote for this agent.
/// Only if this proposal is sent back is the agent's own model called, and only then does the agent
/// count against the limit of agents.
async fn propose_draft(run: &Arc<RunContext>, agent: &mut AgentState) -> Option<Ending> {
    let draft = agent.draft.take()?;
    // The draft is based on the texts that the scout saw, not on texts that this agent saw later.
    let scouted_in = run.world().scouted_in.clone();
    let mut shown = std::mem::take(&mut agent.views);
    let unread = agent.unread.clone();
    agent.unread = scouted_in.or(agent.unread.take());
    let proposed = proposed(run, agent, &draft).await;
    run.draft_arrived(&agent.actor);
    shown.extend(std::mem::take(&mut agent.views));
    agent.views = shown;
    agent.unread = unread;
    let text = match proposed {
        Proposed::Applied { text, ending } => match ending {
            Some(ending) => return Some(ending),
            None => text,
        },
        Proposed::SentBack { text } | Proposed::Kept { text } => text,
        Proposed::GaveUp { ending, .. } => return Some(ending),
    };
    if let Err(exhausted) = run.count_agent(&agent.actor) {
        // The reason why the draft was sent back has already been logged.
        let why = format!("its draft came back, and {exhausted}");
        run.not_woken(actor_name(&agent.actor), &ActorId::Scout, why.clone());
        return Some(gave_up(why));
    }
    if let Some(conversation) = agent.conversation.as_mut() {
        let change = serde_json::to_string(&draft).unwrap_or_default();
        conversation.user(format!(
            "This was proposed for your symbol:\n{change}\nIt came back: {text}"
        ));
    }
    None
}

/// Notifies agents at work that the change which they requested was declined.
fn decline_requests(
    run: &RunContext,
    agent: &AgentState,
    causes: &[Cause],
    outcome: &AgentOutcome,
    summary: &str,
) {
    let why = match outcome {
        AgentOutcome::Changed => return,
        AgentOutcome::NothingToChange => summary.to_owned(),
        AgentOutcome::GaveUp { why } => why.clone(),
    };
    for cause in causes {
        let Cause::ChangeRequest { from, .. } = cause else {
            continue;
        };
        run.event(Event::ChangeDeclined {
            by: agent.actor.clone(),
            to: from.clone(),
            reason: why.clone(),
        });
        let notice = Cause::Declined {
            by: agent.actor.clone(),
            reason: why.clone(),
        };
        run.tell_if_working(from, notice);
    }
}
