//! Which failing tests a run has to repair. The others are context: they may stay as they are.
//!
//! - A task about failing tests requires those that it names; without a name all of them, except those
//!   that fail because a module outside the project, or a fixture, is missing.
//! - A bug requires the tests that it names or whose error it quotes; without any, those that reach a
//!   symbol that the task names, by a traceback, by a use, or by an import, or that fail in a file that it
//!   names. Only where it names no code, the symbols that the scout picks, or that are changed, stand in.
//!   Tests that do no more than use a file that the task names are near: they are shown, and the task may
//!   be about something else in that file.
//! - Every other goal requires only tests that the task names or whose error it quotes.
//! - A task that only states renamings and deletions requires none.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::context;
use super::goal::Goal;
use super::hub::{Hub, State};
use super::lookup::Lookup;
use super::names::Names;
use super::proposal::{WHOLE_RUN, failing_ids, tail};
use starling_core::{TestCase, TestReport, TestStatus};
use starling_index::{Certainty, frames, is_test_file};
use starling_syntax::{FilePath, SymbolPath};

/// Steps from a symbol to its users, their users, and so on.
const STEPS: usize = 3;
/// Maximum number of users that are followed.
const USERS: usize = 100;
/// Uses of one symbol that are looked at.
const USES: usize = 200;
/// A shorter error line says too little to be recognized in a task.
const SHORTEST_ERROR: usize = 12;
/// Bytes of the output of a command that names no failing test.
const OUTPUT_MOST: usize = 8_000;

/// What the tests have to show: a renaming or a deletion that a task states repairs none.
pub(super) fn goal(hub: &Hub) -> Goal {
    match hub.stated().are_whole_task {
        true => Goal::Refactoring,
        false => hub.goal,
    }
}

/// Requires failing tests of a report according to the goal, beside those that are required already.
pub(super) fn note_failing(hub: &Hub, report: &TestReport) {
    if hub.stated().are_whole_task {
        return;
    }
    let lookup = hub.lookup();
    let (targets, files) = {
        let state = hub.state();
        let named = state.task_names.iter().flat_map(Names::code);
        let files = named.filter(|one| one.is_module());
        (state.targets.clone(), files.cloned().collect::<Vec<_>>())
    };
    let task = &hub.task.text;
    let found = belonging(hub.goal, task, &lookup, report, &targets, &files);
    let mut state = hub.state();
    state.required.extend(found.required);
    state.near.extend(found.near);
}

/// Notes what the task names, once.
pub(super) fn note_names(hub: &Hub) {
    if hub.state().task_names.is_some() {
        return;
    }
    let names = Names::of(&hub.lookup(), &hub.task.text);
    let mut state = hub.state();
    let symbols = names.symbols().filter(|one| !one.is_module()).cloned();
    state.targets.extend(symbols);
    state.task_names = Some(names);
}

/// Notes symbols that a bug may be about which names no code by itself.
pub(super) fn note_targets(hub: &Hub, symbols: &[SymbolPath]) {
    let do_lead = hub.state().task_names.as_ref().is_some_and(Names::lead);
    if !do_lead {
        note_begin(hub, symbols);
    }
}

/// Notes symbols that the run is about, whatever the task names.
pub(super) fn note_begin(hub: &Hub, symbols: &[SymbolPath]) {
    let before = {
        let mut state = hub.state();
        state.targets.extend_from_slice(symbols);
        state.before.clone()
    };
    if let Some(before) = before {
        note_failing(hub, &before);
    }
}

/// A bug whose description leads to no failing test is judged by the symbols that are changed for it.
pub(super) fn note_change(hub: &Arc<Hub>, symbols: &[SymbolPath]) {
    let goal = goal(hub);
    let is_open = {
        let state = hub.state();
        goal == Goal::Bug && state.required.is_empty() && !state.failing_before.is_empty()
    };
    if is_open {
        let symbols: Vec<SymbolPath> = symbols
            .iter()
            .filter(|symbol| !symbol.is_module() && !is_test_file(&symbol.file))
            .cloned()
            .collect();
        note_targets(hub, &symbols);
    }
}

