//! Finds what must keep the old name because the task says so: strings (`the alert keeps its name
//! "frost"`, "but not in strings", "the strings stay"), and code ("keep the attribute on the base
//! class").

use super::named::{RequestScope, Word};
use super::sentence::EntityKind;
use crate::lookup::Lookup;
use crate::task::whole_word::has_word;
use starling_syntax::{FilePath, SymbolPath};

/// Words that say that something does not change.
const KEEP: [&str; 20] = [
    "keep",
    "keeps",
    "keeping",
    "kept",
    "stay",
    "stays",
    "staying",
    "remain",
    "remains",
    "remaining",
    "leave",
    "leaves",
    "leaving",
    "left",
    "unchanged",
    "untouched",
    "except",
    "ignore",
    "ignoring",
    "skip",
];
/// Words for a change. A clause with one of these words is about what changes.
const CHANGE: [&str; 10] = [
    "rename", "renamed", "delete", "deleted", "remove", "removed", "change", "changed", "replace",
    "update",
];
const NOT: [&str; 6] = ["not", "don't", "dont", "never", "no", "without"];
const STRINGS: [&str; 4] = ["string", "strings", "literal", "literals"];
const QUOTES: [(char, char); 4] = [('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’')];

/// The strings that a task says to leave as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptStrings {
    /// Whether all strings must keep the old name.
    pub all: bool,
    /// Contents of the strings that must keep the old name, without quotes.
    named: Vec<String>,
}

impl KeptStrings {
    /// All strings keep the old name.
    pub fn all() -> Self {
        KeptStrings {
            all: true,
            named: Vec::new(),
        }
    }

    pub fn of(task: &str) -> Self {
        let mut kept = KeptStrings::default();
        for clause in clauses(task) {
            let words: Vec<String> = clause.split_whitespace().map(bare).collect();
            let named = quoted(clause);
            match named.is_empty() {
                true => kept.all |= keeps_strings(&words),
                false if has(&words, &KEEP) && !has(&words, &NOT) && !has(&words, &CHANGE) => {
                    kept.named.extend(named);
                }
                false => {}
            }
        }
        kept
    }

    /// Returns whether, in a line of code, the name occurs only in strings that must keep the old name. The
    /// line must contain the name in a string.
    pub fn hold(&self, lookup: &Lookup, (file, line): (&FilePath, u32), name: &str) -> bool {
        if self.all {
            return true;
        }
        if !self.names(name) {
            return false;
        }
        let text = lookup.index().snapshot().read(file);
        let at = (line as usize).saturating_sub(1);
        let text = text
            .ok()
            .and_then(|text| text.lines().nth(at).map(str::to_owned));
        text.is_some_and(|text| self.hold_in_line(&text, name))
    }

    /// Returns whether, in a line of any text, the name occurs only in quoted strings that must keep the old
    /// name.
    pub fn hold_in_line(&self, line: &str, name: &str) -> bool {
        let is_kept = |string: &String| match self.all {
            true => has_word(string, name),
            false => string == name && self.names(name),
        };
        let strings: Vec<String> = quoted(line).into_iter().filter(is_kept).collect();
        let mut rest = line.to_owned();
        for string in &strings {
            for (open, close) in QUOTES {
                rest = rest.replace(&format!("{open}{string}{close}"), "");
            }
        }
        !strings.is_empty() && !has_word(&rest, name)
    }

    fn names(&self, name: &str) -> bool {
        self.named.iter().any(|one| one == name)
    }
}

