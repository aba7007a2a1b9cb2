//! Words that say nothing about code.

/// In alphabetical order.
const STOP_WORDS: &[&str] = &[
    "about", "above", "actual", "actually", "after", "again", "all", "already", "also",
    "although", "always", "am", "an", "and", "another", "any", "anyone", "anything", "are",
    "aren", "as", "at", "be", "because", "been", "before", "behavior", "behaviour", "being",
    "below", "better", "between", "both", "bug", "but", "by", "can", "cannot", "cls", "could",
    "couldn", "did", "didn", "do", "does", "doesn", "doing", "don", "done", "down", "each",
    "either", "else", "en", "etc", "even", "ever", "every", "example", "expect", "expected",
    "expects", "few", "first", "following", "follows", "for", "from", "further", "get", "gets",
    "getting", "give", "given", "gives", "go", "going", "good", "got", "had", "happen", "happens",
    "has", "hasn", "have", "haven", "having", "he", "hello", "help", "her", "here", "hi", "him",
    "his", "how", "however", "http", "https", "if", "in", "instead", "into", "is", "isn", "issue",
    "it", "its", "itself", "just", "know", "last", "let", "like", "ll", "look", "looks", "make",
    "makes", "many", "may", "maybe", "me", "might", "more", "most", "much", "must", "my", "need",
    "needed", "needs", "never", "new", "no", "nor", "not", "nothing", "now", "of", "off", "ok",
    "on", "once", "one", "only", "or", "other", "others", "our", "out", "over", "own", "perhaps",
    "please", "pr", "problem", "py", "python", "really", "reproduce", "same", "say", "see",
    "seem", "seems", "self", "several", "she", "should", "shouldn", "show", "shows", "since",
    "so", "some", "something", "still", "such", "sure", "than", "thank", "thanks", "that", "the",
    "their", "them", "then", "there", "these", "they", "thing", "things", "think", "this",
    "those", "though", "through", "thus", "to", "too", "try", "trying", "two", "under", "until",
    "up", "us", "use", "used", "uses", "using", "ve", "very", "via", "want", "wants", "was",
    "wasn", "way", "we", "well", "were", "weren", "what", "when", "where", "whether", "which",
    "while", "who", "whole", "whose", "why", "will", "with", "within", "without", "won", "work",
    "working", "works", "would", "wouldn", "wrong", "www", "yes", "yet", "you", "your",
];

/// Whether a word, in any case, is a stop word.
pub(super) fn is_stop_word(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    STOP_WORDS.binary_search(&&*word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_and_knows_any_case() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("The") && is_stop_word("would"));
        assert!(!is_stop_word("field") && !is_stop_word(""));
    }
}
