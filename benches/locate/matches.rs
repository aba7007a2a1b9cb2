//! BM25 of symbols, of files and of the outermost symbols, each section of the question against each
//! group of fields.

use std::collections::HashMap;

use super::corpus::{Corpus, Counts};
use super::fields::{FIELDS, Field};
use super::query::{Query, QueryTerm};
use super::sections::{SECTIONS, Section};
use crate::index::words::{Term, all_words, parts};

/// How many words the best symbols add.
const FEEDBACK_TERMS: usize = 40;
/// Fields that are told apart.
pub(super) const GROUPS: usize = 5;

/// How soon repetitions stop to count, and how much length is held against a document.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.5;
/// What a word of each field counts when fields are taken together.
const FIELD_WEIGHTS: [f32; FIELDS] = [5.0, 2.0, 1.0, 1.0, 0.7, 1.0];
/// What a word of each section counts when sections are taken together.
const SECTION_WEIGHTS: [f32; SECTIONS] = [2.5, 1.2, 1.0, 1.5, 0.6, 0.8];

const fn group(field: usize) -> usize {
    const DOC: usize = Field::Doc as usize;
    const COMMENT: usize = Field::Comment as usize;
    const STRING: usize = Field::String as usize;
    match field {
        DOC | COMMENT => 3,
        STRING => 4,
        other => other,
    }
}

/// Scores of documents, best 1.
#[derive(Default)]
pub(super) struct Scores {
    /// All fields together, of each section.
    pub(super) sections: Vec<[f32; SECTIONS]>,
    /// All sections together, of each group of fields.
    pub(super) groups: Vec<[f32; GROUPS]>,
    /// All sections and fields together.
    pub(super) whole: Vec<f32>,
    /// The same, with rare words worth still more.
    pub(super) rare: Vec<f32>,
    /// The same, with length held less and more against a document.
    pub(super) short: Vec<f32>,
    pub(super) long: Vec<f32>,
}

pub(super) struct Matches {
    pub(super) symbols: Scores,
    pub(super) files: Scores,
    /// By the number of the outermost symbol.
    pub(super) homes: Vec<f32>,
    /// What each term is worth, in the order of the terms.
    pub(super) worth: Vec<f32>,
    /// Of the words of the title and of the quotes, how much each file holds: from 0 to 1.
    pub(super) title_covered: Vec<f32>,
    pub(super) title_covered_by_symbol: Vec<f32>,
    /// How well the path of each file matches: the title, and the whole text.
    pub(super) path_title: Vec<f32>,
    pub(super) path: Vec<f32>,
    /// How much of the words of its last part stands in the text.
    pub(super) path_covered: Vec<f32>,
    /// The same for the name of each symbol, and by the title alone.
    pub(super) name_covered: Vec<f32>,
    pub(super) name_covered_by_title: Vec<f32>,
}

/// Documents of one kind: which symbols make up one, and how long they are.
struct Documents {
    /// The document of each symbol.
    of: Vec<u32>,
    lengths: Vec<[f32; GROUPS]>,
    average: [f32; GROUPS],
    whole: Vec<f32>,
    average_whole: f32,
}

impl Documents {
    fn new(corpus: &Corpus, count: usize, of: Vec<u32>) -> Self {
        let mut lengths = vec![[0.0; GROUPS]; count];
        let mut whole = vec![0.0; count];
        for (document, counts) in of.iter().zip(&corpus.lengths) {
            for (field, count) in counts.iter().enumerate() {
                lengths[*document as usize][group(field)] += *count as f32;
                whole[*document as usize] += FIELD_WEIGHTS[field] * *count as f32;
            }
        }
        let filled = whole.iter().filter(|length| **length > 0.0).count().max(1) as f32;
        let mut average = [0.0; GROUPS];
        for (group, average) in average.iter_mut().enumerate() {
            let filled = lengths.iter().filter(|l| l[group] > 0.0).count().max(1) as f32;
            *average = (lengths.iter().map(|l| l[group]).sum::<f32>() / filled).max(1.0);
        }
        let average_whole = (whole.iter().sum::<f32>() / filled).max(1.0);
        Documents { of, lengths, average, whole, average_whole }
    }

