//! The code index: where things are, without a model. It is kept in the cache directory, brought up to
//! a snapshot on the first question, and carried over to later snapshots.

mod bm25;
mod code;
mod dangling;
mod facts;
mod fuzzy;
mod generated;
mod importable;
mod in_strings;
mod locate;
mod lookup;
mod map;
mod names;
mod nearest;
mod position;
mod progress;
mod read;
mod resolve;
mod search;
mod segment;
mod shadow;
mod store;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tokens;
mod trace;
mod words;

pub use importable::Importable;
pub use in_strings::InString;
pub use locate::{Candidate, Located, LocatedFile};
pub use lookup::{Definition, Description, Usage, Usages, Variable};
pub use map::{MapFile, MapSymbol, RepositoryMap, Seed};
pub use names::{
    LostUse, Rebound, binds, lost_uses, newly_undefined, rebound, says_plainly, undefined_names,
};
pub use position::{Definitions, NoName, Position};
pub use progress::reading;
pub use search::{Hit, Hits};
pub use shadow::{HiddenModule, Shadowing};
pub use tokens::count_tokens;
pub use trace::{Frame, frame, frames};

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use code::Code;
use read::Reading;
pub use resolve::{Certainty, Dangling, Heritage, Holder};
use starling_syntax::{FilePath, Language, SymbolPath, SymbolTree};
use starling_workspace::{ReadError, Snapshot};
use store::Store;

/// Skipped files that one warning names.
const SKIPPED_MOST: usize = 3;

/// The code of one snapshot.
#[derive(Debug)]
pub struct Index {
    snapshot: Snapshot,
    origin: Origin,
    opened: OnceLock<Opened>,
    /// Made on the first question to which it helps.
    table: OnceLock<locate::Table>,
}

/// Where the index begins.
#[derive(Debug)]
enum Origin {
    Nothing,
    Store(Store),
    /// Of an earlier snapshot: files with the same text are not read again.
    Earlier(Arc<Code>),
}

#[derive(Debug)]
struct Opened {
    code: Arc<Code>,
    parsed: usize,
    from_cache: bool,
    trouble: Option<String>,
}

/// What an index holds and how it came to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Files with a grammar.
    pub files: usize,
    pub symbols: u64,
    /// Occurrences of names.
    pub references: u64,
    /// Of their texts, without what programs wrote.
    pub bytes: u64,
    /// Files that were parsed now.
    pub parsed: usize,
    /// Whether a stored index was used.
    pub from_cache: bool,
    /// Why a stored index was not used, or the new one not stored.
    pub trouble: Option<String>,
}

impl Index {
    /// The index of a snapshot, in memory alone. Nothing is read before the first question.
    pub fn new(snapshot: Snapshot) -> Self {
        Index::begin(snapshot, Origin::Nothing)
    }

    /// The index of a snapshot that begins with what is stored below the directory `cache`, and is
    /// stored there when it is newer. Nothing is read before the first question.
    pub fn open(snapshot: Snapshot, cache: PathBuf) -> Self {
        let store = Store::new(&cache, snapshot.root());
        Index::begin(snapshot, Origin::Store(store))
    }

    /// Lets the index of the folder `of` begin with what is stored of the folder `like`, another
    /// checkout of the same project. Only the content of a file decides whether that still holds.
    ///
    /// # Errors
    /// Nothing is stored of `like`, or the cache cannot be written; the index is built anew then.
    pub fn lend(cache: &Path, like: &Path, of: &Path) -> std::io::Result<()> {
        Store::new(cache, of).begin_as(&Store::new(cache, like))
    }

    /// The index of a later snapshot: only files with another text are read.
    pub fn after(&self, snapshot: Snapshot) -> Self {
        let origin = match (self.opened.get(), &self.origin) {
            (Some(opened), _) => Origin::Earlier(opened.code.clone()),
            (None, Origin::Nothing) => Origin::Nothing,
            (None, Origin::Store(store)) => Origin::Store(store.clone()),
            (None, Origin::Earlier(code)) => Origin::Earlier(code.clone()),
        };
        Index::begin(snapshot, origin)
    }

