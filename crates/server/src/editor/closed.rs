//! Edits of files that are not open. They carry no version: the editor makes them at their lines and columns
//! in whatever text it finds, which may be another one than they were made for. So the text that is there
//! afterwards is compared with the text that the edit should have made.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ropey::Rope;

use starling_syntax::{FilePath, MadeChange, carry};
use starling_text::{ByteRange, ChangeSet, Edit, Encoding, Position, offset_of, position_of};

/// So many texts of a document are remembered, the last ones.
const MAX_TEXTS: usize = 16;

/// The texts that a document had since an edit was sent.
#[derive(Debug, Clone, Default)]
pub struct TextHistory(Arc<Mutex<Vec<Arc<str>>>>);

impl TextHistory {
    pub fn push(&self, text: Arc<str>) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.last() == Some(&text) {
            return;
        }
        if texts.len() == MAX_TEXTS {
            texts.remove(0);
        }
        texts.push(text);
    }

    fn all(&self) -> Vec<Arc<str>> {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.clone()
    }
}

/// An edit of a file that was not open when it was sent.
#[derive(Debug, Clone)]
pub struct ClosedEdit {
    pub file: FilePath,
    pub base: Arc<str>,
    pub after: Arc<str>,
    changes: ChangeSet,
    positioned: Vec<PositionedEdit>,
    encoding: Encoding,
    pub texts: TextHistory,
    /// Whether the editor said that it made the edit.
    is_claimed: Arc<AtomicBool>,
}

/// An edit as the editor is told of it: by lines and columns.
#[derive(Debug, Clone)]
struct PositionedEdit {
    start: Position,
    end: Position,
    insert: String,
}

/// What the texts of a file say of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditPlacement {
    /// They do not hold it.
    Absent,
    InPlace,
    /// The editor made it in another text, and it has another place there.
    Misplaced {
        before: Arc<str>,
        after: Arc<str>,
    },
    /// Lines of it are there, and nobody can tell what the editor did.
    Unclear,
}

impl ClosedEdit {
    pub fn new(
        file: &FilePath,
        base: &Arc<str>,
        after: &Arc<str>,
        changes: &ChangeSet,
        encoding: Encoding,
    ) -> ClosedEdit {
        let rope = Rope::from_str(base);
        let place = |edit: &Edit| PositionedEdit {
            start: position_of(&rope, edit.range.start, encoding),
            end: position_of(&rope, edit.range.end, encoding),
            insert: edit.insert.clone(),
        };
        ClosedEdit {
            file: file.clone(),
            base: Arc::clone(base),
            after: Arc::clone(after),
            changes: changes.clone(),
            positioned: changes.edits().iter().map(place).collect(),
            encoding,
            texts: TextHistory::default(),
            is_claimed: Arc::default(),
        }
    }

    /// The editor said that it made the edit.
    pub fn claim(&self) {
        self.is_claimed.store(true, Ordering::Relaxed);
    }

    /// Where the edit is: `now` is the text of the file, and `disk` that on disk where the file is open.
    pub fn placement(&self, now: &Arc<str>, disk: Option<&Arc<str>>) -> EditPlacement {
        if *now == self.after {
            return EditPlacement::InPlace;
        }
        let mut texts = self.texts.all();
        if texts.last() != Some(now) {
            texts.push(Arc::clone(now));
        }
        for (at, after) in texts.iter().enumerate().rev() {
            let earlier = texts[..at].iter().rev().chain(disk).cloned();
            let unmade = self.unmade_from(after);
            let made_in = |before: &Arc<str>| self.made_in(before).as_deref() == Some(&**after);
            if let Some(before) = earlier.chain(unmade).find(made_in) {
                return self.verdict(before, Arc::clone(after));
            }
        }
        if *now == self.base {
            EditPlacement::Absent
        } else if self.is_carried_in(now) {
            EditPlacement::InPlace
        } else if self.shows_in(now) {
            EditPlacement::Unclear
        } else {
            EditPlacement::Absent
        }
    }

    /// Whether a text is what the edit makes of an earlier text, carried over to it.
    fn is_carried_in(&self, text: &str) -> bool {
        if self.leaves_out(text).is_none() {
            return false;
        }
        let made = MadeChange {
            file: &self.file,
            before: &self.base,
            after: &self.after,
        };
        let earlier = made.back_over(text).ok();
        let earlier = earlier.and_then(|changes| changes.apply(text).ok());
        earlier.is_some_and(|earlier| {
            let again = carry(&self.file, &self.base, &self.changes, &earlier);
            let again = again.ok().and_then(|changes| changes.apply(&earlier).ok());
            earlier != text && again.as_deref() == Some(text)
        })
    }

