//! The words of a task, and patterns of words.

/// How many words a `..` of a pattern may pass over.
const GAP: usize = 3;
/// Where one wish ends and the next begins: a `..` does not reach over these words.
const CONNECTORS: &[&str] = &[
    "and", "add", "write", "with", "so", "then", "but", "or", "which", "that", "because", "when",
];
/// Words that change nothing for the patterns.
const FILLERS: &[&str] = &[
    "the", "a", "an", "our", "its", "my", "all", "some", "any", "your",
];
/// Words in front of a wish.
const COURTESY: &[&str] = &[
    "please", "pls", "can", "could", "would", "you", "i", "id", "we", "need", "want", "like", "to",
    "lets", "hey", "hi", "hello", "kindly", "also", "then", "now", "just", "maybe", "finally",
];
/// Verbs that change a document.
const EDIT: &[&str] = &[
    "add",
    "update",
    "write",
    "fix",
    "improve",
    "extend",
    "correct",
    "rewrite",
    "remove",
    "delete",
    "translate",
    "adjust",
    "put",
    "include",
    "change",
    "edit",
    "bump",
    "set",
    "mention",
    "note",
    "create",
    "expand",
    "shorten",
    "link",
];
/// Words for prose; each stands for its longer forms as well.
const PROSE: &[&str] = &[
    "readme",
    "changelog",
    "documentation",
    "docstring",
    "contributing",
];
const OTHER_DOCUMENTS: &[&str] = &[
    "docs", "comment", "comments", "license", "guide", "tutorial", "manual",
];
/// Endings of files that hold prose.
const PROSE_ENDINGS: &[&str] = &[".md", ".rst"];
/// Files that hold no code, by the end of their names.
const PLAIN_ENDINGS: &[&str] = &[
    ".md",
    ".rst",
    ".txt",
    ".toml",
    ".cfg",
    ".ini",
    ".yaml",
    ".yml",
    ".json",
    "makefile",
    "dockerfile",
    ".gitignore",
    ".editorconfig",
    "license",
];
/// Words that begin with `test` and name no test.
const NO_TESTS: &[&str] = &["tested", "tester", "testers", "testing", "testament"];
/// Promises about tests, which are no wishes: "all tests must still pass".
const PROMISES: &[&str] = &[
    "@test ... still|keep|stay|remain|continue",
    "keep|keeping .. @test .. pass*|green",
    "without breaking|failing",
    "break @test",
];

/// Words between two ends of sentences.
#[derive(Debug)]
pub(super) struct Sentence {
    words: Vec<Word>,
    pub is_question: bool,
}

/// A word in lower case, or a name of code.
#[derive(Debug)]
struct Word {
    text: String,
    is_code: bool,
}

/// The sentences of a text without its blocks of code, and without promises that the tests still pass.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut found: Vec<Sentence> = Vec::new();
    let mut words: Vec<Word> = Vec::new();
    let mut in_block = false;
    let mut in_code = false;
    let mut end = |words: &mut Vec<Word>, is_question: bool| {
        let mut sentence = Sentence {
            words: std::mem::take(words),
            is_question,
        };
        let promises = PROMISES.iter().filter_map(|one| sentence.find(one));
        if let Some(start) = promises.min() {
            sentence.words.truncate(start);
        }
        if !sentence.words.is_empty() {
            found.push(sentence);
        }
    };
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            in_block = !in_block;
            end(&mut words, false);
            continue;
        }
        if in_block || line.starts_with(">>>") || line.starts_with("File \"") {
            continue;
        }
        let is_item = line.starts_with("- ") || line.starts_with("* ") || line.starts_with('#');
        if line.is_empty() || is_item {
            end(&mut words, false);
        }
        for chunk in line.split_whitespace() {
            let ticks = chunk.matches('`').count();
            push_words(&mut words, chunk, in_code || ticks > 0);
            in_code ^= ticks % 2 == 1;
            let last = chunk.trim_end_matches(['"', '\'', ')', '`']).chars().last();
            let ends = matches!(last, Some('.' | '!' | '?' | ';' | ':'));
            if ends && !in_code {
                end(&mut words, last == Some('?'));
            }
        }
    }
    end(&mut words, false);
    found
}

