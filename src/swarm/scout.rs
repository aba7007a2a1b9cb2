//! The scout: picks the symbols where work begins, from what was located without a model.

use std::sync::Arc;

use futures::future::join_all;
use tokio::time::Instant;

use super::call::{CallFailed, Conversation};
use super::context::{self, Caps};
use super::event::{Candidate, Event, Party};
use super::failing::{compared, in_words};
use super::hub::Hub;
use super::lookup::Lookup;
use super::proposal::failing_ids;
use super::protocol::{self, Action, Pick, Seat};
use super::tools;
use crate::index::{Seed, is_test_file};
use crate::ports::{Role, Tokens, ToolCalling};
use crate::prompts::{Excerpt, Prompt, ScoutPrompt, ScoutSystem, ScoutSystemText};
use crate::syntax::{SymbolKind, SymbolPath};

/// Turns until the best candidates are taken without the scout's word.
const TURNS: u32 = 5;
const CANDIDATES: usize = 30;
/// So many of the best candidates are shown with what they call, so many callees each.
const CALLERS_FOLLOWED: usize = 3;
const CALLEES: usize = 2;

/// Finds candidates for the task without a model, and tells the user.
pub(super) fn locate(hub: &Hub) -> Vec<Candidate> {
    let began = Instant::now();
    let failing = hub
        .state()
        .before
        .as_ref()
        .map(|report| context::failures(report, Tokens(4_000)))
        .unwrap_or_default();
    let text = format!("{}\n{failing}", hub.task.text);
    let candidates: Vec<Candidate> = hub
        .lookup()
        .index()
        .locate(&text, CANDIDATES)
        .into_iter()
        .map(|found| Candidate {
            symbol: found.symbol,
            score: found.score,
            why: found.why,
        })
        .collect();
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    hub.event(Event::Located {
        candidates: candidates.clone(),
        millis,
    });
    candidates
}

/// The best candidates with their sources and what they call, and a map of the rest.
pub(super) fn material(hub: &Hub) -> (Vec<Excerpt>, String) {
    let profile = hub.outside.models.scout.profile();
    let caps = Caps::of(profile);
    let mut located = hub.state().located.clone();
    // A small model takes the test that fails for the place to be changed.
    located
        .retain(|candidate| !context::is_small(profile) || !is_test_file(&candidate.symbol.file));
    let lookup = hub.lookup();
    let mut shown: Vec<(SymbolPath, String)> = Vec::new();
    for (at, candidate) in located.iter().take(caps.candidates).enumerate() {
        note(&mut shown, &candidate.symbol, candidate.why.join(", "));
        if at < CALLERS_FOLLOWED {
            for callee in callees(&lookup, &candidate.symbol) {
                note(
                    &mut shown,
                    &callee,
                    format!("called by {}", candidate.symbol.name),
                );
            }
        }
    }
    let rest: Vec<SymbolPath> = located
        .into_iter()
        .map(|candidate| candidate.symbol)
        .filter(|symbol| !shown.iter().any(|(other, _)| other == symbol))
        .collect();
    let most = caps.candidates + CALLERS_FOLLOWED;
    let excerpts = shown.into_iter().take(most);
    let excerpts = excerpts
        .filter_map(|(symbol, why)| context::excerpt(&lookup, &symbol, why, caps.candidate))
        .collect();
    let tokens = usize::try_from(caps.map.0).unwrap_or(usize::MAX);
    let map = lookup.index().repository_map(Seed::Symbols(&rest), tokens);
    (excerpts, map.to_string())
}

/// Adds a symbol to be shown, unless it or a symbol around it is there.
fn note(shown: &mut Vec<(SymbolPath, String)>, symbol: &SymbolPath, why: String) {
    let there = |other: &SymbolPath| other == symbol;
    if !shown.iter().any(|(other, _)| there(other)) {
        shown.push((symbol.clone(), why));
    }
}

/// Functions of the workspace that a function calls and that are defined once outside tests, private
/// ones first: the cause is often one call away from where the words lead.
fn callees(lookup: &Lookup, symbol: &SymbolPath) -> Vec<SymbolPath> {
    let Ok(found) = lookup.symbol(symbol) else {
        return Vec::new();
    };
    if !matches!(found.symbol.kind, SymbolKind::Function | SymbolKind::Method) {
        return Vec::new();
    }
    let mut names: Vec<&str> = called_names(found.source());
    names.sort_by_key(|name| !name.starts_with('_'));
    let mut callees = Vec::new();
    for name in names
        .into_iter()
        .filter(|name| *name != symbol.base_name() && name.len() > 3)
    {
        let mut defined = lookup.index().definitions(name);
        defined.retain(|found| !is_test_file(&found.symbol.file));
        let same_file = defined
            .iter()
            .position(|found| found.symbol.file == symbol.file);
        let pick = if defined.len() == 1 {
            Some(0)
        } else {
            same_file
        };
        if let Some(found) = pick.and_then(|at| defined.get(at))
            && callees.len() < CALLEES
            && found.symbol != *symbol
        {
            callees.push(found.symbol.clone());
        }
    }
    callees
}

