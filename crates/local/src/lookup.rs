//! Guesses the next tokens of an answer from an earlier occurrence of its last ones (prompt lookup).
//!
//! An answer that rewrites a function repeats most of the code in the prompt. The network verifies
//! several guesses in one step, which costs little more than a step with one token.

/// Maximum number of guesses in one step.
pub const MOST_GUESSES: usize = 15;
/// Minimum number of tokens that must have occurred before in the same order.
const SHORTEST_MATCH: usize = 2;
/// Number of tokens that are compared at most.
const LONGEST_MATCH: usize = 12;
/// Minimum length of a match that is used while most guesses are wrong.
const CERTAIN_MATCH: usize = 6;
/// The share of right guesses below which most guesses cost more than they save.
const WORTHWHILE: f32 = 0.2;

/// The state of the guesses during one answer.
#[derive(Debug)]
pub struct PromptLookup {
    /// Number of guesses in the next step.
    count: usize,
    /// Moving average of the share of right guesses.
    right: f32,
    /// Position in the text behind the last right guess's source.
    cursor: usize,
}

/// The place in the text where guesses were copied from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuessSource {
    pub start: usize,
    pub count: usize,
}

impl Default for PromptLookup {
    fn default() -> Self {
        Self {
            count: 7,
            right: 0.5,
            cursor: 0,
        }
    }
}

impl PromptLookup {
    /// Returns where at most `most` guesses for the tokens after `text` are found.
    pub fn guess(&self, text: &[u32], most: usize) -> Option<GuessSource> {
        let (length, start) = self.longest_match(text)?;
        if self.right < WORTHWHILE && length < CERTAIN_MATCH {
            return None;
        }
        let count = self.count.min(most).min(text.len() - start);
        (count > 0).then_some(GuessSource { start, count })
    }

    /// Records how many of the guesses were right.
    pub fn record(&mut self, source: GuessSource, right: usize) {
        self.cursor = source.start + right;
        self.right = 0.75 * self.right + 0.25 * (right as f32 / source.count as f32);
        self.count = match right == source.count {
            true => (2 * self.count + 1).min(MOST_GUESSES),
            false => (right + 1).clamp(3, MOST_GUESSES),
        };
    }

    /// Returns the length of the longest earlier match of the end of the text, and the position
    /// behind it. Among equally long matches, the first one from the cursor on is returned, or else
    /// the last one.
    fn longest_match(&self, text: &[u32]) -> Option<(usize, usize)> {
        let last = *text.last()?;
        let end = text.len();
        let mut best = None;
        for at in (SHORTEST_MATCH..end)
            .rev()
            .filter(|at| text[at - 1] == last)
        {
            let length = (1..=LONGEST_MATCH.min(at))
                .take_while(|back| text[at - back] == text[end - back])
                .count();
            let longest = best.map_or(SHORTEST_MATCH - 1, |(longest, _)| longest);
            if length > longest || length == longest && best.is_some() && at >= self.cursor {
                best = Some((length, at));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the guessed tokens after a text of single letters.
    fn guessed(lookup: &PromptLookup, text: &str) -> String {
        let tokens: Vec<u32> = text.chars().map(u32::from).collect();
        let source = lookup.guess(&tokens, MOST_GUESSES);
        let tokens = source.map_or(&[][..], |one| &tokens[one.start..][..one.count]);
        tokens
            .iter()
            .map(|token| char::from_u32(*token).unwrap())
            .collect()
    }

    #[test]
    fn tokens_after_the_longest_match_are_guessed() {
        let lookup = PromptLookup::default();
        assert_eq!(guessed(&lookup, "abcdefghijkl-bcd"), "efghijk");
        assert_eq!(guessed(&lookup, "xbcd1 abcd2 ycd3 abcd"), "2 ycd3 ");
        assert_eq!(guessed(&lookup, "abc-d c"), "", "one token is no match");
        assert_eq!(guessed(&lookup, ""), "");
        assert_eq!(guessed(&lookup, "aaaa"), "a", "a repetition of itself");
    }

    #[test]
    fn equal_matches_are_taken_in_the_order_of_the_source() {
        let mut lookup = PromptLookup::default();
        let text = "ab1,ab2;ab3.!ab";
        assert_eq!(guessed(&lookup, text), "1,ab2;a");
        let source = GuessSource { start: 2, count: 7 };
        lookup.record(source, 2);
        assert_eq!(guessed(&lookup, text), "2;a");
        let source = GuessSource { start: 9, count: 3 };
        lookup.record(source, 3);
        assert_eq!(guessed(&lookup, text), "3.!ab", "else the last one");
    }

    #[test]
    fn number_of_guesses_follows_their_success() {
        let mut lookup = PromptLookup::default();
        let mut source = GuessSource { start: 0, count: 7 };
        lookup.record(source, 7);
        assert_eq!(lookup.count, MOST_GUESSES);
        lookup.record(source, 4);
        assert_eq!(lookup.count, 5);
        for _ in 0..8 {
            lookup.record(source, 0);
        }
        assert_eq!(lookup.count, 3);
        let text = "abcdefghijkl...cd";
        assert_eq!(guessed(&lookup, text), "", "short matches are often wrong");
        assert_eq!(guessed(&lookup, "abcdefghijkl...cdefgh"), "ijk");
        source.count = 3;
        for _ in 0..4 {
            lookup.record(source, 3);
        }
        assert_eq!(guessed(&lookup, text), "efghijkl...cd");
    }
}
