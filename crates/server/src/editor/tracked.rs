//! Finds an edit in the texts of its file. An editor may apply an edit, at its lines and columns,
//! to another text than the intended one: a file that is not open has no version, an open document
//! may be closed meanwhile, and some editors ignore the version. Therefore each text of the file is
//! compared with the results of the edit on earlier texts.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::text_history::TextHistory;
use starling_syntax::{FilePath, MadeChange, carry};
use starling_text::{ChangeSet, Encoding, PositionedChange, differing_lines};

/// An edit that was sent, and the texts that its file has had since.
#[derive(Debug, Clone)]
pub struct TrackedEdit {
    pub file: FilePath,
    pub base: Arc<str>,
    pub after: Arc<str>,
    changes: ChangeSet,
    positioned: PositionedChange,
    pub texts: TextHistory,
    /// Whether the editor replied that it made the edit.
    is_claimed: Arc<AtomicBool>,
}

/// The texts of a file directly before and after an edit was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPair {
    pub before: Arc<str>,
    pub after: Arc<str>,
}

/// Whether and where the texts of a file contain an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditPlacement {
    /// The texts do not contain the edit.
    Absent,
    InPlace,
    /// The editor applied the edit to another text, where it has the wrong position.
    Misplaced(TextPair),
    /// The text contains lines of the edit, and it is unknown how the editor applied it.
    Unclear,
}

impl TrackedEdit {
    pub fn new(
        file: &FilePath,
        base: &Arc<str>,
        after: &Arc<str>,
        changes: &ChangeSet,
        encoding: Encoding,
    ) -> TrackedEdit {
        let texts = TextHistory::default();
        texts.restart(Arc::clone(base));
        TrackedEdit {
            file: file.clone(),
            base: Arc::clone(base),
            after: Arc::clone(after),
            changes: changes.clone(),
            positioned: PositionedChange::new(base, changes, encoding),
            texts,
            is_claimed: Arc::default(),
        }
    }

    /// Marks that the editor replied that it made the edit.
    pub fn claim(&self) {
        self.is_claimed.store(true, Ordering::Relaxed);
    }

    /// Returns the texts that the file has had since the edit was sent.
    pub fn earlier_texts(&self) -> Vec<Arc<str>> {
        self.texts.all()
    }

    /// Like [`Self::placement_after`], with all texts of the history as the earlier texts.
    pub fn placement(&self, now: &Arc<str>, disk: Option<&Arc<str>>) -> EditPlacement {
        self.placement_after(self.earlier_texts(), now, disk)
    }

