//! Reads the trajectory of a run: which changes it applied, and which of them were undone.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::unfinished::{self, UnfinishedChange};
use starling_core::{CurrentText, Editor, EditorError};
use starling_swarm::{AppliedChange, Event, FileChange, ProposalId, Record, RunId, Stamped};
use starling_syntax::{MadeChange, SymbolPath};
use starling_text::{harmless, unified_diff};
use starling_workspace::{DeletedFile, PatchCommand};

/// Why a past run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("there is no run `{}` of this project; `starling undo --list` lists all runs", harmless(.0))]
    Unknown(String),
    #[error("`{}` matches the names of {} runs ({}); enter more of the name", harmless(prefix), .runs.len(), .runs.join(", "))]
    Ambiguous { prefix: String, runs: Vec<String> },
    #[error("run {run} belongs to another project; select that project with --repo {}", .root.display())]
    Elsewhere { run: String, root: PathBuf },
    #[error(
        "run {0} is still active, or an editor or another terminal has it open; undo it there, or try \
         again when it has ended"
    )]
    Open(String),
    #[error(
        "{}:{line}: this line of the trajectory cannot be read ({why}), so it is unknown what the run \
         changed; nothing was undone. {}", .path.display(), manual_undo_hint(.path)
    )]
    Damaged {
        path: PathBuf,
        line: u64,
        why: String,
    },
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Explains how to undo a run whose trajectory cannot be read.
pub(super) fn manual_undo_hint(trajectory: &Path) -> String {
    let patch = trajectory.with_extension("patch");
    match patch.is_file() {
        true => format!(
            "The whole change of the run is in {}: `{}` takes it back if nothing was changed since",
            patch.display(),
            PatchCommand::of(&root_of(trajectory).unwrap_or_default()).take_back()
        ),
        false => "Take the change back by hand or with your version control".to_owned(),
    }
}

/// Returns the root directory of the project of a run.
fn root_of(trajectory: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    let file = File::open(trajectory).ok()?;
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    let Event::RunStarted { root, .. } = serde_json::from_slice::<TrajectoryLine>(&line)
        .ok()?
        .event?
    else {
        return None;
    };
    Some(root.into())
}

/// Whether an applied change is still in the user's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeState {
    Applied,
    /// Starling took the change back. If the same text appears again, it is the user's own.
    Undone,
    /// Starling took the change back in an open document that was not saved since, so the file may
    /// still contain the change.
    UndoneUnsaved,
    /// The user removed the change, for example by the editor's own undo, and may make it again by
    /// the editor's redo.
    UndoneInEditor,
}

impl ChangeState {
    /// Returns the state after an event, with the proposal that the event is about; `None` if the
    /// event is about no change in the user's text.
    pub fn after(event: &Event) -> Option<(ProposalId, ChangeState)> {
        if let Event::ProposalApplied { proposal, .. } = event {
            Some((*proposal, ChangeState::Applied))
        } else if let Event::ProposalUndone {
            proposal,
            by_editor,
            unsaved,
        } = event
        {
            let state = match (by_editor, unsaved) {
                (true, _) => ChangeState::UndoneInEditor,
                (false, true) => ChangeState::UndoneUnsaved,
                (false, false) => ChangeState::Undone,
            };
            Some((*proposal, state))
        } else {
            None
        }
    }

    /// Returns whether the change counts as applied if the text contains it again.
    pub fn follows_text(self) -> bool {
        match self {
            ChangeState::UndoneInEditor | ChangeState::UndoneUnsaved => true,
            ChangeState::Applied | ChangeState::Undone => false,
        }
    }
}

/// An applied proposal, and whether its change is still in the user's text.
#[derive(Debug, Clone)]
pub struct ChangeRecord {
    pub proposal: ProposalId,
    pub symbols: Vec<SymbolPath>,
    pub state: ChangeState,
    /// `None` if the trajectory was written by a version that did not record the texts.
    pub made: Option<AppliedChange>,
}

impl ChangeRecord {
    /// Returns the event which records whether the change is in the user's text.
    pub fn standing(&self) -> Event {
        if self.state == ChangeState::Applied {
            return self.applied();
        }
        Event::ProposalUndone {
            proposal: self.proposal,
            by_editor: self.state == ChangeState::UndoneInEditor,
            unsaved: self.state == ChangeState::UndoneUnsaved,
        }
    }

