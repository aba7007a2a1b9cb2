//! Where a small model looks for the cause of failing tests: one function after the other, the likeliest
//! first. It picks no better than words and calls do, and two of its agents at once spoil each other's
//! work: each makes some test pass in its own way.

use std::collections::VecDeque;
use std::sync::Arc;

use super::callees::callees;
use super::event::{Cause, Party};
use super::failing::{compared, in_words};
use super::hub::Hub;
use super::lookup::Lookup;
use super::proposal::failing_ids;
use super::protocol::Pick;
use super::required;
use starling_core::{TestCase, TestReport};
use starling_index::is_test_file;
use starling_syntax::{SymbolKind, SymbolPath};

/// Functions that are tried before the run gives up.
const MOST: usize = 3;
/// Seconds of a run after which nothing is looked at again: what the first look did not find is seldom
/// found later, and the user waits.
const AGAIN_WITHIN: f64 = 120.0;
/// What it adds to a score between 0 and 1 that a failing test compares the result of a function, and
/// that such a function calls it.
const COMPARED: f64 = 0.3;
const CALLED: f64 = 0.15;
/// Functions called by a compared one that are looked at.
const CALLEES: usize = 4;

/// A function that may be the cause.
#[derive(Debug, Clone)]
pub(super) struct Suspect {
    pub pick: Pick,
    /// It was looked at already, and its owner goes on with what takes longer.
    pub again: bool,
}

/// The functions and methods outside of tests that may be the cause, likeliest first; none where no test
/// fails. A model that has quick ways to try takes a quick look at each before it looks again.
pub(super) fn suspects(hub: &Hub) -> VecDeque<Suspect> {
    let Some(before) = required::shown(hub) else {
        return VecDeque::new();
    };
    let lookup = hub.lookup();
    let located = hub.state().located.clone();
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
    let looks: &[bool] = match hub.outside.models.agent.fills() && picks.len() > 1 {
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

/// Whether the owner of a symbol is woken again where nothing helps.
pub(super) fn is_looked_at_again(hub: &Hub, symbol: &SymbolPath) -> bool {
    let symbol = symbol.to_string();
    let state = hub.state();
    let mut later = state.suspects.iter();
    later.any(|suspect| suspect.again && suspect.pick.symbol == symbol)
}

/// Wakes the owner of the next function to be tried while tests fail that have to pass; `false` where
/// nobody is woken.
pub(super) fn wake_next(hub: &Arc<Hub>) -> bool {
    while has_failing(hub) {
        let Some(Suspect { pick, again }) = hub.state().suspects.pop_front() else {
            return false;
        };
        if again && hub.ledger.spent().seconds > AGAIN_WITHIN {
            continue;
        }
        let Ok(symbol) = pick.symbol.parse::<SymbolPath>() else {
            continue;
        };
        if !again && hub.gave_up_on_this().contains(&symbol) {
            continue;
        }
        required::note_targets(hub, std::slice::from_ref(&symbol));
        match hub.wake(&symbol, Cause::Picked { why: pick.why }) {
            Ok(_) => return true,
            Err(error) => hub.not_woken(symbol.to_string(), &Party::Starling, error.to_string()),
        }
    }
    false
}

fn has_failing(hub: &Hub) -> bool {
    !required::to_mend(&hub.state()).is_empty()
}

fn failing_cases(report: &TestReport) -> impl Iterator<Item = &TestCase> {
    let failing = failing_ids(report);
    let cases = report.cases.iter();
    cases.filter(move |case| failing.contains(&case.id))
}

/// The function whose result a failing test compares, where it is defined once outside tests.
fn compared_by(lookup: &Lookup, case: &TestCase) -> Option<SymbolPath> {
    let name = compared(case)?;
    let mut defined = lookup.index().definitions(&name);
    defined.retain(|found| !is_test_file(&found.symbol.file));
    match defined.as_slice() {
        [only] => Some(only.symbol.clone()),
        _ => None,
    }
}

/// Adds to the score of a symbol. The first reason stays.
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
