//! The proposals of a run, computed from its events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use starling_core::Verdict;
use starling_swarm::{ActorId, Event, Evidence, FileChange, ProposalId};
use starling_syntax::SymbolPath;

/// The status of a proposal, from its checks to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalStatus {
    Checking,
    /// Waiting for review.
    Waiting,
    Accepted,
    Rejected,
    Applied,
    Conflicted,
    Undone,
    /// The run ended, or the agent abandoned the proposal.
    Dropped,
}

/// A proposal of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunProposal {
    pub state: ProposalStatus,
    pub agent: ActorId,
    /// The symbol of the proposal's owner.
    pub symbol: SymbolPath,
    pub symbols: Vec<SymbolPath>,
    pub reason: String,
    pub revises: Option<ProposalId>,
    /// The diff against the text at the time when the proposal was made.
    pub diff: String,
    pub evidence: Option<Evidence>,
    /// The proposal whose review includes this one: itself, or another proposal that is reviewed
    /// together with it.
    pub lead: ProposalId,
    /// The other proposals that are applied only together with this one.
    pub with: Vec<ProposalId>,
    /// The change, while the proposal waits.
    pub part: Option<FileChange>,
    /// While the user's version of the set is checked: the change as the user edited it, or as it was
    /// shown last if the user's version of this proposal is not known.
    pub edited: Option<FileChange>,
    /// Why the proposal no longer fits the user's text.
    pub conflict: Option<String>,
    /// Who accepted the proposal.
    pub accepted_by: Option<ActorId>,
    /// The number of the last event that asked for a review of the proposal.
    pub version: Option<u64>,
}

impl RunProposal {
    /// Returns whether the proposal changes a file for which a person must accept it individually.
    pub fn needs_own_yes(&self) -> bool {
        let evidence = self.evidence.as_ref();
        evidence.is_some_and(|evidence| !evidence.needs_person.is_empty())
    }

    pub fn drop_unfinished(&mut self) {
        match self.state {
            // An accepted proposal that is not applied when the run ends is dropped, too.
            ProposalStatus::Checking | ProposalStatus::Waiting | ProposalStatus::Accepted => {
                self.set_status(ProposalStatus::Dropped);
            }
            ProposalStatus::Rejected
            | ProposalStatus::Applied
            | ProposalStatus::Conflicted
            | ProposalStatus::Undone
            | ProposalStatus::Dropped => {}
        }
    }

    pub fn set_status(&mut self, state: ProposalStatus) {
        self.state = state;
        self.edited = match state {
            ProposalStatus::Checking => self.edited.take().or(self.part.take()),
            ProposalStatus::Waiting
            | ProposalStatus::Accepted
            | ProposalStatus::Rejected
            | ProposalStatus::Applied
            | ProposalStatus::Conflicted
            | ProposalStatus::Undone
            | ProposalStatus::Dropped => None,
        };
        if state != ProposalStatus::Waiting {
            self.part = None;
            self.conflict = None;
        }
    }
}

/// Updates the proposals with an event.
pub fn note(proposals: &mut BTreeMap<ProposalId, RunProposal>, event: &Event) {
    let mut set_status = |id: &ProposalId, state: ProposalStatus| {
        if let Some(proposal) = proposals.get_mut(id) {
            proposal.set_status(state);
        }
    };
    if let Event::ProposalReviewed {
        proposal,
        by,
        verdict,
    } = event
    {
        set_status(
            proposal,
            match verdict {
                Verdict::Accept => ProposalStatus::Accepted,
                Verdict::Reject { .. } | Verdict::Steer { .. } => ProposalStatus::Rejected,
            },
        );
        if let Some(one) = proposals.get_mut(proposal) {
            one.accepted_by = (*verdict == Verdict::Accept).then(|| by.clone());
        }
    } else if let Event::ProposalEdited {
        proposal,
        symbols,
        diff,
    } = event
    {
        edited(proposals, *proposal);
        if let Some(one) = proposals.get_mut(proposal).filter(|_| !diff.is_empty()) {
            one.symbols.clone_from(symbols);
            one.diff.clone_from(diff);
        }
    } else if let Event::EditReceived { proposal, parts } = event {
        edited(proposals, *proposal);
        for part in parts {
            let of_part = proposals.get_mut(&part.proposal);
            if let Some(one) = of_part.filter(|one| one.edited.is_some()) {
                one.edited = Some(part.clone());
            }
        }
    } else if let Event::ProposalApplied { proposal, .. } = event {
        set_status(proposal, ProposalStatus::Applied);
    } else if let Event::ProposalConflicted { proposal, .. } = event {
        set_status(proposal, ProposalStatus::Conflicted);
    } else if let Event::ProposalNotApplied { proposal, .. } = event {
        set_status(proposal, ProposalStatus::Dropped);
    } else if let Event::ProposalUndone { proposal, .. } = event {
        set_status(proposal, ProposalStatus::Undone);
    } else if let Event::ProposalChecked { proposal, evidence } = event {
        if let Some(proposal) = proposals.get_mut(proposal) {
            proposal.evidence = Some(evidence.clone());
        }
    } else if let Event::ProposalMade { .. } = event {
        made(proposals, event);
    } else if let Event::ReviewAsked { .. } = event {
        asked(proposals, event);
    }
}