/// Returns whether a task says that a name stays in code to which the request is not restricted
/// anyway: `remove f from the shops; keep it in Base`, `remove f except in base.py`.
pub(super) fn keeps_elsewhere(lookup: &Lookup, task: &str, word: &Word) -> bool {
    let is_inside = |clause: &str| {
        let words: Vec<&str> = clause
            .split_whitespace()
            .map(|word| word.trim_matches(|c: char| !(c.is_alphanumeric() || "_/".contains(c))))
            .collect();
        let places = RequestScope::of(lookup, &words);
        let modules = places.files.into_iter().map(SymbolPath::module);
        let places: Vec<SymbolPath> = places.symbols.into_iter().chain(modules).collect();
        let holds = |within: &SymbolPath| match places.is_empty() {
            true => within.is_module(),
            false => places.iter().any(|place| within.encloses(place)),
        };
        word.within.is_empty() || word.within.iter().any(holds)
    };
    let mut keeping = clauses(task).filter(|clause| keeps(clause, word));
    keeping.any(is_inside)
}

/// Returns the words of the clauses that say that a name stays, in lower case: they name the code that
/// keeps it.
pub(super) fn keepers(task: &str, word: &Word) -> Vec<String> {
    let keeping = clauses(task).filter(|clause| has_word(clause, &word.name));
    let keeping = keeping.filter(|clause| keeps(clause, word));
    let words = keeping.flat_map(|clause| clause.split_whitespace().map(bare));
    let is_other = |one: &String| !one.is_empty() && *one != word.name.to_lowercase();
    words.filter(is_other).collect()
}

/// Returns whether a clause says that a name stays.
fn keeps(clause: &str, word: &Word) -> bool {
    const EXCEPT: [&str; 4] = ["except", "excepting", "excluding", "besides"];
    let bare_words: Vec<String> = clause.split_whitespace().map(bare).collect();
    let has_name = has_word(clause, &word.name);
    if !quoted(clause).is_empty() {
        return false;
    }
    let is_exception = has_name && has(&bare_words, &EXCEPT);
    let is_kept = has(&bare_words, &KEEP)
        && !has(&bare_words, &NOT)
        && !has(&bare_words, &CHANGE)
        && (has_name || refers_to(&bare_words, word));
    is_exception || is_kept
}

/// Returns whether a clause that says to keep something refers to a name without naming it: `keep
/// the attribute in Base`, `keep it in Base`, `Base keeps it`.
fn refers_to(words: &[String], word: &Word) -> bool {
    const IT: [&str; 5] = ["it", "them", "one", "own", "theirs"];
    const IN: [&str; 7] = ["in", "on", "of", "at", "for", "under", "within"];
    const SUBJECT_KEEPS: [&str; 3] = ["keeps", "leaves", "retains"];
    let is_kind = |one: &String| match EntityKind::of(one) {
        Some(EntityKind::Member) => true,
        Some(EntityKind::Variable | EntityKind::Parameter | EntityKind::Text) => !word.is_member,
        Some(EntityKind::Code | EntityKind::File) | None => false,
    };
    words.iter().any(is_kind) || has(words, &IT) && (has(words, &IN) || has(words, &SUBJECT_KEEPS))
}

fn has(words: &[String], known: &[&str]) -> bool {
    words.iter().any(|word| known.contains(&word.as_str()))
}

/// Returns whether a clause says that strings stay: "not in strings", "leave the strings", "the
/// strings remain", "strings are not renamed".
fn keeps_strings(words: &[String]) -> bool {
    /// Number of words before the word "strings" in which a word such as "not" or "leave" refers to
    /// the strings.
    const NEAR: usize = 5;
    let is_strings = |word: &String| STRINGS.contains(&word.as_str());
    let Some(at) = words.iter().position(is_strings) else {
        return false;
    };
    let (before, after) = (&words[at.saturating_sub(NEAR)..at], &words[at + 1..]);
    has(before, &KEEP) != has(before, &NOT)
        || has(after, &KEEP) && !has(after, &NOT)
        || has(after, &CHANGE) && has(after, &NOT)
}

