//! Detects flaky tests. A new failure is confirmed by another run on the same text, and a test that
//! the task is about has to pass several times.
//!
//! A test that both fails and passes in equal runs on the same text is unsteady. A test that always
//! fails together with the others is not, even if it passes alone. An unsteady test does not count
//! against a change and proves nothing. A test that failed before the run and passes
//! now is run again without the change and, unless it visibly runs the changed code, with it.
//!
//! Tests read most files from the disk. If another program changed files between two runs, their
//! results belong to different texts and do not show that a test is unsteady.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::check::expected::WorldPair;
use crate::check::test_run::run_tests_within;
use crate::check::{expected, original_tests, required};
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::{MENDED_ELSEWHERE, failing_ids};
use crate::state::checker::Checker;
use crate::state::disk::DiskStamps;
use crate::state::epoch::Epoch;
use crate::state::test_scope::LONGEST;
use starling_core::{TestCase, TestOutcome, TestReport, TestStatus};
use starling_syntax::SymbolPath;
use starling_workspace::Snapshot;

/// Maximum number of new failures that are run again. More failures than that cannot be a
/// coincidence.
const MOST: usize = 20;
/// Number of repeated runs of a test.
const TIMES: usize = 2;
/// Maximum duration of a test's first repetition if a second one is to follow, and of a whole command
/// that is to be repeated at all.
const QUICK: Duration = Duration::from_secs(10);
/// Last line of the message of a test that failed before the change, but not in every run.
const PASSED_BEFORE: &str =
    "failed before the change, and passed when it was run again on the same text";
/// Last line of the message of an unsteady test.
const PASSED_AGAIN: &str = "failed once, and passed when it was run again on the same text";
/// Last line of the message of a test that fails together with the other tests and passes alone.
const FAILED_TOGETHER: &str =
    "failed in two runs together with the other tests, and passed when it ran alone";
/// Last line of the message of a test that passed with the change, but not in every run.
const FAILED_AGAIN: &str = "passed once, and did not pass when it was run again on the same text";
/// Last line of the message of a test that fails because files were changed after it passed.
const BROKEN_ELSEWHERE: &str = "passed earlier, and fails now that files were changed meanwhile";

/// Repeats the failing tests of a report, except the tests in `failing`, which also fail without
/// the change. A test that passes when it is repeated is marked as unsteady in the report, unless
/// the files on disk changed since `disk` was recorded before the first run, or the test fails again
/// in another run of all the tests of the report. These are `selected`, or, if it is empty, the tests
/// of the whole command.
pub(crate) async fn confirm(
    checker: &Checker,
    world: &Snapshot,
    failing: &BTreeSet<String>,
    report: &mut TestReport,
    disk: &DiskStamps,
    selected: &[String],
) {
    let mut new = failing_ids(report);
    new.retain(|id| !failing.contains(id));
    run_again(checker, world, new, TIMES, (report, Some(selected)), disk).await;
}

/// Repeats the failing tests of a report, up to `times` times. `selected` are the tests that the report
/// covers, if they are known: a test that passes alone and fails in two runs of them all is then not
/// marked as unsteady.
async fn run_again(
    checker: &Checker,
    world: &Snapshot,
    mut open: Vec<String>,
    times: usize,
    (report, selected): (&mut TestReport, Option<&[String]>),
    disk: &DiskStamps,
) {
    let missing = expected::marked(report);
    if open.len() > MOST || report.outcome != TestOutcome::Failed {
        return;
    }
    open.retain(|id| id != WHOLE_RUN && !missing.contains(id));
    let mut equal = EqualRun::new(checker, world, selected);
    for _ in 0..times {
        if open.is_empty() {
            return;
        }
        let Some(again) = once_more(checker, world, &open, report).await else {
            return;
        };
        let is_equal = equal.is_of(&open);
        let (passes, fails): (Vec<String>, Vec<String>) =
            open.into_iter().partition(|id| has_passed(&again, id));
        open = fails;
        let mut passes: BTreeSet<String> = passes.into_iter().collect();
        let (status, why) = match !passes.is_empty() && disk_has_changed(checker, disk, world).await
        {
            true => (TestStatus::Passed, MENDED_ELSEWHERE),
            false => (TestStatus::Unsteady, PASSED_AGAIN),
        };
        if status == TestStatus::Unsteady && !is_equal {
            let broken = equal.failing(&passes).await;
            passes.retain(|id| !broken.contains(id));
            mark(report, &broken, TestStatus::Failed, FAILED_TOGETHER);
        }
        mark(report, &passes, status, why);
        // The command may fail for a reason other than a failing test.
        let none_fails = failing_ids(report).iter().all(|id| id == WHOLE_RUN);
        if none_fails && again.outcome == TestOutcome::Passed {
            report.outcome = TestOutcome::Passed;
            report.exit = again.exit;
        }
        if is_slow(&again) {
            return;
        }
    }
}

