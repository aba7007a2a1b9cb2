//! Executes an undo. All proposals of one file are undone by one write. If one proposal of a set
//! cannot be undone after all, the members of the set that were already undone are applied again.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::plan::{
    FileUndoPlan, UndoOutcome, UndoSelection, changes_of_file, current, files, plan_file,
    plan_text, refusal, select,
};
use super::trajectory::{ChangeRecord, HistoryError, PastRun, RunFile, open_locked};
use starling_core::{ApplyError, CurrentText, Editor, EditorError, Effect, FileEdit};
use starling_swarm::{Event, ProposalId};
use starling_syntax::{FilePath, carry_lines};
use starling_text::{ChangeSet, ContentHash};
use starling_workspace::{private_file, read_text, remove_empty_directories};

/// Maximum number of times that a file is planned again because its text changed in the meantime.
const MAX_TRIES: u32 = 8;
/// Maximum size in bytes of a journal. A longer file was not written by Starling.
const MAX_JOURNAL_BYTES: u64 = 1 << 20;

/// Receives the progress of an undo, file by file.
trait UndoRecorder {
    type Error;

    fn before_write(&mut self, plan: &FileUndoPlan) -> Result<(), Self::Error>;
    /// Records that proposals were undone, or applied again.
    fn record(&mut self, events: Vec<Event>) -> Result<(), Self::Error>;
}

/// Undoes proposals through an editor, the last applied first. After each file, `record` receives
/// the events of the proposals that were undone in it.
///
/// # Errors
/// Returns the first error of `record`; nothing is undone after it.
pub async fn undo<E>(
    editor: &Arc<dyn Editor>,
    root: Option<&Path>,
    changes: &[ChangeRecord],
    chosen: &BTreeSet<ProposalId>,
    record: impl FnMut(Vec<Event>) -> Result<(), E> + Send,
) -> Result<UndoOutcome, E> {
    /// A recorder that passes the events to a callback.
    struct CallbackRecorder<F>(F);
    impl<E, F: FnMut(Vec<Event>) -> Result<(), E>> UndoRecorder for CallbackRecorder<F> {
        type Error = E;
        fn before_write(&mut self, _: &FileUndoPlan) -> Result<(), E> {
            Ok(())
        }
        fn record(&mut self, events: Vec<Event>) -> Result<(), E> {
            (self.0)(events)
        }
    }
    undo_with(editor, root, changes, chosen, &mut CallbackRecorder(record)).await
}

async fn undo_with<R: UndoRecorder>(
    editor: &Arc<dyn Editor>,
    root: Option<&Path>,
    changes: &[ChangeRecord],
    chosen: &BTreeSet<ProposalId>,
    recorder: &mut R,
) -> Result<UndoOutcome, R::Error> {
    let (_, selection) = select(editor.as_ref(), changes, chosen).await;
    let files = files(changes, &selection.open);
    let mut undo = UndoProgress {
        editor,
        root,
        changes,
        selection,
        done: Vec::new(),
        recorder,
    };
    for file in files {
        undo.take_back(&file).await?;
    }
    Ok(undo.outcome())
}

/// An undo in progress.
struct UndoProgress<'u, R> {
    editor: &'u Arc<dyn Editor>,
    root: Option<&'u Path>,
    changes: &'u [ChangeRecord],
    selection: UndoSelection<'u>,
    /// The plans of the files that were already written.
    done: Vec<FileUndoPlan>,
    recorder: &'u mut R,
}

