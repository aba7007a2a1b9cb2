//! Text search over all files.

use std::sync::Arc;

use super::facts::FileFacts;
use crate::syntax::{FilePath, SymbolPath};

/// A line is shown up to this length.
const LINE_BYTES: usize = 200;
/// Matching lines that are looked at; a word on more lines than this says little.
const MOST: usize = 20_000;

/// A line with the words asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub file: FilePath,
    /// From 1.
    pub line: u32,
    pub text: String,
    /// The symbol that owns the line.
    pub symbol: SymbolPath,
}

/// The best hits, and how many there are in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits {
    pub hits: Vec<Hit>,
    pub total: usize,
}

/// Lines that hold all words of `query`, in any case: definitions of such names first, then lines
/// that hold the query as it is written, code before tests, and files without symbols last.
pub(super) fn search(files: &[Arc<FileFacts>], query: &str, limit: usize) -> Hits {
    let phrase = query.trim();
    let words: Vec<Vec<u8>> = phrase
        .split_whitespace()
        .map(|word| word.to_ascii_lowercase().into_bytes())
        .collect();
    let mut found = Vec::new();
    if !words.is_empty() {
        for facts in files.iter().filter(|facts| has_all(&facts.text, &words)) {
            search_file(facts, phrase, &words, &mut found);
            if found.len() >= MOST {
                break;
            }
        }
    }
    found.sort_by_key(|candidate| candidate.rank);
    let total = found.len();
    let hits = found.iter().take(limit).map(Candidate::hit).collect();
    Hits { hits, total }
}

struct Candidate<'f> {
    rank: u8,
    facts: &'f FileFacts,
    line: u32,
    text: &'f str,
}

impl Candidate<'_> {
    fn hit(&self) -> Hit {
        let text = self.text.trim();
        Hit {
            file: self.facts.file.clone(),
            line: self.line,
            text: text[..text.floor_char_boundary(LINE_BYTES)].to_owned(),
            symbol: self.facts.owner(self.line),
        }
    }
}

fn search_file<'f>(
    facts: &'f FileFacts,
    phrase: &str,
    words: &[Vec<u8>],
    found: &mut Vec<Candidate<'f>>,
) {
    for (line, text) in (1..).zip(facts.text.lines()) {
        if has_all(text, words) {
            found.push(Candidate {
                rank: rank(facts, text, phrase),
                facts,
                line,
                text,
            });
        }
    }
}

/// Smaller is better.
fn rank(facts: &FileFacts, text: &str, phrase: &str) -> u8 {
    let place = match (facts.symbols.is_empty(), facts.is_test) {
        (false, false) => 0,
        (false, true) => 1,
        (true, _) => 2,
    };
    let bare = text.trim_start();
    let bare = bare.strip_prefix("async ").unwrap_or(bare);
    let defined = ["def ", "class "]
        .iter()
        .find_map(|word| bare.strip_prefix(word));
    let name = defined.map(|rest| {
        let end = rest.find(['(', '[', ':']).unwrap_or(rest.len());
        rest[..end].trim()
    });
    let quality = match name {
        Some(name) if name == phrase => 0,
        Some(name) if name.eq_ignore_ascii_case(phrase) => 1,
        Some(_) | None if text.contains(phrase) => 2,
        Some(_) | None => 3,
    };
    quality * 3 + place
}

fn has_all(text: &str, words: &[Vec<u8>]) -> bool {
    words.iter().all(|word| has(text.as_bytes(), word))
}

/// Whether a text has a word, given in lower case, in any case.
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
    use super::*;

    fn found(query: &str, limit: usize) -> (Vec<String>, usize) {
        let texts = [
            (
                "a.py",
                "# total of a cart\nclass Cart:\n    def total(self):\n        return Total(1)\n",
            ),
            ("readme.md", "The total, and the CART.\n"),
            ("tests/test_a.py", "def total():\n    pass\n"),
        ];
        let read = |(path, text): (&str, &str)| FileFacts::read(FilePath::new(path), text.into());
        let files: Vec<_> = texts.into_iter().map(read).map(Arc::new).collect();
        let hits = search(&files, query, limit);
        let show = |hit: &Hit| {
            format!(
                "{}:{}: {} [{}]",
                hit.file, hit.line, hit.text, hit.symbol.name
            )
        };
        (hits.hits.iter().map(show).collect(), hits.total)
    }

    #[test]
    fn definitions_come_first_then_code_tests_and_prose() {
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
    fn all_words_in_any_case_and_order() {
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
    fn finds_at_both_ends() {
        assert!(has(b"Abc", b"abc") && has(b"xAbC", b"bc") && has(b"x", b""));
        assert!(!has(b"ab", b"abc") && !has(b"", b"a"));
    }

    /// `file:line` of what is found in these texts.
    fn places(texts: &[(&str, &str)], query: &str) -> Vec<String> {
        let read = |(path, text): &(&str, &str)| {
            Arc::new(FileFacts::read(FilePath::new(*path), (*text).into()))
        };
        let files: Vec<_> = texts.iter().map(read).collect();
        let hits = search(&files, query, 50).hits;
        let show = |hit: &Hit| format!("{}:{}", hit.file, hit.line);
        hits.iter().map(show).collect()
    }

    #[test]
    fn kinds_of_definitions_come_before_uses() {
        let texts = [
            ("a.py", "x = load()\nself.load = 1\n"),
            ("b.py", "class Load:\n    async def load(self): pass\n"),
            ("c.py", "def loader(): pass\ndef load [T](x): pass\n"),
            ("tests/d.py", "class load: pass\n"),
        ];
        let found = places(&texts, "load");
        // By its own name, then in another case, then what only holds it.
        assert_eq!(found[..3], ["b.py:2", "c.py:2", "tests/d.py:1"]);
        let place = |at: &str| found.iter().position(|place| place == at).unwrap();
        assert!(place("tests/d.py:1") < place("b.py:1"));
        assert!(place("b.py:1") < place("a.py:1"));
        assert!(place("a.py:1") < place("c.py:1"));
        assert_eq!(found.len(), 7);
    }

    #[test]
    fn the_query_as_written_comes_before_its_words() {
        let texts = [
            ("a.py", "two = one\n"),
            ("b.py", "x = 'One two'\n"),
            ("c.py", "y = 'one two'\n"),
        ];
        assert_eq!(places(&texts, "one two"), ["c.py:1", "a.py:1", "b.py:1"]);
        // All of the words stand on one line, not anywhere in the file.
        assert_eq!(places(&[("a.py", "one\ntwo\n")], "one two"), [""; 0]);
    }

    #[test]
    fn lines_are_numbered_and_cut_at_characters() {
        let long = format!("\r\n\r\nx = '{}needle'\r\n", "\u{e9}".repeat(300));
        let facts = FileFacts::read(FilePath::new("a.py"), long.as_str().into());
        let hits = search(&[Arc::new(facts)], "needle", 5).hits;
        assert_eq!(hits[0].line, 3);
        assert!(hits[0].text.len() <= LINE_BYTES && hits[0].text.starts_with("x = '\u{e9}"));
        assert!(hits[0].symbol.is_module());
    }

    #[test]
    fn a_word_on_very_many_lines_ends_the_search() {
        let text = "word\n".repeat(MOST);
        let files: Vec<_> = ["a.py", "b.py"]
            .map(|path| Arc::new(FileFacts::read(FilePath::new(path), text.as_str().into())))
            .into();
        let hits = search(&files, "word", 2);
        assert_eq!((hits.hits.len(), hits.total), (2, MOST));
    }
}
