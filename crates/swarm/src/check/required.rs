//! Determines which failing tests a run must fix. The other failing tests are context and may keep
//! failing.
//!
//! - A task about failing tests requires the tests that it names, by their names, by their file, or
//!   by the module that they test. If it names none, it requires all failing tests, except tests
//!   that fail because a module outside the project or a fixture is missing.
//! - A bug requires the tests that the task names or whose error it quotes. If there are none, it
//!   requires the tests that reach a symbol named in the task (by a traceback, a use or an import)
//!   and the tests whose traceback leads through a file named in the task. If the task names no
//!   code, the symbols that the scout picks or that are changed are used instead. A class counts only
//!   if the task names no function or method, and not in an example alone ([`Names::targets`]). Tests that only
//!   use a file named in the task, or a module whose body is picked or changed, are "near": they are
//!   shown to models, but the task may be about something else in that file. Tests that reach the
//!   code only from afar, or that one of the task's wishes fits only by its words, are "possible":
//!   they are shown, and a run that leaves them red is not proven ([`wishes`]). Tests that run only
//!   another subcommand do not reach the code of a subcommand ([`conditions`]). Once the tests that
//!   use the changed code directly pass, those that only run it are set aside ([`set_aside`]).
//! - A bug also requires the failing tests of a file, a folder or a module whose tests the task names,
//!   unless it names them as the place of something else, such as a new test ([`named_files`]). If it
//!   names no other code, it requires only these tests.
//! - Every other goal requires only the tests that the task names or whose error it quotes.
//! - A task that states only renames and deletions requires no tests.
//! - A case of a parametrized test is a test of its own where the task names a case.
//! - "The other red tests are unrelated" leaves every test that the task does not name. If it names no
//!   code either, tests that its words fit stay possible.
//! - Tests that the task says to leave as they are, and tests that fail because a module cannot be
//!   found and that the task does not name, are never required.

mod conditions;
mod modules;
mod named_files;
pub(crate) mod set_aside;
#[cfg(test)]
mod tests;
mod wishes;

use std::collections::BTreeSet;

use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::ids::tail;
use crate::evidence::test_evidence::failing_ids;
use crate::lookup::{Lookup, test_symbol};
use crate::state::checker::Checker;
use crate::state::test_state::TestState;
use crate::task::command_line::CommandLine;
use crate::task::goal::excluded::ExcludedTests;
use crate::task::goal::{self, Goal};
use crate::task::names::Names;
use crate::task::runnable::without_commands;
use crate::task::test_names::{names_function, names_test};
use crate::task::whole_word::has_word;
use conditions::{Condition, Conditions};
pub(crate) use set_aside::error_lines;
use starling_core::{TestCase, TestReport, TestStatus};
use starling_index::{Certainty, frames, is_test_file};
use starling_syntax::{FilePath, SymbolPath};
use wishes::{TestWords, Wishes, WordFit};

/// Maximum number of steps from a symbol to its users, to their users, and so on.
const STEPS: usize = 3;
/// Maximum number of steps from a symbol to a test that is near it.
const NEAR: usize = 2;
/// Maximum number of users (symbols whose code uses another symbol) that are followed.
const USERS: usize = 100;
/// Maximum number of uses of one symbol that are considered.
const USES: usize = 200;
/// Minimum length in bytes of an error line that is searched for in a task. Shorter lines are not
/// specific enough.
const SHORTEST_ERROR: usize = 12;
/// Maximum size in bytes of the output of a command that names no failing test.
const OUTPUT_MOST: usize = 8_000;

/// Returns the goal of the task. A task that states only renames and deletions counts as a
/// refactoring, which fixes no tests.
pub(crate) fn goal(checker: &Checker) -> Goal {
    match checker.stated().are_whole_task {
        true => Goal::Refactoring,
        false => checker.goal,
    }
}

