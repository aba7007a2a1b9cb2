//! Reverts the changes of a run that did not settle (succeed) and whose changes no person reviewed.
//! The changes are saved as a patch.

use std::path::Path;
use std::sync::Arc;

use crate::event::events::{Event, StopReason};
use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::failing_ids;
use crate::proposal::apply;
use crate::proposal::undo;
use crate::proposal::undo_error::UndoError;
use crate::run::ending::refused;
use crate::run::finish::unproven;
use crate::state::run_context::RunContext;
use starling_core::Approval;
use starling_workspace::replace_private_file;

/// First line of a patch that lacks what was refused. Programs that apply patches skip it.
const PART: &str =
    "This patch is a part of what was proposed: the rest was refused, so it may not work alone.\n";

/// Reverts the applied changes of a run that did not settle. Changes that a person reviewed stay.
/// Changes that a model reviewed are reverted only if the workspace is worse than before the run,
/// or if tests are required and no test proves the changes. The user's own edits always stay. If
/// the user edited the same lines as a change, that change stays as well and is reported.
pub(crate) async fn take_back(run: &Arc<RunContext>, stop_reason: &StopReason) {
    let is_reviewed = match run.task.approval {
        Approval::Ask => true,
        Approval::Proxy => {
            let is_unproven = run.must_prove() && unproven(run, stop_reason).is_some();
            !is_unproven && !is_worse(run, stop_reason)
        }
        Approval::Auto => false,
    };
    let applied: Vec<ProposalId> = {
        let state = run.proposals();
        let applied = state.applied().into_iter().rev();
        applied.map(|(one, _)| one.id).collect()
    };
    if is_reviewed || stop_reason.is_settled() || applied.is_empty() {
        return;
    }
    let diff = apply::whole_diff(run);
    let is_a_part = !refused(&run.log.events()).is_empty();
    let note = match is_a_part {
        true => PART,
        false => "",
    };
    let kept = format!("{note}{diff}");
    let patch = match run.task.patch.as_deref().map(|path| keep(path, &kept)) {
        Some(Ok(path)) => Some(path),
        Some(Err(why)) => {
            tracing::warn!(why, "the patch of an unsettled run is not written");
            None
        }
        None => None,
    };
    let with_changes = run.tests().latest.clone();
    run.tests().at_end.with_changes = with_changes;
    let left = match undo::undo(run, None).await {
        // Nothing is left to revert, because the user already undid the changes.
        Ok(_) | Err(UndoError::Unknown(_) | UndoError::Gone(_) | UndoError::Empty(_)) => Vec::new(),
        Err(UndoError::Stay { stay, .. }) => stay,
        Err(
            error @ (UndoError::Conflict { .. } | UndoError::Editor(_) | UndoError::Held { .. }),
        ) => applied.iter().map(|id| (*id, error.to_string())).collect(),
    };
    let mut gone = applied;
    gone.retain(|id| left.iter().all(|(stays, _)| stays != id));
    undo::note_gone(run, &gone);
    // If no change could be reverted, the result of the run must not report that they were.
    run.proposals().taken_back = (!gone.is_empty()).then(|| patch.clone());
    run.proposals().not_taken_back = left.first().map(|(_, why)| why.clone());
    run.event(Event::TakenBack { diff, patch, left });
}

/// Returns whether the workspace is worse than before the run: a test fails or a problem exists
/// that is known to be new. A part of a set (changes that pass the checks only together) that is
/// applied without the rest counts as worse too, because no test run has checked it alone.
fn is_worse(run: &RunContext, stop_reason: &StopReason) -> bool {
    let state = run.state();
    let mut failing = state.tests.latest.iter().flat_map(failing_ids);
    let has_new_failures = failing.any(|id| !state.tests.failing_before.contains(&id));
    let has_new_problems = matches!(stop_reason, StopReason::ProblemsRemain { .. });
    let applied = state.proposals.applied();
    let is_in_part = applied.iter().any(|(_, applied)| applied.is_left_alone);
    has_new_failures || has_new_problems || is_in_part
}

/// Writes the patch, which only the user can read, and returns its path.
fn keep(path: &Path, diff: &str) -> Result<String, String> {
    let shown = path.display().to_string();
    let written = replace_private_file(path, diff.as_bytes());
    written.map_err(|error| format!("{shown}: {error}"))?;
    Ok(shown)
}
