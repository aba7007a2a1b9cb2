//! Change sets: edits of a text as a value that can be applied, inverted, composed and rebased.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::ByteRange;
use super::diff::{lines, replaced_lines};

mod pieces;
#[cfg(test)]
mod tests;

/// One replacement of a range of the base text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub range: ByteRange,
    pub insert: String,
}

/// Edits against one base text, sorted by position. The ranges are byte offsets into the base text;
/// no two of them overlap or touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedChangeSet")]
pub struct ChangeSet {
    base_len: usize,
    edits: Vec<Edit>,
}

/// A deserialized change set before validation.
#[derive(Deserialize)]
struct UncheckedChangeSet {
    base_len: usize,
    edits: Vec<Edit>,
}

impl TryFrom<UncheckedChangeSet> for ChangeSet {
    type Error = &'static str;

    fn try_from(read: UncheckedChangeSet) -> Result<Self, Self::Error> {
        ChangeSet::new(read.base_len, read.edits)
            .ok_or("edits of a change set overlap or reach past the end of the text")
    }
}

/// The error for a text that is not the base text of the change set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the change was made for another text: expected {expected} bytes, found {actual}")]
pub struct ApplyMismatch {
    pub expected: usize,
    pub actual: usize,
}

/// The error if two change sets touch the same text, or the position of a change in the newer text
/// is uncertain. Both ranges are byte offsets into the common base text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("both sides changed bytes {}..{}", .ours.start, .ours.end)]
pub struct Conflict {
    pub ours: ByteRange,
    pub theirs: ByteRange,
    /// The reason why the position is uncertain. `None` if both sides changed the same text.
    pub unsure: Option<String>,
}

/// A change set that was transformed to a newer version of its base text. The positions in the
/// newer text come from a diff, which can mistake a line for a similar line. The function `carry`
/// of the syntax crate also checks that the positions are right.
#[derive(Debug, Clone)]
pub struct Carried {
    pub changes: ChangeSet,
    /// Each edit as a pair: the edit in the base text and the edit in the newer text. Edits that
    /// the newer text already contains are left out.
    pub edits: Vec<(Edit, Edit)>,
}

impl Conflict {
    /// Returns a description of the conflict for people, with line numbers of the base text.
    pub fn in_lines(&self, base: &str) -> String {
        let line = |at: usize| {
            let before = base.as_bytes().iter().take(at);
            before.filter(|byte| **byte == b'\n').count() + 1
        };
        // If the range ends after a line break, its last line is the previous one.
        let last = self.ours.end.saturating_sub(1).max(self.ours.start);
        let lines = match (line(self.ours.start), line(last)) {
            (first, last) if first == last => format!("line {first}"),
            (first, last) => format!("lines {first} to {last}"),
        };
        match &self.unsure {
            Some(why) => format!("the position of the change of {lines} is uncertain: {why}"),
            None => format!("both sides changed {lines}"),
        }
    }
}

impl ChangeSet {
    /// Returns the change set that removes all of `current`, for a file that is to be deleted.
    /// `base` is the text for which the deletion was decided.
    ///
    /// # Errors
    /// The two texts differ: the deletion would lose text that nobody has seen.
    pub fn deletion(base: &str, current: &str) -> Result<ChangeSet, Conflict> {
        if base == current {
            return Ok(ChangeSet::between(base, ""));
        }
        let typed = ChangeSet::between_lines(base, current);
        let nothing = ByteRange::new(0, 0);
        let range = typed.edits().first().map_or(nothing, |first| first.range);
        Err(Conflict {
            ours: range,
            theirs: range,
            unsure: None,
        })
    }

    /// Creates a change set from edits in any order. Empty edits are dropped and adjacent edits are
    /// joined; insertions at the same offset keep the given order. Returns `None` if two edits
    /// overlap or an edit reaches past `base_len`.
    pub fn new(base_len: usize, mut edits: Vec<Edit>) -> Option<Self> {
        edits.retain(|edit| !edit.range.is_empty() || !edit.insert.is_empty());
        edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
        let mut joined: Vec<Edit> = Vec::with_capacity(edits.len());
        for edit in edits {
            if edit.range.start > edit.range.end || edit.range.end > base_len {
                return None;
            }
            match joined.last_mut() {
                Some(last) if last.range.end > edit.range.start => return None,
                Some(last) if last.range.end == edit.range.start => {
                    last.range.end = edit.range.end;
                    last.insert.push_str(&edit.insert);
                }
                Some(_) | None => joined.push(edit),
            }
        }
        Some(ChangeSet {
            base_len,
            edits: joined,
        })
    }

    pub fn unchanged(base_len: usize) -> Self {
        ChangeSet {
            base_len,
            edits: Vec::new(),
        }
    }

    /// Creates a change set with a single edit. Returns `None` if `range` reaches past `base_len`.
    pub fn replace(base_len: usize, range: ByteRange, insert: impl Into<String>) -> Option<Self> {
        let insert = insert.into();
        ChangeSet::new(base_len, vec![Edit { range, insert }])
    }