/// Notes the tests before the run. Where the task tells of a bug in code that it names, and no failing
/// test reaches that code, those tests are no part of the task.
pub(super) fn note_before(hub: &Hub, before: &TestReport) {
    note_failing(hub, before);
    let is_bug = goal(hub) == Goal::Bug;
    let lookup = hub.lookup();
    // What a test without a known text reaches is not known.
    let is_known = |case: &TestCase| test_of(&lookup, case).is_some();
    let are_known = failing_cases(before).iter().all(is_known);
    let mut state = hub.state();
    let is_named = |names: &Names| names.lead() || !names.by_word.is_empty();
    let is_told = is_bug && state.task_names.as_ref().is_some_and(is_named);
    let are_others = state.required.is_empty() && state.near.is_empty();
    state.beside_failures = is_told && are_known && are_others;
}

/// The report of the tests before the run, with those failing tests alone that matter for the task;
/// `None` where none does. Until some are required, all of them may be the cause of a bug.
pub(super) fn shown(hub: &Hub) -> Option<TestReport> {
    let goal = goal(hub);
    let state = hub.state();
    let mut report = state.before.clone()?;
    let failing = failing_ids(&report);
    let is_shown = |id: &String| is_shown(goal, &state, id);
    if !failing.iter().any(is_shown) {
        return None;
    }
    report
        .cases
        .retain(|case| !failing.contains(&case.id) || is_shown(&case.id));
    Some(report)
}

/// The tests that failed before the run and do not matter for the task.
pub(super) fn left_alone(hub: &Hub) -> Vec<String> {
    let goal = goal(hub);
    let state = hub.state();
    let failing = state.before.as_ref().map(failing_ids).unwrap_or_default();
    let mut alone = failing;
    let is_shown = |id: &String| is_shown(goal, &state, id);
    alone.retain(|id| id != WHOLE_RUN && !is_shown(id));
    alone
}

/// Whether a failing test is shown to models.
fn is_shown(goal: Goal, state: &State, id: &str) -> bool {
    match goal {
        Goal::Bug | Goal::RedTests if state.required.is_empty() => {
            let is_near = state.near.is_empty() || state.near.contains(id);
            !state.beside_failures && is_near
        }
        Goal::Bug
        | Goal::RedTests
        | Goal::NewTest
        | Goal::Feature
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => state.required.contains(id),
    }
}

/// The failing tests that a run may mend now: those that have to pass; without any, those that the task
/// may be about.
pub(super) fn to_mend(state: &State) -> BTreeSet<String> {
    if !state.required.is_empty() {
        return &state.required & &state.failing;
    }
    match (state.beside_failures, state.near.is_empty()) {
        (true, _) => BTreeSet::new(),
        (false, true) => state.failing.clone(),
        (false, false) => &state.near & &state.failing,
    }
}

/// The failing tests of a report that belong to a task.
#[derive(Debug, Default)]
struct Belonging {
    required: BTreeSet<String>,
    near: BTreeSet<String>,
}

/// `targets` are the symbols that the task is about, `files` the files that it names.
fn belonging(
    goal: Goal,
    task: &str,
    lookup: &Lookup,
    report: &TestReport,
    targets: &[SymbolPath],
    files: &[SymbolPath],
) -> Belonging {
    let failing = failing_cases(report);
    let ids = |fits: &dyn Fn(&TestCase) -> bool| -> BTreeSet<String> {
        let fitting = failing.iter().filter(|case| fits(case));
        fitting.map(|case| case.id.clone()).collect()
    };
    let named = ids(&|case| is_named(task, case) || is_quoted(task, case));
    let mut near = BTreeSet::new();
    let required = match goal {
        Goal::RedTests => {
            let in_files = ids(&|case| is_in_named_file(task, case));
            match (named.is_empty(), in_files.is_empty()) {
                (false, _) => named,
                (true, false) => in_files,
                (true, true) => {
                    ids(&|case| !lacks_foreign_module(lookup, case) && !lacks_fixture(case))
                }
            }
        }
        // A test that the task names or quotes is the only one that is meant.
        Goal::Bug if !named.is_empty() => named,
        Goal::Bug => {
            let (reach, of_files) = (Reach::of(lookup, targets), Reach::of(lookup, files));
            near = ids(&|case| !lacks_fixture(case) && of_files.includes(lookup, case));
            ids(&|case| {
                let is_reached = || reach.includes(lookup, case) || of_files.is_run(lookup, case);
                !lacks_fixture(case) && is_reached()
            })
        }
        Goal::NewTest
        | Goal::Feature
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => named,
    };
    near.retain(|id| !required.contains(id));
    Belonging { required, near }
}

