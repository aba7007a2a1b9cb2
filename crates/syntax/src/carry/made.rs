//! A change that was applied to a file. Its methods revert the change in a newer text of the file,
//! and detect whether a newer text still contains it, even if the changed lines were moved,
//! indented or edited since.

use std::collections::BTreeSet;

use super::{FilePath, checked, is_near_copy, nearest};
use starling_text::{ChangeSet, Conflict, Edit, whole_lines};

/// Minimum length, in characters, of a line that also counts as found if it is only a part of
/// another line. Shorter lines must match a whole line.
const LONG: usize = 8;

/// A change that was applied to a file: the file's text before the change and after it.
#[derive(Debug, Clone, Copy)]
pub struct MadeChange<'t> {
    pub file: &'t FilePath,
    pub before: &'t str,
    pub after: &'t str,
}

/// Lines that other changes added to the same file.
#[derive(Debug, Clone, Default)]
pub struct OtherLines<'t> {
    /// Lines that were added before this change was made.
    pub earlier: Vec<&'t str>,
    /// Lines that were added after this change was made.
    pub later: Vec<&'t str>,
}

impl<'t> MadeChange<'t> {
    /// Returns the change set that reverts this change in a newer text. The change set always
    /// reverts the whole change.
    ///
    /// # Errors
    /// Returns the errors of [`super::carry`], and an error if a line that the change added was
    /// moved or edited.
    pub fn back_over(&self, current: &str) -> Result<ChangeSet, Conflict> {
        let inverse = ChangeSet::between(self.after, self.before);
        let typed = ChangeSet::between(self.after, current);
        self.back(&inverse, &typed, current)
    }

    /// Like [`MadeChange::back_over`], but compares whole lines. As a result, text that the user
    /// typed into a line does not conflict with reverting the line next to it.
    ///
    /// # Errors
    /// The errors are the same as those of [`MadeChange::back_over`].
    pub fn back_over_lines(&self, current: &str) -> Result<ChangeSet, Conflict> {
        let inverse = ChangeSet::between_lines(self.after, self.before);
        let typed = ChangeSet::between_lines(self.after, current);
        self.back(&inverse, &typed, current)
    }

    fn back(
        &self,
        inverse: &ChangeSet,
        typed: &ChangeSet,
        current: &str,
    ) -> Result<ChangeSet, Conflict> {
        if self.after == current {
            return Ok(inverse.clone());
        }
        let carried = inverse.over(self.after, typed)?;
        let is_carried = |edit: &&Edit| carried.edits.iter().any(|(was, _)| was == *edit);
        let missing: Vec<&Edit> = inverse
            .edits()
            .iter()
            .filter(|edit| !is_carried(edit))
            .collect();
        if let Some(first) = missing.first()
            && let Ok(earlier) = carried.changes.apply(current)
        {
            let brought = missing.iter().flat_map(|edit| self.brought_by(edit));
            if let Some(line) = self.trace(brought.collect(), &earlier, &OtherLines::default()) {
                return Err(Conflict {
                    ours: first.range,
                    theirs: nearest(typed, first.range),
                    unsure: Some(format!("`{line}` was moved or changed")),
                });
            }
        }
        checked(self.file, (self.after, inverse), current, carried)
    }

    /// Returns whether a text no longer contains the change: at the position of the change, the
    /// text is as it was before, and the lines that the change added do not appear elsewhere.
    pub fn is_undone_in(&self, text: &str) -> bool {
        self.is_undone_beside(&OtherLines::default(), text)
    }

    /// Like [`MadeChange::is_undone_in`], but ignores lines that other changes of the file added.
    pub fn is_undone_beside(&self, others: &OtherLines<'_>, text: &str) -> bool {
        if self.before == self.after || text == self.after {
            return false;
        }
        let brought = || self.brought().into_iter().collect();
        text == self.before
            || self.is_free(self.before, self.after, text)
                && self.trace(brought(), text, others).is_none()
                && !self.is_in_place(others, text)
    }

    /// Returns whether the change is still applied at its position. Only checked for a change whose
    /// added lines were all added by other changes, too, because then counting the copies of a line
    /// cannot show which change added it.
    fn is_in_place(&self, others: &OtherLines<'_>, text: &str) -> bool {
        let is_shared = |line: &&str| others.earlier.contains(line) || others.later.contains(line);
        let brought = self.brought();
        if brought.is_empty() || !brought.iter().all(is_shared) {
            return false;
        }
        let change = ChangeSet::between_lines(self.before, self.after);
        let typed = ChangeSet::between(self.before, text);
        let Ok(carried) = change.over(self.before, &typed) else {
            return false;
        };
        let is_there = |(was, now): &(Edit, Edit)| {
            let is_near = |line| near(text, now, line) > near(self.before, was, line);
            brought.iter().any(|line| is_near(line))
        };
        carried.edits.iter().any(is_there)
    }