/// Splits a text at punctuation and at words that begin a clause.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    const JOINTS: [&str; 5] = [" and ", " but ", " while ", " though ", " although "];
    let ends = |at: usize, c: char| {
        let is_end = matches!(c, ',' | ';' | ':' | '.' | '!' | '?' | '(' | ')');
        let after = text[at + c.len_utf8()..].chars().next();
        let is_before_space =
            after.is_none_or(|next| next.is_whitespace() || "\"')”".contains(next));
        matches!(c, '\n' | '(') || is_end && is_before_space
    };
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, c) in text.char_indices() {
        if ends(at, c) {
            parts.push(&text[from..at]);
            from = at + c.len_utf8();
        } else if let Some(joint) = JOINTS.iter().find(|joint| text[at..].starts_with(**joint))
            && at >= from
        {
            parts.push(&text[from..at]);
            // The joining word is skipped, but not the space after it.
            from = at + joint.len() - 1;
        }
    }
    parts.push(&text[from..]);
    parts.into_iter()
}

fn bare(word: &str) -> String {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.to_lowercase()
}

/// Returns the quoted texts in a clause.
fn quoted(clause: &str) -> Vec<String> {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let mut found = Vec::new();
    let mut rest = clause;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let close = QUOTES.iter().find(|(open, _)| *open == first);
        let close = close.filter(|_| is_edge(before)).map(|(_, close)| *close);
        let end = close.and_then(|close| {
            let mut ends = after.match_indices(close);
            ends.find(|(at, _)| is_edge(after[at + close.len_utf8()..].chars().next()))
        });
        (before, rest) = match end {
            Some((at, close)) => {
                found.push(after[..at].to_owned());
                (close.chars().next(), &after[at + close.len()..])
            }
            None => (Some(first), after),
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(task: &str) -> (bool, Vec<String>) {
        let kept = KeptStrings::of(task);
        (kept.all, kept.named)
    }

    #[test]
    fn strings_that_a_task_says_to_keep_are_found() {
        for task in [
            "Rename handlers.frost to freeze, also in weather.ini; the alert keeps its name \"frost\"",
            "Rename frost to freeze but leave 'frost' in the alerts",
            "Rename frost to freeze. The key “frost” must remain.",
            "Rename frost to freeze, keep the string \"frost\" as it is",
            "Rename frost to freeze (the file keeps 'frost')",
        ] {
            assert_eq!(kept(task), (false, vec!["frost".to_owned()]), "{task}");
        }
        for task in [
            "Rename frost to freeze; strings stay",
            "Rename frost to freeze, but not in strings",
            "Rename frost to freeze and leave the strings alone",
            "Rename frost to freeze everywhere except in string literals",
            "Rename frost to freeze, but do not change strings",
            "Rename frost to freeze. Strings are not to be renamed",
        ] {
            assert_eq!(kept(task), (true, Vec::new()), "{task}");
        }
        for task in [
            "Rename frost to freeze",
            "Rename \"frost\" to \"freeze\" and keep the tests green",
            "Rename \"frost\" to \"freeze\", keeping the behaviour",
            "Rename frost to freeze, also in strings",
            "Rename frost to freeze, do not leave \"frost\" anywhere",
            "Rename frost to freeze, and don't leave it in strings",
            "Rename frost to freeze, it's in handlers' strings too",
            "Keep `frost` working",
        ] {
            assert_eq!(kept(task), (false, Vec::new()), "{task}");
        }
    }

    #[test]
    fn line_is_kept_only_if_all_occurrences_are_quoted() {
        let named = KeptStrings::of("Rename frost to freeze, the key \"frost\" stays");
        for kept in [&KeptStrings::all(), &named] {
            for line in ["alert = \"frost\"", "xfrost = 'frost' + \"frost\""] {
                assert!(kept.hold_in_line(line, "frost"), "{kept:?}: {line}");
            }
            for line in ["-- see weather.frost", "frost = \"frost\"", "call = frost"] {
                assert!(!kept.hold_in_line(line, "frost"), "{kept:?}: {line}");
            }
        }
        let within = "call = \"weather.frost\"";
        assert!(KeptStrings::all().hold_in_line(within, "frost"));
        assert!(!named.hold_in_line(within, "frost"));
        assert!(!KeptStrings::default().hold_in_line("alert = \"frost\"", "frost"));
    }
}
