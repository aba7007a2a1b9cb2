//! The other runs of a project, read from their trajectories: of this server, of earlier ones and of
//! the command line.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::runtime::Handle;

use super::services::Indexer;
use starling_core::Editor;
use starling_history::{OtherChange, UndoRefusal};
use starling_index::Index;
use starling_swarm::{Event, OtherRuns, ProposalId, RunId};

/// The other runs of the project of a run.
pub struct RecordedRuns {
    pub run: RunId,
    /// The canonical root directory of the project.
    pub root: PathBuf,
    pub trajectories: PathBuf,
    pub editor: Arc<dyn Editor>,
    pub indexer: Indexer,
    pub workers: Handle,
}

impl RecordedRuns {
    /// Returns the chosen proposals on which changes of other runs rely, and those that must stay with
    /// them. The index of the project is read if it is not known.
    pub async fn relied_on(
        &self,
        events: Vec<Event>,
        chosen: &BTreeSet<ProposalId>,
        known: Option<Arc<Index>>,
    ) -> Vec<UndoRefusal> {
        let others = self.changes().await;
        if others.is_empty() {
            return Vec::new();
        }
        let Some(index) = self.index(known).await else {
            return Vec::new();
        };
        let changes = starling_history::changes(events);
        let of_run = (&self.run, &changes[..]);
        starling_history::relied_on(of_run, chosen, &others, self.editor.as_ref(), &index).await
    }

    async fn changes(&self) -> Vec<OtherChange> {
        let (run, root) = (self.run.clone(), self.root.clone());
        let trajectories = self.trajectories.clone();
        let read = self
            .workers
            .spawn_blocking(move || starling_history::other_runs(&trajectories, &root, &run));
        let runs = read.await.unwrap_or_default();
        starling_history::other_changes(runs, self.editor.as_ref()).await
    }

    async fn index(&self, known: Option<Arc<Index>>) -> Option<Arc<Index>> {
        if known.is_some() {
            return known;
        }
        let open = self.editor.open_texts().await.unwrap_or_default();
        let (indexer, root) = (Arc::clone(&self.indexer), self.root.clone());
        let read = self.workers.spawn_blocking(move || indexer(root, open));
        let read = read.await.map_err(anyhow::Error::from).flatten();
        read.inspect_err(|error| {
            tracing::warn!(%error, "it is unknown whether other runs rely on what is undone");
        })
        .ok()
    }
}

#[async_trait]
impl OtherRuns for RecordedRuns {
    async fn rely_on(
        &self,
        events: Vec<Event>,
        chosen: &BTreeSet<ProposalId>,
        index: &Arc<Index>,
    ) -> Vec<(ProposalId, String)> {
        let relied_on = self.relied_on(events, chosen, Some(Arc::clone(index)));
        let relied_on = relied_on.await.into_iter();
        relied_on.map(|one| (one.proposal, one.why)).collect()
    }
}