    fn begin(snapshot: Snapshot, origin: Origin) -> Self {
        Index {
            snapshot,
            origin,
            opened: OnceLock::new(),
            table: OnceLock::new(),
        }
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Reads all files that changed, if that was not done yet. Every question does so; the first
    /// time it takes about a second for thousands of files.
    pub fn warm(&self) {
        self.opened();
    }

    /// What the index holds; see [`Index::warm`].
    pub fn report(&self) -> Report {
        let opened = self.opened();
        let mut report = Report {
            files: opened.code.files().len(),
            symbols: 0,
            references: 0,
            bytes: 0,
            parsed: opened.parsed,
            from_cache: opened.from_cache,
            trouble: opened.trouble.clone(),
        };
        for known in opened.code.known() {
            let view = known.view();
            report.symbols += u64::from(view.symbols);
            report.references += u64::from(view.references);
            report.bytes += u64::from(view.bytes);
        }
        report
    }

    /// Text files that are not in the index, with the reasons: files that are too long, have a deceptive
    /// name, or are not text in the encoding that they declare.
    pub fn skipped(&self) -> Vec<ReadError> {
        let code = self.code();
        let is_missing =
            |file: &&FilePath| Language::of(file) != Language::Plain && code.find(file).is_none();
        let missing = self.snapshot.files().iter().filter(is_missing);
        let unreadable = missing.filter_map(|file| self.snapshot.read(file).err());
        let mut skipped = self.snapshot.skipped().to_vec();
        skipped.extend(unreadable);
        skipped
    }

    /// Lines with all words of `query`, in any case, the best `limit` of them.
    pub fn search(&self, query: &str, limit: usize) -> Hits {
        search::search(self.code(), &self.snapshot, query, "", limit)
    }

    /// The same in files whose path holds `within`; where no line holds all words, the lines with most
    /// of them.
    pub fn search_most(&self, query: &str, within: &str, limit: usize) -> Hits {
        search::search_most(self.code(), &self.snapshot, query, within, limit)
    }

    /// The definitions of a name (`f`, `Class.method`, `module.Class`), code before tests.
    pub fn definitions(&self, name: &str) -> Vec<Definition> {
        lookup::definitions(self.code(), name)
    }

    /// The same without those that only the last part of a dotted name fits.
    pub fn definitions_of(&self, name: &str) -> Vec<Definition> {
        lookup::definitions_of(self.code(), name)
    }

    /// The variables of modules that a name (`NAME`, `module.NAME`, `path/to/file.py::NAME`) means.
    pub fn variables(&self, name: &str) -> Vec<Variable> {
        lookup::variables(self.code(), name)
    }

    /// Every place that means a variable of a module, those that set it among them; `None`: the module does
    /// not bind it.
    pub fn variable_uses(&self, of: &Variable) -> Option<Usages> {
        lookup::variable_uses(self.code(), &self.snapshot, of)
    }

    /// How a method stands to the bases of its class; what is no method stands alone.
    pub fn heritage(&self, symbol: &SymbolPath) -> Heritage {
        resolve::Resolver::new(self.code()).heritage(symbol)
    }

    /// Whether any attribute of a method's name can only be that method, as far as the code and its strings tell.
    pub fn is_only_attribute(&self, method: &SymbolPath) -> bool {
        resolve::Resolver::new(self.code()).is_only_attribute(method)
            && !in_strings::is_field(&self.snapshot, method.base_name())
    }

    /// Whether any file says an identifier.
    pub fn mentions(&self, identifier: &str) -> bool {
        !self.code().mentioning(identifier).is_empty()
    }

    /// What a symbol is; `None`: there is none of this path.
    pub fn describe(&self, symbol: &SymbolPath) -> Option<Description> {
        lookup::describe(self.code(), symbol)
    }

    /// The statements that import a name into a file, the most used in the workspace first.
    pub fn importable(&self, name: &str, file: &FilePath) -> Vec<Importable> {
        importable::importable(self.code(), name, file)
    }

    /// Where the name at a position is defined.
    ///
    /// # Errors
    /// No name stands there.
    pub fn definition_at(&self, at: &Position) -> Result<Definitions, NoName> {
        position::definition_at(self.code(), &self.snapshot, at)
    }

    /// The symbols whose names fit `query`, a name or parts and initials of one: the best `limit`, and
    /// how many there are in all.
    pub fn symbols(&self, query: &str, limit: usize) -> (Vec<Definition>, usize) {
        fuzzy::symbols(self.code(), query, limit)
    }

    /// Uses of a symbol, found by imports, scopes and types, where `name` says which: by its path
    /// (`shop/cart.py::Cart.total`), or as the only one of its name; else of anything of that name.
    /// At most `limit`, the certain ones first, code before tests.
    pub fn references(&self, name: &str, limit: usize) -> Usages {
        lookup::references(self.code(), &self.snapshot, name, limit)
    }

    /// The strings of code and data files of which a name is a whole part (`"module:Class"`): something may
    /// be found by them at run time.
    pub fn in_strings(&self, name: &str) -> Vec<InString> {
        in_strings::in_strings(&self.snapshot, name)
    }

    /// Whether a class, a function or the body of a module or a class gives a name a meaning anywhere, other
    /// than by an import.
    pub fn is_defined(&self, name: &str) -> bool {
        lookup::is_defined(self.code(), name)
    }

    /// The names that lead nowhere here and did not in `before`, of which only `changed` files differ:
    /// imports of what a module does not define, and attributes that a module or a class does not have.
    pub fn newly_dangling(&self, before: &Index, changed: &[FilePath]) -> Vec<Dangling> {
        let codes = (before.code(), self.code());
        dangling::newly_dangling(codes, (&before.snapshot, &self.snapshot), changed)
    }

    /// The module that a new file would hide from files that import it: one beside a package of its name,
    /// or one of Python's library.
    pub fn shadowing(&self, new: &SymbolTree) -> Option<Shadowing> {
        shadow::shadowing(self.code(), &self.snapshot, new)
    }

    /// The symbols that a text is likeliest about: a task, or the output of failing tests.
    pub fn locate(&self, text: &str, limit: usize) -> Vec<Located> {
        locate::locate(self.corpus(), text, limit)
    }

    /// The files that a text is likeliest about.
    pub fn locate_files(&self, text: &str, limit: usize) -> Vec<LocatedFile> {
        locate::locate_files(self.corpus(), text, limit)
    }

    /// What [`Index::locate`] knows of its candidates, files and symbols; its weights are learnt from
    /// these by `benches/locate`.
    pub fn candidates(&self, text: &str) -> (Vec<Candidate>, Vec<Candidate>) {
        locate::candidates(self.corpus(), text)
    }

    fn corpus(&self) -> locate::Corpus<'_> {
        let code = self.code();
        let table = self.table.get_or_init(|| locate::Table::new(code));
        locate::Corpus::new(code, table, &self.snapshot)
    }

