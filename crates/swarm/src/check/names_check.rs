//! Finds names that a change leaves undefined and calls that no longer match their function's
//! parameters, without a language server and independent of the tests: in the changed files, and
//! wherever a removed symbol is used.

use std::sync::Arc;

use crate::check::early_uses::{EarlyUse, early_uses};
use crate::check::left_behind::{LeftBehind, left_behind};
use crate::check::property_uses::{BrokenUse, broken_uses};
use crate::evidence::check_results::DiagnosticEvidence;
use crate::lookup::Lookup;
use crate::state::checker::Checker;
use crate::task::stated::{self, left, twins};
use starling_core::{Problem, ProblemKind, Severity};
use starling_index::{
    BadCall, Dangling, Holder, Index, LostUse, NewAttribute, lost_uses, newly_undefined,
};
use starling_syntax::{FilePath, Language, SymbolTree};
use starling_text::ByteRange;
use starling_workspace::Snapshot;

/// Tool name in problems that Starling itself finds.
pub(crate) const OWN: &str = "starling";
/// Tool name in problems about locations that a change leaves outdated, and that no agent was asked
/// to update. See [`left_behind`].
pub(crate) const LEFT: &str = "starling, left behind";
/// Tool name in problems that count only while another agent may still define the name.
const AWAITED: &str = "starling, as long as others work";
/// Maximum number of undefined names that are reported.
const MOST: usize = 40;

