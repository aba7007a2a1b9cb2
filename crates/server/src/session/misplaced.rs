//! Edits that the editor made at the wrong position just before a server ended. The next server finds
//! them in the files, and tells the user their lines.

use std::path::Path;

use super::restore::{view_of, was_interrupted};
use super::run_view::{ProposalStatus, RunView};
use super::services::RunControl;
use super::{RunProposal, RunSession};
use starling_history::{DiskEditor, MisplacedChange, unapplied, unfinished};
use starling_swarm::{AppliedChange, Event, Record, Stamped};

/// Returns the edits of an interrupted run that are at the wrong position in the files.
pub fn misplaced_changes(
    records: &[Stamped],
    root: &Path,
    trajectory: &Path,
) -> Vec<MisplacedChange> {
    let events = events(records);
    let sent = unapplied(events.iter().copied());
    if sent.is_empty() {
        return Vec::new();
    }
    let (disk, view) = (DiskEditor::new(root), view_of(records));
    let is_interrupted = was_interrupted(records, trajectory);
    let unfinished = unfinished(events.iter().copied());
    let is_open = |id| {
        let waits = |one: &RunProposal| one.state == ProposalStatus::Waiting;
        is_interrupted
            || unfinished.iter().any(|one| one.proposal == id)
            || view.proposals.get(&id).is_some_and(waits)
    };
    let open = sent.iter().filter(|one| is_open(one.proposal));
    let text = |change: &AppliedChange| disk.read_as_shown(&change.file, &change.before).ok();
    open.filter_map(|one| one.misplaced_in(&text(&one.change)?))
        .collect()
}

/// Like [`misplaced_changes`], without those that an earlier server has told.
pub fn untold_misplaced_changes(
    records: &[Stamped],
    root: &Path,
    trajectory: &Path,
) -> Vec<MisplacedChange> {
    let mut misplaced = misplaced_changes(records, root, trajectory);
    misplaced.retain(|one| {
        let told = conflict(one);
        events(records).into_iter().all(|event| *event != told)
    });
    misplaced
}

/// Returns the events which record that edits at the wrong position, and the other parts of their
/// sets, are not applied.
pub fn misplaced_conflicts(misplaced: &[MisplacedChange], view: &RunView) -> Vec<Event> {
    let mut conflicts: Vec<Event> = misplaced.iter().map(conflict).collect();
    for (id, proposal) in &view.proposals {
        let is_open = match proposal.state {
            ProposalStatus::Waiting | ProposalStatus::Accepted => true,
            ProposalStatus::Checking
            | ProposalStatus::Rejected
            | ProposalStatus::Applied
            | ProposalStatus::Conflicted
            | ProposalStatus::Undone
            | ProposalStatus::Dropped => false,
        };
        let mut of_set = misplaced
            .iter()
            .filter(|one| view.lead_of(one.proposal) == proposal.lead);
        let is_misplaced = misplaced.iter().any(|one| one.proposal == *id);
        if let (true, false, Some(other)) = (is_open, is_misplaced, of_set.next()) {
            conflicts.push(Event::ProposalConflicted {
                proposal: *id,
                why: format!("it is applied only together with {}", other.proposal),
            });
        }
    }
    conflicts
}

fn conflict(one: &MisplacedChange) -> Event {
    Event::ProposalConflicted {
        proposal: one.proposal,
        why: one.told(),
    }
}

fn events(records: &[Stamped]) -> Vec<&Event> {
    let events = records.iter().filter_map(|record| match &record.record {
        Record::Event(event) => Some(event),
        Record::Exchange(_) => None,
    });
    events.collect()
}

impl RunSession {
    /// Adds to the result of an undo which edits of the run are at the wrong position in the files:
    /// an undo does not change them.
    pub(super) async fn with_misplaced(
        &self,
        handle: &dyn RunControl,
        error: Option<String>,
    ) -> Option<String> {
        let mut told: Vec<String> = Vec::new();
        for one in unapplied(&handle.log().events()) {
            let now = self.current_file(&one.change.file).await;
            let text = now.and_then(|now| now.text);
            let misplaced = text.and_then(|text| one.misplaced_in(&text));
            told.extend(misplaced.map(|one| one.told()));
        }
        match told.is_empty() {
            true => error,
            false => Some(error.into_iter().chain(told).collect::<Vec<_>>().join("; ")),
        }
    }
}
