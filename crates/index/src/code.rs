//! All code of one snapshot: the files in a set of segments that have not changed since they were
//! read.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::facts::{Field, FieldCounts, is_test, module_of};
use super::names::{Names, SymbolNumber as InFile};
pub(super) use super::resolve::FileId;
use super::resolve::Source;
use super::segment::{FileView, Segment, SymbolView};
use super::words::Term;
use starling_syntax::{FilePath, SymbolKind, SymbolPath};
use starling_workspace::Stamp;

/// The number of a symbol, unique in one `Code`. The symbols of a file have consecutive numbers in
/// order of their start, the module body first. Numbers of removed files stay unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SymbolNumber(pub(super) u32);

/// A file of the index: the segment that stores its index data (symbols, words, names), and the
/// stamp of the file when it was read.
#[derive(Debug, Clone)]
pub(super) struct IndexedFile {
    pub(super) file: FilePath,
    pub(super) segment: Arc<Segment>,
    /// Number of the file in the segment.
    pub(super) number: u32,
    /// Stamp (modification time and size) of the file on disk when it was read. `None` if the file
    /// could change later without a new stamp.
    pub(super) stamp: Option<Stamp>,
}

impl IndexedFile {
    pub(super) fn view(&self) -> FileView<'_> {
        self.segment.file(self.number)
    }
}

/// A segment (a stored part of the index) of this code. The number of its first symbol is
/// `first_symbol`, and its other symbols have the numbers after it.
#[derive(Debug)]
struct SegmentPart {
    segment: Arc<Segment>,
    first_symbol: u32,
    /// Files by their number in the segment. `None` if the file has changed or was removed.
    files: Vec<Option<FileId>>,
}

/// A file of the code, with data that is derived from it.
#[derive(Debug)]
struct FileEntry {
    known: IndexedFile,
    part: usize,
    is_test: bool,
    /// Names of the file, decoded at first use.
    names: OnceLock<Option<Arc<Names>>>,
}

/// All code of one snapshot. See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Code {
    parts: Vec<SegmentPart>,
    files: Vec<FileEntry>,
    symbols: u32,
    /// Directories that contain a top-level package or module, by its name. Computed at first use.
    packages: OnceLock<HashMap<String, Vec<String>>>,
}

/// Names of source directories. Modules in them are imported without the directory's name.
const SOURCE_ROOTS: [&str; 3] = ["src", "lib", "python"];

impl Code {
    /// Builds the code of these files, which can be in any order.
    pub(super) fn of(mut files: Vec<IndexedFile>) -> Self {
        files.sort_unstable_by(|a, b| a.file.cmp(&b.file));
        let mut code = Code::default();
        for known in files {
            let part = code.part(&known.segment);
            let id = FileId(code.files.len() as u32);
            code.parts[part].files[known.number as usize] = Some(id);
            let is_test = is_test(&known.file);
            code.files.push(FileEntry {
                known,
                part,
                is_test,
                names: OnceLock::new(),
            });
        }
        code
    }

    fn part(&mut self, segment: &Arc<Segment>) -> usize {
        let same = |part: &SegmentPart| Arc::ptr_eq(&part.segment, segment);
        // Adjacent files are usually in the same segment.
        if let Some(place) = self.parts.iter().rposition(same) {
            return place;
        }
        self.parts.push(SegmentPart {
            segment: segment.clone(),
            first_symbol: self.symbols,
            files: vec![None; segment.file_count() as usize],
        });
        self.symbols += segment.symbol_count();
        self.parts.len() - 1
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.parts.iter().map(|part| &part.segment)
    }

    /// Returns all files in order of their paths.
    pub(super) fn known(&self) -> impl Iterator<Item = &IndexedFile> {
        self.files.iter().map(|entry| &entry.known)
    }

    pub(super) fn files(&self) -> impl ExactSizeIterator<Item = FileId> + use<> {
        (0..self.files.len() as u32).map(FileId)
    }

