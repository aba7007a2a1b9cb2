//! Determines by name whether tests reach the changes of a run. A test may reach a function if it
//! mentions the function, or mentions another function that mentions it, and so on. Only symbols
//! that certainly no test reaches are reported. If the files of the tests that ran are unknown, or
//! if the code is too large, every symbol counts as reached.
//!
//! Configuration may name code that a framework calls in tests. A command that a package installs,
//! `__main__.py` and the targets of a makefile run only if a test or the test command calls them.

mod wiring;

use std::collections::{BTreeSet, HashSet, VecDeque};

use crate::check::documentation::is_documentation;
use crate::check::expected;
use crate::check::other_language::{is_other_language, may_be_extension};
use crate::check::test_files::is_of_tests;
use crate::task::whole_word::{has_word, offsets_of_word};
use starling_core::{TestReport, TestStatus};
use starling_index::{is_test_file, module_attributes};
use starling_syntax::{
    FilePath, Language, Symbol, SymbolId, SymbolKind, SymbolPath, SymbolTree, references,
};
use starling_text::ByteRange;
use starling_workspace::Snapshot;
use wiring::{Wired, is_build_file, is_wiring};

/// Maximum number of files that are searched.
const FILES_MOST: usize = 3_000;
/// Maximum number of names that are searched for.
const NAMES_MOST: usize = 400;

/// Returns the symbols of `changed` that certainly no test of the report reaches. `before` and
/// `after` are the workspace without and with the run's changes; `scripts` count as tests.
pub(crate) fn unreached(
    before: &Snapshot,
    after: &Snapshot,
    changed: &[SymbolPath],
    report: &TestReport,
    scripts: &BTreeSet<FilePath>,
) -> Vec<SymbolPath> {
    let needs_test = changing_behaviour(before, after, changed, scripts);
    if needs_test.is_empty() {
        return Vec::new();
    }
    let Some(code) = SearchedCode::read(after, report, scripts) else {
        return Vec::new();
    };
    let parts = needs_test
        .into_iter()
        .flat_map(|symbol| parts_of(before, after, symbol));
    parts
        .filter(|part| has_to_be_tested(before, after, part) && !code.is_reached(part))
        .collect()
}

/// Returns the symbols of `changed` whose change can affect the result of a test.
pub(crate) fn changing_behaviour<'c>(
    before: &Snapshot,
    after: &Snapshot,
    changed: &'c [SymbolPath],
    scripts: &BTreeSet<FilePath>,
) -> Vec<&'c SymbolPath> {
    let needs_test = changed.iter().filter(|symbol| {
        let has_to_be_tested = |part: &SymbolPath| has_to_be_tested(before, after, part);
        !scripts.contains(&symbol.file)
            && parts_of(before, after, symbol).iter().any(has_to_be_tested)
    });
    needs_test.collect()
}

/// Returns whether the changes of these symbols affect only documents, comments and docstrings.
pub(crate) fn are_words(before: &Snapshot, after: &Snapshot, changed: &[SymbolPath]) -> bool {
    let is_code = |file: &FilePath| Language::of(file) != Language::Plain;
    let mut parts = changed
        .iter()
        .flat_map(|symbol| parts_of(before, after, symbol));
    parts.all(|symbol| {
        let (old, new) = (code(before, &symbol), code(after, &symbol));
        is_documentation(&symbol.file) || is_code(&symbol.file) && old.is_some() && old == new
    })
}

/// Returns a changed symbol. For the module of a new file, also returns the symbols in the file,
/// because the change of a new file names only its module. A file counts as new if it contained no
/// symbol before: the user may have created it, or opened it in the editor, in the meantime.
fn parts_of(before: &Snapshot, after: &Snapshot, symbol: &SymbolPath) -> Vec<SymbolPath> {
    let mut parts = vec![symbol.clone()];
    let is_new = |tree: &SymbolTree| tree.symbols().len() <= 1;
    if symbol.is_module()
        && before.tree(&symbol.file).map_or(true, |tree| is_new(&tree))
        && let Ok(tree) = after.tree(&symbol.file)
    {
        let outermost = tree.get(SymbolId(0)).children.iter();
        parts.extend(outermost.map(|child| tree.get(*child).path.clone()));
    }
    parts
}

