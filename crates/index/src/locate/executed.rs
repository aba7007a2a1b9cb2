//! Combines the words of a text with what failing tests executed.
//!
//! A line is the more suspicious, the more of the failing tests and the fewer of the passing tests
//! executed it: its Ochiai coefficient is `failed / sqrt(all_failed * (failed + passed))`, where
//! `failed` and `passed` count the tests that executed the line. A symbol has the coefficient of
//! its most suspicious line. To the logarithm of this coefficient, [`WORTH`] times the logarithm of
//! the score by words is added. A symbol that no failing test executed counts as if all passing
//! tests had executed it, less [`NOT_EXECUTED`]: it can still be the cause, as a constant can.
//!
//! Code of tests is not suspicious. If the failing tests executed no other code, for example because
//! they start the program as another process, the words alone decide.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::corpus::Corpus;
use super::question::Question;
use super::{Located, Ranked, in_order, rank, why};
use starling_syntax::FilePath;

/// How much the score by words counts beside the Ochiai coefficient.
const WORTH: f64 = 0.25;
/// What is subtracted from the score of a symbol that no failing test executed.
const NOT_EXECUTED: f64 = 3.0;

/// A line of a file, counted from 1.
type Line = (FilePath, u32);

/// The lines that failing and passing tests executed.
#[derive(Debug, Clone, Default)]
pub struct ExecutedLines<'e> {
    /// The lines of each failing test.
    pub failing: Vec<&'e BTreeSet<Line>>,
    /// For each line, the number of passing tests that executed it.
    pub passing: Option<&'e BTreeMap<Line, usize>>,
    /// Number of passing tests.
    pub passed: usize,
}

/// How many tests executed the most suspicious line of a symbol.
#[derive(Debug, Clone, Copy)]
struct Suspicion {
    ochiai: f64,
    passed: usize,
}

/// Returns the symbols that a text is about and that the failing tests executed, likeliest first.
pub(in super::super) fn locate_executed(
    corpus: Corpus<'_>,
    text: &str,
    executed: &ExecutedLines<'_>,
    limit: usize,
) -> Vec<Located> {
    let question = Question::new(corpus, text);
    let (_, by_words) = rank(&question);
    let suspicions = suspicions(corpus, executed);
    let ranked = match suspicions.is_empty() {
        true => by_words,
        false => combined(by_words, &suspicions, executed.passed),
    };
    let chosen = &ranked[..ranked.len().min(limit)];
    let words = why::words_of_symbols(&question, chosen);
    let located = chosen.iter().map(|(id, score)| {
        let mut why = why::why_symbol(&question, *id, &words);
        if let Some(suspicion) = suspicions.get(id) {
            why.insert(0, suspicion.in_words(executed));
        }
        Located {
            symbol: corpus.path(*id),
            score: *score,
            why,
        }
    });
    located.collect()
}

fn combined(by_words: Ranked, suspicions: &HashMap<u32, Suspicion>, passed: usize) -> Ranked {
    let lowest = by_words.iter().map(|(_, score)| *score);
    let lowest = lowest.fold(1.0, f64::min).max(f64::MIN_POSITIVE);
    let mut scores: HashMap<u32, f64> = by_words.into_iter().collect();
    for id in suspicions.keys() {
        scores.entry(*id).or_insert(lowest);
    }
    let not_executed = -0.5 * (1.0 + passed as f64).ln() - NOT_EXECUTED;
    let combined = scores.into_iter().map(|(id, score)| {
        let executed = suspicions
            .get(&id)
            .map_or(not_executed, |one| one.ochiai.ln());
        (id, executed + WORTH * score.max(lowest).ln())
    });
    in_order(combined.collect())
}

/// Returns the symbols outside tests that the failing tests executed.
fn suspicions(corpus: Corpus<'_>, executed: &ExecutedLines<'_>) -> HashMap<u32, Suspicion> {
    let mut failed: BTreeMap<&Line, usize> = BTreeMap::new();
    for line in executed.failing.iter().copied().flatten() {
        *failed.entry(line).or_default() += 1;
    }
    let files: BTreeSet<&FilePath> = failed.keys().map(|(file, _)| file).collect();
    let mut symbols: HashMap<&FilePath, Vec<u32>> = HashMap::new();
    for (id, _) in corpus.symbols() {
        let file = &corpus.file_of(id).path;
        if files.contains(file) && !corpus.is_test(id) {
            symbols.entry(file).or_default().push(id);
        }
    }
    let mut found: HashMap<u32, Suspicion> = HashMap::new();
    for (line, count) in failed {
        let of_file = symbols.get(&line.0).into_iter().flatten().copied();
        let Some(id) = innermost(corpus, of_file, line.1) else {
            continue;
        };
        let passing = executed.passing.and_then(|passing| passing.get(line));
        let passed = passing.copied().unwrap_or_default();
        let (failed, all) = (count as f64, executed.failing.len() as f64);
        let ochiai = failed / (all * (failed + passed as f64)).sqrt();
        let known = found.entry(id).or_insert(Suspicion { ochiai, passed });
        if ochiai > known.ochiai {
            *known = Suspicion { ochiai, passed };
        }
    }
    found
}

