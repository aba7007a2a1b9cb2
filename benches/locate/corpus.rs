//! What locating asks of the index: symbols, files, and which symbols hold a term, in which fields.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use super::fields::{FIELDS, Field};
use crate::index::facts::FileFacts;
use crate::index::words::{Term, all_words};
use crate::syntax::{FilePath, SymbolKind, SymbolPath};

/// Terms are hashes already.
type TermMap<T> = HashMap<Term, T, BuildHasherDefault<Ready>>;

/// Takes a hash as it is.
#[derive(Default)]
struct Ready(u64);

impl Hasher for Ready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// How often a term stands in each field.
pub(in crate::index) type Counts = [u8; FIELDS];

#[derive(Debug)]
pub(super) struct File {
    pub(super) path: FilePath,
    pub(super) module: String,
    pub(super) is_test: bool,
    pub(super) symbols: Range<u32>,
    pub(super) text: Arc<str>,
    /// Of its path: directories and name, whole and in parts.
    pub(super) words: Vec<Term>,
}

#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) file: u32,
    pub(super) path: SymbolPath,
    pub(super) kind: SymbolKind,
    pub(super) lines: (u32, u32),
    /// The symbol around it; its own number for a module body.
    pub(super) parent: u32,
    /// The outermost symbol around it below the module body, or itself.
    pub(super) home: u32,
    /// The terms of what it owns.
    pub(super) bag: Range<u32>,
}

/// The code of one moment, ready to be asked.
#[derive(Debug, Default)]
pub(in crate::index) struct Corpus {
    pub(super) files: Vec<File>,
    pub(super) symbols: Vec<Symbol>,
    /// Of each symbol and field.
    pub(super) lengths: Vec<[u32; FIELDS]>,
    /// How often other code mentions the name of each symbol, and tests: from 0 to about 1.
    pub(super) central: Vec<f32>,
    pub(super) exercised: Vec<f32>,
    bags: Vec<(Term, Counts)>,
    postings: TermMap<Vec<(u32, Counts)>>,
    defined: HashMap<String, Vec<u32>>,
    defined_terms: TermMap<Vec<u32>>,
}

impl Corpus {
    pub(in crate::index) fn new(files: &[Arc<FileFacts>]) -> Self {
        let mut corpus = Corpus::default();
        for facts in files.iter().filter(|facts| !facts.symbols.is_empty()) {
            corpus.add(facts);
        }
        corpus.count_mentions();
        corpus
    }

    fn add(&mut self, facts: &FileFacts) {
        let first = self.symbols.len() as u32;
        let number = self.files.len() as u32;
        let mut by_name: HashMap<&str, u32> = HashMap::new();
        for symbol in &facts.symbols {
            let id = self.symbols.len() as u32;
            by_name.insert(&symbol.path.name, id);
            let around = symbol.path.name.rsplit_once('.').map_or("", |(around, _)| around);
            let parent = by_name.get(around).copied().unwrap_or(first);
            let home = match parent == first {
                true => id,
                false => self.symbols[parent as usize].home,
            };
            let start = self.bags.len() as u32;
            let mut lengths = [0; FIELDS];
            for (term, counts) in &symbol.fields {
                self.bags.push((*term, *counts));
                self.postings.entry(*term).or_default().push((id, *counts));
                for (length, count) in lengths.iter_mut().zip(counts) {
                    *length += u32::from(*count);
                }
            }
            self.lengths.push(lengths);
            let base = symbol.path.base_name();
            if !base.is_empty() {
                self.defined.entry(base.to_owned()).or_default().push(id);
                self.defined_terms.entry(Term::of(base)).or_default().push(id);
            }
            self.symbols.push(Symbol {
                file: number,
                path: symbol.path.clone(),
                kind: symbol.kind,
                lines: symbol.lines,
                parent,
                home,
                bag: start..self.bags.len() as u32,
            });
        }
        self.files.push(File {
            path: facts.file.clone(),
            module: facts.module(),
            is_test: facts.is_test || mostly_tests(facts),
            symbols: first..self.symbols.len() as u32,
            text: facts.text.clone(),
            words: path_words(&facts.file),
        });
    }

    fn count_mentions(&mut self) {
        for id in 0..self.symbols.len() as u32 {
            let base = self.symbol(id).path.base_name();
            let definitions = self.defined(base).len().max(1) as f32;
            let (mut code, mut tests) = (0.0, 0.0);
            if !base.is_empty() {
                for (other, counts) in self.postings(Term::of(base)) {
                    if *other == id || counts[Field::Code as usize] + counts[Field::Signature as usize] == 0 {
                        continue;
                    }
                    *(if self.is_test(*other) { &mut tests } else { &mut code }) += 1.0;
                }
            }
            self.central.push((1.0 + code / definitions).ln() / 6.0);
            self.exercised.push((1.0 + tests / definitions).ln() / 6.0);
        }
    }

    /// The symbols that hold a term, in order.
    pub(super) fn postings(&self, term: Term) -> &[(u32, Counts)] {
        self.postings.get(&term).map_or(&[], Vec::as_slice)
    }

    /// The terms of what a symbol owns.
    pub(super) fn bag(&self, symbol: u32) -> &[(Term, Counts)] {
        let bag = &self.symbols[symbol as usize].bag;
        &self.bags[bag.start as usize..bag.end as usize]
    }

    /// The symbols called `name`.
    pub(super) fn defined(&self, name: &str) -> &[u32] {
        self.defined.get(name).map_or(&[], Vec::as_slice)
    }

    /// The symbols whose name is this term.
    pub(super) fn defined_as(&self, term: Term) -> &[u32] {
        self.defined_terms.get(&term).map_or(&[], Vec::as_slice)
    }

    pub(super) fn symbol(&self, id: u32) -> &Symbol {
        &self.symbols[id as usize]
    }

    pub(super) fn file_of(&self, id: u32) -> &File {
        &self.files[self.symbol(id).file as usize]
    }

    pub(super) fn is_test(&self, id: u32) -> bool {
        self.file_of(id).is_test
    }
}

/// How often `field` counts in these counts.
pub(super) fn count(counts: &Counts, field: Field) -> u8 {
    counts[field as usize]
}

fn path_words(file: &FilePath) -> Vec<Term> {
    let path = file.as_str();
    let mut words: Vec<Term> = all_words(path.strip_suffix(".py").unwrap_or(path)).map(Term::of).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Whether most functions of a file are tests, whatever it is called.
fn mostly_tests(facts: &FileFacts) -> bool {
    let callable = |kind| matches!(kind, SymbolKind::Function | SymbolKind::Method);
    let all = facts.symbols.iter().filter(|s| callable(s.kind)).count();
    let tests = facts.symbols.iter().filter(|s| callable(s.kind) && s.path.base_name().starts_with("test_")).count();
    tests >= 2 && tests * 3 >= all
}
