//! Searches texts for whole words.

/// Returns whether a character can be part of an identifier.
pub(crate) fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns whether the word at a position of a text is not part of a longer word.
pub(crate) fn is_word_at(text: &str, at: usize, word: &str) -> bool {
    let rest = text.get(at..).and_then(|rest| rest.strip_prefix(word));
    rest.is_some_and(|rest| !rest.starts_with(is_word_part)) && !text[..at].ends_with(is_word_part)
}

/// Returns the byte offsets at which a text contains a name as a whole word.
pub(crate) fn offsets_of_word<'t>(
    text: &'t str,
    name: &'t str,
) -> impl Iterator<Item = usize> + 't {
    let found = text.match_indices(name).filter(|_| !name.is_empty());
    found
        .map(|(at, _)| at)
        .filter(move |at| is_word_at(text, *at, name))
}

/// Returns whether a text contains a name as a whole word.
pub fn has_word(text: &str, name: &str) -> bool {
    offsets_of_word(text, name).next().is_some()
}
