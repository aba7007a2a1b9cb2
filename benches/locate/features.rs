//! What is known of each candidate, as numbers between about 0 and 1.

use std::collections::HashMap;

use super::corpus::{Corpus, File, count};
use super::fields::{FIELDS, Field};
use super::matches::{Matches, Scores, feedback, matches};
use super::named::{Named, NamedFile, Names};
use super::near::{Spread, mentioned, mentioning};
use super::phrase::Phrases;
use super::query::Query;
use super::stop::is_stop_word;
use crate::index::words::{Term, words};
use crate::syntax::SymbolKind;

/// Named numbers, always in the same order.
pub(super) type Row = Vec<(&'static str, f32)>;

const SECTION_NAMES: [&str; 6] = ["title×", "lead×", "prose×", "quote×", "block×", "error×"];
const GROUP_NAMES: [&str; 5] = ["×name", "×signature", "×code", "×doc", "×string"];

const SEEDS: usize = 40;
const TEST_SEEDS: usize = 30;
/// How many symbols are looked at for phrases.
const PHRASE_SYMBOLS: usize = 80;
/// How many files are candidates, and how many symbols of them.
const FILES: usize = 200;
const SYMBOLS: usize = 500;

pub(super) struct Question<'c> {
    pub(super) corpus: &'c Corpus,
    pub(super) query: Query,
    pub(super) matches: Matches,
    pub(super) names: Names,
    /// A first score of every symbol and file.
    first: Vec<f32>,
    first_files: Vec<f32>,
    mentioned_by_named: Spread,
    mentions_named: Spread,
    mentioned_by_best: Spread,
    mentions_best: Spread,
    exercised: Spread,
    phrases: HashMap<u32, f32>,
    mentioned_in_frames: Spread,
    feedback: (Vec<f32>, Vec<f32>),
    /// How well the tests that are named after a file match.
    tests_of: Vec<f32>,
    /// How well the other files of its directory match.
    neighbours: Vec<f32>,
    /// Neighbouring words of the title.
    title_pairs: Vec<(Term, Term)>,
}

impl<'c> Question<'c> {
    pub(super) fn new(corpus: &'c Corpus, text: &str) -> Self {
        let query = Query::read(text);
        let matches = matches(corpus, &query);
        let names = Names::new(corpus, &query);
        let mut question = Question {
            corpus,
            query,
            matches,
            names,
            first: Vec::new(),
            first_files: Vec::new(),
            mentioned_by_named: Spread::new(),
            mentions_named: Spread::new(),
            mentioned_by_best: Spread::new(),
            mentions_best: Spread::new(),
            exercised: Spread::new(),
            phrases: HashMap::new(),
            mentioned_in_frames: Spread::new(),
            feedback: Default::default(),
            tests_of: Vec::new(),
            neighbours: Vec::new(),
            title_pairs: title_pairs(text),
        };
        question.score_first();
        question.spread();
        question.find_phrases(text);
        question
    }

    /// A rough score, good enough to choose candidates and where to look on.
    fn score_first(&mut self) {
        let corpus = self.corpus;
        let mut symbols = vec![0.0; corpus.symbols.len()];
        let mut files = vec![0.0; corpus.files.len()];
        for (number, file) in corpus.files.iter().enumerate() {
            let named = &self.names.files[&(number as u32)];
            let of_file = 1.5 * self.matches.files.whole[number] + named.path + 0.8 * named.module
                + 0.5 * named.stem_title + 0.3 * named.stem_code + 0.1 * named.stem_plain
                + 0.7 * named.frame + named.link + 0.4 * named.module_part;
            let mut best: f32 = 0.0;
            for id in file.symbols.clone() {
                let own = self.matches.symbols.whole[id as usize] + self.own_evidence(id);
                best = best.max(own);
                symbols[id as usize] = own + 0.5 * self.matches.homes[self.corpus.symbol(id).home as usize] + of_file;
            }
            files[number] = of_file + best;
            if file.is_test {
                files[number] *= 0.3;
            }
        }
        self.first = symbols;
        self.first_files = files;
    }

    fn own_evidence(&self, id: u32) -> f32 {
        let named = |id: u32| self.names.symbols.get(&id).map_or(0.0, Named::strength);
        let of = |map: &HashMap<u32, f32>| map.get(&id).copied().unwrap_or(0.0);
        let symbol = self.corpus.symbol(id);
        let owner = if symbol.parent == id { 0.0 } else { named(symbol.parent) };
        named(id) + 0.3 * owner + of(&self.names.dotted) + of(&self.names.inside) + of(&self.names.links)
            + 1.5 * self.names.frames.get(&id).map_or(0.0, |(value, _)| *value)
    }

