//! The state of one query: the text, and the scores of the symbols and files that match it, that it
//! names, or that are related to such symbols.

use std::collections::HashMap;

use super::around::{neighbours, tests_of};
use super::corpus::{Corpus, Texts};
use super::imports::imported;
use super::matches::{Matches, lent, matches};
use super::named::{Named, NamedItems};
use super::near::{Spread, mentioned, mentioning};
use super::phrase::Phrases;
use super::query::Query;
use crate::facts::Field;
use starling_syntax::{SymbolKind, composed};

/// Numbers of symbols from which nearby symbols are searched: the best symbols, the best tests, and
/// the symbols that the text names.
const SEEDS: usize = 40;
const TEST_SEEDS: usize = 30;
const NAMED_SEEDS: usize = 60;
/// Number of best files whose imports are scored.
const IMPORTERS: usize = 12;
/// Number of best symbols from which words are added to the query (query expansion).
const EXPANSION_SYMBOLS: usize = 10;
/// Number of symbols that are searched for phrases.
const PHRASE_SYMBOLS: usize = 120;
const LONGEST_PHRASE: usize = 8;
/// Maximum numbers of candidate files and of candidate symbols.
const FILES: usize = 200;
const SYMBOLS: usize = 500;
/// Factor by which the score of a test is reduced when candidates are selected.
const TEST: f32 = 0.3;

/// The state of one query. See the module documentation.
pub(super) struct Question<'c> {
    pub(super) corpus: Corpus<'c>,
    pub(super) query: Query,
    pub(super) matches: Matches,
    pub(super) names: NamedItems,
    /// Rough score of every symbol and of every file, from which the candidates are selected.
    pub(super) first: Vec<f32>,
    pub(super) first_files: Vec<f32>,
    pub(super) near: NearScores,
    /// Score of each symbol for the longest run of words that the text shares with a string literal
    /// in the symbol.
    pub(super) phrases: HashMap<u32, f32>,
    /// Match score of the tests that are named after each file.
    pub(super) tests_of: Vec<f32>,
    /// Match score of the other files in each file's directory.
    pub(super) neighbours: Vec<f32>,
    /// Score for how much the best files import from each file. The highest value is 1.
    pub(super) imported: Vec<f32>,
    /// Rank of each file by its rough score among the files outside of tests, counted from 1.
    pub(super) first_places: Vec<u32>,
}

/// Scores of symbols that the seeds (good candidates) mention, and of symbols that mention the
/// seeds.
#[derive(Default)]
pub(super) struct NearScores {
    pub(super) mentioned_by_named: Spread,
    pub(super) mentions_named: Spread,
    pub(super) mentioned_by_best: Spread,
    pub(super) exercised: Spread,
    /// Match scores of symbols and of files for the words that query expansion adds.
    pub(super) lent: (Vec<f32>, Vec<f32>),
}

impl<'c> Question<'c> {
    pub(super) fn new(corpus: Corpus<'c>, text: &str) -> Self {
        let text = &*composed(text);
        let query = Query::read(text);
        let matches = matches(corpus, &query);
        let names = NamedItems::new(corpus, &query);
        let mut question = Question {
            corpus,
            tests_of: tests_of(corpus, &matches.files.whole),
            neighbours: neighbours(corpus, &matches.files.whole),
            query,
            matches,
            names,
            first: Vec::new(),
            first_files: Vec::new(),
            near: NearScores::default(),
            phrases: HashMap::new(),
            imported: Vec::new(),
            first_places: Vec::new(),
        };
        question.score_first();
        let mut texts = Texts::default();
        question.near = question.find_near(&mut texts);
        question.phrases = question.find_phrases(&mut texts, text);
        question.imported = imported(corpus, &question.importers());
        let is_code = |file: usize| !corpus.files()[file].is_test;
        question.first_places = places(&question.first_files, is_code);
        question
    }

    /// Computes the rough scores, which select the candidates and the seeds of the further search.
    fn score_first(&mut self) {
        let mut symbols = vec![0.0; self.corpus.symbol_limit()];
        let mut files = Vec::with_capacity(self.corpus.files().len());
        for (number, file) in self.corpus.files().iter().enumerate() {
            let of_file = self.first_of_file(number);
            let mut best: f32 = 0.0;
            for id in file.symbols.clone() {
                let own = self.matches.symbols.whole[id as usize] + self.evidence(id);
                best = best.max(own);
                let home = self.corpus.symbol(id).home as usize;
                symbols[id as usize] = own + 0.5 * self.matches.homes.whole[home] + of_file;
            }
            files.push((of_file + best) * if file.is_test { TEST } else { 1.0 });
        }
        self.first = symbols;
        self.first_files = files;
    }

    fn first_of_file(&self, number: usize) -> f32 {
        let named = &self.names.files[&(number as u32)];
        1.5 * self.matches.files.whole[number]
            + named.path
            + 0.8 * named.module
            + 0.4 * named.module_part
            + 0.5 * named.stem_title
            + 0.3 * named.stem_code
            + 0.1 * named.stem_plain
            + 0.7 * named.frame
            + named.link
    }

    /// Returns the strength of all explicit references in the text to a symbol or its owner.
    pub(super) fn evidence(&self, id: u32) -> f32 {
        let symbol = self.corpus.symbol(id);
        let owner = if symbol.parent == id {
            0.0
        } else {
            self.named(symbol.parent).strength()
        };
        let frame = self.names.frames.get(&id).map_or(0.0, |(value, _)| *value);
        self.named(id).strength()
            + 0.3 * owner
            + of(&self.names.dotted, id)
            + of(&self.names.inside, id)
            + of(&self.names.links, id)
            + 1.5 * frame
    }