/// Returns whether the change of a symbol can affect the result of a test. Changes to tests, prose
/// or comments do not count, and neither do removed symbols.
fn has_to_be_tested(before: &Snapshot, after: &Snapshot, symbol: &SymbolPath) -> bool {
    let file = &symbol.file;
    if is_test_file(file) || is_of_tests(before, file) || is_prose(file) || is_configuration(file) {
        return false;
    }
    match (code(before, symbol), code(after, symbol)) {
        (_, None) => false,
        (Some(old), Some(new)) => old != new,
        (None, Some(new)) => !new.is_empty() && !moved_with_its_class(before, after, symbol, &new),
    }
}

/// Returns whether a symbol is only new because a class around it was renamed. This is the case if
/// the class no longer exists and had a symbol with the same name and code.
fn moved_with_its_class(
    before: &Snapshot,
    after: &Snapshot,
    symbol: &SymbolPath,
    new: &str,
) -> bool {
    let (Ok(old), Ok(now)) = (before.tree(&symbol.file), after.tree(&symbol.file)) else {
        return false;
    };
    let class = |name: &str| name.rsplit_once('.').map(|(class, _)| class.to_owned());
    let Some(own_class) = class(&symbol.name) else {
        return false;
    };
    let depth = symbol.name.matches('.').count();
    old.find(&own_class).is_none()
        && old.symbols().iter().any(|one| {
            let path = &one.path;
            path.base_name() == symbol.base_name()
                && path.name.matches('.').count() == depth
                && class(&path.name).is_some_and(|class| now.find(&class).is_none())
                && code_of(&old, one) == new
        })
}

/// Returns the code of a symbol as [`code_of`]; `None` if the symbol does not exist.
fn code(world: &Snapshot, symbol: &SymbolPath) -> Option<String> {
    let tree = world.tree(&symbol.file).ok()?;
    let found = tree.find(&symbol.name)?;
    Some(code_of(&tree, found))
}

/// Returns the text of a symbol without its children, comments, docstring and whitespace.
fn code_of(tree: &SymbolTree, symbol: &Symbol) -> String {
    let mut left_out: Vec<ByteRange> = tree.comments().to_vec();
    left_out.extend(symbol.docstring);
    let own = tree.own_ranges(symbol).into_iter();
    let characters = own.flat_map(|range| {
        let text = &tree.text()[range.start..range.end];
        let places = text.char_indices();
        places.map(move |(at, character)| (range.start + at, character))
    });
    let is_code = |at: usize| {
        !left_out
            .iter()
            .any(|one| (one.start..one.end).contains(&at))
    };
    let is_plain = tree.language() == Language::Plain;
    characters
        .filter(|(at, character)| is_plain || !character.is_whitespace() && is_code(*at))
        .map(|(_, character)| character)
        .collect()
}

/// Returns whether the name of a file indicates that the file contains prose.
fn is_prose(file: &FilePath) -> bool {
    const NAMES: [&str; 10] = [
        "README",
        "LICENSE",
        "LICENCE",
        "COPYING",
        "NOTICE",
        "AUTHORS",
        "CHANGELOG",
        "CHANGES",
        "NEWS",
        "TODO",
    ];
    let name = file.name();
    let is_list = ["requirements", "constraints", "CMakeLists"]
        .iter()
        .any(|list| name.starts_with(list));
    is_documentation(file) || NAMES.contains(&name) || name.ends_with(".txt") && !is_list
}

/// Returns whether a file configures the tests or their environment.
fn is_configuration(file: &FilePath) -> bool {
    const NAMES: [&str; 6] = [
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "tox.ini",
        "noxfile.py",
        "pytest.ini",
    ];
    NAMES.contains(&file.name())
}

