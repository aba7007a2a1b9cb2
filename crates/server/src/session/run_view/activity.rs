//! Describes what the agents of a run are doing.

use super::RunView;
use starling_core::{ModelNotice, Verdict};
use starling_swarm::{ActorId, AgentOutcome, AnswerSource, Event, ProposalId};

/// Maximum number of characters of a description.
const LONGEST: usize = 80;

/// Returns the display name of an actor.
pub fn actor_name(party: &ActorId) -> String {
    match party {
        ActorId::User => "you".to_owned(),
        ActorId::Scout => "scout".to_owned(),
        ActorId::Proxy => "proxy user".to_owned(),
        ActorId::Starling => "Starling".to_owned(),
        ActorId::Agent(symbol) => symbol.to_string(),
        ActorId::Solo => "the agent".to_owned(),
    }
}

/// Returns the agent that an event concerns, a description of its activity after the event, and
/// whether it still works.
pub(super) fn doing(event: &Event, view: &RunView) -> Option<(ActorId, String, bool)> {
    let by = |proposal: &ProposalId, what: String| {
        let agent = view.proposals.get(proposal)?.agent.clone();
        // An agent that has ended stays ended, even if the editor restores its change by redo.
        let has_ended = view.agents.get(&agent).is_some_and(|one| !one.working);
        Some((agent, what, !has_ended))
    };
    match event {
        Event::AgentFinished { agent, outcome, .. } => {
            Some((agent.clone(), finished(outcome), false))
        }
        Event::ReviewAsked { agent, .. } => {
            Some((agent.clone(), "waits for your review".to_owned(), true))
        }
        Event::ProposalReviewed {
            proposal, verdict, ..
        } => by(proposal, reviewed(verdict)),
        Event::ProposalEdited { proposal, .. } => by(proposal, "checks your version".to_owned()),
        Event::ProposalApplied {
            proposal,
            change: Some(change),
            ..
        } if change.is_empty() => by(proposal, "its text was already there".to_owned()),
        Event::ProposalApplied { proposal, .. } => by(proposal, "changed it".to_owned()),
        Event::ProposalConflicted { proposal, .. } => {
            by(proposal, "begins anew from what you typed".to_owned())
        }
        Event::ProposalNotApplied { proposal, why } => by(proposal, short(why)),
        Event::ScoutPicked { symbols } => {
            let picked = match symbols.len() {
                1 => "picked 1 symbol".to_owned(),
                many => format!("picked {many} symbols"),
            };
            Some((ActorId::Scout, picked, false))
        }
        Event::ProposalUndone { .. }
        | Event::EditReceived { .. }
        | Event::RunStarted { .. }
        | Event::TestsRun { .. }
        | Event::Located { .. }
        | Event::LanguageServer { .. }
        | Event::Diagnosed { .. }
        | Event::ProposalChecked { .. }
        | Event::FollowedUp { .. }
        | Event::FollowUpMissed { .. }
        | Event::NotWoken { .. }
        | Event::TakenBack { .. }
        | Event::Steered { .. }
        | Event::RunFinished { .. } => None,
        Event::AgentWoken { .. }
        | Event::TurnStarted { .. }
        | Event::TurnFinished { .. }
        | Event::TurnFailed { .. }
        | Event::Notice { .. }
        | Event::Malformed { .. }
        | Event::ToolUsed { .. }
        | Event::Asked { .. }
        | Event::Answered { .. }
        | Event::ChangeRequested { .. }
        | Event::ChangeDeclined { .. }
        | Event::IntentStated { .. }
        | Event::IntentReviewed { .. }
        | Event::ProposalMade { .. }
        | Event::ProposalRefused { .. }
        | Event::ProposalApplying { .. }
        | Event::CandidateChosen { .. } => working(event, view),
    }
}

/// Like [`doing`], for the events of an agent between its start and its end.
fn working(event: &Event, view: &RunView) -> Option<(ActorId, String, bool)> {
    let (agent, what) = at_work(event)?;
    let known = view.agents.get(agent).is_some_and(|known| known.working);
    // An agent that only answers a question does not count as working.
    let working = known || matches!(event, Event::AgentWoken { .. });
    let only_answers = !working && matches!(agent, ActorId::Agent(_));
    let what = match only_answers && matches!(event, Event::TurnStarted { .. }) {
        true => "answers a question".to_owned(),
        false => short(&what),
    };
    Some((agent.clone(), what, working))
}