    pub(super) fn named(&self, id: u32) -> Named {
        self.names.symbols.get(&id).copied().unwrap_or_default()
    }

    fn find_near(&self, texts: &mut Texts) -> NearScores {
        let corpus = self.corpus;
        let code = |id: u32| corpus.counts(id);
        let all = || corpus.symbols().map(|(id, _)| id);
        let score = |id: u32| (id, self.first[id as usize]);
        let seeds = best(SEEDS, all().filter(|id| code(*id)).map(score));
        let words = |id: u32| (id, self.matches.symbols.whole[id as usize]);
        let tests = best(TEST_SEEDS, all().filter(|id| !code(*id)).map(words));
        let named = self.names.symbols.keys().filter(|id| code(**id));
        let strong = named.map(|id| (*id, self.named(*id).strength()));
        let named = best(NAMED_SEEDS, strong.filter(|(_, strength)| *strength > 0.2));
        let lenders = &seeds[..seeds.len().min(EXPANSION_SYMBOLS)];
        NearScores {
            lent: lent(corpus, texts, &self.query, lenders),
            mentioned_by_best: mentioned(corpus, texts, &seeds),
            exercised: mentioned(corpus, texts, &tests),
            mentioned_by_named: mentioned(corpus, texts, &named),
            mentions_named: mentioning(corpus, &named),
        }
    }

    /// Returns the best files outside of tests, whose imports are scored.
    fn importers(&self) -> Vec<(u32, f32)> {
        let numbered = (0..).zip(self.first_files.iter().copied());
        let is_test = |number: u32| self.corpus.files()[number as usize].is_test;
        best(IMPORTERS, numbered.filter(|(number, _)| !is_test(*number)))
    }

    fn find_phrases(&self, texts: &mut Texts, text: &str) -> HashMap<u32, f32> {
        let phrases = Phrases::of(text.lines());
        let words = |id: u32| self.matches.symbols.whole[id as usize];
        let mut likely: Vec<(u32, f32)> = self
            .corpus
            .symbols()
            .filter(|(id, symbol)| {
                let callable = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method);
                callable && symbol.lengths[Field::String as usize] > 0 && self.corpus.counts(*id)
            })
            .map(|(id, _)| (id, words(id)))
            .collect();
        sort(&mut likely);
        likely.truncate(PHRASE_SYMBOLS);
        let found = likely.into_iter().map(|(id, _)| {
            let longest = phrases.longest(&texts.own(&self.corpus, id));
            (
                id,
                longest.min(LONGEST_PHRASE) as f32 / LONGEST_PHRASE as f32,
            )
        });
        found.filter(|(_, longest)| *longest > 0.0).collect()
    }

    /// Returns the files to score in detail, and their best symbols.
    pub(super) fn candidates(&self) -> (Vec<u32>, Vec<u32>) {
        let numbered = (0..).zip(self.first_files.iter().copied());
        let mut files: Vec<(u32, f32)> = numbered.filter(|(_, score)| *score > 0.0).collect();
        sort(&mut files);
        files.truncate(FILES);
        let near = |id: u32| {
            let near = &self.near;
            let spreads = [&near.mentioned_by_named, &near.mentioned_by_best];
            spreads
                .into_iter()
                .map(|spread| spread.of(id))
                .fold(0.0, f32::max)
        };
        let score = |id: u32| {
            let worth = if self.corpus.is_test(id) { TEST } else { 1.0 };
            (id, (self.first[id as usize] + near(id)) * worth)
        };
        let inside = |file: &(u32, f32)| self.corpus.files()[file.0 as usize].symbols.clone();
        let mut symbols: Vec<(u32, f32)> = files.iter().flat_map(inside).map(score).collect();
        sort(&mut symbols);
        symbols.truncate(SYMBOLS);
        let numbers = |found: Vec<(u32, f32)>| found.into_iter().map(|(id, _)| id).collect();
        (numbers(files), numbers(symbols))
    }
}

/// Returns the rank of each score, counted from 1, among the scores for which `counts` is true.
fn places(scores: &[f32], counts: impl Fn(usize) -> bool) -> Vec<u32> {
    let mut sorted: Vec<f32> = (0..scores.len())
        .filter(|n| counts(*n))
        .map(|n| scores[n])
        .collect();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let place = |score: &f32| 1 + sorted.partition_point(|other| other > score) as u32;
    scores.iter().map(place).collect()
}

/// Sorts by score, best first. Equal scores are sorted by number.
fn sort(found: &mut [(u32, f32)]) {
    found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}

/// Returns the best `count` items, each with a weight relative to the best item.
fn best(count: usize, all: impl Iterator<Item = (u32, f32)>) -> Vec<(u32, f32)> {
    let mut found: Vec<(u32, f32)> = all.filter(|(_, score)| *score > 0.0).collect();
    sort(&mut found);
    found.truncate(count);
    let top = found.first().map_or(1.0, |(_, score)| *score);
    found
        .iter_mut()
        .for_each(|(_, score)| *score = (*score / top).powi(2));
    found
}

/// Returns the score of a symbol, or 0 if it has none.
pub(super) fn of(scores: &HashMap<u32, f32>, id: u32) -> f32 {
    scores.get(&id).copied().unwrap_or(0.0)
}