/// Adds the failing tests of a report that the goal requires to the required tests.
pub(crate) fn note_failing(checker: &Checker, report: &TestReport) {
    if checker.stated().are_whole_task {
        return;
    }
    let lookup = checker.lookup();
    let about = {
        let state = checker.tests();
        let named = state.required.names.iter().flat_map(Names::code);
        let files = named.filter(|one| one.is_module());
        let beside = state.required.names.iter().flat_map(Names::beside_data);
        let files = files.chain(beside);
        TaskCode {
            targets: state.required.targets.clone(),
            files: files.cloned().collect(),
            is_named: state.required.names.as_ref().is_some_and(Names::lead),
            command_line: (state.required.names.as_ref())
                .map(|names| names.command_line.clone())
                .unwrap_or_default(),
        }
    };
    let task = &checker.task.text;
    let found = belonging(checker.goal, task, &lookup, report, &about);
    let excluded = ExcludedTests::of(task);
    let mut left = failing_ids(report);
    let may_be = |id: &String| found.possible.contains(id);
    left.retain(|id| {
        excluded.holds(id) || excluded.hold_the_rest() && id != WHOLE_RUN && !may_be(id)
    });
    let mut state = checker.tests();
    let required = &mut state.required;
    required.ids.extend(found.required);
    required.near.extend(found.near);
    required.possible.extend(found.possible);
    required.excluded.extend(left);
    for beside in [&mut required.possible, &mut required.excluded] {
        beside.retain(|id| !required.ids.contains(id));
    }
}

/// Resolves and stores the names in the task, once.
pub(crate) fn note_names(checker: &Checker) {
    if checker.tests().required.names.is_some() {
        return;
    }
    let names = Names::of(&checker.lookup(), &checker.task.text);
    let mut state = checker.tests();
    let symbols = names.targets().filter(|one| !one.is_module()).cloned();
    state.required.targets.extend(symbols);
    state.required.names = Some(names);
}

/// Adds symbols that the reported bug may be in, if the task names no code.
pub(crate) fn note_targets(checker: &Checker, symbols: &[SymbolPath]) {
    let do_lead = checker
        .tests()
        .required
        .names
        .as_ref()
        .is_some_and(Names::lead);
    if !do_lead {
        note_begin(checker, symbols);
    }
}

/// Records that the task is also about these symbols, even if its text names other code. Then decides
/// again which tests must pass.
pub(crate) fn note_begin(checker: &Checker, symbols: &[SymbolPath]) {
    let before = {
        let mut state = checker.tests();
        state.required.targets.extend_from_slice(symbols);
        state.before.clone()
    };
    if let Some(before) = before {
        note_failing(checker, &before);
    }
}

/// Adds the changed symbols to the symbols that the task is about, if the task describes a bug and
/// its description leads to no failing test.
pub(crate) fn note_change(checker: &Checker, symbols: &[SymbolPath]) {
    let goal = goal(checker);
    let is_open = {
        let state = checker.tests();
        goal == Goal::Bug && state.required.ids.is_empty() && !state.failing_before.is_empty()
    };
    if is_open {
        let symbols: Vec<SymbolPath> = symbols
            .iter()
            .filter(|symbol| !symbol.is_module() && !is_test_file(&symbol.file))
            .cloned()
            .collect();
        note_targets(checker, &symbols);
    }
}

/// Stores the failing tests from before the run. If the task describes a bug in code that it names
/// and no failing test reaches that code, the failing tests are not part of the task.
pub(crate) fn note_before(checker: &Checker, before: &TestReport) {
    note_failing(checker, before);
    let is_bug = goal(checker) == Goal::Bug;
    let lookup = checker.lookup();
    // If the source of a test is not found, it is unknown which code the test reaches.
    let is_known = |case: &TestCase| test_of(&lookup, case).is_some();
    let are_known = failing_cases(before).iter().all(is_known);
    let mut state = checker.tests();
    // A plain word, such as `page`, may be ordinary English instead of a name of code.
    let is_told = is_bug && state.required.names.as_ref().is_some_and(Names::lead);
    let may_belong = || state.required.near.iter().chain(&state.required.possible);
    let are_others = state.required.ids.is_empty() && may_belong().next().is_none();
    state.required.beside_failures = is_told && are_known && are_others;
}

/// Returns the test report from before the run with only those failing tests that matter for the
/// task; `None` if no failing test matters. While no test is required, any failing test may be
/// caused by the bug.
pub(crate) fn shown(checker: &Checker) -> Option<TestReport> {
    let goal = goal(checker);
    let tests = checker.tests();
    let mut report = tests.before.clone()?;
    let failing = failing_ids(&report);
    let is_shown = |id: &String| is_shown(goal, &tests, id);
    if !failing.iter().any(is_shown) {
        return None;
    }
    report
        .cases
        .retain(|case| !failing.contains(&case.id) || is_shown(&case.id));
    Some(report)
}

