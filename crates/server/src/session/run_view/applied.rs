//! The changes that a run applied, and whether they are still in the user's text. The editor's own
//! undo and redo remove and restore them, and so does a document that is closed without being saved.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use starling_history::ChangeState;
use starling_swarm::{Event, ProposalId};
use starling_syntax::{FilePath, MadeChange, OtherLines};

/// Where a text that is compared with applied changes comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextSource {
    /// An open document, saved or not.
    Document,
    Disk,
}

/// A change that was applied.
#[derive(Debug, Clone)]
pub struct AppliedEdit {
    pub file: FilePath,
    /// The event that reported the change.
    made: Event,
    before: Arc<str>,
    after: Arc<str>,
    /// The lines that the change added.
    brought: Vec<String>,
    /// Increases with each change of any run.
    order: u64,
    /// Whether the change is still in the user's text, according to the events so far.
    state: ChangeState,
}

impl AppliedEdit {
    /// Returns the text that the file had in the editor with the change.
    pub fn shown(&self) -> &Arc<str> {
        &self.after
    }

    pub fn order(&self) -> u64 {
        self.order
    }

    /// Returns whether the change is still in the user's text, according to the events so far.
    pub fn stands(&self) -> bool {
        self.state == ChangeState::Applied
    }

    /// Returns whether Starling undid the change in an open document that was not saved since.
    pub fn is_undone_unsaved(&self) -> bool {
        self.state == ChangeState::UndoneUnsaved
    }

