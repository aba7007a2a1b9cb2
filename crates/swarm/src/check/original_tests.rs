//! Checks code against the original tests. If a run changes test files that the task does not ask
//! to change, its code must also pass the original text of these files. Otherwise the tests may
//! pass only because they were changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::check::moved::Moves;
use crate::check::other_names::{self, NewTextPart};
use crate::check::own_tests::OwnTests;
use crate::check::renamed::Renames;
use crate::check::test_files::{
    folder_of_tests, folders, is_called_after_tests, is_in_other_language, is_module, is_of_tests,
    is_test_data,
};
use crate::check::test_run::run_tests;
use crate::check::{concerned, expected, required, scripts, steady};
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::{OnlyAsChanged, TestEvidence, failing_ids};
use crate::state::checker::Checker;
use crate::state::epoch::Epoch;
use crate::state::test_scope::Extent;
use crate::task::asked;
use crate::task::goal::Goal;
use crate::task::names::Names;
use starling_core::{Approval, TestCase, TestOutcome, TestReport, TestStatus};
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::Snapshot;

/// Maximum number of test files that are selected. With more files, the whole command runs.
const FILES_MOST: usize = 20;
/// Maximum number of test files that are searched for an import of a changed test file.
const SEARCHED_MOST: usize = 400;
/// Maximum size in bytes of one test message, and of all messages together.
const MESSAGE_MOST: usize = 1_200;
const MESSAGES_MOST: usize = 3_600;

/// Adds to the evidence for `after` the tests that pass only because of the run's changes to test
/// files. `report` is the test run that the evidence is based on.
pub(crate) async fn judged(
    checker: &Checker,
    after: &Snapshot,
    tests: TestEvidence,
    report: Option<&TestReport>,
) -> TestEvidence {
    match report {
        Some(report) => tests.with_changed(only_as_changed(checker, after, report).await),
        None => tests,
    }
}

/// Determines at the end of a run which tests pass only with the run's changes to the tests. With
/// [`Approval::Auto`], returns a description of each of these tests. A run with such a description
/// does not end as settled (successful).
pub(crate) async fn at_end(checker: &Checker) -> Vec<String> {
    let (epoch, world, latest) = {
        let state = checker.state();
        (
            state.world.epoch,
            state.world.snapshot.clone(),
            state.tests.latest.clone(),
        )
    };
    let Some(latest) = latest else {
        return Vec::new();
    };
    if known(checker).is_none() {
        let found = only_as_changed(checker, &world, &latest).await;
        remember(checker, epoch, found);
    }
    let tests = known(checker).map(|found| found.tests).unwrap_or_default();
    let said = |id: &String| format!("{id} passes only as the run changed the tests");
    match checker.task.approval {
        Approval::Auto => tests.iter().map(said).collect(),
        Approval::Proxy | Approval::Ask => Vec::new(),
    }
}

/// Returns the stored result for the current epoch; `None` if there is none.
pub(crate) fn known(checker: &Checker) -> Option<OnlyAsChanged> {
    let state = checker.state();
    let known = state.tests.only_as_changed.as_ref();
    let known = known.filter(|(epoch, _)| *epoch == state.world.epoch);
    known.map(|(_, found)| found.clone())
}

/// Stores the result for an epoch (version) of the workspace.
pub(crate) fn remember(checker: &Checker, epoch: Epoch, found: OnlyAsChanged) {
    checker.tests().only_as_changed = Some((epoch, found));
}

/// Returns whether two states of the workspace differ in test files.
pub(crate) fn differ(checker: &Checker, without: &Snapshot, with: &Snapshot) -> bool {
    let changed = expected::changed_files(without, with);
    let scripts = scripts::of_test_command(checker);
    let own = own_tests(checker, without, None).following(following(checker));
    let is_of_tests = |file: &FilePath| {
        let is_beside = || {
            let (Ok(was), Ok(is)) = (without.read(file), with.read(file)) else {
                return false;
            };
            own.are_beside(file) && own.restored(&checker.task.text, file, &was, &is).is_some()
        };
        is_of_tests(without, file) || scripts.contains(file) || own.are_all_of(file) || is_beside()
    };
    changed.iter().any(is_of_tests)
}