    fn verdict(&self, before: Arc<str>, after: Arc<str>) -> EditPlacement {
        let wanted = carry(&self.file, &self.base, &self.changes, &before);
        let wanted = wanted.ok().and_then(|changes| changes.apply(&before).ok());
        match wanted.as_deref() == Some(&*after) {
            true => EditPlacement::InPlace,
            false => EditPlacement::Misplaced { before, after },
        }
    }

    /// What an editor makes of a text by this edit.
    fn made_in(&self, text: &str) -> Option<String> {
        let rope = Rope::from_str(text);
        let offset = |position| offset_of(&rope, position, self.encoding);
        let edits = self.positioned.iter().map(|one| Edit {
            range: ByteRange::new(offset(one.start), offset(one.end)),
            insert: one.insert.clone(),
        });
        ChangeSet::new(text.len(), edits.collect())?
            .apply(text)
            .ok()
    }

    /// The text that an editor made this text of. What the edit removed there is put back as the base has it
    /// at that place: nobody else touched it, or it cannot be told.
    fn unmade_from(&self, text: &str) -> Option<Arc<str>> {
        let mut text = text.to_owned();
        for one in &self.positioned {
            // What stands before it is as it was already.
            let at = offset_of(&Rope::from_str(&text), one.start, self.encoding);
            let end = at + one.insert.len();
            if text.get(at..end) != Some(one.insert.as_str()) {
                return None;
            }
            text.replace_range(at..end, "");
            if one.start != one.end {
                let is_claimed = self.is_claimed.load(Ordering::Relaxed);
                let removed = is_claimed.then(|| self.removed_at(&text, at)).flatten()?;
                text.insert_str(at, &removed);
            }
        }
        Some(text.into())
    }

    /// What the base has and a text lacks at an offset of the text.
    fn removed_at(&self, text: &str, at: usize) -> Option<String> {
        let mut longer = 0;
        let mut shorter = 0;
        for edit in ChangeSet::between_lines(&self.base, text).edits() {
            let start = edit.range.start + longer - shorter;
            longer += edit.insert.len();
            shorter += edit.range.len();
            let inside = at.checked_sub(start).filter(|at| *at <= edit.insert.len());
            let Some((head, tail)) = inside.and_then(|at| edit.insert.split_at_checked(at)) else {
                continue;
            };
            // Whole lines before and after it may be new.
            let line_head = head.rfind('\n').map_or(head, |end| &head[end + 1..]);
            let line_tail = tail.find('\n').map_or(tail, |end| &tail[..=end]);
            let was = edit.range.of(&self.base);
            let between = |(head, tail)| was.strip_prefix(head)?.strip_suffix(tail);
            let sides = [
                (head, tail),
                (line_head, tail),
                (head, line_tail),
                (line_head, line_tail),
            ];
            if let Some(removed) = sides.into_iter().find_map(between) {
                return Some(removed.to_owned());
            }
        }
        None
    }

