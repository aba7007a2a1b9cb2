//! Notifies the owners of code that a change misses, such as the declaration in a stub file or a
//! string in a data file, before the change is applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::names_check::LEFT;
use crate::context::prompt_parts::is_small;
use crate::event::actor::ActorId;
use crate::event::events::Cause;
use crate::lookup::Lookup;
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use crate::state::waiting;
use starling_core::{Driver, Problem};
use starling_syntax::{FilePath, SymbolPath};

/// Text that is added to the notification about a change that is not applied yet.
const WAITS: &str =
    "The change that brings this waits for yours: both are tested together, and applied together.";

/// Groups problems by the owners of the symbols at their locations, as text.
pub(crate) fn by_owner<'p>(
    run: &RunContext,
    problems: impl Iterator<Item = &'p Problem>,
) -> BTreeMap<SymbolPath, String> {
    let lookup = run.lookup();
    let mut messages: BTreeMap<SymbolPath, String> = BTreeMap::new();
    for problem in problems {
        let Ok(tree) = lookup.tree(&problem.file) else {
            continue;
        };
        let symbol = tree.at_line(problem.line).path.clone();
        let owner = run.owner_of(&symbol).unwrap_or(symbol);
        let text = messages.entry(owner).or_default();
        let Problem {
            file,
            line,
            message,
            ..
        } = problem;
        text.push_str(&format!("{file}:{line}: {message}\n"));
    }
    messages
}

/// Returns whether the file of a problem still mentions the name that the problem is about. A change
/// that was accepted since the check may have removed it.
fn still_stands(lookup: &Lookup, problem: &Problem) -> bool {
    let name = problem.message.split('`').nth(1);
    let text = lookup.index().snapshot().read(&problem.file).ok();
    name.zip(text)
        .is_none_or(|(name, text)| text.contains(name))
}

/// Notifies the owners of the locations that a proposal misses, each owner once. If no person
/// reviews, the proposal is applied only together with the owners' changes. An owner that is at
/// work, or whose waiting proposal already changes the location, is not notified.
pub(crate) fn tell(run: &Arc<RunContext>, by: &ActorId, proposal: &Proposal) {
    let can_follow = run.task.driver == Driver::Swarm
        && !run.task.approval.is_by_person()
        && !is_small(run.services.models.agent.profile());
    let found = &proposal.evidence.diagnostics;
    let mut left = found.stopping().filter(|one| one.source == LEFT).peekable();
    if !can_follow || left.peek().is_none() {
        return;
    }
    let (now, soon) = (run.lookup(), waiting::with_all_that_wait(run));
    let is_changed = |file: &FilePath| {
        let text = |lookup: &Lookup| lookup.index().snapshot().read(file).ok();
        *file != proposal.draft.file && text(&now) != text(&soon)
    };
    let left = left.filter(|one| !is_changed(&one.file) && still_stands(&soon, one));
    for (owner, message) in by_owner(run, left) {
        let actor = ActorId::Agent(owner.clone());
        let is_known = actor == *by || run.at_work().contains(&actor);
        let visit = (owner.clone(), message.clone());
        if is_known || !run.contracts().followed.insert(visit) {
            continue;
        }
        let message = format!("{message}{WAITS}");
        if let Err(error) = run.wake(&owner, Cause::Problems { message }) {
            run.not_woken(owner.to_string(), &ActorId::Starling, error.to_string());
        }
    }
}
