//! The tests as they were: where a run changes test files that the task does not ask to change, its code
//! must also pass them with their original text. Else the tests prove nothing but that they were changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::apply;
use super::asked;
use super::concerned;
use super::ending;
use super::expected;
use super::gate::run_tests;
use super::hub::{Epoch, Hub};
use super::other_names::{self, Loading};
use super::own_tests::OwnTests;
use super::proposal::{OnlyAsChanged, TestEvidence, WHOLE_RUN, failing_ids};
use super::scripts;
use super::selection::Extent;
use super::steady;
use starling_core::{Approval, TestCase, TestOutcome, TestReport, TestStatus};
use starling_index::is_test_file;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// If the tests of more files would have to be run, the whole command runs.
const FILES_MOST: usize = 20;
/// Maximum number of test files that are searched for the name of a changed one.
const SEARCHED_MOST: usize = 400;
/// Bytes of the message of one test, and of all of them.
const MESSAGE_MOST: usize = 1_200;
const MESSAGES_MOST: usize = 3_600;

/// The evidence of a state of the workspace together with the tests that pass in it only as the run
/// changed them. `report` is the test run that the evidence is made of.
pub(super) async fn judged(
    hub: &Arc<Hub>,
    after: &Snapshot,
    tests: TestEvidence,
    report: Option<&TestReport>,
) -> TestEvidence {
    match report {
        Some(report) => tests.with_changed(only_as_changed(hub, after, report).await),
        None => tests,
    }
}

/// Finds out at the end of a run which tests pass only as the run changed them. Gives them in words where
/// nobody looks at it: they keep the run from settling.
pub(super) async fn at_end(hub: &Arc<Hub>) -> Vec<String> {
    let (epoch, world, latest) = {
        let state = hub.state();
        (state.epoch, state.world.clone(), state.latest.clone())
    };
    let Some(latest) = latest else {
        return Vec::new();
    };
    if known(hub).is_none() {
        let found = only_as_changed(hub, &world, &latest).await;
        remember(hub, epoch, found);
    }
    let tests = known(hub).map(|found| found.tests).unwrap_or_default();
    let said = |id: &String| format!("{id} passes only as the run changed the tests");
    match hub.task.approval {
        Approval::Auto => tests.iter().map(said).collect(),
        Approval::Proxy | Approval::Ask => Vec::new(),
    }
}

/// What was found of the workspace as it is now; `None` where that is not known.
pub(super) fn known(hub: &Hub) -> Option<OnlyAsChanged> {
    let state = hub.state();
    let known = state.only_as_changed.as_ref();
    let known = known.filter(|(epoch, _)| *epoch == state.epoch);
    known.map(|(_, found)| found.clone())
}

/// Keeps what was found of a state of the workspace.
pub(super) fn remember(hub: &Hub, epoch: Epoch, found: OnlyAsChanged) {
    hub.state().only_as_changed = Some((epoch, found));
}

/// Whether two states of the workspace differ in files of the tests.
pub(super) fn differ(hub: &Hub, without: &Snapshot, with: &Snapshot) -> bool {
    let changed = expected::changed_files(without, with);
    let scripts = scripts::of_test_command(hub);
    let own = own_tests(hub, without, None);
    let is_of_tests = |file: &FilePath| {
        let is_beside = || {
            let (Ok(was), Ok(is)) = (without.read(file), with.read(file)) else {
                return false;
            };
            own.are_beside(file) && own.restored(&hub.task.text, file, &was, &is).is_some()
        };
        is_of_tests(without, file) || scripts.contains(file) || own.are_all_of(file) || is_beside()
    };
    changed.iter().any(is_of_tests)
}

/// The tests in files that are no test files by their names, as far as the tests that ran tell.
pub(super) fn own_tests(hub: &Hub, without: &Snapshot, report: Option<&TestReport>) -> OwnTests {
    let state = hub.state();
    let reports = state.before.iter().chain(report);
    let cases = reports.flat_map(|report| &report.cases);
    let ids = cases.map(|case| case.id.clone());
    let ids = ids.chain(state.expected.iter().cloned()).collect();
    let command = hub.outside.tests.command().unwrap_or_default();
    OwnTests::of(without, &command, ids)
}