    /// A text without the lines that the edit removes; `None` where one of them still stands.
    pub fn leaves_out<'t>(&self, text: &'t str) -> Option<&'t str> {
        let count = |text: &str, line: &str| text.lines().filter(|one| *one == line).count();
        let mut removed = self.base.lines().filter(|line| !line.trim().is_empty());
        let stands = |line: &str| {
            let after = count(&self.after, line);
            after < count(&self.base, line) && after < count(text, line)
        };
        let untouched: BTreeSet<&str> = self.after.lines().collect();
        let is_left = removed.any(|line| !untouched.contains(line) && stands(line));
        (!is_left).then_some(text)
    }

    /// The first and the last line, from 1, in which a text differs from the base.
    pub fn differing_lines(&self, text: &str) -> Option<(usize, usize)> {
        let changes = ChangeSet::between_lines(text, &self.base);
        let line = |at: usize| text[..at].lines().count();
        let first = changes.edits().first()?.range.start;
        let last = changes.edits().last()?.range.end;
        Some((line(first) + 1, line(last).max(line(first) + 1)))
    }

    /// Whether a line that the edit brings stands in a text.
    pub fn shows_in(&self, text: &str) -> bool {
        self.shown_lines(text).is_some()
    }

    /// The first and the last line of a text, from 1, that the edit may have brought.
    pub fn shown_lines(&self, text: &str) -> Option<(usize, usize)> {
        let is_new =
            |line: &&str| !line.trim().is_empty() && !self.base.lines().any(|old| old == *line);
        let new: Vec<&str> = self.after.lines().filter(is_new).collect();
        let shows = |line: &str| new.iter().any(|new| line.starts_with(new));
        let mut shown = (1..).zip(text.lines()).filter(|(_, line)| shows(line));
        let (first, _) = shown.next()?;
        Some((first, shown.last().map_or(first, |(last, _)| last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "import os\n\n\ndef f(x):\n    y = x + 1\n    z = y * 2\n    return z\n";

    fn edit(was: &str, is: &str) -> ClosedEdit {
        let after = BASE.replacen(was, is, 1);
        assert_ne!(after, BASE);
        let changes = ChangeSet::between(BASE, &after);
        let file = FilePath::new("a.py");
        let encoding = Encoding::Utf16;
        ClosedEdit::new(&file, &BASE.into(), &after.into(), &changes, encoding)
    }

    fn inserting() -> ClosedEdit {
        edit("    return z\n", "    log(z)\n    return z\n")
    }

    fn above(text: &str) -> Arc<str> {
        format!("import re\n{text}").into()
    }

    #[test]
    fn an_edit_that_was_made_at_its_lines_in_another_text_is_misplaced() {
        for edit in [
            inserting(),
            edit("y * 2", "y * 3"),
            edit("    return z\n", ""),
        ] {
            let before = above(BASE);
            let after: Arc<str> = edit.made_in(&before).unwrap().into();
            let misplaced = EditPlacement::Misplaced {
                before: Arc::clone(&before),
                after: Arc::clone(&after),
            };
            // On disk it was so before, or the document showed it.
            assert_eq!(edit.placement(&after, Some(&before)), misplaced);
            edit.texts.push(before);
            edit.texts.push(Arc::clone(&after));
            assert_eq!(edit.placement(&after, None), misplaced);
            edit.texts.push(above(&after));
            assert_eq!(edit.placement(&above(&after), None), misplaced);
        }
    }

    #[test]
    fn what_an_edit_removed_in_a_text_that_nobody_saw_is_put_back_as_it_was() {
        for edit in [edit("y * 2", "y * 3"), edit("    return z\n", "")] {
            let before = above(BASE);
            let after: Arc<str> = edit.made_in(&before).unwrap().into();
            // Perhaps the user removed it.
            assert_eq!(edit.placement(&after, None), EditPlacement::Absent);
            edit.claim();
            let misplaced = EditPlacement::Misplaced {
                before,
                after: Arc::clone(&after),
            };
            assert_eq!(edit.placement(&after, None), misplaced);
            assert_eq!(edit.placement(&above(BASE), None), EditPlacement::Absent);
        }
    }

    #[test]
    fn a_removed_line_that_still_stands_was_not_removed() {
        let edit = edit("    return z\n", "");
        assert!(edit.leaves_out(BASE).is_none());
        assert!(edit.leaves_out(&above(BASE)).is_none());
        assert!(edit.leaves_out(&edit.after).is_some());
        assert_eq!(edit.differing_lines(&above(BASE)), Some((1, 1)));
    }

    #[test]
    fn an_insertion_is_found_without_the_text_before_it() {
        let edit = inserting();
        let before = above(BASE);
        let after: Arc<str> = edit.made_in(&before).unwrap().into();
        let placement = edit.placement(&after, None);
        assert_eq!(placement, EditPlacement::Misplaced { before, after });
    }

    #[test]
    fn an_edit_in_its_place_is_in_place_whatever_was_typed_elsewhere() {
        let edit = inserting();
        assert_eq!(edit.placement(&edit.after, None), EditPlacement::InPlace);
        let typed = format!("{}\n\nA = 1\n", edit.after);
        assert_eq!(edit.placement(&typed.into(), None), EditPlacement::InPlace);
        edit.texts.push(Arc::clone(&edit.base));
        edit.texts.push(Arc::clone(&edit.after));
        assert_eq!(
            edit.placement(&above(&edit.after), None),
            EditPlacement::InPlace
        );
        // On disk, nobody saw the text before.
        let changed = self::edit("y * 2", "y * 3");
        let now = above(&changed.after);
        assert_eq!(changed.placement(&now, None), EditPlacement::InPlace);
    }

    #[test]
    fn a_text_without_the_edit_holds_it_nowhere() {
        for edit in [inserting(), edit("y * 2", "y * 3")] {
            assert_eq!(edit.placement(&edit.base, None), EditPlacement::Absent);
            assert_eq!(edit.placement(&above(BASE), None), EditPlacement::Absent);
        }
    }

    #[test]
    fn lines_of_an_edit_that_nobody_can_place_are_unclear() {
        let edit = edit("y * 2", "y * 3");
        let text: Arc<str> = above("    z = y * 3\n");
        assert_eq!(edit.placement(&text, None), EditPlacement::Unclear);
        assert_eq!(edit.shown_lines(&text), Some((2, 2)));
    }
}
