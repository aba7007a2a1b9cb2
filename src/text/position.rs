//! Positions as editors count them: lines and columns in UTF-8, UTF-16 or UTF-32 units.

use ropey::Rope;
use serde::{Deserialize, Serialize};

/// The unit of [`Position::column`], as negotiated with the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    Utf8,
    Utf16,
    Utf32,
}

/// Line and column, both from 0. Lines end at LF, CRLF or a lone CR, as in the LSP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// The position of a byte offset; an offset past the end counts as the end, one inside a
/// character as its start.
pub fn position_of(text: &Rope, offset: usize, encoding: Encoding) -> Position {
    todo!()
}

/// The byte offset of a position. A column past the end of its line counts as the end of the line
/// (before its line break), a line past the end of the text as the end of the text.
pub fn offset_of(text: &Rope, position: Position, encoding: Encoding) -> usize {
    todo!()
}
