//! Tests the workspace with and without a change. A failure counts against the change only if the
//! same test passes without the change.

use std::collections::BTreeSet;

use crate::check::documentation::is_documentation;
use crate::check::expected::{self, WorldPair};
use crate::check::moved::Moves;
use crate::check::selection::Selection;
use crate::check::test_run::{
    did_run_before, failed_if_none_ran, no_tests, run_tests, run_tests_within,
};
use crate::check::{accepted_tests, gone_cases, original_tests, required, steady, unloaded};
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::{TestEvidence, failing_ids};
use crate::state::checker::Checker;
use crate::state::epoch::Epoch;
use crate::state::test_scope::{Extent, LONGEST};
use starling_core::{TestOutcome, TestReport};
use starling_syntax::{FilePath, Language, SymbolPath};
use starling_workspace::Snapshot;

/// Maximum number of new failures of a whole command that are run again. More failures than that
/// cannot be a coincidence.
const MOST: usize = 20;

/// Runs the tests on `after`, which is the workspace `before` with a change of `symbols`, and
/// compares the results.
pub(crate) async fn of_change(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    symbols: &[SymbolPath],
) -> (TestEvidence, Option<TestReport>) {
    if checker.services.tests.command().is_none() {
        let reason = no_tests(checker);
        return (TestEvidence::Unknown { reason }, None);
    }
    required::note_change(checker, symbols);
    let checks = checker.tests().selection.scope.checks;
    let (evidence, report) = match checks {
        Extent::Whole => {
            let (evidence, report) = by_all(checker, before, after, symbols).await;
            (evidence, Some(report))
        }
        Extent::Nearest => by_nearest(checker, before, after, symbols).await,
    };
    let evidence = original_tests::judged(checker, after, evidence, report.as_ref()).await;
    (evidence, report)
}

/// Runs the whole command. If tests can be selected, new failures are run again without the change.
async fn by_all(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    symbols: &[SymbolPath],
) -> (TestEvidence, TestReport) {
    let disk = checker.disk.newest();
    let worlds = WorldPair {
        without: before,
        with: after,
    };
    let is_untouched = checker.proposals().is_nothing_applied();
    // The known failures are read before the tests run, because later fixes are not contained in
    // the tested text.
    let mut failing = known(checker);
    let mut report = failed_if_none_ran(checker, run_tests(checker, after, Vec::new()).await);
    let none = BTreeSet::new();
    let expected = checker.tests().expected.clone();
    gone_cases::mark(checker, worlds, &expected, &mut report);
    let missing = expected::mark_missing(checker, worlds, &none, &mut report).await;
    failing.extend(known(checker));
    steady::confirm(checker, after, &failing, &mut report, &disk, &[]).await;
    steady::confirm_fixed(checker, worlds, symbols, &failing, &mut report, &disk).await;
    let new_failures = |failing: &BTreeSet<String>| {
        let ids = failing_ids(&report).into_iter();
        ids.filter(|id| !failing.contains(id)).collect::<Vec<_>>()
    };
    if new_failures(&failing).is_empty() {
        return (TestEvidence::compare(&failing, &report), report);
    }
    accepted_tests::learn_what_fails(checker).await;
    failing.extend(known(checker));
    let mut new = new_failures(&failing);
    new.retain(|id| id != WHOLE_RUN && !missing.contains(id));
    if checker.services.tests.selects() && (1..=MOST).contains(&new.len()) {
        let again = run_tests(checker, before, new.clone()).await;
        let fails = failing_ids(&again);
        new.retain(|id| fails.contains(id));
        if is_untouched {
            checker.tests().failing_before.extend(new.iter().cloned());
        }
        failing.extend(new);
    }
    (TestEvidence::compare(&failing, &report), report)
}