impl<R: UndoRecorder> UndoProgress<'_, R> {
    async fn take_back(&mut self, file: &FilePath) -> Result<(), R::Error> {
        let mut tries = 0;
        loop {
            // The user may have typed since the undo was planned.
            let open = &self.selection.open;
            let mut plan = plan_file(self.editor.as_ref(), self.changes, open, file).await;
            let mut refused = std::mem::take(&mut plan.refused);
            if refused.is_empty() {
                if plan.undone.is_empty() {
                    return Ok(());
                }
                let applied = match plan.edit() {
                    Some(edit) => {
                        self.recorder.before_write(&plan)?;
                        let applied = self.editor.apply(edit).await;
                        applied.map(|now| {
                            let is_restored = plan.restored.is_some();
                            plan.is_open |= is_restored && now.version.is_some();
                        })
                    }
                    None => Ok(()),
                };
                match applied {
                    Ok(()) => {
                        if let (Some(root), None) = (self.root, &plan.after) {
                            remove_empty_directories(root, &plan.directories);
                        }
                        if let (Some(root), Some(deleted)) = (self.root, &plan.restored) {
                            deleted.restore(root, file);
                        }
                        self.recorder.record(undone(&plan.undone, &plan))?;
                        self.done.push(plan);
                        return Ok(());
                    }
                    Err(ApplyError::Stale { .. }) if tries < MAX_TRIES => {
                        tries += 1;
                        continue;
                    }
                    Err(error) => {
                        let why = error.to_string();
                        let of_plan = changes_of_file(self.changes, file)
                            .filter(|(change, _)| plan.undone.contains(&change.proposal));
                        refused.extend(of_plan.map(|(one, made)| refusal(one, made, why.clone())));
                    }
                }
            }
            let held = self.selection.keep_refused(refused);
            self.reapply(held).await?;
        }
    }

    /// Applies proposals again because others of their set could not be undone.
    async fn reapply(&mut self, mut held: BTreeSet<ProposalId>) -> Result<(), R::Error> {
        while !held.is_empty() {
            let mut refused = Vec::new();
            for at in 0..self.done.len() {
                let plan = &self.done[at];
                if plan.undone.iter().any(|id| held.contains(id)) {
                    let reduced = plan.undone.iter().copied();
                    let reduced = reduced.filter(|id| !held.contains(id)).collect();
                    let mut reduced =
                        plan_text(self.changes, &reduced, &plan.file, plan.now.clone());
                    refused.append(&mut reduced.refused);
                    self.reapply_file(at, reduced).await?;
                }
            }
            held = self.selection.keep_refused(refused);
        }
        Ok(())
    }

    /// Writes a file again so that fewer proposals are undone in it. The events are recorded before
    /// the file is written: if the process is killed in between, the next undo finds that the
    /// changes of the reapplied proposals are not in the text.
    async fn reapply_file(&mut self, at: usize, reduced: FileUndoPlan) -> Result<(), R::Error> {
        let plan = &self.done[at];
        let is_back = |id: &ProposalId| {
            plan.undone.contains(id) && !plan.absent.contains(id) && !reduced.undone.contains(id)
        };
        let back = changes_of_file(self.changes, &plan.file);
        let back: Vec<&ChangeRecord> = back
            .map(|(change, _)| change)
            .filter(|change| is_back(&change.proposal))
            .collect();
        let again = back.iter().map(|change| change.applied());
        self.recorder.record(again.collect())?;
        match rewrite(self.editor, plan, &reduced).await {
            Ok(()) => self.done[at] = reduced,
            Err(why) => {
                tracing::warn!(file = %plan.file, why, "an undone part of a set cannot be applied again");
                let gone: Vec<ProposalId> = back.iter().map(|change| change.proposal).collect();
                let events = undone(&gone, &self.done[at]);
                self.recorder.record(events)?;
                let refused = &mut self.selection.refused;
                refused.retain(|one| !gone.contains(&one.proposal));
            }
        }
        Ok(())
    }

    fn outcome(self) -> UndoOutcome {
        let absent: Vec<ProposalId> = self
            .done
            .iter()
            .flat_map(|plan| plan.absent.clone())
            .collect();
        let mut refused = self.selection.refused;
        refused.retain(|one| !absent.contains(&one.proposal));
        UndoOutcome {
            undone: self.done.into_iter().flat_map(|plan| plan.undone).collect(),
            absent,
            refused,
            unrecorded: None,
        }
    }
}

