//! The end of a run: collects what is known about its changes, and reports it in the last event.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::check::test_run::no_tests;
use crate::check::{original_tests, reached, required, scripts, steady};
use crate::event::actor::ActorId;
use crate::event::ending::{MENTIONS_TOLD, StillMentioned};
use crate::event::events::{Event, StopReason};
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::wording::{counted, some_of};
use crate::lookup::{Lookup, MisspelledSymbol};
use crate::proposal::{apply, permission};
use crate::run::aim::ChangeRelevance;
use crate::run::ending::{self, LastCheck, RunFacts, TakenBack, unchanged};
use crate::run::{aim, context_failures};
use crate::state::run_context::RunContext;
use crate::state::test_scope::Extent;
use crate::task::goal::Goal;
use crate::task::left_todos;
use crate::task::mentions;
use crate::task::names::Names;
use starling_syntax::{FilePath, SymbolPath};

/// Returns why the run's changes are not proven by tests; `None` if they are proven or need no
/// proof.
pub(crate) fn unproven(run: &RunContext, stop_reason: &StopReason) -> Option<String> {
    with_facts(run, stop_reason, &changed(run), ending::unproven)
}

/// Returns the symbols whose changes are applied.
pub(crate) fn changed(run: &RunContext) -> Vec<SymbolPath> {
    let symbols = run.proposals().changed_symbols();
    let symbols: BTreeSet<SymbolPath> = symbols.into_iter().collect();
    symbols.into_iter().collect()
}

/// Returns the event of the end of a run.
pub(crate) fn finished(run: &RunContext, stop_reason: StopReason) -> Event {
    let applied = changed(run);
    let tally = {
        let state = run.proposals();
        let tally = state.tally.iter();
        tally.map(|(model, wins)| (model.clone(), *wins)).collect()
    };
    let spent = run.budget.spent();
    let summary = summary(&stop_reason, &applied, run);
    let mut ending = with_facts(run, &stop_reason, &applied, ending::ending);
    if stop_reason.is_settled() {
        ending.mentions = still_mentioned(run, &applied);
        for one in &ending.mentions {
            ending.headline.push_str(&format!("; {}", in_words(one)));
        }
        ending.headline.push_str(&left_todos(run, &applied));
        for unknown in unknown_symbols(run) {
            ending.headline.push_str(&format!("; {unknown}"));
        }
    }
    Event::RunFinished {
        ending: Some(ending),
        stop_reason,
        applied,
        diff: apply::whole_diff(run),
        spent,
        summary,
        tally,
    }
}

/// Returns the places in comments and documents that still mention a name that the run renamed or deleted.
fn still_mentioned(run: &RunContext, applied: &[SymbolPath]) -> Vec<StillMentioned> {
    match applied.is_empty() {
        true => Vec::new(),
        false => mentions::still_mentioned(run.stated(), &run.lookup()),
    }
}

fn in_words(one: &StillMentioned) -> String {
    let first: Vec<String> = one.places.iter().take(MENTIONS_TOLD).cloned().collect();
    let first = first.join(", ");
    let name = &one.name;
    match one.count.saturating_sub(MENTIONS_TOLD) {
        0 => format!("`{name}` is still mentioned in {first}"),
        more => format!("`{name}` is still mentioned in {first}, {more} more"),
    }
}

/// Describes the misspelled symbols in the task: words after `#` that name no symbol before or after the run,
/// but resemble the name of a symbol. Other words after `#` may be labels.
fn unknown_symbols(run: &RunContext) -> Vec<String> {
    let task = &run.task.text;
    let index = &run.services.index;
    let before = Lookup::new(index.snapshot().clone(), Arc::clone(index));
    let unknown = before.misspelled_symbols(task);
    let still = match unknown.is_empty() {
        true => Vec::new(),
        false => run.lookup().misspelled_symbols(task),
    };
    let is_unknown =
        |one: &MisspelledSymbol| still.iter().any(|other| other.written == one.written);
    let both = unknown.into_iter().filter(is_unknown);
    both.map(|one| format!("the task names {}, and {}", one.written, one.in_words()))
        .collect()
}

/// Describes the TODO comments that remain in changed or named code although the task asks to do them.
fn left_todos(run: &RunContext, applied: &[SymbolPath]) -> String {
    if applied.is_empty() {
        return String::new();
    }
    let names = run.tests().required.names.clone();
    let changed = applied.iter().filter(|symbol| !symbol.is_module());
    let meant = changed.chain(names.iter().flat_map(Names::code));
    let meant: Vec<SymbolPath> = meant.cloned().collect();
    let index = &run.services.index;
    let before = Lookup::new(index.snapshot().clone(), Arc::clone(index));
    let left = left_todos::left_todos(&run.task.text, (&before, &run.lookup()), &meant);
    match left.as_slice() {
        [] => String::new(),
        left => format!("; {}", some_of(left)),
    }
}

