//! Edits of files that are not open. Such an edit has no version: the editor applies it at its
//! lines and columns to whatever text it finds. Therefore the resulting text is compared with the
//! text that the edit should have made.

use std::sync::{Arc, Mutex, PoisonError};

use ropey::Rope;

use starling_syntax::{FilePath, MadeChange, carry};
use starling_text::{ByteRange, ChangeSet, Edit, Encoding, Position, offset_of, position_of};

/// Maximum number of texts that are remembered; older ones are dropped.
const MAX_TEXTS: usize = 16;

/// The texts that a document has had since an edit was sent.
#[derive(Debug, Clone, Default)]
pub struct TextHistory(Arc<Mutex<Vec<Arc<str>>>>);

impl TextHistory {
    pub fn push(&self, text: Arc<str>) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
}

/// An edit by lines and columns, as it is sent to the editor.
#[derive(Debug, Clone)]
struct PositionedEdit {
    start: Position,
    end: Position,
    insert: String,
}

/// Where an edit is in the texts of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditPlacement {
    /// The texts do not contain the edit.
    Absent,
    InPlace,
    /// The editor applied the edit to another text, where it has the wrong position.
    Misplaced {
        before: Arc<str>,
        after: Arc<str>,
    },
    /// The text contains lines of the edit, and it is unknown how the editor applied it.
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
        }
    }

    /// Returns where the edit is. `now` is the text of the file; `disk` is the text on disk if the
    /// file is open.
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
            let unmade = self.text_before(after);
            let applied_to =
                |before: &Arc<str>| self.applied_to(before).as_deref() == Some(&**after);
            if let Some(before) = earlier.chain(unmade).find(applied_to) {
                return self.check_position(before, Arc::clone(after));
            }
        }
        if *now == self.base {
            EditPlacement::Absent
        } else if self.is_rebased_in(now) {
            EditPlacement::InPlace
        } else if self.has_added_line(now) {
            EditPlacement::Unclear
        } else {
            EditPlacement::Absent
        }
    }

    /// Returns whether a text is the result of the edit, rebased over an earlier text.
    fn is_rebased_in(&self, text: &str) -> bool {
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

    fn check_position(&self, before: Arc<str>, after: Arc<str>) -> EditPlacement {
        let wanted = carry(&self.file, &self.base, &self.changes, &before);
        let wanted = wanted.ok().and_then(|changes| changes.apply(&before).ok());
        match wanted.as_deref() == Some(&*after) {
            true => EditPlacement::InPlace,
            false => EditPlacement::Misplaced { before, after },
        }
    }

    /// Returns the text that an editor makes of `text` by this edit.
    fn applied_to(&self, text: &str) -> Option<String> {
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

    /// Returns the text from which an editor made this text. It is known only if the edit removes
    /// nothing.
    fn text_before(&self, text: &str) -> Option<Arc<str>> {
        let mut text = text.to_owned();
        for one in &self.positioned {
            if one.start != one.end {
                return None;
            }
            // The text before this position is already restored.
            let at = offset_of(&Rope::from_str(&text), one.start, self.encoding);
            let end = at + one.insert.len();
            if text.get(at..end) != Some(one.insert.as_str()) {
                return None;
            }
            text.replace_range(at..end, "");
        }
        Some(text.into())
    }

    /// Returns whether a text contains a line that the edit adds.
    pub fn has_added_line(&self, text: &str) -> bool {
        self.added_lines(text).is_some()
    }

    /// Returns the first and the last line of a text that the edit may have added. Lines start at
    /// 1.
    pub fn added_lines(&self, text: &str) -> Option<(usize, usize)> {
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
    fn edit_at_its_lines_in_another_text_is_misplaced() {
        for edit in [
            inserting(),
            edit("y * 2", "y * 3"),
            edit("    return z\n", ""),
        ] {
            let before = above(BASE);
            let after: Arc<str> = edit.applied_to(&before).unwrap().into();
            let misplaced = EditPlacement::Misplaced {
                before: Arc::clone(&before),
                after: Arc::clone(&after),
            };
            // The earlier text is known from the disk or from the document.
            assert_eq!(edit.placement(&after, Some(&before)), misplaced);
            edit.texts.push(before);
            edit.texts.push(Arc::clone(&after));
            assert_eq!(edit.placement(&after, None), misplaced);
            edit.texts.push(above(&after));
            assert_eq!(edit.placement(&above(&after), None), misplaced);
        }
    }

    #[test]
    fn insertion_is_found_without_the_earlier_text() {
        let edit = inserting();
        let before = above(BASE);
        let after: Arc<str> = edit.applied_to(&before).unwrap().into();
        let placement = edit.placement(&after, None);
        assert_eq!(placement, EditPlacement::Misplaced { before, after });
    }

    #[test]
    fn typing_elsewhere_does_not_misplace_an_edit() {
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
        // The text before the edit is unknown.
        let changed = self::edit("y * 2", "y * 3");
        let now = above(&changed.after);
        assert_eq!(changed.placement(&now, None), EditPlacement::InPlace);
    }

    #[test]
    fn edit_is_absent_from_text_without_it() {
        for edit in [inserting(), edit("y * 2", "y * 3")] {
            assert_eq!(edit.placement(&edit.base, None), EditPlacement::Absent);
            assert_eq!(edit.placement(&above(BASE), None), EditPlacement::Absent);
        }
    }

    #[test]
    fn edit_of_unknown_origin_is_unclear() {
        let edit = edit("y * 2", "y * 3");
        let text: Arc<str> = above("    z = y * 3\n");
        assert_eq!(edit.placement(&text, None), EditPlacement::Unclear);
        assert_eq!(edit.added_lines(&text), Some((2, 2)));
    }
}