/// The tests that pass in `after` with the test files that the run changed, and do not pass with the
/// original ones; with them those that passed before the run and now fail with the original text.
async fn only_as_changed(hub: &Arc<Hub>, after: &Snapshot, report: &TestReport) -> OnlyAsChanged {
    let Some(originals) = Originals::of(hub, after, report) else {
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
        // The code is as it was: what failed before fails with the original tests as well.
        let state = hub.state();
        let failed = state.failing_before.union(&state.required);
        let passes = passed(report);
        found.tests = failed.filter(|id| passes.contains(*id)).cloned().collect();
    } else {
        let (mut with, world) = originals.run(hub, after).await;
        let known: BTreeSet<String> = failing_ids(report).into_iter().collect();
        // On the same text: what makes a file loadable stays.
        steady::confirm(hub, &world, &known, &mut with).await;
        let mut bad = originals.fails(&with, report);
        let is_excused = |id: &String| {
            let message = case_of(&with, id).map(|case| case.message.as_str());
            asked::for_other_names(&hub.task.text, message.unwrap_or_default())
        };
        bad.retain(|id| !is_excused(id));
        if !bad.is_empty() {
            let before = originals.before(hub).await;
            bad.retain(|id| counts(id, &before, report));
        }
        found.tests = bad.into_iter().collect();
        found.details = details(&found.tests, &with);
        found.unsteady = steady::unsteady(&with).cloned().collect();
    }
    let is_asked = |id: &String| {
        asked::to_change_test(&hub.task.text, id) || asked::to_remove(&hub.task.text, id)
    };
    let (before, changed) = (&originals.without_the_run, &originals.files);
    let is_concerned = |id: &String| concerned::is_concerned(before, after, changed, id);
    for ids in [&mut found.tests, &mut found.unsteady] {
        ids.retain(|id| !is_asked(id) && is_concerned(id));
    }
    found
}

/// Whether a test that does not pass with the original files counts: it was there before the run where it
/// passes now, and it passed before the run where it did not run now.
fn counts(id: &String, before: &TestReport, now: &TestReport) -> bool {
    let failed = failing_ids(before);
    if id == WHOLE_RUN {
        return passed(now).contains(id) || !failed.contains(id);
    }
    let is_unloaded = |file: &str| failed.iter().any(|id| id == file);
    let in_unloaded = id
        .split_once("::")
        .is_some_and(|(file, _)| is_unloaded(file));
    if passed(now).contains(id) {
        return in_unloaded || expected::ran(before).contains(id);
    }
    let did_run = matches!(before.outcome, TestOutcome::Passed | TestOutcome::Failed);
    let is_file = id.ends_with(".py") && did_run;
    passed(before).contains(id) || is_file && !is_unloaded(id)
}

/// A state of the workspace in which the files of the tests are as they were before the run.
struct Originals {
    world: Snapshot,
    without_the_run: Snapshot,
    /// Test files to run; empty: all that the command runs.
    select: Vec<String>,
    /// Whether nothing else was changed.
    are_all_that_changed: bool,
    /// The files that are as they were.
    held: Vec<FilePath>,
    /// These and the files of code whose tests are as they were.
    files: Vec<FilePath>,
    /// Files whose own tests could not all be put back.
    unheld: Vec<String>,
    /// Whether there is nothing to run.
    are_only_unheld: bool,
}

impl Originals {
    /// Runs the tests with the original files, and gives what they ran in. A file that cannot be loaded for lack of a name which the
    /// task changes is run again so that it can: only the tests that use the name are to miss it.
    async fn run(&self, hub: &Arc<Hub>, after: &Snapshot) -> (TestReport, Snapshot) {
        let task = &hub.task.text;
        let mut world = self.world.clone();
        let mut report = run_tests(hub, &world, self.select.clone()).await;
        for loading in [Loading::Imports, Loading::ModuleLevel] {
            let mut is_other = false;
            for file in &self.held {
                let missing = other_names::missing(task, &report, file);
                let texts = (self.without_the_run.read(file), after.read(file));
                if let (false, (Ok(original), Ok(new))) = (missing.is_empty(), texts) {
                    let text = other_names::loadable(file, &original, &new, &missing, loading);
                    world = world.with(file.clone(), Some(text));
                    is_other = true;
                }
            }
            if is_other {
                report = run_tests(hub, &world, self.select.clone()).await;
            }
        }
        (report, world)
    }

