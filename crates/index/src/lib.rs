//! The code index: finds symbols and their uses without a model. The index is stored in the cache
//! directory, updated to a snapshot by the first query, and reused for later snapshots.

mod bm25;
mod calls;
mod code;
mod dangling;
mod dynamic;
mod facts;
mod fuzzy;
mod generated;
mod import_roots;
mod importable;
mod in_formats;
mod in_scripts;
mod in_strings;
mod in_templates;
mod left_attribute;
mod locate;
mod lookup;
mod map;
mod module_attributes;
mod names;
mod nearest;
mod notebook;
mod outside_uses;
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
mod unheld;
mod words;

pub use calls::BadCall;
pub use dynamic::DynamicUse;
pub use fuzzy::distance;
pub use importable::Importable;
pub use in_strings::InString;
pub use left_attribute::AttributeOf;
pub use locate::{Candidate, ExecutedLines, Located, LocatedFile, content_words};
pub use lookup::{Definition, Description, IndirectUse, Usage, Usages, Variable};
pub use map::{MapFile, MapSymbol, RepositoryMap, Seed};
pub use module_attributes::{ModuleAttribute, module_attributes};
pub use names::{
    LostUse, Rebound, binds, bound_at, given_names, is_built_in, lost_uses, newly_undefined,
    rebound, says_plainly, sets_attribute, undefined_names,
};
pub use outside_uses::{Member, OutsideUse};
pub use position::{Definitions, NoName, Position};
pub use progress::reading;
pub use search::{Hit, Hits};
pub use shadow::{HiddenModule, Shadowing};
pub use tokens::count_tokens;
pub use trace::{Frame, frame, frames};
pub use unheld::NewAttribute;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use code::{Code, IndexedFile};
use read::{ReadCode, Reuse};
pub use resolve::{Certainty, Dangling, Heritage, Holder, ImportForm, ModuleImport, is_common};
use starling_syntax::{FilePath, Language, SymbolPath, SymbolTree};
use starling_workspace::{ReadError, Snapshot};
use store::Store;

/// Number of skipped files that one warning names.
const SKIPPED_MOST: usize = 3;

/// The index of one snapshot.
#[derive(Debug)]
pub struct Index {
    snapshot: Snapshot,
    origin: IndexOrigin,
    opened: OnceLock<OpenedIndex>,
    /// The search table, built by the first query that needs it.
    table: OnceLock<locate::Table>,
    /// Whether reading was stopped, so that the files that are not read yet are left out of the
    /// index.
    stopped: Arc<AtomicBool>,
}

/// The index from which a new one is built, so that unchanged files need not be parsed.
#[derive(Debug)]
enum IndexOrigin {
    Nothing,
    Store(Store),
    /// The index of an earlier snapshot. Files with the same text are not parsed again.
    Earlier {
        code: Arc<Code>,
        /// The files whose text may differ from the earlier snapshot; `None` if all may.
        differing: Option<BTreeSet<FilePath>>,
    },
}

/// The code of an index after all files were read, and how it was built.
#[derive(Debug)]
struct OpenedIndex {
    code: Arc<Code>,
    parsed: usize,
    from_cache: bool,
    trouble: Option<String>,
}

/// Statistics of an index: its size, and how it was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Number of files with a grammar.
    pub files: usize,
    pub symbols: u64,
    /// Number of occurrences of names.
    pub references: u64,
    /// Total size of the files' texts in bytes, without generated code.
    pub bytes: u64,
    /// Number of files that were parsed to build this index.
    pub parsed: usize,
    /// Whether a stored index was used.
    pub from_cache: bool,
    /// Why a stored index was not used, or the new index was not stored.
    pub trouble: Option<String>,
}

impl Index {
    /// Creates an index that is kept only in memory. Files are read by the first query.
    pub fn new(snapshot: Snapshot) -> Self {
        Index::begin(snapshot, IndexOrigin::Nothing)
    }

    /// Creates an index that starts from the index stored in the directory `cache`. If files
    /// changed, the updated index is stored there. Files are read by the first query.
    pub fn open(snapshot: Snapshot, cache: PathBuf) -> Self {
        let store = Store::new(&cache, snapshot.root());
        Index::begin(snapshot, IndexOrigin::Store(store))
    }

