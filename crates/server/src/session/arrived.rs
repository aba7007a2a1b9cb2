//! Changes that a killed server sent to the editor without recording a result, and that the text of an
//! unsaved document turns out to contain after the restart.

use std::sync::Arc;

use super::services::RunControl;
use super::{RunPhase, RunSession};
use starling_swarm::{Event, RunId};
use starling_syntax::SymbolPath;

impl RunSession {
    /// Records the changes of interrupted runs that have arrived in the texts of documents, and tells
    /// the user which of them no person reviewed.
    pub(super) async fn detect_arrived(&self) {
        let ended = |(id, entry): (&String, &super::RunEntry)| match &entry.phase {
            RunPhase::Ended(Some(handle)) => Some((RunId(id.clone()), Arc::clone(handle))),
            RunPhase::Opening(_) | RunPhase::Running(_) | RunPhase::Ended(None) => None,
        };
        let ended: Vec<(RunId, Arc<dyn RunControl>)> =
            self.lock().iter().filter_map(ended).collect();
        for (run, handle) in ended {
            let arrived = handle.note_arrived().await;
            if !arrived.is_empty() {
                self.record_arrived(&run, handle.as_ref(), arrived).await;
            }
        }
    }

    async fn record_arrived(&self, run: &RunId, handle: &dyn RunControl, arrived: Vec<Event>) {
        let (task, unreviewed) = {
            let mut entries = self.lock();
            let Some(entry) = entries.get_mut(&run.0) else {
                return;
            };
            arrived
                .iter()
                .for_each(|event| entry.view.note_applied(event));
            let is_new = |id| {
                let mut standing = arrived.iter().filter_map(Event::standing);
                standing.any(|(new, _)| new == id)
            };
            let unreviewed = entry.view.unreviewed().filter(|(id, _)| is_new(*id));
            let symbols: Vec<SymbolPath> = unreviewed
                .flat_map(|(_, one)| one.symbols.clone())
                .collect();
            (entry.params.task.clone(), symbols)
        };
        self.send_events_after_end(run, handle).await;
        self.record_standing(run, handle).await;
        if let (Ok(front_end), false) = (self.front_end(), unreviewed.is_empty()) {
            self.offer_undo((run, &task), &unreviewed, &front_end).await;
        }
    }
}
