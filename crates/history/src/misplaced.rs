//! Edits that an editor made at the wrong position, because the file changed while the edit was on its
//! way, and that were not taken back because the server ended. The recorded text before the edit shows
//! where the editor made it.

use super::plan::{after, inverse_over};
use super::unfinished::{UnfinishedChange, is_in};
use starling_core::Verdict;
use starling_swarm::{AppliedChange, Event, ProposalId};
use starling_syntax::{FilePath, carry};
use starling_text::{Encoding, PositionedChange, differing_lines, lines_in_words};

/// An edit that is at the wrong position in its file and counts as not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisplacedChange {
    pub proposal: ProposalId,
    pub file: FilePath,
    /// The first and the last line of the edit. Lines start at 1.
    pub lines: (usize, usize),
}

impl MisplacedChange {
    /// Returns a message for the user.
    pub fn told(&self) -> String {
        format!(
            "{}, {}: the file changed while the editor made Starling's edit {}, so the edit was made at the \
             wrong position, and it was not taken back. It is still in the file and \
             counts as not applied: undo it yourself",
            self.file,
            lines_in_words(self.lines),
            self.proposal
        )
    }
}

impl UnfinishedChange {
    /// Returns where a text of the file contains the change if it is at the wrong position.
    pub fn misplaced_in(&self, text: &str) -> Option<MisplacedChange> {
        Some(MisplacedChange {
            proposal: self.proposal,
            file: self.change.file.clone(),
            lines: misplaced_lines(&self.change, text)?,
        })
    }
}

/// Returns the changes that were sent and are not recorded as applied, also those that are recorded
/// as a conflict or as not applied.
pub fn unapplied<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<UnfinishedChange> {
    let mut sent: Vec<UnfinishedChange> = Vec::new();
    for event in events {
        if let Event::ProposalApplying {
            proposal,
            symbols,
            change,
        } = event
        {
            sent.retain(|one| one.proposal != *proposal);
            sent.push(UnfinishedChange {
                proposal: *proposal,
                symbols: symbols.clone(),
                change: change.clone(),
            });
        } else if let Event::ProposalApplied { proposal, .. }
        | Event::ProposalUndone { proposal, .. }
        | Event::ProposalReviewed {
            proposal,
            verdict: Verdict::Reject { .. } | Verdict::Steer { .. },
            ..
        } = event
        {
            sent.retain(|one| one.proposal != *proposal);
        }
    }
    sent.retain(|one| one.change.changes.apply(&one.change.before).is_ok());
    sent
}

/// Returns the lines in which a text contains a change at the wrong position. The encoding of the
/// editor is not recorded, so each one is tried.
fn misplaced_lines(change: &AppliedChange, text: &str) -> Option<(usize, usize)> {
    let after = after(change);
    if change.deleted.is_some() {
        // A deletion has no position.
        return None;
    }
    if text == after || text == &*change.before || is_carried_in(change, &after, text) {
        return None;
    }
    let encodings = [Encoding::Utf16, Encoding::Utf8, Encoding::Utf32];
    encodings.into_iter().find_map(|encoding| {
        let positioned = PositionedChange::new(&change.before, &change.changes, encoding);
        let earlier = positioned.text_before(text, Some(&change.before))?;
        if earlier == text || positioned.applied_to(&earlier).as_deref() != Some(text) {
            return None;
        }
        let wanted = carry(&change.file, &change.before, &change.changes, &earlier).ok();
        let is_wrong = match wanted.and_then(|wanted| wanted.apply(&earlier).ok()) {
            Some(wanted) => wanted != text,
            None => !is_in(change, Some(text)),
        };
        is_wrong.then(|| differing_lines(text, &earlier)).flatten()
    })
}

/// Returns whether a text is the result of rebasing the change onto a text with other changes.
fn is_carried_in(change: &AppliedChange, after: &str, text: &str) -> bool {
    let inverse = inverse_over(change, after, text).ok();
    let earlier = inverse.and_then(|inverse| inverse.apply(text).ok());
    earlier.is_some_and(|earlier| {
        let again = carry(&change.file, &change.before, &change.changes, &earlier).ok();
        let again = again.and_then(|again| again.apply(&earlier).ok());
        earlier != text && again.as_deref() == Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_text::ChangeSet;

    const BASE: &str = "def f(x):\n    a = x + 1\n    b = a * 2\n    return b\n";

    fn sent(was: &str, is: &str) -> UnfinishedChange {
        let after = BASE.replacen(was, is, 1);
        UnfinishedChange {
            proposal: ProposalId(1),
            symbols: Vec::new(),
            change: AppliedChange {
                file: FilePath::new("a.py"),
                before: BASE.into(),
                changes: ChangeSet::between(BASE, &after),
                created: false,
                deleted: None,
                directories: Vec::new(),
                dependencies: Default::default(),
                text_without: None,
            },
        }
    }

    fn made(change: &UnfinishedChange, text: &str) -> String {
        let change = &change.change;
        let positioned = PositionedChange::new(&change.before, &change.changes, Encoding::Utf16);
        positioned.applied_to(text).unwrap()
    }

    #[test]
    fn edit_at_the_wrong_position_is_found_with_its_lines() {
        for (was, is, line) in [
            ("a * 2", "a * 3  # sure", 3),
            ("    b = a * 2\n", "    b = a * 2\n    log(b)\n", 4),
            ("    return b\n", "", 4),
        ] {
            let change = sent(was, is);
            let mine = format!("# mine\n{BASE}");
            let text = made(&change, &mine);
            let found = change.misplaced_in(&text).unwrap();
            assert_eq!(found.lines, (line, line), "{text}");
            assert!(!change.is_in(Some(&text)), "{text}");
            assert!(found.told().starts_with(&format!("a.py, line {line}: ")));
        }
    }

    #[test]
    fn edit_in_its_place_or_absent_is_not_misplaced() {
        for (was, is) in [
            ("a * 2", "a * 3"),
            ("    b = a * 2\n", "    b = a * 2\n    log(b)\n"),
            ("    b = a * 2\n", "    b = a * 2\n    b = a * 2\n"),
            ("    return b\n", ""),
        ] {
            let change = sent(was, is);
            let after = made(&change, BASE);
            for text in [
                BASE.to_owned(),
                format!("# mine\n{BASE}"),
                BASE.replace("x + 1", "x + 3"),
                after.clone(),
                format!("# mine\n{after}"),
                format!("# mine\n# mine\n{after}# mine\n"),
                after.replace("x + 1", "x + 10"),
                after.replace("a * ", "a * 5 * "),
            ] {
                assert_eq!(change.misplaced_in(&text), None, "{is}: {text}");
            }
        }
    }
}
