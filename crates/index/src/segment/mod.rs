//! A segment is a part of the index: all facts about a set of files in one block of bytes, in
//! memory or mapped from a file. A segment is immutable; changed files get new segments.

mod layout;
mod write;

pub(super) use layout::VERSION;
pub(super) use write::write;

use std::fs::File;
use std::io;

use memmap2::Mmap;

use super::facts::{Field, FieldCounts};
use super::words::Term;
use layout::{
    CHECKED, FileRecord, Header, IdentifierRecord, MAGIC, NONE, Range, Section, SymbolRecord,
    TermRecord, take_number,
};
use starling_syntax::SymbolKind;

/// Error when bytes are not a valid segment. The index then parses the files again.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadSegment {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the file is truncated")]
    Cut,
    #[error("the checksum does not match the content")]
    Changed,
    #[error("it was written by another version of Starling")]
    Version,
}

/// Returns the hash of a text, which identifies unchanged files.
pub(super) fn hash_of(text: &str) -> u128 {
    xxhash_rust::xxh3::xxh3_128(text.as_bytes())
}

fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&bytes[CHECKED..])
}

/// The storage of a segment.
#[derive(Debug)]
enum SegmentStorage {
    /// Bytes stored as words, so that the records in them are aligned.
    Owned(Vec<u64>),
    Mapped(Mmap),
}

/// An immutable part of the index. See the module documentation.
#[derive(Debug)]
pub(super) struct Segment {
    bytes: SegmentStorage,
    header: Header,
}

/// A file of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileView<'s> {
    pub(super) path: &'s str,
    pub(super) hash: u128,
    /// Size of the text, in bytes.
    pub(super) bytes: u32,
    /// Number of the file's first symbol. The file's symbols have consecutive numbers.
    pub(super) first_symbol: u32,
    pub(super) symbols: u32,
    /// Number of name occurrences in the file.
    pub(super) references: u32,
}

/// A symbol of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct SymbolView<'s> {
    pub(super) file: u32,
    /// Number of the parent in the segment.
    pub(super) parent: Option<u32>,
    pub(super) kind: SymbolKind,
    pub(super) lines: (u32, u32),
    /// Line of the symbol's name, counted from 1.
    pub(super) line: u32,
    pub(super) name: &'s str,
    pub(super) signature: &'s str,
    pub(super) doc: &'s str,
}

impl Segment {
    /// Builds a segment in memory from the facts of some files.
    pub(super) fn of(files: &[super::facts::FileFacts]) -> Self {
        let written = write(files);
        let words = bytemuck::allocation::pod_collect_to_vec(&written);
        let header = *bytemuck::from_bytes(&written[..size_of::<Header>()]);
        Segment {
            bytes: SegmentStorage::Owned(words),
            header,
        }
    }

    /// Opens a stored segment by mapping its file.
    ///
    /// # Errors
    /// Fails if the file cannot be mapped or its content is invalid.
    pub(super) fn open(file: &File) -> Result<Self, BadSegment> {
        // SAFETY: a segment's file is never overwritten under its name, only removed, and a removed
        // file stays mapped. The checksum is compared before anything is read.
        let map = unsafe { Mmap::map(file)? };
        let start = map.get(..size_of::<Header>()).ok_or(BadSegment::Cut)?;
        let header: Header = bytemuck::pod_read_unaligned(start);
        if header.magic != MAGIC || header.version != VERSION {
            return Err(BadSegment::Version);
        }
        if checksum(&map) != header.checksum {
            return Err(BadSegment::Changed);
        }
        let whole = |section: &Range| (section.start as usize) + (section.length as usize);
        if header.sections.iter().any(|range| whole(range) > map.len()) {
            return Err(BadSegment::Cut);
        }
        Ok(Segment {
            bytes: SegmentStorage::Mapped(map),
            header,
        })
    }