    /// Returns the event which records that the change is in the user's text.
    pub(super) fn applied(&self) -> Event {
        let diff = self
            .made
            .as_ref()
            .map(|made| unified_diff(made.file.as_str(), &made.before, &super::plan::after(made)));
        Event::ProposalApplied {
            proposal: self.proposal,
            symbols: self.symbols.clone(),
            diff: diff.unwrap_or_default(),
            change: self.made.clone(),
        }
    }
}

/// A run that has ended.
#[derive(Debug, Clone)]
pub struct PastRun {
    pub id: RunId,
    pub task: String,
    pub path: PathBuf,
    /// The changes in the order in which they were applied.
    pub changes: Vec<ChangeRecord>,
    /// Whether the trajectory contains the end of the run.
    pub is_finished: bool,
    /// Changes that were sent to the editor and whose result is not recorded.
    pub(super) unfinished: Vec<UnfinishedChange>,
    /// The number of complete records.
    pub(super) records: u64,
    /// The length of the complete records in bytes. A last line that was cut off follows them.
    pub(super) length: u64,
}

/// The trajectory of a run.
#[derive(Debug, Clone)]
pub struct RunFile {
    pub id: RunId,
    pub path: PathBuf,
}

/// One line of a trajectory. Exchanges with models are skipped because they are long.
#[derive(Deserialize)]
struct TrajectoryLine {
    event: Option<Event>,
    exchange: Option<IgnoredAny>,
}

impl PastRun {
    /// Reads a trajectory.
    ///
    /// # Errors
    /// The file cannot be read, or one of its lines except the last cannot be parsed.
    pub fn read(path: &Path) -> Result<PastRun, HistoryError> {
        let failed = |source| HistoryError::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        Self::read_open(&file, path)
    }

    pub(super) fn read_open(mut file: &File, path: &Path) -> Result<PastRun, HistoryError> {
        let failed = |source| HistoryError::Io {
            path: path.to_owned(),
            source,
        };
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut lines = BufReader::new(file);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut run = PastRun {
            id: RunId(name.into_owned()),
            task: String::new(),
            path: path.to_owned(),
            changes: Vec::new(),
            is_finished: false,
            unfinished: Vec::new(),
            records: 0,
            length: 0,
        };
        let mut parts: Vec<FileChange> = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line).map_err(failed)?;
            if !line.ends_with(b"\n") {
                // The end of the file, or a line that was cut off when its writer was killed.
                return Ok(run);
            }
            let damaged = |why: String| HistoryError::Damaged {
                path: path.to_owned(),
                line: run.records + 1,
                why,
            };
            let event = match serde_json::from_slice::<TrajectoryLine>(&line) {
                Ok(TrajectoryLine {
                    event, exchange, ..
                }) if event.is_some() || exchange.is_some() => event,
                Ok(_) => return Err(damaged("it is neither an event nor an exchange".to_owned())),
                Err(error) => return Err(damaged(error.to_string())),
            };
            run.records += 1;
            run.length += read as u64;
            if let Some(Event::RunStarted { task, .. }) = event {
                run.task = task;
            } else if let Some(event) = event {
                run.is_finished |= matches!(event, Event::RunFinished { .. });
                unfinished::note(&mut run.unfinished, &event);
                apply_event(&mut run.changes, event, &mut parts);
            }
        }
    }

    /// Returns the changes that are still in the user's text.
    pub fn applied(&self) -> impl DoubleEndedIterator<Item = &ChangeRecord> {
        self.changes
            .iter()
            .filter(|change| change.state == ChangeState::Applied)
    }

    /// Returns the proposals that are recorded as applied and whose changes are no longer in the
    /// current texts, so that an undo would change nothing.
    pub async fn absent(&self, editor: &dyn Editor) -> BTreeSet<ProposalId> {
        let applied = self.applied().map(|change| change.proposal).collect();
        let plan = super::plan::plan(editor, &self.changes, &applied).await;
        plan.files
            .into_iter()
            .flat_map(|file| file.absent)
            .collect()
    }

    /// Checks the current texts for changes whose result is not recorded and for changes that the
    /// user had removed. A change that is in its file counts as applied. Returns events that record
    /// the applied changes.
    pub async fn detect_unrecorded_changes(&mut self, editor: &dyn Editor) -> Vec<Event> {
        let mut events = made_again(&self.changes, editor).await;
        for event in events.clone() {
            apply_event(&mut self.changes, event, &mut Vec::new());
        }
        for one in std::mem::take(&mut self.unfinished) {
            let after = super::plan::after(&one.change).into();
            let now = editor.current_as_shown(&one.change.file, &after).await;
            if one.is_in_current(now) {
                events.push(one.applied());
                apply_event(&mut self.changes, one.applied(), &mut Vec::new());
            } else {
                self.unfinished.push(one);
            }
        }
        events
    }

    /// Returns whether the run is still active: it has no recorded end, and a program has its
    /// trajectory open.
    pub fn is_running(&self) -> bool {
        let is_held = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        !self.is_finished && File::open(&self.path).is_ok_and(is_held)
    }

    /// Returns whether the last record about a change already reports the same state as an event:
    /// undone, or applied.
    pub(super) fn already_records(&self, event: &Event) -> bool {
        let Some((id, state)) = ChangeState::after(event) else {
            return false;
        };
        let mut last_first = self.changes.iter().rev();
        let last = last_first.find(|change| change.proposal == id);
        last.is_some_and(|change| change.state == state)
    }

    /// Returns when the run was started, as its name says.
    pub fn started(&self) -> Option<SystemTime> {
        started(&self.id)
    }

    /// Appends events to the trajectory and updates `changes`.
    pub(super) fn append_and_apply(
        &mut self,
        file: &mut File,
        events: Vec<Event>,
    ) -> io::Result<()> {
        let appended = self.append(file, events.clone());
        for event in events {
            apply_event(&mut self.changes, event, &mut Vec::new());
        }
        appended
    }

    /// Appends events to the trajectory.
    pub(super) fn append(
        &mut self,
        file: &mut File,
        events: impl IntoIterator<Item = Event>,
    ) -> io::Result<()> {
        let now = SystemTime::now();
        let since = started(&self.id).and_then(|started| now.duration_since(started).ok());
        let at_ms = since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
        let (mut lines, mut records) = (Vec::new(), self.records);
        for event in events {
            let stamped = Stamped {
                seq: records,
                at_ms,
                record: Record::Event(event),
            };
            serde_json::to_writer(&mut lines, &stamped)?;
            lines.push(b'\n');
            records += 1;
        }
        append_lines(file, self.length, &lines)?;
        file.sync_data()?;
        self.length += lines.len() as u64;
        self.records = records;
        Ok(())
    }
}

