//! What a task says in plain words must become of a name: another name, or its end. Read from the words
//! and the index alone; no model is asked. A run is done only when it is so.

mod count;
pub(crate) mod left;
mod named;
mod sentence;
mod strings;
#[cfg(test)]
mod tests;
mod unmet;

use crate::lookup::Lookup;
use crate::task::asked::{Token, sentences};
pub(crate) use named::{Named, stub_of};
use sentence::Wish;
use starling_syntax::SymbolPath;

/// What is to become of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stated {
    Renamed { from: Named, to: String },
    Deleted { what: Named },
}

/// What a task states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Statements {
    pub all: Vec<Stated>,
    /// Whether the task asks for nothing else.
    pub are_whole_task: bool,
}

/// Words that keep the old name, or ask for something beside.
const KEEPS: [&str; 9] = [
    "alias",
    "aliases",
    "backward",
    "backwards",
    "compatible",
    "compatibility",
    "deprecate",
    "deprecated",
    "shim",
];

/// What a task states of the names that it says, each of which must be the only one.
pub(crate) fn of(lookup: &Lookup, task: &str) -> Statements {
    let says_more = |word: &str| KEEPS.contains(&word.to_lowercase().as_str());
    let sentences = sentences(&task.replace("->", " to ").replace('→', " to "));
    if sentences
        .iter()
        .flatten()
        .any(|token| says_more(&token.word))
    {
        return Statements::default();
    }
    let mut found = Statements {
        all: Vec::new(),
        are_whole_task: true,
    };
    for sentence in sentences.iter().filter(|sentence| !sentence.is_empty()) {
        // Of `remove a and b from the list`, no part states anything.
        let parts = sentence::parts(sentence).into_iter();
        let parts: Option<Vec<_>> = parts.map(|part| of_one(lookup, &part)).collect();
        let all = parts.or_else(|| Some(vec![of_one(lookup, sentence)?]));
        match all {
            Some(all) => {
                found.are_whole_task &= all.iter().all(|(_, is_whole)| *is_whole);
                found.all.extend(all.into_iter().map(|(stated, _)| stated));
            }
            None => found.are_whole_task &= sentence::says_nothing_else(sentence),
        }
    }
    found.are_whole_task &= !found.all.is_empty();
    found
}

/// What a sentence states of one name, and whether it says nothing else.
fn of_one(lookup: &Lookup, sentence: &[Token]) -> Option<(Stated, bool)> {
    let wish = sentence::wish(lookup, sentence)?;
    Some((stated(lookup, &wish)?, wish.is_whole))
}

fn stated(lookup: &Lookup, wish: &Wish<'_>) -> Option<Stated> {
    let named = named::find(lookup, wish)?;
    let Some(to) = wish.to else {
        return Some(Stated::Deleted { what: named });
    };
    let to = match &named {
        Named::File(_) => to.word.as_str(),
        Named::Word(word) if word.name.starts_with('-') => to.with_dashes.as_str(),
        Named::Symbol(_) | Named::Variable(_) | Named::Word(_) => {
            let to = to.word.trim_end_matches("()");
            to.rsplit(['.', ':']).next().unwrap_or(to)
        }
    };
    let fits = match &named {
        Named::File(_) => !to.is_empty(),
        Named::Symbol(_) | Named::Variable(_) => named::is_identifier(to),
        Named::Word(_) => to.chars().all(|c| named::is_part(c) || c == '-'),
    };
    let is_other = fits && to != named.base_name();
    let to = to.to_owned();
    is_other.then_some(Stated::Renamed { from: named, to })
}

/// What the task states and the run did not do, in words. In the workspace before the run, the
/// task's names have their meaning.
pub(crate) fn unmet(statements: &Statements, before: &Lookup, after: &Lookup) -> Vec<String> {
    let stated = statements.all.iter();
    stated
        .filter_map(|one| unmet::unmet(one, before, after))
        .collect()
}

/// The old and new names of what the task renames, as far as the index knows it as a symbol or variable.
pub(crate) fn renamed_names(statements: &Statements) -> impl Iterator<Item = (&str, &str)> {
    statements.all.iter().filter_map(|stated| match stated {
        Stated::Renamed { from, to } => from.is_defined().then_some((from.base_name(), &**to)),
        Stated::Deleted { .. } => None,
    })
}

impl Statements {
    /// Whether something is renamed that is no symbol and no file.
    pub fn rename_words(&self) -> bool {
        let is_word = |one: &Stated| {
            matches!(
                one,
                Stated::Renamed {
                    from: Named::Word(_),
                    ..
                }
            )
        };
        self.all.iter().any(is_word)
    }

    /// Whether the index alone can tell how to do all of it, and nothing else is asked for.
    pub fn are_by_rule(&self) -> bool {
        let is_known = |stated: &Stated| match stated.named() {
            Named::Symbol(_) | Named::Variable(_) => true,
            Named::Word(_) | Named::File(_) => false,
        };
        self.are_whole_task && self.all.iter().all(is_known)
    }
}

impl Statements {
    /// Describes what becomes of those of these symbols that the task names.
    pub fn in_words(&self, symbols: &[SymbolPath]) -> Vec<String> {
        let one = |stated: &Stated| {
            let Named::Symbol(path) = stated.named() else {
                return None;
            };
            // The stub of a module has the same names.
            let is_it = |symbol: &&SymbolPath| symbol.name == path.name;
            symbols.iter().find(is_it)?;
            Some(match stated {
                Stated::Renamed { to, .. } => format!("{}: renamed to `{to}`", path.name),
                Stated::Deleted { .. } => format!("{}: removed", path.name),
            })
        };
        self.all.iter().filter_map(one).collect()
    }
}

impl Stated {
    /// What it is called before.
    pub fn named(&self) -> &Named {
        match self {
            Stated::Renamed { from, .. } => from,
            Stated::Deleted { what } => what,
        }
    }
}
