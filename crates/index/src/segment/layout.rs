//! How a segment lies in bytes: a header, then sections of equal records or of plain bytes. Numbers are
//! in the machine's own order; a segment never leaves the machine that wrote it.

use bytemuck::{Pod, Zeroable};

/// Says what the bytes are, and in which order their numbers stand.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"starling");
/// Counts the changes of this layout, of what is read from a file, and of how words are cut.
pub(crate) const VERSION: u32 = 5;
/// Sections begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Section {
    Files,
    Symbols,
    Terms,
    /// For each term its symbols and their counts.
    Postings,
    Identifiers,
    /// For each identifier the symbols called so, then the files that mention it.
    Places,
    /// For each file what it says about names.
    Names,
    /// Paths, names, signatures and docs, UTF-8.
    Strings,
}

pub(super) const SECTIONS: usize = 8;

/// Where the bytes begin that the checksum covers.
pub(super) const CHECKED: usize = 16;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: u64,
    /// Of everything behind it.
    pub(super) checksum: u64,
    pub(super) version: u32,
    pub(super) unused: u32,
    pub(super) sections: [Range; SECTIONS],
}

/// Bytes of a section, or of the file where it stands in the header.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Range {
    pub(super) start: u32,
    pub(super) length: u32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct FileRecord {
    /// Of its text: two halves, since a `u128` would ask for a wider alignment.
    pub(super) hash: [u64; 2],
    pub(super) path: Range,
    pub(super) names: Range,
    pub(super) first_symbol: u32,
    pub(super) symbols: u32,
    /// Bytes of its text.
    pub(super) bytes: u32,
    pub(super) references: u32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct SymbolRecord {
    pub(super) file: u32,
    /// Place in the file; [`NONE`] for the module body.
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

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TermRecord {
    pub(super) term: u64,
    pub(super) postings: Range,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct IdentifierRecord {
    pub(super) text: Range,
    pub(super) symbols: Range,
    pub(super) files: Range,
}

/// Appends a number, seven bits to a byte, the last byte below 128.
pub(super) fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the front; `None` at the end or where the bytes are none.
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
    fn numbers_come_back() {
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
    fn records_have_no_gaps() {
        assert_eq!(size_of::<Header>() % ALIGNMENT, 0);
        assert_eq!(size_of::<FileRecord>() % ALIGNMENT, 0);
        assert_eq!(size_of::<SymbolRecord>(), 18 * 4);
    }
}