/// Returns the tests that failed before the run and that the task is not about.
pub(crate) fn left_alone(checker: &Checker) -> Vec<String> {
    let goal = goal(checker);
    let tests = checker.tests();
    let failing = tests.before.as_ref().map(failing_ids).unwrap_or_default();
    let mut alone = failing;
    let is_shown = |id: &String| is_shown(goal, &tests, id);
    alone.retain(|id| id != WHOLE_RUN && !is_shown(id));
    alone
}

/// Returns whether a failing test is shown to models.
fn is_shown(goal: Goal, tests: &TestState, id: &str) -> bool {
    if tests.required.excluded.contains(id) {
        return false;
    }
    match goal {
        Goal::Bug | Goal::RedTests if tests.required.ids.is_empty() => {
            let near = may_be_meant(tests);
            !tests.required.beside_failures && (near.is_empty() || near.contains(id))
        }
        Goal::Bug | Goal::RedTests => {
            tests.required.ids.contains(id) || tests.required.possible.contains(id)
        }
        Goal::NewTest
        | Goal::Feature
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => tests.required.ids.contains(id),
    }
}

/// Returns the failing tests that the task may be about.
fn may_be_meant(tests: &TestState) -> BTreeSet<String> {
    &tests.required.near | &tests.required.possible
}

/// Returns the failing tests that the run may fix now: the required tests, or the tests that the
/// task may be about if none are required.
pub(crate) fn to_mend(tests: &TestState) -> BTreeSet<String> {
    if !tests.required.ids.is_empty() {
        return &tests.required.ids & &tests.failing;
    }
    let near = may_be_meant(tests);
    match (tests.required.beside_failures, near.is_empty()) {
        (true, _) => BTreeSet::new(),
        (false, true) => &tests.failing - &tests.required.excluded,
        (false, false) => &near & &tests.failing,
    }
}

/// The failing tests of a report that are part of a task.
#[derive(Debug, Default)]
struct TaskTests {
    /// Tests that must pass in the end.
    required: BTreeSet<String>,
    /// Tests that use a file named in the task. The task may be about these tests.
    near: BTreeSet<String>,
    /// Tests that the task may be about: they reach its code from afar, or only its words fit them.
    possible: BTreeSet<String>,
}

/// The code that a task is about.
#[derive(Debug, Default)]
struct TaskCode {
    targets: Vec<SymbolPath>,
    /// The files that the task names.
    files: Vec<SymbolPath>,
    /// Whether the task names code for certain, so that the targets are no guess.
    is_named: bool,
    command_line: CommandLine,
}

