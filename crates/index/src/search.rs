//! Text search over all files.

use std::sync::Arc;

use super::code::Code;
use super::facts::is_test;
use super::read::on_all_cores;
use super::segment::hash_of;
use starling_syntax::{FilePath, Language, SymbolPath, SymbolTree};
use starling_workspace::{Snapshot, TextState};

/// Maximum length of a shown line, in bytes.
const LINE_BYTES: usize = 200;
/// Maximum length of a searched line, in bytes. Longer lines are skipped.
const LONGEST: usize = 2_000;
/// Number of matching lines after which the search stops. A query with more matches is not specific
/// enough.
const MOST: usize = 20_000;
/// Number of files that are searched before the number of matches is compared with [`MOST`].
const WINDOW: usize = 1_024;

/// A line that matches the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    pub text: String,
    /// The innermost symbol that contains the line.
    pub symbol: SymbolPath,
}

/// The best hits, and the total number of hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits {
    pub hits: Vec<Hit>,
    pub total: usize,
    /// Number of words in the query.
    pub words: usize,
    /// Number of different query words in each hit. It is the same for all hits.
    pub held: usize,
}

/// Returns the lines that contain all words of `query`, in any case. Definitions of matching names
/// come first, then lines that contain the query as written. Code comes before tests, and files
/// without symbols come last. Only files whose path contains `within` are searched.
pub(super) fn search(
    code: &Code,
    snapshot: &Snapshot,
    query: &str,
    within: &str,
    limit: usize,
) -> Hits {
    let wanted = SearchQuery::of(query);
    let found = wanted.lines(snapshot, within, wanted.words.len());
    wanted.best(code, found, limit)
}

/// Searches like [`search`]. If no line contains all words, returns the lines with the most words,
/// provided these are at least half of the words.
pub(super) fn search_most(
    code: &Code,
    snapshot: &Snapshot,
    query: &str,
    within: &str,
    limit: usize,
) -> Hits {
    let wanted = SearchQuery::of(query);
    let all = wanted.words.len();
    let mut found = wanted.lines(snapshot, within, all);
    if found.is_empty() && all > 1 {
        found = wanted.lines(snapshot, within, all.div_ceil(2));
        let most = found.iter().map(|candidate| candidate.held).max();
        found.retain(|candidate| Some(candidate.held) == most);
    }
    wanted.best(code, found, limit)
}

/// A query and its words in lower case.
struct SearchQuery<'q> {
    phrase: &'q str,
    words: Vec<Vec<u8>>,
}

impl<'q> SearchQuery<'q> {
    fn of(query: &'q str) -> Self {
        let phrase = query.trim();
        let words = phrase.split_whitespace();
        let words = words.map(|word| word.to_ascii_lowercase().into_bytes());
        SearchQuery {
            phrase,
            words: words.collect(),
        }
    }

    /// Returns the lines that contain at least `least` of the words.
    fn lines(&self, snapshot: &Snapshot, within: &str, least: usize) -> Vec<MatchingLine> {
        let mut found = Vec::new();
        if self.words.is_empty() {
            return found;
        }
        let files = snapshot.files().iter();
        let files: Vec<&FilePath> = files
            .filter(|file| file.as_str().contains(within))
            .collect();
        for files in files.chunks(WINDOW) {
            let candidates = on_all_cores(
                files,
                || (),
                |file| {
                    let text = text_of(snapshot, file)?;
                    Some(search_text(file, &text, self, least))
                },
            );
            found.extend(candidates.into_iter().flatten().flatten());
            if found.len() >= MOST {
                break;
            }
        }
        found
    }

    fn best(&self, code: &Code, mut found: Vec<MatchingLine>, limit: usize) -> Hits {
        found.sort_by_key(|candidate| candidate.rank);
        let (total, words) = (found.len(), self.words.len());
        let held = found.first().map_or(words, |candidate| candidate.held);
        let hits = found.into_iter().take(limit);
        Hits {
            hits: hits.map(|candidate| candidate.hit(code)).collect(),
            total,
            words,
            held,
        }
    }
}

/// Returns the text of a file. A text that is read from disk is not cached.
pub(super) fn text_of(snapshot: &Snapshot, file: &FilePath) -> Option<Arc<str>> {
    match snapshot.held(file) {
        TextState::Text(text) => Some(text),
        TextState::OnDisk(_) => Some(snapshot.glance(file).ok()?.0.into()),
        // Hidden files are not listed, but can be read.
        TextState::Nothing => snapshot.read(file).ok(),
    }
}