/// Describes what an agent read, searched, or ran.
pub(super) fn lookup(event: &Event) -> Option<(&ActorId, String)> {
    let Event::ToolUsed {
        agent,
        tool,
        argument,
        ..
    } = event
    else {
        return None;
    };
    let words = format!("{} {argument}", tool.replace('_', " "));
    Some((agent, short(&words)))
}

/// Returns the new activity of an actor that has become idle by an event: an agent answered, or the
/// proxy user (which approves in place of the user) decided.
pub(super) fn rests(event: &Event) -> Option<(&ActorId, String)> {
    if let Event::Answered { from, to, .. } = event {
        Some((from, format!("answered {}", actor_name(to))))
    } else if let Event::TurnFinished {
        agent: agent @ ActorId::Proxy,
        ..
    } = event
    {
        Some((agent, "decided".to_owned()))
    } else {
        None
    }
}

/// Returns the activity of an agent between its start and its end.
fn at_work(event: &Event) -> Option<(&ActorId, String)> {
    if let Event::AgentWoken { agent, cause } = event {
        Some((agent, format!("begins: {}", cause.in_short())))
    } else if let Event::TurnStarted { agent, turn, .. } = event {
        Some((agent, format!("thinks (turn {turn})")))
    } else if let Event::TurnFailed { agent, error, .. } = event {
        Some((agent, format!("got no answer: {error}")))
    } else if let Event::Notice { agent, notice } = event {
        Some((agent, noticed(notice)))
    } else if let Event::Malformed { agent, .. } = event {
        Some((agent, "puts an unclear answer right".to_owned()))
    } else if let Event::ToolUsed {
        agent,
        tool,
        argument,
        ..
    } = event
    {
        Some((agent, format!("{} {argument}", tool.replace('_', " "))))
    } else if let Event::Asked { from, to, .. } = event {
        Some((from, format!("asks {}", actor_name(to))))
    } else if let Event::Answered {
        from, to, source, ..
    } = event
    {
        Some((to, answered(from, *source)))
    } else if let Event::ChangeRequested { from, to, .. } = event {
        Some((from, format!("wants a change of {}", actor_name(to))))
    } else if let Event::ChangeDeclined { by, to, .. } = event {
        Some((by, format!("declines what {} wants", actor_name(to))))
    } else if let Event::IntentStated { agent, intent, .. } = event {
        Some((agent, format!("means to: {intent}")))
    } else if let Event::IntentReviewed { agent, .. } = event {
        Some((agent, "goes on after your word".to_owned()))
    } else if let Event::ProposalMade {
        agent, proposal, ..
    } = event
    {
        Some((agent, format!("checks proposal {proposal}")))
    } else if let Event::ProposalRefused { agent, .. } = event {
        Some((agent, "mends its proposal".to_owned()))
    } else if let Event::CandidateChosen { agent, model, .. } = event {
        Some((agent, format!("takes the candidate of {model}")))
    } else {
        None
    }
}

fn answered(from: &ActorId, source: AnswerSource) -> String {
    match source {
        AnswerSource::Model | AnswerSource::Memory | AnswerSource::Cycle => {
            format!("heard from {}", actor_name(from))
        }
        AnswerSource::Refused => format!("got no answer from {}", actor_name(from)),
    }
}

fn reviewed(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Accept => "its proposal was accepted".to_owned(),
        Verdict::Reject { reason } => short(&format!("revises: {reason}")),
        Verdict::Steer { text } => short(&format!("revises: {text}")),
    }
}

fn finished(outcome: &AgentOutcome) -> String {
    match outcome {
        AgentOutcome::Changed => "is done".to_owned(),
        AgentOutcome::NothingToChange => "found nothing to change".to_owned(),
        AgentOutcome::GaveUp { why } => short(&format!("gave up: {why}")),
    }
}

fn noticed(notice: &ModelNotice) -> String {
    match notice {
        ModelNotice::Retrying { model, error, .. } => format!("asks {model} again: {error}"),
        ModelNotice::FellBack { from, to, .. } => format!("asks {to} in place of {from}"),
        ModelNotice::Continued { model, .. } => format!("{model} goes on writing"),
        ModelNotice::Preparing { model, message } => format!("{model}: {message}"),
    }
}

/// Returns the first line of a text, shortened.
pub fn short(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(LONGEST).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}