    /// Copies the stored index of the directory `like`, another checkout of the same project, as
    /// the initial index of the directory `of`. A stored file is only used if its content is the
    /// same.
    ///
    /// # Errors
    /// No index is stored for `like`, or the cache cannot be written. The index of `of` is then
    /// built from scratch.
    pub fn lend(cache: &Path, like: &Path, of: &Path) -> std::io::Result<()> {
        Store::new(cache, of).begin_as(&Store::new(cache, like))
    }

    /// Creates the index of a later snapshot. Only files with a changed text are read.
    pub fn after(&self, snapshot: Snapshot) -> Self {
        let origin = match (self.opened.get(), &self.origin) {
            (Some(opened), _) => IndexOrigin::Earlier {
                code: opened.code.clone(),
                differing: snapshot.differing(&self.snapshot),
            },
            (None, IndexOrigin::Nothing) => IndexOrigin::Nothing,
            (None, IndexOrigin::Store(store)) => IndexOrigin::Store(store.clone()),
            (None, IndexOrigin::Earlier { code, differing }) => IndexOrigin::Earlier {
                code: code.clone(),
                differing: differing
                    .as_ref()
                    .zip(snapshot.differing(&self.snapshot))
                    .map(|(before, since)| before | &since),
            },
        };
        let mut after = Index::begin(snapshot, origin);
        if self.opened.get().is_none() {
            after.stopped = Arc::clone(&self.stopped);
        }
        after
    }

    fn begin(snapshot: Snapshot, origin: IndexOrigin) -> Self {
        Index {
            snapshot,
            origin,
            opened: OnceLock::new(),
            table: OnceLock::new(),
            stopped: Arc::default(),
        }
    }

