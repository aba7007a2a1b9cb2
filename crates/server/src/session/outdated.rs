//! Marks the evidence of earlier runs as out of date if files were changed after it was measured.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::run_view::{ProposalStatus, RunView};
use starling_swarm::{Event, Evidence, ProposalId, Record, RunId, Stamped};
use starling_syntax::FilePath;
use starling_text::ContentHash;
use starling_workspace::{Snapshot, Workspace};

/// Updates the evidence of a run whose agents have ended: removes the parts that refer to agents,
/// and adds to the evidence of waiting proposals which files were changed after it was measured.
pub fn end_evidence(records: &mut [Stamped], id: &RunId, root: &Path, view: &RunView) {
    let disk = Workspace::open(root.to_owned()).ok();
    let disk = disk.map(|workspace| workspace.snapshot(Default::default()));
    let started = starling_history::started(id);
    for record in records {
        let at = started.map(|started| started + Duration::from_millis(record.at_ms));
        let Some((proposal, evidence)) = evidence_of(record) else {
            continue;
        };
        *evidence = evidence.of_ended();
        let waits = view.proposals.get(&proposal).map(|one| one.state);
        if let (Some(ProposalStatus::Waiting), Some(disk), Some(at)) = (waits, &disk, at) {
            let changed: Vec<String> = changed_since(disk, evidence, at)
                .iter()
                .map(ToString::to_string)
                .collect();
            evidence.note_changed_files(&changed);
        }
    }
}

fn evidence_of(record: &mut Stamped) -> Option<(ProposalId, &mut Evidence)> {
    match &mut record.record {
        Record::Event(
            Event::ReviewAsked {
                proposal, evidence, ..
            }
            | Event::ProposalChecked { proposal, evidence },
        ) => Some((*proposal, evidence)),
        Record::Event(_) | Record::Exchange(_) => None,
    }
}

/// Returns the files whose text on disk is not the text that was checked: files changed after `at`,
/// and files checked with an unsaved text that is not on disk.
fn changed_since(disk: &Snapshot, evidence: &Evidence, at: SystemTime) -> BTreeSet<FilePath> {
    let is_as_checked = |file: &FilePath| {
        let hash = evidence.texts.over_disk.get(file)?;
        let text = disk.read(file).ok();
        Some(text.is_some_and(|text| ContentHash::of(&text) == *hash))
    };
    let stamps = disk.stamps().iter();
    let later = stamps.filter(|(_, stamp)| stamp.is_after(at));
    let later = later.map(|(file, _)| file);
    let laid_over = evidence.texts.over_disk.keys();
    let all: BTreeSet<&FilePath> = later.chain(laid_over).collect();
    let changed = all
        .into_iter()
        .filter(|file| is_as_checked(file) != Some(true));
    changed.cloned().collect()
}

/// Returns events that mark the evidence of all waiting reviews as out of date. `what` is the
/// message that says what was changed.
pub fn marked(view: &RunView, what: &str) -> Vec<Event> {
    let waiting = view.lead_proposals();
    let marked = waiting.filter_map(|(proposal, one)| {
        let mut evidence = one.evidence.clone()?;
        evidence.outdated = Some(what.to_owned());
        Some(Event::ProposalChecked { proposal, evidence })
    });
    marked.collect()
}