    fn spread(&mut self) {
        let best = |count: usize, keep: &dyn Fn(u32) -> bool, score: &dyn Fn(u32) -> f32| {
            let mut found: Vec<(u32, f32)> = (0..self.corpus.symbols.len() as u32)
                .filter(|id| keep(*id))
                .map(|id| (id, score(id)))
                .filter(|(_, score)| *score > 0.0)
                .collect();
            found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            found.truncate(count);
            let top = found.first().map_or(1.0, |(_, score)| *score);
            found.iter_mut().for_each(|(_, score)| *score = (*score / top).powi(2));
            found
        };
        let corpus = self.corpus;
        let code = |id: u32| !corpus.is_test(id);
        let seeds = best(SEEDS, &code, &|id| self.first[id as usize]);
        let tests = best(TEST_SEEDS, &|id| corpus.is_test(id), &|id| self.matches.symbols.whole[id as usize]);
        let named: Vec<(u32, f32)> = {
            let mut named: Vec<_> = self.names.symbols.iter()
                .filter(|(id, _)| code(**id))
                .map(|(id, named)| (*id, named.strength()))
                .filter(|(_, strength)| *strength > 0.2)
                .collect();
            named.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            named.truncate(60);
            named
        };
        let mut frames: Vec<(u32, f32)> = self.names.frames.iter().map(|(id, (value, _))| (*id, *value)).collect();
        frames.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        self.mentioned_in_frames = mentioned(corpus, &frames);
        self.feedback = feedback(corpus, &self.query, &seeds[..seeds.len().min(10)]);
        self.tests_of = tests_of(corpus, &self.matches.files.whole);
        self.neighbours = neighbours(corpus, &self.matches.files.whole);
        self.mentioned_by_best = mentioned(corpus, &seeds);
        self.mentions_best = mentioning(corpus, &seeds);
        self.exercised = mentioned(corpus, &tests);
        self.mentioned_by_named = mentioned(corpus, &named);
        self.mentions_named = mentioning(corpus, &named);
    }

    fn find_phrases(&mut self, text: &str) {
        let phrases = Phrases::of(text.lines());
        let mut best: Vec<(u32, f32)> = (0..self.corpus.symbols.len() as u32)
            .filter(|id| !self.corpus.is_test(*id))
            .map(|id| (id, self.matches.symbols.groups[id as usize][4]))
            .filter(|(_, score)| *score > 0.2)
            .collect();
        best.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for (id, _) in best.into_iter().take(PHRASE_SYMBOLS) {
            let symbol = self.corpus.symbol(id);
            if symbol.kind == SymbolKind::Module || symbol.kind == SymbolKind::Class {
                continue;
            }
            let file = self.corpus.file_of(id);
            let lines = file.text.lines().skip(symbol.lines.0 as usize - 1)
                .take((symbol.lines.1 - symbol.lines.0 + 1) as usize);
            let code: String = lines.flat_map(|line| [line, "\n"]).collect();
            let longest = phrases.longest(&code);
            if longest > 0 {
                self.phrases.insert(id, (longest.min(8) as f32) / 8.0);
            }
        }
    }

    /// The files worth a closer look, and the symbols in them.
    pub(super) fn candidates(&self) -> (Vec<u32>, Vec<u32>) {
        let mut files: Vec<u32> = (0..self.corpus.files.len() as u32)
            .filter(|file| self.first_files[*file as usize] > 0.0).collect();
        files.sort_by(|a, b| self.first_files[*b as usize].total_cmp(&self.first_files[*a as usize]));
        files.truncate(FILES);
        let mut symbols: Vec<u32> = files.iter().flat_map(|file| self.corpus.files[*file as usize].symbols.clone()).collect();
        let score = |id: u32| {
            let near = [&self.mentioned_by_named, &self.mentioned_by_best, &self.mentions_best]
                .iter().map(|spread| of(spread, id)).fold(0.0, f32::max);
            (self.first[id as usize] + near) * if self.corpus.is_test(id) { 0.3 } else { 1.0 }
        };
        symbols.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
        symbols.truncate(SYMBOLS);
        (files, symbols)
    }