    pub(super) fn find(&self, file: &FilePath) -> Option<FileId> {
        let place = self.files.binary_search_by(|e| e.known.file.cmp(file));
        place.ok().map(|place| FileId(place as u32))
    }

    pub(super) fn path(&self, file: FileId) -> &FilePath {
        &self.entry(file).known.file
    }

    pub(super) fn view(&self, file: FileId) -> FileView<'_> {
        self.entry(file).known.view()
    }

    /// Returns whether a file contains tests, judging by its path.
    pub(super) fn is_test(&self, file: FileId) -> bool {
        self.entry(file).is_test
    }

    /// Returns the dotted name of the file's module, relative to the root or to `src`.
    pub(super) fn module(&self, file: FileId) -> String {
        module_of(self.path(file))
    }

    /// Returns a number greater than all symbol numbers.
    pub(super) fn symbol_limit(&self) -> u32 {
        self.symbols
    }

    /// Returns the symbols of a file, in order of their start.
    pub(super) fn symbols_of(
        &self,
        file: FileId,
    ) -> impl DoubleEndedIterator<Item = SymbolNumber> + use<> {
        let entry = self.entry(file);
        let view = entry.known.view();
        let first = self.parts[entry.part].first_symbol + view.first_symbol;
        (first..first + view.symbols).map(SymbolNumber)
    }

    pub(super) fn symbol(&self, number: SymbolNumber) -> SymbolView<'_> {
        let part = self.part_of(number);
        part.segment.symbol(number.0 - part.first_symbol)
    }

    /// Returns the number of words in each field of a symbol.
    pub(super) fn lengths(&self, number: SymbolNumber) -> [u32; Field::ALL.len()] {
        let part = self.part_of(number);
        part.segment.lengths(number.0 - part.first_symbol)
    }

    /// Returns the symbol that directly contains this symbol.
    pub(super) fn parent(&self, number: SymbolNumber) -> Option<SymbolNumber> {
        let part = self.part_of(number);
        let parent = part.segment.symbol(number.0 - part.first_symbol).parent?;
        Some(SymbolNumber(part.first_symbol + parent))
    }

    /// Returns the file of a symbol, or `None` if the number is unused.
    pub(super) fn file_of(&self, number: SymbolNumber) -> Option<FileId> {
        let part = self.part_of(number);
        let file = part.segment.symbol(number.0 - part.first_symbol).file;
        part.files[file as usize]
    }

    pub(super) fn path_of(&self, number: SymbolNumber) -> Option<SymbolPath> {
        let file = self.file_of(number)?;
        Some(SymbolPath::new(
            self.path(file).clone(),
            self.symbol(number).name,
        ))
    }

    /// Returns the symbol with this path.
    pub(super) fn number_of(&self, symbol: &SymbolPath) -> Option<SymbolNumber> {
        let mut symbols = self.symbols_of(self.find(&symbol.file)?);
        symbols.find(|number| self.symbol(*number).name == symbol.name)
    }

    /// Returns the innermost symbol at a line, counted from 1.
    pub(super) fn owner(&self, file: FileId, line: u32) -> Option<SymbolNumber> {
        let holds = |number: &SymbolNumber| {
            let (first, last) = self.symbol(*number).lines;
            first <= line && line <= last
        };
        // Symbols are in order of their start, so the last one that contains the line is the
        // innermost.
        let owner = self.symbols_of(file).rev().find(holds);
        owner.or_else(|| self.symbols_of(file).next())
    }

    /// Returns the symbols that contain a term, in order of their numbers.
    pub(super) fn postings(&self, term: Term) -> impl Iterator<Item = (SymbolNumber, FieldCounts)> {
        self.parts.iter().flat_map(move |part| {
            let found = part.segment.postings(term);
            found.filter_map(move |(number, counts)| {
                let file = part.segment.symbol_file(number);
                let lives = part.files[file as usize].is_some();
                lives.then_some((SymbolNumber(part.first_symbol + number), counts))
            })
        })
    }

    /// Returns the symbols whose own name is `name`, in order of their numbers.
    pub(super) fn called(&self, name: &str) -> impl Iterator<Item = SymbolNumber> {
        self.parts.iter().flat_map(move |part| {
            let found = part.segment.called(name);
            found.filter_map(move |number| {
                let file = part.segment.symbol_file(number);
                let lives = part.files[file as usize].is_some();
                lives.then_some(SymbolNumber(part.first_symbol + number))
            })
        })
    }

    /// Returns the files whose code contains the identifier `name`.
    pub(super) fn mentioning(&self, name: &str) -> Vec<FileId> {
        let in_part = |part: &SegmentPart| -> Vec<FileId> {
            let found = part.segment.mentioning(name);
            found.filter_map(|file| part.files[file as usize]).collect()
        };
        let mut files: Vec<FileId> = self.parts.iter().flat_map(in_part).collect();
        files.sort_unstable();
        files
    }

    fn part_of(&self, number: SymbolNumber) -> &SegmentPart {
        let after = self
            .parts
            .partition_point(|part| part.first_symbol <= number.0);
        &self.parts[after.saturating_sub(1)]
    }

    fn entry(&self, file: FileId) -> &FileEntry {
        &self.files[file.0 as usize]
    }
}