fn push_words(words: &mut Vec<Word>, chunk: &str, in_ticks: bool) {
    let trimmed =
        chunk.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.' | '('));
    let trimmed = trimmed.trim_end_matches(['.', '(', '-']);
    let name = trimmed.trim_start_matches('(');
    if name.is_empty() {
        return;
    }
    let lower = name.to_lowercase();
    if is_plain_file(&lower) {
        words.push(Word {
            text: lower,
            is_code: true,
        });
        return;
    }
    let has_inner_capital =
        name.chars().skip(1).any(char::is_uppercase) && name.chars().any(char::is_lowercase);
    let is_code = in_ticks
        || chunk.contains('(') && !chunk.starts_with('(')
        || name.contains(['_', '.', '='])
        || name.contains("::")
        || name.starts_with('-')
        || has_inner_capital;
    // "don't" is one word, "test/code" two.
    let plain = lower.replace(['\'', '\u{2019}'], "");
    for part in plain.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if !part.is_empty() && (is_code || !FILLERS.contains(&part)) {
            words.push(Word {
                text: part.to_owned(),
                is_code,
            });
        }
    }
}

fn is_plain_file(lower: &str) -> bool {
    PLAIN_ENDINGS.iter().any(|end| match end.starts_with('.') {
        true => lower.len() > end.len() && lower.ends_with(end) || lower == *end,
        false => lower.rsplit('/').next() == Some(end),
    })
}

impl Sentence {
    /// Whether a pattern fits somewhere in the sentence. A pattern is a row of words:
    /// - `a|b`: one of these; `a*`: all words that begin so. Names of code never fit a plain word.
    /// - `?`: at most one word, `..`: at most [`GAP`] words, none of them a connector; `...`: any number
    ///   of words.
    /// - `^a`: the first word of the sentence after words of courtesy; `$`: its end.
    /// - `@test`: a word or a name that speaks of tests; `@newtest`: the same without names in code
    ///   other than files; `@doc`: a document or a file without code; `@prose`: prose alone; `@edit`: a
    ///   verb that changes a document.
    pub(super) fn fits(&self, pattern: &str) -> bool {
        self.find(pattern).is_some()
    }

    /// The number of the first word that a pattern fits.
    fn find(&self, pattern: &str) -> Option<usize> {
        let (from_start, pattern) = match pattern.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let pattern: Vec<&str> = pattern.split(' ').collect();
        if from_start {
            let is_courtesy = |word: &&Word| COURTESY.contains(&word.text.as_str());
            let start = self.words.iter().take_while(is_courtesy).count();
            return self.fits_at(start, &pattern).then_some(start);
        }
        (0..self.words.len()).find(|at| self.fits_at(*at, &pattern))
    }

    fn fits_at(&self, at: usize, pattern: &[&str]) -> bool {
        let Some((first, rest)) = pattern.split_first() else {
            return true;
        };
        match *first {
            "$" => at == self.words.len(),
            "?" => self.fits_after_gap(at, 1, rest),
            ".." => self.fits_after_gap(at, GAP, rest),
            "..." => (at..=self.words.len()).any(|at| self.fits_at(at, rest)),
            alternatives => {
                let word = self.words.get(at);
                word.is_some_and(|word| alternatives.split('|').any(|one| word.is(one)))
                    && self.fits_at(at + 1, rest)
            }
        }
    }

    /// Whether the rest of a pattern fits behind at most `most` words, none of them a connector.
    fn fits_after_gap(&self, at: usize, most: usize, rest: &[&str]) -> bool {
        let mut gaps = (0..=most).take_while(|passed| {
            let gap = self.words.get(at..at + passed);
            gap.is_some_and(|gap| gap.last().is_none_or(|word| !word.connects()))
        });
        gaps.any(|passed| self.fits_at(at + passed, rest))
    }
}

impl Word {
    fn is(&self, wanted: &str) -> bool {
        let text = self.text.as_str();
        match wanted {
            "@test" => self.speaks_of_tests(),
            "@newtest" => !self.is_code && self.speaks_of_tests() && text != "pytest",
            "@doc" => self.is_prose() || is_plain_file(text) || OTHER_DOCUMENTS.contains(&text),
            "@prose" => self.is_prose(),
            "@edit" => !self.is_code && EDIT.contains(&text),
            _ if self.is_code => false,
            _ => match wanted.strip_suffix('*') {
                Some(start) => text.starts_with(start),
                None => text == wanted,
            },
        }
    }

    fn is_prose(&self) -> bool {
        let text = self.text.as_str();
        PROSE.iter().any(|start| text.starts_with(start))
            || PROSE_ENDINGS.iter().any(|end| text.ends_with(end))
    }

    /// `tests`, `test_cart`, `TestCase` or `pytest`; `latest` is none, and who has "tested" something
    /// says nothing of tests.
    fn speaks_of_tests(&self) -> bool {
        let text = self.text.as_str();
        (text.starts_with("test") && !NO_TESTS.contains(&text))
            || matches!(
                text,
                "pytest" | "unittest" | "unittests" | "doctest" | "doctests"
            )
    }

    fn connects(&self) -> bool {
        !self.is_code && CONNECTORS.contains(&self.text.as_str())
    }
}
