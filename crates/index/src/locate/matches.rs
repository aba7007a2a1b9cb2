//! Scores how well symbols, files and outermost symbols match the words of the text.

use std::collections::{HashMap, HashSet};

use rustc_hash::FxHashMap;

use super::corpus::{Corpus, Texts};
use super::documents::{Documents, SATURATION};
use super::query::{Query, QueryTerm};
use super::sections::{SECTIONS, Section};
use crate::facts::{Field, FieldCounts};
use crate::words::{Term, all_words, parts};

/// Weight of a word in each section.
const SECTION_WEIGHTS: [f32; SECTIONS] = [2.5, 1.2, 1.0, 1.5, 0.6, 0.8];
/// Rarity that is assumed for a word of a symbol's name that the text does not contain.
const UNSAID: f32 = 5.0;
/// Number of words from the best symbols that are added to the query (query expansion).
const EXPANSION_WORDS: usize = 40;

/// Scores of the documents of one kind. The best score is 1.
#[derive(Default)]
pub(super) struct Scores {
    /// Scores by section of the text.
    pub(super) sections: Vec<[f32; SECTIONS]>,
    pub(super) whole: Vec<f32>,
    /// Scores in which rare words weigh even more.
    pub(super) rare: Vec<f32>,
    /// Share of the title's words that each document contains, weighted by rarity.
    pub(super) title_covered: Vec<f32>,
}

/// Scores for how well the symbols and files match the words of the query.
pub(super) struct Matches {
    pub(super) symbols: Scores,
    pub(super) files: Scores,
    /// Scores of the outermost symbols, each together with everything inside it, by symbol number.
    pub(super) homes: Scores,
    /// Match scores of the comments and of the strings of each symbol. The best score is 1.
    pub(super) comments: Vec<f32>,
    pub(super) strings: Vec<f32>,
    /// Weight of each query term, in the order of the terms.
    pub(super) worth: Vec<f32>,
    /// Match scores of each file's path words, for the title and for the whole text.
    pub(super) path_title: Vec<f32>,
    pub(super) path: Vec<f32>,
    /// Share of each symbol's name words that occur in the text, and share that occurs in the
    /// title.
    pub(super) name_covered: Vec<f32>,
    pub(super) name_in_title: Vec<f32>,
    /// The title words that each symbol contains, one bit for each word.
    title_words: Vec<u64>,
    title_length: usize,
}

impl Matches {
    /// Returns the share of the title's adjacent word pairs for which a symbol contains both words.
    pub(super) fn title_pairs(&self, id: u32) -> f32 {
        let held = self.title_words[id as usize];
        let pairs = (held & (held >> 1)).count_ones() as f32;
        pairs / self.title_length.saturating_sub(1).max(1) as f32
    }
}

/// A query term with its weights: by rarity, overall, in the title, and in each section.
struct WeightedTerm {
    rarity: f32,
    weight: f32,
    in_title: f32,
    sections: [f32; SECTIONS],
}

fn weigh(term: &QueryTerm, rarity: f32) -> WeightedTerm {
    let sections = term.times.map(|times| match times {
        0 => 0.0,
        times => 1.0 + f32::from(times).ln(),
    });
    let parts = sections.iter().zip(SECTION_WEIGHTS);
    WeightedTerm {
        rarity,
        weight: parts.map(|(a, b)| a * b).sum(),
        in_title: f32::from(u8::from(term.stands_in(Section::Title))),
        sections,
    }
}

/// Returns the rarity (inverse document frequency) of a word that `holders` of `count` documents
/// contain.
fn rarity(count: f32, holders: f32) -> f32 {
    (1.0 + (count - holders + 0.5).max(0.5) / (holders + 0.5)).ln()
}

