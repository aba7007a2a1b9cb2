//! The read-only tools, and the events that log tool calls.

use std::collections::BTreeSet;
use std::path::Path;

use crate::check::selection::Selection;
use crate::check::{lsp_hints, test_run};
use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::evidence::ids::tail;
use crate::evidence::test_evidence::TestEvidence;
use crate::lookup::cap;
use crate::protocol::{Action, Asked, RunTests};
use crate::state::checker::Checker;
use crate::state::refresh;
use crate::state::test_scope::Extent;
use starling_core::{TestOutcome, Tokens};
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::ReadError;

/// Returns the result of a read action in the current workspace; `None` for every other action.
/// `from` is the symbol of the agent that reads.
pub(crate) async fn look(
    checker: &Checker,
    from: Option<&SymbolPath>,
    action: &Action,
) -> Option<String> {
    let lookup = checker.lookup();
    match action {
        Action::Read(read) => Some(lookup.read(&read.symbols)),
        Action::Outline(outline) => Some(lookup.outline(&outline.file)),
        Action::Search(search) => {
            let within = search.path.as_deref().unwrap_or_default();
            Some(lookup.search(&search.query, within))
        }
        Action::Definition(name) => Some(lsp_hints::definition(checker, from, &name.name).await),
        Action::References(name) => {
            lsp_hints::uses_of_name(checker, &name.name).await;
            Some(checker.lookup().references(&name.name))
        }
        Action::Ask(_)
        | Action::Request(_)
        | Action::Intent(_)
        | Action::Propose(_)
        | Action::RunTests(_)
        | Action::Try(_)
        | Action::Wake(_)
        | Action::Finish(_) => None,
    }
}

/// Runs tests on the current workspace. If the call names no tests and all tests would take long,
/// only the tests nearest to the agent's symbol or to its changes run.
pub(crate) async fn run_tests(checker: &Checker, actor: &ActorId, wanted: &RunTests) -> String {
    if checker.services.tests.command().is_none() {
        return "This project has no tests that can be run here.".to_owned();
    }
    if let Some(why) = forbidden(checker, &wanted.select) {
        return why;
    }
    refresh::refresh(checker).await;
    let (world, checks) = {
        let state = checker.state();
        (
            state.world.snapshot.clone(),
            state.tests.selection.scope.checks,
        )
    };
    let nearest = match (wanted.select.is_empty(), checks) {
        (true, Extent::Nearest) => {
            let symbols = symbols_of(checker, actor);
            Some(Selection::near(checker, &symbols, &world))
        }
        (true, Extent::Whole) | (false, _) => None,
    };
    let nearest = nearest.filter(|selection| selection.len() > 0);
    let select = match &nearest {
        Some(selection) => selection.entries(),
        None => wanted.select.clone(),
    };
    let report = test_run::run_tests(checker, &world, select).await;
    if !report.cases.is_empty() {
        remember_named(checker, &wanted.select);
    }
    let mut evidence = TestEvidence::compare(&BTreeSet::new(), &report);
    if let Some(selection) = &nearest {
        let plain = checker.services.tests.command().unwrap_or_default();
        evidence = evidence.by(plain, selection.tried(checker));
    }
    match evidence {
        TestEvidence::Unknown { reason } => reason,
        TestEvidence::Known {
            command,
            broken,
            passed,
            details,
            tried,
            ..
        } => {
            let word = if report.outcome == TestOutcome::Passed {
                "passes"
            } else {
                "fails"
            };
            let counts = if report.cases.is_empty() {
                String::new()
            } else {
                format!(": {passed} pass, {} fail", broken.len())
            };
            // A selection of tests is added to the command line, so a different command in the
            // report means that only the selected tests ran.
            let plain = checker.services.tests.command();
            let ignored = !wanted.select.is_empty() && plain.as_ref() == Some(&report.command);
            let note = if ignored {
                " (the command takes no selection: all that it covers was run)"
            } else {
                ""
            };
            let some = tried
                .count()
                .map_or(String::new(), |count| format!(" ({count})"));
            let text = format!(
                "`{command}`{some} {word}{counts}{note}
{}",
                tail(&details, 3000)
            );
            cap(&text, Tokens(1500))
        }
    }
}

/// Returns why the tests with these names must not run; `None` if they may. A name can be the path
/// of a file that agents may not read, and the output of the test runner could show its contents.
fn forbidden(checker: &Checker, select: &[String]) -> Option<String> {
    let policy = checker.policy();
    let refuse = |entry: &String| {
        let entry = entry.trim();
        if entry.starts_with('@') {
            return Some(format!("{entry}: names of tests are not read from a file."));
        }
        let path = entry.split("::").next().unwrap_or(entry);
        let path = match Path::new(path).strip_prefix(policy.root()) {
            Ok(inside) => inside.to_str()?,
            Err(_) => path,
        };
        let named = policy.may_read(&FilePath::new(path.trim_end_matches('/')));
        match named {
            Ok(_) | Err(ReadError::Missing(_) | ReadError::Io { .. }) => None,
            Err(error) => Some(format!("{error}. No test was run.")),
        }
    };
    let named = select.iter().filter(|entry| !entry.trim().is_empty());
    named.filter_map(refuse).next()
}

/// Returns the symbol that an agent owns. For an agent without a symbol, returns all changed
/// symbols.
fn symbols_of(checker: &Checker, actor: &ActorId) -> Vec<SymbolPath> {
    let state = checker.proposals();
    match actor {
        ActorId::Agent(symbol) => vec![symbol.clone()],
        ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling | ActorId::Solo => {
            state.changed_symbols()
        }
    }
}

/// Adds the tests that an agent named to the tests that run for later proposals.
fn remember_named(checker: &Checker, named: &[String]) {
    let mut state = checker.tests();
    for one in named {
        if !state.selection.named.contains(one) {
            state.selection.named.push(one.clone());
        }
    }
}

/// Logs a tool call as an event of the run.
pub(crate) fn report(checker: &Checker, actor: &ActorId, asked: &Asked, text: &str) {
    if let Err(what) = &asked.action {
        checker.event(Event::Malformed {
            agent: actor.clone(),
            what: what.clone(),
        });
        return;
    }
    let outcome = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(160)
        .collect();
    let (tool, argument) = asked.label.clone();
    checker.event(Event::ToolUsed {
        agent: actor.clone(),
        tool,
        argument,
        outcome,
    });
}
