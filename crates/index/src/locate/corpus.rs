//! The part of the index that `locate` searches: symbols, files, postings (which symbols contain a
//! word) and texts.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::documents::Documents;
use crate::code::{Code, SymbolNumber, base_name};
use crate::facts::{Field, FieldCounts};
use crate::names::Names;
use crate::resolve::{FileId, Source};
use crate::words::{Term, all_words};
use starling_syntax::{FilePath, SymbolKind, SymbolPath};
use starling_workspace::Snapshot;

/// A file as `locate` uses it.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: FilePath,
    pub(super) module: String,
    pub(super) is_test: bool,
    pub(super) symbols: Range<u32>,
    /// Terms of the path: directories and file name, whole and in parts.
    pub(super) words: Vec<Term>,
}

/// A symbol as `locate` uses it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    pub(super) file: u32,
    pub(super) kind: SymbolKind,
    /// Number of the parent symbol. A module body is its own parent.
    pub(super) parent: u32,
    /// Number of the outermost symbol that contains this symbol, not counting the module body.
    pub(super) home: u32,
    /// Number of words in each field. For a module body, the path does not count as a name.
    pub(super) lengths: [u32; Field::ALL.len()],
}

/// Data that all queries share, precomputed for fast lookup.
#[derive(Debug, Default)]
pub(crate) struct Table {
    files: Vec<File>,
    /// Symbols by number. `None` if a number is unused.
    symbols: Vec<Option<Symbol>>,
    /// Symbols by the last part of their names.
    defined: FxHashMap<Box<str>, Vec<u32>>,
    /// Files by the dotted names of their modules.
    modules: FxHashMap<String, u32>,
    documents: DocumentCollections,
}

/// The document collections that are ranked by words.
#[derive(Debug, Default)]
pub(super) struct DocumentCollections {
    pub(super) symbols: Documents,
    pub(super) files: Documents,
    /// Outermost symbols together with everything inside them.
    pub(super) homes: Documents,
}

impl Table {
    pub(crate) fn new(code: &Code) -> Self {
        let mut table = Table {
            files: Vec::with_capacity(code.files().len()),
            symbols: vec![None; code.symbol_limit() as usize],
            defined: FxHashMap::default(),
            modules: FxHashMap::default(),
            documents: DocumentCollections::default(),
        };
        for file in code.files() {
            let first = table.files.len() as u32;
            let (mut functions, mut tests) = (0, 0);
            let (mut start, mut end) = (None, 0);
            for number in code.symbols_of(file) {
                let symbol = table.symbol(code, first, number);
                let name = base_name(code.symbol(number).name);
                match table.defined.get_mut(name) {
                    Some(known) => known.push(number.0),
                    None => drop(table.defined.insert(name.into(), vec![number.0])),
                }
                if matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method) {
                    functions += 1;
                    tests += u32::from(name.starts_with("test_"));
                }
                start.get_or_insert(number.0);
                end = number.0 + 1;
                table.symbols[number.0 as usize] = Some(symbol);
            }
            let path = code.path(file);
            let module = code.module(file);
            table.modules.entry(module.clone()).or_insert(first);
            table.files.push(File {
                path: path.clone(),
                module,
                // A file in which most functions are tests counts as a test file, whatever its
                // name.
                is_test: code.is_test(file) || (tests >= 2 && tests * 3 >= functions),
                symbols: start.unwrap_or(end)..end,
                words: path_words(path),
            });
        }
        table.documents = table.kinds();
        table
    }

    fn kinds(&self) -> DocumentCollections {
        let limit = self.symbols.len();
        let documents = |count: usize, of: &dyn Fn(u32, &Symbol) -> u32| {
            let all = (0..).zip(&self.symbols).filter_map(|(number, symbol)| {
                let symbol = symbol.as_ref()?;
                Some((number, of(number, symbol), symbol.lengths))
            });
            Documents::new(count, limit, all)
        };
        DocumentCollections {
            symbols: documents(limit, &|number, _| number),
            files: documents(self.files.len(), &|_, symbol| symbol.file),
            homes: documents(limit, &|_, symbol| symbol.home),
        }
    }

    fn symbol(&self, code: &Code, file: u32, number: SymbolNumber) -> Symbol {
        let view = code.symbol(number);
        let parent = code.parent(number);
        // Parents have lower numbers, so they are already in the table.
        let around = parent.and_then(|parent| self.symbols[parent.0 as usize]);
        let home = around.filter(|around| around.kind != SymbolKind::Module);
        let mut lengths = code.lengths(number);
        if view.kind == SymbolKind::Module {
            lengths[Field::Name as usize] = 0;
        }
        Symbol {
            file,
            kind: view.kind,
            parent: parent.map_or(number.0, |parent| parent.0),
            home: home.map_or(number.0, |around| around.home),
            lengths,
        }
    }
}

fn path_words(file: &FilePath) -> Vec<Term> {
    let path = file.as_str();
    let path = path.strip_suffix(".py").unwrap_or(path);
    let mut words: Vec<Term> = all_words(path).map(Term::of).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The code that a query searches: the index, and the data that all queries share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Corpus<'c> {
    code: &'c Code,
    table: &'c Table,
    snapshot: &'c Snapshot,
}

impl<'c> Corpus<'c> {
    pub(crate) fn new(code: &'c Code, table: &'c Table, snapshot: &'c Snapshot) -> Self {
        Corpus {
            code,
            table,
            snapshot,
        }
    }