/// The failing tests of a report; a command that fails as a whole is one test.
fn failing_cases(report: &TestReport) -> Vec<TestCase> {
    let ids = failing_ids(report);
    let named = report.cases.iter().filter(|case| ids.contains(&case.id));
    let mut failing: Vec<TestCase> = named.cloned().collect();
    if ids.iter().any(|id| id == WHOLE_RUN) {
        failing.push(TestCase {
            id: WHOLE_RUN.to_owned(),
            status: TestStatus::Error,
            message: tail(&report.output, OUTPUT_MOST).to_owned(),
        });
    }
    failing
}

/// Whether a task names a test, by its id or by the last part of its id.
fn is_named(task: &str, case: &TestCase) -> bool {
    if case.id == WHOLE_RUN {
        return false;
    }
    let id = case.id.split('[').next().unwrap_or(&case.id);
    let last = id.rsplit(['.', ':', '/']).next().unwrap_or(id);
    let is_file = id.ends_with(".py");
    has_word(task, id) || !is_file && has_word(task, last)
}

/// Whether a task names the test file of a test.
fn is_in_named_file(task: &str, case: &TestCase) -> bool {
    let (file, _) = case.id.split_once("::").unwrap_or((&case.id, ""));
    let name = FilePath::new(file).name().to_owned();
    name.ends_with(".py") && has_word(task, name.trim_end_matches(".py"))
}

/// Whether a task holds the error of a test.
fn is_quoted(task: &str, case: &TestCase) -> bool {
    let lines = case.message.lines().rev();
    let error = lines.map(|line| {
        line.trim_start_matches("E ")
            .trim_start_matches("> ")
            .trim()
    });
    let mut assertions = error.clone().filter(|line| line.starts_with("assert "));
    if assertions.any(|line| line.len() >= SHORTEST_ERROR && task.contains(line)) {
        return true;
    }
    let mut errors = error.filter(|line| line.contains("Error: ") || line.contains("Exception: "));
    errors
        .next()
        .is_some_and(|error| error.len() >= SHORTEST_ERROR && task.contains(error))
}

/// Whether a test fails because a module is missing that is no part of the project.
fn lacks_foreign_module(lookup: &Lookup, case: &TestCase) -> bool {
    let Some((_, rest)) = case
        .message
        .split_once("ModuleNotFoundError: No module named '")
    else {
        return false;
    };
    let module = rest.split(['\'', '.']).next().unwrap_or_default();
    let is_part = |file: &FilePath| {
        let mut parts = file.as_str().split('/');
        parts.any(|part| part.trim_end_matches(".py") == module)
    };
    !lookup.files().iter().any(is_part)
}

/// Whether a test could not be set up, because no plugin or conftest.py defines a fixture of it.
fn lacks_fixture(case: &TestCase) -> bool {
    let lines = case.message.lines();
    let mut errors = lines
        .filter_map(|line| line.strip_prefix("E "))
        .map(str::trim);
    errors.any(|error| error.starts_with("fixture '") && error.ends_with("' not found"))
}

/// The tests that run one of the symbols, as far as their tracebacks and their source show.
pub(super) fn reached(
    lookup: &Lookup,
    symbols: &[SymbolPath],
    tests: &[TestCase],
) -> BTreeSet<String> {
    let reach = Reach::of(lookup, symbols);
    let reached = tests.iter().filter(|case| reach.includes(lookup, case));
    reached.map(|case| case.id.clone()).collect()
}

/// Symbols with everything that uses them.
struct Reach<'a> {
    targets: &'a [SymbolPath],
    users: Vec<SymbolPath>,
}

