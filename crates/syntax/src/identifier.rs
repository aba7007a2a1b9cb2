//! Compares identifiers as Python does: after Unicode normalization, `\u{ff48}elper`, whose first
//! letter is full-width, is the same identifier as `helper`.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfkc};

/// Returns the normalized form (NFKC) of an identifier, which is the name that Python uses.
pub fn normalized(name: &str) -> Cow<'_, str> {
    match name.is_ascii() || is_nfkc(name) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.nfkc().collect()),
    }
}

/// Returns the composed form (NFC) of a text, in which letters with accents are single characters.
/// Texts from macOS often have the decomposed form.
pub fn composed(text: &str) -> Cow<'_, str> {
    match text.is_ascii() || is_nfc(text) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.nfc().collect()),
    }
}

/// Returns the identifier that begins at a byte offset of a text, without normalization.
pub fn written_at(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    &rest[..rest.find(is_border).unwrap_or(rest.len())]
}

/// Returns whether a character ends an identifier.
fn is_border(c: char) -> bool {
    c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' || c.is_whitespace()
}

/// Returns the occurrences of `name` in another spelling that Python normalizes to `name`, as byte
/// offsets with their lengths.
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
    fn identifiers_are_normalized_as_python_does() {
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
    fn other_spellings_are_found_with_their_offsets() {
        let text = "x = \u{ff48}elper(helper, '\u{e9}')\nmy\u{ff48}elper\n";
        let found: Vec<_> = other_spellings(text, "helper").collect();
        assert_eq!(found, [(4, 8)]);
        assert_eq!(written_at(text, 4), "\u{ff48}elper");
        assert_eq!(written_at(text, text.len()), "");
    }
}
