//! LSP positions: lines, and columns in UTF-8, UTF-16 or UTF-32 units.

use ropey::Rope;
use serde::{Deserialize, Serialize};

/// The unit of [`Position::column`], as negotiated with the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    Utf8,
    Utf16,
    Utf32,
}

/// A line and a column, both zero-based. Lines end at LF, CRLF or a lone CR, as in the LSP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// Returns the position of a byte offset. An offset past the end of the text is the end of the
/// text, an offset inside a character is the start of the character, and an offset inside a CRLF is
/// the end of the line.
pub fn position_of(text: &Rope, offset: usize, encoding: Encoding) -> Position {
    let char = text.byte_to_char(offset.min(text.len_bytes()));
    let line = text.char_to_line(char);
    let char = char.min(line_end(text, line));
    let start = text.line_to_char(line);
    let column = match encoding {
        Encoding::Utf8 => text.char_to_byte(char) - text.char_to_byte(start),
        Encoding::Utf16 => text.char_to_utf16_cu(char) - text.char_to_utf16_cu(start),
        Encoding::Utf32 => char - start,
    };
    Position {
        line: saturate(line),
        column: saturate(column),
    }
}

/// Returns the byte offset of a position. A column past the end of its line is the end of the line
/// (before its line break), and a line past the end of the text is the end of the text.
pub fn offset_of(text: &Rope, position: Position, encoding: Encoding) -> usize {
    let line = position.line as usize;
    if line >= text.len_lines() {
        return text.len_bytes();
    }
    let start = text.line_to_char(line);
    let column = position.column as usize;
    let char = match encoding {
        Encoding::Utf8 => {
            let byte = text.char_to_byte(start) + column;
            text.byte_to_char(byte.min(text.len_bytes()))
        }
        Encoding::Utf16 => {
            let unit = text.char_to_utf16_cu(start) + column;
            text.utf16_cu_to_char(unit.min(text.len_utf16_cu()))
        }
        Encoding::Utf32 => start + column,
    };
    text.char_to_byte(char.min(line_end(text, line)))
}

/// Returns the index of the character at which a line ends, before its line break.
fn line_end(text: &Rope, line: usize) -> usize {
    let start = text.line_to_char(line);
    let mut end = start + text.line(line).len_chars();
    for break_char in ['\n', '\r'] {
        if end > start && text.char(end - 1) == break_char {
            end -= 1;
        }
    }
    end
}

fn saturate(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    fn at(line: u32, column: u32) -> Position {
        Position { line, column }
    }

    #[test]
    fn columns_are_counted_in_the_units_of_the_encoding() {
        let text = Rope::from_str("x\naß🐦z");
        let z = 2 + 1 + 2 + 4;
        let columns = ALL.map(|encoding| position_of(&text, z, encoding).column);
        assert_eq!(columns, [7, 4, 3]);
        for encoding in ALL {
            assert_eq!(
                offset_of(&text, position_of(&text, z, encoding), encoding),
                z
            );
        }
    }

    #[test]
    fn lines_end_at_the_line_breaks_of_the_lsp() {
        let text = Rope::from_str("a\r\nb\rc\nd\u{c}e\u{2028}f");
        let lines: Vec<u32> = [0, 3, 5, 7, 9]
            .map(|offset| position_of(&text, offset, Encoding::Utf16).line)
            .into();
        assert_eq!(lines, [0, 1, 2, 3, 3]);
    }

    #[test]
    fn positions_outside_of_the_text_are_clamped() {
        let text = Rope::from_str("ab\r\nc🐦");
        assert_eq!(offset_of(&text, at(0, 99), Encoding::Utf16), 2);
        assert_eq!(
            offset_of(&text, at(9, 0), Encoding::Utf16),
            text.len_bytes()
        );
        // Columns inside a surrogate pair, and inside a UTF-8 sequence.
        assert_eq!(offset_of(&text, at(1, 2), Encoding::Utf16), 5);
        assert_eq!(offset_of(&text, at(1, 3), Encoding::Utf8), 5);
        assert_eq!(position_of(&text, 7, Encoding::Utf8), at(1, 1));
        assert_eq!(position_of(&text, 99, Encoding::Utf32), at(1, 2));
        assert_eq!(position_of(&text, 3, Encoding::Utf16), at(0, 2));
        assert_eq!(position_of(&Rope::new(), 0, Encoding::Utf16), at(0, 0));
    }

    #[test]
    fn offset_inside_a_line_break_is_the_end_of_its_line() {
        let text = Rope::from_str("ab\r\ncd\re\n");
        for encoding in ALL {
            // Offsets before, inside and after the line break.
            assert_eq!(position_of(&text, 2, encoding), at(0, 2));
            assert_eq!(position_of(&text, 3, encoding), at(0, 2));
            assert_eq!(position_of(&text, 4, encoding), at(1, 0));
            assert_eq!(position_of(&text, 6, encoding), at(1, 2));
            assert_eq!(position_of(&text, 7, encoding), at(2, 0));
            // An empty line follows the last line break.
            assert_eq!(position_of(&text, 9, encoding), at(3, 0));
            assert_eq!(offset_of(&text, at(3, 0), encoding), 9);
            assert_eq!(offset_of(&text, at(3, 7), encoding), 9);
            assert_eq!(offset_of(&text, at(0, 3), encoding), 2);
            assert_eq!(offset_of(&text, at(1, 9), encoding), 6);
            assert_eq!(offset_of(&text, at(2, u32::MAX), encoding), 8);
            assert_eq!(offset_of(&text, at(u32::MAX, 0), encoding), 9);
        }
    }

    #[test]
    fn offset_inside_a_character_is_the_start_of_the_character() {
        let text = Rope::from_str("\u{feff}\u{1f426}\u{1f426}e\u{301}");
        let second = 3 + 4;
        // UTF-16 code units: one for the byte order mark, two for each bird.
        for (column, offset) in [
            (0, 0),
            (1, 3),
            (2, 3),
            (3, 7),
            (4, 7),
            (5, 11),
            (6, 12),
            (7, 14),
        ] {
            let found = offset_of(&text, at(0, column), Encoding::Utf16);
            assert_eq!(found, offset, "{column}");
        }
        for inside in 0..4 {
            let columns = ALL.map(|encoding| position_of(&text, second + inside, encoding).column);
            assert_eq!(columns, [7, 3, 2], "{inside}");
        }
        // UTF-8 columns inside a character.
        for column in 7..11 {
            assert_eq!(offset_of(&text, at(0, column), Encoding::Utf8), 7);
        }
    }

    proptest! {
        #[test]
        fn position_and_offset_are_inverse(text in "[a\u{e9}\u{1f426}\u{2028}\r\n]{0,40}") {
            let rope = Rope::from_str(&text);
            for (offset, _) in text.char_indices() {
                let inside_break = text[..offset].ends_with('\r') && text[offset..].starts_with('\n');
                if inside_break {
                    continue;
                }
                for encoding in ALL {
                    let position = position_of(&rope, offset, encoding);
                    prop_assert_eq!(offset_of(&rope, position, encoding), offset);
                }
            }
        }

        #[test]
        fn offset_of_any_position_is_a_character_boundary(
            text in "[a\u{e9}\u{1f426}\r\n]{0,20}", line in 0u32..8, column in 0u32..30
        ) {
            let rope = Rope::from_str(&text);
            for encoding in ALL {
                prop_assert!(text.is_char_boundary(offset_of(&rope, at(line, column), encoding)));
            }
        }
    }
}
