//! Applied changes that the user took back, or made again, by the editor's own undo and redo.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{Entry, Runs, Stage};
use crate::follow::told;
use crate::protocol::EventNotification;
use crate::services::Run;
use starling_swarm::{Event, RunId};
use starling_syntax::FilePath;

/// How often, and with which pause, it is looked whether a run has ended.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A change that was undone or made again.
struct Noticed {
    run: RunId,
    event: Event,
    handle: Arc<dyn Run>,
    has_ended: bool,
}

impl Runs {
    /// Compares what was applied with the texts of open documents. Texts that were compared before are
    /// passed over.
    pub(super) async fn notice_undone(&self) {
        for file in self.applied_files() {
            let Some(open) = self.open_text(&file).await else {
                continue;
            };
            let is_known = {
                let mut compared = self.compared();
                let before = compared.insert(file.clone(), Arc::clone(&open));
                before.is_some_and(|before| before == open)
            };
            if is_known {
                continue;
            }
            for noticed in self.news_of(&file, &open) {
                self.take_in(noticed).await;
            }
        }
    }

    /// Sends the client's plugin the events of a run that has ended which it does not know yet: whoever
    /// followed its log has stopped.
    pub(super) async fn tell_after_end(&self, run: &RunId, handle: &dyn Run) {
        let log = handle.log();
        if !log.is_closed() || !self.has_ended(run).await {
            return;
        }
        let new = {
            let mut entries = self.lock();
            let Some(entry) = entries.get_mut(&run.0) else {
                return;
            };
            let known = entry.board.seq.map_or(0, |seq| seq.saturating_add(1));
            let new = log.records(usize::try_from(known).unwrap_or(usize::MAX));
            entry.board.seq = new.last().map(|last| last.seq).or(entry.board.seq);
            new
        };
        for params in new.iter().filter_map(|record| told(run, record)) {
            let plugin = &self.shared.plugin;
            plugin.notify::<EventNotification>(params).await;
        }
    }

    /// Waits a moment until those who follow the closed log of a run are through.
    async fn has_ended(&self, run: &RunId) -> bool {
        for _ in 0..LOOKS {
            let ended = |entry: &Entry| matches!(entry.stage, Stage::Ended(_));
            if self.lock().get(&run.0).is_none_or(ended) {
                return true;
            }
            sleep(PAUSE).await;
        }
        false
    }

    fn applied_files(&self) -> Vec<FilePath> {
        let entries = self.lock();
        let applied = entries
            .values()
            .flat_map(|entry| entry.board.applied.values());
        let mut files: Vec<FilePath> = applied.map(|one| one.file.clone()).collect();
        files.sort();
        files.dedup();
        files
    }

    /// What the text of a file says, the last change first: it was made over those before it.
    fn news_of(&self, file: &FilePath, text: &str) -> Vec<Noticed> {
        let entries = self.lock();
        let of_run = |(id, entry): (&String, &Entry)| {
            let (handle, has_ended) = match &entry.stage {
                Stage::Going(handle) => (Arc::clone(handle), false),
                Stage::Ended(Some(handle)) => (Arc::clone(handle), true),
                Stage::Opening(_) | Stage::Ended(None) => return Vec::new(),
            };
            let applied = entry.board.applied.iter().rev();
            let events = applied
                .filter(|(_, one)| one.file == *file)
                .filter_map(|(proposal, one)| one.news(*proposal, text));
            let noticed = events.map(|event| Noticed {
                run: RunId(id.clone()),
                event,
                handle: Arc::clone(&handle),
                has_ended,
            });
            noticed.collect()
        };
        entries.iter().flat_map(of_run).collect()
    }

    /// Tells the log of the run. That of a run that has ended is closed: its trajectory and the client
    /// are told here.
    async fn take_in(&self, noticed: Noticed) {
        let Noticed {
            run,
            event,
            handle,
            has_ended,
        } = noticed;
        if let Event::ProposalUndone { proposal } = &event
            && let Some(entry) = self.lock().get_mut(&run.0)
            && let Some(applied) = entry.board.applied.get_mut(proposal)
        {
            applied.undone_by_editor();
        }
        let log = handle.log();
        match &event {
            Event::ProposalUndone { proposal } if !log.undone(*proposal) => return,
            Event::ProposalUndone { .. } => {}
            _ => log.event(event.clone()),
        }
        if !has_ended {
            return;
        }
        if let Some(entry) = self.lock().get_mut(&run.0) {
            entry.board.note_applied(&event);
        }
        self.tell_after_end(&run, handle.as_ref()).await;
        if let Err(error) = self.record(&run, vec![event]).await {
            tracing::warn!(%error, "an undo in the editor is not recorded");
        }
    }
}