    /// Adds what one term says.
    fn add(&self, postings: &[(u32, Counts)], term: &Weighed, scores: &mut Scores, covered: &mut [f32]) {
        let mut at = 0;
        while let Some((first, _)) = postings.get(at) {
            let document = self.of[*first as usize];
            let mut counts = [0.0; GROUPS];
            let mut weighted = 0.0;
            while let Some((_, own)) = postings.get(at).filter(|(id, _)| self.of[*id as usize] == document) {
                for (field, count) in own.iter().enumerate() {
                    counts[group(field)] += f32::from(*count);
                    weighted += FIELD_WEIGHTS[field] * f32::from(*count);
                }
                at += 1;
            }
            let document = document as usize;
            let length = 1.0 - LENGTH + LENGTH * self.whole[document] / self.average_whole;
            let hit = term.rarity * weighted / (weighted + SATURATION * length);
            scores.whole[document] += term.weight * hit;
            scores.rare[document] += term.weight * hit * term.rarity;
            let relative = self.whole[document] / self.average_whole;
            let part = |k: f32, b: f32| term.weight * term.rarity * weighted / (weighted + k * (1.0 - b + b * relative));
            scores.short[document] += part(0.6, 0.2);
            scores.long[document] += part(3.0, 0.8);
            if let Some(sections) = scores.sections.get_mut(document) {
                for (score, weight) in sections.iter_mut().zip(&term.sections) {
                    *score += hit * weight;
                }
            }
            covered[document] += term.rarity * term.in_title;
            if let Some(groups) = scores.groups.get_mut(document) {
                for (group, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
                    let relative = self.lengths[document][group] / self.average[group];
                    let length = 1.0 - LENGTH + LENGTH * relative;
                    let part = term.rarity * count / (count + SATURATION * length);
                    groups[group] += part * term.weight;
                }
            }
        }
    }
}

struct Weighed {
    rarity: f32,
    weight: f32,
    in_title: f32,
    sections: [f32; SECTIONS],
}

fn weigh(term: &QueryTerm, rarity: f32) -> Weighed {
    let sections = term.times.map(|times| match times {
        0 => 0.0,
        times => 1.0 + f32::from(times).ln(),
    });
    let weight = sections.iter().zip(SECTION_WEIGHTS).map(|(a, b)| a * b).sum();
    let in_title = if term.times[Section::Title as usize] > 0 { 1.0 } else { 0.0 };
    Weighed { rarity, weight, in_title, sections }
}