/// The resolver reads the code through this trait. Files are numbered in the order of their paths.
impl Source for Code {
    fn file(&self, path: &str) -> Option<FileId> {
        let place = self
            .files
            .binary_search_by(|e| e.known.file.as_str().cmp(path));
        place.ok().map(|place| FileId(place as u32))
    }

    fn path(&self, file: FileId) -> FilePath {
        Code::path(self, file).clone()
    }

    fn mentioning(&self, identifier: &str) -> Vec<FileId> {
        Code::mentioning(self, identifier)
    }

    fn roots_of(&self, package: &str) -> &[String] {
        let packages = self.packages.get_or_init(|| packages(self));
        packages.get(package).map_or(&[], Vec::as_slice)
    }

    fn names(&self, file: FileId) -> Option<Arc<Names>> {
        let entry = self.entry(file);
        let decode = || {
            let bytes = entry.known.segment.names(entry.known.number);
            postcard::from_bytes(bytes).ok().map(Arc::new)
        };
        entry.names.get_or_init(decode).clone()
    }

    fn symbol(&self, file: FileId, number: InFile) -> Option<SymbolPath> {
        self.path_of(self.symbols_of(file).nth(number.index())?)
    }

    fn find(&self, symbol: &SymbolPath) -> Option<(FileId, InFile)> {
        let file = Code::find(self, &symbol.file)?;
        let mut symbols = self.symbols_of(file);
        let place = symbols.position(|number| self.symbol(number).name == symbol.name)?;
        Some((file, InFile(place as u32)))
    }
}

/// Returns the directories that contain top-level packages, or modules of source directories, by
/// the names of the packages and modules.
fn packages(code: &Code) -> HashMap<String, Vec<String>> {
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    let mut add = |directory: &str, name: &str| {
        let roots = found.entry(name.to_owned()).or_default();
        if !roots.iter().any(|root| root == directory) {
            roots.push(directory.to_owned());
        }
    };
    let is_source_root = |directory: &str| {
        let name = directory.rsplit('/').next().unwrap_or(directory);
        SOURCE_ROOTS.contains(&name)
    };
    for known in code.known() {
        let directory = known.file.directory();
        let name = known.file.name();
        if name == "__init__.py" {
            let (above, package) = directory.rsplit_once('/').unwrap_or(("", directory));
            let is_inner = Source::file(code, &format!("{above}/__init__.py")).is_some();
            if package.is_empty() || is_inner {
                continue;
            }
            add(above, package);
            // A namespace package, which has no `__init__.py`.
            if let Some((root, namespace)) = above.rsplit_once('/')
                && is_source_root(root)
            {
                add(root, namespace);
            }
        } else if is_source_root(directory)
            && let Some(module) = name.strip_suffix(".py")
        {
            add(directory, module);
        } else if let Some((root, namespace)) = directory.rsplit_once('/')
            && is_source_root(root)
        {
            add(root, namespace);
        }
    }
    found
}