/// A name or file whose uses are searched for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SearchTarget {
    Name(String),
    /// A file. For a Python module, its uses and imports are searched for; for any other file,
    /// mentions of its name or of its directory.
    File(FilePath),
    /// A command that the package installs. Only strings and scripts can call it.
    Command(String),
}

impl SearchTarget {
    /// Returns the words by which code may refer to the target.
    fn words(&self) -> Vec<&str> {
        match self {
            SearchTarget::Name(name) | SearchTarget::Command(name) => vec![name],
            SearchTarget::File(file) => names_of(file),
        }
    }

    /// Returns whether the target runs only if a command with its name is called.
    fn is_command(&self) -> bool {
        match self {
            SearchTarget::Command(_) => true,
            SearchTarget::File(file) => file.name() == MAIN,
            SearchTarget::Name(_) => false,
        }
    }

    /// Returns whether an identifier in Python code may refer to the target. A package is imported
    /// without its `__main__.py`.
    fn is_named_by(&self, word: &str) -> bool {
        match self {
            SearchTarget::Name(_) => true,
            SearchTarget::File(file) => file.name() != MAIN || word == MAIN_MODULE,
            SearchTarget::Command(_) => false,
        }
    }

    /// Returns whether a word in a string may refer to the target, given the text after the word:
    /// `"shop"` may run `shop/__main__.py`, but `"shop.cart"` does not.
    fn is_named_in_string(&self, word: &str, rest: &str) -> bool {
        match self {
            SearchTarget::File(file) if file.name() == MAIN => {
                let is_other = rest.starts_with('.') && !rest[1..].starts_with(MAIN_MODULE);
                word != MAIN_MODULE && !is_other
            }
            SearchTarget::Name(_) | SearchTarget::File(_) | SearchTarget::Command(_) => true,
        }
    }
}

/// The file that `python -m package` runs, and its module.
const MAIN: &str = "__main__.py";
const MAIN_MODULE: &str = "__main__";

/// The searched files, split into the tests that ran and other code.
struct SearchedCode<'w> {
    world: &'w Snapshot,
    tests: Vec<FilePath>,
    others: Vec<FilePath>,
    examples: Vec<FileWithDoctests>,
    /// Whether the test command or a test may run a makefile.
    runs_make: bool,
}

/// A file outside the tests whose doctest examples ran. Its texts are the docstrings that contain
/// examples, or the whole text of a document.
struct FileWithDoctests {
    file: FilePath,
    texts: Vec<String>,
}

impl FileWithDoctests {
    /// Returns the doctest examples of a file; `None` if the file contains none.
    fn of(world: &Snapshot, file: &FilePath) -> Option<FileWithDoctests> {
        const PROMPT: &str = ">>>";
        let texts: Vec<String> = match Language::of(file) {
            Language::Plain => vec![world.read(file).ok()?.to_string()],
            Language::Python => {
                let tree = world.tree(file).ok()?;
                let docstrings = tree.symbols().iter().filter_map(|symbol| symbol.docstring);
                docstrings
                    .map(|range| tree.text()[range.start..range.end].to_owned())
                    .collect()
            }
        };
        let texts: Vec<String> = texts
            .into_iter()
            .filter(|one| one.contains(PROMPT))
            .collect();
        let file = file.clone();
        (!texts.is_empty()).then_some(FileWithDoctests { file, texts })
    }

    /// Returns whether an example may use the search target. Examples in a module's
    /// docstrings can use all names of that module.
    fn use_it(&self, sought: &SearchTarget) -> bool {
        if matches!(sought, SearchTarget::File(file) if *file == self.file) {
            return true;
        }
        let words = sought.words();
        let mut texts = self.texts.iter();
        texts.any(|text| words.iter().any(|word| has_word(text, word)))
    }
}

