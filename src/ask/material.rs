//! What a reader begins with, gathered without a model: the symbols that the question leads to with
//! their source, where those that it names are used, and a map of the files around them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::cite::{identifiers, words};
use super::code::{Code, chosen};
use super::session::Session;
use super::step::Found;
use crate::index::{Definition, Located, is_test_file};
use crate::ports::{ModelProfile, Tokens, ToolCalling};
use crate::prompts::{AskPrompt, AskTurn, Prompt};
use crate::syntax::{FilePath, Language, SymbolPath};

/// Models without tools and with a smaller window are small: they read little, and slowly.
const SMALL_WINDOW: Tokens = Tokens(20_000);
/// With less room than this no further symbol is shown.
const LEAST: Tokens = Tokens(100);
/// Files of the map where a question leads nowhere.
const MODULES: usize = 30;
/// Lines of one word that are looked at.
const HITS: usize = 100;
/// Symbols of one file, before those of others.
const PER_FILE: usize = 3;
/// Definitions of a name beyond which it says nothing.
const SHARED: usize = 4;

/// How much of each kind a reader is given.
#[derive(Debug, Clone, Copy)]
struct Caps {
    symbols: usize,
    /// All excerpts together.
    excerpts: Tokens,
    named: Tokens,
    first: Tokens,
    best: Tokens,
    rest: Tokens,
    /// Symbols whose uses are listed, and how many uses.
    used: (usize, usize),
    map_bytes: usize,
}

impl Caps {
    fn of(profile: &ModelProfile) -> Caps {
        match is_small(profile) {
            false => Caps {
                symbols: 12,
                excerpts: Tokens(5_500),
                named: Tokens(1_800),
                first: Tokens(1_600),
                best: Tokens(900),
                rest: Tokens(320),
                used: (2, 30),
                map_bytes: 2_500,
            },
            true => Caps {
                symbols: 5,
                excerpts: Tokens(1_500),
                named: Tokens(700),
                first: Tokens(600),
                best: Tokens(400),
                rest: Tokens(250),
                used: (1, 8),
                map_bytes: 0,
            },
        }
    }
}

/// Whether a model gets one prompt and no tools.
pub fn is_small(profile: &ModelProfile) -> bool {
    profile.tool_calling == ToolCalling::Text && profile.context_window < SMALL_WINDOW
}

/// The first prompt, and what it is made of.
pub struct Material {
    pub prompt: String,
    pub located: Vec<Found>,
    pub millis: u64,
}

