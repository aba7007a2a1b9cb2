//! Handles attributes that a change uses and that no class defines yet. The change waits as long as
//! other agents that may define these attributes are working.

use std::sync::Arc;

use crate::check::names_check;
use crate::evidence::check_results::DiagnosticEvidence;
use crate::state::draft::Draft;
use crate::state::proposal::Stage;
use crate::state::run_context::RunContext;
use starling_core::Approval;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Adds a problem to the diagnostics for each undefined attribute that a draft uses.
pub(crate) fn of_draft(
    run: &RunContext,
    draft: &Draft,
    found: DiagnosticEvidence,
) -> DiagnosticEvidence {
    let world = run.world().snapshot.clone();
    let after = world.with(draft.file.clone(), draft.content());
    of(
        run,
        (&world, &after),
        std::slice::from_ref(&draft.file),
        found,
    )
}

/// Adds a problem to the diagnostics for each undefined attribute that the change of `files`
/// between two states of the workspace introduces.
pub(crate) fn of(
    run: &RunContext,
    (before, after): (&Snapshot, &Snapshot),
    files: &[FilePath],
    found: DiagnosticEvidence,
) -> DiagnosticEvidence {
    let is_enough = found.stopping().next().is_some();
    if is_enough || run.task.approval == Approval::Ask || !others_may_define(run, after) {
        return found;
    }
    found.and(names_check::awaited(run, before, after, files))
}

/// Removes the problems about undefined attributes if no agent is left that could define them,
/// except attributes that a waiting change defines. Returns whether a problem was removed.
pub(crate) fn give_up(run: &RunContext, found: &mut DiagnosticEvidence) -> bool {
    let waiting: Vec<Arc<str>> = {
        let proposals = run.proposals();
        let drafts = proposals.open().map(|one| &one.draft.text);
        drafts.cloned().collect()
    };
    names_check::without_awaited(found, &waiting)
}

/// Returns whether an agent is working whose change is neither contained in `after` nor already
/// proposed and waiting for other proposals.
fn others_may_define(run: &RunContext, after: &Snapshot) -> bool {
    let mut at_work = run.at_work();
    at_work.retain(|actor| actor.symbol().is_some());
    for one in run.proposals().open() {
        let text = after.read(&one.draft.file);
        let is_in = text.ok() == one.draft.content();
        if is_in || one.stage() == Some(Stage::NeedsOthers) {
            at_work.retain(|actor| actor.symbol() != Some(&one.owner()));
        }
    }
    !at_work.is_empty()
}
