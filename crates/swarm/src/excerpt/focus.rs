//! The focus of an excerpt: the words of a text that decide which lines are shown, and the source
//! lines that the text quotes in tracebacks.

use std::collections::BTreeSet;

use starling_index::frame;
use starling_syntax::FilePath;

/// Weight of a matching name, relative to the weight 1 of a matching word.
const NAME: u32 = 3;
/// Common words of code and prose that do not count as matches.
const EMPTY: [&str; 46] = [
    "self", "none", "true", "false", "return", "this", "that", "with", "from", "when", "then",
    "which", "where", "what", "there", "they", "them", "into", "have", "does", "each", "than",
    "only", "also", "after", "before", "because", "would", "will", "were", "been", "being", "such",
    "other", "else", "import", "class", "line", "code", "file", "function", "method", "value",
    "here", "while", "called",
];

/// The search terms that are taken from a text, such as a task with its failing tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Focus {
    /// Identifiers as written.
    names: BTreeSet<String>,
    /// Prefixes of words and of parts of names.
    stems: BTreeSet<String>,
    /// Paths and lines in tracebacks.
    frames: Vec<(String, u32)>,
    /// Source lines that the tracebacks quote, without indentation.
    quoted: BTreeSet<String>,
}

impl Focus {
    pub fn of(text: &str) -> Focus {
        let mut focus = Focus {
            names: names(text),
            stems: stems(text),
            ..Focus::default()
        };
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(frame) = frame(line) else { continue };
            focus.frames.push((frame.path.to_owned(), frame.line));
            let quoted = lines.peek().map_or("", |next| next.trim());
            if quoted.len() > 5 {
                focus.quoted.insert(quoted.to_owned());
            }
        }
        focus
    }

    /// Returns whether a traceback quotes a line or names its file and line number.
    pub fn is_in_traceback(&self, file: &FilePath, number: usize, line: &str) -> bool {
        let here = |(path, at): &(String, u32)| {
            *at as usize == number && (path == file.as_str() || ends_with(path, file))
        };
        self.quoted.contains(line.trim()) || self.frames.iter().any(here)
    }

    /// Returns the search terms that occur in a line, with their weights.
    pub fn in_line<'l>(&self, line: &'l str) -> Vec<(std::borrow::Cow<'l, str>, u32)> {
        let is_name = |word: &&str| self.names.contains(*word);
        let mut found: Vec<(std::borrow::Cow<'l, str>, u32)> = Vec::new();
        for word in words(line).filter(is_name) {
            if !found.iter().any(|(known, _)| known == word) {
                found.push((word.into(), NAME));
            }
        }
        let shared = stems(line).into_iter();
        found.extend(
            shared
                .filter(|stem| self.stems.contains(stem))
                .map(|stem| (format!("~{stem}").into(), 1)),
        );
        found
    }

    /// Returns how many of the names and how many of the word stems occur in another text.
    pub fn shared_with(&self, text: &str) -> (usize, usize) {
        let names: BTreeSet<&str> = words(text)
            .filter(|word| self.names.contains(*word))
            .collect();
        (names.len(), stems(text).intersection(&self.stems).count())
    }
}

fn ends_with(path: &str, file: &FilePath) -> bool {
    let path = path.strip_suffix(file.as_str());
    path.is_some_and(|before| before.ends_with('/'))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// Returns the words that look like names of code: words with an underscore, inner capitals or
/// digits, and words that are called, assigned, quoted or next to a dot.
fn names(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut at = 0;
    for word in words(text) {
        let start = at + text[at..].find(word).unwrap_or_default();
        at = start + word.len();
        let before = text[..start].chars().next_back().unwrap_or(' ');
        let mut after = text[at..].chars();
        let (next, second) = (after.next().unwrap_or(' '), after.next().unwrap_or(' '));
        let looks = word.contains('_') || has_humps(word);
        let dotted = next == '.' && second.is_alphabetic();
        let stands = matches!(before, '`' | '.' | '@') || matches!(next, '(' | '=' | '`') || dotted;
        let is_long = word.len() > 2 && !word.starts_with(|c: char| c.is_ascii_digit());
        if is_long && (looks || stands) && !EMPTY.contains(&word) {
            found.insert(word.to_owned());
        }
    }
    found
}

/// Returns whether a word has capitals inside, such as `HttpResponse`, but unlike `Http` or `HTTP`.
fn has_humps(word: &str) -> bool {
    let capitals = word.chars().skip(1).filter(|c| c.is_uppercase()).count();
    capitals > 0 && word.chars().any(char::is_lowercase)
}

/// Returns the stems (prefixes) of the significant words of a text. A name is split into its words
/// first.
pub fn stems(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let mut part = String::new();
        for c in word.chars() {
            if c.is_uppercase() && part.ends_with(char::is_lowercase) {
                keep(&mut found, &part);
                part.clear();
            }
            part.push(c);
        }
        keep(&mut found, &part);
    }
    found
}

fn keep(found: &mut BTreeSet<String>, word: &str) {
    let word = word.to_lowercase();
    if word.chars().count() > 3 && !EMPTY.contains(&word.as_str()) {
        found.insert(word.chars().take(5).collect());
    }
}