/// A second run of all tests of a report, on the same text. The tests run at most once more.
struct EqualRun<'r> {
    checker: &'r Checker,
    world: &'r Snapshot,
    /// The tests that the report covers; empty for the whole command, `None` if they are not known.
    selected: Option<&'r [String]>,
    report: Option<TestReport>,
}

impl<'r> EqualRun<'r> {
    fn new(checker: &'r Checker, world: &'r Snapshot, selected: Option<&'r [String]>) -> Self {
        EqualRun {
            checker,
            world,
            selected,
            report: None,
        }
    }

    /// Returns whether a repetition of these tests runs exactly the tests of the report.
    fn is_of(&self, tests: &[String]) -> bool {
        let Some(selected) = self.selected else {
            return true;
        };
        let all: BTreeSet<&String> = selected.iter().collect();
        match self.checker.services.tests.selects() {
            true => all == tests.iter().collect(),
            false => selected.is_empty(),
        }
    }

    /// Returns those of `tests` that fail in the second run as well. They failed in the first run and
    /// passed alone. Tests that were unsteady before the run are left out.
    async fn failing(&mut self, tests: &BTreeSet<String>) -> BTreeSet<String> {
        let open = tests - &self.checker.tests().flaky.unsteady_before;
        let Some(selected) = self.selected.filter(|_| !open.is_empty()) else {
            return BTreeSet::new();
        };
        let report = match self.report.take() {
            Some(report) => report,
            None => {
                let longest = match selected.is_empty() {
                    true => Duration::MAX,
                    false => LONGEST,
                };
                run_tests_within(self.checker, self.world, selected.to_vec(), longest).await
            }
        };
        let fails = |id: &String| !has_passed(&report, id);
        let fails = open.into_iter().filter(fails).collect();
        self.report = Some(report);
        fails
    }
}

/// Sets the status of these tests in a report, and adds a line to their messages.
fn mark(report: &mut TestReport, ids: &BTreeSet<String>, status: TestStatus, why: &str) {
    if status == TestStatus::Failed && !ids.is_empty() {
        report.outcome = TestOutcome::Failed;
    }
    for case in report
        .cases
        .iter_mut()
        .filter(|case| ids.contains(&case.id))
    {
        case.status = status;
        case.message = format!("{}\n{why}", case.message.trim_end())
            .trim_start()
            .to_owned();
    }
}

/// The tests that a change seems to fix, to be confirmed by repeated runs.
struct FixedTests {
    /// Tests that failed before the run. They are repeated on the text before the run.
    before: BTreeSet<String>,
    /// Tests that were found failing later, or on other texts. They are repeated on the current
    /// text without the change.
    later: BTreeSet<String>,
}

/// Confirms that the tests of `failing` that pass in the report are fixed by the change of
/// `symbols`, before they are counted as fixed. A test that also passes without the change, or that
/// fails with it in another run, is marked in the report.
///
/// The number of test runs is bounded. A required test whose source or traceback shows that it runs
/// the changed code is not repeated here, because it has to pass several times at the end of the
/// run. If more than [`MOST`] tests seem fixed, that cannot be a coincidence, and they are not
/// repeated. A test is repeated only once on the text without the run's changes.
pub(crate) async fn confirm_fixed(
    checker: &Checker,
    worlds: WorldPair<'_>,
    symbols: &[SymbolPath],
    failing: &BTreeSet<String>,
    report: &mut TestReport,
    disk: &DiskStamps,
) {
    let is_fixed = |id: &&String| *id != WHOLE_RUN && has_passed(report, id);
    let fixed: BTreeSet<String> = failing.iter().filter(is_fixed).cloned().collect();
    if fixed.is_empty() {
        return;
    }
    let run_changed = running(checker, symbols, &fixed);
    let others_changed = others_changed_files(checker).await;
    let open = {
        let state = checker.tests();
        let is_believed = |id: &String| {
            !others_changed && run_changed.contains(id) && state.required.ids.contains(id)
        };
        let mut open = fixed;
        open.retain(|id| !is_believed(id));
        let later: BTreeSet<String> = match others_changed {
            true => open.clone(),
            false => &open - &state.failing_before,
        };
        FixedTests {
            before: &open - &later,
            later,
        }
    };
    without_run(checker, &open.before, report).await;
    if (1..=MOST).contains(&open.later.len()) {
        let later: Vec<String> = open.later.iter().cloned().collect();
        let pass = passing_in(checker, worlds.without, later, report).await.0;
        checker.tests().failing.retain(|id| !pass.contains(id));
        mark(report, &pass, TestStatus::Passed, MENDED_ELSEWHERE);
    }
    let is_open =
        |id: &String| !run_changed.contains(id) && !is_marked(report, id) && has_passed(report, id);
    let with: Vec<String> = (open.before.iter().chain(&open.later))
        .filter(|id| is_open(id))
        .cloned()
        .collect();
    if (1..=MOST).contains(&with.len())
        && let Some(again) = once_more(checker, worlds.with, &with, report).await
    {
        let fails = with.into_iter().filter(|id| does_not_pass(&again, id));
        let fails: BTreeSet<String> = fails.collect();
        let (status, why) =
            match !fails.is_empty() && disk_has_changed(checker, disk, worlds.with).await {
                true => (TestStatus::Failed, BROKEN_ELSEWHERE),
                false => (TestStatus::Unsteady, FAILED_AGAIN),
            };
        mark(report, &fails, status, why);
    }
}

