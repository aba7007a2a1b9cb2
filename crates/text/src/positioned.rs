//! Changes by lines and columns, as they are sent to an editor. An editor may apply them to another
//! text than the one that they were made for.

use ropey::Rope;

use super::change::{ChangeSet, Edit};
use super::position::{Encoding, Position, offset_of, position_of};
use super::range::ByteRange;

/// The edits of a change set, by lines and columns.
#[derive(Debug, Clone)]
pub struct PositionedChange {
    edits: Vec<PositionedEdit>,
    encoding: Encoding,
}

#[derive(Debug, Clone)]
struct PositionedEdit {
    start: Position,
    end: Position,
    insert: String,
}

impl PositionedChange {
    /// Creates the change from a change set of the text `base`.
    pub fn new(base: &str, changes: &ChangeSet, encoding: Encoding) -> PositionedChange {
        let rope = Rope::from_str(base);
        let place = |edit: &Edit| PositionedEdit {
            start: position_of(&rope, edit.range.start, encoding),
            end: position_of(&rope, edit.range.end, encoding),
            insert: edit.insert.clone(),
        };
        PositionedChange {
            edits: changes.edits().iter().map(place).collect(),
            encoding,
        }
    }

    /// Returns the result of applying this change to `text`.
    pub fn applied_to(&self, text: &str) -> Option<String> {
        let rope = Rope::from_str(text);
        let offset = |position| offset_of(&rope, position, self.encoding);
        let edits = self.edits.iter().map(|one| Edit {
            range: ByteRange::new(offset(one.start), offset(one.end)),
            insert: one.insert.clone(),
        });
        ChangeSet::new(text.len(), edits.collect())?
            .apply(text)
            .ok()
    }

    /// Returns the text to which an editor applied this change to get `text`. Text that the change
    /// removed is restored from `base`, a similar text; `None` if it removed text and there is no
    /// such `base`.
    pub fn text_before(&self, text: &str, base: Option<&str>) -> Option<String> {
        let mut text = text.to_owned();
        for one in &self.edits {
            // The text before this position is already restored.
            let at = offset_of(&Rope::from_str(&text), one.start, self.encoding);
            let end = at + one.insert.len();
            if text.get(at..end) != Some(one.insert.as_str()) {
                return None;
            }
            text.replace_range(at..end, "");
            if one.start != one.end {
                let removed = removed_at(base?, &text, at)?;
                text.insert_str(at, &removed);
            }
        }
        Some(text)
    }
}

/// Returns the part of `base` that a text lacks at an offset.
fn removed_at(base: &str, text: &str, at: usize) -> Option<String> {
    let mut longer = 0;
    let mut shorter = 0;
    for edit in ChangeSet::between_lines(base, text).edits() {
        let start = edit.range.start + longer - shorter;
        longer += edit.insert.len();
        shorter += edit.range.len();
        let inside = at.checked_sub(start).filter(|at| *at <= edit.insert.len());
        let Some((head, tail)) = inside.and_then(|at| edit.insert.split_at_checked(at)) else {
            continue;
        };
        // Whole lines directly before and after the offset may be new lines that the base does
        // not contain.
        let line_head = head.rfind('\n').map_or(head, |end| &head[end + 1..]);
        let line_tail = tail.find('\n').map_or(tail, |end| &tail[..=end]);
        let was = edit.range.of(base);
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

/// Returns the first and the last line in which a text differs from another one. Lines start at 1.
pub fn differing_lines(text: &str, other: &str) -> Option<(usize, usize)> {
    let changes = ChangeSet::between_lines(text, other);
    let line = |at: usize| text[..at].lines().count();
    let first = changes.edits().first()?.range.start;
    let last = changes.edits().last()?.range.end;
    Some((line(first) + 1, line(last).max(line(first) + 1)))
}

/// Returns "line 3" or "lines 3 to 5".
pub fn lines_in_words((first, last): (usize, usize)) -> String {
    match first == last {
        true => format!("line {first}"),
        false => format!("lines {first} to {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_applied_to_its_base_gives_the_new_text_in_every_encoding() {
        let base = "a = '🙂' + b\nkept\nc\n";
        let text = "a = '🙂' + bb\nkept\nd\ne\n";
        let changes = ChangeSet::between_lines(base, text);
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            let change = PositionedChange::new(base, &changes, encoding);
            assert_eq!(change.applied_to(base).as_deref(), Some(text));
            assert_eq!(change.text_before(text, Some(base)).as_deref(), Some(base));
            // In another text the change applies at the same lines and columns.
            let other = base.replace("kept", "typed");
            let changed = change.applied_to(&other);
            assert_eq!(changed, Some(text.replace("kept", "typed")));
        }
    }

    #[test]
    fn removed_text_is_found_behind_an_earlier_difference() {
        let base = "one\ntwo\nkeep removed here\n";
        for first_line in ["one is longer", "o"] {
            let text = format!("{first_line}\ntwo\nkeep here\n");
            let at = text.find("here").unwrap();
            let removed = removed_at(base, &text, at);
            assert_eq!(removed.as_deref(), Some("removed "), "{first_line}");
        }
        assert_eq!(removed_at(base, base, 5), None);
    }

    #[test]
    fn differing_lines_are_the_first_and_the_last_that_differ() {
        let text = "a\nb\nc\nd\n";
        assert_eq!(differing_lines(text, "a\nB\nc\nd\n"), Some((2, 2)));
        assert_eq!(differing_lines(text, "a\nB\nc\nD\n"), Some((2, 4)));
        assert_eq!(differing_lines(text, "a\nb\nc\nd\ne\n"), Some((5, 5)));
        assert_eq!(differing_lines(text, text), None);
    }
}
