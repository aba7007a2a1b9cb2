//! Orders the functions that may be the cause of failing tests, the most likely first. A small
//! model tries them in this order.
//!
//! A search by matching words and calls finds the cause more often than the choice of a small
//! model. Only one agent works at a time: two agents that each make the same test pass in different
//! ways would interfere.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::check::required;
use crate::context::failing::{compared, in_words};
use crate::event::actor::ActorId;
use crate::event::events::Cause;
use crate::evidence::test_evidence::failing_ids;
use crate::lookup::Lookup;
use crate::lookup::callees::callees;
use crate::protocol::Pick;
use crate::state::agents::Suspect;
use crate::state::run_context::RunContext;
use starling_core::{TestCase, TestReport};
use starling_index::is_test_file;
use starling_syntax::{SymbolKind, SymbolPath};

/// Maximum number of functions that are tried before the run gives up.
const MOST: usize = 3;
/// Seconds after the start of the run during which functions are tried a second time. The second
/// pass seldom finds a cause that the first pass missed, and the user is waiting.
const AGAIN_WITHIN: f64 = 120.0;
/// Increments of a score between 0 and 1. `COMPARED` is for a function whose result a failing test
/// compares, `CALLED` for a function that such a function calls.
const COMPARED: f64 = 0.3;
const CALLED: f64 = 0.15;
/// Maximum number of callees that are considered for a function whose result a test compares.
const CALLEES: usize = 4;

/// Returns the functions and methods outside tests that may be the cause, the most likely first;
/// empty if no test fails. For a model that supports hole filling (writing a removed statement
/// anew), each function is listed twice: first for the quick prompts, and after all others for the
/// slower ones.
pub(crate) fn suspects(run: &RunContext) -> VecDeque<Suspect> {
    let Some(before) = required::shown(run) else {
        return VecDeque::new();
    };
    let lookup = run.lookup();
    let located = run.world().located.clone();
    let mut suspects: Vec<(f64, Pick)> = Vec::new();
    for candidate in located {
        raise(&mut suspects, &candidate.symbol, candidate.score, || {
            candidate.why.join(", ")
        });
    }
    for case in failing_cases(&before) {
        let Some(symbol) = compared_by(&lookup, case) else {
            continue;
        };
        raise(&mut suspects, &symbol, COMPARED, || in_words(case));
        for callee in callees(&lookup, &symbol, CALLEES) {
            raise(&mut suspects, &callee, CALLED, || {
                format!("called by {}", symbol.name)
            });
        }
    }
    suspects.retain(|(_, pick)| is_function_of_code(&lookup, &pick.symbol));
    suspects.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let picks: Vec<Pick> = suspects.into_iter().map(|(_, pick)| pick).collect();
    let looks: &[bool] = match run.services.models.agent.fills() && picks.len() > 1 {
        true => &[false, true],
        false => &[false],
    };
    let look = |again: &bool| {
        let again = *again;
        let picks = picks.iter().take(MOST).cloned();
        picks.map(move |pick| Suspect { pick, again })
    };
    looks.iter().flat_map(look).collect()
}

/// While required tests fail, gives work to the agent of the next function that may be the cause.
/// Returns `false` if no agent got work.
pub(crate) fn wake_next(run: &Arc<RunContext>) -> bool {
    while has_failing(run) {
        let Some(Suspect { pick, again }) = run.agents().suspects.pop_front() else {
            return false;
        };
        if again && run.budget.spent().seconds > AGAIN_WITHIN {
            continue;
        }
        let Ok(symbol) = pick.symbol.parse::<SymbolPath>() else {
            continue;
        };
        if !again && run.gave_up_on_this().contains(&symbol) {
            continue;
        }
        required::note_targets(run, std::slice::from_ref(&symbol));
        match run.wake(&symbol, Cause::Picked { why: pick.why }) {
            Ok(_) => return true,
            Err(error) => run.not_woken(symbol.to_string(), &ActorId::Starling, error.to_string()),
        }
    }
    false
}

fn has_failing(run: &RunContext) -> bool {
    !required::to_mend(&run.tests()).is_empty()
}

fn failing_cases(report: &TestReport) -> impl Iterator<Item = &TestCase> {
    let failing = failing_ids(report);
    let cases = report.cases.iter();
    cases.filter(move |case| failing.contains(&case.id))
}

/// Returns the function whose result a failing test compares; `None` unless it has exactly one
/// definition outside tests.
fn compared_by(lookup: &Lookup, case: &TestCase) -> Option<SymbolPath> {
    let name = compared(case)?;
    let mut defined = lookup.index().definitions(&name);
    defined.retain(|found| !is_test_file(&found.symbol.file));
    match defined.as_slice() {
        [only] => Some(only.symbol.clone()),
        _ => None,
    }
}

/// Increases the score of a symbol, and stores the reason unless the symbol already has one.
fn raise(
    suspects: &mut Vec<(f64, Pick)>,
    symbol: &SymbolPath,
    by: f64,
    why: impl FnOnce() -> String,
) {
    let symbol = symbol.to_string();
    match suspects.iter_mut().find(|(_, pick)| pick.symbol == symbol) {
        Some((score, _)) => *score += by,
        None => suspects.push((
            by,
            Pick {
                symbol,
                why: why(),
                ..Pick::default()
            },
        )),
    }
}

fn is_function_of_code(lookup: &Lookup, symbol: &str) -> bool {
    let Ok(found) = lookup
        .address(symbol)
        .and_then(|symbol| lookup.symbol(&symbol))
    else {
        return false;
    };
    let is_function = match found.symbol.kind {
        SymbolKind::Function | SymbolKind::Method => true,
        SymbolKind::Module | SymbolKind::Class => false,
    };
    is_function && !is_test_file(&found.symbol.path.file)
}