    pub(super) fn files(&self) -> &'c [File] {
        &self.table.files
    }

    /// Returns a number greater than all symbol numbers.
    pub(super) fn symbol_limit(&self) -> usize {
        self.table.symbols.len()
    }

    /// Returns all symbols with their numbers.
    pub(super) fn symbols(&self) -> impl Iterator<Item = (u32, &'c Symbol)> + use<'c> {
        let numbered = (0..).zip(&self.table.symbols);
        numbered.filter_map(|(number, symbol)| Some((number, symbol.as_ref()?)))
    }

    pub(super) fn symbol(&self, number: u32) -> &'c Symbol {
        let symbol = self.table.symbols[number as usize].as_ref();
        symbol.expect("symbol numbers come from files of the index")
    }

    pub(super) fn file_of(&self, number: u32) -> &'c File {
        &self.table.files[self.symbol(number).file as usize]
    }

    pub(super) fn is_test(&self, number: u32) -> bool {
        self.file_of(number).is_test
    }

    /// Returns whether a number is used by a symbol outside of tests.
    pub(super) fn counts(&self, number: u32) -> bool {
        let symbol = self.table.symbols[number as usize].as_ref();
        symbol.is_some_and(|symbol| !self.table.files[symbol.file as usize].is_test)
    }

    pub(super) fn path(&self, number: u32) -> SymbolPath {
        let name = self.code.symbol(SymbolNumber(number)).name;
        SymbolPath::new(self.file_of(number).path.clone(), name)
    }

    /// Returns the full name: `Class.method`.
    pub(super) fn name(&self, number: u32) -> &'c str {
        self.code.symbol(SymbolNumber(number)).name
    }

    /// Returns the last part of the name.
    pub(super) fn base_name(&self, number: u32) -> &'c str {
        base_name(self.name(number))
    }

    pub(super) fn signature(&self, number: u32) -> &'c str {
        self.code.symbol(SymbolNumber(number)).signature
    }

    /// Returns the first and last line, counted from 1.
    pub(super) fn lines(&self, number: u32) -> (u32, u32) {
        self.code.symbol(SymbolNumber(number)).lines
    }

    /// Returns the symbols that contain a term, in order. The symbols of a file are adjacent.
    pub(super) fn postings(
        &self,
        term: Term,
    ) -> impl Iterator<Item = (u32, FieldCounts)> + use<'c> {
        let table = self.table;
        self.code
            .postings(term)
            .filter_map(move |(number, mut counts)| {
                let symbol = table.symbols[number.0 as usize].as_ref()?;
                if symbol.kind == SymbolKind::Module {
                    counts.0[Field::Name as usize] = 0;
                }
                (counts.total() > 0).then_some((number.0, counts))
            })
    }

    pub(super) fn documents(&self) -> &'c DocumentCollections {
        &self.table.documents
    }

    /// Returns the last parts of all names, each with its symbols.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'c str, &'c [u32])> + use<'c> {
        let all = self.table.defined.iter();
        all.map(|(name, ids)| (&**name, ids.as_slice()))
    }

    /// Returns the symbols whose last name part is `name`.
    pub(super) fn defined(&self, name: &str) -> &'c [u32] {
        self.table.defined.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the file of a module.
    pub(super) fn module(&self, dotted: &str) -> Option<u32> {
        self.table.modules.get(dotted).copied()
    }

    /// Returns the names of a file, if they can be decoded.
    pub(super) fn names_of(&self, file: u32) -> Option<Arc<Names>> {
        self.code.names(FileId(file))
    }

    /// Returns the number of files that contain the identifier.
    pub(super) fn mentions(&self, name: &str) -> u32 {
        self.code.mentioning(name).len() as u32
    }
}

/// Cache for one query: the texts of files, and in how many files each name occurs.
#[derive(Default)]
pub(super) struct Texts {
    known: HashMap<u32, Option<Arc<str>>>,
    mentions: FxHashMap<String, u32>,
}

impl Texts {
    /// Returns the number of files that contain an identifier.
    pub(super) fn mentions(&mut self, corpus: &Corpus<'_>, name: &str) -> u32 {
        if let Some(known) = self.mentions.get(name) {
            return *known;
        }
        let count = corpus.mentions(name);
        self.mentions.insert(name.to_owned(), count);
        count
    }

    /// Returns the text that a symbol owns, without the text of its children.
    pub(super) fn own(&mut self, corpus: &Corpus<'_>, number: u32) -> String {
        let file = corpus.symbol(number).file;
        let read = || {
            corpus
                .snapshot
                .read(&corpus.files()[file as usize].path)
                .ok()
        };
        let Some(text) = self.known.entry(file).or_insert_with(read) else {
            return String::new();
        };
        let (first, last) = corpus.lines(number);
        let symbols = corpus.files()[file as usize].symbols.clone();
        let children: Vec<(u32, u32)> = symbols
            .filter(|other| *other != number && corpus.symbol(*other).parent == number)
            .map(|child| corpus.lines(child))
            .collect();
        let own = |line: &u32| {
            !children
                .iter()
                .any(|(first, last)| first <= line && line <= last)
        };
        let lines = (1..)
            .zip(text.split_inclusive('\n'))
            .skip(first as usize - 1);
        let lines = lines.take_while(|(line, _)| *line <= last);
        lines
            .filter(|(line, _)| own(line))
            .map(|(_, text)| text)
            .collect()
    }
}
