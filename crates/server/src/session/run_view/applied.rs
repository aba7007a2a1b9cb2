//! The changes that a run applied, and whether they are still in the user's text. The editor's own
//! undo and redo remove and restore them.

use std::collections::BTreeMap;
use std::sync::Arc;

use starling_swarm::{Event, ProposalId};
use starling_syntax::{FilePath, MadeChange};

/// A change that was applied.
#[derive(Debug, Clone)]
pub struct AppliedEdit {
    pub file: FilePath,
    /// The event that reported the change.
    made: Event,
    before: Arc<str>,
    after: Arc<str>,
    /// Whether the change was undone by any means.
    is_undone: bool,
    /// Whether the editor's own undo removed the change. Only then can a redo restore it; otherwise
    /// another run may have made the same change.
    by_editor: bool,
}

impl AppliedEdit {
    /// Marks that the editor's own undo removed the change.
    pub fn mark_undone_by_editor(&mut self) {
        self.by_editor = true;
    }

    /// Marks that Starling undid the change. If the same text appears again, the user wrote it.
    pub fn mark_undone_by_starling(&mut self) {
        self.by_editor = false;
    }

    /// Returns the event that a text of the file implies: the change was undone, or made again.
    /// Returns `None` if nothing is new.
    pub fn undo_event(&self, proposal: ProposalId, text: &str) -> Option<Event> {
        let made = MadeChange {
            file: &self.file,
            before: &self.before,
            after: &self.after,
        };
        match (self.is_undone, self.by_editor) {
            (true, true) => made.is_back_in(text).then(|| self.made.clone()),
            (true, false) => None,
            (false, _) => {
                let is_undone = made.is_undone_in(text);
                is_undone.then_some(Event::ProposalUndone { proposal })
            }
        }
    }
}

/// Updates the changes with an event.
pub(super) fn note(applied: &mut BTreeMap<ProposalId, AppliedEdit>, event: &Event) {
    if let Event::ProposalApplied {
        proposal,
        change: Some(change),
        ..
    } = event
    {
        let Ok(after) = change.changes.apply(&change.before) else {
            return;
        };
        let made = AppliedEdit {
            file: change.file.clone(),
            made: event.clone(),
            before: Arc::clone(&change.before),
            after: after.into(),
            is_undone: false,
            by_editor: false,
        };
        applied.insert(*proposal, made);
    } else if let Event::ProposalUndone { proposal } = event
        && let Some(undone) = applied.get_mut(proposal)
    {
        undone.is_undone = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_swarm::AppliedChange;
    use starling_text::ChangeSet;

    const BEFORE: &str = "def f():\n    return 1\n\n\ndef g():\n    return 3\n";

    fn applied(after: &str) -> BTreeMap<ProposalId, AppliedEdit> {
        let mut applied = BTreeMap::new();
        let event = Event::ProposalApplied {
            proposal: ProposalId(1),
            symbols: Vec::new(),
            diff: String::new(),
            change: Some(AppliedChange {
                file: FilePath::new("a.py"),
                before: BEFORE.into(),
                changes: ChangeSet::between(BEFORE, after),
                created: false,
                directories: Vec::new(),
                dependencies: Default::default(),
            }),
        };
        note(&mut applied, &event);
        applied
    }

    #[test]
    fn detects_undo_and_redo_beside_typed_text() {
        let after = BEFORE.replace("return 1", "return 2");
        let mut applied = applied(&after);
        let is_undone = |applied: &BTreeMap<ProposalId, AppliedEdit>, text: &str| {
            let event = applied[&ProposalId(1)].undo_event(ProposalId(1), text);
            event.map(|event| matches!(event, Event::ProposalUndone { .. }))
        };
        let typed = |text: &str| format!("# mine\n{}", text.replace("return 3", "return 4"));
        for still_there in [after.as_str(), &typed(&after), &after.replace("2", "5")] {
            assert_eq!(is_undone(&applied, still_there), None, "{still_there}");
        }
        for undone in [BEFORE, &typed(BEFORE)] {
            assert_eq!(is_undone(&applied, undone), Some(true), "{undone}");
        }
        let proposal = ProposalId(1);
        note(&mut applied, &Event::ProposalUndone { proposal });
        assert_eq!(
            is_undone(&applied, &after),
            None,
            "another run may have made the same"
        );
        applied.get_mut(&proposal).unwrap().mark_undone_by_editor();
        assert_eq!(is_undone(&applied, BEFORE), None, "known");
        assert_eq!(is_undone(&applied, &typed(BEFORE)), None, "known");
        for redone in [after.as_str(), &typed(&after)] {
            assert_eq!(is_undone(&applied, redone), Some(false), "{redone}");
        }
        applied
            .get_mut(&proposal)
            .unwrap()
            .mark_undone_by_starling();
        assert_eq!(
            is_undone(&applied, &after),
            None,
            "it is the user's own now"
        );
    }

    #[test]
    fn touched_or_moved_lines_are_not_undone() {
        let after = BEFORE.replace("return 1", "log(1)\n    return 1");
        let applied = applied(&after);
        let is_undone = |text: &str| applied[&ProposalId(1)].undo_event(ProposalId(1), text);
        for text in [
            after.replace("log(1)", "log(1)  # mine"),
            after.replace("    log(1)\n    return 1", "    return 1\n    log(1)"),
            format!("{BEFORE}    log(1)\n"),
        ] {
            assert!(is_undone(&text).is_none(), "{text}");
        }
        assert!(is_undone(BEFORE).is_some());
    }

    #[test]
    fn empty_change_is_neither_undone_nor_made_again() {
        let applied = applied(BEFORE);
        for text in [BEFORE, "# mine\n"] {
            assert!(
                applied[&ProposalId(1)]
                    .undo_event(ProposalId(1), text)
                    .is_none()
            );
        }
    }

    #[test]
    fn detects_undo_of_added_and_removed_lines() {
        let added = BEFORE.replace("def g", "def new():\n    pass\n\n\ndef g");
        let removed = BEFORE.replace("def g():\n    return 3\n", "");
        for after in [added, removed] {
            let applied = applied(&after);
            let change = &applied[&ProposalId(1)];
            assert!(change.undo_event(ProposalId(1), &after).is_none());
            assert!(change.undo_event(ProposalId(1), BEFORE).is_some());
            let typed = format!("# mine\n{BEFORE}");
            assert!(
                change.undo_event(ProposalId(1), &typed).is_some(),
                "{after}"
            );
        }
    }
}
