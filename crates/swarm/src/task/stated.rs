//! What a task says in plain words must become of a name: another name, or its end. Read from the words
//! and the index alone; no model is asked. A run is done only when it is so.

mod named;
mod sentence;
#[cfg(test)]
mod tests;
mod unmet;

use std::sync::Arc;

use crate::lookup::Lookup;
use crate::state::run_context::RunContext;
use crate::task::asked::sentences;
pub(crate) use named::{Named, stub_of};
use sentence::Wish;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

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

/// A name that a rename by rule takes out of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rewritten {
    pub file: FilePath,
    pub name: String,
    /// How often the name stands in the file before and after the rename.
    pub before: usize,
    pub after: usize,
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
        let wish = sentence::wish(lookup, sentence);
        let stated = wish.and_then(|wish| Some((stated(lookup, &wish)?, wish.is_whole)));
        match stated {
            Some((stated, is_whole)) => {
                found.all.push(stated);
                found.are_whole_task &= is_whole;
            }
            None => found.are_whole_task &= sentence::says_nothing_else(sentence),
        }
    }
    found.are_whole_task &= !found.all.is_empty();
    found
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

/// What the task states and the run did not do, in words.
pub(crate) fn unmet(run: &RunContext) -> Vec<String> {
    let index = Arc::clone(&run.services.index);
    // In the world before the run, the task's names have their meaning.
    let before = Lookup::new(index.snapshot().clone(), index);
    let after = run.lookup();
    let stated = run.stated().all.iter();
    stated
        .filter_map(|one| unmet::unmet(one, &before, &after))
        .collect()
}

/// The old and new names of what the task renames, as far as the index knows it as a symbol or variable.
pub(crate) fn renamed_names(statements: &Statements) -> impl Iterator<Item = (&str, &str)> {
    statements.all.iter().filter_map(|stated| match stated {
        Stated::Renamed { from, to } => from.is_defined().then_some((from.base_name(), &**to)),
        Stated::Deleted { .. } => None,
    })
}

impl Rewritten {
    /// What becomes of a name when one text of a file takes the place of another; `None` if nothing does.
    pub fn between(file: &FilePath, name: &str, before: &str, after: &str) -> Option<Self> {
        let (before, after) = (named::count_in(before, name), named::count_in(after, name));
        (before > after).then(|| Rewritten {
            file: file.clone(),
            name: name.to_owned(),
            before,
            after,
        })
    }

    fn count(&self, world: &Snapshot) -> usize {
        let text = world.read(&self.file);
        text.map_or(0, |text| named::count_in(&text, &self.name))
    }

    pub fn has_begun(&self, world: &Snapshot) -> bool {
        self.count(world) < self.before
    }

    pub fn is_done(&self, world: &Snapshot) -> bool {
        self.count(world) <= self.after
    }
}

impl Statements {
    /// Whether the index alone can tell how to do all of it, and nothing else is asked for.
    pub fn are_by_rule(&self) -> bool {
        let is_known = |stated: &Stated| match stated.named() {
            Named::Symbol(_) | Named::Variable(_) => true,
            Named::Word(_) | Named::File(_) => false,
        };
        self.are_whole_task && self.all.iter().all(is_known)
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