pub(super) fn matches(corpus: Corpus<'_>, query: &Query) -> Matches {
    let documents = corpus.documents();
    let mut scores = [&documents.symbols, &documents.files, &documents.homes].map(Scores::of);
    let code = corpus
        .symbols()
        .filter(|(id, _)| !corpus.is_test(*id))
        .count() as f32;
    let mut worth = Vec::with_capacity(query.terms.len());
    let mut rarities = FxHashMap::default();
    let mut whole_title = f32::MIN_POSITIVE;
    let mut title_words = vec![0; corpus.symbol_limit()];
    let mut comments = vec![0.0; corpus.symbol_limit()];
    let mut strings = comments.clone();
    for term in &query.terms {
        let postings: Vec<(u32, FieldCounts)> = corpus.postings(term.term).collect();
        let holders = postings
            .iter()
            .filter(|(id, _)| !corpus.is_test(*id))
            .count();
        let weighed = weigh(term, rarity(code, holders as f32));
        worth.push(weighed.rarity * weighed.weight);
        rarities.insert(term.term, weighed.rarity);
        if !postings.is_empty() {
            whole_title += weighed.rarity * weighed.in_title;
        }
        let [symbols, files, homes] = &mut scores;
        symbols.add(&documents.symbols, &postings, &weighed);
        files.add(&documents.files, &postings, &weighed);
        homes.add(&documents.homes, &postings, &weighed);
        add_field(&mut comments, &postings, Field::Comment, &weighed);
        add_field(&mut strings, &postings, Field::String, &weighed);
        for place in query.places_in_title(term.term) {
            postings
                .iter()
                .for_each(|(id, _)| title_words[*id as usize] |= 1 << place);
        }
    }
    let [mut symbols, mut files, mut homes] = scores;
    symbols.finish(whole_title, |id| corpus.counts(id as u32));
    files.finish(whole_title, |file| !corpus.files()[file].is_test);
    homes.finish(whole_title, |id| corpus.counts(id as u32));
    for scores in [&mut comments, &mut strings] {
        by_best(scores, std::slice::from_mut, &|id| corpus.counts(id as u32));
    }
    let (path_title, path) = match_paths(corpus, query);
    let (name_covered, name_in_title) = match_names(corpus, query, &rarities);
    Matches {
        symbols,
        files,
        homes,
        comments,
        strings,
        worth,
        path_title,
        path,
        name_covered,
        name_in_title,
        title_words,
        title_length: query.title.len(),
    }
}

impl Scores {
    fn of(documents: &Documents) -> Self {
        Scores {
            sections: vec![[0.0; SECTIONS]; documents.count()],
            whole: vec![0.0; documents.count()],
            rare: vec![0.0; documents.count()],
            title_covered: vec![0.0; documents.count()],
        }
    }

    /// Adds the score of one query term.
    fn add(&mut self, documents: &Documents, postings: &[(u32, FieldCounts)], term: &WeightedTerm) {
        documents.each(postings, |document, hit| {
            let hit = term.rarity * hit;
            self.whole[document] += term.weight * hit;
            self.rare[document] += term.weight * hit * term.rarity;
            self.title_covered[document] += term.rarity * term.in_title;
            for (score, weight) in self.sections[document].iter_mut().zip(term.sections) {
                *score += weight * hit;
            }
        });
    }

    fn finish(&mut self, whole_title: f32, counts: impl Fn(usize) -> bool) {
        by_best(&mut self.sections, |sections| sections, &counts);
        by_best(&mut self.whole, std::slice::from_mut, &counts);
        by_best(&mut self.rare, std::slice::from_mut, &counts);
        self.title_covered
            .iter_mut()
            .for_each(|part| *part /= whole_title);
    }
}

/// Adds the score of one query term in one field of the symbols.
fn add_field(
    scores: &mut [f32],
    postings: &[(u32, FieldCounts)],
    field: Field,
    term: &WeightedTerm,
) {
    let holders = postings.iter().filter(|(_, counts)| counts.of(field) > 0);
    for (id, counts) in holders {
        let count = f32::from(counts.of(field));
        scores[*id as usize] += term.weight * term.rarity * count / (count + SATURATION);
    }
}

/// Divides all scores by the best score among the items for which `counts` is true.
fn by_best<T>(
    all: &mut [T],
    parts: impl Fn(&mut T) -> &mut [f32],
    counts: &impl Fn(usize) -> bool,
) {
    let mut best = [f32::MIN_POSITIVE; SECTIONS];
    for (number, scores) in all.iter_mut().enumerate() {
        if counts(number) {
            for (best, score) in best.iter_mut().zip(parts(scores)) {
                *best = best.max(*score);
            }
        }
    }
    for scores in all {
        for (best, score) in best.iter().zip(parts(scores)) {
            *score = (*score / best).min(1.0);
        }
    }
}

