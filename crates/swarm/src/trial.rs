//! Tests a change with and without it. A failure counts against a change only if the same test
//! passes without it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expected::{self, Worlds};
use super::gate::{run_tests, run_tests_within};
use super::hub::{Epoch, Hub};
use super::original_tests;
use super::proposal::{TestEvidence, WHOLE_RUN, failing_ids};
use super::required;
use super::run::no_tests;
use super::selection::{Extent, LONGEST, Selection};
use super::settle;
use super::steady;
use starling_core::{TestOutcome, TestReport};
use starling_syntax::SymbolPath;
use starling_workspace::Snapshot;

/// Maximum number of new failures of a whole command that are run again. More failures are not a
/// coincidence.
const MOST: usize = 20;

/// Tests `after`, which is `before` with a change of `symbols`.
pub(super) async fn of_change(
    hub: &Arc<Hub>,
    before: &Snapshot,
    after: &Snapshot,
    symbols: &[SymbolPath],
) -> (TestEvidence, Option<TestReport>) {
    if hub.outside.tests.command().is_none() {
        let reason = no_tests(hub);
        return (TestEvidence::Unknown { reason }, None);
    }
    required::note_change(hub, symbols);
    let checks = hub.state().reach.checks;
    let (evidence, report) = match checks {
        Extent::Whole => {
            let (evidence, report) = by_all(hub, before, after).await;
            (evidence, Some(report))
        }
        Extent::Nearest => by_nearest(hub, before, after, symbols).await,
    };
    let evidence = original_tests::judged(hub, after, evidence, report.as_ref()).await;
    (evidence, report)
}

/// Runs the whole command. If tests can be selected, new failures are run again without the change.
async fn by_all(hub: &Arc<Hub>, before: &Snapshot, after: &Snapshot) -> (TestEvidence, TestReport) {
    let is_untouched = hub.state().applied.is_empty();
    // Taken before the tests run: they run on a text without later fixes.
    let mut failing = known(hub);
    let mut report = failed_if_none_ran(hub, run_tests(hub, after, Vec::new()).await);
    let missing = expected::mark_missing(
        hub,
        Worlds {
            without: before,
            with: after,
        },
        &BTreeSet::new(),
        &mut report,
    )
    .await;
    failing.extend(known(hub));
    steady::confirm(hub, after, &failing, &mut report).await;
    steady::doubt_fixed(hub, &mut report).await;
    let new_failures = |failing: &BTreeSet<String>| {
        let ids = failing_ids(&report).into_iter();
        ids.filter(|id| !failing.contains(id)).collect::<Vec<_>>()
    };
    if new_failures(&failing).is_empty() {
        return (TestEvidence::compare(&failing, &report), report);
    }
    settle::learn_what_fails(hub).await;
    failing.extend(known(hub));
    let mut new = new_failures(&failing);
    new.retain(|id| id != WHOLE_RUN && !missing.contains(id));
    if hub.outside.tests.selects() && (1..=MOST).contains(&new.len()) {
        let again = run_tests(hub, before, new.clone()).await;
        let fails = failing_ids(&again);
        new.retain(|id| fails.contains(id));
        if is_untouched {
            hub.state().failing_before.extend(new.iter().cloned());
        }
        failing.extend(new);
    }
    (TestEvidence::compare(&failing, &report), report)
}

/// Marks a command as failed if it ran tests before the run and runs none now.
pub(super) fn failed_if_none_ran(hub: &Hub, mut report: TestReport) -> TestReport {
    let state = hub.state();
    let before = state.before.as_ref().map(|before| before.outcome);
    if report.outcome == TestOutcome::NotRun && before.is_some_and(|one| one != TestOutcome::NotRun)
    {
        report.outcome = TestOutcome::Failed;
    }
    report
}

/// Runs the nearest tests. If one of them newly fails, the same tests run without the change.
async fn by_nearest(
    hub: &Arc<Hub>,
    before: &Snapshot,
    after: &Snapshot,
    symbols: &[SymbolPath],
) -> (TestEvidence, Option<TestReport>) {
    loop {
        let (epoch, is_untouched) = {
            let state = hub.state();
            (state.epoch, state.applied.is_empty())
        };
        let selection = Selection::near(hub, symbols);
        if selection.len() == 0 && all_end_in_time(hub) {
            let (evidence, report) = by_all(hub, before, after).await;
            return (evidence, Some(report));
        }
        if selection.len() == 0 {
            let count = hub.lookup().index().test_count();
            let reason = match count {
                1 => "the only test was not found near it".to_owned(),
                count => format!("none of the {count} tests was found near it"),
            };
            return (TestEvidence::Unknown { reason }, None);
        }
        let run = async |world| run_tests_within(hub, world, selection.entries(), LONGEST).await;
        let mut report = run(after).await;
        let mut failing = known(hub);
        // The result of a whole command is valid only for the tests that it ran then.
        failing.remove(WHOLE_RUN);
        let is_new = |id: &String| !failing.contains(id);
        let fails =
            report.outcome == TestOutcome::NotRun || failing_ids(&report).iter().any(is_new);
        let mut unseen = expected::unseen(&selection.entries(), &report);
        unseen.retain(|entry| !hub.state().never_run.contains(entry));
        // A test that a change disables is hidden among the other tests of its file.
        if fails || !unseen.is_empty() || original_tests::differ(hub, before, after) {
            let without = run(before).await;
            let habit = hub.state().habit;
            let other = habit.instead(&report, &without).filter(|_| fails);
            if let Some(habit) = other.filter(|_| selection.len() > 1) {
                hub.state().habit = habit;
                continue;
            }
            if report.outcome == TestOutcome::NotRun && without.outcome != TestOutcome::NotRun {
                report.outcome = TestOutcome::Failed;
            }
            let never = expected::unseen(&selection.entries(), &without);
            hub.state().never_run.extend(never);
            let worlds = Worlds {
                without: before,
                with: after,
            };
            let none = BTreeSet::new();
            expected::mark_missing_of_selection(hub, worlds, &none, &without, &mut report);
            let fails = failing_ids(&without);
            remember(hub, &fails, epoch);
            if is_untouched {
                hub.state().failing_before.extend(single(&fails));
                required::note_failing(hub, &without);
            }
            failing.extend(fails);
        }
        steady::confirm(hub, after, &failing, &mut report).await;
        steady::doubt_fixed(hub, &mut report).await;
        let evidence = TestEvidence::compare(&failing, &report);
        let command = hub.outside.tests.command().unwrap_or_default();
        let evidence = evidence.by(command, selection.tried(hub));
        return (evidence, Some(report));
    }
}

/// Returns whether the whole command is known to finish within the time limit of selected tests.
fn all_end_in_time(hub: &Hub) -> bool {
    let state = hub.state();
    let millis = state
        .before
        .as_ref()
        .map(|report| u128::from(report.millis));
    state.reach.end == Extent::Whole && millis.is_some_and(|millis| millis <= LONGEST.as_millis())
}

fn known(hub: &Hub) -> BTreeSet<String> {
    hub.state().failing.clone()
}

/// Stores the tests that fail without a change, unless the workspace changed.
fn remember(hub: &Hub, fails: &[String], epoch: Epoch) {
    let mut state = hub.state();
    if state.epoch == epoch {
        state.failing.extend(single(fails));
    }
}

/// Returns the failures that name a single test.
fn single(fails: &[String]) -> impl Iterator<Item = String> {
    fails.iter().filter(|id| *id != WHOLE_RUN).cloned()
}