    pub(super) fn symbol_row(&self, id: u32) -> Row {
        let corpus = self.corpus;
        let symbol = corpus.symbol(id);
        let file = corpus.file_of(id);
        let number = id as usize;
        let mut row = Row::new();
        push_scores(&mut row, &self.matches.symbols, number);
        row.push(("name covered", self.matches.name_covered[number]));
        row.push(("name covered by title", self.matches.name_covered_by_title[number]));
        self.push_relative(&mut row, id);
        row.push(("words of home", self.matches.homes[symbol.home as usize]));
        row.push(("title covered", self.matches.title_covered_by_symbol[number]));
        row.push(("first", self.first[number]));
        self.push_named(&mut row, id);
        let of_parent = if symbol.parent == id { Named::default() } else { self.named(symbol.parent) };
        row.push(("owner named", of_parent.strength()));
        row.push(("owner in title", of_parent.title));
        row.push(("owner and name", of_parent.strength().min(1.0) * self.named(id).strength().max(self.plain_name(id))));
        row.push(("base and name", of(&self.names.bases, symbol.parent) * self.named(id).strength().max(self.plain_name(id))));
        row.push(("base", of(&self.names.bases, id)));
        row.push(("owner is base", if symbol.parent == id { 0.0 } else { of(&self.names.bases, symbol.parent) }));
        self.push_near(&mut row, id);
        row.push(("phrase", of(&self.phrases, id)));
        row.push(("feedback", self.feedback.0[number]));
        row.push(("central", corpus.central[number]));
        row.push(("exercised often", corpus.exercised[number]));
        let size = corpus.lengths[number].iter().sum::<u32>() as f32;
        row.push(("size", (1.0 + size).ln() / 8.0));
        row.push(("size²", ((1.0 + size).ln() / 8.0).powi(2)));
        row.push(("class", flag(symbol.kind == SymbolKind::Class)));
        row.push(("module", flag(symbol.kind == SymbolKind::Module)));
        row.push(("method", flag(symbol.kind == SymbolKind::Method)));
        let name = symbol.path.base_name();
        row.push(("dunder", flag(name.starts_with("__"))));
        row.push(("initialiser", flag(matches!(name, "__init__" | "__new__"))));
        row.push(("private", flag(name.starts_with('_') && !name.starts_with("__"))));
        row.push(("test", flag(file.is_test)));
        row.push(("nested", flag(symbol.home != id && symbol.kind == SymbolKind::Function)));
        row.push(("code", count_share(corpus, id, Field::Code)));
        row
    }

    /// How it stands against the others of its file and its class.
    fn push_relative(&self, row: &mut Row, id: u32) {
        let corpus = self.corpus;
        let whole = &self.matches.symbols.whole;
        let ids = corpus.file_of(id).symbols.clone();
        let own = whole[id as usize];
        let best = |ids: &mut dyn Iterator<Item = u32>| ids.map(|id| whole[id as usize]).fold(f32::MIN_POSITIVE, f32::max);
        let home = corpus.symbol(id).home;
        row.push(("of best in file", own / best(&mut ids.clone())));
        row.push(("of best in home", own / best(&mut ids.clone().filter(|other| corpus.symbol(*other).home == home))));
        let better = ids.clone().filter(|other| whole[*other as usize] > own).count() as f32;
        row.push(("place in file", 1.0 / (1.0 + better)));
        let pairs = self.title_pairs.iter().filter(|(a, b)| holds(corpus, id, *a) && holds(corpus, id, *b)).count();
        row.push(("title pairs", pairs as f32 / self.title_pairs.len().max(1) as f32));
    }

    /// The name stands among the words of the text, if not as one word.
    fn plain_name(&self, id: u32) -> f32 {
        self.matches.name_covered[id as usize] * 0.5
    }

    fn named(&self, id: u32) -> Named {
        self.names.symbols.get(&id).copied().unwrap_or_default()
    }

    fn push_named(&self, row: &mut Row, id: u32) {
        push_ways(row, &self.named(id));
        row.push(("dotted", of(&self.names.dotted, id)));
        row.push(("inside", of(&self.names.inside, id)));
        let (depth, _) = self.names.frames.get(&id).copied().unwrap_or_default();
        row.push(("frame", depth));
        row.push(("last frame", flag(depth >= 1.0)));
        row.push(("link", of(&self.names.links, id)));
    }

    fn push_near(&self, row: &mut Row, id: u32) {
        row.push(("mentioned by named", of(&self.mentioned_by_named, id)));
        row.push(("mentions named", of(&self.mentions_named, id)));
        row.push(("mentioned by best", of(&self.mentioned_by_best, id)));
        row.push(("mentions best", of(&self.mentions_best, id)));
        row.push(("exercised", of(&self.exercised, id)));
        row.push(("mentioned in frames", of(&self.mentioned_in_frames, id)));
    }

