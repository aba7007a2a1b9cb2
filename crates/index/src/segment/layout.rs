//! The byte layout of a segment: a header, then sections of equal records or of plain bytes.
//! Numbers use the machine's byte order, because a segment never leaves the machine that wrote it.

use bytemuck::{Pod, Zeroable};

/// Identifies a segment and its byte order.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"starling");
/// Version of the format. Incremented when the layout, the facts read from a file, or the splitting
/// of words changes.
pub(crate) const VERSION: u32 = 7;
/// Sections start at multiples of this number of bytes.
pub(super) const ALIGNMENT: usize = 8;

/// The sections of a segment, in the order in which they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Section {
    Files,
    Symbols,
    Terms,
    /// The symbols in which each term occurs, with the counts.
    Postings,
    Identifiers,
    /// The symbols that each identifier names, then the files that mention it.
    Places,
    /// The identifiers in the code of each file with their occurrences, encoded by `names::pack`.
    Names,
    /// Paths, names, signatures and docs, UTF-8.
    Strings,
}

pub(super) const SECTIONS: usize = 8;

/// Offset of the first byte that is included in the checksum.
pub(super) const CHECKED: usize = 16;

/// The header at the start of a segment.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: u64,
    /// Checksum of all bytes from [`CHECKED`] on.
    pub(super) checksum: u64,
    pub(super) version: u32,
    pub(super) unused: u32,
    pub(super) sections: [Range; SECTIONS],
}

/// A range of bytes. The ranges in the header are positions in the file, and all other ranges are
/// positions in a section.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Range {
    pub(super) start: u32,
    pub(super) length: u32,
}

/// The stored form of a file.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct FileRecord {
    /// Hash of the text, in two halves, because a `u128` would need a larger alignment.
    pub(super) hash: [u64; 2],
    pub(super) path: Range,
    pub(super) names: Range,
    pub(super) first_symbol: u32,
    pub(super) symbols: u32,
    /// Size of the text, in bytes.
    pub(super) bytes: u32,
    pub(super) references: u32,
}

/// The stored form of a symbol.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct SymbolRecord {
    pub(super) file: u32,
    /// Index of the parent among the file's symbols; [`NONE`] for the module body.
    pub(super) parent: u32,
    pub(super) kind: u32,
    pub(super) lines: [u32; 2],
    pub(super) line: u32,
    pub(super) lengths: [u32; 6],
    pub(super) name: Range,
    pub(super) signature: Range,
    pub(super) doc: Range,
}

pub(super) const NONE: u32 = u32::MAX;

/// The stored form of a term: the range of its postings.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TermRecord {
    pub(super) term: u64,
    pub(super) postings: Range,
}

/// The stored form of an identifier: the ranges of its text, its symbols and its files.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct IdentifierRecord {
    pub(super) text: Range,
    pub(super) symbols: Range,
    pub(super) files: Range,
}

/// Appends a number in LEB128: seven bits per byte, the last byte below 128.
pub(super) fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number from the front of `bytes`. Returns `None` at the end or if the bytes are not a
/// valid number.
pub(super) fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_numbers_are_read_back() {
        let numbers = [0, 1, 127, 128, 300, 1 << 20, u32::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            push_number(&mut bytes, number);
        }
        let mut rest = bytes.as_slice();
        for number in numbers {
            assert_eq!(take_number(&mut rest), Some(number));
        }
        assert_eq!(take_number(&mut rest), None);
        assert_eq!(take_number(&mut [0xff; 9].as_slice()), None);
        assert_eq!(take_number(&mut [0x80].as_slice()), None);
    }

    #[test]
    fn stored_records_have_no_padding() {
        assert_eq!(size_of::<Header>() % ALIGNMENT, 0);
        assert_eq!(size_of::<FileRecord>() % ALIGNMENT, 0);
        assert_eq!(size_of::<SymbolRecord>(), 18 * 4);
    }
}