/// Returns the tests in files that are not test files by name, according to the ids of the tests
/// that ran.
pub(crate) fn own_tests(
    checker: &Checker,
    without: &Snapshot,
    report: Option<&TestReport>,
) -> OwnTests {
    let state = checker.tests();
    let reports = state.before.iter().chain(report);
    let cases = reports.flat_map(|report| &report.cases);
    let ids = cases.map(|case| case.id.clone());
    let ids = ids.chain(state.expected.iter().cloned()).collect();
    let command = checker.services.tests.command().unwrap_or_default();
    OwnTests::of(without, &command, ids)
}

/// Returns the functions and classes whose behaviour the task changes, as far as it names them, and
/// whose own examples did not fail before the run. An example that failed tells what is right.
fn following(checker: &Checker) -> Vec<SymbolPath> {
    let changes_behaviour = match required::goal(checker) {
        Goal::Bug | Goal::Feature => asked::demands_behaviour(&checker.task.text),
        Goal::RedTests
        | Goal::NewTest
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => false,
    };
    if !changes_behaviour {
        return Vec::new();
    }
    let state = checker.tests();
    let failed: Vec<&String> = state.failing_before.union(&state.required.ids).collect();
    let is_example_of = |id: &str, symbol: &SymbolPath| {
        let last = id.rsplit("::").next().unwrap_or(id);
        let dotted = format!(".{}", symbol.name);
        last.ends_with(&dotted) || last.contains(&format!("{dotted}."))
    };
    let names = state.required.names.iter().flat_map(Names::symbols);
    let names = names.filter(|symbol| {
        let mut failed = failed.iter();
        !symbol.is_module() && !failed.any(|id| is_example_of(id, symbol))
    });
    names.cloned().collect()
}

/// Returns the tests that pass in `after` with the changed test files, but not with the original
/// ones. Tests that passed before the run and fail with the original text in `after` are included.
async fn only_as_changed(
    checker: &Checker,
    after: &Snapshot,
    report: &TestReport,
) -> OnlyAsChanged {
    let Some(originals) = WorkspaceWithOriginalTests::of(checker, after, report) else {
        return OnlyAsChanged::default();
    };
    let mut found = OnlyAsChanged {
        unheld: originals.unheld.clone(),
        ..OnlyAsChanged::default()
    };
    if originals.are_only_unheld {
        return found;
    }
    if originals.are_all_that_changed {
        // The code is unchanged, so tests that failed before the run fail with the original tests
        // as well.
        let state = checker.tests();
        let failed = state.failing_before.union(&state.required.ids);
        let passes = passed(report);
        found.tests = failed.filter(|id| passes.contains(*id)).cloned().collect();
    } else {
        let disk = checker.disk.newest();
        let (mut with, world) = originals.run(checker, after).await;
        let known: BTreeSet<String> = failing_ids(report).into_iter().collect();
        // Tests that fail run again on the same text, which includes the modifications that make
        // the test files loadable.
        let selected = &originals.select;
        steady::confirm(checker, &world, &known, &mut with, &disk, selected).await;
        let mut bad = originals.fails(&with, report);
        let is_excused = |id: &String| {
            let message = case_of(&with, id).map(|case| case.message.as_str());
            asked::for_other_names(&checker.task.text, message.unwrap_or_default())
        };
        bad.retain(|id| !is_excused(id));
        if !bad.is_empty() {
            let before = originals.before(checker).await;
            let renames = Renames::of(checker);
            bad.retain(|id| counts(id, &renames, &before, report));
        }
        found.tests = bad.into_iter().collect();
        found.details = details(&found.tests, &with);
        found.unsteady = steady::unsteady(&with).cloned().collect();
    }
    let (before, changed) = (&originals.without_the_run, &originals.files);
    let renames = Renames::of(checker);
    let is_asked = |id: &String| {
        asked::to_change_test(&checker.task.text, id)
            || asked::to_remove(&checker.task.text, id)
            || renames.takes_away((before, after), id)
    };
    let is_concerned = |id: &String| concerned::is_concerned(before, after, changed, id);
    for ids in [&mut found.tests, &mut found.unsteady] {
        ids.retain(|id| !is_asked(id) && is_concerned(id));
    }
    found
}

