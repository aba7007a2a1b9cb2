//! Checks that expected tests run. A test that passed without a change and does not run with it
//! counts as broken by the change; a test that failed counts as still failing. Therefore a change
//! cannot remove a test from the results.

use std::collections::BTreeSet;

use crate::check::moved::Moves;
use crate::check::renamed::Renames;
use crate::check::test_run::run_tests;
use crate::evidence::ids::WHOLE_RUN;
pub(crate) use crate::evidence::ids::is_in;
use crate::evidence::test_evidence::{GONE_CASE, failing_ids};
use crate::state::checker::Checker;
use crate::task::asked::{self, name_of};
use starling_core::{TestCase, TestOutcome, TestReport, TestStatus};
use starling_index::is_test_file;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Last line of the message of a test that did not run.
const DID_NOT_RUN: &str = "ran before, did not run now: it must stay, run and keep its name";
/// Maximum number of tests or files that are selected. With more of them, the whole command runs.
const SELECT_MOST: usize = 20;
/// Returns the tests of a report that ran. Cases with the status "error" are left out, because they
/// may represent a file that cannot be loaded.
pub(crate) fn ran(report: &TestReport) -> BTreeSet<String> {
    let did_run = |case: &&TestCase| match case.status {
        TestStatus::Passed | TestStatus::Unsteady => true,
        TestStatus::Failed => !case.message.ends_with(DID_NOT_RUN),
        TestStatus::Error | TestStatus::Skipped => false,
    };
    let cases = report.cases.iter().filter(did_run);
    cases.map(|case| case.id.clone()).collect()
}

/// The two states of the workspace that are compared: without a change and with it.
#[derive(Clone, Copy)]
pub(crate) struct WorldPair<'a> {
    pub without: &'a Snapshot,
    pub with: &'a Snapshot,
}

/// Adds the expected tests that did not run to the report of a whole command as failures, and
/// returns them. Only tests that run without the change count. Tests in `let_go` may be missing,
/// because a person accepted a change that removes them.
pub(crate) async fn mark_missing(
    checker: &Checker,
    worlds: WorldPair<'_>,
    let_go: &BTreeSet<String>,
    report: &mut TestReport,
) -> BTreeSet<String> {
    let WorldPair { without, with } = worlds;
    let (expected, fails_as_whole) = {
        let state = checker.tests();
        let known = state.failing.contains(WHOLE_RUN) || state.failing_before.contains(WHOLE_RUN);
        (state.expected.clone(), known)
    };
    if is_told(report, fails_as_whole) {
        return BTreeSet::new();
    }
    let mut missing = missing_in(report, &expected);
    missing.retain(|id| !let_go.contains(id));
    let missing = not_moved(checker, worlds.with, report, missing);
    let missing = not_asked_for(checker, without, with, missing);
    if missing.is_empty() {
        return missing;
    }
    let missing = running_without(checker, without, missing).await;
    mark(report, &missing);
    missing
}

/// Adds the selected tests that ran without the change and did not run with it as failures.
pub(crate) fn mark_missing_of_selection(
    checker: &Checker,
    worlds: WorldPair<'_>,
    let_go: &BTreeSet<String>,
    before: &TestReport,
    report: &mut TestReport,
) {
    let fails_as_whole = failing_ids(before).iter().any(|id| id == WHOLE_RUN);
    if is_told(report, fails_as_whole) {
        return;
    }
    let mut missing = missing_in(report, &ran(before));
    missing.retain(|id| !let_go.contains(id));
    let missing = not_moved(checker, worlds.with, report, missing);
    let missing = not_asked_for(checker, worlds.without, worlds.with, missing);
    mark(report, &missing);
}

/// Returns whether the failure of the whole command already reports that no test ran: the command
/// fails as a whole now, and did not fail before.
fn is_told(report: &TestReport, failed_before: bool) -> bool {
    report.cases.is_empty() && report.outcome == TestOutcome::Failed && !failed_before
}

/// Returns the tests that were added to a report because they did not run.
pub(crate) fn marked(report: &TestReport) -> BTreeSet<String> {
    let is_marked = |case: &&TestCase| case.message.ends_with(DID_NOT_RUN);
    let cases = report.cases.iter().filter(is_marked);
    cases.map(|case| case.id.clone()).collect()
}