/// Gathers what the question leads to. Takes a second or two for a large code base that has not been
/// read yet.
pub fn gather(code: &Code, question: &str, session: &Session, profile: &ModelProfile) -> Material {
    let began = Instant::now();
    let caps = Caps::of(profile);
    let named = named(code, question);
    let candidates = candidates(code, question, session, &named, caps.symbols);
    let excerpts = excerpts(code, &candidates, &named, &words(question), caps);
    let shown = excerpts.len();
    let uses = used_names(&named, question).into_iter().take(caps.used.0);
    let uses = uses.map(|name| (name.clone(), code.references(&name, caps.used.1)));
    let mut symbols: Vec<SymbolPath> = candidates.iter().map(|(path, _)| path.clone()).collect();
    if symbols.is_empty() {
        symbols = modules(code);
    }
    let map = match caps.map_bytes {
        0 => String::new(),
        bytes => code.index().repository_map(&symbols, bytes),
    };
    let others = candidates[shown.min(candidates.len())..].iter();
    let prompt = AskPrompt {
        question: question.to_owned(),
        excerpts,
        others: others.map(|(path, _)| path.to_string()).collect(),
        uses: uses.collect(),
        map,
        files: folders(code),
        turns: turns(session),
        findings: findings(session),
    };
    let located = candidates.into_iter().map(|(symbol, why)| Found {
        symbol: symbol.to_string(),
        why,
    });
    Material {
        prompt: prompt.render(),
        located: located.collect(),
        millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

/// The sources of the candidates, as far as there is room; no line is shown twice.
fn excerpts(
    code: &Code,
    candidates: &[(SymbolPath, String)],
    named: &[Definition],
    terms: &BTreeSet<String>,
    caps: Caps,
) -> Vec<String> {
    let mut excerpts = Vec::new();
    let mut left = caps.excerpts;
    let mut shown: BTreeSet<(FilePath, usize)> = BTreeSet::new();
    for (at, (symbol, _)) in candidates.iter().enumerate() {
        let Ok(found) = code.symbol(symbol) else {
            continue;
        };
        let is_named = named.iter().any(|name| name.symbol == *symbol);
        let inside: Vec<(u32, u32)> = candidates
            .iter()
            .filter(|(inner, _)| inner != symbol && symbol.encloses(inner))
            .filter_map(|(inner, _)| Some(code.symbol(inner).ok()?.symbol.lines))
            .collect();
        let most = match (is_named, at) {
            (true, _) => caps.named,
            // What it holds is shown by itself.
            (false, _) if !inside.is_empty() => caps.rest,
            (false, 0) => caps.first,
            (false, 1 | 2) => caps.best,
            (false, _) => caps.rest,
        };
        let elsewhere = |line: usize| {
            let holds = |lines: &(u32, u32)| (lines.0 as usize..=lines.1 as usize).contains(&line);
            inside.iter().any(holds)
        };
        let lines: BTreeSet<usize> = chosen(&found, terms, most.min(left))
            .into_iter()
            .filter(|line| !elsewhere(*line) && shown.insert((symbol.file.clone(), *line)))
            .collect();
        if lines.is_empty() {
            continue;
        }
        let excerpt = code.excerpt(&found, lines, most.min(left));
        left = left.saturating_sub(Tokens::estimate(&excerpt));
        excerpts.push(excerpt);
        if left < LEAST {
            break;
        }
    }
    excerpts
}

/// What the names of code in a question stand for, where that is plain. `Class.method` means the
/// method, not the class.
fn named(code: &Code, question: &str) -> Vec<Definition> {
    let dotted = dotted(question);
    let part = |name: &String| {
        let within = |whole: &String| whole.split('.').any(|part| part == name);
        dotted.iter().any(within)
    };
    let single = identifiers(question).into_iter().chain(capitals(question));
    let names = dotted
        .iter()
        .cloned()
        .chain(single.filter(|name| !part(name)));
    let mut found: Vec<Definition> = Vec::new();
    for name in names {
        let mut defined = code.index().definitions(&name);
        defined.retain(|found| {
            !is_test_file(&found.symbol.file)
                && !found.symbol.is_module()
                && !is_overload(code, &found.symbol)
        });
        if defined.len() <= SHARED {
            found.extend(defined);
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|definition| seen.insert(definition.symbol.clone()));
    found
}

/// A signature for type checkers, without a body.
fn is_overload(code: &Code, symbol: &SymbolPath) -> bool {
    let overloads = |decorator: &String| decorator.ends_with("overload");
    code.symbol(symbol)
        .is_ok_and(|found| found.symbol.contract.decorators.iter().any(overloads))
}

/// `Class.method` as it is written, its parts being names.
fn dotted(question: &str) -> Vec<String> {
    question
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
        .map(|word| word.trim_matches('.'))
        .filter(|word| word.contains('.') && !word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

/// Words with a capital that begin no sentence: they may be classes.
fn capitals(question: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut begins = true;
    for word in question.split_whitespace() {
        let name = word.trim_matches(|c: char| !c.is_alphanumeric());
        let capital = name.starts_with(char::is_uppercase) && name.len() > 3;
        if capital && !begins && name.chars().all(char::is_alphanumeric) {
            found.push(name.to_owned());
        }
        begins = word.ends_with(['.', '?', '!', ':']);
    }
    found
}

/// The names whose uses are listed: what is named and defined, then attributes and the like.
fn used_names(named: &[Definition], question: &str) -> Vec<String> {
    let defined = named
        .iter()
        .map(|found| found.symbol.base_name().to_owned());
    let parts: BTreeSet<String> = dotted(question)
        .iter()
        .flat_map(|whole| whole.split('.').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let other = identifiers(question)
        .into_iter()
        .filter(|name| !parts.contains(name));
    let mut names: Vec<String> = Vec::new();
    for name in defined.chain(other) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What the question names, what it leads to by its words, and what the last answer was about.
fn candidates(
    code: &Code,
    question: &str,
    session: &Session,
    named: &[Definition],
    most: usize,
) -> Vec<(SymbolPath, String)> {
    let mut found: Vec<(SymbolPath, String)> = Vec::new();
    let mut add = |symbol: &SymbolPath, why: String| {
        if !found.iter().any(|(known, _)| known == symbol) {
            found.push((symbol.clone(), why));
        }
    };
    for definition in named.iter().take(most / 2) {
        let name = definition.symbol.base_name();
        add(&definition.symbol, format!("names {name}"));
    }
    let mut of_file: BTreeMap<FilePath, usize> = BTreeMap::new();
    let located = code.index().locate(question, 4 * most).into_iter();
    let located = located.filter(|located| !is_overload(code, &located.symbol));
    // What one file has too much of comes last.
    let (mut located, more): (Vec<Located>, Vec<Located>) = located.partition(|located| {
        let count = of_file.entry(located.symbol.file.clone()).or_default();
        *count += 1;
        *count <= PER_FILE
    });
    located.extend(more);
    if located.is_empty() || mostly_plain(code) {
        // Files without symbols are found by their lines alone.
        for symbol in by_lines(code, question) {
            add(&symbol, "holds words of the question".to_owned());
        }
    }
    let (before, after) = located.split_at(located.len().min(most / 2));
    for located in before {
        add(&located.symbol, located.why.join(", "));
    }
    for symbol in session.turns().last().iter().flat_map(|turn| &turn.symbols) {
        add(symbol, "the last answer was about it".to_owned());
    }
    for located in after {
        add(&located.symbol, located.why.join(", "));
    }
    found.truncate(most);
    found
}

/// Whether hardly a file has a grammar.
fn mostly_plain(code: &Code) -> bool {
    let files = code.files().files();
    let read = files
        .iter()
        .filter(|file| Language::of(file) != Language::Plain);
    read.count() * 5 < files.len()
}

/// The symbols (of files without a grammar: the files) whose lines hold the most of the words.
fn by_lines(code: &Code, question: &str) -> Vec<SymbolPath> {
    let mut held: BTreeMap<SymbolPath, usize> = BTreeMap::new();
    let words: BTreeSet<&str> = question
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !words(word).is_empty())
        .collect();
    for word in words {
        let hits = code.index().search(word, HITS).hits;
        let symbols: BTreeSet<SymbolPath> = hits.into_iter().map(|hit| hit.symbol).collect();
        for symbol in symbols {
            *held.entry(symbol).or_default() += 1;
        }
    }
    let mut found: Vec<(usize, SymbolPath)> = held
        .into_iter()
        .map(|(symbol, count)| (count, symbol))
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.into_iter().map(|(_, symbol)| symbol).collect()
}

/// Module bodies, where a question leads nowhere.
fn modules(code: &Code) -> Vec<SymbolPath> {
    let files = code.files().files().iter();
    files
        .filter(|file| Language::of(file) != Language::Plain && !is_test_file(file))
        .take(MODULES)
        .map(|file| SymbolPath::module(file.clone()))
        .collect()
}

/// The folders at the top with their number of files.
fn folders(code: &Code) -> String {
    let files = code.files().files();
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for file in files {
        let top = file.as_str().split_once('/').map_or("", |(top, _)| top);
        match counts.iter_mut().find(|(known, _)| *known == top) {
            Some((_, count)) => *count += 1,
            None => counts.push((top, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown: Vec<String> = counts
        .iter()
        .take(12)
        .map(|(top, count)| match top.is_empty() {
            true => format!("{count} at the top"),
            false => format!("{top}/ {count}"),
        })
        .collect();
    format!("{} files: {}", files.len(), shown.join(", "))
}

fn turns(session: &Session) -> Vec<AskTurn> {
    let last = session.turns().iter().rev().take(3).rev();
    let turn = |turn: &super::session::Turn| AskTurn {
        question: turn.question.clone(),
        answer: turn.answer.chars().take(1_500).collect(),
    };
    last.map(turn).collect()
}

fn findings(session: &Session) -> Vec<String> {
    let last = session.findings().iter().rev().take(6).rev();
    last.map(|finding| {
        let answer: String = finding.answer.chars().take(800).collect();
        format!(
            "{}, asked \"{}\": {answer}",
            finding.symbol, finding.question
        )
    })
    .collect()
}