    /// Returns whether a text contains the change again after the change was reverted, at its
    /// position or elsewhere.
    pub fn is_back_in(&self, text: &str) -> bool {
        if self.before == self.after || text == self.before {
            return false;
        }
        text == self.after || self.is_free(self.after, self.before, text) || self.is_moved_in(text)
    }

    /// Returns whether the whole change from one text to another can be applied to a newer version
    /// of the first text.
    fn is_free(&self, from: &str, to: &str, text: &str) -> bool {
        let change = ChangeSet::between(from, to);
        let carried = change.over(from, &ChangeSet::between(from, text));
        carried.is_ok_and(|carried| {
            carried.edits.len() == change.edits().len()
                && checked(self.file, (from, &change), text, carried).is_ok()
        })
    }

    /// Returns whether each block of lines that the change added appears in a text more often than
    /// in the text before the change.
    fn is_moved_in(&self, text: &str) -> bool {
        let inverse = ChangeSet::between_lines(self.after, self.before);
        let runs = inverse.edits().iter().map(|edit| self.brought_by(edit));
        let mut runs = runs.filter(|run| is_telling(run)).peekable();
        let is_there = |run: &Vec<&str>| occurrences(run, text) > occurrences(run, self.before);
        runs.peek().is_some() && runs.all(|run| is_there(&run))
    }

    /// Returns the lines that the change added, without surrounding white space.
    pub fn brought(&self) -> Vec<&'t str> {
        let inverse = ChangeSet::between_lines(self.after, self.before);
        let edits = inverse.edits().iter();
        edits.flat_map(|edit| self.brought_by(edit)).collect()
    }

    /// Returns the non-blank lines that the original change added and that `edit`, a part of the
    /// reverse change, removes.
    fn brought_by(&self, edit: &Edit) -> Vec<&'t str> {
        let lines = whole_lines(self.after, edit).of(self.after).lines();
        lines
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect()
    }

    /// Returns one of the lines in `brought`, which the change added, if a text still contains it.
    /// The line may have other white space, be a part of another line, or be slightly edited. The
    /// text must contain such a line more often than the text before the change. Lines that other
    /// changes added do not count.
    fn trace<'l>(
        &self,
        brought: BTreeSet<&'l str>,
        text: &str,
        others: &OtherLines<'_>,
    ) -> Option<&'l str> {
        let is_code = |line: &&str| line.contains(char::is_alphanumeric);
        let is_others = |one: &str| others.earlier.contains(&one) || others.later.contains(&one);
        let exact = |text: &str, line: &str| text.lines().filter(|one| one.trim() == line).count();
        let like = |text: &str, line: &str| {
            let lines = text.lines().map(str::trim);
            let like = lines.filter(|one| *one != line && !is_others(one) && is_like(one, line));
            like.count()
        };
        let mut brought = brought.into_iter().filter(is_code);
        brought.find(|line| {
            let later = others.later.iter().filter(|other| other == &line).count();
            let before = exact(self.before, line);
            let now = exact(text, line).saturating_sub(later);
            // The removal of one copy of the line must not hide an edited copy, and an edited copy
            // must not hide an added one.
            now > before || now + like(text, line) > before + like(self.before, line)
        })
    }
}

/// Returns how often a line appears in the lines of an edit and the lines directly before and after
/// it.
fn near(text: &str, edit: &Edit, line: &str) -> usize {
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let first = line_start(line_start(edit.range.start).saturating_sub(1));
    let rest = &text[edit.range.end..];
    let last = rest.find('\n').map_or(text.len(), |at| edit.range.end + at);
    let lines = text[first..last].lines();
    lines.filter(|one| one.trim() == line).count()
}

/// Returns whether a line may be an edited copy of a line that a change added.
fn is_like(line: &str, brought: &str) -> bool {
    let line = line.trim();
    let holds = brought.chars().count() >= LONG && line.contains(brought);
    line == brought || holds || is_near_copy(brought, line)
}

/// Returns whether the lines contain enough letters and digits to be recognized at another
/// position.
fn is_telling(run: &[&str]) -> bool {
    let letters = run.iter().flat_map(|line| line.chars());
    letters.filter(|letter| letter.is_alphanumeric()).count() >= LONG
}

/// Returns how often consecutive lines appear in a text, ignoring blank lines between them.
fn occurrences(run: &[&str], text: &str) -> usize {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<&str>>();
    lines
        .windows(run.len())
        .filter(|window| *window == run)
        .count()
}