/// Names that stand before an opening bracket, each once.
fn called_names(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, _) in source.match_indices('(') {
        let before = &source[..at];
        let start = before
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |end| end + 1);
        // The character found may be longer than a byte.
        let name = before.get(start..).unwrap_or_default();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The symbols where work begins, with what their owners should know.
///
/// # Errors
/// The scout's model failed or the ledger is empty.
pub(super) async fn pick(hub: &Arc<Hub>) -> Result<Vec<Pick>, CallFailed> {
    let model = &hub.outside.models.scout;
    if context::is_small(model.profile()) {
        let picks = compared_by_failing_tests(hub);
        if !picks.is_empty() {
            return Ok(picks);
        }
    }
    let calling = model.profile().tool_calling;
    let system = match calling {
        ToolCalling::Native => ScoutSystem {}.render(),
        ToolCalling::Text => ScoutSystemText {}.render(),
    };
    let mut conversation = Conversation::new("scout".to_owned(), Role::Scout, system);
    let (candidates, map) = material(hub);
    let frozen = hub.frozen.get().cloned().unwrap_or_default();
    conversation.user(format!(
        "{frozen}\n{}",
        ScoutPrompt { candidates, map }.render()
    ));
    for _ in 0..TURNS {
        let reply = hub
            .call(
                &Party::Scout,
                model,
                &mut conversation,
                protocol::tools(calling, Seat::Scout),
            )
            .await?;
        conversation
            .messages
            .push(protocol::assistant_message(&reply));
        let asked = protocol::parse(calling, Seat::Scout, &reply);
        if asked.is_empty() {
            let what = protocol::nothing_asked(calling, Seat::Scout, &reply);
            hub.event(Event::Malformed {
                agent: Party::Scout,
                what: what.clone(),
            });
            conversation.user(what);
            continue;
        }
        let results = join_all(asked.into_iter().map(|one| async move {
            let text = match &one.action {
                Err(error) => error.clone(),
                Ok(Action::Wake(_)) => String::new(),
                Ok(action) => tools::look(hub, action).unwrap_or_default(),
            };
            (one, text)
        }))
        .await;
        let mut results = results;
        for (one, text) in &mut results {
            if let Ok(Action::Wake(wake)) = &one.action {
                match usable(hub, &wake.symbols) {
                    Ok(picks) => return Ok(picks),
                    Err(error) => *text = error,
                }
            }
            tools::report(hub, &Party::Scout, one, text);
        }
        conversation
            .messages
            .extend(protocol::result_messages(results));
    }
    Ok(fallback(hub))
}

/// What the failing tests compare, where that is defined once outside tests: a small model picks no
/// better.
fn compared_by_failing_tests(hub: &Hub) -> Vec<Pick> {
    let Some(before) = hub.state().before.clone() else {
        return Vec::new();
    };
    let failing = failing_ids(&before);
    let lookup = hub.lookup();
    let mut picks: Vec<Pick> = Vec::new();
    for case in before
        .cases
        .iter()
        .filter(|case| failing.contains(&case.id))
    {
        let Some(name) = compared(case) else { continue };
        let mut defined = lookup.index().definitions(&name);
        defined.retain(|found| !is_test_file(&found.symbol.file));
        let [found] = defined.as_slice() else {
            continue;
        };
        let symbol = &found.symbol;
        if !picks.iter().any(|pick| pick.symbol == symbol.to_string()) {
            picks.push(Pick {
                symbol: symbol.to_string(),
                why: in_words(case),
                ..Pick::default()
            });
        }
    }
    picks
}

/// Picks that exist; an error text when none does.
fn usable(hub: &Hub, picks: &[Pick]) -> Result<Vec<Pick>, String> {
    let lookup = hub.lookup();
    let mut errors = Vec::new();
    let mut good: Vec<Pick> = Vec::new();
    for pick in picks {
        let found = pick
            .symbol
            .parse::<SymbolPath>()
            .map_err(|error| error.to_string())
            .and_then(|path| lookup.symbol(&path));
        match found {
            Ok(_) if good.iter().any(|other| other.symbol == pick.symbol) => {}
            Ok(_) => good.push(pick.clone()),
            Err(error) => errors.push(error),
        }
    }
    if good.is_empty() {
        Err(format!("None of these can be woken. {}", errors.join(" ")))
    } else {
        Ok(good)
    }
}

/// Without a word of the scout: the best candidate.
fn fallback(hub: &Hub) -> Vec<Pick> {
    let mut located = hub.state().located.clone();
    located.retain(|candidate| !is_test_file(&candidate.symbol.file));
    let pick = |candidate: &Candidate| Pick {
        symbol: candidate.symbol.to_string(),
        why: candidate.why.join(", "),
        ..Pick::default()
    };
    located.iter().take(1).map(pick).collect()
}
