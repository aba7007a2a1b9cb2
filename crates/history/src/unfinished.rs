//! Accepted changes that were being applied when their run was killed. The run recorded each change
//! before it was sent; the file's text shows whether the change arrived.

use std::path::Path;
use std::time::Duration;

use super::plan::{after, inverse_over};
use super::trajectory::{as_reviewed, is_missing, started};
use starling_core::{CurrentText, EditorError, Verdict};
use starling_swarm::{AppliedChange, Event, FileChange, ProposalId, Record, RunId, Stamped};
use starling_syntax::{MadeChange, SymbolPath, carry_lines};
use starling_text::{ChangeSet, deleted_file_diff, unified_diff};

/// A change that was sent to the editor and whose result is not recorded.
#[derive(Debug, Clone)]
pub struct UnfinishedChange {
    pub proposal: ProposalId,
    pub symbols: Vec<SymbolPath>,
    pub change: AppliedChange,
}

impl UnfinishedChange {
    /// Creates an unfinished change from a change under review.
    pub fn of_review(part: &FileChange) -> Self {
        UnfinishedChange {
            proposal: part.proposal,
            symbols: part.symbols.clone(),
            change: as_reviewed(part),
        }
    }

    /// Returns whether a text of the file contains the change; `None` is a missing file. If the
    /// text equals neither the text before nor the text after the change, the changed lines decide.
    /// If these lines were changed once more, the change counts as present, so that an undo refuses
    /// to touch them. A change at the wrong position does not count as present.
    pub fn is_in(&self, text: Option<&str>) -> bool {
        let is_misplaced = text.is_some_and(|text| self.misplaced_in(text).is_some());
        !is_misplaced && is_in(&self.change, text)
    }

    /// Like [`UnfinishedChange::is_in`], for a text that an editor returned. A file that cannot be
    /// read does not contain the change.
    pub fn is_in_current(&self, now: Result<CurrentText, EditorError>) -> bool {
        match now {
            Ok(now) => self.is_in(Some(&now.text)),
            Err(EditorError::Missing { .. }) => self.is_in(None),
            Err(_) => false,
        }
    }

    /// Returns whether a text of the file contains the change with all its lines. Unlike
    /// [`UnfinishedChange::is_in_current`], lines that were changed once more do not count.
    pub fn is_surely_in(&self, now: Result<CurrentText, EditorError>) -> bool {
        if self.change.deleted.is_some() {
            return is_missing(&now);
        }
        now.is_ok_and(|now| {
            self.misplaced_in(&now.text).is_none()
                && is_surely_in(&self.change, &after(&self.change), &now.text)
        })
    }

    /// Returns the event that records that the change was applied.
    pub fn applied(&self) -> Event {
        let change = &self.change;
        Event::ProposalApplied {
            proposal: self.proposal,
            symbols: self.symbols.clone(),
            diff: diff_of(change),
            change: Some(change.clone()),
        }
    }
}

/// Returns a change as a unified diff.
pub(super) fn diff_of(change: &AppliedChange) -> String {
    let file = change.file.as_str();
    match change.deleted {
        Some(_) => deleted_file_diff(file, &change.before),
        None => unified_diff(file, &change.before, &after(change)),
    }
}

/// See [`UnfinishedChange::is_in`].
pub(super) fn is_in(change: &AppliedChange, text: Option<&str>) -> bool {
    if change.deleted.is_some() {
        return text.is_none();
    }
    let Some(text) = text else {
        return false;
    };
    let after = after(change);
    if is_surely_in(change, &after, text) {
        return true;
    }
    match inverse_over(change, &after, text) {
        Ok(_) => false,
        Err(_) if text == &*change.before => false,
        Err(_) => {
            let forward = ChangeSet::between_lines(&change.before, &after);
            let made = MadeChange {
                file: &change.file,
                before: &change.before,
                after: &after,
            };
            carry_lines(&change.file, &change.before, &forward, text).is_err()
                || !made.is_undone_in(text)
        }
    }
}

/// Returns whether a text contains the lines of a change, which lead from its text before to `after`.
fn is_surely_in(change: &AppliedChange, after: &str, text: &str) -> bool {
    if text == after || text == &*change.before {
        return text == after;
    }
    let removes_something =
        |inverse: ChangeSet| inverse.apply(text).is_ok_and(|earlier| earlier != text);
    inverse_over(change, after, text).is_ok_and(removes_something)
}

/// Returns the changes without a recorded result, in the order in which they were sent.
pub fn unfinished<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<UnfinishedChange> {
    let mut unfinished = Vec::new();
    for event in events {
        note(&mut unfinished, event);
    }
    unfinished
}

/// How long after its record a change is at most sent to the editor.
const SENT_WITHIN: Duration = Duration::from_secs(60);

/// Removes what the killed run `run` left when it created files that are not there: temporary files,
/// and directories that it created for them. The caller must hold the lock of the run's trajectory,
/// so that the run is not active.
pub fn remove_remains(run: &RunId, records: &[Stamped], root: &Path) {
    let Some(started) = started(run) else {
        return;
    };
    let mut sent = Duration::ZERO;
    let events = records.iter().filter_map(|record| match &record.record {
        Record::Event(event) => Some((record.at_ms, event)),
        Record::Exchange(_) => None,
    });
    let events = events.inspect(|(at_ms, event)| {
        if matches!(event, Event::ProposalApplying { .. }) {
            sent = Duration::from_millis(*at_ms);
        }
    });
    let changes = unfinished(events.map(|(_, event)| event));
    let Some(until) = started.checked_add(sent + SENT_WITHIN) else {
        return;
    };
    for UnfinishedChange { change, .. } in changes {
        let is_missing = root.join(change.file.as_str()).symlink_metadata().is_err();
        if change.created && is_missing {
            starling_workspace::remove_remains(root, &change.file, &change.directories, until);
        }
    }
}

/// Updates `unfinished` with an event.
pub(super) fn note(unfinished: &mut Vec<UnfinishedChange>, event: &Event) {
    if let Event::ProposalApplying {
        proposal,
        symbols,
        change,
    } = event
    {
        unfinished.retain(|one| one.proposal != *proposal);
        if change.changes.apply(&change.before).is_ok() {
            unfinished.push(UnfinishedChange {
                proposal: *proposal,
                symbols: symbols.clone(),
                change: change.clone(),
            });
        }
    } else if let Event::ProposalApplied { proposal, .. }
    | Event::ProposalNotApplied { proposal, .. }
    | Event::ProposalConflicted { proposal, .. }
    | Event::ProposalUndone { proposal, .. }
    | Event::ProposalReviewed {
        proposal,
        verdict: Verdict::Reject { .. } | Verdict::Steer { .. },
        ..
    } = event
    {
        unfinished.retain(|one| one.proposal != *proposal);
    }
}
