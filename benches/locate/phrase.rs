//! Phrases of the text that stand in string literals: messages of errors, mostly.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::fields::literal;
use super::stop::is_stop_word;

/// How many words in a row make a phrase.
const PHRASE: usize = 3;

/// The phrases of a text.
pub(super) struct Phrases(HashSet<u64>);

impl Phrases {
    pub(super) fn of<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut phrases = HashSet::new();
        for line in lines {
            let words = words(line);
            phrases.extend(words.windows(PHRASE).filter(|words| says_something(words)).map(hash));
        }
        Phrases(phrases)
    }

    /// The most words in a row that a string literal in `code` shares with the text.
    pub(super) fn longest(&self, code: &str) -> usize {
        let mut longest = 0;
        let mut rest = code;
        while let Some(at) = rest.find(['"', '\'', '#']) {
            if rest[at..].starts_with('#') {
                rest = rest[at..].split_once('\n').map_or("", |(_, after)| after);
                continue;
            }
            let (inner, length) = literal(&rest[at..]);
            longest = longest.max(self.run(inner));
            rest = &rest[at + length..];
        }
        longest
    }

    fn run(&self, text: &str) -> usize {
        let words = words(text);
        let (mut run, mut longest) = (0, 0);
        for phrase in words.windows(PHRASE) {
            run = if self.0.contains(&hash(phrase)) { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        if longest > 0 { longest + PHRASE - 1 } else { 0 }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn says_something(words: &[String]) -> bool {
    words.iter().filter(|word| !is_stop_word(word) && word.len() > 2).count() >= 2
}

fn hash(words: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}
