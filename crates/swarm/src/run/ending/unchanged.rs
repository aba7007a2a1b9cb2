//! Determines why a run changed nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::NOT_ACCEPTED;
use super::phrases::first_line;
use crate::event::actor::ActorId;
use crate::event::actor::actor_name;
use crate::event::events::{AgentOutcome, Event};
use crate::evidence::wording::some_of;
use starling_core::Verdict;

/// The reason why a run changed nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unchanged {
    pub why: String,
    /// Whether every agent reported that its symbol needs no change.
    pub by_all: bool,
}

/// Determines from the events of a run why the run changed nothing.
pub(crate) fn unchanged(events: &[Event]) -> Unchanged {
    let mut last: BTreeMap<&ActorId, (&AgentOutcome, &str)> = BTreeMap::new();
    let mut sent_back = None;
    let mut is_undone = false;
    let mut is_missed = false;
    for event in events {
        if let Event::AgentFinished {
            agent,
            outcome,
            summary,
        } = event
        {
            last.insert(agent, (outcome, summary));
        } else if let Event::ProposalReviewed { verdict, .. } = event {
            sent_back = match verdict {
                Verdict::Accept => sent_back,
                Verdict::Reject { reason } => Some(reason.as_str()),
                Verdict::Steer { text } => Some(text.as_str()),
            };
        } else if let Event::ProposalUndone { .. } = event {
            is_undone = true;
        } else if let Event::NotWoken { .. } = event {
            is_missed = true;
        }
    }
    let not = |why: String| Unchanged { why, by_all: false };
    let gave_up = last
        .iter()
        .filter_map(|(agent, (outcome, _))| match outcome {
            AgentOutcome::GaveUp { why } => Some(format!("{} gave up: {why}", actor_name(agent))),
            AgentOutcome::Changed | AgentOutcome::NothingToChange => None,
        });
    let gave_up: Vec<String> = gave_up.collect();
    if is_undone {
        return not("every change was undone".to_owned());
    }
    if let Some(reason) = sent_back {
        return not(format!("{NOT_ACCEPTED}: {}", first_line(reason)));
    }
    if !gave_up.is_empty() {
        return not(some_of(&gave_up));
    }
    let said: BTreeSet<&str> = last.values().map(|(_, summary)| summary.trim()).collect();
    let said: Vec<&str> = said.into_iter().filter(|one| !one.is_empty()).collect();
    let why = match said.is_empty() {
        true => "no agent found anything to change".to_owned(),
        false => said.join("\n"),
    };
    Unchanged {
        why,
        by_all: !last.is_empty() && !is_missed,
    }
}