/// Returns whether a symbol is a test function or method, judging by its name.
pub(super) fn is_test_function(symbol: &SymbolView<'_>) -> bool {
    match symbol.kind {
        SymbolKind::Function | SymbolKind::Method => base_name(symbol.name).starts_with("test"),
        SymbolKind::Module | SymbolKind::Class => false,
    }
}

/// Returns the last part of a symbol's name, without a suffix such as `#2`.
pub(super) fn base_name(name: &str) -> &str {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.split('#').next().unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::super::facts::FileFacts;
    use super::*;

    fn segment(texts: &[(&str, &str)]) -> Arc<Segment> {
        let read =
            |(path, text): &(&str, &str)| FileFacts::read(FilePath::new(*path), (*text).into());
        Arc::new(Segment::of(&texts.iter().map(read).collect::<Vec<_>>()))
    }

    fn known(segment: &Arc<Segment>, number: u32) -> IndexedFile {
        IndexedFile {
            file: FilePath::new(segment.file(number).path),
            segment: segment.clone(),
            number,
            stamp: None,
        }
    }

    /// Returns code in which `b.py` was rewritten. The segment `old` has the outdated text of
    /// `b.py`, and `new` has the current text.
    fn code() -> Code {
        let old = segment(&[
            ("a.py", "def ff():\n    return gg()\n"),
            ("b.py", "def gg():\n    return ff()\n"),
        ]);
        let new = segment(&[("b.py", "class C:\n    def h(self):\n        gg()\n")]);
        Code::of(vec![known(&new, 0), known(&old, 0)])
    }

    #[test]
    fn lookups_skip_the_outdated_text_of_a_rewritten_file() {
        let code = code();
        assert_eq!(code.files().len(), 2);
        assert_eq!(code.called("gg").count(), 0);
        let names = |name: &str| -> Vec<String> {
            let found = code.called(name).filter_map(|n| code.path_of(n));
            found.map(|path| path.to_string()).collect()
        };
        assert_eq!(names("h"), ["b.py::C.h"]);
        assert_eq!(code.mentioning("gg"), [FileId(0), FileId(1)]);
        assert_eq!(code.mentioning("ff"), [FileId(0)]);
        let holders: Vec<_> = code
            .postings(Term::of("gg"))
            .filter_map(|(number, _)| code.path_of(number))
            .map(|path| path.to_string())
            .collect();
        assert_eq!(holders, ["a.py::ff", "b.py::C.h"]);
    }

    #[test]
    fn symbols_are_found_by_file_line_and_path() {
        let code = code();
        let b = code.find(&FilePath::new("b.py")).unwrap();
        assert_eq!(code.find(&FilePath::new("c.py")), None);
        let symbols: Vec<_> = code.symbols_of(b).collect();
        assert_eq!(symbols.len(), 3);
        assert_eq!(code.symbol(symbols[2]).name, "C.h");
        assert_eq!(code.parent(symbols[2]), Some(symbols[1]));
        assert_eq!(code.file_of(symbols[2]), Some(b));
        let number = |path: &str| code.number_of(&path.parse().unwrap());
        assert_eq!(number("b.py::C.h"), Some(symbols[2]));
        assert_eq!((number("b.py::gg"), number("c.py::")), (None, None));
        let owner = |line| code.owner(b, line).map(|n| code.symbol(n).name);
        assert_eq!(
            [owner(1), owner(3), owner(99)],
            [Some("C"), Some("C.h"), Some("")]
        );
    }

    #[test]
    fn base_name_is_the_last_part_without_a_number_suffix() {
        assert_eq!(base_name("A.f#2"), "f");
    }
}