    /// The files that matter around `seed` with the signatures that matter in them, in at most
    /// `tokens`.
    pub fn repository_map(&self, seed: Seed<'_>, tokens: usize) -> RepositoryMap {
        map::repository_map(self.code(), seed, tokens, |text, limit| {
            self.locate(text, limit)
        })
    }

    /// The tests that are likeliest to show whether symbols work, nearest first: test functions,
    /// or the module bodies of test files.
    pub fn nearest_tests(&self, symbols: &[SymbolPath], limit: usize) -> Vec<SymbolPath> {
        nearest::nearest_tests(self.code(), &self.snapshot, symbols, limit)
    }

    /// What of a test a runner can be asked for by name: the test itself, or the body of its module,
    /// which stands for the whole file.
    pub fn runnable(&self, test: &SymbolPath) -> SymbolPath {
        nearest::runnable(self.code(), test)
    }

    /// How many tests stand in a file.
    pub fn tests_in(&self, file: &FilePath) -> usize {
        let code = self.code();
        code.find(file)
            .map_or(0, |file| nearest::tests_in(code, file))
    }

    /// How many tests there are.
    pub fn test_count(&self) -> usize {
        let code = self.code();
        let counts = code.files().map(|file| nearest::tests_in(code, file));
        counts.sum()
    }

    fn code(&self) -> &Code {
        &self.opened().code
    }

    fn opened(&self) -> &Opened {
        self.opened.get_or_init(|| match &self.origin {
            Origin::Nothing => Opened::of(Reading::in_memory(&self.snapshot, &Code::default())),
            Origin::Earlier(code) => Opened::of(Reading::in_memory(&self.snapshot, code)),
            Origin::Store(store) => open(store, &self.snapshot),
        })
    }

    /// Logs which files are not in the index, once for each opening of the folder.
    pub fn warn_of_skipped(&self) {
        let skipped = self.skipped();
        let shown: Vec<String> = skipped
            .iter()
            .take(SKIPPED_MOST)
            .map(ToString::to_string)
            .collect();
        let more = match skipped.len().saturating_sub(SKIPPED_MOST) {
            0 => String::new(),
            more => format!("; and {more} more (`starling index --skipped` lists them)"),
        };
        match skipped.len() {
            0 => {}
            1 => tracing::warn!("1 file is not in the index: {}", shown[0]),
            count => tracing::warn!(
                "{count} files are not in the index: {}{more}",
                shown.join("; ")
            ),
        }
    }
}

impl Opened {
    fn of(reading: Reading) -> Self {
        Opened {
            code: Arc::new(reading.code),
            parsed: reading.parsed,
            from_cache: false,
            trouble: None,
        }
    }
}

/// Brings the stored index up to what is on disk, stores it, and lays the buffers over it: texts that
/// nobody saved are not stored.
fn open(store: &Store, snapshot: &Snapshot) -> Opened {
    let stored = store.load();
    let disk = snapshot.without_overlay();
    let worn = store::worn(&stored.code);
    let reading = read::read(&disk, &stored.code, worn, |segment| store.keep(segment));
    let mut trouble = stored.trouble;
    if reading.is_news_to(&stored.code)
        && let Err(error) = store.save(&reading.code)
    {
        trouble.get_or_insert(format!("the index is not stored: {error}"));
    }
    if let Some(trouble) = &trouble {
        tracing::warn!("{trouble}");
    }
    let mut opened = Opened {
        from_cache: stored.found,
        trouble,
        ..Opened::of(reading)
    };
    if !snapshot.overlay().is_empty() {
        let over = Reading::in_memory(snapshot, &opened.code);
        opened.parsed += over.parsed;
        opened.code = Arc::new(over.code);
    }
    opened
}

/// Whether a file holds tests, by its path.
pub fn is_test_file(file: &FilePath) -> bool {
    facts::is_test(file)
}
