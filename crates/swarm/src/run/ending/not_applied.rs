//! Lists the proposals of a run that were not applied, for the run's headline.

use std::collections::{BTreeMap, BTreeSet};

use super::phrases::{QUOTED, first_line, head};
use crate::event::actor::ActorId;
use crate::event::actor::actor_name;
use crate::event::events::{AgentOutcome, Event};
use crate::evidence::ids::ProposalId;
use starling_core::Verdict;
use starling_syntax::SymbolPath;

/// The applied changes of a run.
#[derive(Default)]
struct AppliedChanges<'e> {
    symbols: BTreeSet<&'e SymbolPath>,
    /// The agents that made the changes.
    agents: BTreeSet<&'e ActorId>,
}

impl<'e> AppliedChanges<'e> {
    fn of(events: &'e [Event]) -> Self {
        let mut made: BTreeMap<ProposalId, &ActorId> = BTreeMap::new();
        let mut changes = AppliedChanges::default();
        for event in events {
            if let Event::ProposalMade {
                proposal, agent, ..
            } = event
            {
                made.insert(*proposal, agent);
            } else if let Event::ProposalApplied {
                proposal, symbols, ..
            } = event
            {
                changes.symbols.extend(symbols);
                changes.agents.extend(made.get(proposal));
            }
        }
        changes
    }

    /// Returns whether none of the changes affects the symbol of an agent. A change of a module's
    /// body does not count as a change of the module's functions.
    fn are_none_of(&self, agent: &ActorId) -> bool {
        let ActorId::Agent(symbol) = agent else {
            return false;
        };
        let holds = |outer: &SymbolPath, inner: &SymbolPath| {
            outer == inner || !outer.is_module() && outer.encloses(inner)
        };
        let mut symbols = self.symbols.iter();
        let is_own = symbols.any(|one| holds(one, symbol) || holds(symbol, one));
        !is_own && !self.agents.contains(agent)
    }
}

/// Describes the agents whose proposals the checks refused and whose symbols have no applied
/// change, each with the reason of the last refusal.
pub(crate) fn left_out(events: &[Event]) -> Vec<String> {
    let left = refused(events).into_iter();
    left.map(|(agent, why)| format!("{} ({why})", actor_name(agent)))
        .collect()
}

/// Like [`left_out`], but returns the agents and reasons as separate values.
pub(crate) fn refused(events: &[Event]) -> Vec<(&ActorId, &str)> {
    let mut refused: BTreeMap<String, (&ActorId, &str)> = BTreeMap::new();
    for event in events {
        if let Event::ProposalRefused { agent, why, shown } = event {
            let why = shown.as_ref().unwrap_or(why);
            refused.insert(actor_name(agent), (agent, first_line(why)));
        }
    }
    let changes = AppliedChanges::of(events);
    let left = refused.into_values();
    left.filter(|(agent, _)| changes.are_none_of(agent))
        .collect()
}

/// Describes the agents whose last work ended without a change, each with the reason that it gave.
pub(crate) fn declined(events: &[Event]) -> Vec<String> {
    let mut last: BTreeMap<String, Option<String>> = BTreeMap::new();
    for event in events {
        let Event::AgentFinished {
            agent,
            outcome,
            summary,
        } = event
        else {
            continue;
        };
        let name = actor_name(agent);
        let reason = match outcome {
            AgentOutcome::Changed => None,
            AgentOutcome::NothingToChange if summary.trim().is_empty() => None,
            AgentOutcome::NothingToChange => Some(format!("{name}: {}", reason(summary))),
            AgentOutcome::GaveUp { why } => Some(format!("{name} gave up: {}", reason(why))),
        };
        last.insert(name, reason);
    }
    last.into_values().flatten().collect()
}

/// Returns the first line of an agent's reason, shortened.
fn reason(text: &str) -> String {
    head(first_line(text.trim()), QUOTED)
}

/// Returns the last rejected proposal of each agent whose symbol has no applied change, in the form
/// `#2 (a.py::f)`.
pub(crate) fn rejected(events: &[Event]) -> Vec<String> {
    let mut made: BTreeMap<ProposalId, &ActorId> = BTreeMap::new();
    let mut rejected: BTreeMap<String, (&ActorId, ProposalId)> = BTreeMap::new();
    for event in events {
        match event {
            Event::ProposalMade {
                proposal, agent, ..
            } => {
                made.insert(*proposal, agent);
            }
            Event::ProposalReviewed {
                proposal,
                by: ActorId::User,
                verdict: Verdict::Reject { .. },
            } => {
                if let Some(agent) = made.get(proposal) {
                    rejected.insert(actor_name(agent), (agent, *proposal));
                }
            }
            _ => {}
        }
    }
    let changes = AppliedChanges::of(events);
    let left = rejected
        .iter()
        .filter(|(_, (agent, _))| changes.are_none_of(agent));
    left.map(|(name, (_, id))| format!("{id} ({name})"))
        .collect()
}