/// Returns whether a test that fails with the original files counts. A test that passes now counts
/// if it existed before the run, also under another name; a test that did not run now counts if it
/// passed before the run.
fn counts(id: &String, renames: &Renames<'_>, before: &TestReport, now: &TestReport) -> bool {
    let failed = failing_ids(before);
    let ran_before = expected::ran(before);
    if id == WHOLE_RUN {
        return passed(now).contains(id) || !failed.contains(id);
    }
    let is_unloaded = |file: &str| failed.iter().any(|id| id == file);
    let in_unloaded = id
        .split_once("::")
        .is_some_and(|(file, _)| is_unloaded(file));
    if passed(now).contains(id) {
        let is_known = ran_before.contains(id) || renames.old_id(id, ran_before.iter()).is_some();
        return in_unloaded || is_known;
    }
    let did_run = matches!(before.outcome, TestOutcome::Passed | TestOutcome::Failed);
    let is_file = id.ends_with(".py") && did_run;
    passed(before).contains(id) || is_file && !is_unloaded(id)
}

/// A state of the workspace in which the test files have their original text.
struct WorkspaceWithOriginalTests {
    world: Snapshot,
    without_the_run: Snapshot,
    /// Test files to run; empty if the whole command runs.
    select: Vec<String>,
    /// Whether only test files changed.
    are_all_that_changed: bool,
    /// The test files that got their original text back.
    held: Vec<FilePath>,
    /// The files in `held`, and the code files in which the tests got their original text back.
    files: Vec<FilePath>,
    /// Files whose tests could not all be restored.
    unheld: Vec<String>,
    /// Whether no test file could get its original text back, so that there are no tests to run.
    are_only_unheld: bool,
}

impl WorkspaceWithOriginalTests {
    /// Runs the tests with the original files. Returns the report and the texts of that run.
    ///
    /// If a file fails to load because a name is missing that the task renames, the file is made
    /// loadable and runs again, so that only the tests that use the name fail.
    async fn run(&self, checker: &Checker, after: &Snapshot) -> (TestReport, Snapshot) {
        let task = &checker.task.text;
        let mut world = self.world.clone();
        let mut report = run_tests(checker, &world, self.select.clone()).await;
        for loading in [NewTextPart::Imports, NewTextPart::ModuleLevel] {
            let mut is_other = false;
            for file in &self.held {
                let missing = other_names::missing(task, &report, file);
                let texts = (self.world.read(file), after.read(file));
                if let (false, (Ok(original), Ok(new))) = (missing.is_empty(), texts) {
                    let text = other_names::loadable(file, &original, &new, &missing, loading);
                    world = world.with(file.clone(), Some(text));
                    is_other = true;
                }
            }
            if is_other {
                report = run_tests(checker, &world, self.select.clone()).await;
            }
        }
        (report, world)
    }