    /// Returns a minimal change set that turns `old` into `new`, based on a line diff. Each edit is
    /// narrowed to the differing characters inside the changed lines.
    pub fn between(old: &str, new: &str) -> Self {
        if old == new {
            return ChangeSet::unchanged(old.len());
        }
        let (old_lines, new_lines) = (lines(old), lines(new));
        let (old_starts, new_starts) = (starts(&old_lines), starts(&new_lines));
        let narrow = |was: Range<usize>, is: Range<usize>| {
            let from = ByteRange::new(old_starts[was.start], old_starts[was.end]);
            let to = ByteRange::new(new_starts[is.start], new_starts[is.end]);
            narrowed(old, from, to.of(new))
        };
        let mut edits = Vec::new();
        for (was, is) in replaced_lines(&old_lines, &new_lines) {
            if was.len() == is.len() {
                edits.extend(was.zip(is).map(|(a, b)| narrow(a..a + 1, b..b + 1)));
            } else {
                edits.push(narrow(was, is));
            }
        }
        ChangeSet::new(old.len(), edits).expect("a diff yields ordered ranges inside the old text")
    }

    /// Returns a minimal change set of whole lines that turns `old` into `new`.
    pub fn between_lines(old: &str, new: &str) -> Self {
        let (old_lines, new_lines) = (lines(old), lines(new));
        let (old_starts, new_starts) = (starts(&old_lines), starts(&new_lines));
        let edit = |was: Range<usize>, is: Range<usize>| Edit {
            range: ByteRange::new(old_starts[was.start], old_starts[was.end]),
            insert: new[new_starts[is.start]..new_starts[is.end]].to_owned(),
        };
        let replaced = replaced_lines(&old_lines, &new_lines);
        let edits = replaced.into_iter().map(|(was, is)| edit(was, is));
        ChangeSet::new(old.len(), edits.collect())
            .expect("a diff yields ordered ranges inside the old text")
    }

    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    pub fn base_len(&self) -> usize {
        self.base_len
    }

    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Returns `base` with all edits applied.
    ///
    /// # Errors
    /// `base` is not the base text of the change set.
    pub fn apply(&self, base: &str) -> Result<String, ApplyMismatch> {
        self.check(base)?;
        let mut text = String::with_capacity(self.new_len());
        let mut done = 0;
        for edit in &self.edits {
            text.push_str(&base[done..edit.range.start]);
            text.push_str(&edit.insert);
            done = edit.range.end;
        }
        text.push_str(&base[done..]);
        Ok(text)
    }

    /// Returns one change set that has the effect of `self` followed by `next`. The base of `next`
    /// is the text after `self`.
    ///
    /// # Errors
    /// The base length of `next` is not the length of the text after `self`.
    pub fn compose(&self, next: &ChangeSet) -> Result<ChangeSet, ApplyMismatch> {
        if next.base_len != self.new_len() {
            return Err(ApplyMismatch {
                expected: next.base_len,
                actual: self.new_len(),
            });
        }
        Ok(pieces::composed(self, next))
    }

    /// Returns `self` transformed so that it can be applied after `theirs`; both have the same
    /// base. Insertions at the same offset and overlapping replacements conflict, unless both sides
    /// make the same edit.
    ///
    /// # Errors
    /// Returns the first conflict. Change sets with different base lengths conflict as a whole.
    pub fn rebase(&self, theirs: &ChangeSet) -> Result<ChangeSet, Conflict> {
        let moved = self.moved(theirs)?;
        Ok(theirs.followed_by(moved.into_iter().map(|(_, edit)| edit).collect()))
    }

    /// Returns each edit as a pair: the original edit and the edit transformed to follow `theirs`.
    fn moved(&self, theirs: &ChangeSet) -> Result<Vec<(Edit, Edit)>, Conflict> {
        if self.base_len != theirs.base_len {
            return Err(Conflict {
                ours: ByteRange::new(0, self.base_len),
                theirs: ByteRange::new(0, theirs.base_len),
                unsure: None,
            });
        }
        let mut edits = Vec::with_capacity(self.edits.len());
        let mut shift = OffsetShift::default();
        let mut others = theirs.edits.iter().peekable();
        for edit in &self.edits {
            while let Some(other) = others.next_if(|other| lies_before(other.range, edit.range)) {
                shift.past(other);
            }
            match others.peek() {
                Some(other) if *other == edit => continue,
                Some(other) if !lies_before(edit.range, other.range) => {
                    return Err(Conflict {
                        ours: edit.range,
                        theirs: other.range,
                        unsure: None,
                    });
                }
                Some(_) | None => {
                    let moved = Edit {
                        range: ByteRange::new(shift.of(edit.range.start), shift.of(edit.range.end)),
                        insert: edit.insert.clone(),
                    };
                    edits.push((edit.clone(), moved));
                }
            }
        }
        Ok(edits)
    }

