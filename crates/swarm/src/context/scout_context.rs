//! Finds candidates for the scout (the agent that picks the symbols where work begins): the
//! innermost project frames of tracebacks, names that the task imports, symbols that match words of
//! the task, and symbols that the best candidates call, extend or are constructed by.

use std::collections::BTreeSet;

use crate::check::required;
use crate::context::prompt_parts;
use crate::lookup::Lookup;
use crate::lookup::callees::callees;
use crate::state::checker::Checker;
use starling_core::Tokens;
use starling_index::{frames, is_test_file};
use starling_syntax::{FilePath, Symbol, SymbolKind, SymbolPath, SymbolTree};

/// Number of top candidates whose callees are added, and maximum number of callees for each.
const CALLERS_FOLLOWED: usize = 2;
const CALLEES: usize = 2;
/// Number of imported names that are added if none of them is among the [`BEST`] candidates.
const IMPORTED: usize = 2;
const BEST: usize = 8;
/// Maximum number of traceback frames that are considered.
const FRAMES: usize = 2;
const CONSTRUCTOR: &str = "__init__";
/// Maximum number of reasons shown for a candidate.
const REASONS: usize = 2;
/// Directories with code that only shows how the project is used, such as examples. Their files
/// come last in the list of candidates.
const ASIDE: [&str; 8] = [
    "examples",
    "example",
    "docs",
    "doc",
    "benchmarks",
    "benches",
    "demos",
    "samples",
];

/// How a candidate was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CandidateOrigin {
    /// The task or the output of a failing test refers to the symbol.
    Itself,
    /// The symbol is not mentioned itself, but is called by a symbol to which the task refers, or
    /// is its base class or its constructor.
    Near,
}

/// A symbol that may be relevant for the task and may be shown to the scout.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub symbol: SymbolPath,
    pub why: String,
    pub standing: CandidateOrigin,
}

/// The candidates in order. Each symbol occurs once.
#[derive(Default)]
struct CandidateList(Vec<Candidate>);

impl CandidateList {
    fn note(&mut self, symbol: SymbolPath, why: impl Into<String>, standing: CandidateOrigin) {
        self.note_at(self.0.len(), symbol, why, standing);
    }

    fn note_at(
        &mut self,
        at: usize,
        symbol: SymbolPath,
        why: impl Into<String>,
        standing: CandidateOrigin,
    ) {
        if !self.0.iter().any(|known| known.symbol == symbol) {
            let why = why.into();
            let candidate = Candidate {
                symbol,
                why,
                standing,
            };
            self.0.insert(at.min(self.0.len()), candidate);
        }
    }
}

/// Returns the candidates for the task, best first, each with the reasons for which it was found.
pub(crate) fn candidates(checker: &Checker, lookup: &Lookup) -> Vec<Candidate> {
    let located = checker.world().located.clone();
    let failing =
        required::shown(checker).map(|report| prompt_parts::failures(&report, Tokens(4_000)));
    let mut order = CandidateList::default();
    for text in failing.iter().chain([&checker.task.text]) {
        for symbol in innermost(lookup, text) {
            order.note(
                symbol,
                "where a traceback ends in the project",
                CandidateOrigin::Itself,
            );
        }
    }
    let imported = imported(lookup, &checker.task.text);
    let best = || located.iter().take(BEST).map(|one| &one.symbol);
    if !imported
        .iter()
        .any(|name| best().any(|best| name.encloses(best)))
    {
        for symbol in imported.into_iter().take(IMPORTED) {
            order.note(symbol, "imported in the task", CandidateOrigin::Itself);
        }
    }
    let (aside, located): (Vec<_>, Vec<_>) = located
        .into_iter()
        .partition(|one| is_aside(&one.symbol.file, &checker.task.text));
    let mut followed = 0;
    for one in located.into_iter().chain(aside) {
        let reasons = one.why.iter().filter(|why| !why.ends_with(' '));
        let why: Vec<String> = reasons.take(REASONS).cloned().collect();
        order.note(one.symbol.clone(), why.join(", "), CandidateOrigin::Itself);
        let is_followed = !one.symbol.is_module() && !is_test_file(&one.symbol.file);
        if followed < CALLERS_FOLLOWED && is_followed {
            followed += 1;
            for callee in callees(lookup, &one.symbol, CALLEES) {
                order.note(
                    callee,
                    format!("called by {}", one.symbol.name),
                    CandidateOrigin::Near,
                );
            }
        }
    }
    let first = order.0.first().map(|one| one.symbol.clone());
    if let Some(base) = first.as_ref().and_then(|first| base_of(lookup, first)) {
        let at = 1 + order.0[1..]
            .iter()
            .take_while(|one| one.standing == CandidateOrigin::Near)
            .count();
        order.note_at(at, base, "base of the class above", CandidateOrigin::Near);
    }
    let constructor = (first.as_ref()).and_then(|first| constructor_of(lookup, first));
    if let Some(constructor) = constructor {
        let at = 1 + order.0[1..]
            .iter()
            .take_while(|one| one.standing == CandidateOrigin::Near)
            .count();
        order.note_at(
            at,
            constructor,
            "sets what the first uses",
            CandidateOrigin::Near,
        );
    }
    order.0
}

/// Returns whether a file only shows how the project is used and the task does not mention it.
fn is_aside(file: &FilePath, task: &str) -> bool {
    let top = file.as_str().split('/').next().unwrap_or_default();
    ASIDE.contains(&top) && !task.contains(file.name())
}

