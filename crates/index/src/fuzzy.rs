//! Fuzzy symbol search: `qs filter`, `QuSeFi` and `queryset` find `QuerySet.filter` or `QuerySet`.

use super::code::{Code, FileId, SymbolNumber};
use super::lookup::Definition;
use super::words::parts;
use starling_syntax::SymbolPath;

// Penalties of a match. A skipped part of the name does not occur in the query. A part that is
// matched only by its prefix may be a different word.
const SKIPPED: u32 = 4;
const SKIPPED_OWNER: u32 = 1;
const BEGUN: u32 = 1;

/// How well a symbol name matches the query, best variant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MatchQuality {
    /// The name equals the query.
    Exact,
    /// The name differs from the query only in upper and lower case.
    OtherCase,
    /// The words of the query begin parts of the name. The number is the penalty for parts of the
    /// name that the query lacks or abbreviates.
    Parts(u32),
    /// The letters of the query occur inside the name.
    Inside,
}

/// Returns the symbols that match `query`, best first and code before tests, and the total number
/// of matches.
pub(super) fn symbols(code: &Code, query: &str, limit: usize) -> (Vec<Definition>, usize) {
    let query = Query::read(query);
    let mut found: Vec<(MatchQuality, bool, FileId, SymbolNumber)> = Vec::new();
    for file in code.files() {
        // The module body has no name.
        for number in code.symbols_of(file).skip(1) {
            if let Some(fit) = query.fit(code.symbol(number).name) {
                found.push((fit, code.is_test(file), file, number));
            }
        }
    }
    let length = |number: SymbolNumber| code.symbol(number).name.len();
    found.sort_by_key(|(fit, is_test, file, number)| {
        (*fit, *is_test, length(*number), *file, *number)
    });
    let total = found.len();
    found.truncate(limit);
    let definition = |(_, _, file, number): (MatchQuality, bool, FileId, SymbolNumber)| {
        let symbol = code.symbol(number);
        Definition {
            symbol: SymbolPath::new(code.path(file).clone(), symbol.name),
            kind: symbol.kind,
            lines: symbol.lines,
            line: symbol.line,
        }
    };
    (found.into_iter().map(definition).collect(), total)
}

/// Returns the most similar name of a symbol outside tests, or `None` if no name is similar. If the
/// symbol's name has more dotted parts than `name`, only as many of its last parts are compared.
pub(super) fn nearest_name(code: &Code, name: &str) -> Option<String> {
    let parts = name.split('.').count();
    let most = (name.len() / 4).clamp(1, 3);
    let mut best: Option<(usize, String)> = None;
    for file in code.files().filter(|file| !code.is_test(*file)) {
        for number in code.symbols_of(file).skip(1) {
            let own: Vec<&str> = code.symbol(number).name.split('.').collect();
            let own = own[own.len().saturating_sub(parts)..].join(".");
            if own.contains('#') || own.len().abs_diff(name.len()) > most {
                continue;
            }
            let far = (distance(&own, name), own);
            if far.0 <= most && best.as_ref().is_none_or(|best| far < *best) {
                best = Some(far);
            }
        }
    }
    best.map(|(_, name)| name)
}

/// Returns the Levenshtein distance of two names.
pub fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = at + 1;
        for (column, wanted) in other.iter().enumerate() {
            let exchanged = before + usize::from(letter != *wanted);
            before = row[column + 1];
            row[column + 1] = exchanged.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// A query in the forms in which it is compared with names.
struct Query {
    /// The query as the user typed it, with `::` replaced by `.`.
    written: String,
    /// The words of the query. Each word starts a new part of a name.
    words: Vec<Vec<u8>>,
    /// The query in lower case, with only letters and digits.
    letters: String,
}

impl Query {
    fn read(text: &str) -> Query {
        let written = text.trim().replace("::", ".");
        let is_letter = |c: char| c.is_alphanumeric();
        let words: Vec<Vec<u8>> = written
            .split(|c| !is_letter(c))
            .flat_map(parts)
            .map(|part| part.to_lowercase().into_bytes())
            .collect();
        let letters = written
            .to_lowercase()
            .chars()
            .filter(|c| is_letter(*c))
            .collect();
        Query {
            written,
            words,
            letters,
        }
    }

    fn fit(&self, name: &str) -> Option<MatchQuality> {
        if self.letters.is_empty() {
            return None;
        }
        let base = name.rsplit('.').next().unwrap_or(name);
        let plain = base.split('#').next().unwrap_or(base);
        if [name, base, plain].contains(&self.written.as_str()) {
            return Some(MatchQuality::Exact);
        }
        if [name, base, plain]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&self.written))
        {
            return Some(MatchQuality::OtherCase);
        }
        let owner = &name[..name.len() - base.len()];
        let owner: Vec<String> = owner
            .split('.')
            .flat_map(parts)
            .map(str::to_lowercase)
            .collect();
        let own: Vec<String> = parts(plain).map(str::to_lowercase).collect();
        if let Some(cost) = cost(&self.words, &owner, &own) {
            return Some(MatchQuality::Parts(cost));
        }
        own.concat()
            .contains(&self.letters)
            .then_some(MatchQuality::Inside)
    }
}

