//! When no agent is at work, decides whether the run is finished: runs the tests, and gives the
//! owners of failing code more work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::check::accepted_tests::{note, test_accepted};
use crate::check::required::set_aside;
use crate::check::steady;
use crate::context::failing::compared;
use crate::event::actor::ActorId;
use crate::event::events::Cause;
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::ids::tail;
use crate::evidence::test_evidence::{TestEvidence, failing_ids};
use crate::run::final_check::{self, final_check};
use crate::run::finish::changed;
use crate::run::suspects;
use crate::state::epoch::Epoch;
use crate::state::refresh;
use crate::state::run_context::RunContext;
use starling_core::{Driver, TestCase, TestReport, TestStatus};
use starling_index::{frames, is_test_file};
use starling_syntax::{FilePath, SymbolPath};

/// Maximum number of rounds in which the owners of failing code get more work.
const ROUNDS: u32 = 2;
/// Maximum size in bytes of the quoted output of a test command that named no test.
const OUTPUT_MOST: usize = 4_000;

/// Repeats until no work is left: waits until no agent is at work, runs the tests and diagnostics,
/// and wakes the owners of failing code (gives their agents work) if that may help. No owner is
/// woken twice for the same failures in an unchanged workspace. If the user sends a message to an
/// agent meanwhile, this also waits for the work of that agent.
pub(crate) async fn settle(run: &Arc<RunContext>) -> RemainingFailures {
    let mut round = 0;
    let mut asked = WokenOwners::default();
    loop {
        run.quiet().await;
        refresh::refresh(run).await;
        let (report, problems) = tokio::join!(latest_report(run), final_check(run));
        let failing = match &report {
            Some(report) => steady::failing_at_end(run, report),
            None => known_failures(run),
        };
        set_aside::set_aside(run, &changed(run));
        run.tests().at_end.problems = final_check::all(&problems);
        let left = RemainingFailures {
            failing,
            problems: final_check::news(run, &problems),
        };
        if round >= ROUNDS || run.agents().exhausted.is_some() {
            match run.end_unless_at_work() {
                true => return left,
                false => continue,
            }
        }
        let mut woken = final_check::wake_owners(run, &problems);
        if !woken && suspects::wake_next(run) {
            continue;
        }
        if let Some(report) = report.filter(|_| !left.failing.is_empty()) {
            asked.about(run.world().epoch);
            asked.owners.extend(run.gave_up_on_this());
            woken |= wake_owners(run, &report, &mut asked);
        }
        if woken {
            round += 1;
        } else if run.end_unless_at_work() {
            return left;
        }
    }
}

/// Returns the required tests that failed when they last ran.
fn known_failures(run: &RunContext) -> Vec<String> {
    let state = run.tests();
    state
        .required
        .ids
        .intersection(&state.failing)
        .cloned()
        .collect()
}

/// The failures that remain when no agent has work left.
pub(crate) struct RemainingFailures {
    /// Failing tests: those that the changes broke, and those that failed before.
    pub failing: Vec<String>,
    /// Problems that the changes introduced and nobody accepted.
    pub problems: Vec<String>,
}

/// The owners that were woken (given work) for failing tests since the workspace last changed.
#[derive(Default)]
struct WokenOwners {
    epoch: Epoch,
    owners: BTreeSet<SymbolPath>,
}

impl WokenOwners {
    /// Clears the list if the workspace changed since the last call.
    fn about(&mut self, epoch: Epoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.owners.clear();
        }
    }
}

/// Returns the test report for the current workspace. If neither the workspace nor the files on disk
/// changed since the tests of the last proposal ran, returns their report.
async fn latest_report(run: &Arc<RunContext>) -> Option<TestReport> {
    run.services.tests.command()?;
    if run.proposals().is_nothing_applied() {
        return run.tests().before.clone();
    }
    let world = run.world().snapshot.clone();
    let is_outdated = run.disk.changed_since_tested(&world).await;
    let latest = run.tests().latest.clone().filter(|_| !is_outdated);
    let is_told = latest.is_none();
    let mut report = match latest {
        Some(report) => report,
        None => test_accepted(run).await?,
    };
    let is_changed = steady::at_end(run, &mut report).await;
    if is_changed || !is_told {
        note(run, &report);
    }
    let failing = steady::failing_at_end(run, &report);
    run.tests().failing = failing.into_iter().collect();
    Some(report)
}

