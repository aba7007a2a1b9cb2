//! Parses the renames and deletions that a task asks for exactly. They are found in the task text
//! with the help of the index, without a model. A run succeeds only if all of them were carried
//! out.

pub(crate) mod absent;
mod count;
mod kept;
pub(crate) mod left;
mod named;
mod sentence;
mod strings;
#[cfg(test)]
mod tests;
pub(crate) mod twins;
mod unmet;

use crate::lookup::Lookup;
use crate::task::asked::{Token, sentences};
use absent::AbsentName;
pub(crate) use kept::KeptStrings;
pub(crate) use named::{Named, Word, is_identifier, plain, stub_of};
use sentence::SentenceRequest;
use starling_syntax::SymbolPath;

/// A rename or a deletion that a task asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExplicitEdit {
    Renamed { from: Named, to: String },
    Deleted { what: Named },
}

/// The renames and deletions that a task asks for so exactly that they may be carried out without a
/// model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExplicitEdits {
    pub all: Vec<ExplicitEdit>,
    /// Whether the task asks for nothing else.
    pub are_whole_task: bool,
    /// The strings that must keep an old name.
    pub kept: KeptStrings,
    /// Whether uses on objects of unknown type may keep an old name, because they are listed for the user.
    pub unsure_uses_stay: bool,
    /// Names that the task asks to rename or delete beside these, and that do not exist.
    pub absent: Vec<AbsentName>,
}

/// Words that ask to keep the old name, or that ask for something else in addition. A task with one
/// of these words asks for more than a rename or deletion.
pub(crate) const KEEPS: [&str; 9] = [
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

/// Returns the renames and deletions that a task asks for. Each name must refer to exactly one
/// entity.
pub(crate) fn of(lookup: &Lookup, task: &str) -> ExplicitEdits {
    let says_more = |word: &str| KEEPS.contains(&word.to_lowercase().as_str());
    let sentences = sentences(&task.replace("->", " to ").replace('→', " to "));
    if sentences
        .iter()
        .flatten()
        .any(|token| says_more(&token.word))
    {
        return ExplicitEdits::default();
    }
    let mut found = ExplicitEdits {
        all: Vec::new(),
        are_whole_task: true,
        kept: KeptStrings::of(task),
        unsure_uses_stay: false,
        absent: Vec::new(),
    };
    for sentence in sentences.iter().filter(|sentence| !sentence.is_empty()) {
        let mut parts = sentence::parts(lookup, sentence);
        let absent = match parts.len() {
            0 | 1 => Vec::new(),
            _ => without_absent(lookup, &mut parts),
        };
        // All parts must be understood: `remove a and b from the list`, for example, deletes no
        // symbol.
        let parts: Option<Vec<_>> = parts.iter().map(|part| of_one(lookup, part)).collect();
        if parts.is_some() {
            found.absent.extend(absent);
        }
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
    for stated in &mut found.all {
        let (ExplicitEdit::Renamed { from: named, .. } | ExplicitEdit::Deleted { what: named }) =
            stated;
        if let Named::Word(word) = named {
            word.is_partial |= kept::keeps_elsewhere(lookup, task, word);
            word.kept_by = kept::keepers(task, word);
        }
    }
    found
}

/// Removes the requests about names that do not exist, unless there is no other. Returns these names.
fn without_absent(lookup: &Lookup, parts: &mut Vec<Vec<Token>>) -> Vec<AbsentName> {
    let absent = parts.iter().map(|part| absent::in_sentence(lookup, part));
    let absent: Vec<Option<AbsentName>> = absent.collect();
    if absent.iter().all(Option::is_some) {
        return Vec::new();
    }
    let mut is_absent = absent.iter().map(Option::is_some);
    parts.retain(|_| !is_absent.next().unwrap_or(false));
    absent.into_iter().flatten().collect()
}

impl ExplicitEdits {
    /// Returns whether the task asks to delete a file.
    pub(crate) fn delete_file(&self, file: &starling_syntax::FilePath) -> bool {
        self.all.iter().any(|stated| match stated {
            ExplicitEdit::Deleted {
                what: Named::File(named),
            } => named == file,
            ExplicitEdit::Deleted { .. } | ExplicitEdit::Renamed { .. } => false,
        })
    }
}

/// Returns the rename or deletion in a sentence about one name, and whether the sentence asks for
/// nothing else.
fn of_one(lookup: &Lookup, sentence: &[Token]) -> Option<(ExplicitEdit, bool)> {
    let wish = sentence::wish(lookup, sentence)?;
    Some((stated(lookup, &wish)?, wish.is_whole))
}

fn stated(lookup: &Lookup, wish: &SentenceRequest<'_>) -> Option<ExplicitEdit> {
    let named = named::find(lookup, wish)?;
    let Some(to) = wish.to else {
        return Some(ExplicitEdit::Deleted { what: named });
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
    is_other.then_some(ExplicitEdit::Renamed { from: named, to })
}

/// Describes the requested renames and deletions that the run did not carry out. `before` is the
/// workspace before the run; the names of the task are resolved in it.
pub(crate) fn unmet(statements: &ExplicitEdits, before: &Lookup, after: &Lookup) -> Vec<String> {
    let stated = statements.all.iter();
    stated
        .filter_map(|one| unmet::unmet(one, statements, before, after))
        .collect()
}

/// Returns the old and new names of the renamed symbols and variables. Renames of other names,
/// which the index does not define, are left out.
pub(crate) fn renamed_names(statements: &ExplicitEdits) -> impl Iterator<Item = (&str, &str)> {
    statements.all.iter().filter_map(|stated| match stated {
        ExplicitEdit::Renamed { from, to } => {
            from.is_defined().then_some((from.base_name(), &**to))
        }
        ExplicitEdit::Deleted { .. } => None,
    })
}

impl ExplicitEdits {
    /// Returns whether one of the renamed names is neither a symbol, a variable nor a file, but a
    /// plain name.
    pub fn rename_words(&self) -> bool {
        let is_word = |one: &ExplicitEdit| {
            matches!(
                one,
                ExplicitEdit::Renamed {
                    from: Named::Word(_),
                    ..
                }
            )
        };
        self.all.iter().any(is_word)
    }

    /// Returns whether the whole task can be carried out with the index, without a model.
    pub fn are_by_rule(&self) -> bool {
        let is_known = |stated: &ExplicitEdit| match stated.named() {
            Named::Symbol(_) | Named::Variable(_) | Named::File(_) => true,
            Named::Word(_) => false,
        };
        self.are_whole_task && self.all.iter().all(is_known)
    }
}

impl ExplicitEdits {
    /// Describes the requested renames and deletions that affect one of the symbols.
    pub fn in_words(&self, symbols: &[SymbolPath]) -> Vec<String> {
        let one = |stated: &ExplicitEdit| {
            let Named::Symbol(path) = stated.named() else {
                return None;
            };
            // A symbol in the stub file of the module counts as well, because a stub has the same
            // names.
            let is_it = |symbol: &&SymbolPath| symbol.name == path.name;
            symbols.iter().find(is_it)?;
            Some(match stated {
                ExplicitEdit::Renamed { to, .. } => format!("{}: renamed to `{to}`", path.name),
                ExplicitEdit::Deleted { .. } => format!("{}: removed", path.name),
            })
        };
        self.all.iter().filter_map(one).collect()
    }
}

impl ExplicitEdit {
    /// Returns the entity that is renamed or deleted.
    pub fn named(&self) -> &Named {
        match self {
            ExplicitEdit::Renamed { from, .. } => from,
            ExplicitEdit::Deleted { what } => what,
        }
    }
}
