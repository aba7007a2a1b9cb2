//! Writes a segment from the facts of some files.

use rustc_hash::FxHashMap;

use super::layout::{
    ALIGNMENT, FileRecord, Header, IdentifierRecord, MAGIC, NONE, Range, SECTIONS, Section,
    SymbolRecord, TermRecord, VERSION, push_number,
};
use super::{checksum, hash_of, kind_number};
use crate::facts::{FieldCounts, FileFacts, SymbolFacts};
use crate::names::Names;
use crate::words::Term;

/// Returns the bytes of a segment. Offsets have 32 bits, so a segment is limited to 4 GiB, far more
/// than its files need.
pub(crate) fn write(files: &[FileFacts]) -> Vec<u8> {
    let mut writer = Writer::default();
    for facts in files {
        writer.file(facts);
    }
    let Writer {
        files,
        symbols,
        strings,
        names,
        postings,
        identifiers,
    } = writer;
    let (terms, postings) = terms_of(postings);
    let (identifiers, places, strings) = identifiers_of(identifiers, strings);
    let mut out = SegmentOutput::new();
    out.section(Section::Files, bytemuck::cast_slice(&files));
    out.section(Section::Symbols, bytemuck::cast_slice(&symbols));
    out.section(Section::Terms, bytemuck::cast_slice(&terms));
    out.section(Section::Postings, &postings);
    out.section(Section::Identifiers, bytemuck::cast_slice(&identifiers));
    out.section(Section::Places, &places);
    out.section(Section::Names, &names);
    out.section(Section::Strings, &strings);
    out.finish()
}

/// The number of times that a term occurs in each field of a symbol.
struct Posting {
    term: Term,
    symbol: u32,
    counts: FieldCounts,
}

/// The symbols whose name is an identifier, and the files that mention it.
#[derive(Default)]
struct Identifier {
    symbols: Vec<u32>,
    files: Vec<u32>,
}

/// The content of the sections while they are being built.
#[derive(Default)]
struct Writer<'f> {
    files: Vec<FileRecord>,
    symbols: Vec<SymbolRecord>,
    strings: Vec<u8>,
    names: Vec<u8>,
    postings: Vec<Posting>,
    identifiers: FxHashMap<&'f str, Identifier>,
}

impl<'f> Writer<'f> {
    fn file(&mut self, facts: &'f FileFacts) {
        let number = self.files.len() as u32;
        let hash = hash_of(&facts.text);
        let first_symbol = self.symbols.len() as u32;
        for symbol in &facts.symbols {
            self.symbol(number, symbol);
        }
        for name in facts.names.identifiers() {
            self.identifiers.entry(name).or_default().files.push(number);
        }
        let names = self.names(&facts.names);
        let path = self.string(facts.file.as_str());
        self.files.push(FileRecord {
            hash: [hash as u64, (hash >> 64) as u64],
            path,
            names,
            first_symbol,
            symbols: facts.symbols.len() as u32,
            bytes: facts.bytes_read as u32,
            references: facts.names.occurrences().len() as u32,
        });
    }

    fn symbol(&mut self, file: u32, facts: &'f SymbolFacts) {
        let number = self.symbols.len() as u32;
        let record = SymbolRecord {
            file,
            parent: facts.parent.unwrap_or(NONE),
            kind: kind_number(facts.kind),
            lines: [facts.lines.0, facts.lines.1],
            line: facts.line,
            lengths: facts.lengths,
            name: self.string(&facts.name),
            signature: self.string(&facts.signature),
            doc: self.string(&facts.doc),
        };
        self.symbols.push(record);
        let base = base_name(&facts.name);
        if !base.is_empty() {
            self.identifiers
                .entry(base)
                .or_default()
                .symbols
                .push(number);
        }
        let postings = facts.terms.iter().map(|(term, counts)| Posting {
            term: *term,
            symbol: number,
            counts: *counts,
        });
        self.postings.extend(postings);
    }