/// Runs the nearest tests. If one of them newly fails, the same tests run without the change.
async fn by_nearest(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    symbols: &[SymbolPath],
) -> (TestEvidence, Option<TestReport>) {
    let worlds = WorldPair {
        without: before,
        with: after,
    };
    loop {
        let disk = checker.disk.newest();
        let (epoch, is_untouched) = {
            let state = checker.state();
            (state.world.epoch, state.proposals.is_nothing_applied())
        };
        let selection = Selection::near(checker, symbols, after);
        if may_miss_tests(checker, &selection, symbols) && all_end_in_time(checker) {
            let (evidence, report) = by_all(checker, before, after, symbols).await;
            return (evidence, Some(report));
        }
        if selection.len() == 0 {
            let count = checker.lookup().index().test_count();
            let reason = match count {
                1 => "the only test was not found near it".to_owned(),
                count => format!("none of the {count} tests was found near it"),
            };
            return (TestEvidence::Unknown { reason }, None);
        }
        let test = async |world, entries| run_tests_within(checker, world, entries, LONGEST).await;
        let moves = Moves::between(checker.services.index.snapshot(), after);
        let moved = moves.with_new_places(selection.entries());
        let entries = moved.clone();
        let mut report = test(after, moved).await;
        let mut failing = known(checker);
        // A failure of the whole command is ignored, because it comes from a run of other tests.
        failing.remove(WHOLE_RUN);
        let is_new = |id: &String| !failing.contains(id);
        let fails =
            report.outcome == TestOutcome::NotRun || failing_ids(&report).iter().any(is_new);
        let mut unseen = expected::unseen(&selection.entries(), &report);
        unseen.retain(|entry| !checker.tests().selection.never_run.contains(entry));
        // If a test does not run because the change disabled it, the other tests of its file still
        // pass. Only the same tests without the change show that it is missing.
        if fails || !unseen.is_empty() || original_tests::differ(checker, before, after) {
            let without = test(before, selection.entries()).await;
            let policy = checker.tests().selection.policy;
            let other = policy.degrade(&report, &without).filter(|_| fails);
            if let Some(policy) = other.filter(|_| selection.len() > 1) {
                checker.tests().selection.policy = policy;
                continue;
            }
            let runs_none = |report: &TestReport| report.outcome == TestOutcome::NotRun;
            if runs_none(&report) && runs_none(&without) && did_run_before(checker) {
                let (evidence, report) = by_all(checker, before, after, symbols).await;
                return (evidence, Some(report));
            }
            if runs_none(&report) && !runs_none(&without) {
                report.outcome = TestOutcome::Failed;
            }
            let never = expected::unseen(&selection.entries(), &without);
            checker.tests().selection.never_run.extend(never);
            gone_cases::mark(checker, worlds, &expected::ran(&without), &mut report);
            let none = BTreeSet::new();
            expected::mark_missing_of_selection(checker, worlds, &none, &without, &mut report);
            failing.extend(known(checker));
            failing.remove(WHOLE_RUN);
            let fails = failing_ids(&without);
            remember(checker, &fails, epoch);
            if is_untouched {
                checker.tests().failing_before.extend(single(&fails));
                required::note_failing(checker, &without);
                unloaded::note(checker, after, &report);
                failing.extend(single(&Vec::from_iter(known(checker))));
            }
            failing.extend(fails);
        }
        steady::confirm(checker, after, &failing, &mut report, &disk, &entries).await;
        steady::confirm_fixed(checker, worlds, symbols, &failing, &mut report, &disk).await;
        let evidence = TestEvidence::compare(&failing, &report);
        let command = checker.services.tests.command().unwrap_or_default();
        let evidence = evidence.by(command, selection.tried(checker));
        return (evidence, Some(report));
    }
}

/// Returns whether the selected tests may miss what a change breaks, so that the whole command runs if
/// it is known to finish in time. Nothing shows which tests read a data file or a template. If the
/// selection contains most tests anyway, the other tests cost little.
fn may_miss_tests(checker: &Checker, selection: &Selection, symbols: &[SymbolPath]) -> bool {
    let is_data = |file: &FilePath| Language::of(file) == Language::Plain;
    let is_read = |symbol: &SymbolPath| is_data(&symbol.file) && !is_documentation(&symbol.file);
    !selection.has_near()
        || selection.test_count() * 2 >= checker.lookup().index().test_count()
        || symbols.iter().any(is_read)
}

/// Returns whether the whole command is known to finish within the time limit of selected tests.
fn all_end_in_time(checker: &Checker) -> bool {
    let state = checker.tests();
    let millis = state
        .before
        .as_ref()
        .map(|report| u128::from(report.millis));
    state.selection.scope.end == Extent::Whole
        && millis.is_some_and(|millis| millis <= LONGEST.as_millis())
}

fn known(checker: &Checker) -> BTreeSet<String> {
    checker.tests().failing.clone()
}

/// Stores the tests that fail without a change, unless the workspace changed.
fn remember(checker: &Checker, fails: &[String], epoch: Epoch) {
    let mut state = checker.state();
    if state.world.epoch == epoch {
        state.tests.failing.extend(single(fails));
    }
}

/// Returns the failures of single tests, without the failure of the whole command.
fn single(fails: &[String]) -> impl Iterator<Item = String> {
    fails.iter().filter(|id| *id != WHOLE_RUN).cloned()
}