    /// Stops the first reading of the files, if it is not complete. The files that are not read yet
    /// are left out of this index, and of the indexes that were derived from it before the reading
    /// is complete. Nothing is stored then.
    pub fn stop_reading(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Reads all changed files, if that has not been done yet. Every query does so first; reading
    /// thousands of files takes about a second.
    pub fn warm(&self) {
        self.opened();
    }

    /// Returns the contents of the index, after reading changed files like [`Index::warm`].
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

    /// Returns the text files that are not in the index, with the reasons: the file is too long,
    /// has a deceptive name, is not valid text in its declared encoding, or takes too long to parse.
    pub fn skipped(&self) -> Vec<ReadError> {
        let code = self.code();
        let is_missing =
            |file: &&FilePath| Language::of(file) != Language::Plain && code.find(file).is_none();
        let missing = self.snapshot.files().iter().filter(is_missing);
        let unreadable = missing.filter_map(|file| self.snapshot.read(file).err());
        let unparsed = code.files().filter(|file| code.view(*file).bytes == 0);
        let unparsed = unparsed.filter(|file| self.is_unparsed(code.path(*file)));
        let unparsed = unparsed.map(|file| ReadError::Unparsed(code.path(file).clone()));
        let mut skipped = self.snapshot.skipped().to_vec();
        skipped.extend(unreadable.chain(unparsed));
        skipped
    }

    /// Returns whether a file was not parsed, although it is neither empty nor generated.
    fn is_unparsed(&self, file: &FilePath) -> bool {
        let text = search::text_of(&self.snapshot, file);
        text.is_some_and(|text| !text.is_empty() && !generated::is_generated(&text))
    }

    /// Returns the best `limit` lines that contain all words of `query`, ignoring case.
    pub fn search(&self, query: &str, limit: usize) -> Hits {
        search::search(self.code(), &self.snapshot, query, "", limit)
    }

    /// Like [`Index::search`], in files whose path contains `within`. If no line contains all
    /// words, returns the lines with the most of them.
    pub fn search_most(&self, query: &str, within: &str, limit: usize) -> Hits {
        search::search_most(self.code(), &self.snapshot, query, within, limit)
    }

    /// Returns the definitions of a name (`f`, `Class.method`, `module.Class`), code before tests.
    pub fn definitions(&self, name: &str) -> Vec<Definition> {
        lookup::definitions(self.code(), name)
    }

    /// Like [`Index::definitions`], but all parts of a dotted name must match.
    pub fn definitions_of(&self, name: &str) -> Vec<Definition> {
        lookup::definitions_of(self.code(), name)
    }

    /// Returns the module-level variables that a name (`NAME`, `module.NAME`,
    /// `path/to/file.py::NAME`) can mean.
    pub fn variables(&self, name: &str) -> Vec<Variable> {
        lookup::variables(self.code(), name)
    }

    /// Returns all uses of a module-level variable, including its assignments, or `None` if the
    /// module does not bind the variable.
    pub fn variable_uses(&self, of: &Variable) -> Option<Usages> {
        lookup::variable_uses(self.code(), &self.snapshot, of)
    }

    /// Returns a class, its subclasses, and the base classes of all of these, as far as the workspace defines
    /// them.
    pub fn kin(&self, class: &SymbolPath) -> Vec<SymbolPath> {
        resolve::Resolver::new(self.code()).kin(class)
    }

    /// Returns whether a method overrides a member of a base class. Other symbols are
    /// [`Heritage::Own`].
    pub fn heritage(&self, symbol: &SymbolPath) -> Heritage {
        resolve::Resolver::new(self.code()).heritage(symbol)
    }

    /// Returns the methods that override a method in subclasses of its class. Also returns methods
    /// of other base classes that come earlier in the method resolution order of a subclass.
    pub fn overriding(&self, method: &SymbolPath) -> Vec<SymbolPath> {
        resolve::Resolver::new(self.code()).overriding(method)
    }

    /// Returns the calls and reads that may reach this overriding method, although they name a method of a
    /// base class or no known method.
    pub fn indirect_uses(&self, method: &SymbolPath) -> Vec<IndirectUse> {
        lookup::indirect_uses(self.code(), &self.snapshot, method)
    }

    /// Returns the calls and reads of a `Protocol`'s method that may reach this method, because its
    /// class defines all methods of the `Protocol`.
    pub fn uses_through_protocols(&self, method: &SymbolPath) -> Vec<IndirectUse> {
        let found = resolve::Resolver::new(self.code()).uses_through_protocols(method);
        lookup::as_indirect_uses(self.code(), &self.snapshot, found)
    }

    /// Returns the methods with the name of a method of a `Protocol`, in the classes outside tests
    /// that define all methods of the `Protocol` and do not inherit from it.
    pub fn implementing(&self, method: &SymbolPath) -> Vec<SymbolPath> {
        resolve::Resolver::new(self.code()).implementing(method)
    }

    /// Returns whether an attribute with the name of these methods must be one of them wherever it is
    /// used, judging by the code and its strings. The methods must have the same name.
    pub fn are_only_attributes(&self, methods: &[SymbolPath]) -> bool {
        let name = methods.first().map_or("", SymbolPath::base_name);
        resolve::Resolver::new(self.code()).are_only_attributes(methods)
            && !in_strings::is_field(&self.snapshot, name)
    }

    /// Returns whether any file contains an identifier.
    pub fn mentions(&self, identifier: &str) -> bool {
        !self.code().mentioning(identifier).is_empty()
    }

    /// Describes a symbol, or returns `None` if no symbol has this path.
    pub fn describe(&self, symbol: &SymbolPath) -> Option<Description> {
        lookup::describe(self.code(), symbol)
    }

    /// Returns statements that import a name into a file, the most used in the workspace first.
    pub fn importable(&self, name: &str, file: &FilePath) -> Vec<Importable> {
        importable::importable(self.code(), name, file)
    }

    /// Returns the definitions of the name at a position.
    ///
    /// # Errors
    /// There is no name at the position.
    pub fn definition_at(&self, at: &Position) -> Result<Definitions, NoName> {
        position::definition_at(self.code(), &self.snapshot, at)
    }

    /// Returns the most similar name of a symbol outside tests, or `None` if no name is similar. If
    /// the symbol's name has more dotted parts than `name`, only as many of its last parts are
    /// compared.
    pub fn nearest_name(&self, name: &str) -> Option<String> {
        fuzzy::nearest_name(self.code(), name)
    }

    /// Returns the best `limit` symbols whose names match `query` (a name, parts of a name or
    /// initials), and the total number of matches.
    pub fn symbols(&self, query: &str, limit: usize) -> (Vec<Definition>, usize) {
        fuzzy::symbols(self.code(), query, limit)
    }

    /// Returns at most `limit` uses, the most certain first, code before tests. If `name`
    /// identifies one symbol, by its path (`shop/cart.py::Cart.total`) or as the only symbol of
    /// that name, its uses are found by imports, scopes and types. Otherwise any identifier of that
    /// name counts.
    pub fn references(&self, name: &str, limit: usize) -> Usages {
        lookup::references(self.code(), &self.snapshot, name, limit)
    }

    /// Returns the strings in code and data files that contain a name as a whole part
    /// (`"module:Class"`). Such strings may refer to the symbol at run time.
    pub fn in_strings(&self, name: &str) -> Vec<InString> {
        in_strings::in_strings(&self.snapshot, name)
    }

    /// Returns the uses of members of modules in scripts, build files, notebooks, and in strings
    /// that name the module as well (`"module:name"`).
    pub fn outside_uses(&self, members: &[Member]) -> Vec<OutsideUse> {
        let others = |member: &Member| {
            let symbols = self.definitions(&member.name).into_iter();
            let symbols = symbols.filter(|one| one.symbol.name == member.name);
            let files = symbols.map(|one| one.symbol.file);
            let variables = self.variables(&member.name).into_iter().map(|one| one.file);
            let files = files.chain(variables);
            files.filter(|file| *file != member.module).collect()
        };
        outside_uses::outside_uses(&self.snapshot, members, &others)
    }

    /// Returns the lines of templates whose expressions use a name.
    pub fn in_templates(&self, name: &str) -> Vec<InString> {
        in_strings::in_templates(&self.snapshot, name)
    }

    /// Returns the reads of an attribute of this name on objects that may be of any class: objects of
    /// unknown type, and objects that code from outside the workspace holds or returns.
    pub fn reads_of_any(&self, name: &str) -> Vec<Usage> {
        lookup::reads_of_any(self.code(), &self.snapshot, name)
    }

    /// Returns the reads of an attribute of this name on modules that code looks up at run time, as in
    /// `sys.modules["shop"].cart`, and on objects with the names of a module.
    pub fn reads_of_namespaces(&self, name: &str) -> Vec<Usage> {
        lookup::reads_of_namespaces(self.code(), &self.snapshot, name)
    }

    /// Returns the positions that may look up `name` by a text that code builds at run time, as
    /// `getattr(self, "on_" + event)` does.
    pub fn dynamic_uses(&self, name: &str) -> Vec<DynamicUse> {
        dynamic::dynamic_uses(&self.snapshot, name)
    }

    /// Returns whether a class or function has this name, or any module body or class body binds
    /// the name other than by an import. The stub of a module (`a.pyi` next to `a.py`) does not
    /// count, because it only declares names.
    pub fn is_defined(&self, name: &str) -> bool {
        let defines = |one: &Definition| !lookup::is_stub_of_module(self.code(), &one.symbol.file);
        lookup::is_defined(self.code(), name) || self.definitions(name).iter().any(defines)
    }

    /// Returns the imports of a module in the other files.
    pub fn imports_of(&self, module: &FilePath) -> Vec<ModuleImport> {
        dangling::imports_of(self.code(), module)
    }

    /// Returns the names that are unresolved here but not in `before`; the two differ only in the
    /// `changed` files. Covers imports that a module does not define, and attributes that a module
    /// or class does not have.
    pub fn newly_dangling(&self, before: &Index, changed: &[FilePath]) -> Vec<Dangling> {
        let codes = (before.code(), self.code());
        dangling::newly_dangling(codes, (&before.snapshot, &self.snapshot), changed)
    }

    /// Returns the uses of attributes that lost their last definition: the `changed` files removed
    /// it since `before`. Only objects of unknown type are considered.
    pub fn lost_attributes(&self, before: &Index, changed: &[FilePath]) -> Vec<Dangling> {
        unheld::lost_attributes(before.world(), self.world(), changed)
    }

    /// Returns the attributes of objects of unknown type that the `changed` files use, that are not
    /// defined anywhere in the workspace, and that were not used in `before`.
    pub fn new_attributes(&self, before: &Index, changed: &[FilePath]) -> Vec<NewAttribute> {
        unheld::new_attributes(before.world(), self.world(), changed)
    }

    /// Returns the calls whose arguments do not fit the called function in this index, but fit in
    /// `before`. The two differ only in the `changed` files.
    pub fn newly_bad_calls(&self, before: &Index, changed: &[FilePath]) -> Vec<BadCall> {
        calls::newly_bad(before.world(), self.world(), changed)
    }

    /// Returns the uses of an attribute, or nothing if the workspace or a common built-in type
    /// defines an attribute of this name.
    pub fn left_uses(&self, name: &str) -> Vec<Dangling> {
        unheld::left_uses(self.world(), name)
    }

    /// Returns the remaining uses of the name `old` after an incomplete rename to `new`. Since
    /// `before`, a related definition was renamed: in a base class or subclass, or in the stub of a
    /// module.
    pub fn half_renamed(&self, before: &Index, old: &str, new: &str) -> Vec<Dangling> {
        unheld::half_renamed(before.code(), self.code(), old, new)
    }

    /// Returns where code still defines, sets or reads the attribute `old`, which was renamed to
    /// `new` in classes of `before`.
    pub fn left_attribute(
        &self,
        before: &Index,
        old: &str,
        new: &str,
        of: AttributeOf<'_>,
    ) -> Vec<Dangling> {
        left_attribute::left_attribute(before.world(), self.world(), (old, new), of)
    }

    /// Returns whether code outside tests uses this name only for attributes of classes and
    /// objects.
    pub fn is_attribute_only(&self, name: &str) -> bool {
        left_attribute::is_attribute_only(self.world(), name)
    }

    /// Returns the number of modules, classes and functions outside tests that bind a name other
    /// than by an import.
    pub fn meanings(&self, name: &str) -> usize {
        left_attribute::meanings(self.world(), name)
    }

    /// Returns whether the body or a method of a class assigns an attribute of this name.
    pub fn has_attribute(&self, class: &SymbolPath, name: &str) -> bool {
        let groups = resolve::Resolver::new(self.code()).sharing(name);
        let is_it = |(file, own): &resolve::Body| {
            *own == class.name && *self.code().path(*file) == class.file
        };
        groups.iter().flatten().any(is_it)
    }

    fn world(&self) -> unheld::WorkspaceState<'_> {
        unheld::WorkspaceState {
            code: self.code(),
            texts: &self.snapshot,
        }
    }