    /// Returns this segment, mapped from the file to which its bytes were just written.
    ///
    /// # Errors
    /// Fails if the file cannot be mapped or has another length.
    pub(super) fn mapped(&self, file: &File) -> std::io::Result<Self> {
        // SAFETY: as in `open`. The bytes were just written, so the checksum need not be compared.
        let map = unsafe { Mmap::map(file)? };
        if map.len() != self.bytes().len() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Segment {
            bytes: SegmentStorage::Mapped(map),
            header: self.header,
        })
    }

    /// Returns the bytes as they are stored.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            SegmentStorage::Owned(words) => bytemuck::cast_slice(words),
            SegmentStorage::Mapped(map) => map,
        }
    }

    /// Returns whether the segment is mapped from a file.
    pub(super) fn is_stored(&self) -> bool {
        match self.bytes {
            SegmentStorage::Owned(_) => false,
            SegmentStorage::Mapped(_) => true,
        }
    }

    /// Returns a number that identifies the segment by its content.
    pub(super) fn identity(&self) -> u64 {
        self.header.checksum
    }

    pub(super) fn file_count(&self) -> u32 {
        self.files().len() as u32
    }

    pub(super) fn symbol_count(&self) -> u32 {
        self.symbols().len() as u32
    }

    /// Returns a file by its number, which must be less than [`Segment::file_count`].
    pub(super) fn file(&self, number: u32) -> FileView<'_> {
        let record = &self.files()[number as usize];
        FileView {
            path: self.string(record.path),
            hash: u128::from(record.hash[0]) | u128::from(record.hash[1]) << 64,
            bytes: record.bytes,
            first_symbol: record.first_symbol,
            symbols: record.symbols,
            references: record.references,
        }
    }

    /// Returns a symbol by its number, which must be less than [`Segment::symbol_count`].
    pub(super) fn symbol(&self, number: u32) -> SymbolView<'_> {
        let record = &self.symbols()[number as usize];
        let first = self.files()[record.file as usize].first_symbol;
        SymbolView {
            file: record.file,
            parent: (record.parent != NONE).then(|| first + record.parent),
            kind: kind_of(record.kind),
            lines: (record.lines[0], record.lines[1]),
            line: record.line,
            name: self.string(record.name),
            signature: self.string(record.signature),
            doc: self.string(record.doc),
        }
    }

    /// Returns the number of words in each field of a symbol.
    pub(super) fn lengths(&self, number: u32) -> [u32; Field::ALL.len()] {
        self.symbols()[number as usize].lengths
    }

    /// Returns the file of a symbol.
    pub(super) fn symbol_file(&self, number: u32) -> u32 {
        self.symbols()[number as usize].file
    }

    /// Returns the stored identifiers and imports of a file, to be decoded by `names`.
    pub(super) fn names(&self, file: u32) -> &[u8] {
        let range = self.files()[file as usize].names;
        slice(self.section(Section::Names), range)
    }

    /// Returns the symbols that contain a term with their counts, in order of their numbers.
    pub(super) fn postings(&self, term: Term) -> impl Iterator<Item = (u32, FieldCounts)> {
        let terms: &[TermRecord] = bytemuck::cast_slice(self.section(Section::Terms));
        let place = terms.binary_search_by_key(&term.bits(), |record| record.term);
        let mut rest = match place {
            Ok(place) => slice(self.section(Section::Postings), terms[place].postings),
            Err(_) => &[],
        };
        let mut symbol = 0;
        std::iter::from_fn(move || {
            symbol += take_number(&mut rest)?;
            Some((symbol, take_counts(&mut rest)?))
        })
    }

    /// Returns the symbols whose own name is `name`, in order of their numbers.
    pub(super) fn called(&self, name: &str) -> impl Iterator<Item = u32> {
        let range = self.identifier(name).map(|record| record.symbols);
        self.numbers(range)
    }

    /// Returns the files whose code contains `name`, in order of their numbers.
    pub(super) fn mentioning(&self, name: &str) -> impl Iterator<Item = u32> {
        let range = self.identifier(name).map(|record| record.files);
        self.numbers(range)
    }

    fn identifier(&self, name: &str) -> Option<&IdentifierRecord> {
        let records = self.identifier_records();
        let place = records.binary_search_by(|record| self.string(record.text).cmp(name));
        place.ok().map(|place| &records[place])
    }

    fn numbers(&self, range: Option<Range>) -> impl Iterator<Item = u32> {
        let places = self.section(Section::Places);
        let mut rest = range.map_or(&[][..], |range| slice(places, range));
        let mut number = 0;
        std::iter::from_fn(move || {
            number += take_number(&mut rest)?;
            Some(number)
        })
    }

    fn files(&self) -> &[FileRecord] {
        bytemuck::cast_slice(self.section(Section::Files))
    }

    fn symbols(&self) -> &[SymbolRecord] {
        bytemuck::cast_slice(self.section(Section::Symbols))
    }

    fn identifier_records(&self) -> &[IdentifierRecord] {
        bytemuck::cast_slice(self.section(Section::Identifiers))
    }

    fn string(&self, range: Range) -> &str {
        std::str::from_utf8(slice(self.section(Section::Strings), range)).unwrap_or_default()
    }

    fn section(&self, section: Section) -> &[u8] {
        slice(self.bytes(), self.header.sections[section as usize])
    }
}

fn slice(bytes: &[u8], range: Range) -> &[u8] {
    let start = range.start as usize;
    bytes
        .get(start..start + range.length as usize)
        .unwrap_or_default()
}

fn take_counts(bytes: &mut &[u8]) -> Option<FieldCounts> {
    let (mask, mut rest) = bytes.split_first()?;
    let mut counts = FieldCounts::default();
    for (field, count) in counts.0.iter_mut().enumerate() {
        if mask & (1 << field) != 0 {
            (*count, rest) = rest.split_first().map(|(count, rest)| (*count, rest))?;
        }
    }
    *bytes = rest;
    Some(counts)
}

fn kind_number(kind: SymbolKind) -> u32 {
    match kind {
        SymbolKind::Module => 0,
        SymbolKind::Class => 1,
        SymbolKind::Function => 2,
        SymbolKind::Method => 3,
    }
}

fn kind_of(number: u32) -> SymbolKind {
    match number {
        0 => SymbolKind::Module,
        1 => SymbolKind::Class,
        2 => SymbolKind::Function,
        _ => SymbolKind::Method,
    }
}

#[cfg(test)]
mod tests;