impl<'w> SearchedCode<'w> {
    /// Reads the files to search. Returns `None` if there are too many files, or if the file of a
    /// passed test is unknown. A passed test in a code file or a document is a doctest example.
    fn read(
        world: &'w Snapshot,
        report: &TestReport,
        scripts: &BTreeSet<FilePath>,
    ) -> Option<Self> {
        let is_test = |file: &FilePath| is_test_file(file) || is_of_tests(world, file);
        let searched = |file: &&FilePath| {
            let language = Language::of(file);
            language != Language::Plain || is_wiring(file) || scripts.contains(*file)
        };
        let files: Vec<&FilePath> = world.files().iter().filter(searched).collect();
        if files.len() > FILES_MOST {
            return None;
        }
        let (tests, others): (Vec<&FilePath>, Vec<&FilePath>) = files
            .into_iter()
            .partition(|file| is_test(file) || scripts.contains(*file));
        let passed = report.cases.iter();
        let passed = passed.filter(|case| case.status == TestStatus::Passed);
        let mut ran: BTreeSet<&FilePath> = BTreeSet::new();
        let mut examples: Vec<FileWithDoctests> = Vec::new();
        for case in passed {
            if examples.iter().any(|one| is_example(&case.id, &one.file)) {
                continue;
            }
            let of_case = |file: &&&FilePath| expected::is_in(&case.id, file.as_str());
            let before = ran.len();
            let known = tests
                .iter()
                .find(|file| ran.contains(**file) && of_case(file));
            if known.is_none() {
                ran.extend(tests.iter().filter(of_case).copied());
                if ran.len() == before {
                    let mut files = world.files().iter();
                    let file = files.find(|file| is_example(&case.id, file))?;
                    examples.push(FileWithDoctests::of(world, file)?);
                }
            }
        }
        // A test file without tests is assumed to support the tests that ran.
        let holds_tests = |file: &FilePath| {
            let tree = world.tree(file).ok();
            tree.is_some_and(|tree| {
                let mut symbols = tree.symbols().iter();
                symbols.any(|symbol| symbol.path.base_name().starts_with("test"))
            })
        };
        let counts = |file: &&FilePath| ran.contains(*file) || !holds_tests(file);
        let tests: Vec<FilePath> = tests.into_iter().filter(counts).cloned().collect();
        let mut texts = tests.iter().filter_map(|file| world.read(file).ok());
        let runs_make =
            has_word(&report.command, "make") || texts.any(|text| has_word(&text, "make"));
        Some(SearchedCode {
            world,
            tests,
            others: others.into_iter().cloned().collect(),
            examples,
            runs_make,
        })
    }

    fn is_reached(&self, symbol: &SymbolPath) -> bool {
        if symbol.file.name().ends_with(".pyi") || may_be_extension(self.world, &symbol.file) {
            return true;
        }
        let mut waiting: VecDeque<SearchTarget> = self.sought_for(symbol).into();
        let mut known: HashSet<SearchTarget> = waiting.iter().cloned().collect();
        while let Some(sought) = waiting.pop_front() {
            if known.len() > NAMES_MOST {
                return true;
            }
            let mut tests = self.tests.iter();
            let mut examples = self.examples.iter();
            if tests.any(|file| !self.uses(file, &sought).is_empty())
                || examples.any(|one| one.use_it(&sought))
            {
                return true;
            }
            for file in &self.others {
                let users = self.uses(file, &sought);
                let next: Vec<SearchTarget> = match is_wiring(file) && !is_code_aside(&sought) {
                    true if users.is_empty() => Vec::new(),
                    true => match self.wired(file, &sought) {
                        Wired::ByFramework => return true,
                        Wired::ByCommands(commands) => {
                            commands.into_iter().map(SearchTarget::Command).collect()
                        }
                    },
                    false => users
                        .iter()
                        .flat_map(|user| self.sought_for(user))
                        .collect(),
                };
                let next = next.into_iter().filter(|one| known.insert(one.clone()));
                waiting.extend(next.collect::<Vec<_>>());
            }
        }
        false
    }