/// Returns the tests that visibly run one of the symbols, by their source or by their traceback
/// from before the run.
fn running(
    checker: &Checker,
    symbols: &[SymbolPath],
    tests: &BTreeSet<String>,
) -> BTreeSet<String> {
    let before = checker.tests().before.clone();
    let known = before.into_iter().flat_map(|report| report.cases);
    let mut cases: Vec<TestCase> = known.filter(|case| tests.contains(&case.id)).collect();
    let mut unknown = tests.clone();
    for case in &cases {
        unknown.remove(&case.id);
    }
    cases.extend(unknown.into_iter().map(|id| TestCase {
        id,
        status: TestStatus::Failed,
        message: String::new(),
    }));
    required::reached(&checker.lookup(), symbols, &cases)
}

/// Returns whether the user or another program changed files since the tests first ran. If so, the
/// earlier results do not belong to the current text without the run's changes.
async fn others_changed_files(checker: &Checker) -> bool {
    let without = checker.state().without_the_run();
    let typed = !expected::changed_files(&without, checker.services.index.snapshot()).is_empty();
    typed || disk_has_changed(checker, checker.disk.at_start(), &without).await
}

/// Returns whether others changed files on disk since `earlier` that the tests of `world` read. The
/// run itself writes only files that its workspace replaces.
async fn disk_has_changed(checker: &Checker, earlier: &DiskStamps, world: &Snapshot) -> bool {
    let current = checker.world().snapshot.clone();
    checker.disk.has_changed(earlier, [world, &current]).await
}

fn is_marked(report: &TestReport, id: &str) -> bool {
    let mut cases = report.cases.iter();
    cases.any(|case| case.id == id && case.message.ends_with(MENDED_ELSEWHERE))
}

/// Repeats the tests that failed before the run and pass now, on the current text without the run's
/// changes. A test that passes there is flaky: it is marked as unsteady in the report, and counts as
/// neither fixed nor broken. If the user or another program changed files since the first test run,
/// such a test is marked as fixed by those changes instead. Tests that the task is about are
/// repeated here only in that case; otherwise they are repeated on the text with the change.
async fn doubt_fixed(checker: &Checker, report: &mut TestReport) {
    let mut fixed = checker.tests().failing_before.clone();
    fixed.retain(|id| *id != WHOLE_RUN && has_passed(report, id));
    if fixed.is_empty() {
        return;
    }
    if !others_changed_files(checker).await {
        let fixed = &fixed - &checker.tests().required.ids;
        without_run(checker, &fixed, report).await;
        return;
    }
    if fixed.len() > MOST {
        return;
    }
    let without = checker.state().without_the_run();
    let open = fixed.into_iter().collect();
    let pass = passing_in(checker, &without, open, report).await.0;
    checker
        .tests()
        .failing_before
        .retain(|id| !pass.contains(id));
    mark(report, &pass, TestStatus::Passed, MENDED_ELSEWHERE);
}

