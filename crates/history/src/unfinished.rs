//! Accepted changes that were on their way into the user's text when their run was killed. The run
//! recorded them before it sent them, and the text of the file tells whether they arrived.

use super::plan::{after, inverse_over};
use starling_core::Verdict;
use starling_swarm::{AppliedChange, Event, ProposalId};
use starling_syntax::{MadeChange, SymbolPath, carry_lines};
use starling_text::{ChangeSet, unified_diff};

/// A change that was sent and whose end is not recorded.
#[derive(Debug, Clone)]
pub struct UnfinishedChange {
    pub proposal: ProposalId,
    pub symbols: Vec<SymbolPath>,
    pub change: AppliedChange,
}

impl UnfinishedChange {
    /// Whether a text of the file has the change; `None` is a file that is not there. Where the text is
    /// neither as before the change nor as after it, the lines of the change decide: if somebody has
    /// changed these as well, the change counts as there, so that an undo refuses to touch them.
    pub fn is_in(&self, text: Option<&str>) -> bool {
        let Some(text) = text else {
            return false;
        };
        let (change, after) = (&self.change, after(&self.change));
        if text == after || text == &*change.before {
            return text == after;
        }
        let removes_something =
            |inverse: ChangeSet| inverse.apply(text).is_ok_and(|earlier| earlier != text);
        match inverse_over(change, &after, text) {
            Ok(inverse) => removes_something(inverse),
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

    /// The event that was not recorded.
    pub fn applied(&self) -> Event {
        let change = &self.change;
        Event::ProposalApplied {
            proposal: self.proposal,
            symbols: self.symbols.clone(),
            diff: unified_diff(change.file.as_str(), &change.before, &after(change)),
            change: Some(change.clone()),
        }
    }
}

/// The changes without an end, in the order in which they were sent.
pub fn unfinished<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<UnfinishedChange> {
    let mut unfinished = Vec::new();
    for event in events {
        note(&mut unfinished, event);
    }
    unfinished
}

/// Takes an event in.
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
    | Event::ProposalUndone { proposal }
    | Event::ProposalReviewed {
        proposal,
        verdict: Verdict::Reject { .. } | Verdict::Steer { .. },
        ..
    } = event
    {
        unfinished.retain(|one| one.proposal != *proposal);
    }
}
