//! Detects applied changes that the user removed by the editor's own undo, or restored by redo, and
//! changes that came or went with a document that was closed without being saved.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::paths::{disk_text, path_of};
use super::run_view::{AppliedEdit, TextSource};
use super::services::RunControl;
use super::trajectory::event_params;
use super::{RunEntry, RunOrigin, RunPhase, RunSession};
use starling_swarm::{Event, ProposalId, RunId};
use starling_syntax::FilePath;
use starling_text::ContentHash;

/// Maximum number of checks whether a run has ended.
const END_POLLS: u32 = 100;
const END_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The last comparison of a file with the changes that were applied to it.
pub(super) struct LastComparison {
    /// The hash of the file's text; `None` if the file must be compared again.
    hash: Option<ContentHash>,
    source: TextSource,
}

/// An applied change that the editor undid or redid.
struct EditorUndo {
    run: RunId,
    event: Event,
    handle: Arc<dyn RunControl>,
    has_ended: bool,
}

impl RunSession {
    /// Compares applied changes with the texts of open documents, and of documents that were closed.
    /// Texts that were already compared are skipped.
    pub(super) async fn detect_editor_undo(&self) {
        for file in self.applied_files(|_| true) {
            let Some((text, source)) = self.text_to_compare(&file).await else {
                continue;
            };
            let hash = Some(ContentHash::of(&text));
            let now = LastComparison {
                hash: hash.clone(),
                source,
            };
            let before = self.compared_texts().insert(file.clone(), now);
            if before.is_some_and(|before| before.hash == hash && before.source == source) {
                continue;
            }
            for noticed in self.editor_undo_events(&file, (&text, source)) {
                self.record_editor_undo(noticed).await;
            }
        }
    }

    /// After a document was saved: records which undos of changes in open documents are saved now.
    pub fn documents_saved(&self) {
        let files = self.applied_files(AppliedEdit::is_undone_unsaved);
        if files.is_empty() {
            return;
        }
        let runs = self.clone();
        self.shared.tasks.spawn(async move {
            for file in files {
                let Some(text) = runs.text_on_disk(&file).await else {
                    continue;
                };
                let events = runs.editor_undo_events(&file, (&text, TextSource::Disk));
                // Another document may have been saved. Then the disk says nothing about this one.
                let saved = events.into_iter().filter(|one| {
                    matches!(
                        one.event,
                        Event::ProposalUndone {
                            by_editor: false,
                            ..
                        }
                    )
                });
                for noticed in saved {
                    runs.record_editor_undo(noticed).await;
                }
            }
        });
    }

    /// Compares all files with their applied changes again at the next opportunity.
    pub(super) fn compare_again(&self) {
        for one in self.compared_texts().values_mut() {
            one.hash = None;
        }
    }

    /// Compares the files of these changes of a run at the next opportunity, also if they are not
    /// open.
    pub(super) fn compare_files_again(&self, run: &RunId, proposals: &[ProposalId]) {
        let files: Vec<FilePath> = {
            let entries = self.lock();
            let entry = entries.get(&run.0);
            let change = |id: &ProposalId| entry?.view.applied.get(id);
            let changes = proposals.iter().filter_map(change);
            changes.map(|one| one.file.clone()).collect()
        };
        let unknown = || LastComparison {
            hash: None,
            source: TextSource::Document,
        };
        let mut compared = self.compared_texts();
        compared.extend(files.into_iter().map(|file| (file, unknown())));
    }

    /// Returns the text of an open document. After the document was closed, perhaps without being
    /// saved, returns the text on disk once. The text on disk is also compared once for a run of an
    /// earlier server, which may have been killed before it could record an undo.
    async fn text_to_compare(&self, file: &FilePath) -> Option<(Arc<str>, TextSource)> {
        if let Some(open) = self.open_text(file).await {
            return Some((open, TextSource::Document));
        }
        let is_read = match self.compared_texts().get(file) {
            Some(last) => match last.source {
                TextSource::Document => Some(true),
                TextSource::Disk => last.hash.is_some().then_some(false),
            },
            None => None,
        };
        let needs_disk = |entry: &RunEntry| {
            let is_earlier = entry.origin != RunOrigin::Started;
            let mut of_file = entry.view.applied.values().filter(|one| one.file == *file);
            of_file.any(|one| is_earlier || one.is_undone_unsaved())
        };
        if !is_read.unwrap_or_else(|| self.lock().values().any(needs_disk)) {
            return None;
        }
        let text = self.text_on_disk(file).await?;
        Some((text, TextSource::Disk))
    }

