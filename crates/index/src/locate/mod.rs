//! Locates where a task starts: ranks symbols and files by the text of the task, without a model.
//!
//! The text is parsed for references to code ([`query`]). Symbols and files are scored by the words
//! that they share with the text ([`mod@matches`]), by names in the text ([`named`]), and by
//! mentions of or in symbols that match well ([`near`]). The results become numeric features
//! ([`features`]), which are combined with learned weights ([`weights`]). If it is known what
//! failing tests executed, that is added to the score of symbols ([`executed`]).

mod around;
mod corpus;
mod documents;
mod executed;
mod features;
mod imports;
mod matches;
mod named;
mod near;
mod phrase;
mod query;
mod question;
mod sections;
mod stem;
mod stop;
#[cfg(test)]
mod tests;
mod usage;
mod weights;
mod why;

pub(super) use corpus::{Corpus, Table};
pub use executed::ExecutedLines;
pub(super) use executed::locate_executed;

use std::collections::{BTreeSet, HashMap};

use crate::words::{all_words, singular};
use around::{stem, tested_module};
use features::Row;
use question::Question;
use starling_syntax::{FilePath, SymbolPath};
use stem::roots;
use stop::is_stop_word;
use weights::{FILE, INSIDE, OF_FILE, SYMBOL};
use why::{why_file, why_symbol};

/// How much more a module is worth than its tests if the text says its name.
const ABOVE_TESTS: f64 = 0.01;

/// A symbol that a text may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    pub symbol: SymbolPath,
    /// Likelihood relative to the best symbol, which has 1.
    pub score: f64,
    /// Reasons for the score, written for the user, strongest first.
    pub why: Vec<String>,
}

/// A file that a text may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedFile {
    pub file: FilePath,
    /// Likelihood relative to the best file, which has 1.
    pub score: f64,
    /// Reasons for the score, written for the user, strongest first.
    pub why: Vec<String>,
}

/// A file or symbol that a text may be about, with its features. `benches/locate` learns the
/// weights from these.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Path of the file or symbol.
    pub path: String,
    pub features: Vec<(&'static str, f32)>,
}

/// Returns the symbols that a text is about, likeliest first. The text can be a task, a question,
/// or the output of failing tests.
pub(super) fn locate(corpus: Corpus<'_>, text: &str, limit: usize) -> Vec<Located> {
    let question = Question::new(corpus, text);
    let (_, ranked) = rank(&question);
    let chosen = &ranked[..ranked.len().min(limit)];
    let words = why::words_of_symbols(&question, chosen);
    let located = chosen.iter().map(|(id, score)| Located {
        symbol: corpus.path(*id),
        score: *score,
        why: why_symbol(&question, *id, &words),
    });
    located.collect()
}

/// Returns the files that a text is about, likeliest first.
pub(super) fn locate_files(corpus: Corpus<'_>, text: &str, limit: usize) -> Vec<LocatedFile> {
    let question = Question::new(corpus, text);
    let (ranked, _) = rank(&question);
    let chosen = &ranked[..ranked.len().min(limit)];
    let words = why::words_of_files(&question, chosen);
    let located = chosen.iter().map(|(number, score)| LocatedFile {
        file: corpus.files()[*number as usize].path.clone(),
        score: *score,
        why: why_file(&question, *number, &words),
    });
    located.collect()
}

/// Returns the candidate files and symbols with their features.
pub(super) fn candidates(corpus: Corpus<'_>, text: &str) -> (Vec<Candidate>, Vec<Candidate>) {
    let question = Question::new(corpus, text);
    let (files, symbols) = question.candidates();
    let files = files.into_iter().map(|number| Candidate {
        path: corpus.files()[number as usize].path.to_string(),
        features: question.file_row(number),
    });
    let symbols = symbols.into_iter().map(|id| Candidate {
        path: corpus.path(id).to_string(),
        features: question.symbol_row(id),
    });
    (files.collect(), symbols.collect())
}

/// Returns the words of a text that tell what it is about, in lower case and without a plural `s`:
/// the words and the parts of compound words that are no stop words, with their possible roots.
pub fn content_words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in all_words(text) {
        let lower = word.to_lowercase();
        if is_stop_word(&lower) || lower.chars().all(|c| c.is_ascii_digit()) {
            continue;
        }
        found.extend(roots(word));
        found.insert(singular(&lower).to_owned());
    }
    found
}

