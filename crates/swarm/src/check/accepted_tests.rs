//! Test runs on the workspace with all accepted changes.

use std::collections::BTreeSet;

use crate::check::expected::{self, WorldPair};
use crate::check::selection::Selection;
use crate::check::{gone_cases, steady, test_run};
use crate::event::events::{Event, TestPhase};
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::failing_ids;
use crate::state::checker::Checker;
use crate::state::epoch::Epoch;
use crate::state::refresh;
use crate::state::test_scope::Extent;
use starling_core::{TestOutcome, TestReport};
use starling_workspace::Snapshot;

/// Tests the current workspace, unless that was done since the run or the user last changed it. Two
/// proposals that pass alone may fail together, and such failures must not count against the next
/// proposal.
pub(crate) async fn learn_what_fails(checker: &Checker) {
    let _one_at_a_time = checker.learning.lock().await;
    let is_known = {
        let state = checker.state();
        state.tests.latest.is_some() || state.world.epoch == Epoch::default()
    };
    if !is_known {
        test_accepted(checker).await;
    }
}

/// Tests the current workspace. If all tests would take long, only the files of the nearest tests
/// run.
pub(crate) async fn test_accepted(checker: &Checker) -> Option<TestReport> {
    refresh::refresh(checker).await;
    let (world, epoch, symbols, extent) = {
        let state = checker.state();
        (
            state.world.snapshot.clone(),
            state.world.epoch,
            state.proposals.changed_symbols(),
            state.tests.selection.scope.end,
        )
    };
    let nearest = match extent {
        Extent::Whole => None,
        Extent::Nearest => {
            let report = by_nearest(
                checker,
                &world,
                Selection::at_end(checker, &symbols, &world),
            )
            .await?;
            let says_nothing = report.outcome == TestOutcome::NotRun;
            (!says_nothing || !test_run::did_run_before(checker)).then_some(report)
        }
    };
    let report = match nearest {
        Some(report) => report,
        None => by_all(checker, &world).await,
    };
    note(checker, &report);
    let mut state = checker.state();
    if state.world.epoch == epoch {
        state.tests.failing = failing_ids(&report).into_iter().collect();
        if extent == Extent::Whole {
            state.tests.expected.extend(expected::ran(&report));
        }
        state.tests.latest = Some(report.clone());
    }
    drop(state);
    Some(report)
}

/// Runs the whole test command, and marks the expected tests that did not run.
async fn by_all(checker: &Checker, world: &Snapshot) -> TestReport {
    let disk = checker.disk.newest();
    let report = test_run::run_tests(checker, world, Vec::new()).await;
    let mut report = test_run::failed_if_none_ran(checker, report);
    let (without, let_go) = {
        let state = checker.state();
        (state.without_the_run(), state.tests.let_go.clone())
    };
    let worlds = WorldPair {
        without: &without,
        with: world,
    };
    let expected = checker.tests().expected.clone();
    gone_cases::mark(checker, worlds, &expected, &mut report);
    expected::mark_missing(checker, worlds, &let_go, &mut report).await;
    steady::confirm(
        checker,
        world,
        &known_before(checker),
        &mut report,
        &disk,
        &[],
    )
    .await;
    report
}

/// Returns the tests that failed before the run and the required tests.
pub(crate) fn known_before(checker: &Checker) -> BTreeSet<String> {
    let state = checker.tests();
    state
        .failing_before
        .union(&state.required.ids)
        .cloned()
        .collect()
}

/// Runs the selected tests, or as many of the nearest ones as finish in time, and determines which
/// of the failing tests failed before the run.
pub(crate) async fn by_nearest(
    checker: &Checker,
    world: &Snapshot,
    mut selection: Selection,
) -> Option<TestReport> {
    if selection.len() == 0 {
        return None;
    }
    loop {
        let disk = checker.disk.newest();
        let entries = selection.entries();
        let report = test_run::run_tests(checker, world, entries.clone()).await;
        if report.outcome == TestOutcome::TimedOut && selection.len() > 1 {
            selection.keep_nearest(selection.len() / 4);
            continue;
        }
        let mut report = with_missing(checker, world, &selection, report).await;
        learn_what_failed_before(checker, &report, selection).await;
        let known = known_before(checker);
        steady::confirm(checker, world, &known, &mut report, &disk, &entries).await;
        return Some(report);
    }
}

/// Adds a failure to a report for each selected test that ran before the run and did not run now.
pub(crate) async fn with_missing(
    checker: &Checker,
    world: &Snapshot,
    selection: &Selection,
    mut report: TestReport,
) -> TestReport {
    let entries = selection.entries();
    let mut unseen = expected::unseen(&entries, &report);
    unseen.retain(|entry| !checker.tests().selection.never_run.contains(entry));
    if !unseen.is_empty() {
        let (without, let_go) = {
            let state = checker.state();
            (state.without_the_run(), state.tests.let_go.clone())
        };
        let worlds = WorldPair {
            without: &without,
            with: world,
        };
        let before = test_run::run_tests(checker, &without, entries.clone()).await;
        let never = expected::unseen(&entries, &before);
        checker.tests().selection.never_run.extend(never);
        gone_cases::mark(checker, worlds, &expected::ran(&before), &mut report);
        expected::mark_missing_of_selection(checker, worlds, &let_go, &before, &mut report);
    }
    report
}

/// Runs the newly failing tests on the original workspace to find out which of them failed before
/// the run. Tests that are known to have failed before are left out. If the failures name single
/// tests, only these tests run.
pub(crate) async fn learn_what_failed_before(
    checker: &Checker,
    report: &TestReport,
    selection: Selection,
) {
    let mut new = failing_ids(report);
    {
        let state = checker.tests();
        new.retain(|id| !state.failing_before.contains(id));
    }
    if new.is_empty() {
        return;
    }
    let select = match new.iter().any(|id| id == WHOLE_RUN) {
        true => selection.entries(),
        false => new,
    };
    let original = checker.services.index.snapshot().clone();
    let before = test_run::run_tests(checker, &original, select).await;
    checker.tests().failing_before.extend(failing_ids(&before));
}

pub(crate) fn note(checker: &Checker, report: &TestReport) {
    checker.event(Event::TestsRun {
        phase: TestPhase::Settling,
        proposal: None,
        report: report.clone(),
    });
}
