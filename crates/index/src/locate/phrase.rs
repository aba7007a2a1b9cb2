//! Finds phrases of the text in string literals, which are mostly error messages.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::stop::is_stop_word;

/// Number of consecutive words in a phrase.
const PHRASE: usize = 3;

/// Hashes of the phrases of a text. Phrases that consist only of common words are left out.
pub(super) struct Phrases(HashSet<u64>);

impl Phrases {
    pub(super) fn of<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut phrases = HashSet::new();
        for line in lines {
            let words = words(line);
            phrases.extend(
                words
                    .windows(PHRASE)
                    .filter(|words| says_something(words))
                    .map(hash),
            );
        }
        Phrases(phrases)
    }

    /// Returns the largest number of consecutive words that a string literal in `code` shares with
    /// the text.
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
            run = if self.0.contains(&hash(phrase)) {
                run + 1
            } else {
                0
            };
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
    words
        .iter()
        .filter(|word| !is_stop_word(word) && word.len() > 2)
        .count()
        >= 2
}

fn hash(words: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

/// Returns the content of the string literal at the beginning of `text`, and the length of the
/// literal with its quotes, in bytes.
fn literal(text: &str) -> (&str, usize) {
    let quote = &text[..1];
    let triple = text.len() >= 3 && text[1..].starts_with(&quote.repeat(2));
    let width = if triple { 3 } else { 1 };
    let bytes = text.as_bytes();
    let mut at = width;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\n' if !triple => return (&text[width..at], at),
            byte if byte == bytes[0] && (!triple || bytes[at..].starts_with(&bytes[..3])) => {
                return (&text[width..at], at + width);
            }
            _ => at += 1,
        }
    }
    (text.get(width..).unwrap_or_default(), text.len())
}

/// Returns the code without comments and string literals.
pub(super) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\'', '#']) {
        code.push_str(&rest[..at]);
        code.push(' ');
        rest = match rest.as_bytes()[at] {
            b'#' => rest[at..].find('\n').map_or("", |end| &rest[at + end..]),
            _ => &rest[at + literal(&rest[at..]).1..],
        };
    }
    code.push_str(rest);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_message_matches_the_string_literal_that_contains_it() {
        let phrases = Phrases::of(["ValueError: cannot open door number 7 twice"].into_iter());
        let longest = |code: &str| phrases.longest(code);
        assert_eq!(longest("raise ValueError('cannot open door number %d')"), 4);
        assert_eq!(longest("cannot open door number"), 0, "no literal");
        assert_eq!(longest("# 'cannot open door'\nx = 'door'"), 0);
        assert_eq!(longest("'''a\nCannot open door.'''"), 3);
        assert_eq!(longest("'unclosed"), 0);
    }

    #[test]
    fn code_of_removes_strings_and_comments() {
        assert_eq!(
            code_of("f('a b', x) # c\ny = '''d\ne'''"),
            "f( , x)  \ny =  "
        );
        for text in ["'", "'\\", "#", "\"\"\"é", "'é\\"] {
            code_of(text);
        }
    }
}