/// Returns why the last proposal was refused, in the form for the user.
fn last_refusal(events: &[Event]) -> Option<String> {
    events.iter().rev().find_map(|event| match event {
        Event::ProposalRefused { why, shown, .. } => Some(shown.as_ref().unwrap_or(why).clone()),
        _ => None,
    })
}

/// Data about the changes of a run that does not come from test results.
#[derive(Default)]
struct ChangeFacts {
    /// Whether code changed whose behaviour a test can show.
    behave_otherwise: bool,
    /// Whether only documents, comments and docstrings changed.
    only_words: bool,
    /// The changed symbols that no test of the last test run can reach.
    unreached: Vec<SymbolPath>,
    aim: ChangeRelevance,
}

fn changes(run: &RunContext, changed: &[SymbolPath]) -> ChangeFacts {
    let (before, after, latest) = {
        let state = run.state();
        let before = state.without_the_run();
        (
            before,
            state.world.snapshot.clone(),
            state.tests.latest.clone(),
        )
    };
    let scripts = scripts::of_test_command(run);
    let found =
        latest.map(|report| reached::unreached(&before, &after, changed, &report, &scripts));
    let changing = reached::changing_behaviour(&before, &after, changed, &scripts);
    ChangeFacts {
        behave_otherwise: !changing.is_empty(),
        only_words: reached::are_words(&before, &after, changed),
        unreached: found.unwrap_or_default(),
        aim: aim::of(run, changed, &changing),
    }
}