/// Returns the innermost of these symbols of a file that contains a line.
fn innermost(corpus: Corpus<'_>, symbols: impl Iterator<Item = u32>, line: u32) -> Option<u32> {
    let around = symbols.filter(|id| {
        let (first, last) = corpus.lines(*id);
        (first..=last).contains(&line)
    });
    around.max_by_key(|id| (corpus.lines(*id).0, *id))
}

impl Suspicion {
    fn in_words(self, executed: &ExecutedLines<'_>) -> String {
        let tests = match executed.failing.len() {
            1 => "the failing test",
            _ => "failing tests",
        };
        match (self.passed, executed.passed) {
            (_, 0) => format!("run by {tests}"),
            (0, all) => format!("has lines run by {tests} and by none of {all} passing tests"),
            (some, all) => format!("has lines run by {tests} and by {some} of {all} passing tests"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Index;
    use crate::testing::snapshot_of;

    const SHOP: &str = "\
def total(prices, rate):
    if rate:
        return with_rate(prices, rate)
    return sum(prices)

def with_rate(prices, rate):
    return sum(prices) * rate

def total_of_prices(prices):
    return 0
";
    const FILES: [(&str, &str); 2] = [
        ("shop.py", SHOP),
        (
            "test_shop.py",
            "def test_total():\n    assert total([2], 2) == 4\n",
        ),
    ];
    const TEXT: &str = "test_shop.py::test_total fails: the total of prices";

    fn lines(file: &str, lines: &[u32]) -> BTreeSet<Line> {
        let file = FilePath::new(file);
        lines.iter().map(|line| (file.clone(), *line)).collect()
    }

    fn counts(file: &str, lines: &[(u32, usize)]) -> BTreeMap<Line, usize> {
        let file = FilePath::new(file);
        let lines = lines.iter();
        lines
            .map(|(line, count)| ((file.clone(), *line), *count))
            .collect()
    }

    fn located(executed: &ExecutedLines<'_>) -> Vec<(String, String)> {
        let index = Index::new(snapshot_of(&FILES));
        let found = index.locate_executed(TEXT, executed, 9).into_iter();
        found
            .map(|one| (one.symbol.to_string(), one.why[0].clone()))
            .collect()
    }

    #[test]
    fn symbols_that_few_passing_tests_execute_come_first() {
        let failing = lines("shop.py", &[1, 2, 3, 6, 7]);
        let passing = counts("shop.py", &[(1, 8), (2, 8), (3, 7), (4, 1), (6, 0)]);
        let executed = ExecutedLines {
            failing: vec![&failing],
            passing: Some(&passing),
            passed: 9,
        };
        let found = located(&executed);
        assert_eq!(
            found[0],
            (
                "shop.py::with_rate".to_owned(),
                "has lines run by the failing test and by none of 9 passing tests".to_owned()
            )
        );
        assert_eq!(
            found[1],
            (
                "shop.py::total".to_owned(),
                "has lines run by the failing test and by 7 of 9 passing tests".to_owned()
            )
        );
        let others: Vec<&str> = found[2..]
            .iter()
            .map(|(symbol, _)| symbol.as_str())
            .collect();
        assert!(others.contains(&"shop.py::total_of_prices"), "{found:?}");
        assert!(others.contains(&"test_shop.py::test_total"), "{found:?}");
    }

    #[test]
    fn line_that_more_failing_tests_execute_is_more_suspicious() {
        let (one, other) = (lines("shop.py", &[1, 4]), lines("shop.py", &[6, 7, 1]));
        let passing = counts("shop.py", &[]);
        let executed = ExecutedLines {
            failing: vec![&one, &other],
            passing: Some(&passing),
            passed: 0,
        };
        let found = located(&executed);
        let why = "run by failing tests".to_owned();
        assert_eq!(found[0], ("shop.py::total".to_owned(), why.clone()));
        assert_eq!(found[1], ("shop.py::with_rate".to_owned(), why));
    }

    #[test]
    fn words_alone_decide_if_only_tests_were_executed() {
        let index = Index::new(snapshot_of(&FILES));
        let failing = lines("test_shop.py", &[1, 2]);
        let executed = ExecutedLines {
            failing: vec![&failing],
            ..ExecutedLines::default()
        };
        for executed in [executed, ExecutedLines::default()] {
            let found = index.locate_executed(TEXT, &executed, 9);
            assert_eq!(found, index.locate(TEXT, 9));
        }
    }
}
