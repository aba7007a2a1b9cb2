//! The final check: when no agent is at work, all changed files are diagnosed together, by the
//! language service that is configured for the final check, if there is one.

use std::sync::Arc;

use crate::check::{diagnose, names_check};
use crate::contract::left_behind;
use crate::event::actor::ActorId;
use crate::event::events::{Cause, Event};
use crate::evidence::check_results::DiagnosticEvidence;
use crate::proposal::apply;
use crate::state::run_context::RunContext;
use starling_core::{Effort, Problem};
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Diagnoses all changed files together and returns the problems that the accepted changes
/// introduced. If only one change was applied and no service is configured for the final check, the
/// diagnostics of its own check are still valid, so only undefined names are checked again.
pub(crate) async fn final_check(run: &Arc<RunContext>) -> DiagnosticEvidence {
    let (after, files, changes) = {
        let state = run.state();
        let files = state.untouched_since();
        (
            state.world.snapshot.clone(),
            files,
            state.proposals.applied().len(),
        )
    };
    let before = without_agents(run, &after, &files);
    let language = &run.services.language;
    let is_thorough = |file: &FilePath| language.has(Effort::Thorough, file);
    let is_known = changes < 2 && !files.iter().any(is_thorough);
    let found = match is_known {
        true => names_check::check(run, &before, &after, &files),
        false => diagnose::final_diagnostics(run, &before, &after, &files).await,
    };
    match found {
        DiagnosticEvidence::Absent => {}
        DiagnosticEvidence::Unknown { .. } | DiagnosticEvidence::Known { .. } => {
            let found = found.clone();
            run.event(Event::Diagnosed { files, found });
        }
    }
    found
}

/// Returns the workspace as it would be without the run. It contains the user's edits, so that
/// problems in these edits are not attributed to the run.
fn without_agents(run: &RunContext, now: &Snapshot, files: &[FilePath]) -> Snapshot {
    let mut before = run.services.index.snapshot().clone();
    for file in files {
        if let (Ok(_), Ok(text)) = (before.read(file), now.read(file)) {
            let without = apply::without_agents(run, file, &text);
            before = before.with(file.clone(), Some(without));
        }
    }
    before
}

/// Describes the problems that no approver has accepted.
pub(crate) fn news(run: &RunContext, found: &DiagnosticEvidence) -> Vec<String> {
    let state = run.proposals();
    let news = found.stopping();
    news.filter(|one| !state.accepted_problems.contains(&one.message))
        .map(in_words)
        .collect()
}

/// Describes all problems that the accepted changes introduced.
pub(crate) fn all(found: &DiagnosticEvidence) -> Vec<String> {
    found.stopping().map(in_words).collect()
}

fn in_words(one: &Problem) -> String {
    format!("{}:{}: {}", one.file, one.line, one.message)
}

/// Notifies the owners of the code with problems that no approver has accepted. Returns whether an
/// owner was notified.
pub(crate) fn wake_owners(run: &Arc<RunContext>, found: &DiagnosticEvidence) -> bool {
    let is_news =
        |problem: &&Problem| !run.proposals().accepted_problems.contains(&problem.message);
    let mut woken = false;
    for (owner, message) in left_behind::by_owner(run, found.stopping().filter(is_news)) {
        match run.wake(&owner, Cause::Problems { message }) {
            Ok(_) => woken = true,
            Err(error) => run.not_woken(owner.to_string(), &ActorId::Starling, error.to_string()),
        }
    }
    woken
}
