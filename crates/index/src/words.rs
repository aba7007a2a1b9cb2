//! Texts as terms: the words of code and prose, whole and in parts.

use super::facts::Field;

/// The hash of a lower-case word. Sixty-four bits: that two words of a workspace share one is as
/// good as impossible, and would cost a little precision. The lowest bits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Term(u64);

/// Room for a field below a term's hash.
const FIELD_BITS: u64 = 7;

/// Longer runs of letters are data, not words.
const LONGEST: usize = 60;

impl Term {
    /// The term of a word in any case, without its plural.
    pub(super) fn of(word: &str) -> Self {
        let word = singular(word);
        // FNV-1a.
        let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x100_0000_01b3)
        });
        Term(hash & !FIELD_BITS)
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// One number for the term in a field; in its order, the fields of a term stand together.
    pub(super) fn with(self, field: Field) -> u64 {
        self.0 | field as u64
    }

    /// The parts of such a number.
    pub(super) fn split(number: u64) -> (Term, Field) {
        let field = Field::ALL[(number & FIELD_BITS) as usize % Field::ALL.len()];
        (Term(number & !FIELD_BITS), field)
    }
}

/// `choices` and `choice` are one term; `class` and `is` stay.
fn singular(word: &str) -> &str {
    let plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    if plural {
        &word[..word.len() - 1]
    } else {
        word
    }
}

/// The words of a text: runs of letters, digits and underscores.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| is_counted(word))
}

/// Calls `note` with each run of letters, digits and underscores of a text, of any
/// length.
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

/// The bytes of the character here if it belongs to a word, else 0.
fn word_width(text: &str, at: usize) -> usize {
    let byte = text.as_bytes()[at];
    if byte.is_ascii() {
        return usize::from(byte.is_ascii_alphanumeric() || byte == b'_');
    }
    let c = text[at..].chars().next();
    c.filter(|c| c.is_alphanumeric()).map_or(0, char::len_utf8)
}

/// The bytes of a character by its first one.
fn other_width(first: u8) -> usize {
    match first {
        0..0xc0 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
    }
}

/// Whether a word is long enough to say something and short enough to be one. Names need not be.
pub(super) fn is_counted(word: &str) -> bool {
    (2..=LONGEST).contains(&word.len())
}

/// Every word of a text, each followed by its parts where it is not one itself.
pub(super) fn all_words(text: &str) -> impl Iterator<Item = &str> {
    words(text).flat_map(|word| {
        let proper = parts(word).filter(move |part| (2..word.len()).contains(&part.len()));
        std::iter::once(word).chain(proper)
    })
}

/// The parts of an identifier: `get_HTTPResponse2` is `get`, `HTTP`, `Response2`.
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

/// Where the first part of a camel-case word ends.
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
    fn splits_identifiers() {
        let split = |word| parts(word).collect::<Vec<_>>();
        assert_eq!(split("get_HTTPResponse2"), ["get", "HTTP", "Response2"]);
        assert_eq!(split("__init__"), ["init"]);
        assert_eq!(split("lower"), ["lower"]);
        assert_eq!(split("URL"), ["URL"]);
        assert_eq!(split("aÉb"), ["aÉb"]);
        assert_eq!(split("_"), [""; 0]);
    }

    #[test]
    fn each_word_finds_the_words() {
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
    fn words_count_whole_and_in_parts() {
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