/// Returns for each file how well its path words match the title, and the whole text.
fn match_paths(corpus: Corpus<'_>, query: &Query) -> (Vec<f32>, Vec<f32>) {
    let asked: FxHashMap<Term, &QueryTerm> =
        query.terms.iter().map(|term| (term.term, term)).collect();
    let code = corpus.files().iter().filter(|file| !file.is_test);
    let mut holders: FxHashMap<Term, f32> = FxHashMap::default();
    for word in code.clone().flat_map(|file| &file.words) {
        if asked.contains_key(word) {
            *holders.entry(*word).or_default() += 1.0;
        }
    }
    let count = code.count() as f32;
    let score = |words: &[Term]| {
        let said = words.iter().filter_map(|word| asked.get(word));
        said.fold((0.0, 0.0), |(title, whole), term| {
            let held = holders.get(&term.term).copied().unwrap_or(0.0);
            let weighed = weigh(term, rarity(count, held));
            (
                title + weighed.rarity * weighed.in_title,
                whole + weighed.rarity * weighed.weight,
            )
        })
    };
    let (mut title, mut whole): (Vec<f32>, Vec<f32>) =
        corpus.files().iter().map(|file| score(&file.words)).unzip();
    let counts = |file: usize| !corpus.files()[file].is_test;
    by_best(&mut title, std::slice::from_mut, &counts);
    by_best(&mut whole, std::slice::from_mut, &counts);
    (title, whole)
}

/// Returns for each symbol the share of its name's words that occur in the text, and the share that
/// occurs in the title. Rare words weigh more.
fn match_names(
    corpus: Corpus<'_>,
    query: &Query,
    rarities: &FxHashMap<Term, f32>,
) -> (Vec<f32>, Vec<f32>) {
    let titled: HashSet<Term> = query
        .terms
        .iter()
        .filter(|term| term.stands_in(Section::Title))
        .map(|term| term.term)
        .collect();
    let mut covered = vec![0.0; corpus.symbol_limit()];
    let mut in_title = vec![0.0; corpus.symbol_limit()];
    for (name, ids) in corpus.names() {
        let (mut whole, mut said, mut title) = (0.0, 0.0, 0.0);
        for term in parts(name).filter(|part| part.len() > 1).map(Term::of) {
            let known = rarities.get(&term).copied();
            whole += known.unwrap_or(UNSAID);
            said += known.unwrap_or(0.0);
            title += known.filter(|_| titled.contains(&term)).unwrap_or(0.0);
        }
        if said > 0.0 {
            for id in ids {
                covered[*id as usize] = said / whole;
                in_title[*id as usize] = title / whole;
            }
        }
    }
    (covered, in_title)
}

/// Returns how well symbols and files match additional words: those that several of the best
/// symbols contain but the text does not (query expansion).
pub(super) fn lent(
    corpus: Corpus<'_>,
    texts: &mut Texts,
    query: &Query,
    best: &[(u32, f32)],
) -> (Vec<f32>, Vec<f32>) {
    let asked: HashSet<Term> = query.terms.iter().map(|term| term.term).collect();
    let mut shared: HashMap<Term, (f32, u32)> = HashMap::new();
    for (id, weight) in best {
        let own = texts.own(&corpus, *id);
        let terms: HashSet<Term> = all_words(&own).map(Term::of).collect();
        for term in terms.difference(&asked) {
            let known = shared.entry(*term).or_default();
            *known = (known.0 + weight, known.1 + 1);
        }
    }
    shared.retain(|_, (_, times)| *times > 1);
    let count = corpus.symbol_limit() as f32;
    let weigh = |(term, (weight, _)): (Term, (f32, u32))| {
        let ids: Vec<u32> = corpus.postings(term).map(|(id, _)| id).collect();
        (term, weight * (count / (1.0 + ids.len() as f32)).ln(), ids)
    };
    let mut chosen: Vec<(Term, f32, Vec<u32>)> = shared.into_iter().map(weigh).collect();
    chosen.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    chosen.truncate(EXPANSION_WORDS);
    let mut symbols = vec![0.0; corpus.symbol_limit()];
    let mut files = vec![0.0; corpus.files().len()];
    for (_, weight, ids) in chosen {
        let mut last = None;
        for id in ids {
            symbols[id as usize] += weight;
            let file = corpus.symbol(id).file;
            if last.replace(file) != Some(file) {
                files[file as usize] += weight;
            }
        }
    }
    by_best(&mut symbols, std::slice::from_mut, &|id| {
        corpus.counts(id as u32)
    });
    by_best(&mut files, std::slice::from_mut, &|file| {
        !corpus.files()[file].is_test
    });
    (symbols, files)
}