/// Returns the constructor of a method's class, if it sets an attribute that the method uses.
fn constructor_of(lookup: &Lookup, method: &SymbolPath) -> Option<SymbolPath> {
    let found = lookup.symbol(method).ok()?;
    if found.symbol.kind != SymbolKind::Method || method.base_name() == CONSTRUCTOR {
        return None;
    }
    let class = found.tree.get(found.symbol.parent?);
    let path = SymbolPath::new(
        method.file.clone(),
        format!("{}.{CONSTRUCTOR}", class.path.name),
    );
    let constructor = lookup.symbol(&path).ok()?;
    let used = own_attributes(found.source());
    let sets = |line: &str| {
        let name = own_attributes(line).into_iter().next();
        line.trim_start().starts_with("self.")
            && line.contains(" = ")
            && name.is_some_and(|name| used.contains(name))
    };
    constructor.source().lines().any(sets).then_some(path)
}

/// Returns the attribute names that occur after `self.` in a source text.
fn own_attributes(source: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let names = source.split("self.").skip(1);
    let names = names.map(|rest| &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]);
    names.collect()
}

/// Returns the first base class that the project defines of a class, or of the class of a method.
fn base_of(lookup: &Lookup, symbol: &SymbolPath) -> Option<SymbolPath> {
    let found = lookup.symbol(symbol).ok()?;
    let class = match found.symbol.kind {
        SymbolKind::Class => found.symbol.clone(),
        SymbolKind::Method => found.tree.get(found.symbol.parent?).clone(),
        SymbolKind::Module | SymbolKind::Function => return None,
    };
    class.contract.bases.iter().find_map(|base| {
        let mut defined = lookup.index().definitions(base);
        defined.retain(|one| one.kind == SymbolKind::Class && !is_test_file(&one.symbol.file));
        let only = defined.pop().filter(|_| defined.is_empty())?;
        (only.symbol != class.path).then_some(only.symbol)
    })
}

/// Returns the project's symbols in which the tracebacks of a text end. If the error was raised in
/// a library, this is the symbol that called the library.
pub(crate) fn innermost(lookup: &Lookup, text: &str) -> Vec<SymbolPath> {
    let mut found: Vec<SymbolPath> = Vec::new();
    let mut last: Option<SymbolPath> = None;
    for line in text.lines() {
        if starts_traceback(line) {
            found.extend(last.take());
        }
        if let [frame] = frames(line).as_slice()
            && let Some(symbol) = place(lookup, frame.path, frame.line, frame.function)
        {
            last = Some(symbol);
        }
    }
    found.extend(last);
    let mut seen = Vec::new();
    found.retain(|symbol| {
        let is_new = !seen.contains(symbol) && !is_test_file(&symbol.file) && !symbol.is_module();
        seen.push(symbol.clone());
        is_new
    });
    found.truncate(FRAMES);
    found
}

fn starts_traceback(line: &str) -> bool {
    line.starts_with("Traceback (most recent call last)") || line.contains("::test")
}

/// Returns the symbol of a traceback frame. The function name takes precedence over the line,
/// because the project may have changed since the traceback was printed.
fn place(lookup: &Lookup, path: &str, line: u32, function: Option<&str>) -> Option<SymbolPath> {
    let file = file_of(lookup, path)?;
    let tree = lookup.tree(&file).ok()?;
    let Some(function) = function.filter(|name| !name.starts_with('<')) else {
        return Some(tree.at_line(line).path.clone());
    };
    let function = function
        .rsplit('.')
        .next()
        .unwrap_or(function)
        .trim_end_matches("()");
    let distance = |symbol: &&Symbol| distance(&tree, symbol, line);
    let named = tree
        .symbols()
        .iter()
        .filter(|symbol| symbol.path.base_name() == function);
    named.min_by_key(distance).map(|symbol| symbol.path.clone())
}

fn distance(tree: &SymbolTree, symbol: &Symbol, line: u32) -> u32 {
    let (first, last) = (tree.line_of(symbol), symbol.lines.1);
    match (line < first, line > last) {
        (true, _) => first - line,
        (_, true) => line - last,
        (false, false) => 0,
    }
}

/// Returns the project's file for a path in a traceback. The path may be relative to the project,
/// or only end in the project's path.
fn file_of(lookup: &Lookup, path: &str) -> Option<FilePath> {
    let path = path.replace('\\', "/");
    let ends = |file: &&FilePath| {
        let file = file.as_str();
        path == file
            || path
                .strip_suffix(file)
                .is_some_and(|before| before.ends_with('/'))
    };
    // If the path ends in the paths of two files, the longer path is more specific.
    lookup
        .files()
        .iter()
        .filter(ends)
        .max_by_key(|file| file.as_str().len())
        .cloned()
}

/// Returns the symbols of the project that import statements in a text import, if there is only one
/// definition.
fn imported(lookup: &Lookup, text: &str) -> Vec<SymbolPath> {
    let mut found: Vec<SymbolPath> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '>', '.', '\t']);
        let Some((module, names)) = line
            .strip_prefix("from ")
            .and_then(|rest| rest.split_once(" import "))
        else {
            continue;
        };
        let names = names.split('#').next().unwrap_or_default();
        for name in names.split(',') {
            let name = name.trim_matches(['(', ')', ' ']);
            let name = name.split(' ').next().unwrap_or_default();
            found.extend(one_of(lookup, module.trim(), name));
        }
    }
    found
}

/// Returns the definition of a name that a module imports, if there is exactly one and it is in the
/// package of the module.
fn one_of(lookup: &Lookup, module: &str, name: &str) -> Option<SymbolPath> {
    let folder = module.trim_start_matches('.').replace('.', "/");
    let mut defined = lookup.index().definitions(name);
    defined.retain(|one| {
        let file = &one.symbol.file;
        file.as_str().contains(folder.as_str())
            && !is_test_file(file)
            && !one.symbol.name.contains('.')
    });
    match defined.as_slice() {
        [only] => Some(only.symbol.clone()),
        _ => None,
    }
}