    /// Returns the lines of other changes in the same file that were not undone.
    fn others<'o>(&self, standing: &[&'o AppliedEdit]) -> OtherLines<'o> {
        let mut others = OtherLines::default();
        for other in standing {
            let lines = other.brought.iter().map(String::as_str);
            match other.order.cmp(&self.order) {
                std::cmp::Ordering::Less => others.earlier.extend(lines),
                std::cmp::Ordering::Equal => {}
                std::cmp::Ordering::Greater => others.later.extend(lines),
            }
        }
        others
    }

    /// Returns the event to report when the file has this text: the change was undone or redone, or
    /// its undo was saved. Returns `None` if its state is unchanged. `standing` are the changes of
    /// the file that were not undone.
    pub fn undo_event(
        &self,
        proposal: ProposalId,
        (text, source): (&str, TextSource),
        standing: &[&AppliedEdit],
    ) -> Option<Event> {
        let undone = |by_editor: bool| Event::ProposalUndone {
            proposal,
            by_editor,
            unsaved: false,
        };
        let made = MadeChange {
            file: &self.file,
            before: &self.before,
            after: &self.after,
        };
        match self.state {
            ChangeState::Applied => {
                let is_undone = made.is_undone_beside(&self.others(standing), text);
                is_undone.then(|| undone(true))
            }
            // The same text can only be another change now, perhaps one of another run.
            ChangeState::Undone => None,
            ChangeState::UndoneInEditor => made.is_back_in(text).then(|| self.made.clone()),
            ChangeState::UndoneUnsaved => match (made.is_back_in(text), source) {
                (true, _) => (!self.is_made_since(standing)).then(|| self.made.clone()),
                (false, TextSource::Disk) => Some(undone(false)),
                (false, TextSource::Document) => None,
            },
        }
    }

    /// Returns whether a later change added the same lines.
    fn is_made_since(&self, standing: &[&AppliedEdit]) -> bool {
        let mut later = standing.iter().filter(|other| other.order > self.order);
        later.any(|other| other.brought == self.brought)
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
        let Some((before, after)) = change.texts() else {
            return;
        };
        static ORDER: AtomicU64 = AtomicU64::new(0);
        let made = MadeChange {
            file: &change.file,
            before: &before,
            after: &after,
        };
        let brought = made.brought().into_iter().map(str::to_owned).collect();
        let made = AppliedEdit {
            file: change.file.clone(),
            made: event.clone(),
            before,
            after,
            brought,
            order: ORDER.fetch_add(1, Ordering::Relaxed),
            state: ChangeState::Applied,
        };
        applied.insert(*proposal, made);
    } else if let Some((proposal, state)) = ChangeState::after(event)
        && let Some(change) = applied.get_mut(&proposal)
        // An applied change without its text cannot be compared.
        && state != ChangeState::Applied
    {
        change.state = state;
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
                deleted: None,
                directories: Vec::new(),
                dependencies: Default::default(),
                text_without: None,
            }),
        };
        note(&mut applied, &event);
        applied
    }

    #[test]
    fn detects_undo_and_redo_next_to_typed_text() {
        let after = BEFORE.replace("return 1", "return 2");
        let mut applied = applied(&after);
        let is_undone = |applied: &BTreeMap<ProposalId, AppliedEdit>, text: &str| {
            let text = (text, TextSource::Document);
            let event = applied[&ProposalId(1)].undo_event(ProposalId(1), text, &[]);
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
        let undone = |by_editor: bool| Event::ProposalUndone {
            proposal,
            by_editor,
            unsaved: false,
        };
        note(&mut applied, &undone(false));
        assert_eq!(
            is_undone(&applied, &after),
            None,
            "another run may have made the same"
        );
        note(&mut applied, &undone(true));
        assert_eq!(is_undone(&applied, BEFORE), None, "known");
        assert_eq!(is_undone(&applied, &typed(BEFORE)), None, "known");
        for redone in [after.as_str(), &typed(&after)] {
            assert_eq!(is_undone(&applied, redone), Some(false), "{redone}");
        }
        note(&mut applied, &undone(false));
        assert_eq!(
            is_undone(&applied, &after),
            None,
            "it is the user's own now"
        );
    }

    #[test]
    fn undo_in_an_unsaved_document_follows_the_text_until_it_is_saved() {
        let after = BEFORE.replace("return 1", "return 2");
        let mut applied = applied(&after);
        let undone = |unsaved: bool| Event::ProposalUndone {
            proposal: ProposalId(1),
            by_editor: false,
            unsaved,
        };
        note(&mut applied, &undone(true));
        let event = |applied: &BTreeMap<ProposalId, AppliedEdit>, text: &str, source| {
            applied[&ProposalId(1)].undo_event(ProposalId(1), (text, source), &[])
        };
        assert_eq!(event(&applied, BEFORE, TextSource::Document), None);
        let saved = event(&applied, BEFORE, TextSource::Disk);
        assert_eq!(saved, Some(undone(false)));
        let back = event(&applied, &after, TextSource::Disk);
        assert!(matches!(back, Some(Event::ProposalApplied { .. })));
        note(&mut applied, &undone(false));
        assert_eq!(event(&applied, &after, TextSource::Disk), None);
    }

    #[test]
    fn change_with_edited_or_moved_lines_does_not_count_as_undone() {
        let after = BEFORE.replace("return 1", "log(1)\n    return 1");
        let applied = applied(&after);
        let is_undone = |text: &str| {
            let text = (text, TextSource::Document);
            applied[&ProposalId(1)].undo_event(ProposalId(1), text, &[])
        };
        for text in [
            after.replace("log(1)", "log(1)  # mine"),
            after.replace("    log(1)\n    return 1", "    return 1\n    log(1)"),
            format!("{BEFORE}    log(1)\n"),
        ] {
            assert!(is_undone(&text).is_none(), "{text}");
        }
        assert!(is_undone(BEFORE).is_some());
    }

    /// Returns for each change whether a text contains it. Compares from the last change to the
    /// first.
    fn states(changes: &[(&str, &str)], text: &str) -> Vec<bool> {
        let mut applied = BTreeMap::new();
        for (at, (before, after)) in (1..).zip(changes) {
            let event = Event::ProposalApplied {
                proposal: ProposalId(at),
                symbols: Vec::new(),
                diff: String::new(),
                change: Some(AppliedChange {
                    file: FilePath::new("a.py"),
                    before: (*before).into(),
                    changes: ChangeSet::between(before, after),
                    created: false,
                    deleted: None,
                    directories: Vec::new(),
                    dependencies: Default::default(),
                    text_without: None,
                }),
            };
            note(&mut applied, &event);
        }
        let mut standing: Vec<&AppliedEdit> = applied.values().collect();
        let mut states = Vec::new();
        for one in applied.values().rev() {
            let text = (text, TextSource::Document);
            let stands = one.undo_event(ProposalId(1), text, &standing).is_none();
            standing.retain(|other| stands || other.order() != one.order());
            states.insert(0, stands);
        }
        states
    }

    #[test]
    fn undo_state_is_correct_next_to_a_similar_change() {
        let source: String = (0..4)
            .map(|n| format!("def f{n}(x):\n    y = x + {n}\n    return y\n\n\n"))
            .collect();
        for (one, two) in [("z = \"M1M\"", "z = \"M2M\""), ("log(x)", "log(x)")] {
            let add = |text: &str, n: u32, line: &str| {
                let was = format!("    y = x + {n}\n");
                text.replace(&was, &format!("{was}    {line}\n"))
            };
            let first = add(&source, 0, one);
            let both = add(&first, 2, two);
            let changes = [(source.as_str(), first.as_str()), (&first, &both)];
            let only_second = add(&source, 2, two);
            for (typed_was, typed) in [
                ("", ""),
                ("y = x + 2\n", "y = x + 2#U30#\n"),
                ("return y\n\n\ndef f3", "return y # q\n\n\ndef f3"),
                ("def f2(x):", "def f2(x): # q"),
                ("def f3", "# hello\ndef f3"),
            ] {
                let states = |text: &str| states(&changes, &text.replacen(typed_was, typed, 1));
                assert_eq!(states(&both), [true, true], "{one}: {typed}");
                assert_eq!(states(&only_second), [false, true], "{one}: {typed}");
                assert_eq!(states(&first), [true, false], "{one}: {typed}");
                assert_eq!(states(&source), [false, false], "{one}: {typed}");
            }
        }
    }

    #[test]
    fn empty_change_is_not_noted_so_it_is_never_reported_as_undone() {
        assert!(applied(BEFORE).is_empty());
    }

    #[test]
    fn detects_undo_of_added_and_removed_lines() {
        let added = BEFORE.replace("def g", "def new():\n    pass\n\n\ndef g");
        let removed = BEFORE.replace("def g():\n    return 3\n", "");
        for after in [added, removed] {
            let applied = applied(&after);
            let is_undone = |text: &str| {
                let text = (text, TextSource::Document);
                let event = applied[&ProposalId(1)].undo_event(ProposalId(1), text, &[]);
                event.is_some()
            };
            assert!(!is_undone(&after));
            assert!(is_undone(BEFORE));
            assert!(is_undone(&format!("# mine\n{BEFORE}")), "{after}");
        }
    }
}