/// Returns the tests of `expected` that did not run. Tests in files that cannot be loaded are not
/// included, because the file itself is a failure. Returns nothing if the test run was stopped.
fn missing_in(report: &TestReport, expected: &BTreeSet<String>) -> BTreeSet<String> {
    match report.outcome {
        TestOutcome::Passed | TestOutcome::Failed | TestOutcome::NotRun => {}
        TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => return BTreeSet::new(),
    }
    let is_accounted_for =
        |case: &&TestCase| case.status != TestStatus::Skipped || case.message.ends_with(GONE_CASE);
    let seen = report.cases.iter().filter(is_accounted_for);
    let seen: BTreeSet<&str> = seen.map(|case| case.id.as_str()).collect();
    let unloaded = report.cases.iter();
    let unloaded = unloaded.filter(|case| case.status == TestStatus::Error);
    let unloaded: BTreeSet<&str> = unloaded.map(|case| case.id.as_str()).collect();
    let is_missing = |id: &&String| {
        let in_unloaded = id
            .split_once("::")
            .is_some_and(|(file, _)| unloaded.contains(file));
        !seen.contains(id.as_str()) && !in_unloaded && *id != WHOLE_RUN
    };
    expected.iter().filter(is_missing).cloned().collect()
}

/// Returns the tests that run without the change; all of `missing` if this cannot be determined.
async fn running_without(
    checker: &Checker,
    without: &Snapshot,
    missing: BTreeSet<String>,
) -> BTreeSet<String> {
    // Files are selected instead of ids, because pytest stops at an unknown id.
    let entry = |id: &String| id.split("::").next().unwrap_or(id).to_owned();
    let entries: BTreeSet<String> = missing.iter().map(entry).collect();
    let select = match checker.services.tests.selects() && entries.len() <= SELECT_MOST {
        true => entries.into_iter().collect(),
        false => Vec::new(),
    };
    let report = run_tests(checker, without, select).await;
    match report.outcome {
        TestOutcome::Passed | TestOutcome::Failed => {
            let runs = ran(&report);
            let (confirmed, others): (BTreeSet<String>, BTreeSet<String>) =
                missing.into_iter().partition(|id| runs.contains(id));
            // Tests whose ids differ in every run are removed, so that they are not looked for
            // again.
            checker.tests().expected.retain(|id| !others.contains(id));
            confirmed
        }
        TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch
        | TestOutcome::NotRun => missing,
    }
}

/// Removes the tests from `missing` that the run moved or renamed and that ran at their new
/// location or under their new name. The
/// definition at the new location may have been applied before the old one is removed.
fn not_moved(
    checker: &Checker,
    with: &Snapshot,
    report: &TestReport,
    mut missing: BTreeSet<String>,
) -> BTreeSet<String> {
    if !missing.is_empty() {
        let moves = Moves::between(checker.services.index.snapshot(), with);
        let renames = Renames::of(checker);
        missing.retain(|id| !moves.ran_elsewhere(id, report));
        let (renamed, others) = missing
            .into_iter()
            .partition(|id| renames.ran_renamed(id, report));
        note_renamed_failures(checker, &renames, &renamed, report);
        missing = others;
    }
    missing
}

/// Records the failures of `renamed` tests, given by their old ids, under their new ids as well.
fn note_renamed_failures(
    checker: &Checker,
    renames: &Renames<'_>,
    renamed: &BTreeSet<String>,
    report: &TestReport,
) {
    let mut state = checker.tests();
    for id in failing_ids(report) {
        let Some(old) = renames.old_id(&id, renamed.iter()) else {
            continue;
        };
        if state.failing_before.contains(old) {
            state.failing_before.insert(id.clone());
        }
        if state.failing.contains(old) {
            state.failing.insert(id);
        }
    }
}

/// Removes the tests from `missing` that the task asks to remove. Those tests may also be missing
/// at the end of the run.
fn not_asked_for(
    checker: &Checker,
    without: &Snapshot,
    with: &Snapshot,
    mut missing: BTreeSet<String>,
) -> BTreeSet<String> {
    if missing.is_empty() {
        return missing;
    }
    let changed = changed_files(without, with);
    let only_tests = changed.iter().all(is_test_file);
    let renames = Renames::of(checker);
    let worlds = (checker.services.index.snapshot(), with);
    let is_asked_for = |id: &String| {
        let in_own_file = changed.iter().any(|file| is_in(id, file.as_str()));
        let is_removed = only_tests && in_own_file && asked::to_remove(&checker.task.text, id);
        is_removed || renames.takes_away(worlds, id)
    };
    let asked: Vec<String> = missing
        .iter()
        .filter(|id| is_asked_for(id))
        .cloned()
        .collect();
    missing.retain(|id| !asked.contains(id));
    checker.tests().let_go.extend(asked);
    missing
}

/// Returns the files in which two states of the workspace differ.
pub(crate) fn changed_files(one: &Snapshot, other: &Snapshot) -> BTreeSet<FilePath> {
    let files = one.overlay().keys().chain(other.overlay().keys());
    let differs = |file: &&FilePath| one.read(file).ok() != other.read(file).ok();
    files.filter(differs).cloned().collect()
}

