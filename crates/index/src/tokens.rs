//! Counts tokens with the vocabulary `cl100k_base`. On code, the vocabularies of other models
//! differ by a few per cent.

use tiktoken::CoreBpe;

/// Returns the number of tokens in a text. The first call loads the vocabulary, which takes about
/// ten milliseconds.
///
/// No token spans the end of a line and the start of a next line that does not begin with a line
/// break. Therefore the counts of such lines, including their line breaks, add up to the count of
/// the whole text.
pub fn count_tokens(text: &str) -> usize {
    vocabulary().count(text)
}

fn vocabulary() -> &'static CoreBpe {
    tiktoken::get_encoding("cl100k_base").expect("the vocabulary is built in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_match_the_vocabulary() {
        assert_eq!(count_tokens(""), 0);
        assert_eq!(count_tokens("def f(self):\n"), 4);
        assert_eq!(count_tokens("hello world"), 2);
        assert!(count_tokens("\u{1f642}") > 0);
    }

    #[test]
    fn token_counts_of_lines_add_up_to_the_whole_text() {
        let text =
            "a/b.py:\n class \u{e9}A(B):\n  def f(self, x=\"\u{1f642}\"):\n  def g():  …\nc.py:\n";
        let lines: usize = text.split_inclusive('\n').map(count_tokens).sum();
        assert_eq!(count_tokens(text), lines);
    }
}