    /// Creates a change set whose base is the text after `self`.
    fn followed_by(&self, edits: Vec<Edit>) -> ChangeSet {
        ChangeSet::new(self.new_len(), edits)
            .expect("shifting disjoint edits by the same amounts keeps them disjoint")
    }

    /// Transforms the change set to the newer text that `theirs` produces from `base`. Unlike
    /// [`ChangeSet::rebase`], two changes to the same line conflict. Other crates call `carry` of
    /// the syntax crate instead, which also checks that the positions are right.
    ///
    /// # Errors
    /// Both sides changed the same line, or they have different base lengths.
    pub fn over(&self, base: &str, theirs: &ChangeSet) -> Result<Carried, Conflict> {
        let edits = self.moved(theirs)?;
        for (ours, _) in &edits {
            let mine = whole_lines(base, ours);
            let meets = |theirs: &&Edit| {
                let other = whole_lines(base, theirs);
                mine.start < other.end && other.start < mine.end
            };
            if let Some(other) = theirs.edits.iter().find(meets) {
                return Err(Conflict {
                    ours: ours.range,
                    theirs: other.range,
                    unsure: None,
                });
            }
        }
        let changes = theirs.followed_by(edits.iter().map(|(_, edit)| edit.clone()).collect());
        Ok(Carried { changes, edits })
    }

    /// Maps a byte offset of the base text to the changed text. An offset inside a replaced range
    /// maps to the start of the inserted text; an offset at an insertion maps to the end of the
    /// inserted text.
    pub fn map_offset(&self, offset: usize) -> usize {
        let mut shift = OffsetShift::default();
        for edit in &self.edits {
            if edit.range.contains(offset) {
                return shift.of(edit.range.start);
            }
            if edit.range.start > offset {
                break;
            }
            shift.past(edit);
        }
        shift.of(offset)
    }

    fn new_len(&self) -> usize {
        let mut shift = OffsetShift::default();
        self.edits.iter().for_each(|edit| shift.past(edit));
        shift.of(self.base_len)
    }

    fn check(&self, base: &str) -> Result<(), ApplyMismatch> {
        let fits = base.len() == self.base_len
            && self.edits.iter().all(|Edit { range, .. }| {
                base.is_char_boundary(range.start) && base.is_char_boundary(range.end)
            });
        if fits {
            return Ok(());
        }
        Err(ApplyMismatch {
            expected: self.base_len,
            actual: base.len(),
        })
    }
}

/// Returns whether `first` ends before `second` begins. Two insertions at the same offset have no
/// certain order, so the result is `false` for them.
fn lies_before(first: ByteRange, second: ByteRange) -> bool {
    first.end <= second.start && !(first.is_empty() && first == second)
}

/// Returns the range of the whole lines that an edit changes, including their line breaks. The
/// range is empty if the edit only inserts whole lines between two lines.
pub fn whole_lines(base: &str, edit: &Edit) -> ByteRange {
    let ByteRange { start, end } = edit.range;
    let starts_line = |at: usize| at == 0 || base[..at].ends_with('\n');
    let keeps_next = edit.insert.is_empty() || edit.insert.ends_with('\n');
    let first = base[..start].rfind('\n').map_or(0, |at| at + 1);
    let last = match starts_line(start) && starts_line(end) && keeps_next {
        true => end,
        false => base[end..].find('\n').map_or(base.len(), |at| end + at + 1),
    };
    ByteRange::new(first, last)
}

/// The difference between offsets in the base text and in the changed text, summed over the edits
/// before the current position.
#[derive(Default)]
struct OffsetShift {
    inserted: usize,
    removed: usize,
}

impl OffsetShift {
    fn past(&mut self, edit: &Edit) {
        self.inserted += edit.insert.len();
        self.removed += edit.range.len();
    }

    fn of(&self, offset: usize) -> usize {
        offset + self.inserted - self.removed
    }
}

/// Returns the start offset of each line in bytes, followed by the length of the text.
fn starts(lines: &[&str]) -> Vec<usize> {
    let mut at = 0;
    let mut starts = Vec::with_capacity(lines.len() + 1);
    for line in lines {
        starts.push(at);
        at += line.len();
    }
    starts.push(at);
    starts
}

/// Returns the edit that replaces `range` by `new`, without the common prefix and suffix. Neither
/// end of the edit is inside a CRLF, because the LSP has no position there.
fn narrowed(base: &str, range: ByteRange, new: &str) -> Edit {
    let old = range.of(base);
    let is_within_crlf =
        |text: &str, at: usize| text[..at].ends_with('\r') && text[at..].starts_with('\n');
    let mut front: usize = old
        .chars()
        .zip(new.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    if is_within_crlf(old, front) || is_within_crlf(new, front) {
        front -= 1;
    }
    let mut back: usize = old[front..]
        .chars()
        .rev()
        .zip(new[front..].chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    if is_within_crlf(old, old.len() - back) || is_within_crlf(new, new.len() - back) {
        back -= 1;
    }
    Edit {
        range: ByteRange::new(range.start + front, range.end - back),
        insert: new[front..new.len() - back].to_owned(),
    }
}