    pub(super) fn file_row(&self, number: u32) -> Row {
        let file = &self.corpus.files[number as usize];
        let at = number as usize;
        let mut row = Row::new();
        push_scores(&mut row, &self.matches.files, at);
        row.push(("first", self.first_files[at]));
        row.push(("path words in title", self.matches.path_title[at]));
        row.push(("path words", self.matches.path[at]));
        row.push(("stem covered", self.matches.path_covered[at]));
        row.push(("title covered", self.matches.title_covered[at]));
        let named: NamedFile = self.names.files[&number];
        row.extend([
            ("path", named.path), ("module", named.module), ("module part", named.module_part),
            ("stem in title", named.stem_title), ("stem in code", named.stem_code), ("stem in prose", named.stem_plain),
            ("directory", named.directory), ("frame", named.frame), ("last frame", named.frame_last), ("link", named.link),
        ]);
        let ids = file.symbols.clone();
        let top = |score: &dyn Fn(u32) -> f32| -> (f32, f32) {
            let mut scores: Vec<f32> = ids.clone().map(score).collect();
            scores.sort_unstable_by(|a, b| b.total_cmp(a));
            (scores.first().copied().unwrap_or(0.0), scores.iter().skip(1).take(3).sum::<f32>() / 3.0)
        };
        let (best, next) = top(&|id| self.matches.symbols.whole[id as usize]);
        row.extend([("best symbol", best), ("next symbols", next)]);
        let (best, _) = top(&|id| self.matches.homes[self.corpus.symbol(id).home as usize]);
        row.push(("best home", best));
        let (best, _) = top(&|id| self.matches.title_covered_by_symbol[id as usize]);
        row.push(("best title covered", best));
        let (best, next) = top(&|id| self.own_evidence(id));
        row.extend([("best evidence", best.min(3.0) / 3.0), ("next evidence", next.min(3.0) / 3.0)]);
        let mut all = Named::default();
        ids.clone().for_each(|id| all.add(&self.named(id)));
        push_ways(&mut row, &all);
        for (name, map) in [("dotted", &self.names.dotted), ("inside", &self.names.inside), ("base", &self.names.bases), ("phrase", &self.phrases)] {
            row.push((name, ids.clone().map(|id| of(map, id)).fold(0.0, f32::max)));
        }
        for (best_name, next_name, map) in [
            ("mentioned by named", "next mentioned by named", &self.mentioned_by_named),
            ("mentions named", "next mentions named", &self.mentions_named),
            ("mentioned by best", "next mentioned by best", &self.mentioned_by_best),
            ("mentions best", "next mentions best", &self.mentions_best),
            ("exercised", "next exercised", &self.exercised),
            ("mentioned in frames", "next mentioned in frames", &self.mentioned_in_frames),
        ] {
            let (best, next) = top(&|id| of(map, id));
            row.extend([(best_name, best), (next_name, next)]);
        }
        let size: u32 = ids.clone().flat_map(|id| self.corpus.lengths[id as usize]).sum();
        let path = file.path.as_str();
        row.push(("feedback", self.feedback.1[at]));
        row.push(("tests of it", self.tests_of[at]));
        row.push(("neighbours", self.neighbours[at]));
        row.push(("central", ids.clone().map(|id| self.corpus.central[id as usize]).fold(0.0, f32::max)));
        row.push(("exercised often", ids.clone().map(|id| self.corpus.exercised[id as usize]).fold(0.0, f32::max)));
        let central: f32 = ids.clone().map(|id| self.corpus.central[id as usize]).sum();
        row.push(("central sum", (1.0 + central).ln() / 5.0));
        row.push(("size", (1.0 + size as f32).ln() / 10.0));
        row.push(("size²", ((1.0 + size as f32).ln() / 10.0).powi(2)));
        row.push(("test", flag(file.is_test)));
        row.push(("init", flag(path.ends_with("__init__.py"))));
        row.push(("apart", flag(is_apart(path))));
        row.push(("depth", path.matches('/').count().min(6) as f32 / 6.0));
        row.push(("private", flag(file.path.name().starts_with('_') && !path.ends_with("__init__.py"))));
        row
    }
}