/// Notes which event asked for the review of a proposal and of its set.
pub fn note_version(proposals: &mut BTreeMap<ProposalId, RunProposal>, seq: u64, event: &Event) {
    let Event::ReviewAsked {
        proposal: lead,
        parts,
        ..
    } = event
    else {
        return;
    };
    for id in parts.iter().map(|part| part.proposal).chain([*lead]) {
        if let Some(one) = proposals.get_mut(&id) {
            one.version = Some(seq);
        }
    }
}

/// Marks that a person edits a proposal: all members of its review are checked again.
pub fn edited(proposals: &mut BTreeMap<ProposalId, RunProposal>, id: ProposalId) {
    let lead = proposals.get(&id).map(|one| one.lead);
    let waits =
        |one: &&mut RunProposal| Some(one.lead) == lead && one.state == ProposalStatus::Waiting;
    for proposal in proposals.values_mut().filter(waits) {
        proposal.set_status(ProposalStatus::Checking);
    }
}

fn made(proposals: &mut BTreeMap<ProposalId, RunProposal>, event: &Event) {
    let Event::ProposalMade {
        proposal,
        agent,
        symbols,
        reason,
        diff,
        revises,
    } = event
    else {
        return;
    };
    // The agent has made a new proposal, so its earlier proposal, which was never reviewed, is
    // dropped.
    for other in proposals.values_mut() {
        if other.agent == *agent && other.state == ProposalStatus::Checking {
            other.set_status(ProposalStatus::Dropped);
        }
    }
    let own = match agent {
        ActorId::Agent(symbol) => Some(symbol.clone()),
        ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling | ActorId::Solo => None,
    };
    let Some(symbol) = own.or_else(|| symbols.first().cloned()) else {
        return;
    };
    let made = RunProposal {
        state: ProposalStatus::Checking,
        agent: agent.clone(),
        symbol,
        symbols: symbols.clone(),
        reason: reason.clone(),
        revises: *revises,
        diff: diff.clone(),
        evidence: None,
        lead: *proposal,
        with: Vec::new(),
        part: None,
        edited: None,
        conflict: None,
        accepted_by: None,
        version: None,
    };
    proposals.insert(*proposal, made);
}

fn asked(proposals: &mut BTreeMap<ProposalId, RunProposal>, event: &Event) {
    let Event::ReviewAsked {
        proposal: lead,
        agent,
        symbol,
        diff,
        reason,
        evidence,
        with: _,
        parts,
    } = event
    else {
        return;
    };
    let own = proposals.entry(*lead).or_insert_with(|| RunProposal {
        state: ProposalStatus::Waiting,
        agent: agent.clone(),
        symbol: symbol.clone(),
        symbols: vec![symbol.clone()],
        reason: String::new(),
        revises: None,
        diff: String::new(),
        evidence: None,
        lead: *lead,
        with: Vec::new(),
        part: None,
        edited: None,
        conflict: None,
        accepted_by: None,
        version: None,
    });
    own.set_status(ProposalStatus::Waiting);
    own.evidence = Some(evidence.clone());
    diff.clone_into(&mut own.diff);
    if own.reason.is_empty() {
        reason.clone_into(&mut own.reason);
    }
    for part in parts {
        let Some(member) = proposals.get_mut(&part.proposal) else {
            continue;
        };
        member.set_status(ProposalStatus::Waiting);
        member.lead = *lead;
        member.symbols.clone_from(&part.symbols);
        let others = parts.iter().map(|other| other.proposal);
        member.with = others.filter(|other| *other != part.proposal).collect();
        member.part = Some(part.clone());
    }
}
