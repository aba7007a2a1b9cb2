//! Carries out the actions of one agent turn.

use std::sync::Arc;

use futures::future::join_all;

use crate::agent::change_request;
use crate::agent::outcome::{Ending, gave_up};
use crate::agent::tools::report;
use crate::context::prompt_parts;
use crate::context::prompt_parts::is_small;
use crate::event::events::{AgentOutcome, Event};
use crate::evidence::return_reason::ReturnReason;
use crate::proposal::approval;
use crate::proposal::outcome::Outcome;
use crate::proposal::parts;
use crate::proposal::propose;
use crate::protocol::{Action, Asked, FinishWork, Propose, RunToolbox};
use crate::state::agent_state::AgentState;
use crate::state::repeats::RepeatedCall;
use crate::state::run_context::RunContext;

/// Result of a `finish` call that was not carried out, because another action of the same turn was
/// refused.
const NOT_FINISHED: &str = "Not finished: something that you asked for in this turn was refused, see there. Ask for it in another way, or call `finish` again.";

/// The outcome of the calls of a turn.
#[derive(Default)]
struct TurnOutcome {
    /// Set if an action was refused. The agent then gets another turn, so that it receives the
    /// reason.
    is_refused: bool,
    /// Set if a kept part of a change (a proposal that passes its checks only together with later
    /// parts) still fails after the later parts of this turn were proposed.
    is_kept: bool,
    /// The outcome of the agent's work, if a proposal was applied and the agent has nothing more to
    /// propose.
    done: Option<Ending>,
    /// The index of the call that ended the work, and its outcome.
    finished: Option<(usize, Ending)>,
    /// The outcome of the work, if the agent gave up.
    gave_up: Option<Ending>,
}

/// Carries out the actions of a turn in this order: read actions (concurrently), change requests,
/// proposals, and the end of the work. Change requests are sent before proposals are checked, so
/// that their recipients need not wait for the checks. The agent's work does not end in a turn in
/// which an action was refused.
pub(crate) async fn act(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    tools: &RunToolbox,
    asked: Vec<Asked>,
) -> (Vec<(Asked, String)>, Option<Ending>) {
    parts::forget_replaced(run, agent);
    let mut turn = TurnOutcome::default();
    let mut results: Vec<Option<String>> = vec![None; asked.len()];
    let warnings = count_repeats(run, agent, &asked, &mut results, &mut turn);
    // The texts are recorded before the first `await`. The results are read later, so they show
    // these texts or newer ones.
    let mut defined = Vec::new();
    for (at, one) in asked.iter().enumerate() {
        match &one.action {
            Ok(Action::Read(read)) if results[at].is_none() => {
                prompt_parts::remember_view(run, agent, &read.symbols);
            }
            Ok(Action::Definition(name)) if results[at].is_none() => {
                defined.push((at, prompt_parts::definitions(run, &name.name)));
            }
            Ok(_) | Err(_) => {}
        }
    }
    let open = asked
        .iter()
        .enumerate()
        .filter(|(at, _)| results[*at].is_none());
    let carried_out = open.map(|(at, one)| async move { (at, tools.execute(one).await) });
    for (at, text) in join_all(carried_out).await {
        results[at] = text;
    }
    for (at, definitions) in defined {
        let result = results[at].as_deref().unwrap_or_default();
        prompt_parts::remember_definitions(agent, definitions, result);
    }
    for (at, one) in asked.iter().enumerate() {
        match &one.action {
            Ok(Action::Request(wanted)) if results[at].is_none() => {
                agent.part_of_joint_change = true;
                let sent = change_request::request_change(run, &agent.actor, wanted);
                turn.is_refused |= sent.is_err();
                if sent.is_ok() {
                    agent.attempts.forget_refused();
                }
                results[at] = Some(sent.unwrap_or_else(|why| why));
            }
            Ok(_) | Err(_) => {}
        }
    }
    for (at, one) in asked.iter().enumerate() {
        let Ok(action) = &one.action else { continue };
        match action {
            Action::Intent(intent) => {
                results[at] = Some(approval::intent(run, agent, intent).await)
            }
            Action::Propose(change) => {
                results[at] = Some(propose_in(run, agent, change, &mut turn).await);
            }
            Action::Finish(finish) => {
                turn.finished = turn.finished.or(Some((at, finished(agent, finish))));
            }
            Action::Read(_)
            | Action::Request(_)
            | Action::Wake(_)
            | Action::Outline(_)
            | Action::Search(_)
            | Action::Definition(_)
            | Action::References(_)
            | Action::Ask(_)
            | Action::RunTests(_)
            | Action::Try(_) => {}
        }
    }
    for (at, warning) in warnings {
        let text = results[at].take().unwrap_or_default();
        results[at] = Some(format!("{text}\n{warning}"));
    }
    if let Some((at, _)) = turn.finished {
        let text = if turn.is_refused || turn.is_kept {
            NOT_FINISHED
        } else {
            "finished"
        };
        results[at] = Some(text.to_owned());
    }
    let pairs: Vec<(Asked, String)> = asked
        .into_iter()
        .zip(results)
        .map(|(one, text)| (one, text.unwrap_or_default()))
        .collect();
    for (one, text) in &pairs {
        report(run, &agent.actor, one, text);
    }
    (pairs, turn.ending())
}

impl TurnOutcome {
    fn ending(self) -> Option<Ending> {
        let finished = self.finished.map(|(_, ending)| ending);
        match (self.gave_up, self.is_refused || self.is_kept) {
            (Some(ending), _) => Some(ending),
            (None, true) => None,
            (None, false) => self.done.or(finished),
        }
    }
}

