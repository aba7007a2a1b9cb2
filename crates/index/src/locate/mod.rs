//! Locates where a task starts: ranks symbols and files by the text of the task, without a model.
//!
//! The text is parsed for references to code ([`query`]). Symbols and files are scored by the words
//! that they share with the text ([`mod@matches`]), by names in the text ([`named`]), and by
//! mentions of or in symbols that match well ([`near`]). The results become numeric features
//! ([`features`]), which are combined with learned weights ([`weights`]).

mod around;
mod corpus;
mod documents;
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

use std::collections::HashMap;

use features::Row;
use question::Question;
use starling_syntax::{FilePath, SymbolPath};
use weights::{FILE, INSIDE, OF_FILE, SYMBOL};
use why::{why_file, why_symbol};

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

/// Numbers of files or symbols with their scores, likeliest first.
type Ranked = Vec<(u32, f64)>;

fn rank(question: &Question<'_>) -> (Ranked, Ranked) {
    let (files, symbols) = question.candidates();
    let weigh_file = |number: u32| (number, weigh(&question.file_row(number), &FILE));
    let files: Vec<(u32, f64)> = files.into_iter().map(weigh_file).collect();
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
