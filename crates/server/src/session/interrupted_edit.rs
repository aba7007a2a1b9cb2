//! Proposals that the user edited, and whose run ended before their new versions were checked. The
//! user's versions are offered for review as they are.

use super::run_view::{ProposalStatus, RunProposal, RunView};
use starling_core::Verdict;
use starling_swarm::{
    ActorId, DiagnosticEvidence, Event, Evidence, FileChange, TAKEN_OUT, TestEvidence,
};

/// Why the checks have no results.
const UNCHECKED: &str = "your version was not checked: its run ended first";

/// Returns the change to offer for a proposal whose edited version was being checked; `None` if the
/// user took it out, or if no person had seen the proposal.
pub fn left(proposal: &RunProposal) -> Option<FileChange> {
    let edited = proposal.edited.as_ref();
    edited.filter(|part| !is_taken_out(part)).cloned()
}

fn is_taken_out(part: &FileChange) -> bool {
    part.changes.edits().is_empty() && !part.deleted
}

/// Returns the events that reject the proposals that the user took out of their sets, as the run
/// would have done.
pub fn taken_out(view: &RunView) -> Vec<Event> {
    let checked = view.proposals.iter();
    let checked = checked.filter(|(_, one)| one.state == ProposalStatus::Checking);
    let taken_out = checked.filter(|(_, one)| one.edited.as_ref().is_some_and(is_taken_out));
    let rejected = taken_out.map(|(id, _)| Event::ProposalReviewed {
        proposal: *id,
        by: ActorId::User,
        verdict: Verdict::Reject {
            reason: TAKEN_OUT.to_owned(),
        },
    });
    rejected.collect()
}

/// Removes from the evidence what was found of the version that the user edited.
pub fn note_unchecked(evidence: &mut Evidence) {
    let tests = TestEvidence::Unknown {
        reason: UNCHECKED.to_owned(),
    };
    let diagnostics = DiagnosticEvidence::Unknown {
        reason: UNCHECKED.to_owned(),
    };
    if let Some(together) = &mut evidence.together {
        together.tests = tests.clone();
        together.diagnostics = diagnostics.clone();
        together.examples.clear();
    }
    *evidence = Evidence {
        tests,
        diagnostics,
        examples: Vec::new(),
        imports: Default::default(),
        losses: Vec::new(),
        contract: Vec::new(),
        callers: Vec::new(),
        callers_in_set: Vec::new(),
        callers_kept: Vec::new(),
        indirect_callers: Vec::new(),
        test_callers: 0,
        needs_person: std::mem::take(&mut evidence.needs_person),
        together: evidence.together.take(),
        texts: Default::default(),
        overridden: None,
        outdated: None,
        millis: 0,
    };
}
