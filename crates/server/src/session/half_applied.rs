//! Sets of accepted changes of which only a part is in the files, because the program was killed
//! between their edits: finds them, and offers the missing part for review.

use std::path::Path;

use super::restore::view_of;
use super::run_view::{ProposalStatus, RunView};
use starling_core::Verdict;
use starling_history::{self, DiskEditor, HalfSet, UnfinishedChange};
use starling_swarm::{
    ActorId, AppliedChange, Event, Evidence, FileChange, JointEvidence, ProposalId, Record,
    Stamped, ids,
};

/// Returns the sets of a run of which only a part is in the files.
pub fn half_sets(records: &[Stamped], root: &Path) -> Vec<HalfSet> {
    let events = records.iter().filter_map(|record| match &record.record {
        Record::Event(event) => Some(event),
        Record::Exchange(_) => None,
    });
    let events: Vec<&Event> = events.collect();
    half_sets_in(&events, &view_of(records), root)
}

/// Like [`half_sets`], for the events of a run and their view.
pub fn half_sets_in(events: &[&Event], view: &RunView, root: &Path) -> Vec<HalfSet> {
    let mut missing = starling_history::unfinished(events.iter().copied());
    if missing.is_empty() && view.lead_proposals().next().is_none() {
        return Vec::new();
    }
    let waiting = view.proposals.values().filter_map(|one| one.part.as_ref());
    for part in waiting {
        if missing.iter().all(|one| one.proposal != part.proposal) {
            missing.push(UnfinishedChange::of_review(part));
        }
    }
    let disk = DiskEditor::new(root);
    let text = |change: &AppliedChange| disk.read_as_shown(&change.file, &change.before).ok();
    missing.retain(|one| {
        let now = disk.now_as_shown(&one.change.file, &one.change.before);
        !one.is_in_current(now)
    });
    let changes = starling_history::changes(events.iter().map(|event| (*event).clone()));
    starling_history::half_sets(&changes, &missing, text)
}

/// Returns the reason that is shown in the review of the missing changes of a half-applied set.
pub fn rest_reason(applied: &[ProposalId], reason: &str) -> String {
    format!(
        "the rest of a set: {} of it is applied, and Starling was killed before the rest was. {reason}",
        ids(applied)
    )
}

/// Adds applied proposals to the evidence of a change that does not pass its checks without them.
pub fn needing(evidence: &mut Evidence, applied: &[ProposalId]) {
    let (tests, diagnostics) = (evidence.tests.clone(), evidence.diagnostics.clone());
    let together = evidence.together.get_or_insert_with(|| JointEvidence {
        with: Vec::new(),
        proposals: Vec::new(),
        tests,
        diagnostics,
        examples: evidence.examples.clone(),
        needs: Vec::new(),
        checked_in: 0,
    });
    let known = together.needs.clone();
    let more = applied.iter().filter(|id| !known.contains(id));
    together.needs.extend(more);
}

/// Returns the event that requests a review of the missing changes of a set. Returns `None` if none
/// of them has been accepted, for example because their review already waits.
pub fn rest_review(set: &HalfSet, view: &RunView) -> Option<Event> {
    let part = |one: &UnfinishedChange| {
        let made = view.proposals.get(&one.proposal)?;
        (made.state == ProposalStatus::Accepted).then(|| FileChange {
            proposal: one.proposal,
            symbol: made.symbol.clone(),
            symbols: one.symbols.clone(),
            reason: made.reason.clone(),
            file: one.change.file.clone(),
            base: one.change.before.clone(),
            changes: one.change.changes.clone(),
            deleted: one.change.deleted.is_some(),
        })
    };
    let parts: Vec<FileChange> = set.missing.iter().filter_map(part).collect();
    let lead = parts.first()?.clone();
    let made = view.proposals.get(&lead.proposal)?;
    let mut evidence = made.evidence.clone()?;
    let applied: Vec<ProposalId> = set.there.iter().map(|(id, _)| *id).collect();
    needing(&mut evidence, &applied);
    Some(Event::ReviewAsked {
        proposal: lead.proposal,
        agent: made.agent.clone(),
        symbol: lead.symbol,
        diff: parts.iter().map(FileChange::diff).collect(),
        reason: rest_reason(&applied, &lead.reason),
        evidence,
        with: parts.iter().skip(1).map(|part| part.proposal).collect(),
        parts,
    })
}

/// Returns the events that reject waiting proposals because a change that they need was undone.
pub fn reviews_without_base(view: &RunView) -> Vec<Event> {
    let is_undone = |id: &&ProposalId| {
        let needed = view.proposals.get(id);
        needed.is_some_and(|one| one.state == ProposalStatus::Undone)
    };
    let mut rejections = Vec::new();
    for (lead, one) in view.lead_proposals() {
        let needs = one.evidence.as_ref().map_or(&[][..], Evidence::needs);
        let Some(gone) = needs.iter().find(is_undone) else {
            continue;
        };
        let reason = format!("it passes only with {gone}, which was taken back");
        let members = [lead].into_iter().chain(one.with.iter().copied());
        rejections.extend(members.map(|proposal| Event::ProposalReviewed {
            proposal,
            by: ActorId::Starling,
            verdict: Verdict::Reject {
                reason: reason.clone(),
            },
        }));
    }
    rejections
}