    /// Returns the module that a new file would hide from the files that import it, or from tools
    /// that run the tests: a package of the same name, a module of Python's standard library, or a
    /// module for which `is_installed` returns true.
    pub fn shadowing(
        &self,
        new: &SymbolTree,
        is_installed: &dyn Fn(&str) -> bool,
    ) -> Option<Shadowing> {
        shadow::shadowing(self.code(), &self.snapshot, new, is_installed)
    }

    /// Returns the most relevant symbols for a text, such as a task or the output of failing tests.
    pub fn locate(&self, text: &str, limit: usize) -> Vec<Located> {
        locate::locate(self.corpus(), text, limit)
    }

    /// Returns the most relevant symbols for a text if it is known what failing tests executed.
    pub fn locate_executed(
        &self,
        text: &str,
        executed: &ExecutedLines<'_>,
        limit: usize,
    ) -> Vec<Located> {
        locate::locate_executed(self.corpus(), text, executed, limit)
    }

    /// Returns the most relevant files for a text.
    pub fn locate_files(&self, text: &str, limit: usize) -> Vec<LocatedFile> {
        locate::locate_files(self.corpus(), text, limit)
    }

    /// Returns the files and symbols that [`Index::locate`] considers, with their features.
    /// `benches/locate` learns the weights of the features from them.
    pub fn candidates(&self, text: &str) -> (Vec<Candidate>, Vec<Candidate>) {
        locate::candidates(self.corpus(), text)
    }