/// Returns the cost of spelling `words` with prefixes of a name's parts, in order, where the last
/// matched part is one of `own`. Returns `None` if the name does not match.
fn cost(words: &[Vec<u8>], owner: &[String], own: &[String]) -> Option<u32> {
    let letters: Vec<u8> = words.concat();
    let mut starts = vec![false; letters.len() + 1];
    let mut at = 0;
    for word in words {
        starts[at] = true;
        at += word.len();
    }
    // `spelt[n]` is the lowest cost of spelling the first `n` letters with the parts so far.
    let mut spelt = vec![None; letters.len() + 1];
    spelt[0] = Some(0_u32);
    let mut whole = None;
    for (place, part) in owner.iter().chain(own).enumerate() {
        let is_own = place >= owner.len();
        let skip = if is_own { SKIPPED } else { SKIPPED_OWNER };
        let mut next: Vec<Option<u32>> = spelt.iter().map(|cost| cost.map(|c| c + skip)).collect();
        for from in (0..letters.len()).filter(|from| spelt[*from].is_some()) {
            let before = spelt[from].unwrap_or_default();
            for (length, letter) in (1..).zip(part.as_bytes()) {
                let to = from + length;
                if letters.get(to - 1) != Some(letter) || (length > 1 && starts[to - 1]) {
                    break;
                }
                let cost = before + if length < part.len() { BEGUN } else { 0 };
                next[to] = Some(next[to].map_or(cost, |known: u32| known.min(cost)));
                if is_own && to == letters.len() {
                    let rest =
                        u32::try_from(owner.len() + own.len() - place - 1).unwrap_or(u32::MAX);
                    let cost = cost.saturating_add(rest.saturating_mul(SKIPPED));
                    whole = Some(whole.map_or(cost, |known: u32| known.min(cost)));
                }
            }
        }
        spelt = next;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::super::testing::code_of;
    use super::*;

    fn found(query: &str) -> Vec<String> {
        let texts = [
            (
                "db/query.py",
                "class QuerySet:\n    def filter(self): pass\n    def _filter_or_exclude(self): pass\n    \
                 def get_or_create(self): pass\nclass RawQuerySet(QuerySet): pass\n",
            ),
            (
                "db/util.py",
                "def querysets(): pass\ndef get_query(): pass\ndef subquery(): pass\n",
            ),
            ("tests/test_query.py", "class QuerySet: pass\n"),
        ];
        let (symbols, total) = symbols(&code_of(texts), query, 50);
        assert_eq!(symbols.len(), total);
        symbols
            .iter()
            .map(|found| found.symbol.to_string())
            .collect()
    }

    #[test]
    fn exact_name_is_ranked_first_with_code_before_tests() {
        let names = found("QuerySet");
        let expected = [
            "db/query.py::QuerySet",
            "tests/test_query.py::QuerySet",
            "db/query.py::RawQuerySet",
            "db/util.py::querysets",
        ];
        assert_eq!(names, expected);
        assert_eq!(found("queryset")[0], "db/query.py::QuerySet");
    }

    #[test]
    fn query_of_name_parts_or_initials_finds_the_symbol() {
        for query in [
            "QuerySet.filter",
            "db::QuerySet::filter",
            "qs filter",
            "QuSeFi",
            "queryset fil",
        ] {
            let first = found(query.trim_start_matches("db::"));
            assert_eq!(first[0], "db/query.py::QuerySet.filter", "{query}");
        }
        assert_eq!(found("goc"), ["db/query.py::QuerySet.get_or_create"]);
        assert_eq!(found("f_o_e"), ["db/query.py::QuerySet._filter_or_exclude"]);
        assert_eq!(found("get query")[0], "db/util.py::get_query");
    }

    #[test]
    fn match_inside_a_word_is_ranked_last() {
        let names = found("query");
        assert_eq!(names.last().unwrap(), "db/util.py::subquery");
        assert_eq!(found("ubquer"), ["db/util.py::subquery"]);
    }

    #[test]
    fn query_that_matches_no_name_returns_nothing() {
        for query in ["", " ", ".", "filter queryset", "nowhere", "\u{1f642}"] {
            assert_eq!(found(query), [""; 0], "{query}");
        }
    }

    #[test]
    fn result_is_limited_to_the_best_matches() {
        let text = "def a(): pass\ndef ab(): pass\ndef abc(): pass\n";
        let (symbols, total) = symbols(&code_of([("a.py", text)]), "a", 2);
        let names: Vec<&str> = symbols
            .iter()
            .map(|found| found.symbol.name.as_str())
            .collect();
        assert_eq!((names, total), (vec!["a", "ab"], 3));
    }
}