/// A line that matches the query, with its rank. A lower rank is better.
struct MatchingLine {
    rank: u8,
    /// Number of query words in the line.
    held: usize,
    file: FilePath,
    line: u32,
    text: String,
    /// Text of the whole file, shared by all matching lines of the file.
    whole: Arc<str>,
}

impl MatchingLine {
    fn hit(self, code: &Code) -> Hit {
        Hit {
            symbol: self.owner(code),
            file: self.file,
            line: self.line,
            text: self.text,
        }
    }

    fn owner(&self, code: &Code) -> SymbolPath {
        let known = code.find(&self.file);
        let same = known.filter(|file| code.view(*file).hash == hash_of(&self.whole));
        let indexed = same.and_then(|file| code.path_of(code.owner(file, self.line)?));
        // The file has changed since it was indexed, or has no grammar.
        indexed.unwrap_or_else(|| {
            let tree = SymbolTree::parse(self.file.clone(), self.whole.clone());
            tree.at_line(self.line).path.clone()
        })
    }
}

fn search_text(
    file: &FilePath,
    whole: &Arc<str>,
    wanted: &SearchQuery<'_>,
    least: usize,
) -> Vec<MatchingLine> {
    let SearchQuery { phrase, words } = wanted;
    if held(whole, words, least).is_none() {
        return Vec::new();
    }
    let place = match (Language::of(file), is_test(file)) {
        (Language::Plain, _) => 2,
        (Language::Python, true) => 1,
        (Language::Python, false) => 0,
    };
    // Longer lines are usually generated.
    let lines = (1..)
        .zip(whole.lines())
        .filter(|(_, text)| text.len() <= LONGEST);
    let candidate = |(line, text): (u32, &str)| {
        Some(MatchingLine {
            held: held(text, words, least)?,
            rank: quality(text, phrase) * 3 + place,
            file: file.clone(),
            line,
            text: shown(text).to_owned(),
            whole: whole.clone(),
        })
    };
    lines.filter_map(candidate).collect()
}

fn shown(line: &str) -> &str {
    let text = line.trim();
    &text[..text.floor_char_boundary(LINE_BYTES)]
}

/// Returns the rank of a line's match; lower is better.
fn quality(text: &str, phrase: &str) -> u8 {
    let bare = text.trim_start();
    let bare = bare.strip_prefix("async ").unwrap_or(bare);
    let defined = ["def ", "class "]
        .iter()
        .find_map(|word| bare.strip_prefix(word));
    let name = defined.map(|rest| {
        let end = rest.find(['(', '[', ':']).unwrap_or(rest.len());
        rest[..end].trim()
    });
    match name {
        Some(name) if name == phrase => 0,
        Some(name) if name.eq_ignore_ascii_case(phrase) => 1,
        Some(_) | None if text.contains(phrase) => 2,
        Some(_) | None => 3,
    }
}

/// Returns the number of words that a text contains, or `None` if it is less than `least`.
fn held(text: &str, words: &[Vec<u8>], least: usize) -> Option<usize> {
    let mut missing = 0;
    for word in words {
        missing += usize::from(!has(text.as_bytes(), word));
        if missing + least > words.len() {
            return None;
        }
    }
    Some(words.len() - missing)
}