    async fn text_on_disk(&self, file: &FilePath) -> Option<Arc<str>> {
        let path = path_of(self.root().as_deref()?, file)?;
        let shown = {
            let entries = self.lock();
            let applied = entries
                .values()
                .flat_map(|entry| entry.view.applied.values());
            let of_file = applied.filter(|edit| edit.file == *file);
            let last = of_file.max_by_key(|edit| edit.order());
            last.map(|edit| Arc::clone(edit.shown()))
        };
        disk_text(path, shown.as_ref()).await.ok().map(Arc::from)
    }

    /// Sends the front end the events that were added after the run ended, because the forwarding
    /// task has stopped.
    pub(super) async fn send_events_after_end(&self, run: &RunId, handle: &dyn RunControl) {
        let log = handle.log();
        if !log.is_closed() || !self.has_ended(run).await {
            return;
        }
        let new = {
            let mut entries = self.lock();
            let Some(entry) = entries.get_mut(&run.0) else {
                return;
            };
            let known = entry.view.seq.map_or(0, |seq| seq.saturating_add(1));
            let new = log.records(usize::try_from(known).unwrap_or(usize::MAX));
            entry.view.seq = new.last().map(|last| last.seq).or(entry.view.seq);
            new
        };
        for params in new.iter().filter_map(|record| event_params(run, record)) {
            self.report(|front_end| async move { front_end.event(params).await })
                .await;
        }
    }

    /// Waits up to two seconds until a run whose log is closed counts as ended. Returns whether it
    /// does.
    async fn has_ended(&self, run: &RunId) -> bool {
        for _ in 0..END_POLLS {
            let ended = |entry: &RunEntry| matches!(entry.phase, RunPhase::Ended(_));
            if self.lock().get(&run.0).is_none_or(ended) {
                return true;
            }
            sleep(END_POLL_INTERVAL).await;
        }
        false
    }

    /// Returns the files of the applied changes that `is_wanted` selects.
    fn applied_files(&self, is_wanted: impl Fn(&AppliedEdit) -> bool) -> Vec<FilePath> {
        let entries = self.lock();
        let applied = entries
            .values()
            .flat_map(|entry| entry.view.applied.values())
            .filter(|one| is_wanted(one));
        let mut files: Vec<FilePath> = applied.map(|one| one.file.clone()).collect();
        files.sort();
        files.dedup();
        files
    }

    /// Returns the undo and redo events to report when a file has a text: one for each applied
    /// change that was undone or redone there. The newest change comes first, because it builds on
    /// the older ones.
    fn editor_undo_events(&self, file: &FilePath, text: (&str, TextSource)) -> Vec<EditorUndo> {
        let entries = self.lock();
        let mut changes = Vec::new();
        for (id, entry) in entries.iter() {
            let (handle, has_ended) = match &entry.phase {
                RunPhase::Running(handle) => (handle, false),
                RunPhase::Ended(Some(handle)) => (handle, true),
                RunPhase::Opening(_) | RunPhase::Ended(None) => continue,
            };
            let applied = entry.view.applied.iter();
            let applied = applied.filter(|(_, one)| one.file == *file);
            changes.extend(applied.map(|change| ((id, handle, has_ended), change)));
        }
        changes.sort_by_key(|(_, (_, one))| std::cmp::Reverse(one.order()));
        let standing = changes.iter().map(|(_, (_, one))| *one);
        let mut standing: Vec<&AppliedEdit> = standing.filter(|one| one.stands()).collect();
        let mut noticed = Vec::new();
        for ((id, handle, has_ended), (proposal, one)) in changes {
            let Some(event) = one.undo_event(*proposal, text, &standing) else {
                continue;
            };
            standing.retain(|other| other.order() != one.order());
            noticed.push(EditorUndo {
                run: RunId(id.clone()),
                event,
                handle: Arc::clone(handle),
                has_ended,
            });
        }
        noticed
    }

    /// Adds the event to the run's log. If the run has ended, its log is closed; then the
    /// trajectory and the front end are updated here.
    async fn record_editor_undo(&self, noticed: EditorUndo) {
        let EditorUndo {
            run,
            event,
            handle,
            has_ended,
        } = noticed;
        if !handle.log().noticed(event.clone()) || !has_ended {
            return;
        }
        if let Some(entry) = self.lock().get_mut(&run.0) {
            entry.view.note_applied(&event);
        }
        self.send_events_after_end(&run, handle.as_ref()).await;
        self.record_standing(&run, handle.as_ref()).await;
    }
}
