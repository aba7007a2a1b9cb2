//! Where a task begins: symbols ranked by what its text says. No model.

use std::collections::HashMap;

use super::facts::{Bag, FileFacts, SymbolFacts};
use super::query::{Mention, Place, Query};
use super::words::Term;
use crate::syntax::{SymbolKind, SymbolPath};

/// A symbol that a text may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    pub symbol: SymbolPath,
    /// Only good for comparing.
    pub score: f64,
    /// For a reader.
    pub why: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Weights {
    pub k1: f64,
    pub b: f64,
    pub file: f64,
    pub name: f64,
    pub title: f64,
    pub code: f64,
    pub dotted: f64,
    pub path: f64,
    pub frame: f64,
    pub test: f64,
    pub module: f64,
    pub filename: f64,
    pub kname: f64,
}

pub const WEIGHTS: Weights = Weights {
    k1: 1.2,
    b: 0.75,
    file: 1.0,
    name: 0.5,
    title: 2.0,
    code: 1.0,
    dotted: 0.8,
    path: 1.0,
    frame: 1.0,
    test: 0.2,
    module: 0.7,
    filename: 0.3,
    kname: 0.5,
};

pub(super) fn locate(
    files: &[std::sync::Arc<FileFacts>],
    text: &str,
    limit: usize,
    w: &Weights,
) -> Vec<Located> {
    let query = Query::read(text);
    let by_file = Bm25::over(files.iter().map(|f| &f.bag), &query.terms, w);
    let by_symbol = Bm25::over(
        files.iter().flat_map(|f| &f.symbols).map(|s| &s.bag),
        &query.terms,
        w,
    );
    let file_scores: Vec<f64> = normalized(files.iter().map(|f| by_file.score(&f.bag)));
    let symbol_scores = normalized(
        files
            .iter()
            .flat_map(|f| &f.symbols)
            .map(|s| by_symbol.score(&s.bag)),
    );
    let counts = definitions(files, &query);
    let mut found = Vec::new();
    let mut scores = symbol_scores.into_iter();
    for (facts, file_score) in files.iter().zip(file_scores) {
        let file_boost = file_boost(facts, &query, w);
        for symbol in &facts.symbols {
            let own = scores.next().unwrap_or_default();
            let mut score = own + w.file * file_score + file_boost;
            score += symbol_boost(facts, symbol, &query, &counts, w);
            if symbol.kind == SymbolKind::Module {
                score *= w.module;
            }
            if facts.is_test {
                score *= w.test;
            }
            if score > 0.0 {
                found.push((score, symbol));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.path.cmp(&b.1.path)));
    found.truncate(limit);
    found
        .into_iter()
        .map(|(score, s)| Located {
            symbol: s.path.clone(),
            score,
            why: vec![],
        })
        .collect()
}

fn normalized(scores: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut scores: Vec<f64> = scores.collect();
    let most = scores.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    for s in &mut scores {
        *s /= most;
    }
    scores
}

struct Bm25<'q> {
    terms: Vec<(Term, f64, &'q str)>,
    average: f64,
    k1: f64,
    b: f64,
}

impl<'q> Bm25<'q> {
    fn over<'b>(
        bags: impl Iterator<Item = &'b Bag> + Clone,
        terms: &'q [(Term, String, f64)],
        w: &Weights,
    ) -> Self {
        let (mut n, mut total) = (0.0, 0.0);
        let mut df = vec![0.0; terms.len()];
        for bag in bags {
            if bag.length == 0 {
                continue;
            }
            n += 1.0;
            total += f64::from(bag.length);
            for (i, (t, ..)) in terms.iter().enumerate() {
                if bag.has(*t) {
                    df[i] += 1.0;
                }
            }
        }
        let terms = terms
            .iter()
            .zip(df)
            .map(|((t, s, weight), df): (_, f64)| {
                let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                (*t, weight * idf, s.as_str())
            })
            .collect();
        Bm25 {
            terms,
            average: if n > 0.0 { total / n } else { 1.0 },
            k1: w.k1,
            b: w.b,
        }
    }
    fn score(&self, bag: &Bag) -> f64 {
        let norm = self.k1 * (1.0 - self.b + self.b * f64::from(bag.length) / self.average);
        self.terms
            .iter()
            .map(|(t, w, _)| {
                let tf = f64::from(bag.count(*t));
                if tf == 0.0 {
                    0.0
                } else {
                    w * tf * (self.k1 + 1.0) / (tf + norm)
                }
            })
            .sum()
    }
}