    /// Returns `None` if no test file changed, if the task asks for all changes to the tests, or if
    /// no test depends on a changed file. A new test file does not affect other tests, but a new
    /// `conftest.py` does.
    fn of(
        checker: &Checker,
        after: &Snapshot,
        report: &TestReport,
    ) -> Option<WorkspaceWithOriginalTests> {
        let without = checker.state().without_the_run();
        let changed = expected::changed_files(&without, after);
        let scripts = scripts::of_test_command(checker);
        let own = own_tests(checker, &without, Some(report)).following(following(checker));
        let is_of_tests = |file: &FilePath| {
            is_of_tests(&without, file) || scripts.contains(file) || own.are_all_of(file)
        };
        let holds_tests =
            |file: &FilePath| is_module(file) || is_in_other_language(file) || own.are_all_of(file);
        let held = changed.iter().filter(|file| is_of_tests(file));
        let task = &checker.task.text;
        // If a code file has the same name as a test file, the name in the task means the code
        // file.
        let is_code = |token: &str| {
            let known = without.files().iter().filter(|file| !is_of_tests(file));
            known.into_iter().any(|file| asked::names_file(token, file))
        };
        let may_change =
            |file: &FilePath| asked::to_change_file(task, file, holds_tests(file), &is_code);
        let moves = Moves::between(&without, after);
        let renames = Renames::of(checker);
        let original = |file: &FilePath| {
            let text = moves.imported_anew(file, &without.read(file).ok()?);
            Some(match after.read(file) {
                Ok(new) => renames.carried_out(&text, &new),
                Err(_) => text,
            })
        };
        // If a test file differs only in the module from which it imports a moved name, or in names
        // that the task renames, its tests count as unchanged.
        let is_as_it_was = |file: &FilePath| original(file) == after.read(file).ok();
        let held = held.filter(|file| !may_change(file) && !is_as_it_was(file));
        let held: Vec<&FilePath> = held.collect();
        let is_new = |file: &FilePath| without.read(file).is_err();
        let mut beside: Vec<(&FilePath, Arc<str>)> = Vec::new();
        let mut unheld = Vec::new();
        for file in changed.iter().filter(|file| !is_of_tests(file)) {
            let (Ok(was), Ok(is)) = (without.read(file), after.read(file)) else {
                continue;
            };
            if !own.are_beside(file) {
                continue;
            }
            let was = moves.without_moved(file, &was);
            let was = renames.carried_out(&renames.without_deleted(file, &was, &is), &is);
            let Some(restored) = own.restored(task, file, &was, &is) else {
                continue;
            };
            if !restored.is_whole {
                unheld.push(file.to_string());
            }
            if restored.text != is {
                beside.push((file, restored.text));
            }
        }
        let is_new_test = |file: &FilePath| is_new(file) && holds_tests(file);
        let are_only_unheld = held.iter().all(|file| is_new_test(file)) && beside.is_empty();
        if are_only_unheld && unheld.is_empty() {
            return None;
        }
        let mut world = after.clone();
        for file in &held {
            world = world.with((*file).clone(), original(file));
        }
        for (file, text) in &beside {
            world = world.with((*file).clone(), Some(Arc::clone(text)));
        }
        let existing = held.iter().filter(|file| !is_new_test(file));
        let mut existing: Vec<&FilePath> = existing.copied().collect();
        existing.extend(beside.iter().map(|(file, _)| *file));
        let is_own = |file: &FilePath| {
            own.are_all_of(file) || beside.iter().any(|(other, _)| *other == file)
        };
        let select = match checker.services.tests.selects() {
            true if are_only_unheld => Vec::new(),
            true => affected(checker, &without, &existing, &is_own)?,
            false => Vec::new(),
        };
        let are_all_that_changed = expected::changed_files(&without, &world).is_empty();
        let held: Vec<FilePath> = held.into_iter().cloned().collect();
        let beside = beside.into_iter().map(|(file, _)| file.clone());
        let files = held.iter().cloned().chain(beside).collect();
        Some(WorkspaceWithOriginalTests {
            held,
            files,
            world,
            without_the_run: without,
            select,
            are_all_that_changed,
            unheld,
            are_only_unheld,
        })
    }

    /// Returns the tests that do not pass with the original files (`with`) and do not fail with the
    /// changed files (`changed`).
    fn fails(&self, with: &TestReport, changed: &TestReport) -> BTreeSet<String> {
        let is_run = |id: &String| {
            let mut files = self.select.iter();
            self.select.is_empty() || files.any(|file| expected::is_in(id, file))
        };
        let passes_with = passed(with);
        let mut bad: BTreeSet<String> = failing_ids(with).into_iter().collect();
        let passes = passed(changed);
        // If a file cannot be loaded, the file is reported instead of its tests.
        let is_known_file = |id: &String| {
            let mut passes = passes.iter();
            let file = id.ends_with(".py");
            file && passes.any(|test| test.split_once("::").is_some_and(|(of, _)| of == id))
        };
        bad.retain(|id| !is_known_file(id));
        let unsteady: BTreeSet<&String> = steady::unsteady(with).collect();
        let gone = passes.iter().filter(|id| !passes_with.contains(*id));
        let gone = gone.filter(|id| !unsteady.contains(id));
        // The id of the whole command is reported only if no single test fails.
        let gone = gone.filter(|id| *id != WHOLE_RUN);
        bad.extend(gone.filter(|id| is_run(id)).cloned());
        for id in failing_ids(changed) {
            bad.remove(&id);
        }
        bad
    }

    /// Returns the report of the same tests before the run.
    async fn before(&self, checker: &Checker) -> TestReport {
        let known = {
            let state = checker.tests();
            let is_whole = state.selection.scope.end == Extent::Whole;
            state.before.clone().filter(|_| is_whole)
        };
        match known {
            Some(report) => report,
            None => run_tests(checker, &self.without_the_run, self.select.clone()).await,
        }
    }
}