/// Changes a file from the result of the plan `written` to the result of the plan `wanted`. Text
/// that the user typed after the file was written is kept.
async fn rewrite(
    editor: &Arc<dyn Editor>,
    written: &FileUndoPlan,
    wanted: &FileUndoPlan,
) -> Result<(), String> {
    let file = &written.file;
    let before: Arc<str> = written.after.clone().unwrap_or_else(|| "".into());
    let after = wanted.after.as_deref().unwrap_or("");
    let changes = ChangeSet::between_lines(&before, after);
    let deletes = wanted.after.is_none();
    if deletes && written.after.is_none() {
        return Ok(());
    }
    for _ in 0..MAX_TRIES {
        let (base, effect) = match editor.current_as_shown(file, &before).await {
            Ok(now) if deletes => (now, Effect::Delete),
            Ok(now) => (now, Effect::Change),
            Err(EditorError::Missing { .. }) if written.after.is_none() => {
                let nothing = CurrentText {
                    text: "".into(),
                    version: None,
                };
                (nothing, Effect::Create)
            }
            Err(error) => return Err(error.to_string()),
        };
        let carried = match deletes {
            true => ChangeSet::deletion(&before, &base.text),
            false => carry_lines(file, &before, &changes, &base.text),
        };
        let changes = carried.map_err(|conflict| conflict.in_lines(&before))?;
        let edit = FileEdit {
            file: file.clone(),
            changes,
            base,
            label: "undo less".to_owned(),
            effect,
        };
        match editor.apply(edit).await {
            Ok(_) => return Ok(()),
            Err(ApplyError::Stale { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!(
        "{file}: the text changed during each of {MAX_TRIES} attempts to write it"
    ))
}

/// Returns the undo events of `proposals` after `plan` was carried out.
fn undone(proposals: &[ProposalId], plan: &FileUndoPlan) -> Vec<Event> {
    let event = |proposal: &ProposalId| {
        // The user had already removed it.
        let by_editor = plan.absent.contains(proposal);
        Event::ProposalUndone {
            proposal: *proposal,
            by_editor,
            unsaved: !by_editor && plan.is_open(),
        }
    };
    proposals.iter().map(event).collect()
}

/// A file next to the trajectory while `starling undo` is running. If the undo is killed, the next
/// one reads the progress from this journal.
#[derive(Debug, Serialize, Deserialize)]
struct UndoJournal {
    /// All proposals that the user chose to undo.
    chosen: BTreeSet<ProposalId>,
    file: FilePath,
    /// The proposals of this file.
    undone: Vec<ProposalId>,
    /// The hash of the file's text after the undo; `None` if the undo removes the file.
    after: Option<ContentHash>,
    directories: Vec<String>,
}

/// A past run whose trajectory is open and locked.
#[derive(Debug)]
pub struct OpenRun {
    pub run: PastRun,
    file: File,
    /// The proposals that an interrupted undo was to undo.
    pub interrupted: Option<BTreeSet<ProposalId>>,
}

fn journal_path(trajectory: &Path) -> PathBuf {
    trajectory.with_extension("undo")
}

/// Returns whether an undo of this run was interrupted.
pub fn is_interrupted(found: &RunFile) -> bool {
    journal_path(&found.path).is_file()
}

impl OpenRun {
    /// Opens a run to undo it. Changes that a killed run or a killed undo made but did not record
    /// are recorded now.
    ///
    /// # Errors
    /// The run is still active, or its trajectory cannot be read.
    pub async fn open(
        found: &RunFile,
        editor: &dyn Editor,
        root: &Path,
    ) -> Result<OpenRun, HistoryError> {
        let file = open_locked(found)?;
        let run = PastRun::read_open(&file, &found.path)?;
        let mut open = OpenRun {
            run,
            file,
            interrupted: None,
        };
        let unrecorded = open.run.detect_unrecorded_changes(editor).await;
        if !unrecorded.is_empty() {
            let appended = open.run.append(&mut open.file, unrecorded);
            appended.map_err(|error| open.failed(error))?;
        }
        open.recover(editor, root).await?;
        Ok(open)
    }

    async fn recover(&mut self, editor: &dyn Editor, root: &Path) -> Result<(), HistoryError> {
        let path = journal_path(&self.run.path);
        // A journal that was cut off was written before its file was touched, so it can be ignored.
        let journal = read_text(&path, MAX_JOURNAL_BYTES).ok();
        let journal: Option<UndoJournal> =
            journal.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(journal) = journal {
            let now = match current(editor, &self.run.changes, &journal.file).await {
                Ok(now) => Some(Some(ContentHash::of(&now.text))),
                Err(EditorError::Missing { .. }) => Some(None),
                Err(_) => None,
            };
            if now == Some(journal.after) {
                remove_empty_directories(root, &journal.directories);
                let undone = self.run.changes.iter();
                let undone = undone.filter(|one| journal.undone.contains(&one.proposal));
                for deleted in undone.filter_map(|one| one.made.as_ref()?.deleted.as_ref()) {
                    deleted.restore(root, &journal.file);
                }
                let applied: BTreeSet<ProposalId> =
                    self.run.applied().map(|one| one.proposal).collect();
                let undone = journal.undone.iter().filter(|id| applied.contains(id));
                let undone = undone.map(|id| Event::ProposalUndone {
                    proposal: *id,
                    by_editor: false,
                    unsaved: false,
                });
                self.record(undone.collect())?;
            }
            self.interrupted = Some(journal.chosen);
        }
        Ok(())
    }

    /// Undoes proposals and records each of them.
    ///
    /// # Errors
    /// The undo cannot be recorded. Files that were already changed stay changed; the next undo
    /// records them.
    pub async fn undo(
        &mut self,
        editor: &Arc<dyn Editor>,
        root: &Path,
        chosen: &BTreeSet<ProposalId>,
    ) -> UndoOutcome {
        let changes = self.run.changes.clone();
        let mut recorder = JournalingRecorder {
            open: self,
            chosen: chosen.clone(),
            unrecorded: None,
        };
        let Ok(mut outcome) = undo_with(editor, Some(root), &changes, chosen, &mut recorder).await;
        outcome.unrecorded = recorder.unrecorded;
        self.forget_journal();
        outcome
    }

    /// Removes the journal after the undo has ended.
    pub fn forget_journal(&self) {
        // If the journal cannot be removed, the next undo only checks the file that it names once
        // more.
        let _ = fs::remove_file(journal_path(&self.run.path));
    }

    fn failed(&self, source: std::io::Error) -> HistoryError {
        HistoryError::Io {
            path: self.run.path.clone(),
            source,
        }
    }

    fn record(&mut self, events: Vec<Event>) -> Result<(), HistoryError> {
        let appended = self.run.append_and_apply(&mut self.file, events);
        appended.map_err(|error| self.failed(error))
    }
}

/// A recorder that writes the events to the trajectory and the progress to a journal. The undo goes on
/// if they cannot be written, because the next start finds it in the files.
struct JournalingRecorder<'r> {
    open: &'r mut OpenRun,
    chosen: BTreeSet<ProposalId>,
    /// The first error of a write.
    unrecorded: Option<String>,
}

impl JournalingRecorder<'_> {
    fn note(&mut self, written: Result<(), HistoryError>) {
        if let Err(error) = written {
            self.unrecorded.get_or_insert(error.to_string());
        }
    }
}

impl UndoRecorder for JournalingRecorder<'_> {
    type Error = Infallible;

    fn before_write(&mut self, plan: &FileUndoPlan) -> Result<(), Infallible> {
        let journal = UndoJournal {
            chosen: self.chosen.clone(),
            file: plan.file.clone(),
            undone: plan.undone.clone(),
            after: plan.after.as_deref().map(ContentHash::of),
            directories: plan.directories.clone(),
        };
        let path = journal_path(&self.open.run.path);
        let written = private_file(&path).and_then(|mut file| {
            serde_json::to_writer(&mut file, &journal)?;
            file.flush()?;
            file.sync_all()
        });
        if written.is_err() {
            self.open.forget_journal();
        }
        self.note(written.map_err(|source| HistoryError::Io { path, source }));
        Ok(())
    }

    fn record(&mut self, events: Vec<Event>) -> Result<(), Infallible> {
        let recorded = self.open.record(events);
        self.note(recorded);
        Ok(())
    }
}

