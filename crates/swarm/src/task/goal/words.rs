//! Sentences of a task, and patterns that match them.

/// Maximum number of words that `..` matches.
const GAP: usize = 3;
/// Words that start a new request. `..` does not match them.
const CONNECTORS: &[&str] = &[
    "and", "add", "write", "with", "so", "then", "but", "or", "which", "that", "because", "when",
];
/// Words that patterns ignore.
const FILLERS: &[&str] = &[
    "the", "a", "an", "our", "its", "my", "all", "some", "any", "your",
];
/// Polite words before a request.
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
/// Other verbs that change something.
const CHANGE: &[&str] = &[
    "implement",
    "support",
    "rename",
    "refactor",
    "move",
    "extract",
    "repair",
    "mend",
    "debug",
    "resolve",
    "solve",
    "allow",
    "introduce",
    "make",
    "handle",
    "replace",
    "document",
    "describe",
    "explain",
];
/// Verbs whose subject is a document that the task only consults, as in "the README says".
const SAYS: &[&str] = &[
    "say",
    "says",
    "said",
    "promise",
    "promises",
    "promised",
    "tell",
    "tells",
    "told",
    "state",
    "states",
    "stated",
    "claim",
    "claims",
    "describe",
    "describes",
    "specify",
    "specifies",
    "show",
    "shows",
    "guarantee",
    "guarantees",
    "imply",
    "implies",
    "suggest",
    "suggests",
    "advertise",
    "advertises",
    "announce",
    "announces",
    "define",
    "defines",
    "explain",
    "explains",
    "require",
    "requires",
    "demand",
    "demands",
    "ask",
    "asks",
    "want",
    "wants",
    "expect",
    "expects",
    "list",
    "lists",
    "mention",
    "mentions",
    "give",
    "gives",
    "note",
    "notes",
    "document",
    "documents",
    "disagree",
    "disagrees",
    "contradict",
    "contradicts",
    "differ",
    "differs",
];
/// Participles before a document that the task only consults, as in "described in the README".
const TOLD: &[&str] = &[
    "said",
    "promised",
    "told",
    "stated",
    "claimed",
    "described",
    "specified",
    "guaranteed",
    "advertised",
    "announced",
    "defined",
    "explained",
    "required",
    "documented",
];
/// Verbs after a document that show that the task is about the document itself, as in "the README
/// should".
const OF_ITSELF: &[&str] = &[
    "should",
    "must",
    "shall",
    "to",
    "not",
    "never",
    "doesnt",
    "dont",
    "didnt",
    "cannot",
    "still",
    "it",
    "they",
    "currently",
    "wrongly",
    "falsely",
    "incorrectly",
    "nowhere",
    "needs",
];
/// Words that say that a document has a fault.
const FAULTY: &[&str] = &[
    "wrong",
    "incorrect",
    "outdated",
    "stale",
    "old",
    "obsolete",
    "incomplete",
    "unclear",
    "false",
    "confusing",
    "missing",
    "misleading",
    "empty",
    "long",
    "short",
    "broken",
    "out",
    "inaccurate",
    "imprecise",
    "inconsistent",
    "vague",
    "poor",
    "bad",
    "behind",
    "unreadable",
];
/// Kinds of code that a feature may add.
const MEMBER: &[&str] = &[
    "method",
    "function",
    "class",
    "property",
    "attribute",
    "argument",
    "parameter",
    "option",
    "flag",
    "command",
    "subcommand",
];
/// Patterns for a document that the task only consults for the desired behaviour and does not ask
/// to change.
const SOURCES: &[&str] = &[
    "@doc .. @says",
    "@doc is|are right|correct|true|clear",
    "according to .. @doc",
    "as|like ? @told|it|is|was .. @doc",
    "as|per|see|unlike|against ? @doc",
    "contrary|line|accordance|agreement to|with ? @doc",
    "@told in|by|at|from ? @doc",
    "match|matches|matching|follow|follows|following|obey|obeys|fulfil|fulfils|satisfy|satisfies ? @doc",
    "conform|conforms|comply|complies|agree|agrees|contradict|contradicts|violate|violates ? ? @doc",
    "disagree|disagrees|differ|differs ? ? @doc",
];
/// Words that refer to prose. Each word also matches longer words that begin with it.
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
/// File extensions for prose.
const PROSE_ENDINGS: &[&str] = &[".md", ".rst"];
/// File name endings for files without code.
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
/// Words that begin with `test` but do not refer to tests.
const NO_TESTS: &[&str] = &["tested", "tester", "testers", "testing", "testament"];
/// Promises about tests, which are not requests, such as "all tests must still pass".
const PROMISES: &[&str] = &[
    "@test ... still|keep|stay|remain|continue",
    "keep|keeping .. @test .. pass*|green",
    "without breaking|failing",
    "break @test",
];