/// Returns the failing tests that a task is about.
fn belonging(
    goal: Goal,
    task: &str,
    lookup: &Lookup,
    report: &TestReport,
    about: &TaskCode,
) -> TaskTests {
    let excluded = ExcludedTests::of(task);
    let task = &excluded.rest();
    let mut failing = failing_cases(report);
    failing.retain(|case| !excluded.holds(&case.id));
    let ids = |fits: &dyn Fn(&TestCase) -> bool| -> BTreeSet<String> {
        let fitting = failing.iter().filter(|case| fits(case));
        fitting.map(|case| case.id.clone()).collect()
    };
    let in_named_files =
        |text: &str| named_files::failing(lookup, text, &failing, |case| file_of(lookup, case));
    let named = named(task, &failing);
    let (mut near, mut possible) = (BTreeSet::new(), BTreeSet::new());
    let required = match goal {
        Goal::RedTests => {
            let in_files = in_named_files(task);
            match (named.is_empty(), in_files.is_empty()) {
                (false, _) => named,
                (true, false) => in_files,
                (true, true) => {
                    ids(&|case| !lacks_foreign_module(lookup, case) && !lacks_fixture(case))
                }
            }
        }
        // If the task names or quotes tests, no other test is required.
        Goal::Bug if !named.is_empty() => named,
        Goal::Bug => {
            // A test that only imports a module need not be about what changes in its body.
            let (modules, symbols): (Vec<SymbolPath>, Vec<SymbolPath>) = about
                .targets
                .iter()
                .cloned()
                .partition(SymbolPath::is_module);
            let files: Vec<SymbolPath> = about.files.iter().cloned().chain(modules).collect();
            let (reach, of_files) = (
                ReachingTests::of_task(lookup, &symbols, &about.command_line),
                ReachingTests::of(lookup, &files),
            );
            let cannot_run = |case: &TestCase| {
                let lacks_module =
                    || lacks_foreign_module(lookup, case) || lacks_path(lookup, case);
                let is_said = || missing_module(case).is_some_and(|name| has_word(task, name));
                lacks_fixture(case) || lacks_module() && !is_said()
            };
            near = ids(&|case| !cannot_run(case) && of_files.includes(lookup, case));
            // The command line says which tests run the commands of the task. Their words are no wish.
            let wishes = match about.command_line.words.is_empty() {
                true => Wishes::of(task),
                false => Wishes::of(&without_commands(task)),
            };
            let runs = |case: &TestCase, is_in: fn(&CommandLine, &str) -> bool| {
                let test = test_of(lookup, case).and_then(|test| lookup.symbol(&test).ok());
                test.is_some_and(|test| is_in(&about.command_line, test.source()))
            };
            let reached = |case: &TestCase| match reach.distance(lookup, case) {
                Some(Distance::Near) => true,
                Some(Distance::Far) => wishes.share_a_word(&TestWords::of(lookup, case)),
                None => of_files.is_run(lookup, case) || runs(case, CommandLine::is_whole_in),
            };
            let fits = |case: &TestCase| wishes.fit(&TestWords::of(lookup, case));
            let is_meant = |case: &TestCase| !about.is_named && fits(case) == Some(WordFit::Whole);
            // "The other tests" are those that the task neither names nor describes in words.
            let leaves_others = excluded.hold_only_others();
            let of_code = |case: &TestCase| {
                !cannot_run(case) && (!leaves_others && reached(case) || is_meant(case))
            };
            let mut required = in_named_files(&goal::demands(task));
            if required.is_empty() || about.is_named {
                required.extend(ids(&of_code));
            }
            let words = |case: &&TestCase| required.contains(&case.id);
            let of_required =
                (failing.iter().filter(words)).map(|case| TestWords::of(lookup, case));
            let is_open = !about.is_named
                && wishes.leave_one_open(&of_required.collect::<Vec<_>>(), &about.targets);
            possible = ids(&|case| {
                let may_be = || match leaves_others {
                    true => !about.is_named && fits(case).is_some(),
                    false => {
                        is_open
                            || fits(case).is_some()
                            || reach.distance(lookup, case).is_some()
                            || runs(case, CommandLine::is_in)
                    }
                };
                !cannot_run(case) && !required.contains(&case.id) && may_be()
            });
            required
        }
        Goal::NewTest
        | Goal::Feature
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => named,
    };
    near.retain(|id| !required.contains(id));
    if excluded.hold_the_rest() {
        near.clear();
        if !excluded.hold_only_others() || !required.is_empty() {
            possible.clear();
        }
    }
    TaskTests {
        required,
        near,
        possible,
    }
}

/// Returns the failing tests of a report that the task names or quotes, or all that it requires if it
/// is about failing tests. Only these tests decide where the work begins; other failing tests, even
/// those that must pass, are context.
pub(crate) fn named_or_quoted(checker: &Checker, report: &TestReport) -> BTreeSet<String> {
    let excluded = ExcludedTests::of(&checker.task.text);
    match goal(checker) {
        Goal::RedTests => {
            let mut required = checker.tests().required.ids.clone();
            required.remove(WHOLE_RUN);
            required
        }
        Goal::Bug
        | Goal::NewTest
        | Goal::Feature
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => {
            let mut failing = failing_cases(report);
            failing.retain(|case| case.id != WHOLE_RUN && !excluded.holds(&case.id));
            named(&excluded.rest(), &failing)
        }
    }
}

/// Returns the failing tests that a task names or quotes. If the task names only cases that do not
/// fail, their test itself is meant.
fn named(task: &str, failing: &[TestCase]) -> BTreeSet<String> {
    let ids = |fits: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
        let fitting = failing
            .iter()
            .filter(|case| case.id != WHOLE_RUN && fits(&case.id));
        fitting.map(|case| case.id.clone()).collect()
    };
    let quoted = failing.iter().filter(|case| is_quoted(task, case));
    let mut named = ids(&|id| names_test(task, id));
    named.extend(quoted.map(|case| case.id.clone()));
    match named.is_empty() {
        true => ids(&|id| names_function(task, id)),
        false => named,
    }
}