/// Appends events to the trajectory of an ended run: its applied changes were undone after the end,
/// or the editor made them again. Events that the trajectory already contains are skipped. The undo of
/// a change whose result a killed server did not record also records that the change was applied.
///
/// # Errors
/// Another program has the trajectory open, or it cannot be read or written.
pub fn record(found: &RunFile, events: Vec<Event>) -> Result<(), HistoryError> {
    record_in(&mut open_locked(found)?, &found.path, events)
}

/// Like [`record`], for a trajectory that the caller has open and locked.
///
/// # Errors
/// The trajectory cannot be read or written.
pub fn record_in(file: &mut File, path: &Path, events: Vec<Event>) -> Result<(), HistoryError> {
    let mut run = PastRun::read_open(file, path)?;
    let applied = |event: &Event| {
        let (undone, stands) = event.standing()?;
        let mut unfinished = run.unfinished.iter().filter(|_| !stands);
        let change = unfinished.find(|one| one.proposal == undone)?;
        Some(change.applied())
    };
    let new = events
        .into_iter()
        .filter(|event| !run.already_records(event));
    let whole: Vec<Event> = new
        .flat_map(|event| applied(&event).into_iter().chain([event]))
        .collect();
    let appended = run.append(file, whole);
    appended.map_err(|source| HistoryError::Io {
        path: path.to_owned(),
        source,
    })
}
