//! Finds tests that failed before the run and that its changes make fail with another error.

use std::collections::BTreeSet;

use crate::check::required::{error_lines, failing_cases};
use crate::run::ending::head;
use crate::state::run_context::RunContext;
use crate::task::stated::ExplicitEdit;
use crate::task::whole_word::has_word;
use starling_core::TestCase;
use starling_index::{frames, is_test_file};
use starling_syntax::FilePath;
use starling_text::ChangeSet;
use starling_workspace::Snapshot;

/// Maximum length of an error in a description, in bytes.
const ERROR_MOST: usize = 100;

/// Describes the tests whose error the run changed, if the new error mentions a name that the task
/// renames or deletes, or is raised in a changed line of the code. Adds them to the tests that the task
/// may be about, so that the end does not call them no part of it.
pub(crate) fn note(run: &RunContext) -> Vec<String> {
    let (before, latest, known) = {
        let tests = run.tests();
        let (Some(before), Some(latest)) = (&tests.before, &tests.latest) else {
            return Vec::new();
        };
        let known = &tests.required.ids | &tests.required.possible;
        (before.clone(), latest.clone(), known)
    };
    if run.proposals().is_nothing_applied() {
        return Vec::new();
    }
    let failed = failing_cases(&before);
    let names = names(run);
    let worlds = {
        let state = run.state();
        (state.without_the_run(), state.world.snapshot.clone())
    };
    let mut told = Vec::new();
    let mut found = BTreeSet::new();
    for case in failing_cases(&latest) {
        let was = failed.iter().find(|one| one.id == case.id);
        let is_other = was.is_some_and(|was| error_lines(was) != error_lines(&case));
        if known.contains(&case.id) || !is_other {
            continue;
        }
        let place = place(&case);
        let old_name = names.iter().find(|name| is_named(&case, name));
        let is_changed = |place: &(FilePath, u32)| is_changed(&worlds, place);
        if old_name.is_some() || place.as_ref().is_some_and(is_changed) {
            told.push(in_words(run, &case, place.as_ref(), old_name));
            found.insert(case.id.clone());
        }
    }
    run.tests().required.possible.extend(found);
    told
}

/// Returns the old and new names of the renames and deletions that the task asks for.
fn names(run: &RunContext) -> Vec<String> {
    let of = |stated: &ExplicitEdit| {
        let new = match stated {
            ExplicitEdit::Renamed { to, .. } => Some(to.clone()),
            ExplicitEdit::Deleted { .. } => None,
        };
        let old = stated.named().base_name().to_owned();
        [Some(old), new].into_iter().flatten()
    };
    run.stated().all.iter().flat_map(of).collect()
}

fn is_named(case: &TestCase, name: &str) -> bool {
    error_lines(case).iter().any(|line| has_word(line, name))
}

/// Returns the file and the line in which the error of a test is raised.
fn place(case: &TestCase) -> Option<(FilePath, u32)> {
    let frame = frames(&case.message).into_iter().next_back()?;
    Some((FilePath::new(frame.path), frame.line))
}

/// Returns whether the run changed a line of the code.
fn is_changed((before, after): &(Snapshot, Snapshot), (file, line): &(FilePath, u32)) -> bool {
    let (Ok(old), Ok(new)) = (before.read(file), after.read(file)) else {
        return false;
    };
    let reverse = ChangeSet::between_lines(&new, &old);
    let is_it = |range: std::ops::Range<usize>| {
        let first = new[..range.start].matches('\n').count();
        let lines = new[range].lines().count();
        (first + 1..=first + lines).contains(&(*line as usize))
    };
    let mut edits = reverse.edits().iter();
    !is_test_file(file) && edits.any(|edit| is_it(edit.range.start..edit.range.end))
}

fn in_words(
    run: &RunContext,
    case: &TestCase,
    place: Option<&(FilePath, u32)>,
    name: Option<&String>,
) -> String {
    let error = error_lines(case).into_iter().next().unwrap_or_default();
    let error = head(error.trim_start_matches("E ").trim(), ERROR_MOST);
    let place = place.map(|(file, line)| format!("{file}:{line}"));
    let at = place.iter().map(|place| format!(" at {place}"));
    let at: String = at.collect();
    let doubts = run.proposals().sets.doubts.clone();
    let is_doubtful = place.is_some_and(|place| doubts.iter().any(|doubt| has_word(doubt, &place)));
    let proof = match name.filter(|_| is_doubtful) {
        Some(name) => format!(", so that this place means `{name}`"),
        None => String::new(),
    };
    format!("{} now fails with {error}{at}{proof}", case.id)
}
