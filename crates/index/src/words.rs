//! Splits texts into terms: the words of code and prose, and the parts of compound words.

use super::facts::Field;

/// The hash of a lower-case word. With 64 bits, a collision in a workspace is practically
/// impossible, and would cost only a little precision. The lowest bits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Term(u64);

/// Mask of the bits below a term's hash that are free for a field.
const FIELD_BITS: u64 = 7;

/// Maximum length of a word, in bytes. Longer runs of letters are treated as data and skipped.
const LONGEST: usize = 60;

impl Term {
    /// Returns the term of a word, ignoring case and plural.
    pub(super) fn of(word: &str) -> Self {
        let word = singular(word);
        // The hash function is FNV-1a.
        let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x100_0000_01b3)
        });
        Term(hash & !FIELD_BITS)
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// Returns one number for the term and a field. Sorting these numbers keeps the fields of a
    /// term together.
    pub(super) fn with(self, field: Field) -> u64 {
        self.0 | field as u64
    }

    /// Splits a number from [`Term::with`] into the term and the field.
    pub(super) fn split(number: u64) -> (Term, Field) {
        let field = Field::ALL[(number & FIELD_BITS) as usize % Field::ALL.len()];
        (Term(number & !FIELD_BITS), field)
    }
}

/// Removes the plural `s`: `choices` and `choice` become the same term; `class` and `is` stay
/// unchanged.
pub(super) fn singular(word: &str) -> &str {
    let plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    if plural {
        &word[..word.len() - 1]
    } else {
        word
    }
}

/// Returns the words of a text: runs of letters, digits and underscores.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| is_counted(word))
}

/// Calls `note` with each run of letters, digits and underscores in a text, of any length.
pub(super) fn each_word<'t>(text: &'t str, mut note: impl FnMut(&'t str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() {
            let width = word_width(text, at);
            if width == 0 {
                break;
            }
            at += width;
        }
        if start < at {
            note(&text[start..at]);
        }
        at += bytes.get(at).map_or(0, |byte| other_width(*byte));
    }
}

/// Returns the length in bytes of the character at `at` if it is part of a word, else 0.
fn word_width(text: &str, at: usize) -> usize {
    let byte = text.as_bytes()[at];
    if byte.is_ascii() {
        return usize::from(byte.is_ascii_alphanumeric() || byte == b'_');
    }
    let c = text[at..].chars().next();
    c.filter(|c| c.is_alphanumeric()).map_or(0, char::len_utf8)
}

/// Returns the length in bytes of a UTF-8 character, given its first byte.
fn other_width(first: u8) -> usize {
    match first {
        0..0xc0 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
    }
}

/// Returns whether a word is long enough to be meaningful and short enough not to be data.
/// Identifiers are not limited in this way.
pub(super) fn is_counted(word: &str) -> bool {
    (2..=LONGEST).contains(&word.len())
}

/// Returns every word of a text, each followed by its parts if it is a compound.
pub(super) fn all_words(text: &str) -> impl Iterator<Item = &str> {
    words(text).flat_map(|word| {
        let proper = parts(word).filter(move |part| (2..word.len()).contains(&part.len()));
        std::iter::once(word).chain(proper)
    })
}

/// Splits an identifier into its parts: `get_HTTPResponse2` into `get`, `HTTP`, `Response2`.
pub(super) fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split('_').flat_map(camel_parts)
}

fn camel_parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, after) = rest.split_at(camel_end(rest));
        rest = after;
        Some(part)
    })
}

/// Returns the end of the first part of a camel-case word, as a byte offset.
fn camel_end(word: &str) -> usize {
    let bytes = word.as_bytes();
    (1..bytes.len())
        .find(|&at| {
            let starts = bytes[at].is_ascii_uppercase();
            let after_lower = !bytes[at - 1].is_ascii_uppercase();
            let before_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            starts && (after_lower || before_lower)
        })
        .unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_split_into_parts() {
        let split = |word| parts(word).collect::<Vec<_>>();
        assert_eq!(split("get_HTTPResponse2"), ["get", "HTTP", "Response2"]);
        assert_eq!(split("__init__"), ["init"]);
        assert_eq!(split("lower"), ["lower"]);
        assert_eq!(split("URL"), ["URL"]);
        assert_eq!(split("aÉb"), ["aÉb"]);
        assert_eq!(split("_"), [""; 0]);
    }

    #[test]
    fn functions_each_word_and_words_return_the_same_words() {
        for text in [
            "",
            "a bb ccc",
            "é_ü ß2 “quoted” a…b 漢字 x\u{1F600}yy",
            "snake_case camelCase __dunder__(x.yz)",
            &"x".repeat(100),
        ] {
            let mut found = Vec::new();
            each_word(text, |word| found.push(word));
            found.retain(|word| is_counted(word));
            assert_eq!(found, words(text).collect::<Vec<_>>(), "{text}");
        }
        let term = Term::of("word");
        assert_eq!(Term::split(term.with(Field::Doc)), (term, Field::Doc));
    }

    #[test]
    fn all_words_returns_words_and_their_parts() {
        let terms = |text| all_words(text).map(Term::of).collect::<Vec<_>>();
        let of = |words: &[&str]| words.iter().map(|word| Term::of(word)).collect::<Vec<_>>();
        assert_eq!(
            terms("Model.max_length, a Choices"),
            of(&["model", "max_length", "max", "length", "choice"])
        );
        assert_eq!(terms("__init__"), of(&["__init__", "init"]));
        assert_ne!(Term::of("class"), Term::of("clas"));
        assert_eq!(terms(&"x".repeat(100)), of(&[]));
    }
}
