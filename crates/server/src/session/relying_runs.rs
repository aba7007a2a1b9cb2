//! What an undo would break in other runs.

use std::sync::Arc;

use super::RunSession;
use super::front_end::FrontEnd;
use super::other_runs::RecordedRuns;
use starling_platform::files::PathExt;
use starling_swarm::{Event, ProposalId, RunId};

impl RunSession {
    /// Returns the other runs of the open project.
    pub(super) fn others(
        &self,
        run: &RunId,
        front_end: &Arc<dyn FrontEnd>,
    ) -> Option<Arc<RecordedRuns>> {
        let root = front_end.root()?;
        let services = &self.shared.services;
        Some(Arc::new(RecordedRuns {
            run: run.clone(),
            root: root.canonical().unwrap_or(root),
            trajectories: services.trajectories.clone(),
            editor: front_end.editor(),
            indexer: Arc::clone(&services.index),
            workers: services.workers.clone(),
        }))
    }

    /// Returns a warning that the undo of a single proposal breaks what another run applied.
    pub(super) async fn breaks_others(
        &self,
        run: &RunId,
        events: Vec<Event>,
        proposal: ProposalId,
    ) -> Option<String> {
        let others = self.others(run, &self.front_end().ok()?)?;
        let relied_on = others.relied_on(events, &[proposal].into(), None).await;
        let first = relied_on.first()?;
        Some(format!(
            "this may break the code that stays: {proposal}: {}",
            first.why
        ))
    }
}
