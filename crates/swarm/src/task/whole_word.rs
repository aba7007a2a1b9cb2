//! Searches texts for whole words.

/// Returns whether the word at a position of a text is not part of a longer word.
pub(crate) fn is_word_at(text: &str, at: usize, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let rest = text.get(at..).and_then(|rest| rest.strip_prefix(word));
    rest.is_some_and(|rest| !rest.starts_with(is_part)) && !text[..at].ends_with(is_part)
}

/// Returns whether a text contains a name as a whole word.
pub fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}