/// The words of one sentence.
#[derive(Debug)]
pub(super) struct Sentence {
    words: Vec<Word>,
    pub is_question: bool,
}

/// A lower-case word, or the name of a symbol or file.
#[derive(Debug, Clone)]
struct Word {
    text: String,
    /// The name as the task writes it, such as a path, if this is its first word; empty otherwise.
    written: String,
    is_code: bool,
    /// Whether the word names a document that the task only consults, as in "as described in
    /// README.md", and does not ask to change.
    is_source: bool,
}

/// Returns the sentences of a text, without code blocks and without promises that tests still pass.
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
        sentence.mark_sources();
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

/// Splits a part of a sentence into words.
pub(super) fn part(text: &str) -> Sentence {
    let mut words = Vec::new();
    let mut in_code = false;
    for chunk in text.split_whitespace() {
        let ticks = chunk.matches('`').count();
        push_words(&mut words, chunk, in_code || ticks > 0);
        in_code ^= ticks % 2 == 1;
    }
    Sentence {
        words,
        is_question: false,
    }
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
            written: name.to_owned(),
            is_code: true,
            is_source: false,
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
    let mut written = name;
    for part in plain.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if !part.is_empty() && (is_code || !FILLERS.contains(&part)) {
            words.push(Word {
                text: part.to_owned(),
                written: std::mem::take(&mut written).to_owned(),
                is_code,
                is_source: false,
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
    /// Returns whether a pattern matches somewhere in the sentence. A pattern consists of words:
    /// - `a|b` matches one of the words; `a*` matches all words with this prefix. A plain word in a
    ///   pattern never matches a name of code.
    /// - `?` matches at most one word; `..` matches at most [`GAP`] words that are not connectors;
    ///   `...` matches any number of words.
    /// - `^a` matches the first word of the sentence after polite words; `$` matches the end.
    /// - `@test` matches a word or a name that refers to tests; `@newtest` does the same, but of
    ///   the names of code it matches only files.
    /// - `@doc` matches a document or a file without code, and `@prose` matches only prose; neither
    ///   matches a document that the task only consults. `@readme` matches prose outside the code,
    ///   even if the task only consults it.
    /// - `@edit` matches a verb that changes a document; `@change` matches a verb that changes
    ///   anything; `@says`, `@told`, `@faulty` and `@member` match the words of [`SAYS`], [`TOLD`],
    ///   [`FAULTY`] and [`MEMBER`].
    pub(super) fn fits(&self, pattern: &str) -> bool {
        self.find(pattern).is_some()
    }

    /// Returns the index of the first word that a pattern matches.
    fn find(&self, pattern: &str) -> Option<usize> {
        self.find_all(pattern).first().map(|(start, _)| *start)
    }

    /// Returns all matches of a pattern: the index of the first word, and the index after the last
    /// word.
    fn find_all(&self, pattern: &str) -> Vec<(usize, usize)> {
        let (from_start, pattern) = match pattern.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let pattern: Vec<&str> = pattern.split(' ').collect();
        let starts = match from_start {
            true => {
                let start = self.behind_courtesy(0);
                start..start + 1
            }
            false => 0..self.words.len(),
        };
        let fits = |start: usize| Some((start, self.fits_at(start, &pattern)?));
        starts.filter_map(fits).collect()
    }

    /// Returns the index of the first word from `at` on that is not a polite word.
    fn behind_courtesy(&self, at: usize) -> usize {
        let is_courtesy = |word: &&Word| COURTESY.contains(&word.text.as_str());
        let passed = self.words.iter().skip(at).take_while(is_courtesy).count();
        at + passed
    }

    /// Returns the index after the words that a pattern matches at `at`; `None` if it does not
    /// match there.
    fn fits_at(&self, at: usize, pattern: &[&str]) -> Option<usize> {
        let Some((first, rest)) = pattern.split_first() else {
            return Some(at);
        };
        match *first {
            "$" => (at == self.words.len()).then_some(at),
            "?" => self.fits_after_gap(at, 1, rest),
            ".." => self.fits_after_gap(at, GAP, rest),
            "..." => (at..=self.words.len()).find_map(|at| self.fits_at(at, rest)),
            alternatives => {
                let word = self.words.get(at)?;
                let is_it = alternatives.split('|').any(|one| word.is(one));
                is_it.then(|| self.fits_at(at + 1, rest)).flatten()
            }
        }
    }

    /// Skips at most `most` words that are not connectors, and matches the rest of a pattern after
    /// them. Returns the index after the match.
    fn fits_after_gap(&self, at: usize, most: usize, rest: &[&str]) -> Option<usize> {
        let mut gaps = (0..=most).take_while(|passed| {
            let gap = self.words.get(at..at + passed);
            gap.is_some_and(|gap| gap.last().is_none_or(|word| !word.connects()))
        });
        gaps.find_map(|passed| self.fits_at(at + passed, rest))
    }

    /// Marks the documents that the task only consults: "as the README says", "its docstring
    /// promises". A document after a verb of change is not marked, because it is the object of the
    /// change: "fix the docstring, mean says …".
    fn mark_sources(&mut self) {
        let found = SOURCES.iter().flat_map(|source| self.find_all(source));
        let mut marked: Vec<usize> = Vec::new();
        for (start, end) in found {
            let words = &self.words[start..end];
            let is_first = words.first().is_some_and(|word| word.is("@doc"));
            let is_changed = start
                .checked_sub(1)
                .is_some_and(|before| self.words[before].is("@edit"));
            let is_of_itself = |word: &Word| OF_ITSELF.contains(&word.text.as_str());
            if is_first && (is_changed || words.iter().any(is_of_itself)) {
                continue;
            }
            marked.extend((start..end).filter(|at| self.words[*at].is("@doc")));
        }
        for at in marked {
            self.words[at].is_source = true;
        }
    }

    /// Returns whether the sentence names anything in the code.
    pub(super) fn names_code(&self) -> bool {
        let mut words = self.words.iter();
        words.any(|word| word.is_code && !word.is_prose())
    }

    /// Returns the words of the sentence as the task writes them, without articles and punctuation.
    pub(super) fn text(&self) -> String {
        let written = self.words.iter().map(|word| word.written.as_str());
        let written: Vec<&str> = written.filter(|word| !word.is_empty()).collect();
        written.join(" ")
    }

    /// Returns the documents in the sentence, without those that the task only consults.
    pub(super) fn documents(&self) -> Vec<String> {
        let words = self.words.iter().filter(|word| word.is("@doc"));
        words.map(|word| word.text.clone()).collect()
    }

    /// Splits a sentence into its requests. Each request begins with a verb that changes something.
    pub(super) fn clauses(&self) -> Vec<Sentence> {
        const BETWEEN: [&str; 4] = ["and", "then", "but", "plus"];
        let begins = |at: usize| {
            let verb = self.words.get(self.behind_courtesy(at + 1));
            let word = &self.words[at];
            let is_between = !word.is_code && BETWEEN.contains(&word.text.as_str());
            is_between && verb.is_some_and(|verb| verb.is("@change"))
        };
        let mut clauses: Vec<Vec<Word>> = vec![Vec::new()];
        for (at, word) in self.words.iter().enumerate() {
            match clauses.last_mut() {
                Some(clause) if !begins(at) => clause.push(word.clone()),
                Some(_) | None => clauses.push(Vec::new()),
            }
        }
        let clauses = clauses.into_iter().filter(|words| !words.is_empty());
        let is_question = self.is_question;
        clauses
            .map(|words| Sentence { words, is_question })
            .collect()
    }
}

impl Word {
    fn is(&self, wanted: &str) -> bool {
        let text = self.text.as_str();
        match wanted {
            "@test" => self.speaks_of_tests(),
            "@newtest" => !self.is_code && self.speaks_of_tests() && text != "pytest",
            "@doc" => {
                let is_file = is_plain_file(text) || OTHER_DOCUMENTS.contains(&text);
                !self.is_source && (self.is_prose() || is_file)
            }
            "@prose" => !self.is_source && self.is_prose(),
            "@readme" => self.is_prose() && !text.starts_with("docstring"),
            "@edit" => !self.is_code && EDIT.contains(&text),
            "@change" => !self.is_code && (EDIT.contains(&text) || CHANGE.contains(&text)),
            "@says" => !self.is_code && SAYS.contains(&text),
            "@told" => !self.is_code && TOLD.contains(&text),
            "@faulty" => !self.is_code && FAULTY.contains(&text),
            "@member" => !self.is_code && MEMBER.contains(&text),
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

    /// Returns whether the word refers to tests: `tests`, `test_cart`, `TestCase` or `pytest`, but
    /// not `latest` or "tested".
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