impl Reach<'_> {
    fn of<'a>(lookup: &Lookup, targets: &'a [SymbolPath]) -> Reach<'a> {
        let mut users: Vec<SymbolPath> = targets.to_vec();
        users.retain(|symbol| !symbol.is_module());
        let mut from = 0;
        for step in 0..STEPS {
            let until = users.len();
            for at in from..until {
                let uses = lookup.index().references(&users[at].to_string(), USES);
                for one in uses.found {
                    // Guesses are not followed from guess to guess.
                    let is_sure = one.certainty != Certainty::Possible || step == 0;
                    let is_new = !users.contains(&one.symbol);
                    if is_sure && is_new && !one.symbol.is_module() && users.len() < USERS {
                        users.push(one.symbol);
                    }
                }
            }
            from = until;
        }
        Reach { targets, users }
    }

    /// Whether the traceback of a failing test leads through one of the symbols.
    fn is_run(&self, lookup: &Lookup, case: &TestCase) -> bool {
        frames(&case.message).into_iter().any(|frame| {
            let place = lookup.tree(&FilePath::new(frame.path));
            place.is_ok_and(|tree| {
                let place = &tree.at_line(frame.line).path;
                self.targets.iter().any(|target| target.encloses(place))
            })
        })
    }

    /// Whether a failing test runs one of the symbols, as far as its traceback and its source show.
    fn includes(&self, lookup: &Lookup, case: &TestCase) -> bool {
        self.is_run(lookup, case)
            || match test_of(lookup, case) {
                Some(test) => self.is_used_by(lookup, &test),
                None => {
                    let names = self.targets.iter().filter(|target| !target.is_module());
                    names
                        .into_iter()
                        .any(|target| has_word(&case.message, target.base_name()))
                }
            }
    }

    fn is_used_by(&self, lookup: &Lookup, test: &SymbolPath) -> bool {
        let source = lookup.symbol(test).map(|found| found.source().to_owned());
        let source = source.unwrap_or_default();
        let class = test.name.rsplit_once('.').map(|(class, _)| class);
        let is_set_up = |user: &SymbolPath| {
            let of_class = user.name.rsplit_once('.').map(|(class, _)| class);
            user.base_name().to_lowercase().starts_with("setup") && of_class == class
        };
        let is_test_code =
            |user: &SymbolPath| is_test_file(&user.file) || user.file.name() == "conftest.py";
        let uses = |user: &SymbolPath| {
            let in_file = user.file == test.file;
            test.encloses(user)
                || in_file && class.is_some() && is_set_up(user)
                // A fixture is asked for by its name.
                || is_test_code(user) && has_word(&source, user.base_name())
        };
        self.users.iter().any(uses)
            || self
                .targets
                .iter()
                .any(|one| imports(lookup, &test.file, one))
    }
}

/// Whether a file imports the module that is a target.
pub(super) fn imports(lookup: &Lookup, file: &FilePath, target: &SymbolPath) -> bool {
    let Some(module) = target.file.name().strip_suffix(".py") else {
        return false;
    };
    let is_import = |line: &str| line.starts_with("import ") || line.starts_with("from ");
    target.is_module()
        && lookup.tree(file).is_ok_and(|tree| {
            let mut lines = tree.text().lines().map(str::trim);
            lines.any(|line| is_import(line) && has_word(line, module))
        })
}

/// The symbol of a test, by its traceback or by its id.
fn test_of(lookup: &Lookup, case: &TestCase) -> Option<SymbolPath> {
    let by_traceback = context::test_symbol(lookup, case).filter(|test| !test.is_module());
    if by_traceback.is_some() {
        return by_traceback;
    }
    let id = case.id.split('[').next().unwrap_or(&case.id);
    let name = id.rsplit(['.', ':']).next().unwrap_or(id);
    let mut defined = lookup.index().definitions(name);
    defined.retain(|one| {
        let stem = one.symbol.file.name().trim_end_matches(".py");
        is_test_file(&one.symbol.file) && has_word(id, stem)
    });
    match defined.as_slice() {
        [only] => Some(only.symbol.clone()),
        _ => None,
    }
}

/// Whether a name stands in a text, not as a part of a longer name.
pub(super) fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}

#[cfg(test)]
mod tests;
