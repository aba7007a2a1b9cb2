//! The final check: when no agent is at work, all changed files are diagnosed together, by the
//! thorough service if there is one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::apply;
use super::diagnose;
use super::event::{Cause, Event, Party};
use super::findings::DiagnosticEvidence;
use super::hub::Hub;
use super::names_check;
use starling_core::{Effort, Problem};
use starling_syntax::{FilePath, SymbolPath};

/// Diagnoses all changed files together and returns the problems that the accepted changes
/// introduced. If only one change was applied and there is no thorough service, its own diagnostics
/// are known, and only undefined names are checked.
pub(super) async fn last_look(hub: &Arc<Hub>) -> DiagnosticEvidence {
    let (before, after, files, changes) = {
        let state = hub.state();
        let before = hub.outside.index.snapshot().clone();
        let files = apply::untouched_since(&state);
        (before, state.world.clone(), files, state.applied.len())
    };
    let language = &hub.outside.language;
    let is_thorough = |file: &FilePath| language.has(Effort::Thorough, file);
    let is_known = changes < 2 && !files.iter().any(is_thorough);
    let found = match is_known {
        true => names_check::check(hub, &before, &after, &files),
        false => diagnose::last_look(hub, &before, &after, &files).await,
    };
    match found {
        DiagnosticEvidence::Absent => {}
        DiagnosticEvidence::Unknown { .. } | DiagnosticEvidence::Known { .. } => {
            let found = found.clone();
            hub.event(Event::Diagnosed { files, found });
        }
    }
    found
}

/// Returns the problems that nobody has accepted, as text.
pub(super) fn news(hub: &Hub, found: &DiagnosticEvidence) -> Vec<String> {
    let state = hub.state();
    let news = found.stopping();
    news.filter(|one| !state.accepted_problems.contains(&one.message))
        .map(in_words)
        .collect()
}

/// Returns all problems that the accepted changes introduced, as text.
pub(super) fn all(found: &DiagnosticEvidence) -> Vec<String> {
    found.stopping().map(in_words).collect()
}

fn in_words(one: &Problem) -> String {
    format!("{}:{}: {}", one.file, one.line, one.message)
}

/// Wakes the owners of problems that nobody has accepted. Returns whether an owner was woken.
pub(super) fn wake_owners(hub: &Arc<Hub>, found: &DiagnosticEvidence) -> bool {
    let lookup = hub.lookup();
    let mut messages: BTreeMap<SymbolPath, String> = BTreeMap::new();
    let is_news = |problem: &&Problem| !hub.state().accepted_problems.contains(&problem.message);
    for problem in found.stopping().filter(is_news) {
        let Ok(tree) = lookup.tree(&problem.file) else {
            continue;
        };
        let symbol = tree.at_line(problem.line).path.clone();
        let owner = hub.owner_of(&symbol).unwrap_or(symbol);
        let text = messages.entry(owner).or_default();
        let Problem {
            file,
            line,
            message,
            ..
        } = problem;
        text.push_str(&format!("{file}:{line}: {message}\n"));
    }
    let mut woken = false;
    for (owner, message) in messages {
        match hub.wake(&owner, Cause::Problems { message }) {
            Ok(_) => woken = true,
            Err(error) => hub.not_woken(owner.to_string(), &Party::Starling, error.to_string()),
        }
    }
    woken
}