    /// Returns whether and where the file contains the edit. `now` is the text of the file, which
    /// must be read after `texts`, its earlier texts; `disk` is the text on disk if the file is
    /// open.
    pub fn placement_after(
        &self,
        mut texts: Vec<Arc<str>>,
        now: &Arc<str>,
        disk: Option<&Arc<str>>,
    ) -> EditPlacement {
        if *now == self.after {
            return self.placement_of_result(&texts);
        }
        if texts.last() != Some(now) {
            texts.push(Arc::clone(now));
        }
        let before_all = disk.map(std::slice::from_ref).unwrap_or_default();
        let seen = self.last_made(before_all, &texts);
        if let Some(pair) = seen.or_else(|| self.last_reconstructed(&texts)) {
            return self.check_position(pair);
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

    /// Returns where the edit was made when the file first had exactly the text that the edit leads to.
    /// If the user typed inside the range of the edit meanwhile, the text is the same, but the edit
    /// removed what the user typed.
    pub fn placement_of_result(&self, texts: &[Arc<str>]) -> EditPlacement {
        let first = texts.iter().position(|text| *text == self.after);
        let mut earlier = texts[..first.unwrap_or(texts.len())].iter().rev();
        let before =
            earlier.find(|before| self.applied_to(before).as_deref() == Some(&*self.after));
        before.map_or(EditPlacement::InPlace, |before| {
            self.check_position(TextPair {
                before: Arc::clone(before),
                after: Arc::clone(&self.after),
            })
        })
    }

    /// Returns whether a text is the result of rebasing the edit onto a text with other changes,
    /// such as text that the user typed.
    fn is_rebased_in(&self, text: &str) -> bool {
        if !self.lacks_removed_lines(text) || !self.has_all_added_lines(text) {
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

    /// Returns the last text that equals the result of this edit on an earlier text, with that
    /// earlier text. `before_all` are texts that are older than all of `texts`.
    fn last_made(&self, before_all: &[Arc<str>], texts: &[Arc<str>]) -> Option<TextPair> {
        let made = |before: &Arc<str>| (Arc::clone(before), self.applied_to(before));
        let before_all: Vec<_> = before_all.iter().map(made).collect();
        let made: Vec<_> = texts.iter().map(made).collect();
        let pairs = texts.iter().enumerate().rev().map(|(at, after)| {
            let mut earlier = made[..at].iter().rev().chain(&before_all);
            let before =
                earlier.find(|(before, made)| before != after && made.as_deref() == Some(&**after));
            before.map(|(before, _)| TextPair {
                before: Arc::clone(before),
                after: Arc::clone(after),
            })
        });
        pairs.flatten().next()
    }

    /// Returns the last text that this edit has probably produced, with a reconstruction of the
    /// text before it, which is not known.
    fn last_reconstructed(&self, texts: &[Arc<str>]) -> Option<TextPair> {
        let is_claimed = self.is_claimed.load(Ordering::Relaxed);
        let mut after = texts.iter().rev().filter(|after| {
            // If the editor has not replied that it made the edit, a text may contain a short
            // insertion by coincidence, so a whole added line is required.
            **after != self.base && (is_claimed || self.has_added_line(after))
        });
        after.find_map(|after| {
            let before = self.text_before(after)?;
            let is_made = self.applied_to(&before).as_deref() == Some(&**after);
            is_made.then(|| TextPair {
                before,
                after: Arc::clone(after),
            })
        })
    }

    /// Returns the texts before and after this edit if it was made in these texts. Repetitions of a
    /// text are ignored, because they come from the editor's undo or redo.
    pub fn made_among(&self, texts: Vec<Arc<str>>) -> Option<TextPair> {
        self.last_made(&[], &distinct(texts))
    }

    /// Like [`Self::made_among`], if the edit was made in a text that already contained it.
    pub fn made_again_among(&self, texts: Vec<Arc<str>>) -> Option<TextPair> {
        let texts = distinct(texts);
        let first = texts.iter().position(|text| self.is_applied_in(text))?;
        self.last_made(&[], &texts[first..])
    }

    /// Returns the texts that the file had before this edit was made in it.
    pub fn texts_before(&self) -> Vec<Arc<str>> {
        let mut texts = distinct(self.texts.all());
        let before = self.last_made(&[], &texts).map(|pair| pair.before);
        let last = before.and_then(|before| texts.iter().position(|text| *text == before));
        let first = || texts.iter().position(|text| self.is_applied_in(text));
        if let Some(end) = last.map(|last| last + 1).or_else(first) {
            texts.truncate(end);
        }
        texts
    }

    /// Returns whether a text is the result of the edit, or of the edit and other changes.
    fn is_applied_in(&self, text: &Arc<str>) -> bool {
        *text == self.after || self.is_rebased_in(text)
    }

    /// Returns whether the editor probably made this edit in a text that is not known: removing the edit
    /// from a known text makes it more similar to the known text before it.
    pub fn is_suspected(&self, now: &Arc<str>) -> bool {
        let mut known = self.texts.all();
        if known.last() != Some(now) {
            known.push(Arc::clone(now));
        }
        let is_made = |last: &str, now: &str| {
            let before = self.positioned.text_before(now, Some(last));
            before.is_some_and(|before| {
                self.applied_to(&before).as_deref() == Some(now)
                    && difference(last, &before) < difference(last, now)
            })
        };
        let mut pairs = known.iter().zip(known.iter().skip(1));
        pairs.any(|(last, now)| is_made(last, now))
    }

    /// Returns whether a text contains the edit, possibly among later changes.
    pub fn is_in(&self, text: &Arc<str>) -> bool {
        if *text == self.base || !self.lacks_removed_lines(text) {
            return false;
        }
        let inverse = ChangeSet::between(&self.after, &self.base);
        let without = carry(&self.file, &self.after, &inverse, text).map(|undo| undo.apply(text));
        match without {
            Ok(Ok(without)) => without != **text && self.has_all_added_lines(text),
            // The edit cannot be undone in this text, perhaps because the user typed over it. It
            // counts as present if it cannot be applied again either.
            Ok(Err(_)) | Err(_) => {
                let change = ChangeSet::between(&self.base, &self.after);
                carry(&self.file, &self.base, &change, text).is_err() && self.has_added_line(text)
            }
        }
    }

    fn check_position(&self, pair: TextPair) -> EditPlacement {
        let wanted = carry(&self.file, &self.base, &self.changes, &pair.before);
        let wanted = wanted
            .ok()
            .and_then(|changes| changes.apply(&pair.before).ok());
        match wanted.as_deref() == Some(&*pair.after) {
            true => EditPlacement::InPlace,
            false => EditPlacement::Misplaced(pair),
        }
    }

    /// Returns the result of applying this edit, by its lines and columns, to `text`.
    fn applied_to(&self, text: &str) -> Option<String> {
        self.positioned.applied_to(text)
    }

    /// Returns the text to which an editor applied this edit to get `text`. Text that the edit
    /// removed is restored from the base, if the editor replied that it made the edit.
    fn text_before(&self, text: &str) -> Option<Arc<str>> {
        let is_claimed = self.is_claimed.load(Ordering::Relaxed);
        let base = is_claimed.then_some(&*self.base);
        self.positioned.text_before(text, base).map(Arc::from)
    }

    /// Returns whether each line that the edit adds occurs in a text more often than in the base.
    fn has_all_added_lines(&self, text: &str) -> bool {
        let (base, after, now) = (counts(&self.base), counts(&self.after), counts(text));
        let before = |line: &str| base.get(line).copied().unwrap_or_default();
        let mut added = after.iter().filter(|(line, count)| **count > before(line));
        added.all(|(line, _)| now.get(line).is_some_and(|count| *count > before(line)))
    }

    /// Returns whether a text contains none of the lines that the edit removes.
    pub fn lacks_removed_lines(&self, text: &str) -> bool {
        let count = |text: &str, line: &str| text.lines().filter(|one| *one == line).count();
        let mut removed = self.base.lines().filter(|line| !line.trim().is_empty());
        let is_present = |line: &str| {
            let after = count(&self.after, line);
            after < count(&self.base, line) && after < count(text, line)
        };
        let untouched: BTreeSet<&str> = self.after.lines().collect();
        !removed.any(|line| !untouched.contains(line) && is_present(line))
    }

    /// Returns the first and the last line in which a text differs from the base. Lines start at 1.
    pub fn differing_lines(&self, text: &str) -> Option<(usize, usize)> {
        differing_lines(text, &self.base)
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

/// Returns each of the texts once.
fn distinct(all: Vec<Arc<str>>) -> Vec<Arc<str>> {
    let mut texts: Vec<Arc<str>> = Vec::new();
    for text in all {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Returns how many bytes are removed and inserted between two texts.
fn difference(from: &str, to: &str) -> usize {
    let changes = ChangeSet::between(from, to);
    let edits = changes.edits().iter();
    edits.map(|edit| edit.range.len() + edit.insert.len()).sum()
}

/// Returns how often each line occurs in a text.
fn counts(text: &str) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for line in text.lines() {
        *counts.entry(line).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "import os\n\n\ndef f(x):\n    y = x + 1\n    z = y * 2\n    return z\n";

    fn edit(was: &str, is: &str) -> TrackedEdit {
        let after = BASE.replacen(was, is, 1);
        assert_ne!(after, BASE);
        let changes = ChangeSet::between(BASE, &after);
        let file = FilePath::new("a.py");
        let encoding = Encoding::Utf16;
        TrackedEdit::new(&file, &BASE.into(), &after.into(), &changes, encoding)
    }

    fn inserting() -> TrackedEdit {
        edit("    return z\n", "    log(z)\n    return z\n")
    }

    fn above(text: &str) -> Arc<str> {
        format!("import re\n{text}").into()
    }

    #[test]
    fn edit_applied_at_the_same_lines_of_another_text_is_misplaced() {
        for edit in [
            inserting(),
            edit("y * 2", "y * 3"),
            edit("    return z\n", ""),
        ] {
            let before = above(BASE);
            let after: Arc<str> = edit.applied_to(&before).unwrap().into();
            let misplaced = EditPlacement::Misplaced(TextPair {
                before: Arc::clone(&before),
                after: Arc::clone(&after),
            });
            // The text before the edit is known: first from the disk, then from the history.
            assert_eq!(edit.placement(&after, Some(&before)), misplaced);
            edit.texts.push(before);
            edit.texts.push(Arc::clone(&after));
            assert_eq!(edit.placement(&after, None), misplaced);
            edit.texts.push(above(&after));
            assert_eq!(edit.placement(&above(&after), None), misplaced);
        }
    }

    #[test]
    fn edit_that_removes_what_the_user_typed_in_its_range_is_misplaced() {
        let edit = edit("    return z\n", "");
        let typed: Arc<str> = BASE.replace("return z", "return z  # mine").into();
        edit.texts.push(Arc::clone(&typed));
        let misplaced = EditPlacement::Misplaced(TextPair {
            before: typed,
            after: Arc::clone(&edit.after),
        });
        assert_eq!(edit.placement(&edit.after, None), misplaced);
        // The user has removed the own text again before the edit was made.
        edit.texts.push(Arc::clone(&edit.base));
        assert_eq!(edit.placement(&edit.after, None), EditPlacement::InPlace);
    }

    #[test]
    fn misplaced_edit_is_found_without_the_earlier_text_if_the_editor_reports_success() {
        for edit in [edit("y * 2", "y * 3"), edit("    return z\n", "")] {
            let before = above(BASE);
            let after: Arc<str> = edit.applied_to(&before).unwrap().into();
            // Without the editor's reply, the user may have made this change.
            assert_eq!(edit.placement(&after, None), EditPlacement::Absent);
            edit.claim();
            let misplaced = EditPlacement::Misplaced(TextPair {
                before,
                after: Arc::clone(&after),
            });
            assert_eq!(edit.placement(&after, None), misplaced);
            assert_eq!(edit.placement(&above(BASE), None), EditPlacement::Absent);
        }
    }

    #[test]
    fn edit_in_an_unknown_text_is_suspected_only_if_it_explains_the_change() {
        for edit in [
            inserting(),
            edit("y * 2", "y * 2 + 1"),
            edit("    return z\n", ""),
        ] {
            let before = above(BASE);
            let after: Arc<str> = edit.applied_to(&before).unwrap().into();
            assert!(!edit.is_suspected(&edit.base));
            assert!(!edit.is_suspected(&before));
            assert!(edit.is_suspected(&after));
            edit.texts.push(Arc::clone(&after));
            assert!(edit.is_suspected(&above(&after)));
            edit.texts.restart(after);
            assert!(!edit.is_suspected(&before));
        }
    }

    #[test]
    fn lines_that_an_edit_should_have_removed_are_detected() {
        let edit = edit("    return z\n", "");
        assert!(!edit.lacks_removed_lines(BASE));
        assert!(!edit.lacks_removed_lines(&above(BASE)));
        assert!(edit.lacks_removed_lines(&edit.after));
        assert_eq!(edit.differing_lines(&above(BASE)), Some((1, 1)));
    }

    #[test]
    fn misplaced_insertion_is_found_without_the_earlier_text() {
        let edit = inserting();
        let before = above(BASE);
        let after: Arc<str> = edit.applied_to(&before).unwrap().into();
        let placement = edit.placement(&after, None);
        assert_eq!(
            placement,
            EditPlacement::Misplaced(TextPair { before, after })
        );
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
    fn text_without_the_edit_counts_as_absent() {
        for edit in [inserting(), edit("y * 2", "y * 3")] {
            assert_eq!(edit.placement(&edit.base, None), EditPlacement::Absent);
            assert_eq!(edit.placement(&above(BASE), None), EditPlacement::Absent);
        }
    }

    #[test]
    fn line_that_existed_before_the_edit_is_not_taken_for_the_edit() {
        let line = "    z = y * 2\n";
        let edit = edit(line, &line.repeat(2));
        for text in [edit.base.clone(), above(BASE), above(&above(BASE))] {
            assert_eq!(edit.placement(&text, None), EditPlacement::Absent, "{text}");
        }
        edit.claim();
        assert_eq!(edit.placement(&edit.base, None), EditPlacement::Absent);
    }

    #[test]
    fn redo_is_not_mistaken_for_a_second_application_of_the_edit() {
        let edit = inserting();
        edit.texts.restart(Arc::clone(&edit.after));
        for text in [&edit.base, &edit.after] {
            edit.texts.push(Arc::clone(text));
            assert_eq!(edit.made_among(edit.earlier_texts()), None);
        }
        let twice: Arc<str> = edit.applied_to(&edit.after).unwrap().into();
        edit.texts.push(Arc::clone(&twice));
        let pair = TextPair {
            before: Arc::clone(&edit.after),
            after: twice,
        };
        assert_eq!(edit.made_among(edit.earlier_texts()), Some(pair));
    }

    #[test]
    fn text_with_lines_of_the_edit_at_an_unexpected_position_is_unclear() {
        let edit = edit("y * 2", "y * 3");
        let text: Arc<str> = above("    z = y * 3\n");
        assert_eq!(edit.placement(&text, None), EditPlacement::Unclear);
        assert_eq!(edit.added_lines(&text), Some((2, 2)));
    }
}