pub(super) fn matches(corpus: &Corpus, query: &Query) -> Matches {
    let symbols = corpus.symbols.len();
    let by_symbol = Documents::new(corpus, symbols, (0..symbols as u32).collect());
    let by_file = Documents::new(corpus, corpus.files.len(), corpus.symbols.iter().map(|s| s.file).collect());
    let by_home = Documents::new(corpus, symbols, corpus.symbols.iter().map(|s| s.home).collect());
    let empty = |count: usize, cells: usize| Scores {
        sections: vec![[0.0; SECTIONS]; cells],
        groups: vec![[0.0; GROUPS]; cells],
        whole: vec![0.0; count],
        rare: vec![0.0; count],
        short: vec![0.0; count],
        long: vec![0.0; count],
    };
    let mut of_symbols = empty(symbols, symbols);
    let mut of_files = empty(corpus.files.len(), corpus.files.len());
    let mut of_homes = empty(symbols, 0);
    let mut covered = [vec![0.0; symbols], vec![0.0; corpus.files.len()], vec![0.0; symbols]];
    let [by_symbols, by_files, by_homes] = &mut covered;
    let code = corpus.symbols.iter().filter(|s| !corpus.files[s.file as usize].is_test).count().max(1) as f32;
    let mut worth = Vec::new();
    let mut rarities = Vec::new();
    let mut all_title = f32::MIN_POSITIVE;
    for term in &query.terms {
        let postings = corpus.postings(term.term);
        let holders = postings.iter().filter(|(id, _)| !corpus.is_test(*id)).count() as f32;
        let rarity = (1.0 + (code - holders + 0.5) / (holders + 0.5)).ln();
        let weighed = weigh(term, rarity);
        worth.push(rarity * weighed.weight);
        rarities.push(rarity);
        all_title += if postings.is_empty() { 0.0 } else { rarity * weighed.in_title };
        by_symbol.add(postings, &weighed, &mut of_symbols, by_symbols);
        by_file.add(postings, &weighed, &mut of_files, by_files);
        by_home.add(postings, &weighed, &mut of_homes, by_homes);
    }
    normalise(&mut of_symbols, |id| !corpus.is_test(id as u32));
    normalise(&mut of_files, |file| !corpus.files[file].is_test);
    normalise(&mut of_homes, |id| !corpus.is_test(id as u32));
    let [by_symbols, by_files, _] = covered;
    let rarities = query.terms.iter().map(|term| term.term).zip(rarities).collect();
    let (paths, names) = (match_paths(corpus, query), match_names(corpus, query, &rarities));
    let share = |covered: Vec<f32>| covered.iter().map(|part| part / all_title).collect();
    Matches {
        symbols: of_symbols,
        files: of_files,
        homes: of_homes.whole,
        worth,
        title_covered: share(by_files),
        title_covered_by_symbol: share(by_symbols),
        path_title: paths.0,
        path: paths.1,
        path_covered: paths.2,
        name_covered: names.0,
        name_covered_by_title: names.1,
    }
}

/// How well symbols and files match the words of the best symbols, though they are not in the text.
pub(super) fn feedback(corpus: &Corpus, query: &Query, best: &[(u32, f32)]) -> (Vec<f32>, Vec<f32>) {
    let asked: std::collections::HashSet<Term> = query.terms.iter().map(|term| term.term).collect();
    let count = corpus.symbols.len() as f32;
    let mut weights: HashMap<Term, (f32, u32)> = HashMap::new();
    for (id, weight) in best {
        for (term, _) in corpus.bag(*id).iter().filter(|(term, _)| !asked.contains(term)) {
            let known = weights.entry(*term).or_default();
            *known = (known.0 + weight, known.1 + 1);
        }
    }
    let rarity = |term: Term| (count / (1.0 + corpus.postings(term).len() as f32)).ln();
    let mut chosen: Vec<(Term, f32)> = weights.into_iter().filter(|(_, (_, times))| *times > 1)
        .map(|(term, (weight, _))| (term, weight * rarity(term))).collect();
    chosen.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    chosen.truncate(FEEDBACK_TERMS);
    let mut symbols = vec![0.0; corpus.symbols.len()];
    let mut files = vec![0.0; corpus.files.len()];
    for (term, weight) in chosen {
        let mut last = u32::MAX;
        for (id, _) in corpus.postings(term) {
            symbols[*id as usize] += weight;
            let file = corpus.symbol(*id).file;
            if file != last {
                files[file as usize] += weight;
            }
            last = file;
        }
    }
    by_best(&mut symbols, std::slice::from_mut, &|id: usize| !corpus.is_test(id as u32));
    by_best(&mut files, std::slice::from_mut, &|file: usize| !corpus.files[file].is_test);
    (symbols, files)
}

