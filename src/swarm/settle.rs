//! Settling: when no agent has work, the tests decide whether the run is done.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::{Cause, Driver, Event, TestPhase};
use super::gate;
use super::hub::Hub;
use super::proposal::{TestEvidence, failing_ids};
use crate::index::{frames, is_test_file};
use crate::ports::{TestReport, TestStatus};
use crate::syntax::{FilePath, SymbolPath};

/// How often failing tests wake their owners again.
const ROUNDS: u32 = 2;

/// Waits until all is quiet, tests what came of it, and wakes owners of failures while that may help.
/// Gives the tests that fail at the end: those that the changes broke, and those that failed before.
pub(super) async fn settle(hub: &Arc<Hub>) -> Vec<String> {
    let mut round = 0;
    loop {
        hub.quiet().await;
        let Some(report) = latest_report(hub).await else {
            return Vec::new();
        };
        let failing = failing_ids(&report);
        let spent = round >= ROUNDS || hub.state().exhausted.is_some();
        if failing.is_empty() || spent || !wake_owners(hub, &report) {
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
    if let Some(report) = hub.state().latest.clone() {
        return Some(report);
    }
    let world = hub.state().world.clone();
    let report = gate::run_tests(hub, &world, Vec::new()).await;
    hub.event(Event::TestsRun {
        phase: TestPhase::Settling,
        proposal: None,
        report: report.clone(),
    });
    hub.state().latest = Some(report.clone());
    Some(report)
}

/// Wakes the owners of what fails; says whether anybody was woken.
fn wake_owners(hub: &Arc<Hub>, report: &TestReport) -> bool {
    let before = hub.state().before.clone();
    let TestEvidence::Known { broken, .. } = TestEvidence::compare(before.as_ref(), report) else {
        return false;
    };
    let mut messages: BTreeMap<SymbolPath, String> = BTreeMap::new();
    for case in &report.cases {
        let failed = matches!(case.status, TestStatus::Failed | TestStatus::Error);
        if !failed || (!broken.contains(&case.id) && !hub.state().wants_green) {
            continue;
        }
        for owner in owners_of(hub, &case.id, &case.message) {
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

/// The owners of the innermost frames of a traceback that are not tests; else the agents that changed
/// something.
fn owners_of(hub: &Arc<Hub>, id: &str, message: &str) -> Vec<SymbolPath> {
    let lookup = hub.lookup();
    let mut owners: Vec<SymbolPath> = frames(message)
        .into_iter()
        .filter_map(|frame| {
            let tree = lookup.tree(&FilePath::new(frame.path)).ok()?;
            Some(tree.at_line(frame.line).path.clone())
        })
        .filter(|path| !is_test_file(&path.file))
        .collect();
    owners.dedup();
    if owners.len() > 2 {
        owners = owners.split_off(owners.len() - 2);
    }
    if owners.is_empty() {
        owners = called_by_test(hub, id);
    }
    if owners.is_empty() {
        owners = hub
            .state()
            .applied
            .iter()
            .flat_map(|applied| applied.symbols.clone())
            .filter(|path| !path.is_module())
            .collect();
    }
    if hub.task.driver == Driver::Single {
        owners.truncate(1);
    }
    owners
}

/// Symbols that a failing test exercises, found without a model.
fn called_by_test(hub: &Hub, id: &str) -> Vec<SymbolPath> {
    let located = hub.lookup().index().locate(id, 3);
    located
        .into_iter()
        .map(|found| found.symbol)
        .filter(|path| !is_test_file(&path.file))
        .take(1)
        .collect()
}
