//! A change that was applied: how it is taken back from a newer text, and whether that text still holds it.
//! Its text may have been moved, indented or touched since.

use std::collections::BTreeSet;

use super::{FilePath, checked, is_near_copy, nearest};
use starling_text::{ChangeSet, Conflict, Edit, whole_lines};

/// Shorter lines are found only as whole lines, not inside of another line.
const LONG: usize = 8;

/// A change that was applied to a file.
#[derive(Debug, Clone, Copy)]
pub struct MadeChange<'t> {
    pub file: &'t FilePath,
    pub before: &'t str,
    pub after: &'t str,
}

/// Lines that other changes brought to the same file.
#[derive(Debug, Clone, Default)]
pub struct OtherLines<'t> {
    /// Of changes that were made before this one.
    pub earlier: Vec<&'t str>,
    /// Of changes that were made after it.
    pub later: Vec<&'t str>,
}

impl<'t> MadeChange<'t> {
    /// The change set that takes the change back from a newer text.
    ///
    /// # Errors
    /// As for [`super::carry`]; and where the text that the change brought is not in its place any more but stands
    /// elsewhere, or was touched: without an error, nothing of the change is left.
    pub fn back_over(&self, current: &str) -> Result<ChangeSet, Conflict> {
        let inverse = ChangeSet::between(self.after, self.before);
        let typed = ChangeSet::between(self.after, current);
        self.back(&inverse, &typed, current)
    }

    /// The same by whole lines: text that was typed into one of two neighbouring lines leaves the other
    /// line free.
    ///
    /// # Errors
    /// As for [`MadeChange::back_over`].
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
                    unsure: Some(format!("`{line}` is in another place now, or was changed")),
                });
            }
        }
        checked(self.file, (self.after, inverse), current, carried)
    }

    /// Whether a text has the change no more: its former text is back in its place, and the text that the
    /// change brought stands nowhere else.
    pub fn is_undone_in(&self, text: &str) -> bool {
        self.is_undone_beside(&OtherLines::default(), text)
    }

    /// The same where other changes of the file stand, too: their lines are no traces of this one.
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

    /// Whether a change of which other changes brought all the lines, too, stands in its place: how often the
    /// lines are in the text does not tell whose they are.
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

    /// Whether a text that did not have the change has it again, in its place or elsewhere.
    pub fn is_back_in(&self, text: &str) -> bool {
        if self.before == self.after || text == self.before {
            return false;
        }
        text == self.after || self.is_free(self.after, self.before, text) || self.is_moved_in(text)
    }

    /// Whether all of the change from one text to another can be made in a newer version of the first.
    fn is_free(&self, from: &str, to: &str, text: &str) -> bool {
        let change = ChangeSet::between(from, to);
        let carried = change.over(from, &ChangeSet::between(from, text));
        carried.is_ok_and(|carried| {
            carried.edits.len() == change.edits().len()
                && checked(self.file, (from, &change), text, carried).is_ok()
        })
    }

    /// Whether each run of lines that the change brought stands together in a text, as often as there are
    /// copies of it before the change and once more.
    fn is_moved_in(&self, text: &str) -> bool {
        let inverse = ChangeSet::between_lines(self.after, self.before);
        let runs = inverse.edits().iter().map(|edit| self.brought_by(edit));
        let mut runs = runs.filter(|run| is_telling(run)).peekable();
        let is_there = |run: &Vec<&str>| occurrences(run, text) > occurrences(run, self.before);
        runs.peek().is_some() && runs.all(|run| is_there(&run))
    }

    /// The lines that the change brought, without white space around them.
    pub fn brought(&self) -> Vec<&'t str> {
        let inverse = ChangeSet::between_lines(self.after, self.before);
        let edits = inverse.edits().iter();
        edits.flat_map(|edit| self.brought_by(edit)).collect()
    }

    /// The lines of an edit of the inverse change, without blank ones.
    fn brought_by(&self, edit: &Edit) -> Vec<&'t str> {
        let lines = whole_lines(self.after, edit).of(self.after).lines();
        lines
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect()
    }

    /// A line that the change brought and that a text still has, be it with other white space, with other
    /// text around it, or a little changed: the text has more of its like than there were before, not
    /// counting the lines of other changes.
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
            // A copy that went does not hide one that was touched, nor the other way round.
            now > before || now + like(text, line) > before + like(self.before, line)
        })
    }
}

/// How often a line stands where an edit is made, or directly before or after that.
fn near(text: &str, edit: &Edit, line: &str) -> usize {
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let first = line_start(line_start(edit.range.start).saturating_sub(1));
    let rest = &text[edit.range.end..];
    let last = rest.find('\n').map_or(text.len(), |at| edit.range.end + at);
    let lines = text[first..last].lines();
    lines.filter(|one| one.trim() == line).count()
}

/// Whether a line may be one that a change brought.
fn is_like(line: &str, brought: &str) -> bool {
    let line = line.trim();
    let holds = brought.chars().count() >= LONG && line.contains(brought);
    line == brought || holds || is_near_copy(brought, line)
}

/// Whether lines say enough to be known again elsewhere.
fn is_telling(run: &[&str]) -> bool {
    let letters = run.iter().flat_map(|line| line.chars());
    letters.filter(|letter| letter.is_alphanumeric()).count() >= LONG
}

/// How often lines stand one after the other in a text, whatever blank lines are between them.
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