/// BM25 of paths: by the title, by everything, and how much of the file's own name is said.
fn match_paths(corpus: &Corpus, query: &Query) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let asked: HashMap<Term, &QueryTerm> = query.terms.iter().map(|term| (term.term, term)).collect();
    let mut holders: HashMap<Term, f32> = HashMap::new();
    for word in corpus.files.iter().filter(|file| !file.is_test).flat_map(|file| &file.words) {
        *holders.entry(*word).or_default() += 1.0;
    }
    let count = corpus.files.iter().filter(|file| !file.is_test).count() as f32;
    let rarity = |word: &Term| {
        let holders = holders.get(word).copied().unwrap_or(0.0);
        (1.0 + (count - holders + 0.5).max(0.5) / (holders + 0.5)).ln()
    };
    let (mut titles, mut all, mut covered) = (Vec::new(), Vec::new(), Vec::new());
    for file in &corpus.files {
        let (mut title, mut whole) = (0.0, 0.0);
        for word in &file.words {
            if let Some(term) = asked.get(word) {
                let weighed = weigh(term, rarity(word));
                title += weighed.rarity * weighed.in_title;
                whole += weighed.rarity * weighed.weight;
            }
        }
        let stem = file.module.rsplit('.').next().unwrap_or_default();
        let parts: Vec<Term> = all_words(stem).map(Term::of).collect();
        let total: f32 = parts.iter().map(rarity).sum();
        let said: f32 = parts.iter().filter(|part| asked.contains_key(part)).map(rarity).sum();
        titles.push(title);
        all.push(whole);
        covered.push(if total > 0.0 { said / total } else { 0.0 });
    }
    let code = |file: usize| !corpus.files[file].is_test;
    by_best(&mut titles, std::slice::from_mut, &code);
    by_best(&mut all, std::slice::from_mut, &code);
    (titles, all, covered)
}

/// How much of each symbol's name stands in the text: by rarity, from 0 to 1.
fn match_names(corpus: &Corpus, query: &Query, rarity: &HashMap<Term, f32>) -> (Vec<f32>, Vec<f32>) {
    let asked: HashMap<Term, &QueryTerm> = query.terms.iter().map(|term| (term.term, term)).collect();
    let mut covered = Vec::with_capacity(corpus.symbols.len());
    let mut by_title = Vec::with_capacity(corpus.symbols.len());
    let common = 5.0;
    for symbol in &corpus.symbols {
        let (mut total, mut said, mut titled) = (0.0, 0.0, 0.0);
        for part in parts(symbol.path.base_name()).filter(|part| part.len() > 1) {
            let term = Term::of(part);
            let worth = rarity.get(&term).copied().unwrap_or(common);
            total += worth;
            if let Some(asked) = asked.get(&term) {
                said += worth;
                titled += if asked.times[Section::Title as usize] > 0 { worth } else { 0.0 };
            }
        }
        covered.push(if total > 0.0 { said / total } else { 0.0 });
        by_title.push(if total > 0.0 { titled / total } else { 0.0 });
    }
    (covered, by_title)
}

/// Divides by the best of the counted documents.
fn normalise(scores: &mut Scores, counts: impl Fn(usize) -> bool) {
    by_best(&mut scores.sections, |sections| sections, &counts);
    by_best(&mut scores.groups, |groups| groups, &counts);
    by_best(&mut scores.whole, std::slice::from_mut, &counts);
    by_best(&mut scores.short, std::slice::from_mut, &counts);
    by_best(&mut scores.long, std::slice::from_mut, &counts);
    by_best(&mut scores.rare, std::slice::from_mut, &counts);
}

fn by_best<T>(all: &mut [T], parts: impl Fn(&mut T) -> &mut [f32], counts: &impl Fn(usize) -> bool) {
    let mut best = [f32::MIN_POSITIVE; SECTIONS + GROUPS];
    for (document, scores) in all.iter_mut().enumerate().filter(|(document, _)| counts(*document)) {
        let _ = document;
        for (best, score) in best.iter_mut().zip(parts(scores)) {
            *best = best.max(*score);
        }
    }
    for scores in all {
        for (best, score) in best.iter().zip(parts(scores)) {
            *score = (*score / best).min(1.0);
        }
    }
}