    /// Returns the search targets that lead to a symbol: its own name and the names of the
    /// enclosing functions; its class if other code may call the methods of the class implicitly;
    /// its module if a decorator or a dynamic lookup may lead to the symbol.
    fn sought_for(&self, symbol: &SymbolPath) -> Vec<SearchTarget> {
        let of_file = SearchTarget::File(symbol.file.clone());
        let tree = self.world.tree(&symbol.file).ok();
        let found = tree
            .as_ref()
            .and_then(|tree| Some((tree, tree.find(&symbol.name)?)));
        let Some((tree, mut found)) = found.filter(|_| !symbol.is_module()) else {
            return vec![of_file];
        };
        let mut all = Vec::new();
        if looks_up_by_text(tree.text()) {
            all.push(of_file.clone());
        }
        loop {
            let name = found.path.base_name().split('#').next().unwrap_or_default();
            all.push(SearchTarget::Name(name.to_owned()));
            if found
                .contract
                .decorators
                .iter()
                .any(|one| may_register(one))
            {
                all.push(of_file.clone());
            }
            let Some(parent) = found.parent.map(|parent| tree.get(parent)) else {
                break;
            };
            match parent.kind {
                SymbolKind::Module => break,
                SymbolKind::Class => {
                    let is_special = name.starts_with("__");
                    if found.kind == SymbolKind::Method
                        && !is_special
                        && parent.contract.bases.is_empty()
                    {
                        break;
                    }
                }
                SymbolKind::Function | SymbolKind::Method => {}
            }
            found = parent;
        }
        all
    }

    /// Returns what may run the search target, which a file without code names. A build file contains the
    /// name of a package, which runs neither the package nor a command of this name.
    fn wired(&self, file: &FilePath, sought: &SearchTarget) -> Wired {
        let text = self.world.read(file).unwrap_or_else(|_| "".into());
        let words = sought.words();
        let names_it = |text: &str| words.iter().any(|word| has_word(text, word));
        match Wired::of(file, &text, self.runs_make, names_it) {
            Wired::ByFramework if sought.is_command() && is_build_file(file) => {
                Wired::ByCommands(Vec::new())
            }
            wired => wired,
        }
    }

    /// Returns the symbols of a file that use the search target.
    fn uses(&self, file: &FilePath, sought: &SearchTarget) -> BTreeSet<SymbolPath> {
        let imports_count = match sought {
            SearchTarget::File(sought) if sought == file => return BTreeSet::new(),
            SearchTarget::File(_) => true,
            SearchTarget::Name(_) | SearchTarget::Command(_) => false,
        };
        let words = sought.words();
        let Ok(text) = self.world.read(file) else {
            return BTreeSet::new();
        };
        if !words.iter().any(|word| text.contains(word)) {
            return BTreeSet::new();
        }
        let Ok(tree) = self.world.tree(file) else {
            return BTreeSet::new();
        };
        let docstrings = tree.symbols().iter().filter_map(|symbol| symbol.docstring);
        let docstrings: Vec<ByteRange> = docstrings.collect();
        let holds = |ranges: &[ByteRange], at: usize| {
            ranges
                .iter()
                .any(|range| (range.start..range.end).contains(&at))
        };
        let mut owners = BTreeSet::new();
        for word in words {
            let outside = match sought {
                SearchTarget::Name(_) => of_outside_modules(self.world, &tree, word),
                SearchTarget::File(_) | SearchTarget::Command(_) => Vec::new(),
            };
            let is_plain = tree.language() == Language::Plain;
            for found in references(&tree, word) {
                if !is_plain && !sought.is_named_by(word) {
                    break;
                }
                let is_import =
                    found.is_import && !imports_count && !is_renamed(&tree, found.range);
                let is_outside = outside.contains(&found.range.start);
                if !found.is_definition && !is_import && !is_outside {
                    owners.insert(tree.owner(found.range.start).path.clone());
                }
            }
            for at in offsets_of_word(&text, word) {
                let is_string = holds(tree.strings(), at) && !holds(&docstrings, at);
                if is_string && sought.is_named_in_string(word, &text[at + word.len()..]) {
                    owners.insert(tree.owner(at).path.clone());
                }
            }
        }
        owners
    }
}