/// Repeats tests that failed before the run, on the text before the run. Tests that pass there are
/// marked as unsteady in the report.
async fn without_run(checker: &Checker, fixed: &BTreeSet<String>, report: &mut TestReport) {
    let (open, without) = {
        let state = checker.state();
        let known = &state.tests.flaky.failed_again | &state.tests.flaky.unsteady_before;
        let open: Vec<String> = fixed.difference(&known).cloned().collect();
        (open, state.without_the_run())
    };
    if (1..=MOST).contains(&open.len()) {
        let (pass, fail) = passing_in(checker, &without, open, report).await;
        let mut state = checker.tests();
        state.flaky.unsteady_before.extend(pass);
        state.flaky.failed_again.extend(fail);
    }
    let unsteady = &checker.tests().flaky.unsteady_before & fixed;
    mark(report, &unsteady, TestStatus::Unsteady, PASSED_BEFORE);
}

/// Repeats tests on a text without the change. Returns the tests that pass in at least one of the
/// runs, and the other tests.
async fn passing_in(
    checker: &Checker,
    without: &Snapshot,
    mut open: Vec<String>,
    first: &TestReport,
) -> (BTreeSet<String>, Vec<String>) {
    let mut passing = BTreeSet::new();
    for _ in 0..TIMES {
        if open.is_empty() {
            break;
        }
        let Some(again) = once_more(checker, without, &open, first).await else {
            return (passing, Vec::new());
        };
        let (pass, fail): (Vec<String>, Vec<String>) =
            open.into_iter().partition(|id| has_passed(&again, id));
        passing.extend(pass);
        open = fail;
        if is_slow(&again) {
            break;
        }
    }
    (passing, open)
}

/// Repeats the required tests and the fixed tests that pass in the report. Tests that do not pass
/// every time are marked as unsteady in the report.
async fn repeat_mended(checker: &Checker, world: &Snapshot, report: &mut TestReport) {
    let mut open: Vec<String> = {
        let state = checker.tests();
        let mended = &state.failing_before & &state.flaky.failed_again;
        state.required.ids.union(&mended).cloned().collect()
    };
    open.retain(|id| has_passed(report, id));
    for _ in 0..TIMES {
        if open.is_empty() {
            return;
        }
        let Some(again) = once_more(checker, world, &open, report).await else {
            return;
        };
        let (fails, passes): (Vec<String>, Vec<String>) =
            open.into_iter().partition(|id| does_not_pass(&again, id));
        open = passes;
        let (status, why) = match !fails.is_empty() && others_changed_files(checker).await {
            true => (TestStatus::Failed, BROKEN_ELSEWHERE),
            false => (TestStatus::Unsteady, FAILED_AGAIN),
        };
        for id in fails {
            let message = again.cases.iter().find(|case| case.id == id);
            let message = message.map_or("", |case| case.message.trim_end());
            let message = format!("{message}\n{why}");
            if status == TestStatus::Failed {
                report.outcome = TestOutcome::Failed;
            }
            match report.cases.iter_mut().find(|case| case.id == id) {
                Some(case) => {
                    case.status = status;
                    case.message = message;
                }
                None => report.cases.push(TestCase {
                    id,
                    status,
                    message,
                }),
            }
        }
        if is_slow(&again) {
            return;
        }
    }
}

/// Checks the last report of a run for flaky tests, once for each epoch (version of the workspace):
/// tests that failed before may also be flaky, and required tests must pass every time. Returns
/// whether the report changed.
pub(crate) async fn at_end(checker: &Checker, report: &mut TestReport) -> bool {
    let (epoch, world, known) = {
        let mut state = checker.state();
        let is_known = |(epoch, _): &(Epoch, Vec<String>)| *epoch == state.world.epoch;
        if state.tests.flaky.repeated.as_ref().is_some_and(is_known) {
            return false;
        }
        state.tests.flaky.repeated = Some((state.world.epoch, Vec::new()));
        let known = state
            .tests
            .failing_before
            .difference(&state.tests.required.ids);
        let known: BTreeSet<String> = known.cloned().collect();
        (state.world.epoch, state.world.snapshot.clone(), known)
    };
    let was = report.clone();
    let mut failing = failing_ids(report);
    failing.retain(|id| known.contains(id));
    let at_start = checker.disk.at_start();
    run_again(checker, &world, failing, 1, (&mut *report, None), at_start).await;
    doubt_fixed(checker, report).await;
    repeat_mended(checker, &world, report).await;
    if *report == was {
        return false;
    }
    let mut state = checker.state();
    if state.world.epoch == epoch {
        let mut required: Vec<String> = unsteady(report).cloned().collect();
        required.retain(|id| state.tests.required.ids.contains(id));
        state.tests.flaky.repeated = Some((epoch, required));
        state.tests.latest = Some(report.clone());
    }
    true
}

