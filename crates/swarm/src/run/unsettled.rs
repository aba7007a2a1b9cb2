//! The end of a run that no person reviewed and that did not settle: the user's tree becomes what it was,
//! and the changes are kept as a patch.

use std::path::Path;
use std::sync::Arc;

use crate::event::events::{Event, StopReason};
use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::failing_ids;
use crate::proposal::apply;
use crate::proposal::undo;
use crate::proposal::undo_error::UndoError;
use crate::run::lifecycle::unproven;
use crate::state::run_context::RunContext;
use starling_core::Approval;
use starling_syntax::FilePath;
use starling_workspace::write_atomically;

/// Takes back what was applied, where nobody reviewed it and the run did not settle. What a model
/// reviewed is taken back where it leaves the workspace worse than before the run and, where tests are
/// required, where no test proves it. What the user typed since stays; where the user changed the same
/// place, the change stays as well and is told.
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
    let patch = match run.task.patch.as_deref().map(|path| keep(path, &diff)) {
        Some(Ok(path)) => Some(path),
        Some(Err(why)) => {
            tracing::warn!(why, "the patch of an unsettled run is not written");
            None
        }
        None => None,
    };
    let left = match undo::undo(run, None).await {
        // The user was faster.
        Ok(_) | Err(UndoError::Unknown(_) | UndoError::Gone(_) | UndoError::Empty(_)) => Vec::new(),
        Err(UndoError::Stay { stay, .. }) => stay,
        Err(
            error @ (UndoError::Conflict { .. } | UndoError::Editor(_) | UndoError::Held { .. }),
        ) => applied.iter().map(|id| (*id, error.to_string())).collect(),
    };
    let mut gone = applied;
    gone.retain(|id| left.iter().all(|(stays, _)| stays != id));
    undo::note_gone(run, &gone);
    // Where all stay, the end must not say that they were taken back.
    run.proposals().taken_back = (!gone.is_empty()).then(|| patch.clone());
    run.event(Event::TakenBack { diff, patch, left });
}

/// Whether a test fails, or a problem is there, that was not before the run, as far as is known. What
/// passes only as a whole set, and stayed alone, may break what no test has shown yet.
fn is_worse(run: &RunContext, stop_reason: &StopReason) -> bool {
    let state = run.state();
    let mut failing = state.tests.latest.iter().flat_map(failing_ids);
    let has_new_failures = failing.any(|id| !state.tests.failing_before.contains(&id));
    let has_new_problems = matches!(stop_reason, StopReason::ProblemsRemain { .. });
    let applied = state.proposals.applied();
    let is_in_part = applied.iter().any(|(_, applied)| applied.is_left_alone);
    has_new_failures || has_new_problems || is_in_part
}

/// Writes the patch; gives where it is.
fn keep(path: &Path, diff: &str) -> Result<String, String> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(format!("{}: no path of a file", path.display()));
    };
    let name = FilePath::new(name.to_string_lossy().as_ref());
    write_atomically(directory, &name, diff).map_err(|error| error.to_string())?;
    Ok(path.display().to_string())
}