/// Numbers of files or symbols with their scores, likeliest first.
type Ranked = Vec<(u32, f64)>;

fn rank(question: &Question<'_>) -> (Ranked, Ranked) {
    let (files, symbols) = question.candidates();
    let weigh_file = |number: u32| (number, weigh(&question.file_row(number), &FILE));
    let mut files: Vec<(u32, f64)> = files.into_iter().map(weigh_file).collect();
    put_before_their_tests(question, &mut files);
    let best = files
        .iter()
        .map(|(_, score)| *score)
        .fold(f64::MIN, f64::max);
    let of_file: HashMap<u32, f64> = files.iter().copied().collect();
    let weigh_symbol = |id: u32| {
        let row = question.symbol_row(id);
        let file = question.corpus.symbol(id).file;
        ScoredSymbol {
            id,
            file,
            of_file: of_file[&file] - best,
            among_all: weigh(&row, &SYMBOL),
            inside: weigh(&row, &INSIDE),
        }
    };
    let symbols: Vec<ScoredSymbol> = symbols.into_iter().map(weigh_symbol).collect();
    (in_order(files), in_order(both_ways(&symbols)))
}

/// Raises each module whose name the text says above the tests that are named after it, unless the
/// text gives the path of these tests.
fn put_before_their_tests(question: &Question<'_>, files: &mut [(u32, f64)]) {
    let all = question.corpus.files();
    let mut best: HashMap<&str, f64> = HashMap::new();
    for (number, score) in files.iter() {
        let file = &all[*number as usize];
        let tested = tested_module(stem(file)).filter(|_| file.is_test);
        if let Some(tested) = tested.filter(|_| question.names.files[number].path == 0.0) {
            let known = best.entry(tested).or_insert(*score);
            *known = known.max(*score);
        }
    }
    for (number, score) in files {
        let file = &all[*number as usize];
        if let Some(tests) = best.get(stem(file)).filter(|_| !file.is_test)
            && question.names.files[&*number].is_called()
        {
            *score = score.max(tests + ABOVE_TESTS);
        }
    }
}

/// A symbol with three scores: of its file, of the symbol among all symbols, and of the symbol
/// within its file.
struct ScoredSymbol {
    id: u32,
    file: u32,
    of_file: f64,
    among_all: f64,
    inside: f64,
}

/// Scores each symbol by the mean of two log-likelihoods: the symbol's among all symbols, and its
/// file's plus the symbol's within the file.
fn both_ways(symbols: &[ScoredSymbol]) -> Ranked {
    let mut best: HashMap<u32, f64> = HashMap::new();
    for symbol in symbols {
        let best = best.entry(symbol.file).or_insert(f64::MIN);
        *best = best.max(symbol.inside);
    }
    let mut sums: HashMap<u32, f64> = HashMap::new();
    for symbol in symbols {
        *sums.entry(symbol.file).or_default() += (symbol.inside - best[&symbol.file]).exp();
    }
    let (worth, floor) = OF_FILE;
    let score = |symbol: &ScoredSymbol| {
        let among_all = symbol.among_all + f64::from(worth) * symbol.of_file.max(f64::from(floor));
        let inside = symbol.inside - best[&symbol.file] - sums[&symbol.file].ln();
        (symbol.id, f64::midpoint(among_all, symbol.of_file + inside))
    };
    symbols.iter().map(score).collect()
}

fn weigh(row: &Row, weights: &[(&str, f32)]) -> f64 {
    debug_assert!(
        row.iter()
            .map(|(name, _)| name)
            .eq(weights.iter().map(|(name, _)| name))
    );
    let parts = row.iter().zip(weights);
    parts
        .map(|((_, value), (_, weight))| f64::from(*value) * f64::from(*weight))
        .sum()
}

/// Sorts by score, best first, and scales the scores so that the best is 1. Equal scores are sorted
/// by number.
fn in_order(mut ranked: Ranked) -> Ranked {
    ranked.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let best = ranked.first().map_or(0.0, |(_, score)| *score);
    ranked
        .iter_mut()
        .for_each(|(_, score)| *score = (*score - best).exp());
    ranked
}