/// Handles calls that cannot be parsed and calls that were repeated too often, and stores their
/// results. Returns warnings to add to the results of repeated calls that are still carried out.
/// Proposals and tries are not counted here, because they have their own limits.
fn count_repeats(
    run: &RunContext,
    agent: &mut AgentState,
    asked: &[Asked],
    results: &mut [Option<String>],
    turn: &mut TurnOutcome,
) -> Vec<(usize, String)> {
    let epoch = run.world().epoch;
    let mut warnings = Vec::new();
    for (at, one) in asked.iter().enumerate() {
        match &one.action {
            Err(error) => {
                results[at] = Some(error.clone());
                turn.is_refused = true;
                continue;
            }
            Ok(Action::Propose(_) | Action::Finish(_) | Action::Try(_)) => continue,
            Ok(_) => {}
        }
        let why = match agent.repeats.count(epoch, one.fingerprint()) {
            RepeatedCall::Answered => continue,
            RepeatedCall::Warned(warning) => {
                warnings.push((at, warning));
                continue;
            }
            RepeatedCall::Refused(why) => why,
            RepeatedCall::Ends(why) => {
                let (tool, argument) = &one.label;
                let told = format!("it repeats `{tool} {argument}`, and nothing changed since");
                turn.gave_up = Some(gave_up(told));
                why
            }
        };
        run.event(Event::Malformed {
            agent: agent.actor.clone(),
            what: why.clone(),
        });
        turn.is_refused = true;
        results[at] = Some(why);
    }
    warnings
}

fn finished(agent: &AgentState, finish: &FinishWork) -> Ending {
    let outcome = match agent.changed {
        true => AgentOutcome::Changed,
        false => AgentOutcome::NothingToChange,
    };
    (outcome, finish.summary.clone())
}

async fn propose_in(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
    turn: &mut TurnOutcome,
) -> String {
    let outcome = match repeated(run, agent, change) {
        Some(outcome) => outcome,
        None => proposed(run, agent, change).await,
    };
    match outcome {
        Proposed::Applied { text, ending } => {
            turn.is_kept &= parts::are_there(run, agent);
            turn.done = turn.done.take().or(ending);
            text
        }
        Proposed::SentBack { text } => {
            turn.is_refused = true;
            text
        }
        Proposed::Kept { text } => {
            turn.is_kept = true;
            text
        }
        Proposed::GaveUp { text, ending } => {
            turn.gave_up.get_or_insert(ending);
            text
        }
    }
}

/// Refuses a proposal without checking it if the same proposal was refused before and the workspace
/// has not changed since. A model with tools may send the same proposal twice, because tests can be
/// flaky.
fn repeated(run: &RunContext, agent: &mut AgentState, change: &Propose) -> Option<Proposed> {
    let small = is_small(run.services.models.agent.profile());
    let times = if small { 1 } else { 2 };
    let epoch = run.world().epoch;
    let why = agent.attempts.earlier_refusal(epoch, change, times)?;
    let text =
        format!("You proposed the same before; nothing changed since. It was refused: {why}");
    let lacks = why.to_user().lines().next().unwrap_or_default();
    let why = ReturnReason::new(text, format!("the same answer again: {lacks}"));
    run.event(Event::ProposalRefused {
        agent: agent.actor.clone(),
        why: why.to_user().to_owned(),
        shown: Some(why.to_user().to_owned()),
    });
    Some(sent_back(run, agent, change, &why))
}

fn sent_back(
    run: &RunContext,
    agent: &mut AgentState,
    change: &Propose,
    why: &ReturnReason,
) -> Proposed {
    agent.attempts.record(run.world().epoch, change, why);
    let text = why.to_agent().to_owned();
    let repairs = run.budget.limits().repairs;
    // A small model has no limit here: it makes one attempt for each prompt in a fixed list (see
    // [`crate::agent::small`]).
    let is_small = is_small(run.services.models.agent.profile());
    match is_small || agent.attempts.count() <= repairs {
        true => Proposed::SentBack { text },
        false => {
            let ending = gave_up(agent.attempts.summary());
            Proposed::GaveUp { text, ending }
        }
    }
}

/// The outcome of a proposal, with the message for its agent.
pub(crate) enum Proposed {
    /// The proposal was applied. `ending` is set if the agent has nothing more to propose.
    Applied {
        text: String,
        ending: Option<Ending>,
    },
    SentBack {
        text: String,
    },
    /// The proposal does not pass its checks on its own. It is kept, and is checked again together
    /// with the agent's next proposal.
    Kept {
        text: String,
    },
    GaveUp {
        text: String,
        ending: Ending,
    },
}

/// Checks, reviews and applies one proposal, and returns its outcome.
pub(crate) async fn proposed(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
) -> Proposed {
    match propose::propose(run, agent, change).await {
        Outcome::Applied { text } => {
            agent.changed = true;
            agent.accepted.push(change.reason.clone());
            let summary = change.reason.clone();
            let ending = (!change.more).then_some((AgentOutcome::Changed, summary));
            Proposed::Applied { text, ending }
        }
        Outcome::SentBack { why } => sent_back(run, agent, change, &why),
        // If earlier parts of the same change are already kept, another part does not count as a
        // failed attempt.
        Outcome::Kept { why } if parts::open(run, agent).len() > 1 => Proposed::Kept {
            text: why.to_agent().to_owned(),
        },
        Outcome::Kept { why } => match sent_back(run, agent, change, &why) {
            Proposed::SentBack { text } => Proposed::Kept { text },
            other => other,
        },
        Outcome::Stopped { why } => Proposed::GaveUp {
            text: why.clone(),
            ending: gave_up(why),
        },
    }
}