/// Adds failures for tests that did not run. If no test ran, the first failure contains the output,
/// which shows the reason.
fn mark(report: &mut TestReport, missing: &BTreeSet<String>) {
    let mut output = match report.cases.is_empty() {
        true => format!("{}\n", report.output.trim_end()),
        false => String::new(),
    };
    for id in missing {
        let known = report.cases.iter_mut().find(|case| case.id == *id);
        let why = known.as_ref().map_or("", |case| case.message.trim());
        let why = match why.is_empty() {
            true => std::mem::take(&mut output),
            false => format!("skipped: {why}\n"),
        };
        let message = format!("{why}{DID_NOT_RUN}");
        match known {
            Some(case) => {
                case.status = TestStatus::Failed;
                case.message = message;
            }
            None => report.cases.push(TestCase {
                id: id.clone(),
                status: TestStatus::Failed,
                message,
            }),
        }
        report.outcome = TestOutcome::Failed;
    }
}

/// Returns the selected entries for which no test ran.
pub(crate) fn unseen(entries: &[String], report: &TestReport) -> BTreeSet<String> {
    let did_run = |case: &&TestCase| case.status != TestStatus::Skipped;
    let ids: Vec<&str> = (report.cases.iter().filter(did_run))
        .map(|case| case.id.as_str())
        .collect();
    let is_seen = |entry: &String| {
        let (file, name) = entry.split_once(':').unwrap_or((entry, ""));
        let is_it = |id: &&str| {
            let by_name = name.is_empty() || name_of(id) == name_of(entry);
            *id == entry || (by_name && is_in(id, file))
        };
        ids.iter().any(is_it)
    };
    let unseen = entries.iter().filter(|entry| !is_seen(entry));
    unseen.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: TestOutcome, cases: &[(&str, TestStatus)]) -> TestReport {
        TestReport {
            output: "conftest.py: SyntaxError\n".to_owned(),
            ..TestReport::of_cases(outcome, cases)
        }
    }

    fn set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn absent_and_skipped_tests_count_as_missing() {
        use TestStatus::{Error, Failed, Passed, Skipped};
        let after = report(
            TestOutcome::Failed,
            &[
                ("t.py::a", Passed),
                ("t.py::b", Failed),
                ("t.py::c", Skipped),
                ("u.py", Error),
            ],
        );
        let expected = set(&["t.py::a", "t.py::b", "t.py::c", "t.py::d", "u.py::e"]);
        assert_eq!(missing_in(&after, &expected), set(&["t.py::c", "t.py::d"]));
        for stopped in [TestOutcome::TimedOut, TestOutcome::OutOfMemory] {
            let after = report(stopped, &[]);
            assert_eq!(missing_in(&after, &expected), set(&[]));
        }
    }

    #[test]
    fn missing_tests_turn_a_passing_report_into_a_failing_one() {
        let mut after = report(TestOutcome::Passed, &[("a", TestStatus::Skipped)]);
        after.cases[0].message = "no database".to_owned();
        mark(&mut after, &set(&["a", "b"]));
        assert_eq!(after.outcome, TestOutcome::Failed);
        let messages: Vec<_> = after
            .cases
            .iter()
            .map(|case| case.message.as_str())
            .collect();
        let skipped = format!("skipped: no database\n{DID_NOT_RUN}");
        assert_eq!(messages, [skipped.as_str(), DID_NOT_RUN]);
        let failed = |case: &TestCase| case.status == TestStatus::Failed;
        assert!(after.cases.iter().all(failed));
        let mut nothing = report(TestOutcome::Failed, &[]);
        mark(&mut nothing, &set(&["a", "b"]));
        let first = format!("conftest.py: SyntaxError\n{DID_NOT_RUN}");
        assert_eq!(nothing.cases[0].message, first);
        assert_eq!(nothing.cases[1].message, DID_NOT_RUN);
    }

    #[test]
    fn test_id_or_module_name_identifies_the_test_file() {
        let id = "tests/test_a.py::T::test_old[1-2]";
        assert!(is_in(id, "tests/test_a.py") && is_in("tests.test_a.T.x", "tests/test_a.py"));
        assert!(!is_in(id, "tests/test.py") && !is_in(id, "a.py"));
    }

    #[test]
    fn selected_test_is_recognized_in_results_by_name_and_module() {
        let after = report(
            TestOutcome::Passed,
            &[
                ("tests/test_a.py::T::test_x[1]", TestStatus::Passed),
                ("tests.test_b.T.test_y", TestStatus::Passed),
                ("tests/test_c.py::test_z", TestStatus::Skipped),
            ],
        );
        let entries = [
            "tests/test_a.py::T.test_x",
            "tests/test_a.py",
            "tests/test_b.py::T.test_y",
            "tests/test_b.py",
            "tests/test_c.py::test_z",
            "tests/test_c.py",
            "tests/test_d.py::test_x",
            "tests/test_a.py::T.test_y",
        ];
        let unseen = unseen(&entries.map(str::to_owned), &after);
        let expected = [&entries[4], &entries[5], &entries[6], &entries[7]];
        assert_eq!(
            unseen,
            expected.into_iter().map(|one| (*one).to_owned()).collect()
        );
    }
}
