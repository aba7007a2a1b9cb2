//! Finds names that a change leaves undefined, without a language server and independent of the
//! tests: in the changed files, and wherever a removed symbol is used.

use std::sync::Arc;

use crate::check::early_uses::{EarlyUse, early_uses};
use crate::evidence::check_results::DiagnosticEvidence;
use crate::state::checker::Checker;
use starling_core::{Problem, ProblemKind, Severity};
use starling_index::{Dangling, Holder, Index, LostUse, lost_uses, newly_undefined};
use starling_syntax::{FilePath, Language, SymbolTree};
use starling_text::ByteRange;
use starling_workspace::Snapshot;

/// Tool name used instead of a language server's.
const OWN: &str = "starling";
/// Maximum number of undefined names that are reported.
const MOST: usize = 40;

/// Returns the names that are undefined in `after` and not in `before`. The two differ in `files`.
pub(crate) fn check(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> DiagnosticEvidence {
    let is_code = |file: &&FilePath| Language::of(file) != Language::Plain;
    let text = |world: &Snapshot, file: &FilePath| world.read(file).ok();
    let is_changed = |file: &&FilePath| text(before, file) != text(after, file);
    let files: Vec<FilePath> = files
        .iter()
        .filter(is_code)
        .filter(is_changed)
        .cloned()
        .collect();
    if files.is_empty() {
        return DiagnosticEvidence::Absent;
    }
    let mut new: Vec<Problem> = files
        .iter()
        .flat_map(|file| undefined(before, after, file))
        .collect();
    let known = Arc::clone(&checker.world().index);
    let index = |world: &Snapshot| Index::after(&known, world.clone());
    let indexed = index(after);
    let early = early_uses(checker.stated(), before, after, &indexed, &files);
    let dangling = indexed.newly_dangling(&index(before), &files);
    new.extend(dangling.into_iter().map(of_dangling));
    let is_known = |one: &EarlyUse, known: &[Problem]| {
        let mut known = known.iter();
        known.any(|problem| problem.file == one.file && problem.line == one.line)
    };
    for one in early {
        if !is_known(&one, &new) {
            new.push(of_early_use(&one));
        }
    }
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

/// Returns the plain names of one file that have become undefined.
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
        Holder::Class(class) => format!("{class} has no `{}`", one.name),
    };
    let start = one.offset as usize;
    Problem {
        range: Some(ByteRange::new(start, start + one.name.len())),
        ..problem(&one.file, one.line, message)
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
