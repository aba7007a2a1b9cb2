//! Where a task begins: symbols ranked by what its text says. No model.

use std::collections::HashMap;
use std::sync::Arc;

use crate::index::bm25::{Ranking, rank};
use crate::index::facts::{FileFacts, SymbolFacts};
use crate::index::query::{Mention, Place, Query};
use crate::syntax::{SymbolKind, SymbolPath};

/// A symbol that a text may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    pub symbol: SymbolPath,
    /// Good for comparing only.
    pub score: f64,
    /// For a reader, the best first.
    pub why: Vec<String>,
}

// What each kind of evidence adds; the best symbol by words alone has 1. Found on the tuning half of
// SWE-bench Lite.
const FILE_WORDS: f64 = 2.5;
const NAMED: f64 = 0.4;
const NAMED_OWNER: f64 = 0.12;
const WRITTEN_OUT: f64 = 0.8;
const PATH: f64 = 1.0;
const FILE_NAME: f64 = 0.3;
const FRAME: f64 = 2.0;
// What a kind of symbol is worth.
const TEST: f64 = 0.2;
const MODULE_BODY: f64 = 0.7;
/// How many words a reason lists.
const WORDS_SHOWN: usize = 4;

/// The symbols that a text is about, the likeliest first. The text may be a task, a question, or the
/// output of failing tests.
pub(in crate::index) fn locate(files: &[Arc<FileFacts>], text: &str, limit: usize) -> Vec<Located> {
    let question = Question::new(files, Query::read(text));
    let by_file = rank(files.iter().map(|facts| &facts.bag), &question.query.terms);
    let symbols = || files.iter().flat_map(|facts| &facts.symbols);
    let by_symbol = rank(symbols().map(|symbol| &symbol.bag), &question.query.terms);

    let mut own_scores = by_symbol.scores.iter();
    let mut found: Vec<(f64, &FileFacts, &SymbolFacts)> = Vec::new();
    for (facts, file_words) in files.iter().zip(&by_file.scores) {
        let file_score = FILE_WORDS * file_words + total(&question.of_file(facts));
        for (symbol, own) in facts.symbols.iter().zip(&mut own_scores) {
            let evidence = total(&question.of_symbol(facts, symbol));
            let score = (own + file_score + evidence) * worth(facts, symbol);
            if score > 0.0 {
                found.push((score, facts, symbol));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.path.cmp(&b.2.path)));
    found.truncate(limit);
    let located = found.into_iter().map(|(score, facts, symbol)| Located {
        symbol: symbol.path.clone(),
        score,
        why: question.why(facts, symbol, &by_symbol),
    });
    located.collect()
}

fn worth(facts: &FileFacts, symbol: &SymbolFacts) -> f64 {
    let of_file = if facts.is_test { TEST } else { 1.0 };
    match symbol.kind {
        SymbolKind::Module => of_file * MODULE_BODY,
        SymbolKind::Class | SymbolKind::Function | SymbolKind::Method => of_file,
    }
}

/// One piece of evidence: what it adds, and what it is.
type Evidence = (f64, String);

fn total(evidence: &[Evidence]) -> f64 {
    evidence.iter().map(|(score, _)| score).sum()
}

/// A query, with how many definitions share each of its names.
struct Question {
    query: Query,
    definitions: HashMap<String, u32>,
}

impl Question {
    fn new(files: &[Arc<FileFacts>], query: Query) -> Self {
        let mut definitions: HashMap<String, u32> = HashMap::new();
        let code = files.iter().filter(|facts| !facts.is_test);
        for symbol in code.flat_map(|facts| &facts.symbols) {
            let name = symbol.path.base_name();
            if query.names.contains_key(name) {
                *definitions.entry(name.to_owned()).or_default() += 1;
            }
        }
        Question { query, definitions }
    }

    fn of_file(&self, facts: &FileFacts) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        let path = facts.file.as_str();
        if self
            .query
            .paths
            .iter()
            .any(|printed| same_file(path, printed))
        {
            evidence.push((PATH, format!("names {path}")));
        }
        let module = facts.module();
        let below = |dotted: &String| {
            dotted
                .strip_prefix(&module)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if module.contains('.') && self.query.dotted.iter().any(below) {
            evidence.push((WRITTEN_OUT, format!("names {module}")));
        }
        let stem = module.rsplit('.').next().unwrap_or(&module);
        if let Some(mention) = self.query.names.get(stem).filter(|_| stem.len() > 3) {
            let score = if mention.in_title {
                2.0 * FILE_NAME
            } else {
                FILE_NAME
            };
            evidence.push((score, format!("names {stem}")));
        }
        evidence
    }

    fn of_symbol(&self, facts: &FileFacts, symbol: &SymbolFacts) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        let name = symbol.path.base_name();
        if let Some(score) = self.named(name) {
            evidence.push((NAMED * score, format!("names {name}")));
        }
        if let Some(owner) = symbol.owner_name() {
            if let Some(score) = self.named(owner) {
                evidence.push((NAMED_OWNER * score, format!("names {owner}")));
            }
            let dotted = format!("{owner}.{name}");
            let ends = |written: &String| {
                written
                    .strip_suffix(&dotted)
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            if self.query.dotted.iter().any(ends) {
                evidence.push((WRITTEN_OUT, format!("names {dotted}")));
            }
        }
        // The last frame is where it failed; those above it count less.
        let places = self.query.places.iter().rev().enumerate();
        if let Some((depth, place)) = places.into_iter().find(|(_, p)| is_at(facts, symbol, p)) {
            let score = FRAME / (1.0 + depth as f64).sqrt();
            evidence.push((score, format!("line {} in the traceback", place.line)));
        }
        evidence
    }

    /// How much a name says: more when it stands as code, less when many definitions share it.
    fn named(&self, name: &str) -> Option<f64> {
        let mention = self.query.names.get(name)?;
        let shared = self.definitions.get(name).copied().unwrap_or(1);
        Some(emphasis(mention) / f64::from(shared.max(1)).sqrt())
    }

    fn why(&self, facts: &FileFacts, symbol: &SymbolFacts, ranking: &Ranking) -> Vec<String> {
        let mut evidence = self.of_symbol(facts, symbol);
        evidence.extend(self.of_file(facts));
        evidence.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut why: Vec<String> = evidence.into_iter().map(|(_, what)| what).collect();
        why.dedup();
        let mut words: Vec<_> = self.query.terms.iter().zip(&ranking.worth).collect();
        words.retain(|(term, _)| symbol.bag.has(term.term));
        words.sort_by(|a, b| b.1.total_cmp(a.1).then_with(|| a.0.word.cmp(&b.0.word)));
        let shown: Vec<_> = words
            .iter()
            .map(|(term, _)| &*term.word)
            .take(WORDS_SHOWN)
            .collect();
        if !shown.is_empty() {
            why.push(format!("words: {}", shown.join(", ")));
        }
        why
    }
}

fn emphasis(mention: &Mention) -> f64 {
    let mut score = f64::from(u8::from(mention.looks_like_code));
    if mention.in_code {
        score += 0.5;
    }
    if score == 0.0 {
        // A plain word of prose that happens to be a name.
        score = 0.15;
    }
    if mention.in_title {
        score *= 2.0;
    }
    score * (1.0 + 0.2 * f64::from(mention.times.clamp(1, 6) - 1))
}

/// Whether a printed path names this file: installed or from another root, the one ends with the other.
fn same_file(file: &str, printed: &str) -> bool {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    ends(printed, file) || ends(file, printed)
}

fn is_at(facts: &FileFacts, symbol: &SymbolFacts, place: &Place) -> bool {
    same_file(facts.file.as_str(), &place.path)
        && match place.function.as_deref() {
            Some("<module>") => symbol.kind == SymbolKind::Module,
            Some(function) => symbol.path.base_name() == function,
            None => facts.owner(place.line) == symbol.path,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::FilePath;

    fn files() -> Vec<Arc<FileFacts>> {
        let texts = [
            (
                "shop/cart.py",
                "class Cart:\n    def add(self, item):\n        self.items.append(item)\n    \
                 def total(self):\n        return sum(item.price for item in self.items)\n",
            ),
            (
                "shop/tax.py",
                "def rate(country):\n    '''Value added tax of a country.'''\n    return RATES[country]\n",
            ),
            ("shop/util.py", "def add(a, b):\n    return a + b\n"),
            (
                "tests/test_cart.py",
                "def test_total():\n    assert Cart().total() == 0\n",
            ),
        ];
        let read = |(path, text): (&str, &str)| FileFacts::read(FilePath::new(path), text.into());
        texts.into_iter().map(read).map(Arc::new).collect()
    }

    fn first(text: &str) -> (String, String) {
        let found = locate(&files(), text, 5);
        (found[0].symbol.to_string(), found[0].why.join("; "))
    }

    #[test]
    fn finds_by_words_names_paths_and_frames() {
        let (symbol, why) = first("The tax is wrong for some countries of the value added area");
        assert_eq!(symbol, "shop/tax.py::rate");
        assert!(why.contains("words: ") && why.contains("tax"), "{why}");

        let (symbol, why) = first("`Cart.add` loses the second one");
        assert_eq!(symbol, "shop/cart.py::Cart.add");
        assert!(why.contains("names Cart.add"), "{why}");

        let (symbol, _) = first("add() fails in shop/util.py");
        assert_eq!(symbol, "shop/util.py::add");

        let trace = "Traceback:\n  File \"/usr/lib/python3/site-packages/shop/cart.py\", line 3, in add\n    x\n\
                     AttributeError: items\n";
        let (symbol, why) = first(trace);
        assert_eq!(symbol, "shop/cart.py::Cart.add");
        assert!(why.contains("line 3 in the traceback"), "{why}");
    }

    #[test]
    fn tests_come_after_the_code_that_they_test() {
        let found = locate(&files(), "total of an empty Cart", 10);
        let place = |name: &str| found.iter().position(|l| l.symbol.name == name).unwrap();
        assert!(place("Cart.total") < place("test_total"));
    }

    #[test]
    fn is_capped_and_takes_any_text() {
        assert_eq!(locate(&files(), "item", 1).len(), 1);
        assert_eq!(locate(&files(), "", 5), []);
        assert_eq!(locate(&[], "item", 5), []);
    }

    #[test]
    fn a_printed_path_names_a_file_at_a_border() {
        assert!(same_file("a/b.py", "/site-packages/a/b.py") && same_file("x/a/b.py", "b.py"));
        assert!(!same_file("a/b.py", "/x/aa/b.py") || same_file("a/b.py", "b.py"));
        assert!(!same_file("a/bb.py", "b.py"));
    }

    /// All that was found, as `file::name`.
    fn order(text: &str) -> Vec<String> {
        let found = locate(&files(), text, 20);
        found.iter().map(|l| l.symbol.to_string()).collect()
    }

    #[test]
    fn the_last_frame_counts_most() {
        let trace = "Traceback (most recent call last):\n  File \"/w/shop/tax.py\", line 1, in rate\n    x\n  \
                     File \"/w/shop/cart.py\", line 5, in total\n    y\n";
        let found = order(trace);
        assert_eq!(found[0], "shop/cart.py::Cart.total");
        let place = |name: &str| found.iter().position(|path| path == name).unwrap();
        assert!(place("shop/tax.py::rate") < place("shop/util.py::add"));
    }

    #[test]
    fn a_frame_without_a_function_goes_by_its_line() {
        let (symbol, why) = first("shop/cart.py:5: KeyError");
        assert_eq!(symbol, "shop/cart.py::Cart.total");
        assert!(why.contains("line 5 in the traceback"), "{why}");
        let module = locate(
            &files(),
            "  File \"shop/tax.py\", line 99, in <module>\n",
            20,
        );
        let module = module
            .iter()
            .find(|l| l.symbol.to_string() == "shop/tax.py::");
        let why = &module.expect("the module body").why;
        assert!(
            why.contains(&"line 99 in the traceback".to_owned()),
            "{why:?}"
        );
    }

    #[test]
    fn dotted_names_and_paths_choose_between_equals() {
        assert_eq!(order("`shop.util.add` is slow")[0], "shop/util.py::add");
        assert_eq!(
            order("add is slow, see shop/cart.py")[0],
            "shop/cart.py::Cart.add"
        );
        assert_eq!(
            order("add is slow, see shop/util.py")[0],
            "shop/util.py::add"
        );
        let (_, why) = first("`shop.util.add` is slow");
        assert!(why.contains("names shop.util"), "{why}");
    }

    #[test]
    fn a_name_in_a_block_of_code_says_more_than_one_in_prose() {
        let score = |text: &str| {
            let found = locate(&files(), text, 20);
            let rate = found.iter().find(|l| l.symbol.name == "rate");
            rate.map(|l| l.score).expect("it is found")
        };
        let prose = score("Something\nthe rate is bad\n");
        let fenced = score("Something\n```\nthe rate is bad\n```\n");
        let called = score("Something\nthe rate() is bad\n");
        let title = score("the rate is bad\nSomething\n");
        assert!(prose < fenced && prose < called && prose < title);
        // A block that is never closed, and text behind one that is.
        assert!(score("Something\n```\nthe rate is bad") > prose);
        assert!(score("Something\n```\n```\nthe rate is bad\n") < fenced);
    }

    #[test]
    fn the_same_text_has_the_same_answer() {
        let text = "total and add, rate of a country: items, price";
        let once = locate(&files(), text, 20);
        assert!(once.windows(2).all(|pair| pair[0].score >= pair[1].score));
        assert!(once.iter().all(|l| l.score > 0.0));
        for _ in 0..5 {
            assert_eq!(locate(&files(), text, 20), once);
        }
    }
}