    fn names(&mut self, names: &Names) -> Range {
        let start = self.names.len();
        let bytes = std::mem::take(&mut self.names);
        self.names = postcard::to_extend(names, bytes).expect("names can be serialized");
        Range {
            start: start as u32,
            length: (self.names.len() - start) as u32,
        }
    }

    fn string(&mut self, text: &str) -> Range {
        push_string(&mut self.strings, text)
    }
}

/// Returns the last part of a symbol's name, without a suffix such as `#2`.
fn base_name(name: &str) -> &str {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.split('#').next().unwrap_or(last)
}

fn push_string(strings: &mut Vec<u8>, text: &str) -> Range {
    let start = strings.len() as u32;
    strings.extend_from_slice(text.as_bytes());
    Range {
        start,
        length: text.len() as u32,
    }
}

/// Returns the terms in order, and the encoded postings. Each posting consists of the difference to
/// the previous symbol number, a byte that marks the fields with a count, and these counts.
fn terms_of(mut postings: Vec<Posting>) -> (Vec<TermRecord>, Vec<u8>) {
    postings.sort_unstable_by_key(|posting| (posting.term, posting.symbol));
    let mut terms = Vec::new();
    let mut bytes = Vec::with_capacity(postings.len() * 3);
    for of_term in postings.chunk_by(|a, b| a.term == b.term) {
        let start = bytes.len() as u32;
        let mut last = 0;
        for posting in of_term {
            push_number(&mut bytes, posting.symbol - last);
            last = posting.symbol;
            push_counts(&mut bytes, &posting.counts);
        }
        terms.push(TermRecord {
            term: of_term[0].term.bits(),
            postings: Range {
                start,
                length: bytes.len() as u32 - start,
            },
        });
    }
    (terms, bytes)
}

fn push_counts(bytes: &mut Vec<u8>, counts: &FieldCounts) {
    let filled = counts.0.iter().enumerate().filter(|(_, count)| **count > 0);
    bytes.push(filled.clone().fold(0, |mask, (field, _)| mask | 1 << field));
    bytes.extend(filled.map(|(_, count)| *count));
}

fn identifiers_of(
    identifiers: FxHashMap<&str, Identifier>,
    mut strings: Vec<u8>,
) -> (Vec<IdentifierRecord>, Vec<u8>, Vec<u8>) {
    let mut identifiers: Vec<_> = identifiers.into_iter().collect();
    identifiers.sort_unstable_by_key(|(text, _)| *text);
    let mut places = Vec::new();
    let records = identifiers
        .iter()
        .map(|(text, identifier)| IdentifierRecord {
            text: push_string(&mut strings, text),
            symbols: push_numbers(&mut places, &identifier.symbols),
            files: push_numbers(&mut places, &identifier.files),
        });
    (records.collect(), places, strings)
}

/// Appends increasing numbers, encoded as differences.
fn push_numbers(bytes: &mut Vec<u8>, numbers: &[u32]) -> Range {
    let start = bytes.len() as u32;
    let mut last = 0;
    for number in numbers {
        push_number(bytes, number - last);
        last = *number;
    }
    Range {
        start,
        length: bytes.len() as u32 - start,
    }
}

/// The output bytes under construction.
struct SegmentOutput {
    bytes: Vec<u8>,
    sections: [Range; SECTIONS],
}

impl SegmentOutput {
    fn new() -> Self {
        SegmentOutput {
            bytes: vec![0; size_of::<Header>()],
            sections: [Range::default(); SECTIONS],
        }
    }

    fn section(&mut self, section: Section, content: &[u8]) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        self.sections[section as usize] = Range {
            start: self.bytes.len() as u32,
            length: content.len() as u32,
        };
        self.bytes.extend_from_slice(content);
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        let mut header = Header {
            magic: MAGIC,
            checksum: 0,
            version: VERSION,
            unused: 0,
            sections: self.sections,
        };
        self.bytes[..size_of::<Header>()].copy_from_slice(bytemuck::bytes_of(&header));
        header.checksum = checksum(&self.bytes);
        self.bytes[..size_of::<Header>()].copy_from_slice(bytemuck::bytes_of(&header));
        self.bytes
    }
}