fn title_pairs(text: &str) -> Vec<(Term, Term)> {
    let title = text.trim_start().lines().next().unwrap_or_default();
    let terms: Vec<Term> = words(title).filter(|word| !is_stop_word(word)).map(Term::of).collect();
    terms.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Of each file, how well the test files match that are named after it: `x.py` and `test_x.py`.
fn tests_of(corpus: &Corpus, words: &[f32]) -> Vec<f32> {
    let mut best: HashMap<&str, Vec<(&str, f32)>> = HashMap::new();
    for (file, score) in corpus.files.iter().zip(words).filter(|(file, _)| file.is_test) {
        let name = file.path.name().trim_end_matches(".py");
        let name = name.strip_prefix("test_").or_else(|| name.strip_suffix("_test")).unwrap_or(name);
        best.entry(name).or_default().push((file.path.directory(), *score));
        // `tests/x/test_y.py` may be for `x.py`, too.
        let directory = file.path.directory().rsplit('/').next().unwrap_or_default();
        best.entry(directory).or_default().push((file.path.directory(), *score * 0.7));
    }
    let of_file = |file: &File| {
        let stem = file.module.rsplit('.').next().unwrap_or_default();
        let own = stem.trim_start_matches('_');
        let tests = best.get(own).map_or(&[][..], Vec::as_slice);
        tests.iter().map(|(directory, score)| {
            let near = directory.starts_with(file.path.directory());
            if near { *score } else { 0.7 * score }
        }).fold(0.0, f32::max)
    };
    let mut found: Vec<f32> = corpus.files.iter().map(|file| if file.is_test { 0.0 } else { of_file(file) }).collect();
    let most = found.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    found.iter_mut().for_each(|score| *score /= most);
    found
}

/// Of each file, how well the best others of its directory match.
fn neighbours(corpus: &Corpus, words: &[f32]) -> Vec<f32> {
    let mut by_directory: HashMap<&str, Vec<f32>> = HashMap::new();
    for (file, score) in corpus.files.iter().zip(words) {
        by_directory.entry(file.path.directory()).or_default().push(*score);
    }
    for scores in by_directory.values_mut() {
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
        scores.truncate(4);
    }
    corpus.files.iter().zip(words).map(|(file, own)| {
        let best = &by_directory[file.path.directory()];
        let mut others: f32 = best.iter().sum();
        if best.contains(own) {
            others -= own;
        }
        others / 3.0
    }).collect()
}

/// Directories that stand beside the code.
fn is_apart(path: &str) -> bool {
    let mut directories = path.split('/').rev().skip(1);
    directories.any(|part| {
        matches!(part, "doc" | "docs" | "examples" | "example" | "tutorials" | "tutorial" | "gallery" | "galleries"
            | "benchmarks" | "asv_benchmarks" | "bin" | "tools" | "scripts" | "build_tools" | "release" | "extern"
            | "externals" | "_vendor" | "vendor" | "packages" | "migrations" | "locale" | "conf" | "testing" | "deprecated")
    })
}

fn holds(corpus: &Corpus, id: u32, term: Term) -> bool {
    corpus.bag(id).binary_search_by_key(&term, |(term, _)| *term).is_ok()
}

fn of(map: &HashMap<u32, f32>, id: u32) -> f32 {
    map.get(&id).copied().unwrap_or(0.0)
}

fn flag(holds: bool) -> f32 {
    f32::from(u8::from(holds))
}

fn count_share(corpus: &Corpus, id: u32, field: Field) -> f32 {
    let lengths: [u32; FIELDS] = corpus.lengths[id as usize];
    let own: u32 = corpus.bag(id).iter().map(|(_, counts)| u32::from(count(counts, field))).sum();
    own as f32 / lengths.iter().sum::<u32>().max(1) as f32
}

fn push_scores(row: &mut Row, scores: &Scores, document: usize) {
    row.extend(SECTION_NAMES.into_iter().zip(scores.sections[document]));
    row.extend(GROUP_NAMES.into_iter().zip(scores.groups[document]));
    row.push(("words", scores.whole[document]));
    row.push(("rare words", scores.rare[document]));
    row.push(("words, short", scores.short[document]));
    row.push(("words, long", scores.long[document]));
}

fn push_ways(row: &mut Row, named: &Named) {
    row.extend([
        ("named in title", named.title), ("plainly in title", named.title_plain), ("named in quotes", named.quote),
        ("called", named.called), ("named in code", named.block), ("named in error", named.error),
        ("named in prose", named.prose), ("plainly in prose", named.plain), ("named often", named.times),
    ]);
}