/// Returns whether a text contains a word in any case. The word must be in lower case.
fn has(text: &[u8], word: &[u8]) -> bool {
    let Some((first, rest)) = word.split_first() else {
        return true;
    };
    let upper = first.to_ascii_uppercase();
    let last = text.len().saturating_sub(rest.len());
    text[..last].iter().enumerate().any(|(at, byte)| {
        (byte == first || *byte == upper)
            && text[at + 1..at + 1 + rest.len()].eq_ignore_ascii_case(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{code_of, snapshot_of};
    use super::*;

    fn search_in(texts: &[(&str, &str)], query: &str, limit: usize) -> Hits {
        let code = code_of(
            texts
                .iter()
                .filter(|(path, _)| path.ends_with(".py"))
                .copied(),
        );
        search(&code, &snapshot_of(texts), query, "", limit)
    }

    fn found(query: &str, limit: usize) -> (Vec<String>, usize) {
        let texts = [
            (
                "a.py",
                "# total of a cart\nclass Cart:\n    def total(self):\n        return Total(1)\n",
            ),
            ("readme.md", "The total, and the CART.\n"),
            ("tests/test_a.py", "def total():\n    pass\n"),
        ];
        let hits = search_in(&texts, query, limit);
        let show = |hit: &Hit| {
            format!(
                "{}:{}: {} [{}]",
                hit.file, hit.line, hit.text, hit.symbol.name
            )
        };
        (hits.hits.iter().map(show).collect(), hits.total)
    }

    #[test]
    fn search_ranks_definitions_first_then_code_tests_and_prose() {
        let expected = [
            "a.py:3: def total(self): [Cart.total]",
            "tests/test_a.py:1: def total(): [total]",
            "a.py:1: # total of a cart [Cart]",
            "readme.md:1: The total, and the CART. []",
            "a.py:4: return Total(1) [Cart.total]",
        ];
        assert_eq!(
            found("total", 10),
            (expected.map(str::to_owned).to_vec(), 5)
        );
        assert_eq!(found("total", 1).0, expected[..1]);
    }

    #[test]
    fn search_matches_all_words_in_any_case_and_order() {
        let expected = [
            "a.py:1: # total of a cart [Cart]",
            "readme.md:1: The total, and the CART. []",
        ];
        assert_eq!(found("cart TOTAL", 10).0, expected);
        assert_eq!(found("return Total(1)", 10).0.len(), 1);
        assert_eq!(found("nowhere", 10), (vec![], 0));
        assert_eq!(found("  ", 10), (vec![], 0));
        assert_eq!(found("pass\n", 10).1, 1);
    }

    #[test]
    fn word_is_found_at_both_ends_of_a_text() {
        assert!(has(b"Abc", b"abc") && has(b"xAbC", b"bc") && has(b"x", b""));
        assert!(!has(b"ab", b"abc") && !has(b"", b"a"));
    }

    /// Returns the hits in these texts as `file:line`.
    fn places(texts: &[(&str, &str)], query: &str) -> Vec<String> {
        let hits = search_in(texts, query, 50).hits;
        let show = |hit: &Hit| format!("{}:{}", hit.file, hit.line);
        hits.iter().map(show).collect()
    }

    #[test]
    fn search_ranks_definitions_before_uses() {
        let texts = [
            ("a.py", "x = load()\nself.load = 1\n"),
            ("b.py", "class Load:\n    async def load(self): pass\n"),
            ("c.py", "def loader(): pass\ndef load [T](x): pass\n"),
            ("tests/d.py", "class load: pass\n"),
        ];
        let found = places(&texts, "load");
        // Exact names come first, then names in another case, then names that only contain the
        // query.
        assert_eq!(found[..3], ["b.py:2", "c.py:2", "tests/d.py:1"]);
        let place = |at: &str| found.iter().position(|place| place == at).unwrap();
        assert!(place("tests/d.py:1") < place("b.py:1"));
        assert!(place("b.py:1") < place("a.py:1"));
        assert!(place("a.py:1") < place("c.py:1"));
        assert_eq!(found.len(), 7);
    }

    #[test]
    fn exact_phrase_is_ranked_before_lines_with_its_words() {
        let texts = [
            ("a.py", "two = one\n"),
            ("b.py", "x = 'One two'\n"),
            ("c.py", "y = 'one two'\n"),
        ];
        assert_eq!(places(&texts, "one two"), ["c.py:1", "a.py:1", "b.py:1"]);
        // All words must be on the same line.
        assert_eq!(places(&[("a.py", "one\ntwo\n")], "one two"), [""; 0]);
    }

    #[test]
    fn long_line_is_truncated_at_a_character_boundary() {
        let long = format!("\r\n\r\nx = '{}needle'\r\n", "\u{e9}".repeat(300));
        let hits = search_in(&[("a.py", long.as_str())], "needle", 5).hits;
        assert_eq!(hits[0].line, 3);
        assert!(hits[0].text.len() <= LINE_BYTES && hits[0].text.starts_with("x = '\u{e9}"));
        assert!(hits[0].symbol.is_module());
    }

    #[test]
    fn search_stops_after_too_many_matching_lines() {
        let text = "word\n".repeat(MOST);
        let names: Vec<String> = (0..=WINDOW).map(|n| format!("f{n:04}.txt")).collect();
        let mut texts: Vec<_> = names.iter().map(|name| (name.as_str(), "word\n")).collect();
        texts[0].1 = &text;
        let hits = search_in(&texts, "word", 2);
        assert_eq!((hits.hits.len(), hits.total), (2, MOST + WINDOW - 1));
    }

    #[test]
    fn hit_in_a_changed_file_has_its_current_symbol() {
        let code = code_of([("a.py", "def f():\n    word\n")]);
        let snapshot = snapshot_of(&[("a.py", "x\ndef g():\n    word\n")]);
        let hits = search(&code, &snapshot, "word", "", 2).hits;
        assert_eq!(hits[0].symbol.to_string(), "a.py::g");
    }
}
