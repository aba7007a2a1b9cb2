//! Composes change sets. The text between the two change sets is a list of pieces, each kept from
//! the base text or inserted.

use super::{ChangeSet, Edit};
use crate::ByteRange;

/// Returns the composition of `first` and `next`. The base of `next` is the text after `first`.
pub(super) fn composed(first: &ChangeSet, next: &ChangeSet) -> ChangeSet {
    let mut pieces = Pieces::of(first);
    let mut result = Vec::new();
    let mut done = 0;
    for edit in &next.edits {
        pieces.take(edit.range.start - done, |piece| result.push(piece));
        result.push(Piece::Text(&edit.insert));
        pieces.take(edit.range.len(), drop);
        done = edit.range.end;
    }
    pieces.take(next.base_len - done, |piece| result.push(piece));
    from_pieces(first.base_len, &result)
}

/// A part of the text after a change set: kept from the base text, or inserted.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Kept(ByteRange),
    Text(&'a str),
}

impl<'a> Piece<'a> {
    fn len(self) -> usize {
        match self {
            Piece::Kept(range) => range.len(),
            Piece::Text(text) => text.len(),
        }
    }

    fn split(self, at: usize) -> (Piece<'a>, Piece<'a>) {
        match self {
            Piece::Kept(ByteRange { start, end }) => (
                Piece::Kept(ByteRange::new(start, start + at)),
                Piece::Kept(ByteRange::new(start + at, end)),
            ),
            // A split inside a character cannot happen if the change sets match the text. The
            // lengths alone cannot guarantee that, so round down instead of panicking.
            Piece::Text(text) => {
                let at = (0..=at).rev().find(|at| text.is_char_boundary(*at));
                let at = at.unwrap_or(0);
                (Piece::Text(&text[..at]), Piece::Text(&text[at..]))
            }
        }
    }
}

/// The pieces of the text after a change set, read from front to back.
struct Pieces<'a> {
    rest: std::vec::IntoIter<Piece<'a>>,
    current: Option<Piece<'a>>,
}

impl<'a> Pieces<'a> {
    fn of(changes: &'a ChangeSet) -> Self {
        let mut pieces = Vec::with_capacity(changes.edits.len() * 2 + 1);
        let mut done = 0;
        for edit in &changes.edits {
            pieces.push(Piece::Kept(ByteRange::new(done, edit.range.start)));
            pieces.push(Piece::Text(&edit.insert));
            done = edit.range.end;
        }
        pieces.push(Piece::Kept(ByteRange::new(done, changes.base_len)));
        Pieces {
            rest: pieces.into_iter(),
            current: None,
        }
    }

    fn take(&mut self, mut len: usize, mut give: impl FnMut(Piece<'a>)) {
        while len > 0 {
            let Some(piece) = self.current.take().or_else(|| self.rest.next()) else {
                return;
            };
            if piece.len() <= len {
                len -= piece.len();
                give(piece);
            } else {
                let (taken, left) = piece.split(len);
                self.current = Some(left);
                len = 0;
                give(taken);
            }
        }
    }
}

fn from_pieces(base_len: usize, pieces: &[Piece<'_>]) -> ChangeSet {
    let mut edits = Vec::new();
    let mut insert = String::new();
    let mut done = 0;
    let end = Piece::Kept(ByteRange::new(base_len, base_len));
    for piece in pieces.iter().chain([&end]) {
        match piece {
            Piece::Text(text) => insert.push_str(text),
            Piece::Kept(kept) if kept.is_empty() && kept.start < base_len => {}
            Piece::Kept(kept) => {
                edits.push(Edit {
                    range: ByteRange::new(done, kept.start),
                    insert: std::mem::take(&mut insert),
                });
                done = kept.end;
            }
        }
    }
    ChangeSet::new(base_len, edits).expect("kept pieces are in the order of the base")
}