/// Wakes the owners of the failing tests, that is, gives their agents work. If these owners were
/// already woken or cannot be woken, wakes the owners of changed symbols. Returns whether an owner
/// was woken.
fn wake_owners(run: &Arc<RunContext>, report: &TestReport, asked: &mut WokenOwners) -> bool {
    if run.task.driver == Driver::Single && !asked.owners.is_empty() {
        return false;
    }
    let before: BTreeSet<String> = run.tests().failing_before.clone();
    let TestEvidence::Known { broken, .. } = TestEvidence::compare(&before, report) else {
        return false;
    };
    let mut messages: BTreeMap<SymbolPath, String> = BTreeMap::new();
    let is_listed = report.cases.iter().any(|case| case.id == WHOLE_RUN);
    let whole_run = failing_ids(report)
        .into_iter()
        .filter(|_| !is_listed)
        .filter(|id| id == WHOLE_RUN)
        .map(|id| TestCase {
            id,
            status: TestStatus::Error,
            message: tail(&report.output, OUTPUT_MOST).to_owned(),
        });
    for case in report.cases.iter().cloned().chain(whole_run) {
        let failed = match case.status {
            TestStatus::Failed | TestStatus::Error | TestStatus::Unsteady => true,
            TestStatus::Passed | TestStatus::Skipped => false,
        };
        if !failed || !broken.contains(&case.id) && !run.tests().required.ids.contains(&case.id) {
            continue;
        }
        let known = |symbol: SymbolPath| run.owner_of(&symbol).unwrap_or(symbol);
        let is_new = |owner: &SymbolPath| !asked.owners.contains(owner);
        let mut owners: Vec<_> = owners_of(run, &case).into_iter().map(known).collect();
        if !owners.iter().any(is_new) {
            owners = who_changed(run).into_iter().map(known).collect();
        }
        for owner in owners.into_iter().filter(is_new) {
            let text = messages.entry(owner).or_default();
            text.push_str(&format!("{}\n{}\n", case.id, case.message));
        }
    }
    let (mut woken, unheard) = wake_each(run, messages, asked);
    if !woken && !unheard.is_empty() {
        // The agents that own changed symbols are already counted in the limit of agents.
        let known = |symbol: SymbolPath| run.owner_of(&symbol).unwrap_or(symbol);
        let changed = who_changed(run).into_iter().map(known);
        let changed = changed.filter(|owner| !asked.owners.contains(owner));
        let messages = changed.map(|owner| (owner, unheard.clone())).collect();
        woken = wake_each(run, messages, asked).0;
    }
    woken
}

/// Wakes the owners, that is, gives their agents work. Returns whether an owner was woken, and the
/// messages that could not be delivered.
fn wake_each(
    run: &Arc<RunContext>,
    messages: BTreeMap<SymbolPath, String>,
    asked: &mut WokenOwners,
) -> (bool, String) {
    let (mut woken, mut unheard) = (false, String::new());
    asked.owners.extend(messages.keys().cloned());
    for (owner, message) in messages {
        let cause = Cause::FailedTests {
            message: message.clone(),
        };
        match run.wake(&owner, cause) {
            Ok(_) => woken = true,
            Err(error) => {
                unheard.push_str(&message);
                run.not_woken(owner.to_string(), &ActorId::Starling, error.to_string());
            }
        }
    }
    (woken, unheard)
}

/// Returns the owners of the innermost traceback frames outside tests. If there are none, returns
/// the function whose result the test compares, otherwise the symbols that were changed.
fn owners_of(run: &Arc<RunContext>, case: &TestCase) -> Vec<SymbolPath> {
    let lookup = run.lookup();
    let frames = frames(&case.message);
    let in_code = frames.iter().filter_map(|frame| {
        let tree = lookup.tree(&file_of(run, frame.path)).ok()?;
        Some(tree.at_line(frame.line).path.clone())
    });
    let mut owners: Vec<SymbolPath> = in_code.filter(|path| !is_test_file(&path.file)).collect();
    owners.dedup();
    if owners.len() > 2 {
        owners = owners.split_off(owners.len() - 2);
    }
    if let Some(module) = imported_from(run, &case.message)
        && !owners.contains(&module)
    {
        owners.push(module);
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
        owners = who_changed(run);
    }
    if run.task.driver == Driver::Single {
        owners.truncate(1);
    }
    owners
}

/// Returns the file of a path in a traceback. The path may be absolute.
fn file_of(run: &RunContext, path: &str) -> FilePath {
    let world = run.world().snapshot.clone();
    let inside = Path::new(path).strip_prefix(world.root());
    FilePath::new(inside.ok().and_then(Path::to_str).unwrap_or(path))
}

/// If the test failed because a name could not be imported, returns the module that does not have
/// the name. The frames of the traceback do not contain this module.
fn imported_from(run: &RunContext, message: &str) -> Option<SymbolPath> {
    let lines = message.lines().rev();
    let mut errors = lines.filter(|line| line.contains("ImportError: cannot import name "));
    let (_, path) = errors
        .next()?
        .trim_end()
        .strip_suffix(')')?
        .rsplit_once(" (")?;
    let file = file_of(run, path);
    let is_known = run.lookup().tree(&file).is_ok() && !is_test_file(&file);
    is_known.then(|| SymbolPath::module(file))
}

fn who_changed(run: &RunContext) -> Vec<SymbolPath> {
    let mut symbols = run.proposals().changed_symbols();
    symbols.retain(|path| !path.is_module());
    symbols
}