fn definitions<'q>(
    files: &[std::sync::Arc<FileFacts>],
    query: &'q Query,
) -> HashMap<&'q str, usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for facts in files {
        if facts.is_test {
            continue;
        }
        for symbol in &facts.symbols {
            if let Some((name, _)) = query.names.get_key_value(symbol.path.base_name()) {
                *counts.entry(name).or_default() += 1;
            }
        }
    }
    counts
}

fn file_boost(facts: &FileFacts, query: &Query, w: &Weights) -> f64 {
    let path = facts.file.as_str();
    let mut boost = 0.0;
    if query.paths.iter().any(|p| same_file(path, p)) {
        boost += w.path;
    }
    let module = path
        .trim_end_matches(".py")
        .trim_end_matches("/__init__")
        .replace('/', ".");
    if module.contains('.')
        && query
            .dotted
            .iter()
            .any(|d| d == &module || d.starts_with(&format!("{module}.")))
    {
        boost += w.dotted;
    }
    let stem = facts.file.name().trim_end_matches(".py");
    if let Some(m) = query.names.get(stem) {
        if stem.len() > 3 && stem != "__init__" {
            boost += w.filename * if m.in_title { 2.0 } else { 1.0 };
        }
    }
    boost
}

/// Whether a printed path names this file: the one ends with the other, at a border.
fn same_file(file: &str, printed: &str) -> bool {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    ends(printed, file)
        || (printed.contains('/') && ends(file, printed))
        || (!printed.contains('/') && file.rsplit('/').next() == Some(printed))
}

fn symbol_boost(
    facts: &FileFacts,
    symbol: &SymbolFacts,
    query: &Query,
    counts: &HashMap<&str, usize>,
    w: &Weights,
) -> f64 {
    let name = symbol.path.base_name();
    let mut boost = 0.0;
    if let Some(m) = query.names.get(name) {
        let n = counts.get(name).copied().unwrap_or(1) as f64;
        boost += w.name * mention_weight(m, w) / n.powf(w.kname);
    }
    if let Some((outer, inner)) = symbol.path.name.rsplit_once('.') {
        let o = outer.rsplit('.').next().unwrap_or(outer);
        if let (Some(m), false) = (query.names.get(o), false) {
            let n = counts.get(o).copied().unwrap_or(1) as f64;
            boost += 0.3 * w.name * mention_weight(m, w) / n.powf(w.kname);
            let _ = inner;
        }
        let short = format!("{o}.{inner}");
        if query
            .dotted
            .iter()
            .any(|d| d == &short || d.ends_with(&format!(".{short}")))
        {
            boost += w.dotted;
        }
    }
    for (i, p) in query.places.iter().rev().enumerate() {
        if place_names(facts, symbol, p) {
            boost += w.frame / (1.0 + i as f64).sqrt();
            break;
        }
    }
    boost
}

fn place_names(facts: &FileFacts, symbol: &SymbolFacts, p: &Place) -> bool {
    same_file(facts.file.as_str(), &p.path)
        && match &p.function {
            Some(f) => {
                symbol.path.base_name() == f
                    || (f == "<module>" && symbol.kind == SymbolKind::Module)
            }
            None => symbol.lines.0 <= p.line && p.line <= symbol.lines.1,
        }
}

fn mention_weight(m: &Mention, w: &Weights) -> f64 {
    let mut x: f64 = 0.0;
    if m.looks_like_code {
        x += 1.0;
    }
    if m.in_code {
        x += w.code * 0.5;
    }
    if x == 0.0 {
        x = 0.15;
    }
    if m.in_title {
        x *= w.title;
    }
    x * (1.0 + 0.2 * f64::from(m.times.min(6) - 1))
}
