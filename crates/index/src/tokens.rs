//! Counts tokens by a real vocabulary, `cl100k_base`. Other models' vocabularies differ by a few per
//! cent on code.

use tiktoken::CoreBpe;

/// How many tokens a text has. The first call reads the vocabulary, which takes some ten
/// milliseconds.
///
/// No token crosses the end of a line that begins the next one without a line break, so the counts of
/// such lines, line breaks included, add up to that of the whole.
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
    fn counts_as_the_vocabulary_does() {
        assert_eq!(count_tokens(""), 0);
        assert_eq!(count_tokens("def f(self):\n"), 4);
        assert_eq!(count_tokens("hello world"), 2);
        assert!(count_tokens("\u{1f642}") > 0);
    }

    #[test]
    fn lines_add_up() {
        let text =
            "a/b.py:\n class \u{e9}A(B):\n  def f(self, x=\"\u{1f642}\"):\n  def g():  …\nc.py:\n";
        let lines: usize = text.split_inclusive('\n').map(count_tokens).sum();
        assert_eq!(count_tokens(text), lines);
    }
}