/// Returns the failing tests of a report, and the required tests that do not always pass.
pub(crate) fn failing_at_end(checker: &Checker, report: &TestReport) -> Vec<String> {
    let state = checker.tests();
    let mut failing = failing_ids(report);
    let unsteady = unsteady(report);
    failing.extend(
        unsteady
            .filter(|id| state.required.ids.contains(*id))
            .cloned(),
    );
    failing
}

/// Returns the unsteady tests of a report.
pub(crate) fn unsteady(report: &TestReport) -> impl Iterator<Item = &String> {
    let cases = report.cases.iter();
    let unsteady = cases.filter(|case| case.status == TestStatus::Unsteady);
    unsteady.map(|case| &case.id)
}

/// The flaky tests of a run.
#[derive(Debug, Default)]
pub(crate) struct UnsteadyTests {
    pub all: Vec<String>,
    /// Tests whose flakiness the run may have caused: tests that the task is about, tests in files
    /// that the run changed, and tests that reach a changed symbol.
    pub doubtful: Vec<String>,
}

/// Returns the flaky tests of the workspace at the end of the run.
pub(crate) fn known(checker: &Checker) -> UnsteadyTests {
    let (cases, required, repeated, symbols, without, world, before) = {
        let state = checker.state();
        let cases = state.tests.latest.iter().flat_map(|report| &report.cases);
        let cases = cases.filter(|case| case.status == TestStatus::Unsteady);
        let cases: Vec<TestCase> = cases.cloned().collect();
        let symbols = state.proposals.changed_symbols();
        let without = state.without_the_run();
        let required = state.tests.required.ids.clone();
        let repeated = state
            .tests
            .flaky
            .repeated
            .clone()
            .map(|(_, required)| required);
        let repeated = repeated
            .filter(|_| state.tests.latest.is_none())
            .unwrap_or_default();
        (
            cases,
            required,
            repeated,
            symbols,
            without,
            state.world.snapshot.clone(),
            state.tests.flaky.unsteady_before.clone(),
        )
    };
    let mut beside = original_tests::known(checker).unwrap_or_default().unsteady;
    // After the changes were reverted, there is no report for the files as they are now. The flaky
    // tests that were found by running them again are still known, and are added.
    beside.extend(repeated);
    if cases.is_empty() && beside.is_empty() {
        return UnsteadyTests::default();
    }
    let changed = expected::changed_files(&without, &world);
    let reached = required::reached(&checker.lookup(), &symbols, &cases);
    let is_doubtful = |id: &String| {
        let mut files = changed.iter();
        let mut is_changed = || files.any(|file| expected::is_in(id, file.as_str()));
        // If a test was unsteady before the run, the run is not the cause.
        required.contains(id) || !before.contains(id) && (reached.contains(id) || is_changed())
    };
    let all: Vec<String> = cases.iter().map(|case| case.id.clone()).collect();
    let mut doubtful = all.clone();
    doubtful.retain(is_doubtful);
    let mut found = UnsteadyTests { all, doubtful };
    for id in beside {
        if !found.all.contains(&id) {
            found.all.push(id.clone());
        }
        if !found.doubtful.contains(&id) {
            found.doubtful.push(id);
        }
    }
    found
}

/// Runs the tests again on the same text. Returns `None` if that takes too long or gives no result.
async fn once_more(
    checker: &Checker,
    world: &Snapshot,
    tests: &[String],
    first: &TestReport,
) -> Option<TestReport> {
    let has_names = tests.iter().all(|id| id != WHOLE_RUN);
    let select = if checker.services.tests.selects() && has_names {
        tests.to_vec()
    } else if is_slow(first) {
        return None;
    } else {
        Vec::new()
    };
    let report = run_tests_within(checker, world, select, LONGEST).await;
    match report.outcome {
        TestOutcome::Passed | TestOutcome::Failed => Some(report),
        TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch
        | TestOutcome::NotRun => None,
    }
}

fn is_slow(report: &TestReport) -> bool {
    u128::from(report.millis) > QUICK.as_millis()
}

fn has_passed(report: &TestReport, id: &str) -> bool {
    let passed = |case: &TestCase| case.id == id && case.status == TestStatus::Passed;
    match id == WHOLE_RUN {
        true => report.outcome == TestOutcome::Passed,
        false => report.cases.iter().any(passed),
    }
}

/// Returns whether a report contains a test that does not pass.
fn does_not_pass(report: &TestReport, id: &str) -> bool {
    let is_told = id == WHOLE_RUN || report.cases.iter().any(|case| case.id == id);
    is_told && !has_passed(report, id)
}
