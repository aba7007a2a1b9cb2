//! Proposals of a run that are not in the workspace, for its headline.

use std::collections::{BTreeMap, BTreeSet};

use super::first_line;
use crate::event::actor::ActorId;
use crate::event::actor::actor_name;
use crate::event::events::Event;
use crate::evidence::ids::ProposalId;
use starling_core::Verdict;
use starling_syntax::SymbolPath;

/// The symbols that were changed.
fn applied(events: &[Event]) -> BTreeSet<&SymbolPath> {
    let mut applied = BTreeSet::new();
    for event in events {
        if let Event::ProposalApplied { symbols, .. } = event {
            applied.extend(symbols);
        }
    }
    applied
}

/// Whether nothing of an agent's symbol was changed.
fn has_changed_nothing(agent: &ActorId, applied: &BTreeSet<&SymbolPath>) -> bool {
    match agent {
        ActorId::Agent(symbol) => !applied
            .iter()
            .any(|one| *one == symbol || one.encloses(symbol) || symbol.encloses(one)),
        _ => false,
    }
}

/// The agents whose proposals the checks refused and of whose symbol nothing was applied, each with the
/// last reason.
pub(crate) fn left_out(events: &[Event]) -> Vec<String> {
    let mut refused: BTreeMap<String, (&ActorId, &str)> = BTreeMap::new();
    for event in events {
        if let Event::ProposalRefused { agent, why, shown } = event {
            let why = shown.as_ref().unwrap_or(why);
            refused.insert(actor_name(agent), (agent, first_line(why)));
        }
    }
    let applied = applied(events);
    let left = refused
        .iter()
        .filter(|(_, (agent, _))| has_changed_nothing(agent, &applied));
    left.map(|(name, (_, why))| format!("{name} ({why})"))
        .collect()
}

/// The last proposals that the person rejected of agents of whose symbol nothing was applied:
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
    let applied = applied(events);
    let left = rejected
        .iter()
        .filter(|(_, (agent, _))| has_changed_nothing(agent, &applied));
    left.map(|(name, (_, id))| format!("{id} ({name})"))
        .collect()
}
