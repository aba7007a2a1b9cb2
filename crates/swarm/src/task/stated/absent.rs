//! Finds names in a task that do not occur in the project: misspelled names, or names from another
//! project.

use super::named::{is_code, is_identifier};
use super::sentence::{self, SentenceRequest};
use crate::lookup::Lookup;
use crate::task::asked::{Token, names_file, sentences};
use starling_syntax::{FilePath, Language};

/// Verbs that ask to change the name of code after them.
const CHANGE: [&str; 8] = [
    "rename", "delete", "remove", "change", "drop", "fix", "update", "move",
];
/// Words before a name that the task introduces, or that is to become the new name of something.
const MAKE: [&str; 21] = [
    "add",
    "create",
    "introduce",
    "implement",
    "write",
    "define",
    "extract",
    "generate",
    "new",
    "to",
    "into",
    "as",
    "called",
    "named",
    "make",
    "build",
    "provide",
    "support",
    "give",
    "use",
    "with",
];
/// Words that may come between a verb and a name.
const BETWEEN: [&str; 12] = [
    "the",
    "a",
    "our",
    "function",
    "method",
    "class",
    "constant",
    "variable",
    "helper",
    "attribute",
    "parameter",
    "field",
];

/// A name that a task writes as code and that does not occur in the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AbsentName {
    pub written: String,
    /// The symbol with the most similar name.
    nearest: Option<String>,
}

impl AbsentName {
    fn of(lookup: &Lookup, written: &str) -> Option<AbsentName> {
        let written = written.trim_start_matches('#').trim_end_matches("()");
        let is_name = written.split('.').all(is_identifier);
        let is_file = |file: &FilePath| names_file(written, file);
        let may_be_file = Language::of(&FilePath::new(written)) != Language::Plain
            || lookup.files().iter().any(is_file);
        if !is_name || may_be_file {
            return None;
        }
        let stands = |part: &str| {
            lookup.index().mentions(part) || lookup.index().search_most(part, "", 1).total > 0
        };
        let is_there = |part: &str| is_module(lookup, part) || stands(part);
        if written.split('.').all(is_there) {
            return None;
        }
        Some(AbsentName {
            written: written.to_owned(),
            nearest: lookup.index().nearest_name(written),
        })
    }

    /// Describes the name, as in ``there is no `totl`; nearest: `total` ``.
    pub fn in_words(&self) -> String {
        let nearest = self.nearest.iter();
        let nearest: String = nearest.map(|name| format!("; nearest: `{name}`")).collect();
        format!("there is no `{}`{nearest}", self.written)
    }
}

/// Returns whether a task may name code that does not exist. Considers only the text of the task,
/// so it is cheap.
pub(crate) fn may_be_named(task: &str) -> bool {
    sentences(task).iter().any(|sentence| {
        let mut all = sentence.iter().enumerate();
        all.any(|(at, token)| is_in_form(&sentence[..at], token))
    })
}

/// Returns the names that the task asks to rename or delete and that do not exist, if the task asks
/// for nothing else.
pub(crate) fn only(lookup: &Lookup, task: &str) -> Vec<AbsentName> {
    let mut absent = Vec::new();
    for sentence in sentences(&task.replace("->", " to ").replace('→', " to ")) {
        for part in sentence::parts(lookup, &sentence) {
            let Some(wish) = sentence::wish(lookup, &part) else {
                match sentence::says_nothing_else(&part) {
                    true => continue,
                    false => return Vec::new(),
                }
            };
            match of_request(lookup, &wish) {
                Some(one) => absent.push(one),
                None => return Vec::new(),
            }
        }
    }
    absent
}

/// Returns the name that a sentence asks to rename or delete, if it is written as code and does not
/// exist.
pub(super) fn in_sentence(lookup: &Lookup, sentence: &[Token]) -> Option<AbsentName> {
    of_request(lookup, &sentence::wish(lookup, sentence)?)
}

fn of_request(lookup: &Lookup, wish: &SentenceRequest<'_>) -> Option<AbsentName> {
    let is_option = wish.token.with_dashes.starts_with('-');
    let is_named = !is_option && (wish.token.is_quoted || is_code(&wish.token.word));
    AbsentName::of(lookup, &wish.token.word).filter(|_| is_named)
}

/// Returns the names of code in a task that do not exist although the project has a similar name.
pub(crate) fn near_others(lookup: &Lookup, task: &str) -> Vec<AbsentName> {
    let mut absent: Vec<AbsentName> = Vec::new();
    for sentence in sentences(task) {
        for (at, token) in sentence.iter().enumerate() {
            let is_made = sentence[..at].iter().any(|before| is_any(before, &MAKE));
            if is_made || !is_in_form(&sentence[..at], token) {
                continue;
            }
            let found = AbsentName::of(lookup, &token.word).filter(|one| one.nearest.is_some());
            absent.extend(found.filter(|one| !absent.contains(one)));
        }
    }
    absent
}

/// Returns whether a word is written as code: in back-quotes, as `Class.method`, or with an
/// underscore and after a verb for a change.
fn is_in_form(before: &[Token], token: &Token) -> bool {
    let is_member = || {
        let class = token.word.split_once('.').map(|(class, _)| class);
        class.is_some_and(|class| class.starts_with(char::is_uppercase))
    };
    let is_changed = || {
        let mut verb = before.iter().rev().skip_while(|one| is_any(one, &BETWEEN));
        verb.next().is_some_and(|verb| is_any(verb, &CHANGE))
    };
    token.is_quoted || is_member() || token.word.trim_matches('_').contains('_') && is_changed()
}

fn is_any(token: &Token, known: &[&str]) -> bool {
    known.contains(&token.word.to_lowercase().as_str())
}

/// Returns whether a module or a directory of the project has this name.
fn is_module(lookup: &Lookup, name: &str) -> bool {
    let mut files = lookup.files().iter();
    files.any(|file| {
        let mut parts = file.as_str().split('/');
        parts.any(|part| part.strip_suffix(".py").unwrap_or(part) == name)
    })
}