/// Collects the facts at the end of a run and passes them to `read`.
fn with_facts<R>(
    run: &RunContext,
    stop_reason: &StopReason,
    changed: &[SymbolPath],
    read: impl FnOnce(&RunFacts<'_>) -> R,
) -> R {
    let by_all = unchanged(&run.log.events()).by_all;
    let has_command = run.services.tests.command().is_some();
    let only_as_changed = original_tests::known(run).unwrap_or_default();
    let changes = match changed.is_empty() {
        true => ChangeFacts::default(),
        false => changes(run, changed),
    };
    // If there are required tests, they decide whether the task is done, and refused proposals are
    // not mentioned.
    let events = run.log.events();
    let none_required = run.tests().required.ids.is_empty();
    let (left_out, left_out_is_named) = match none_required {
        true => {
            let refused = ending::refused(&events);
            (ending::left_out(&events), aim::names_refused(run, &refused))
        }
        false => (Vec::new(), false),
    };
    let refused = ending::refused(&events);
    let is_a_part = !refused.is_empty();
    let needs_your_yes = needing_your_yes(run, &refused);
    let rejected = ending::rejected(&events);
    let declined = ending::declined(&events);
    let are_context = !changed.is_empty() && context_failures::are_all(run, changed);
    let unsteady = steady::known(run);
    let goal = required::goal(run);
    let scope_at_end = run.tests().selection.scope.end;
    let untested = match (has_command, scope_at_end) {
        (false, _) => no_tests(run),
        (true, Extent::Nearest) if stop_reason.is_settled() => {
            match run.lookup().index().test_count() {
                1 => "the only test was not found near the change".to_owned(),
                count => format!("none of the {count} tests was found near the change"),
            }
        }
        (true, Extent::Whole | Extent::Nearest) => "the tests did not run after it".to_owned(),
    };
    let state = run.state();
    let refused = match changed {
        [] => last_refusal(&run.log.events()),
        _ => None,
    };
    // A required test that also passes without the changes (because it is flaky) does not prove the
    // changes.
    let passes_without = &state.tests.flaky.unsteady_before & &state.tests.required.ids;
    let failed_before = &state.tests.failing_before - &passes_without;
    // If the output of the command names no single tests, only the failure of the command is known.
    let is_to_pass = matches!(goal, Goal::Bug | Goal::RedTests);
    let tests_say_otherwise = !state.tests.required.ids.is_disjoint(&state.tests.failing)
        || is_to_pass
            && state.tests.failing.iter().all(|id| id == WHOLE_RUN)
            && !state.tests.failing.is_empty();
    let examples = run.tries().at_end.clone();
    read(&RunFacts {
        stop_reason,
        task: &run.task.text,
        goal,
        changed,
        taken_back: match &state.proposals.taken_back {
            Some(patch) => TakenBack::Yes(patch.as_deref()),
            None => TakenBack::No,
        },
        not_taken_back: state.proposals.not_taken_back.as_deref(),
        with_changes: state.tests.at_end.with_changes.as_ref(),
        declined: &declined,
        last_check: match &state.tests.latest {
            Some(report) => LastCheck::Known(report),
            None => LastCheck::Absent { why: &untested },
        },
        failed_before: &failed_before,
        did_not_run: &state.tests.did_not_run,
        required: &state.tests.required.ids,
        possible: &state.tests.required.possible,
        only_as_changed: &only_as_changed.tests,
        unheld: &only_as_changed.unheld,
        unsteady: &unsteady.all,
        doubtful: &unsteady.doubtful,
        examples: &examples,
        new_tests: &state.tests.at_end.new_tests,
        unshown_parts: &state.tests.at_end.new_tests.unshown_parts,
        unreached: &changes.unreached,
        behaves_otherwise: changes.behave_otherwise,
        only_words: changes.only_words,
        aim: &changes.aim,
        beside_failures: state.tests.required.beside_failures || are_context,
        left_out: &left_out,
        left_out_is_named,
        rejected: &rejected,
        problems: &state.tests.at_end.problems,
        needs_your_yes: &needs_your_yes,
        is_a_part,
        refused: refused.as_deref(),
        report_before: state.tests.before.as_ref(),
        nothing_to_change: by_all
            && !tests_say_otherwise
            && state.tests.at_end.problems.is_empty()
            && refused.is_none(),
    })
}

/// Describes the files of refused proposals whose changes need a person's acceptance.
fn needing_your_yes(run: &RunContext, refused: &[(&ActorId, &str)]) -> Vec<String> {
    let symbols = refused.iter().filter_map(|(agent, _)| agent.symbol());
    let files: BTreeSet<&FilePath> = symbols.map(|symbol| &symbol.file).collect();
    let described = files
        .into_iter()
        .filter_map(|file| permission::needs_your_yes(run, file));
    described.collect()
}

fn summary(stop_reason: &StopReason, applied: &[SymbolPath], run: &RunContext) -> String {
    let names: Vec<String> = applied.iter().map(ToString::to_string).collect();
    let changed = if names.is_empty() {
        "nothing was changed".to_owned()
    } else {
        format!("changed {}", names.join(", "))
    };
    let why = match stop_reason {
        StopReason::Settled if run.tests().latest.is_some() => {
            "settled, and the tests agree".to_owned()
        }
        StopReason::Settled => "settled".to_owned(),
        StopReason::NothingChanged { why } => why.clone(),
        StopReason::TestsFail { failing } => {
            let verb = if failing.len() == 1 { "fails" } else { "fail" };
            let count = counted(failing.len(), "test");
            format!("{count} {verb}: {}", failing.join(", "))
        }
        StopReason::ProblemsRemain { problems } => {
            let count = counted(problems.len(), "new problem");
            format!("{count}: {}", problems.join("; "))
        }
        StopReason::LedgerEmpty { what } => format!("the budget is used up: {what}"),
        StopReason::Cancelled => "cancelled".to_owned(),
        StopReason::Failed { error } => error.clone(),
    };
    let missed = match run.contracts().missed.len() {
        0 => String::new(),
        1 => "; 1 caller of a changed contract was not notified".to_owned(),
        count => format!("; {count} callers of changed contracts were not notified"),
    };
    let owners: BTreeSet<SymbolPath> = {
        let state = run.contracts();
        let owners = state.unfollowed.iter();
        owners.map(|(_, owner)| owner.clone()).collect()
    };
    let unfollowed = match owners.len() {
        0 => String::new(),
        1 => "; 1 caller of a changed contract was notified, but not updated".to_owned(),
        count => format!("; {count} callers of changed contracts were notified, but not updated"),
    };
    // Another owner may have changed the symbol all the same.
    let applied = self::changed(run);
    let applied: BTreeSet<String> = applied.iter().map(ToString::to_string).collect();
    let not_woken = run.agents().not_woken.clone().into_iter();
    let not_woken: Vec<String> = not_woken.filter(|one| !applied.contains(one)).collect();
    let not_woken = match not_woken.len() {
        0 => String::new(),
        1 => format!("; the owner of {} was not woken", not_woken[0]),
        count => format!("; {count} owners were not woken: {}", not_woken.join(", ")),
    };
    let taken_back = match run.proposals().taken_back.clone() {
        Some(Some(patch)) => format!("; its changes were reverted and are saved in {patch}"),
        Some(None) => "; its changes were reverted; the run's log contains them".to_owned(),
        None => String::new(),
    };
    format!("{changed}; {why}{missed}{unfollowed}{not_woken}{taken_back}")
}
