//! Finds tests that could not run when the tests ran before the change, because their file could not
//! be loaded (its import failed), because such a file stopped the whole command, or because a command
//! like `make test` stopped after its first failing part. They do not count as tests that passed
//! before: the tests of a file that could not be loaded count as failing, and nothing is known of the
//! others.

use std::collections::BTreeSet;

use crate::evidence::ids::{is_in, is_inside};
use crate::evidence::test_evidence::failing_ids;
use crate::state::checker::Checker;
use crate::state::test_state::TestState;
use crate::task::whole_word::has_word;
use starling_core::{TestOutcome, TestReport, TestStatus};
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Maximum number of failures that are run again without a change, so that it is known whether they
/// failed before.
const RUN_AGAIN: usize = 20;

/// Records the tests of a report that did not run before the run. A test of a file that could not
/// be loaded counts as failing before, and is required if the file is. A failing test that another
/// file kept from running counts as failing before as well, if it cannot be run alone.
pub(crate) fn note(checker: &Checker, world: &Snapshot, report: &TestReport) {
    let failing = failing_ids(report);
    let selects = checker.services.tests.selects();
    let mut state = checker.tests();
    let was_stopped = was_stopped(&state) && (!selects || failing.len() > RUN_AGAIN);
    for case in &report.cases {
        if state.failing_before.contains(&case.id) || case.status == TestStatus::Skipped {
            continue;
        }
        let mut known = state.failing_before.iter();
        let file = known.find(|file| is_inside(&case.id, file)).cloned();
        let is_failing = failing.contains(&case.id);
        let is_behind = !selects && is_failing && is_behind_a_failure(&state, &case.id);
        let was_kept = was_stopped && is_failing && did_not_run(&state, &case.id);
        if file.is_none() && !was_kept && !is_behind {
            continue;
        }
        if is_new(checker, world, &case.id) {
            continue;
        }
        state.failing_before.insert(case.id.clone());
        state.failing.insert(case.id.clone());
        if is_failing {
            state.did_not_run.insert(case.id.clone());
        }
        let Some(file) = file else {
            continue;
        };
        let required = &mut state.required;
        for ids in [
            &mut required.ids,
            &mut required.near,
            &mut required.possible,
        ] {
            if ids.contains(&file) {
                ids.insert(case.id.clone());
            }
        }
    }
    let is_failing = |id: &String| failing.contains(id);
    let now: BTreeSet<String> = report.cases.iter().map(|case| case.id.clone()).collect();
    state
        .did_not_run
        .retain(|id| is_failing(id) || !now.contains(id));
}

/// Returns whether files that could not be loaded kept all other tests from running before the run.
fn was_stopped(state: &TestState) -> bool {
    let Some(before) = &state.before else {
        return false;
    };
    let mut cases = before.cases.iter();
    !before.cases.is_empty()
        && cases.all(|case| case.status == TestStatus::Error && case.id.ends_with(".py"))
}

/// Returns whether the command failed before the run and listed the tests that passed, but no test of
/// this test's file or class, so that a failing part of the command may have kept them from running.
fn is_behind_a_failure(state: &TestState, id: &str) -> bool {
    let Some(before) = &state.before else {
        return false;
    };
    let group = |id: &str| {
        let (file, name) = id.split_once("::").unwrap_or(("", id));
        let class = name.rsplit_once('.').map_or("", |(class, _)| class);
        match file.is_empty() {
            true => class.to_owned(),
            false => file.to_owned(),
        }
    };
    let own = group(id);
    let lists_passed = (before.cases.iter()).any(|case| case.status == TestStatus::Passed);
    let is_listed = before.cases.iter().any(|case| group(&case.id) == own);
    before.outcome == TestOutcome::Failed
        && before.source.is_reporter()
        && lists_passed
        && !own.is_empty()
        && !is_listed
        && did_not_run(state, id)
}

fn did_not_run(state: &TestState, id: &str) -> bool {
    let before = state.before.iter().flat_map(|report| &report.cases);
    before.into_iter().all(|case| case.id != id) && !state.expected.contains(id)
}

/// Returns whether the run adds a test: its file has the test's name now, and had not before the
/// run.
fn is_new(checker: &Checker, world: &Snapshot, id: &str) -> bool {
    let id = id.split('[').next().unwrap_or(id);
    let name = id.rsplit(['.', ':', ' ']).next().unwrap_or(id);
    let has_name = |world: &Snapshot, file: &FilePath| {
        let text = world.read(file).ok();
        text.is_some_and(|text| has_word(&text, name))
    };
    let before = checker.services.index.snapshot();
    let mut files = world.files().iter().filter(|file| {
        let is_code = file.as_str().ends_with(".py");
        is_code && is_in(id, file.as_str())
    });
    files.any(|file| has_name(world, file) && !has_name(before, file))
}
