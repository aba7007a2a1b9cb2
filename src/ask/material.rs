//! What a reader begins with, gathered without a model: the symbols that the question leads to with
//! their source, where those that it names are used, and a map of the files around them.

use std::collections::BTreeSet;
use std::time::Instant;

use super::cite::{identifiers, words};
use super::code::Code;
use super::session::Session;
use super::step::Found;
use crate::index::{Definition, is_test_file};
use crate::ports::{ModelProfile, Tokens, ToolCalling};
use crate::prompts::{AskPrompt, AskTurn, Prompt};
use crate::syntax::SymbolPath;

/// Models without tools and with a smaller window are small: they read little, and slowly.
const SMALL_WINDOW: Tokens = Tokens(20_000);
/// Definitions of a name beyond which it says nothing.
const SHARED: usize = 4;

/// How much of each kind a reader is given.
#[derive(Debug, Clone, Copy)]
struct Caps {
    symbols: usize,
    /// All excerpts together.
    excerpts: Tokens,
    named: Tokens,
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
                best: Tokens(1_000),
                rest: Tokens(350),
                used: (2, 30),
                map_bytes: 2_500,
            },
            true => Caps {
                symbols: 5,
                excerpts: Tokens(1_500),
                named: Tokens(700),
                best: Tokens(500),
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
    let terms = words(question);
    let mut excerpts = Vec::new();
    let mut left = caps.excerpts;
    for (at, (symbol, _)) in candidates.iter().enumerate() {
        let most = match (named.iter().any(|name| name.symbol == *symbol), at) {
            (true, _) => caps.named,
            (false, ..3) => caps.best,
            (false, _) => caps.rest,
        };
        let Ok(found) = code.symbol(symbol) else {
            continue;
        };
        let excerpt = code.source(&found, &terms, most.min(left));
        left = left.saturating_sub(Tokens::estimate(&excerpt));
        excerpts.push(excerpt);
        if left.0 < 100 {
            break;
        }
    }
    let shown = excerpts.len();
    let mut uses = Vec::new();
    for name in used_names(&named).into_iter().take(caps.used.0) {
        uses.push((name.clone(), code.references(&name, caps.used.1)));
    }
    let symbols: Vec<SymbolPath> = candidates.iter().map(|(path, _)| path.clone()).collect();
    let map = match caps.map_bytes {
        0 => String::new(),
        bytes => code.index().repository_map(&symbols, bytes),
    };
    let others = candidates[shown.min(candidates.len())..].iter();
    let prompt = AskPrompt {
        question: question.to_owned(),
        excerpts,
        others: others.map(|(path, _)| path.to_string()).collect(),
        uses,
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

/// What the names of code in a question stand for, where that is plain.
fn named(code: &Code, question: &str) -> Vec<Definition> {
    let mut found: Vec<Definition> = Vec::new();
    for name in dotted(question).into_iter().chain(identifiers(question)) {
        let mut defined = code.index().definitions(&name);
        defined.retain(|found| !is_test_file(&found.symbol.file) && !found.symbol.is_module());
        if defined.len() <= SHARED {
            found.extend(defined);
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|definition| seen.insert(definition.symbol.clone()));
    found
}

/// `Class.method` as it is written, its parts being names.
fn dotted(question: &str) -> Vec<String> {
    question
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
        .map(|word| word.trim_matches('.'))
        .filter(|word| word.contains('.'))
        .map(str::to_owned)
        .collect()
}

/// The names whose uses are listed, in the order of the question.
fn used_names(named: &[Definition]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for definition in named {
        let name = definition.symbol.base_name().to_owned();
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
    let located = code.index().locate(question, most);
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