/// Writes whole lines after the first `length` bytes of a trajectory, in place of what follows
/// them.
///
/// # Errors
/// The lines cannot be written. A part of them is removed again as far as possible; the next call
/// with the same `length` removes the rest.
pub fn append_lines(mut file: &File, length: u64, lines: &[u8]) -> io::Result<()> {
    file.set_len(length)?;
    file.seek(SeekFrom::Start(length))?;
    let written = file.write_all(lines);
    if written.is_err() {
        // A part of a line would hide the lines that another program appends.
        let _ = file.set_len(length);
    }
    written
}

/// Returns the changes that a run applied, from its events.
pub fn changes(events: impl IntoIterator<Item = Event>) -> Vec<ChangeRecord> {
    let (mut changes, mut parts) = (Vec::new(), Vec::new());
    for event in events {
        apply_event(&mut changes, event, &mut parts);
    }
    changes
}

/// Returns an event for each change that the user had removed, or Starling in an unsaved document,
/// and that the current texts contain again.
pub async fn made_again(changes: &[ChangeRecord], editor: &dyn Editor) -> Vec<Event> {
    let mut again = Vec::new();
    for change in changes {
        let Some(made) = change.made.as_ref().filter(|_| change.state.follows_text()) else {
            continue;
        };
        let after: Arc<str> = super::plan::after(made).into();
        let now = editor.current_as_shown(&made.file, &after).await;
        if made.deleted.is_some() {
            again.extend(is_missing(&now).then(|| change.applied()));
            continue;
        }
        let one = MadeChange {
            file: &made.file,
            before: &made.before,
            after: &after,
        };
        if now.is_ok_and(|now| one.is_back_in(&now.text)) {
            again.push(change.applied());
        }
    }
    again
}

/// Returns whether a file does not exist. A file that cannot be read may exist.
pub(super) fn is_missing(now: &Result<CurrentText, EditorError>) -> bool {
    matches!(now, Err(EditorError::Missing { .. }))
}

