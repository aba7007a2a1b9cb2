//! What a run begins with, gathered without a model: the sources that a good engineer would look at
//! first, and the names of what may come next.

use super::callees::callees;
use super::context::{self, Caps};
use super::excerpt::excerpt;
use super::hub::Hub;
use super::lookup::Lookup;
use crate::index::{frames, is_test_file};
use crate::ports::{Role, Tokens};
use crate::prompts::Excerpt;
use crate::syntax::{FilePath, Symbol, SymbolKind, SymbolPath, SymbolTree};

/// So many of the best candidates are shown with what they call, so many callees each.
const CALLERS_FOLLOWED: usize = 2;
const CALLEES: usize = 2;
/// Imported names that are shown.
const IMPORTED: usize = 2;
/// Frames of tracebacks that are shown.
const FRAMES: usize = 2;
/// Tests that are shown.
const TESTS: usize = 1;
/// Reasons that are told of a candidate.
const REASONS: usize = 2;
/// With less room than this nothing more is shown.
const LEAST: Tokens = Tokens(80);

/// A symbol that may be shown.
struct Candidate {
    symbol: SymbolPath,
    why: String,
    /// It is there because another one calls it.
    is_callee: bool,
}

/// Sources, best first, and candidates that found no room.
#[derive(Debug, Default)]
pub(super) struct Material {
    pub shown: Vec<Excerpt>,
    pub more: Vec<String>,
}

/// The best candidates with their sources and what they call. The first are shown whole where that is
/// no waste.
pub(super) fn material(hub: &Hub, role: Role) -> Material {
    let profile = match role {
        Role::Scout => hub.outside.models.scout.profile(),
        Role::Agent | Role::Editor | Role::Proxy => hub.outside.models.agent.profile(),
    };
    let caps = Caps::of(profile);
    let lookup = hub.lookup();
    let mut order = in_order(hub, &lookup);
    // A small model takes the test that fails for the place to be changed.
    order.retain(|one| !context::is_small(profile) || !is_test_file(&one.symbol.file));
    let mut material = Material::default();
    let mut left = caps.candidates;
    let mut best = caps.best_count;
    let mut tests = TESTS;
    for Candidate {
        symbol,
        why,
        is_callee,
    } in order
    {
        let is_around = |shown: &Excerpt| encloses(&symbol, &shown.symbol);
        let is_known = material.shown.iter().any(is_around);
        let is_test = is_test_file(&symbol.file);
        let is_best = best > 0 && !is_test && !is_callee;
        if is_known || left < LEAST || is_test && tests == 0 {
            if !is_test && !symbol.is_module() {
                material.more.push(symbol.to_string());
            }
            continue;
        }
        tests -= usize::from(is_test);
        let most = room(&lookup, &symbol, is_best, caps).min(left);
        let Some(one) = shown(&lookup, &symbol, why, most) else {
            continue;
        };
        best -= usize::from(is_best);
        left = left.saturating_sub(Tokens::estimate(&one.source) + Tokens(20));
        material.shown.push(one);
    }
    material.more.truncate(caps.more);
    material
}

/// How much of a symbol is shown. Of a class that is too long, single lines say little.
fn room(lookup: &Lookup, symbol: &SymbolPath, is_best: bool, caps: Caps) -> Tokens {
    let most = if is_best { caps.best } else { caps.candidate };
    match lookup.symbol(symbol) {
        Ok(found) if found.symbol.kind == SymbolKind::Class => {
            let fits = Tokens::estimate(found.source()) <= most;
            if fits { most } else { caps.class }
        }
        Ok(_) | Err(_) => most,
    }
}

/// Whether a symbol is shown or holds what is.
fn encloses(symbol: &SymbolPath, shown: &str) -> bool {
    shown.parse().is_ok_and(|shown| symbol.encloses(&shown))
}

/// A symbol's source as an excerpt.
pub(super) fn shown(
    lookup: &Lookup,
    path: &SymbolPath,
    why: String,
    most: Tokens,
) -> Option<Excerpt> {
    let found = lookup.symbol(path).ok()?;
    Some(Excerpt {
        symbol: path.to_string(),
        line: found.symbol.lines.0,
        why,
        source: excerpt(&found, lookup.focus(), most)
            .0
            .trim_end()
            .to_owned(),
    })
}

/// Symbols with why they may matter: where a traceback ends in the project; what the task imports,
/// when none of it was located; what was located, the best with what they call.
fn in_order(hub: &Hub, lookup: &Lookup) -> Vec<Candidate> {
    let located = hub.state().located.clone();
    let failing = hub
        .state()
        .before
        .as_ref()
        .map(|report| context::failures(report, Tokens(4_000)));
    let mut order: Vec<Candidate> = Vec::new();
    let mut note = |symbol: SymbolPath, why: String, is_callee: bool| {
        if !order.iter().any(|known| known.symbol == symbol) {
            order.push(Candidate {
                symbol,
                why,
                is_callee,
            });
        }
    };
    for text in failing.iter().chain([&hub.task.text]) {
        for symbol in innermost(lookup, text) {
            note(
                symbol,
                "where a traceback ends in the project".to_owned(),
                false,
            );
        }
    }
    let best: Vec<&SymbolPath> = located.iter().take(8).map(|one| &one.symbol).collect();
    let imported = imported(lookup, &hub.task.text);
    if !imported
        .iter()
        .any(|name| best.iter().any(|best| name.encloses(best)))
    {
        for symbol in imported.into_iter().take(IMPORTED) {
            note(symbol, "imported in the task".to_owned(), false);
        }
    }
    let mut followed = 0;
    for candidate in located {
        let symbol = candidate.symbol;
        let why = candidate
            .why
            .iter()
            .take(REASONS)
            .cloned()
            .collect::<Vec<_>>();
        note(symbol.clone(), why.join(", "), false);
        if followed < CALLERS_FOLLOWED && !is_test_file(&symbol.file) {
            followed += 1;
            for callee in callees(lookup, &symbol, CALLEES) {
                note(callee, format!("called by {}", symbol.name), true);
            }
        }
    }
    order
}

/// The symbols in which the tracebacks of a text end, as far as they lie in the project: an error that
/// a library raises comes from the last call into it.
fn innermost(lookup: &Lookup, text: &str) -> Vec<SymbolPath> {
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

/// The symbol of a frame. The project may have moved on since a traceback was printed: its function
/// counts for more than its line.
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

/// The file that a traceback means: by its path in the project, or by the end of that.
fn file_of(lookup: &Lookup, path: &str) -> Option<FilePath> {
    let path = path.replace('\\', "/");
    let ends = |file: &&FilePath| {
        let file = file.as_str();
        path == file
            || path
                .strip_suffix(file)
                .is_some_and(|before| before.ends_with('/'))
    };
    // Of two that fit, the longer one says more.
    lookup
        .files()
        .iter()
        .filter(ends)
        .max_by_key(|file| file.as_str().len())
        .cloned()
}

/// The symbols of the project that snippets in a text import, each where it is plain which one.
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

/// The one definition of a name that a module may hold: its package is where the module says.
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
