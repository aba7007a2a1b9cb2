//! Settling: when no agent has work, the tests decide whether the run is done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::event::{Cause, Driver, Event, TestPhase};
use super::failing::compared;
use super::gate;
use super::hub::Hub;
use super::last_look::{self, last_look};
use super::proposal::{TestEvidence, WHOLE_RUN, failing_ids, tail};
use super::selection::{Extent, Selection};
use crate::index::{frames, is_test_file};
use crate::ports::{TestCase, TestReport, TestStatus};
use crate::syntax::{FilePath, SymbolPath};

/// How often failing tests wake their owners again.
const ROUNDS: u32 = 2;
/// Of the output of a test command that named no test, in bytes.
const OUTPUT_MOST: usize = 4_000;

/// Waits until all is quiet, tests and diagnoses what came of it, and wakes owners of failures while that
/// may help.
/// Gives the tests that fail at the end: those that the changes broke, and those that failed before.
pub(super) async fn settle(hub: &Arc<Hub>) -> Vec<String> {
    let mut round = 0;
    loop {
        hub.quiet().await;
        let (report, problems) = tokio::join!(latest_report(hub), last_look(hub));
        let failing = report.as_ref().map(failing_ids).unwrap_or_default();
        if round >= ROUNDS || hub.state().exhausted.is_some() {
            return failing;
        }
        let mut woken = last_look::wake_owners(hub, &problems);
        if let Some(report) = report.filter(|_| !failing.is_empty()) {
            woken |= wake_owners(hub, &report);
        }
        if !woken {
            return failing;
        }
        round += 1;
    }
}

/// The tests over everything accepted; those of the last proposal when nothing came after it.
async fn latest_report(hub: &Arc<Hub>) -> Option<TestReport> {
    hub.outside.tests.command()?;
    if hub.state().applied.is_empty() {
        return hub.state().before.clone();
    }
    let latest = hub.state().latest.clone();
    match latest {
        Some(report) => {
            note(hub, &report);
            hub.state().failing = failing_ids(&report).into_iter().collect();
            Some(report)
        }
        None => test_accepted(hub).await,
    }
}

/// Runs the whole command over everything that was accepted, when that was not done since the last
/// change: two proposals that pass alone may fail together, and the next one must not be blamed for it.
pub(super) async fn learn_what_fails(hub: &Arc<Hub>) {
    let _one_at_a_time = hub.learning.lock().await;
    let is_known = {
        let state = hub.state();
        state.latest.is_some() || state.applied.is_empty()
    };
    if !is_known {
        test_accepted(hub).await;
    }
}

/// Tests everything that was accepted; by the files of the nearest tests where all would take long.
async fn test_accepted(hub: &Arc<Hub>) -> Option<TestReport> {
    let (world, applied, extent) = {
        let state = hub.state();
        (state.world.clone(), state.applied.clone(), state.reach.end)
    };
    let select = match extent {
        Extent::Whole => Vec::new(),
        Extent::Nearest => {
            let symbols: Vec<SymbolPath> =
                applied.iter().flat_map(|one| one.symbols.clone()).collect();
            let selection = Selection::at_end(hub, &symbols);
            if selection.len() == 0 {
                return None;
            }
            selection.entries()
        }
    };
    let report = gate::run_tests(hub, &world, select.clone()).await;
    note(hub, &report);
    if extent == Extent::Nearest {
        learn_what_failed_before(hub, &report, select).await;
    }
    let mut state = hub.state();
    if state.applied.len() == applied.len() {
        state.failing = failing_ids(&report).into_iter().collect();
        state.latest = Some(report.clone());
    }
    drop(state);
    Some(report)
}

/// What newly fails is run on the workspace as it was before the run, unless that was done.
async fn learn_what_failed_before(hub: &Arc<Hub>, report: &TestReport, select: Vec<String>) {
    let is_known = {
        let state = hub.state();
        let mut fails = failing_ids(report).into_iter();
        fails.all(|id| state.failing_before.contains(&id))
    };
    if !is_known {
        let original = hub.outside.index.snapshot().clone();
        let before = gate::run_tests(hub, &original, select).await;
        hub.state().failing_before.extend(failing_ids(&before));
    }
}

fn note(hub: &Hub, report: &TestReport) {
    hub.event(Event::TestsRun {
        phase: TestPhase::Settling,
        proposal: None,
        report: report.clone(),
    });
}

/// Wakes the owners of what fails; says whether anybody was woken.
fn wake_owners(hub: &Arc<Hub>, report: &TestReport) -> bool {
    let before: BTreeSet<String> = hub.state().failing_before.clone();
    let TestEvidence::Known { broken, .. } = TestEvidence::compare(&before, report) else {
        return false;
    };
    let mut messages: BTreeMap<SymbolPath, String> = BTreeMap::new();
    let whole_run = failing_ids(report)
        .into_iter()
        .filter(|id| id == WHOLE_RUN)
        .map(|id| TestCase {
            id,
            status: TestStatus::Error,
            message: tail(&report.output, OUTPUT_MOST).to_owned(),
        });
    for case in report.cases.iter().cloned().chain(whole_run) {
        let failed = matches!(case.status, TestStatus::Failed | TestStatus::Error);
        if !failed || (!broken.contains(&case.id) && !hub.state().wants_green) {
            continue;
        }
        for symbol in owners_of(hub, &case) {
            let owner = hub.owner_of(&symbol).unwrap_or(symbol);
            let text = messages.entry(owner).or_default();
            text.push_str(&format!("{}\n{}\n", case.id, case.message));
        }
    }
    let mut woken = false;
    for (owner, message) in messages {
        woken |= hub.wake(&owner, Cause::FailedTests { message }).is_ok();
    }
    woken
}

/// The owners of the innermost frames of a traceback that are not tests; else of the function that the
/// test compares; else the agents that changed something.
fn owners_of(hub: &Arc<Hub>, case: &TestCase) -> Vec<SymbolPath> {
    let lookup = hub.lookup();
    let frames = frames(&case.message);
    let in_code = frames.iter().filter_map(|frame| {
        let tree = lookup.tree(&FilePath::new(frame.path)).ok()?;
        Some(tree.at_line(frame.line).path.clone())
    });
    let mut owners: Vec<SymbolPath> = in_code.filter(|path| !is_test_file(&path.file)).collect();
    owners.dedup();
    if owners.len() > 2 {
        owners = owners.split_off(owners.len() - 2);
    }
    if owners.is_empty() {
        let named = compared(case)
            .map(|name| lookup.index().definitions(&name))
            .unwrap_or_default();
        let outside = named.into_iter().map(|found| found.symbol);
        owners = outside
            .filter(|path| !is_test_file(&path.file))
            .take(1)
            .collect();
    }
    if owners.is_empty() {
        let applied = hub
            .state()
            .applied
            .iter()
            .flat_map(|applied| applied.symbols.clone())
            .collect::<Vec<_>>();
        owners = applied
            .into_iter()
            .filter(|path| !path.is_module())
            .collect();
    }
    if hub.task.driver == Driver::Single {
        owners.truncate(1);
    }
    owners
}