/// Returns the names that are undefined in `after` and not in `before`. `files` are the files in
/// which the two snapshots differ.
pub(crate) fn check(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> DiagnosticEvidence {
    let is_code = |file: &&FilePath| Language::of(file) != Language::Plain;
    let text = |world: &Snapshot, file: &FilePath| world.read(file).ok();
    let is_changed = |file: &&FilePath| text(before, file) != text(after, file);
    let (code, data): (Vec<&FilePath>, Vec<&FilePath>) =
        files.iter().filter(is_changed).partition(is_code);
    let owned = |files: Vec<&FilePath>| files.into_iter().cloned().collect::<Vec<FilePath>>();
    let (code, data) = (owned(code), owned(data));
    let mut new = match code.is_empty() {
        true => Vec::new(),
        false => in_code(checker, before, after, &code),
    };
    new.extend(in_data(checker, before, after, &data));
    evidence_of(new)
}

/// Returns the entries of data files, such as entry points, that use a new name before the name is
/// defined.
fn in_data(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> Vec<Problem> {
    let renames = stated::renamed_names(checker.stated()).next().is_some();
    if files.is_empty() || !renames {
        return Vec::new();
    }
    let index = checker.world().index.after(after.clone());
    let early = early_uses(checker.stated(), before, after, &index, files);
    early.iter().map(of_early_use).collect()
}

/// Returns a problem for each attribute that the change introduces on an object of unknown type and
/// that no class defines yet. These problems count only while other agents may define the
/// attributes, because an object from outside the project may have them.
pub(crate) fn awaited(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> DiagnosticEvidence {
    let known = Arc::clone(&checker.world().index);
    let index = |world: &Snapshot| Index::after(&known, world.clone());
    let is_code = |file: &&FilePath| Language::of(file) != Language::Plain;
    let files: Vec<FilePath> = files.iter().filter(is_code).cloned().collect();
    let introduced = index(after).new_attributes(&index(before), &files);
    evidence_of(introduced.iter().map(|one| of_new(one, AWAITED)).collect())
}

/// Removes the problems about attributes that other agents may define, except attributes that one
/// of these texts defines. Returns whether a problem was removed.
pub(crate) fn without_awaited(found: &mut DiagnosticEvidence, texts: &[Arc<str>]) -> bool {
    let DiagnosticEvidence::Known { new, after, .. } = found else {
        return false;
    };
    let comes = |problem: &Problem| {
        let name = problem.message.split('`').nth(1).unwrap_or_default();
        let defined = [format!("def {name}("), format!("self.{name} = ")];
        let mut texts = texts.iter();
        texts.any(|text| defined.iter().any(|one| text.contains(one)))
    };
    let count = new.len();
    new.retain(|problem| problem.source != AWAITED || comes(problem));
    *after -= (count - new.len()).min(*after);
    count > new.len()
}

/// Returns the problems that Starling itself found, at most [`MOST`].
pub(crate) fn evidence_of(mut new: Vec<Problem>) -> DiagnosticEvidence {
    new.truncate(MOST);
    match new.is_empty() {
        true => DiagnosticEvidence::Absent,
        false => DiagnosticEvidence::Known {
            tool: OWN.to_owned(),
            before: 0,
            after: new.len(),
            new,
            millis: 0,
            unknown: None,
        },
    }
}

fn in_code(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> Vec<Problem> {
    let mut new: Vec<Problem> = files
        .iter()
        .flat_map(|file| undefined(before, after, file))
        .collect();
    let known = Arc::clone(&checker.world().index);
    let index = |world: &Snapshot| Arc::new(Index::after(&known, world.clone()));
    let (earlier, later) = (index(before), index(after));
    let old = Lookup::new(before.clone(), Arc::clone(&earlier));
    let now = Lookup::new(after.clone(), Arc::clone(&later));
    let dangling = later.newly_dangling(&earlier, files);
    new.extend(dangling.into_iter().map(of_dangling));
    let mut more: Vec<Problem> = later
        .lost_attributes(&earlier, files)
        .into_iter()
        .map(of_dangling)
        .collect();
    let halves = stated::renamed_names(checker.stated());
    let halves = halves.flat_map(|(old, new)| later.half_renamed(&earlier, old, new));
    more.extend(halves.map(|one| of_half(&one)));
    more.extend(in_twins(checker, before, after));
    let attributes = left::attributes(checker.stated(), &earlier, &later);
    more.extend(attributes.iter().map(of_half));
    more.extend(in_strings(checker, &old, &now));
    let introduced = later.new_attributes(&earlier, files);
    let introduced = introduced.iter().filter(|one| one.is_of_own);
    more.extend(introduced.map(|one| of_new(one, OWN)));
    let bad = later.newly_bad_calls(&earlier, files);
    more.extend(bad.iter().map(of_bad_call));
    let broken = broken_uses((&old, &now), files);
    more.extend(broken.iter().map(of_broken_use));
    let early = early_uses(checker.stated(), before, after, &later, files);
    more.extend(early.iter().map(of_early_use));
    let left = left_behind(checker.stated(), (&old, &now), files);
    more.extend(left.into_iter().map(of_left));
    for one in more {
        let is_same = |known: &Problem| known.file == one.file && known.line == one.line;
        if !new.iter().any(is_same) {
            new.push(one);
        }
    }
    new
}

/// Returns the overloads, or the accessors of a property, that keep an old name although the change
/// renames other definitions of that name.
fn in_twins(checker: &Checker, before: &Snapshot, after: &Snapshot) -> Vec<Problem> {
    let known = &checker.world().index;
    let lookup =
        |world: &Snapshot| Lookup::new(world.clone(), Arc::new(known.after(world.clone())));
    let (mut renamed, mut left) = (
        stated::renamed_names(checker.stated()).peekable(),
        Vec::new(),
    );
    if renamed.peek().is_none() {
        return Vec::new();
    }
    let (before, after) = (lookup(before), lookup(after));
    for (old, new) in renamed {
        left.extend(twins::left(old, new, &before, &after));
    }
    let message = |name: &str| {
        format!("this definition of `{name}` must be renamed together with the others of its name")
    };
    let problems = left.iter();
    problems
        .map(|one| problem(&one.file, one.line, message(&one.name)))
        .collect()
}

/// Returns the strings that keep an old name although the change replaces it in other strings, if
/// the string can only refer to the renamed symbol.
fn in_strings(checker: &Checker, before: &Lookup, after: &Lookup) -> Vec<Problem> {
    if !checker.stated().rename_words() {
        return Vec::new();
    }
    let left = left::in_strings(checker.stated(), before, after).into_iter();
    let sure = left.filter(|(_, one)| one.is_sure);
    let message =
        |name: &str| format!("`{name}` in this string must be renamed together with the others");
    sure.map(|(name, one)| problem(&one.file, one.line, message(&name)))
        .collect()
}

/// Returns the uses of names (without attributes) that became undefined in one file.
fn undefined(before: &Snapshot, after: &Snapshot, file: &FilePath) -> Vec<Problem> {
    let tree = |world: &Snapshot| {
        let text = world.read(file).unwrap_or_else(|_| "".into());
        SymbolTree::parse(file.clone(), text)
    };
    let (old, new) = (tree(before), tree(after));
    let lost = lost_uses(&old, &new);
    let without_import = |one: &LostUse| {
        format!(
            "the change takes the import of `{}` away, which {} still uses: that use must go first, \
             or together with the import",
            one.name, one.symbol
        )
    };
    let undefined = newly_undefined(&old, &new);
    let undefined = undefined.iter().filter(|one| !lost.contains(one));
    let lost_words = lost.iter().map(|one| (one, without_import(one)));
    let words = undefined.map(|one| (one, format!("nothing defines `{}`", one.name)));
    let problem = |(one, message): (&LostUse, String)| Problem {
        range: Some(one.range),
        ..problem(file, one.line, message)
    };
    lost_words.chain(words).map(problem).collect()
}

fn of_dangling(one: Dangling) -> Problem {
    let message = match &one.of {
        Holder::Module(module) => format!("`{}` is not defined in {module}", one.name),
        Holder::Exporting(module) => format!(
            "`{}` is listed in `__all__`, and {module} does not define it: the entry must follow",
            one.name
        ),
        Holder::Removed(module) => {
            format!("`{}` is still imported, and {module} is gone", one.name)
        }
        Holder::Class(class) => format!("{class} has no `{}`", one.name),
        Holder::Unknown => format!(
            "nothing has a `{}` any more, which {} still uses",
            one.name, one.symbol
        ),
    };
    let start = one.offset as usize;
    Problem {
        range: Some(ByteRange::new(start, start + one.name.len())),
        ..problem(&one.file, one.line, message)
    }
}

fn of_bad_call(one: &BadCall) -> Problem {
    let at = match one.symbol.is_module() {
        true => one.file.to_string(),
        false => one.symbol.to_string(),
    };
    let start = one.offset as usize;
    let message = format!("{} is called {} in {at}", one.callee, one.why);
    Problem {
        range: Some(ByteRange::new(start, start + one.name.len())),
        ..problem(&one.file, one.line, message)
    }
}

fn of_broken_use(one: &BrokenUse) -> Problem {
    problem(&one.file, one.line, one.message.clone())
}

fn of_new(one: &NewAttribute, source: &str) -> Problem {
    let (at, name) = (&one.at, &one.at.name);
    let message =
        format!("nothing has a `{name}` yet: it must be defined first, or together with this use");
    Problem {
        source: source.to_owned(),
        ..problem(&at.file, at.line, message)
    }
}

fn of_half(one: &Dangling) -> Problem {
    let of = match one.symbol.is_module() || one.symbol.name.is_empty() {
        true => one.file.to_string(),
        false => one.symbol.to_string(),
    };
    let message = format!("`{}` of {of} must be renamed together with this", one.name);
    problem(&one.file, one.line, message)
}

fn of_left(one: LeftBehind) -> Problem {
    Problem {
        source: LEFT.to_owned(),
        ..problem(&one.file, one.line, one.message)
    }
}

fn of_early_use(one: &EarlyUse) -> Problem {
    let message = format!(
        "nothing defines `{}` yet: the definition must be renamed first, or together with this use",
        one.name
    );
    problem(&one.file, one.line, message)
}

fn problem(file: &FilePath, line: u32, message: String) -> Problem {
    Problem {
        file: file.clone(),
        line,
        severity: Severity::Error,
        message,
        source: OWN.to_owned(),
        kind: ProblemKind::Name,
        stops: true,
        range: None,
    }
}
