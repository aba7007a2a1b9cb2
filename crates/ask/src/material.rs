//! The reader's initial context, gathered without a model: the source of matching symbols, the uses
//! of named symbols, and a map of the files around them.

use std::collections::BTreeSet;
use std::time::Instant;

use super::candidates::{candidates, named, used};
use super::code::CodeReader;
use super::session::Session;
use super::step::LocatedSymbol;
use starling_core::prompts::{AskPrompt, AskTurn, Prompt};
use starling_core::{ModelProfile, Tokens};
use starling_index::{Definition, Seed};
use starling_swarm::reading::{Focus, Layout, chosen};
use starling_syntax::{FilePath, SymbolPath};

/// Minimum number of tokens that must be left to show another symbol.
const LEAST: Tokens = Tokens(100);

/// Size limits of the parts of the initial context, in tokens unless stated otherwise.
#[derive(Debug, Clone, Copy)]
struct ContextLimits {
    symbols: usize,
    /// Limit for all excerpts together.
    excerpts: Tokens,
    /// Limit for the excerpt of a symbol that the question names.
    named: Tokens,
    /// Limit for the excerpt of the best match.
    first: Tokens,
    /// Limit for the excerpts of the next two matches.
    best: Tokens,
    /// Limit for each other excerpt.
    rest: Tokens,
    /// Number of symbols whose uses are listed, and maximum number of uses per symbol.
    used: (usize, usize),
    /// Limit for the map of the repository.
    map_tokens: usize,
}

impl ContextLimits {
    fn of(profile: &ModelProfile) -> ContextLimits {
        match is_small(profile) {
            false => ContextLimits {
                symbols: 12,
                excerpts: Tokens(5_500),
                named: Tokens(1_800),
                first: Tokens(1_600),
                best: Tokens(900),
                rest: Tokens(320),
                used: (2, 30),
                map_tokens: 700,
            },
            true => ContextLimits {
                symbols: 5,
                excerpts: Tokens(1_500),
                named: Tokens(700),
                first: Tokens(600),
                best: Tokens(400),
                rest: Tokens(250),
                used: (1, 8),
                map_tokens: 0,
            },
        }
    }
}

/// Whether a model gets a single prompt and no tools.
pub fn is_small(profile: &ModelProfile) -> bool {
    profile.is_small()
}

/// The first prompt to the reader, and the symbols in it.
pub struct InitialContext {
    pub prompt: String,
    pub located: Vec<LocatedSymbol>,
    pub millis: u64,
}

/// Gathers the initial context of a question. Takes up to two seconds for a large code base that
/// is not yet indexed.
pub fn gather(
    code: &CodeReader,
    question: &str,
    session: &Session,
    profile: &ModelProfile,
) -> InitialContext {
    let began = Instant::now();
    let caps = ContextLimits::of(profile);
    let named = named(code, question);
    let candidates = candidates(code, question, session, &named, caps.symbols);
    let excerpts = excerpts(code, &candidates, &named, &Focus::of(question), caps);
    let shown = excerpts.len();
    let (names, most) = caps.used;
    let uses = used(&named, question, most).into_iter().take(names);
    let uses = uses.map(|(label, name, most)| (label, code.references(&name, most)));
    let symbols: Vec<SymbolPath> = candidates.iter().map(|(path, _)| path.clone()).collect();
    let seed = match symbols.is_empty() {
        true => Seed::Central,
        false => Seed::Symbols(&symbols),
    };
    let map = match caps.map_tokens {
        0 => String::new(),
        tokens => code.index().repository_map(seed, tokens).to_string(),
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
        small: is_small(profile),
    };
    let located = candidates.into_iter().map(|(symbol, why)| LocatedSymbol {
        symbol: symbol.to_string(),
        why,
    });
    InitialContext {
        prompt: prompt.render(),
        located: located.collect(),
        millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

/// Returns the sources of the candidates within the limits. No line is shown twice.
fn excerpts(
    code: &CodeReader,
    candidates: &[(SymbolPath, String)],
    named: &[Definition],
    focus: &Focus,
    caps: ContextLimits,
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
            // Symbols inside this one are candidates, too, and have their own excerpts.
            (false, _) if !inside.is_empty() => caps.rest,
            (false, 0) => caps.first,
            (false, 1 | 2) => caps.best,
            (false, _) => caps.rest,
        };
        let elsewhere = |line: usize| {
            let holds = |lines: &(u32, u32)| (lines.0 as usize..=lines.1 as usize).contains(&line);
            inside.iter().any(holds)
        };
        let lines: BTreeSet<usize> = chosen(&found, focus, most.min(left), Layout::Numbered)
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

/// Lists the top-level directories with their number of files.
fn folders(code: &CodeReader) -> String {
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
    let turn = |turn: &super::session::AnsweredQuestion| AskTurn {
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