/// Returns the failing tests of a report. A command that fails as a whole counts as one test.
pub(crate) fn failing_cases(report: &TestReport) -> Vec<TestCase> {
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

/// Returns the file of a test.
fn file_of(lookup: &Lookup, case: &TestCase) -> Option<FilePath> {
    let (file, _) = case.id.split_once("::").unwrap_or((&case.id, ""));
    match file.ends_with(".py") {
        true => Some(FilePath::new(file)),
        false => test_of(lookup, case).map(|test| test.file),
    }
}

/// Returns whether a task quotes the error of a test.
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

/// Returns the module that a test could not find.
fn missing_module(case: &TestCase) -> Option<&str> {
    const ERROR: &str = "ModuleNotFoundError: No module named '";
    let (_, rest) = case.message.split_once(ERROR)?;
    rest.split('\'').next()
}

/// Returns whether a test fails because a module of the project lies where Python does not look for
/// it, as in a submodule that is not on its path. If no part of the module's path exists in the
/// project, the module is external.
fn lacks_path(lookup: &Lookup, case: &TestCase) -> bool {
    let Some(module) = missing_module(case) else {
        return false;
    };
    let path = module.replace('.', "/");
    let ends = [format!("/{path}.py"), format!("/{path}/__init__.py")];
    let mut files = lookup.files().iter();
    files.any(|file| ends.iter().any(|end| file.as_str().ends_with(end)))
}

/// Returns whether a test fails because a module outside the project is missing.
fn lacks_foreign_module(lookup: &Lookup, case: &TestCase) -> bool {
    let Some(module) = missing_module(case) else {
        return false;
    };
    let module = module.split('.').next().unwrap_or_default();
    let is_part = |file: &FilePath| {
        let mut parts = file.as_str().split('/');
        parts.any(|part| part.trim_end_matches(".py") == module)
    };
    !lookup.files().iter().any(is_part)
}

/// Returns whether the setup of a test failed because no plugin or `conftest.py` defines one of its
/// fixtures.
fn lacks_fixture(case: &TestCase) -> bool {
    let lines = case.message.lines();
    let mut errors = lines
        .filter_map(|line| line.strip_prefix("E "))
        .map(str::trim);
    errors.any(|error| error.starts_with("fixture '") && error.ends_with("' not found"))
}

/// Returns the tests that run one of the symbols, according to their tracebacks and their source.
pub(crate) fn reached(
    lookup: &Lookup,
    symbols: &[SymbolPath],
    tests: &[TestCase],
) -> BTreeSet<String> {
    let reach = ReachingTests::of(lookup, symbols);
    let reached = tests.iter().filter(|case| reach.includes(lookup, case));
    reached.map(|case| case.id.clone()).collect()
}

/// Returns whether the name or the source of a test contains a word of one of the task's wishes.
pub(crate) fn share_a_word(lookup: &Lookup, task: &str, test: &TestCase) -> bool {
    Wishes::of(task).share_a_word(&TestWords::of(lookup, test))
}

/// Number of steps between a test and the code that it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distance {
    /// The traceback leads through the code, or the test uses it in at most [`NEAR`] steps.
    Near,
    Far,
}

/// Symbols, and the code that uses them directly or indirectly, which is searched for failing
/// tests.
struct ReachingTests<'a> {
    targets: &'a [SymbolPath],
    /// The symbols and their users.
    users: Vec<User>,
}

/// A symbol that the searched symbols are, or that uses them directly or indirectly.
struct User {
    symbol: SymbolPath,
    /// Number of steps from a searched symbol.
    steps: usize,
    /// The conditions on the way from the user to a searched symbol.
    conditions: Vec<Condition>,
}