/// Updates `changes` with an event. `parts` are all changes that were ever reviewed.
fn apply_event(changes: &mut Vec<ChangeRecord>, event: Event, parts: &mut Vec<FileChange>) {
    if let Event::ReviewAsked { parts: asked, .. } = event {
        parts.retain(|part| asked.iter().all(|one| one.proposal != part.proposal));
        parts.extend(asked);
    } else if let Event::ProposalApplied {
        proposal,
        symbols,
        change,
        ..
    } = event
    {
        let of_review = || parts.iter().find(|part| part.proposal == proposal);
        let made = change.or_else(|| of_review().map(as_reviewed));
        // There is nothing to undo if the text was already there.
        if made.as_ref().is_some_and(AppliedChange::is_empty) {
            return;
        }
        // A proposal that was undone can be applied again.
        changes.retain(|one| one.proposal != proposal || one.state == ChangeState::Applied);
        changes.push(ChangeRecord {
            proposal,
            symbols,
            state: ChangeState::Applied,
            made: made.filter(fits_its_text),
        });
    } else if let Some((proposal, state)) = ChangeState::after(&event) {
        let mut last_first = changes.iter_mut().rev();
        if let Some(change) = last_first.find(|one| one.proposal == proposal) {
            change.state = state;
        }
    }
}

/// Returns the start time of a run, which its name contains.
pub fn started(id: &RunId) -> Option<SystemTime> {
    let millis = id.0.split('-').next()?.parse().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

/// Returns the change as it was reviewed. Older trajectories contain a change only in this form.
pub(super) fn as_reviewed(part: &FileChange) -> AppliedChange {
    AppliedChange {
        file: part.file.clone(),
        before: part.base.clone(),
        changes: part.changes.clone(),
        created: part.base.is_empty() && !part.deleted,
        deleted: part.deleted.then(DeletedFile::default),
        directories: Vec::new(),
        dependencies: Default::default(),
        text_without: None,
    }
}

/// Returns whether the changes fit the text with which they were recorded.
fn fits_its_text(change: &AppliedChange) -> bool {
    change.changes.apply(&change.before).is_ok()
}

/// Returns the trajectories of a project, the newest first. Runs of older versions that do not name
/// their project are left out.
pub fn newest_first(trajectories: &Path, root: &Path) -> Vec<RunFile> {
    let mut paths = all(trajectories);
    paths.reverse();
    let found = |path: PathBuf| {
        let (id, about) = run_and_root(&path)?;
        (about == root).then_some(RunFile { id, path })
    };
    paths.into_iter().filter_map(found).collect()
}

/// Returns the only trajectory of the project whose name begins with `prefix`.
///
/// # Errors
/// There is no such trajectory, there are several, or it belongs to another project.
pub fn find(trajectories: &Path, root: &Path, prefix: &str) -> Result<RunFile, HistoryError> {
    let name = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    let mut paths = all(trajectories);
    paths.retain(|path| name(path).starts_with(prefix));
    if let Some(exact) = paths.iter().find(|path| name(path) == prefix) {
        paths = vec![exact.clone()];
    }
    let about = |path: &PathBuf| run_and_root(path).map(|(_, about)| about);
    let mut here = paths.clone();
    // A trajectory whose first line is damaged may belong to this project. Reading it reports the
    // damage.
    here.retain(|path| about(path).is_none_or(|about| about == root));
    match (&here[..], &paths[..]) {
        ([path], _) => Ok(RunFile {
            id: RunId(name(path)),
            path: path.clone(),
        }),
        ([], [other]) => Err(HistoryError::Elsewhere {
            run: name(other),
            root: about(other).unwrap_or_default(),
        }),
        ([], _) => Err(HistoryError::Unknown(prefix.to_owned())),
        (several, _) => Err(HistoryError::Ambiguous {
            prefix: prefix.to_owned(),
            runs: several.iter().map(name).collect(),
        }),
    }
}

/// Returns all trajectories, the oldest first. Their names begin with the start time.
fn all(trajectories: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(trajectories) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        // Only regular files are opened: reading a pipe would never end.
        .filter(|path| path.metadata().is_ok_and(|found| found.is_file()))
        .collect();
    paths.sort();
    paths
}

/// Returns the run and the root directory of its project.
fn run_and_root(path: &Path) -> Option<(RunId, PathBuf)> {
    let mut line = Vec::new();
    let file = File::open(path).ok()?;
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    let line: TrajectoryLine = serde_json::from_slice(&line).ok()?;
    match line.event? {
        Event::RunStarted { run, root, .. } if !root.is_empty() => Some((run, root.into())),
        _ => None,
    }
}

/// Opens a trajectory for appending and locks it against other programs.
pub(super) fn open_locked(found: &RunFile) -> Result<File, HistoryError> {
    let failed = |source| HistoryError::Io {
        path: found.path.clone(),
        source,
    };
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).open(&found.path);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(HistoryError::Open(found.id.0.clone())),
        Err(TryLockError::Error(error)) => {
            tracing::info!(%error, "trajectories cannot be locked here");
            Ok(file)
        }
    }
}