    /// `None` where no test file is changed, or only such as the task asks to change, or no test depends
    /// on it. A new test file changes no other one; a new `conftest.py` does.
    fn of(hub: &Hub, after: &Snapshot, report: &TestReport) -> Option<Originals> {
        let without = apply::without_the_run(&hub.state());
        let changed = expected::changed_files(&without, after);
        let scripts = scripts::of_test_command(hub);
        let own = own_tests(hub, &without, Some(report));
        let is_of_tests = |file: &FilePath| {
            is_of_tests(&without, file) || scripts.contains(file) || own.are_all_of(file)
        };
        let holds_tests = |file: &FilePath| is_module(file) || own.are_all_of(file);
        let held = changed.iter().filter(|file| is_of_tests(file));
        let task = &hub.task.text;
        // A name that a file of the code has as well means that one.
        let is_code = |token: &str| {
            let known = without.files().iter().filter(|file| !is_of_tests(file));
            known.into_iter().any(|file| asked::names_file(token, file))
        };
        let may_change =
            |file: &FilePath| asked::to_change_file(task, file, holds_tests(file), &is_code);
        let held: Vec<&FilePath> = held.filter(|file| !may_change(file)).collect();
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
            world = world.with((*file).clone(), without.read(file).ok());
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
        let select = match hub.outside.tests.selects() {
            true if are_only_unheld => Vec::new(),
            true => affected(hub, &without, &existing, &is_own)?,
            false => Vec::new(),
        };
        let are_all_that_changed = expected::changed_files(&without, &world).is_empty();
        let held: Vec<FilePath> = held.into_iter().cloned().collect();
        let beside = beside.into_iter().map(|(file, _)| file.clone());
        let files = held.iter().cloned().chain(beside).collect();
        Some(Originals {
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

    /// The tests that do not pass with the original files, as `with` reports them, and do not fail with
    /// the changed ones.
    fn fails(&self, with: &TestReport, changed: &TestReport) -> BTreeSet<String> {
        let is_run = |id: &String| {
            let mut files = self.select.iter();
            self.select.is_empty() || files.any(|file| expected::is_in(id, file))
        };
        let passes_with = passed(with);
        let mut bad: BTreeSet<String> = failing_ids(with).into_iter().collect();
        let passes = passed(changed);
        // A file that cannot be loaded stands for its tests.
        let is_known_file = |id: &String| {
            let mut passes = passes.iter();
            let file = id.ends_with(".py");
            file && passes.any(|test| test.split_once("::").is_some_and(|(of, _)| of == id))
        };
        bad.retain(|id| !is_known_file(id));
        let unsteady: BTreeSet<&String> = steady::unsteady(with).collect();
        let gone = passes.iter().filter(|id| !passes_with.contains(*id));
        let gone = gone.filter(|id| !unsteady.contains(id));
        // The command as a whole fails where no test of it does.
        let gone = gone.filter(|id| *id != WHOLE_RUN);
        bad.extend(gone.filter(|id| is_run(id)).cloned());
        for id in failing_ids(changed) {
            bad.remove(&id);
        }
        bad
    }

    /// The same tests before the run.
    async fn before(&self, hub: &Arc<Hub>) -> TestReport {
        let known = {
            let state = hub.state();
            let is_whole = state.reach.end == Extent::Whole;
            state.before.clone().filter(|_| is_whole)
        };
        match known {
            Some(report) => report,
            None => run_tests(hub, &self.without_the_run, self.select.clone()).await,
        }
    }
}

/// Whether a file belongs to the tests: it holds tests, lies in a folder of tests, or below a folder that
/// has tests in its name and beside it.
pub(super) fn is_of_tests(world: &Snapshot, file: &FilePath) -> bool {
    let is_test = is_test_file(file) && !ending::is_documentation(file);
    is_test
        || folder_of_tests(world, file).is_some()
        || is_test_data(file)
        || is_configuration(file)
}

/// Whether a file configures the test runner: it can load plugins, and say where modules come from.
fn is_configuration(file: &FilePath) -> bool {
    const NAMES: [&str; 6] = [
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "unittest.cfg",
        ".coveragerc",
    ];
    NAMES.contains(&file.name())
}

/// Whether a file lies in a folder of what tests compare with.
fn is_test_data(file: &FilePath) -> bool {
    const FOLDERS: [&str; 8] = [
        "testdata",
        "fixtures",
        "golden",
        "goldens",
        "goldenfiles",
        "snapshots",
        "__snapshots__",
        "cassettes",
    ];
    const DATA: [&str; 5] = ["data", "resources", "files", "assets", "cases"];
    let name = |folder: &str| folder.rsplit('/').next().unwrap_or(folder).to_lowercase();
    let is_data = |folder: &str| {
        let name = name(folder);
        let mut words = name.split(['_', '-', '.']);
        is_called_after_tests(folder) && words.any(|word| DATA.contains(&word))
    };
    folders(file).any(|folder| FOLDERS.contains(&name(folder).as_str()) || is_data(folder))
}

/// The outermost folder above a file that is called after tests and holds some.
fn folder_of_tests<'f>(world: &Snapshot, file: &'f FilePath) -> Option<&'f str> {
    folders(file).find(|folder| is_called_after_tests(folder) && holds_tests(world, folder))
}

/// The folders above a file, the outermost first, without the root.
fn folders(file: &FilePath) -> impl Iterator<Item = &str> {
    let directory = file.directory();
    let ends = directory.match_indices('/').map(|(at, _)| at);
    let folders = ends.chain([directory.len()]).map(|end| &directory[..end]);
    folders.filter(|folder| !folder.is_empty())
}

fn is_called_after_tests(folder: &str) -> bool {
    let name = folder.rsplit('/').next().unwrap_or(folder).to_lowercase();
    let mut words = name.split(['_', '-', '.']);
    words.any(|word| matches!(word, "test" | "tests" | "testing"))
}

/// Whether test modules, or a `conftest.py`, lie right in a folder.
fn holds_tests(world: &Snapshot, folder: &str) -> bool {
    let mut files = world.files().iter();
    files
        .any(|file| file.directory() == folder && (is_module(file) || file.name() == "conftest.py"))
}

/// Whether a file holds tests by its name.
pub(super) fn is_module(file: &FilePath) -> bool {
    let name = file.name();
    let is_python = name.ends_with(".py");
    is_python && (name.starts_with("test_") || name.ends_with("_test.py") || name == "tests.py")
}

/// The test files whose tests depend on changed ones: those themselves, those that name one of them, and
/// for other files all in the same folder of tests. Empty where that is all that the command runs; `None`
/// where there are none.
fn affected(
    hub: &Hub,
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
                    // Which tests read it is not known.
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
    let is_whole = hub.state().reach.end == Extent::Whole;
    if is_whole && (files.is_empty() || files.len() > FILES_MOST) {
        return Some(Vec::new());
    }
    files.truncate(FILES_MOST);
    let entries: Vec<String> = files.iter().map(ToString::to_string).collect();
    (!entries.is_empty()).then_some(entries)
}

/// Whether a line of a text imports a module by this name.
pub(super) fn names_module(text: &str, stem: &str) -> bool {
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

/// The report's case of a test, or of the file or module that holds it and could not be loaded.
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

/// Why tests do not pass with their original text.
fn details(ids: &[String], with: &TestReport) -> String {
    let mut text = String::new();
    for id in ids {
        let message = match case_of(with, id) {
            Some(case) => super::proposal::tail(case.message.trim_end(), MESSAGE_MOST),
            None if *id == WHOLE_RUN => super::proposal::tail(with.output.trim_end(), MESSAGE_MOST),
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
    use starling_workspace::Workspace;

    #[test]
    fn files_of_the_tests_are_told_by_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        for file in [
            "pkg/test/test_a.py",
            "pkg/test/data/x.json",
            "pkg/testing/tools.py",
            "pkg/code.py",
            "tests/README.md",
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let world = Workspace::open(dir.path().to_owned()).unwrap();
        let world = world.snapshot(Default::default());
        let is = |file: &str| is_of_tests(&world, &FilePath::new(file));
        for file in [
            "pkg/test/test_a.py",
            "pkg/test/data/x.json",
            "pkg/test/new.py",
            "tests/x.json",
            "conftest.py",
            "test_root.py",
        ] {
            assert!(is(file), "{file}");
        }
        for file in ["pkg/testing/tools.py", "pkg/code.py", "tests/README.md"] {
            assert!(!is(file), "{file}");
        }
    }

    #[test]
    fn an_import_names_a_test_module() {
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