impl ReachingTests<'_> {
    fn of<'a>(lookup: &Lookup, targets: &'a [SymbolPath]) -> ReachingTests<'a> {
        Self::of_task(lookup, targets, &CommandLine::default())
    }

    /// Returns the tests that reach the symbols. A test that runs only another subcommand does not
    /// reach the functions that carry out the subcommands of the task.
    fn of_task<'a>(
        lookup: &Lookup,
        targets: &'a [SymbolPath],
        command_line: &CommandLine,
    ) -> ReachingTests<'a> {
        let words = || Condition::of_words(lookup, command_line.words.clone());
        let of_words: Vec<Condition> = match command_line.handlers.is_empty() {
            true => Vec::new(),
            false => words().into_iter().collect(),
        };
        let symbols = targets.iter().filter(|symbol| !symbol.is_module());
        let symbols = symbols.map(|symbol| User {
            symbol: symbol.clone(),
            steps: 0,
            conditions: match command_line.handlers.contains(symbol) {
                true => of_words.clone(),
                false => Vec::new(),
            },
        });
        let mut users: Vec<User> = symbols.collect();
        let mut conditions = Conditions::default();
        let mut from = 0;
        for step in 0..STEPS {
            let until = users.len();
            for at in from..until {
                let uses = lookup
                    .index()
                    .references(&users[at].symbol.to_string(), USES);
                for one in uses.found {
                    // Uncertain uses are followed only in the first step.
                    let is_sure = one.certainty != Certainty::Possible || step == 0;
                    if !is_sure || one.symbol.is_module() || users.len() >= USERS {
                        continue;
                    }
                    let mut all = users[at].conditions.clone();
                    all.extend(conditions.of_use(lookup, &one));
                    let is_known = |known: &User| {
                        let is_as_open = known.conditions.is_empty() || known.conditions == all;
                        known.symbol == one.symbol && is_as_open
                    };
                    if !users.iter().any(is_known) {
                        users.push(User {
                            symbol: one.symbol,
                            steps: step + 1,
                            conditions: all,
                        });
                    }
                }
            }
            from = until;
        }
        ReachingTests { targets, users }
    }

    /// Returns whether the traceback of a failing test leads through one of the symbols.
    fn is_run(&self, lookup: &Lookup, case: &TestCase) -> bool {
        frames(&case.message).into_iter().any(|frame| {
            let place = lookup.tree(&FilePath::new(frame.path));
            place.is_ok_and(|tree| {
                let place = &tree.at_line(frame.line).path;
                self.targets.iter().any(|target| target.encloses(place))
            })
        })
    }

    /// Returns whether a failing test runs one of the symbols, according to its traceback and its
    /// source.
    fn includes(&self, lookup: &Lookup, case: &TestCase) -> bool {
        self.distance(lookup, case).is_some()
    }

    /// Returns how far a failing test is from the symbols; `None` if it does not run them.
    fn distance(&self, lookup: &Lookup, case: &TestCase) -> Option<Distance> {
        if self.is_run(lookup, case) {
            return Some(Distance::Near);
        }
        match test_of(lookup, case) {
            Some(test) => self.distance_of(lookup, &test, &case.id),
            None => {
                let mut names = self.targets.iter().filter(|target| !target.is_module());
                names
                    .any(|target| has_word(&case.message, target.base_name()))
                    .then_some(Distance::Near)
            }
        }
    }

    fn distance_of(&self, lookup: &Lookup, test: &SymbolPath, id: &str) -> Option<Distance> {
        let source = lookup.symbol(test).map(|found| found.source().to_owned());
        let source = source.unwrap_or_default();
        let class = test.name.rsplit_once('.').map(|(class, _)| class);
        let is_set_up = |user: &SymbolPath| {
            let of_class = user.name.rsplit_once('.').map(|(class, _)| class);
            user.base_name().to_lowercase().starts_with("setup") && of_class == class
        };
        let is_test_code =
            |user: &SymbolPath| is_test_file(&user.file) || user.file.name() == "conftest.py";
        let steps = |one: &User| {
            let (user, steps) = (&one.symbol, one.steps);
            let in_file = user.file == test.file;
            let mut conditions = one.conditions.iter();
            if !conditions.all(|condition| condition.may_hold(id, &source)) {
                return None;
            }
            if test.encloses(user) {
                return Some(steps);
            }
            let uses = in_file && class.is_some() && is_set_up(user)
                // A test requests a fixture by its name.
                || is_test_code(user) && has_word(&source, user.base_name());
            uses.then_some(steps + 1)
        };
        let mut imported = self.targets.iter();
        if imported.any(|one| imports(lookup, &test.file, one)) {
            return Some(Distance::Near);
        }
        match self.users.iter().filter_map(steps).min() {
            Some(steps) if steps <= NEAR => Some(Distance::Near),
            Some(_) => Some(Distance::Far),
            None => None,
        }
    }
}

/// Returns whether a file imports the target module.
pub(crate) fn imports(lookup: &Lookup, file: &FilePath, target: &SymbolPath) -> bool {
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

/// Returns the symbol of a test, found by its traceback or its id.
pub(crate) fn test_of(lookup: &Lookup, case: &TestCase) -> Option<SymbolPath> {
    let by_traceback = test_symbol::test_symbol(lookup, case).filter(|test| !test.is_module());
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
