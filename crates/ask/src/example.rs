//! Detects answers in which a small model repeats the example of its prompt.

use super::block::{blocks, is_fence};
use super::cite::{Files, claims, marks};

/// Minimum number of words of a sentence to compare.
const WORDS: usize = 4;

/// The sentences of the example in a prompt, split into words.
#[derive(Debug, Clone, Default)]
pub struct PromptExample {
    sentences: Vec<Vec<String>>,
}

impl PromptExample {
    /// Reads the example from a prompt: the text after the line that begins with "Example".
    pub fn of(prompt: &str, files: &impl Files) -> Self {
        let mut lines = prompt.lines();
        let head = lines.find(|line| line.starts_with("Example"));
        let text = head.map(|_| lines.collect::<Vec<_>>().join("\n"));
        let text = text.unwrap_or_default();
        let spans = claims(&text, files).into_iter().map(|claim| claim.span);
        let sentences = spans.map(|span| words(&text[span], files));
        PromptExample {
            sentences: sentences.filter(|words| words.len() >= WORDS).collect(),
        }
    }

    /// Removes the sentences that repeat one of the example, regardless of their citations.
    pub fn taken_out(&self, text: &str, files: &impl Files) -> String {
        if self.sentences.is_empty() {
            return text.to_owned();
        }
        let mut kept = String::new();
        for block in blocks(text) {
            let mut at = 0;
            let claims = if is_fence(block) {
                Vec::new()
            } else {
                claims(block, files)
            };
            for claim in claims {
                let sentence = &block[claim.span.clone()];
                if self.has(&words(sentence, files)) {
                    kept.push_str(&block[at..claim.span.start]);
                    let tail = sentence.len() - sentence.trim_end().len();
                    at = claim.span.end - tail;
                }
            }
            kept.push_str(&block[at..]);
        }
        kept
    }

    fn has(&self, words: &[String]) -> bool {
        let holds = |sentence: &Vec<String>| words.windows(sentence.len()).any(|w| w == sentence);
        self.sentences.iter().any(holds)
    }
}

/// Returns the words of a sentence without its citations.
fn words(sentence: &str, files: &impl Files) -> Vec<String> {
    let mut prose = String::new();
    let mut at = 0;
    for mark in marks(sentence, files) {
        prose.push_str(&sentence[at..mark.span.start]);
        at = mark.span.end;
    }
    prose.push_str(&sentence[at..]);
    let parts = prose.split(|c: char| !c.is_alphanumeric() && c != '_');
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::prompts::{AskSystemSmall, Prompt};

    /// A project without files.
    struct EmptyProject;

    impl Files for EmptyProject {
        fn is_file(&self, _: &str) -> bool {
            false
        }

        fn paths_in(&self, _: &str) -> Vec<std::ops::Range<usize>> {
            Vec::new()
        }
    }

    #[test]
    fn sentences_copied_from_the_example_are_removed() {
        let prompt = "Be short.\n\nExample, of a zoo:\nThe `mane` is combed [zoo/lion.py:3]. `Ape.f` sings a song [zoo/ape.py:7].";
        let example = PromptExample::of(prompt, &EmptyProject);
        for (text, expected) in [
            (
                "The cart pays [a.py:1]. The mane is combed from `[b.py:9]`.",
                "The cart pays [a.py:1].",
            ),
            (
                "`Ape.f` sings a song. It pays [a.py:1].",
                " It pays [a.py:1].",
            ),
            (
                "- One [a.py:1].\n- `Ape.f` sings a song [zoo/ape.py:7].\n",
                "- One [a.py:1].\n\n",
            ),
            (
                "The mane is washed [a.py:1]. Be short.",
                "The mane is washed [a.py:1]. Be short.",
            ),
            (
                "```\nThe mane is combed.\n```",
                "```\nThe mane is combed.\n```",
            ),
        ] {
            assert_eq!(example.taken_out(text, &EmptyProject), expected);
        }
    }

    #[test]
    fn prompt_for_small_models_contains_an_example() {
        let example = PromptExample::of(&AskSystemSmall {}.render(), &EmptyProject);
        assert_eq!(example.sentences.len(), 2, "{example:?}");
    }
}