/// Returns whether a test is a doctest example in a file. Its pytest id contains the name of the
/// module or of the document.
fn is_example(id: &str, file: &FilePath) -> bool {
    let rest = id.strip_prefix(file.as_str());
    let Some(name) = rest.and_then(|rest| rest.strip_prefix("::")) else {
        return false;
    };
    let folder = file.directory().rsplit('/').next().unwrap_or_default();
    match file.name().strip_suffix(".py") {
        Some("__init__") => name.split('.').any(|part| part == folder),
        Some(stem) => name.split('.').any(|part| part == stem),
        None => name == file.name(),
    }
}

/// Returns the byte offsets of the attributes called `name` of modules outside the project, such as
/// `main` in `unittest.main()`. A module counts as outside if no file and no directory has its name.
fn of_outside_modules(world: &Snapshot, tree: &SymbolTree, name: &str) -> Vec<usize> {
    // The names of a file are read only if it has such an attribute at all.
    if !tree.text().contains(&format!(".{name}")) {
        return Vec::new();
    }
    let is_of_project = |package: &str| {
        let mut files = world.files().iter();
        files.any(|file| {
            let mut parts = file.as_str().split('/');
            parts.any(|part| part.split('.').next() == Some(package))
        })
    };
    let attributes = module_attributes(tree, name).into_iter();
    let outside = attributes.filter(|one| !is_of_project(&one.package));
    outside.map(|one| one.at).collect()
}

/// Returns whether an import renames a name, as in `from calc import mul as times`.
fn is_renamed(tree: &SymbolTree, name: ByteRange) -> bool {
    tree.text()[name.end..].trim_start().starts_with("as ")
}

/// Returns the words by which other code may refer to a file: its name, and its module or
/// directory.
fn names_of(file: &FilePath) -> Vec<&str> {
    let name = file.name();
    let folder = file.directory().rsplit('/').next().unwrap_or_default();
    let stem = name.strip_suffix(".py");
    let words = match stem {
        Some("__init__") => vec![folder],
        Some(MAIN_MODULE) => vec![folder, MAIN_MODULE],
        Some(stem) => vec![stem, name],
        // For code in another language, a mention of its directory does not count: the directory
        // may be served or built without a test that reads the file.
        None if is_other_language(file) => vec![name],
        None => vec![name, folder],
    };
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

/// Returns whether code looks up names dynamically.
fn looks_up_by_text(text: &str) -> bool {
    const LOOKUPS: [&str; 6] = [
        "getattr(",
        "globals()",
        "locals()",
        "vars(",
        "__dict__",
        "importlib",
    ];
    LOOKUPS.iter().any(|lookup| text.contains(lookup))
}

/// Returns whether a decorator may register its function elsewhere.
fn may_register(decorator: &str) -> bool {
    const PLAIN: [&str; 9] = [
        "property",
        "staticmethod",
        "classmethod",
        "cached_property",
        "lru_cache",
        "cache",
        "abstractmethod",
        "override",
        "contextmanager",
    ];
    let name = decorator.trim_start_matches('@');
    let name = name.split('(').next().unwrap_or(name).trim();
    !PLAIN.contains(&name.rsplit('.').next().unwrap_or(name))
}

/// Returns whether the search target is a code file in another language. Code that only mentions
/// such a file, for example a web page, does not run it.
fn is_code_aside(sought: &SearchTarget) -> bool {
    match sought {
        SearchTarget::Name(_) | SearchTarget::Command(_) => false,
        SearchTarget::File(file) => is_other_language(file),
    }
}

#[cfg(test)]
mod tests;