    fn corpus(&self) -> locate::Corpus<'_> {
        let code = self.code();
        let table = self.table.get_or_init(|| locate::Table::new(code));
        locate::Corpus::new(code, table, &self.snapshot)
    }

    /// Returns the relevant files around `seed` with their relevant signatures, in at most `tokens`
    /// tokens.
    pub fn repository_map(&self, seed: Seed<'_>, tokens: usize) -> RepositoryMap {
        map::repository_map(self.code(), seed, tokens, |text, limit| {
            self.locate(text, limit)
        })
    }

    /// Returns the tests that most likely cover the symbols, nearest first: test functions, or the
    /// module bodies of test files.
    pub fn nearest_tests(&self, symbols: &[SymbolPath], limit: usize) -> Vec<SymbolPath> {
        nearest::nearest_tests(self.code(), &self.snapshot, symbols, limit)
    }

    /// Returns the symbol by which a test runner can run a test: the test itself, or the body of
    /// its module to run the whole file.
    pub fn runnable(&self, test: &SymbolPath) -> SymbolPath {
        nearest::runnable(self.code(), test)
    }

    /// Returns the number of tests in a file.
    pub fn tests_in(&self, file: &FilePath) -> usize {
        let code = self.code();
        code.find(file)
            .map_or(0, |file| nearest::tests_in(code, file))
    }

    /// Returns the number of tests in the workspace.
    pub fn test_count(&self) -> usize {
        let code = self.code();
        let counts = code.files().map(|file| nearest::tests_in(code, file));
        counts.sum()
    }

    fn code(&self) -> &Code {
        &self.opened().code
    }

    fn opened(&self) -> &OpenedIndex {
        self.opened.get_or_init(|| match &self.origin {
            IndexOrigin::Nothing => OpenedIndex::of(self.in_memory(&Code::default(), None)),
            IndexOrigin::Earlier { code, differing } => match differing {
                Some(files) if files.is_empty() => OpenedIndex::new(Arc::clone(code), 0),
                files => OpenedIndex::of(self.in_memory(code, files.as_ref())),
            },
            IndexOrigin::Store(store) => self.open_stored(store),
        })
    }

    fn in_memory(&self, earlier: &Code, differing: Option<&BTreeSet<FilePath>>) -> ReadCode {
        ReadCode::in_memory(&self.snapshot, earlier, differing, &self.stopped)
    }

    /// Loads the stored index, updates it to the files on disk and stores it. Then adds the text of
    /// the open buffers, which is never stored.
    fn open_stored(&self, store: &Store) -> OpenedIndex {
        let snapshot = &self.snapshot;
        let stored = store.load();
        let disk = snapshot.without_overlay();
        let worn = store::worn(&stored.code);
        let keep = |segment| store.keep(segment);
        let reuse = |known: &IndexedFile| match worn(known) {
            true => Reuse::Never,
            false => Reuse::IfSame,
        };
        let reading = read::read(&disk, &stored.code, &self.stopped, reuse, keep);
        let mut trouble = stored.trouble;
        if reading.is_news_to(&stored.code)
            && !self.stopped.load(Ordering::Relaxed)
            && let Err(error) = store.save(&reading.code)
        {
            trouble.get_or_insert(format!("the index is not stored: {error}"));
        }
        if let Some(trouble) = &trouble {
            tracing::warn!("{trouble}");
        }
        let mut opened = OpenedIndex {
            from_cache: stored.found,
            trouble,
            ..OpenedIndex::of(reading)
        };
        if !snapshot.overlay().is_empty() {
            let over = self.in_memory(&opened.code, None);
            opened.parsed += over.parsed;
            opened.code = Arc::new(over.code);
        }
        opened
    }

    /// Logs the files that are not in the index. Called once each time the directory is opened.
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
            _ if self.stopped.load(Ordering::Relaxed) => {}
            1 => tracing::warn!("1 file is not in the index: {}", shown[0]),
            count => tracing::warn!(
                "{count} files are not in the index: {}{more}",
                shown.join("; ")
            ),
        }
    }
}

impl OpenedIndex {
    fn of(reading: ReadCode) -> Self {
        OpenedIndex::new(Arc::new(reading.code), reading.parsed)
    }

    fn new(code: Arc<Code>, parsed: usize) -> Self {
        OpenedIndex {
            code,
            parsed,
            from_cache: false,
            trouble: None,
        }
    }
}

/// Whether a file contains tests, judging by its path.
pub fn is_test_file(file: &FilePath) -> bool {
    facts::is_test(file)
}