/// Returns the test files whose tests depend on changed files: the changed test modules, the
/// modules that import them, and for any other file all test modules in its test folder.
///
/// An empty list stands for the whole command. `None` means that no test depends on the changed
/// files.
fn affected(
    checker: &Checker,
    without: &Snapshot,
    changed: &[&FilePath],
    is_own: &dyn Fn(&FilePath) -> bool,
) -> Option<Vec<String>> {
    let modules = without.files().iter().filter(|file| is_module(file));
    let modules: Vec<&FilePath> = modules.collect();
    let mut files: Vec<&FilePath> = Vec::new();
    for file in changed {
        if is_module(file) || is_own(file) {
            files.push(file);
            let stem = file.name().trim_end_matches(".py");
            let beside = modules.iter().take(SEARCHED_MOST).filter(|other| {
                let text = without.read(other).ok();
                text.is_some_and(|text| names_module(&text, stem))
            });
            files.extend(beside);
        } else {
            let folder = match file.name() {
                "conftest.py" => file.directory(),
                _ => folder_of_tests(without, file)
                    .or_else(|| folders(file).find(|folder| is_called_after_tests(folder)))
                    // It is unknown which tests read a data file, so all tests are affected.
                    .or_else(|| is_test_data(file).then_some(""))
                    .unwrap_or(file.directory()),
            };
            let below = format!("{folder}/");
            let is_below =
                |other: &&&FilePath| folder.is_empty() || other.as_str().starts_with(&below);
            files.extend(modules.iter().filter(is_below));
        }
    }
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(*file));
    let is_whole = checker.tests().selection.scope.end == Extent::Whole;
    if is_whole && (files.is_empty() || files.len() > FILES_MOST) {
        return Some(Vec::new());
    }
    files.truncate(FILES_MOST);
    let entries: Vec<String> = files.iter().map(ToString::to_string).collect();
    (!entries.is_empty()).then_some(entries)
}

/// Returns whether a text imports the module `stem`.
pub(crate) fn names_module(text: &str, stem: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut imports = text.lines().filter(|line| {
        let line = line.trim_start();
        line.starts_with("import ") || line.starts_with("from ")
    });
    imports.any(|line| line.split(|c| !is_part(c)).any(|word| word == stem))
}

fn passed(report: &TestReport) -> BTreeSet<String> {
    let cases = report.cases.iter();
    let passed = cases.filter(|case| case.status == TestStatus::Passed);
    let mut ids: BTreeSet<String> = passed.map(|case| case.id.clone()).collect();
    if report.outcome == TestOutcome::Passed {
        ids.insert(WHOLE_RUN.to_owned());
    }
    ids
}

/// Returns the report's case for a test, or for the file or module of the test that could not be
/// loaded.
fn case_of<'r>(report: &'r TestReport, id: &str) -> Option<&'r TestCase> {
    let holds = |case: &&TestCase| {
        let rest = id.strip_prefix(case.id.as_str());
        let is_part = rest.is_some_and(|rest| rest.starts_with(['.', ':']));
        case.status == TestStatus::Error && is_part
    };
    let mut cases = report.cases.iter();
    let own = cases.find(|case| case.id == id);
    own.or_else(|| report.cases.iter().find(holds))
}

/// Joins the messages of the tests that fail with their original text.
fn details(ids: &[String], with: &TestReport) -> String {
    let mut text = String::new();
    for id in ids {
        let message = match case_of(with, id) {
            Some(case) => crate::evidence::ids::tail(case.message.trim_end(), MESSAGE_MOST),
            None if *id == WHOLE_RUN => {
                crate::evidence::ids::tail(with.output.trim_end(), MESSAGE_MOST)
            }
            None => "it did not run",
        };
        if text.len() + message.len() > MESSAGES_MOST && !text.is_empty() {
            break;
        }
        text.push_str(&format!("{id}\n{message}\n\n"));
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_of_a_test_module_is_recognized() {
        assert!(names_module("from tests.test_base import T\n", "test_base"));
        assert!(names_module(
            "import os\n    from .test_base import T\n",
            "test_base"
        ));
        assert!(!names_module(
            "# test_base\nimport test_base2\n",
            "test_base"
        ));
    }
}
