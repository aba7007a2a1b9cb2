//! Identifiers as Python compares them: it takes `\u{ff48}elper`, with a letter of full width, for `helper`.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfkc};

/// The name that Python binds or reads where this identifier is written.
pub fn normalized(name: &str) -> Cow<'_, str> {
    match name.is_ascii() || is_nfkc(name) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.nfkc().collect()),
    }
}

/// The identifier that begins at a byte of a text, as it is written.
pub fn written_at(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    &rest[..rest.find(is_border).unwrap_or(rest.len())]
}

/// Whether a character ends an identifier.
fn is_border(c: char) -> bool {
    c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' || c.is_whitespace()
}

/// Where a text writes `name` otherwise than letter by letter, as byte offsets with the lengths.
pub(super) fn other_spellings<'t>(
    text: &'t str,
    name: &'t str,
) -> impl Iterator<Item = (usize, usize)> + 't {
    let words = (!text.is_ascii())
        .then(|| text.split(is_border))
        .into_iter()
        .flatten();
    words
        .filter(move |word| !word.is_ascii() && *word != name && normalized(word) == name)
        .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_python_does() {
        for (written, name) in [
            ("helper", "helper"),
            ("\u{ff48}elper", "helper"),
            ("\u{1d52d}\u{1d52f}int", "print"),
            ("\u{fb01}nd", "find"),
            ("caf\u{e9}", "caf\u{e9}"),
            ("cafe\u{301}", "caf\u{e9}"),
        ] {
            assert_eq!(normalized(written), name, "{written}");
        }
    }

    #[test]
    fn other_spellings_are_found_where_they_stand() {
        let text = "x = \u{ff48}elper(helper, '\u{e9}')\nmy\u{ff48}elper\n";
        let found: Vec<_> = other_spellings(text, "helper").collect();
        assert_eq!(found, [(4, 8)]);
        assert_eq!(written_at(text, 4), "\u{ff48}elper");
        assert_eq!(written_at(text, text.len()), "");
    }
}
