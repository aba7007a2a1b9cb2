//! Finds runs of earlier servers that were interrupted or have waiting reviews, by their
//! trajectories.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::half_applied::{
    half_sets, half_sets_in, needing, rest_reason, rest_review, reviews_without_base,
};
use super::interrupted_edit;
use super::misplaced::{misplaced_conflicts, untold_misplaced_changes};
use super::outdated;
use super::run_view::{ProposalStatus, RunProposal, RunView};
use super::services::RestorePolicy;
use super::unreviewed::left_in_files;
use starling_history::{
    self, DiskEditor, HalfSet, HistoryError, MisplacedChange, UnfinishedChange,
};
use starling_platform::files::PathExt;
use starling_swarm::{Event, FileChange, ProposalId, Record, RunId, Spent, Stamped, StopReason};
use starling_syntax::SymbolPath;
use starling_workspace::private_file;

/// Trajectories that are older are ignored.
const MAX_AGE: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Maximum number of trajectories that are read, the newest first.
const MAX_READ: usize = 200;
/// The number of bytes that are read from the end of a trajectory to find its last line.
const TAIL_BYTES: u64 = 256 << 10;
/// How long after its last event an interrupted run without waiting reviews is offered.
const MAX_INTERRUPTED_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of interrupted runs that are offered, the newest.
const MAX_INTERRUPTED: usize = 5;
/// The extension of the file which marks that a run was interrupted by the end of its server.
const INTERRUPTED_EXTENSION: &str = "interrupted";
/// The extension of the file which marks that the user has forgotten a run.
const FORGOTTEN_EXTENSION: &str = "forgotten";
/// Maximum age, and maximum number, of ended runs in the history.
const MAX_ENDED_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const MAX_ENDED: usize = 10;
/// Maximum size in bytes of a trajectory in the history.
const MAX_ENDED_BYTES: u64 = 8 << 20;

/// A run that is offered again. Its file stays locked, so that no other server offers it.
#[derive(Debug)]
pub struct RestorableRun {
    pub id: RunId,
    pub task: String,
    pub records: Vec<Stamped>,
    pub path: PathBuf,
    pub file: File,
    /// The number of records that are in the file. The others could not be written.
    pub on_disk: usize,
    /// Whether reviews wait. Otherwise the run was interrupted and can be retried.
    pub waits: bool,
    /// The sets of accepted changes of which only a part is in the files.
    pub half: Vec<HalfSet>,
    /// The edits that the editor made at the wrong position, and that were not told yet.
    pub misplaced: Vec<MisplacedChange>,
    /// The symbols whose changes no person reviewed and that are in the files.
    pub unreviewed: Vec<SymbolPath>,
}

/// Marks that a run is interrupted by the end of its server.
pub fn mark_interrupted(trajectory: &Path) {
    if let Err(error) = private_file(&trajectory.with_extension(INTERRUPTED_EXTENSION)) {
        tracing::warn!(%error, "a run that is interrupted cannot be marked");
    }
}

/// An interrupted run that can be retried. Its trajectory stays locked until the run is retried or
/// forgotten.
#[derive(Debug, Clone)]
pub struct InterruptedRun {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

impl InterruptedRun {
    pub fn new(path: PathBuf, file: File) -> InterruptedRun {
        let file = Arc::new(Mutex::new(file));
        InterruptedRun { path, file }
    }

    /// Appends events of the run's applied changes that happened after its end, such as an undo.
    /// Only this handle can write the trajectory, because it holds the lock.
    ///
    /// # Errors
    /// The trajectory cannot be read or written.
    pub fn record(&self, events: Vec<Event>) -> Result<(), HistoryError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        starling_history::record_in(&mut file, &self.path, events)
    }

    /// Ends the trajectory, so that no later server offers the run again.
    pub fn close(self, end: Option<Event>) {
        if let Err(error) = self.record(end.into_iter().collect()) {
            tracing::warn!(path = %self.path.display(), %error, "the run will be offered again");
        }
        match std::fs::remove_file(self.path.with_extension(INTERRUPTED_EXTENSION)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(path = %self.path.display(), %error, "the run will be offered again");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// Finds the runs of a project that can be restored, the oldest first.
pub fn find_restorable(
    trajectories: &Path,
    root: &Path,
    wanted: &RestorePolicy,
) -> Vec<RestorableRun> {
    let Ok(entries) = std::fs::read_dir(trajectories) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .filter(|path| is_wanted(path, wanted) && is_young(path))
        .collect();
    paths.sort();
    let root = root.canonical().unwrap_or_else(|_| root.to_owned());
    let last = paths.into_iter().rev().take(MAX_READ);
    let mut found: Vec<RestorableRun> = last.filter_map(|path| open(path, &root)).collect();
    let mut interrupted = 0;
    found.retain(|one| {
        interrupted += usize::from(!one.waits);
        one.waits || interrupted <= MAX_INTERRUPTED
    });
    found.reverse();
    found
}

fn is_wanted(path: &Path, wanted: &RestorePolicy) -> bool {
    match wanted {
        RestorePolicy::All => true,
        RestorePolicy::Nothing => false,
        RestorePolicy::Only(run) => path.file_stem().is_some_and(|name| name == run.0.as_str()),
    }
}

fn is_young(path: &Path) -> bool {
    is_younger(path, MAX_AGE)
}

fn is_younger(path: &Path, most: Duration) -> bool {
    // Only regular files are opened: reading a pipe would never end.
    let data = path.metadata().ok().filter(std::fs::Metadata::is_file);
    let Some(data) = data else {
        return false;
    };
    let changed = data.modified();
    let age = changed
        .ok()
        .and_then(|changed| SystemTime::now().duration_since(changed).ok());
    age.is_none_or(|age| age < most)
}

fn open(path: PathBuf, root: &Path) -> Option<RestorableRun> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .open(&path)
        .ok()?;
    let mut lines = BufReader::new(&file);
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    let first: Stamped = serde_json::from_str(&line).ok()?;
    let Record::Event(Event::RunStarted {
        run,
        task,
        root: about,
        ..
    }) = &first.record
    else {
        return None;
    };
    let (id, task) = (run.clone(), task.clone());
    if Path::new(about) != root || file.try_lock().is_err() || ended_regularly(&path) {
        return None;
    }
    let mut records = vec![first];
    let end = line.len() as u64 + read_records(&mut lines, &mut records)?;
    starling_history::remove_remains(&id, &records, root);
    let misplaced = untold_misplaced_changes(&records, root, &path);
    let unrecorded = unrecorded_events(&records, root, &path);
    let first_unrecorded = records.len();
    let at_ms = records.last().map_or(0, |last| last.at_ms);
    for event in unrecorded {
        records.push(Stamped {
            seq: records.len() as u64,
            at_ms,
            record: Record::Event(event),
        });
    }
    let waits = has_waiting_reviews(&records);
    let can_run_again = was_interrupted(&records, &path) && is_younger(&path, MAX_INTERRUPTED_AGE);
    if !waits && !can_run_again && misplaced.is_empty() {
        return None;
    }
    let on_disk = match append(&file, end, &records[first_unrecorded..]) {
        Ok(()) => records.len(),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a restored run cannot be recorded yet");
            first_unrecorded
        }
    };
    let view = view_of(&records);
    outdated::end_evidence(&mut records, &id, root, &view);
    let half = half_sets(&records, root);
    Some(RestorableRun {
        unreviewed: left_in_files(&view, root, &path),
        half,
        misplaced,
        id,
        task,
        records,
        path,
        file,
        on_disk,
        waits,
    })
}

/// Appends the remaining records of a trajectory to `records`, up to a line that was cut off when
/// the server was killed. Returns the length of the appended records in bytes.
pub fn read_records(lines: &mut impl BufRead, records: &mut Vec<Stamped>) -> Option<u64> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        let read = lines.read_line(&mut line);
        let Ok(record) = serde_json::from_str(&line) else {
            return Some(length);
        };
        length += read.ok()? as u64;
        records.push(record);
    }
}

/// An ended run for the history of a project. It has no waiting reviews.
#[derive(Debug)]
pub struct EndedRun {
    pub id: RunId,
    pub task: String,
    pub records: Vec<Stamped>,
}

/// Returns the last ended runs of a project, the oldest first. Runs that are forgotten, locked by
/// another server or restorable are left out.
pub fn find_ended(trajectories: &Path, root: &Path, wanted: &RestorePolicy) -> Vec<EndedRun> {
    let Ok(entries) = std::fs::read_dir(trajectories) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .filter(|path| is_wanted(path, wanted) && is_younger(path, MAX_ENDED_AGE))
        .filter(|path| !path.with_extension(FORGOTTEN_EXTENSION).exists())
        .collect();
    paths.sort();
    let root = root.canonical().unwrap_or_else(|_| root.to_owned());
    let last = paths.into_iter().rev().take(MAX_READ);
    let mut past: Vec<EndedRun> = last
        .filter_map(|path| open_ended(&path, &root))
        .take(MAX_ENDED)
        .collect();
    past.reverse();
    past
}

fn open_ended(path: &Path, root: &Path) -> Option<EndedRun> {
    let file = File::open(path).ok()?;
    if path.with_extension(INTERRUPTED_EXTENSION).exists()
        || file.metadata().ok()?.len() > MAX_ENDED_BYTES
    {
        return None;
    }
    file.try_lock_shared().ok()?;
    let mut records: Vec<Stamped> = Vec::new();
    let (mut lines, mut line) = (BufReader::new(&file), String::new());
    loop {
        line.clear();
        lines.read_line(&mut line).ok()?;
        if !line.ends_with('\n') {
            // The end of the file, or a record that could not be written completely.
            break;
        }
        let record: Stamped = serde_json::from_str(&line).ok()?;
        if let (true, Record::Event(event)) = (records.is_empty(), &record.record) {
            let is_here = |event: &Event| matches!(event, Event::RunStarted { root: about, .. } if Path::new(about) == root);
            if !is_here(event) {
                return None;
            }
        }
        records.push(record);
    }
    let (id, task) = match &records.first()?.record {
        Record::Event(Event::RunStarted { run, task, .. }) => (run.clone(), task.clone()),
        Record::Event(_) | Record::Exchange(_) => return None,
    };
    let ends = |one: &Stamped| matches!(one.record, Record::Event(Event::RunFinished { .. }));
    let is_over = records.iter().any(ends) && !has_waiting_reviews(&records);
    is_over.then_some(EndedRun { id, task, records })
}

/// Marks that a run is no longer shown in the history.
pub fn mark_forgotten(trajectory: &Path) {
    if let Err(error) = private_file(&trajectory.with_extension(FORGOTTEN_EXTENSION)) {
        tracing::warn!(%error, "a forgotten run will be shown again");
    }
}

/// Returns whether the last line of a trajectory is a regular end of its run. Most trajectories end
/// like this, so the rest of them need not be read.
pub fn ended_regularly(path: &Path) -> bool {
    let last = || -> std::io::Result<Option<Stamped>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        let line = tail.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
        Ok(line.and_then(|line| serde_json::from_slice(line).ok()))
    };
    last().is_ok_and(|last| last.is_some_and(|last| is_regular_end(&last)))
}

/// Returns whether a record is the end of a run that was not interrupted.
fn is_regular_end(record: &Stamped) -> bool {
    match &record.record {
        Record::Event(Event::RunFinished { stop_reason, .. }) => {
            match stop_reason {
                // After these ends, reviews may still wait for an answer.
                StopReason::Cancelled
                | StopReason::LedgerEmpty { .. }
                | StopReason::Failed { .. } => false,
                StopReason::Settled
                | StopReason::NothingChanged { .. }
                | StopReason::TestsFail { .. }
                | StopReason::ProblemsRemain { .. } => true,
            }
        }
        Record::Event(_) | Record::Exchange(_) => false,
    }
}

/// Returns whether reviews waited when the run was interrupted.
fn has_waiting_reviews(records: &[Stamped]) -> bool {
    let in_order = (0..).zip(records).all(|(at, one)| one.seq == at);
    let ended = records.iter().any(is_regular_end);
    in_order
        && !ended
        && view_of(records)
            .lead_proposals()
            .any(|(_, one)| one.part.is_some())
}

/// Returns whether a run was interrupted: it has no end, or the end of its server caused it.
pub fn was_interrupted(records: &[Stamped], path: &Path) -> bool {
    let in_order = (0..).zip(records).all(|(at, one)| one.seq == at);
    let ends = |one: &Stamped| matches!(one.record, Record::Event(Event::RunFinished { .. }));
    in_order && (!records.iter().any(ends) || path.with_extension(INTERRUPTED_EXTENSION).exists())
}

/// Returns the costs of a run that its end reports.
pub fn total_spent(records: &[Stamped]) -> Option<&Spent> {
    records.iter().rev().find_map(|one| match &one.record {
        Record::Event(Event::RunFinished { spent, .. }) => Some(spent),
        Record::Event(_) | Record::Exchange(_) => None,
    })
}

/// Returns the view of the run before its server ended.
pub fn view_of(records: &[Stamped]) -> RunView {
    let mut view = RunView::default();
    for record in records {
        match &record.record {
            Record::Event(Event::RunFinished { .. }) | Record::Exchange(_) => {}
            Record::Event(event) => view.record(record.seq, event),
        }
    }
    if let Some(spent) = total_spent(records) {
        view.set_total_spent(spent);
    }
    view.stop_agents();
    view
}

/// Appends records after the first `length` bytes of a trajectory, in place of a line that was cut
/// off.
fn append(file: &File, length: u64, records: &[Stamped]) -> std::io::Result<()> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record)?;
        lines.push(b'\n');
    }
    starling_history::append_lines(file, length, &lines)
}

/// Returns the events that a killed run did not record. They report accepted changes in the files
/// as applied and those at the wrong position as conflicts, request a new review of accepted changes
/// that are not in the files, and reject waiting proposals that need an undone change.
pub fn unrecorded_events(records: &[Stamped], root: &Path, trajectory: &Path) -> Vec<Event> {
    let events = records.iter().filter_map(|record| match &record.record {
        Record::Event(event) => Some(event),
        Record::Exchange(_) => None,
    });
    let events: Vec<&Event> = events.collect();
    let disk = DiskEditor::new(root);
    // A change that is not in its file stays unfinished: an unsaved document of the editor may
    // contain it.
    let mut unrecorded: Vec<Event> = starling_history::unfinished(events.iter().copied())
        .iter()
        .filter(|one| {
            let change = &one.change;
            one.is_in_current(disk.now_as_shown(&change.file, &change.before))
        })
        .map(UnfinishedChange::applied)
        .collect();
    let mut view = view_of(records);
    let misplaced = untold_misplaced_changes(records, root, trajectory);
    unrecorded.extend(misplaced_conflicts(&misplaced, &view));
    for event in &unrecorded {
        view.record(records.len() as u64, event);
    }
    let asked = last_review_events(records).into_iter();
    let asked: Vec<Event> = asked
        .filter_map(|(lead, asked)| remaining_review(lead, asked, &view))
        .chain(interrupted_edit::taken_out(&view))
        .collect();
    for event in &asked {
        view.record(records.len() as u64, event);
    }
    unrecorded.extend(asked);
    let events: Vec<&Event> = events.into_iter().chain(&unrecorded).collect();
    let half = half_sets_in(&events, &view, root);
    unrecorded.extend(half.iter().filter_map(|set| rest_review(set, &view)));
    unrecorded.extend(reviews_without_base(&view));
    unrecorded
}

/// Returns the last event that requested a review, for each lead (the proposal through which a set
/// is reviewed).
fn last_review_events(records: &[Stamped]) -> BTreeMap<ProposalId, &Event> {
    let asked = records.iter().filter_map(|record| match &record.record {
        Record::Event(event @ Event::ReviewAsked { proposal, .. }) => Some((*proposal, event)),
        Record::Event(_) | Record::Exchange(_) => None,
    });
    asked.collect()
}

/// Returns an event that requests a new review of those parts of a review that are accepted or
/// waiting, or that the user edited and the run did not check to the end, but not applied. Returns
/// `None` if no parts are left, or if all parts still wait.
fn remaining_review(lead: ProposalId, asked: &Event, view: &RunView) -> Option<Event> {
    let state = |part: &FileChange| member_of(lead, part, view).map(|one| one.state);
    let all = asked.parts();
    let left = all
        .iter()
        .filter_map(|part| part_left(part, member_of(lead, part, view)?));
    let left: Vec<FileChange> = left.collect();
    let waits = |part: &FileChange| state(part) == Some(ProposalStatus::Waiting);
    if all.iter().all(waits) {
        return None;
    }
    let is_edited = left.iter().any(|part| !all.contains(part));
    let is_applied = |part: &&FileChange| state(part) == Some(ProposalStatus::Applied);
    let applied = all.iter().filter(is_applied).map(|part| part.proposal);
    let applied: Vec<ProposalId> = applied.collect();
    let first = left.iter().find(|part| part.proposal == lead);
    let first = first.or(left.first())?.clone();
    let others = left.iter().map(|part| part.proposal);
    let mut event = asked.clone();
    if let Event::ReviewAsked {
        proposal,
        agent,
        symbol,
        diff,
        reason,
        evidence,
        with,
        parts,
    } = &mut event
    {
        // The checks are repeated while a review waits, so the last evidence counts.
        if let Some(last) = view
            .proposals
            .get(&lead)
            .and_then(|one| one.evidence.as_ref())
        {
            evidence.clone_from(last);
        }
        if first.proposal != lead {
            agent.clone_from(&view.proposals.get(&first.proposal)?.agent);
        }
        if left != all {
            *diff = left.iter().map(FileChange::diff).collect();
        }
        if is_edited {
            interrupted_edit::note_unchecked(evidence);
        }
        if !applied.is_empty() {
            *reason = rest_reason(&applied, reason);
            needing(evidence, &applied);
        }
        *proposal = first.proposal;
        *symbol = first.symbol.clone();
        *with = others.filter(|other| *other != first.proposal).collect();
        *parts = left;
    }
    Some(event)
}

/// Returns the proposal of a part, if it is reviewed through `lead`.
fn member_of<'v>(
    lead: ProposalId,
    part: &FileChange,
    view: &'v RunView,
) -> Option<&'v RunProposal> {
    let proposal = view.proposals.get(&part.proposal);
    proposal.filter(|one| one.lead == lead)
}

/// Returns a part of a review as it is to be reviewed again; `None` if it was decided on.
fn part_left(part: &FileChange, proposal: &RunProposal) -> Option<FileChange> {
    match proposal.state {
        ProposalStatus::Accepted | ProposalStatus::Waiting => Some(part.clone()),
        ProposalStatus::Checking => interrupted_edit::left(proposal),
        ProposalStatus::Rejected
        | ProposalStatus::Applied
        | ProposalStatus::Conflicted
        | ProposalStatus::Undone
        | ProposalStatus::Dropped => None,
    }
}

/// An ended run with waiting reviews.
#[derive(Debug, Clone)]
pub struct WaitingRun {
    pub id: RunId,
    pub task: String,
    pub path: PathBuf,
    pub records: Vec<Stamped>,
    pub reviews: Vec<WaitingReview>,
}

/// A review: one proposal, or several that only pass together.
#[derive(Debug, Clone)]
pub struct WaitingReview {
    /// The proposal whose review is answered.
    pub lead: ProposalId,
    pub parts: Vec<FileChange>,
    /// When the evidence of the review was measured, in milliseconds since the start of the run.
    pub at_ms: u64,
}

/// Returns the runs of a project with waiting reviews, the newest first. Runs that another program
/// has open are left out.
pub fn waiting_runs(trajectories: &Path, root: &Path) -> Vec<WaitingRun> {
    let found = find_restorable(trajectories, root, &RestorePolicy::All);
    let run = |found: RestorableRun| WaitingRun {
        reviews: reviews(&found.records),
        id: found.id,
        task: found.task,
        path: found.path,
        records: found.records,
    };
    let found = found.into_iter().rev().filter(|one| one.waits);
    found.map(run).collect()
}

/// A run with waiting reviews that another program has open.
#[derive(Debug, Clone)]
pub struct LockedRun {
    pub id: RunId,
    pub path: PathBuf,
    /// The number of waiting reviews.
    pub reviews: usize,
}

/// Returns the runs of a project with waiting reviews that another program has open, the newest
/// first.
pub fn locked_runs(trajectories: &Path, root: &Path) -> Vec<LockedRun> {
    let root = root.canonical().unwrap_or_else(|_| root.to_owned());
    let last = recent(trajectories).into_iter();
    last.filter_map(|path| locked_run(path, &root)).collect()
}

/// Returns the last trajectories that are young enough to be offered, the newest first.
pub fn recent(trajectories: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(trajectories) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .filter(|path| is_young(path))
        .collect();
    paths.sort();
    paths.reverse();
    paths.truncate(MAX_READ);
    paths
}

fn locked_run(path: PathBuf, root: &Path) -> Option<LockedRun> {
    let file = File::open(&path).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let lines = BufReader::new(&file).lines();
    // The last line may still be being written.
    let records = lines.map_while(|line| serde_json::from_str(&line.ok()?).ok());
    let records: Vec<Stamped> = records.collect();
    let Record::Event(Event::RunStarted {
        run, root: about, ..
    }) = &records.first()?.record
    else {
        return None;
    };
    let reviews = view_of(&records).lead_proposals().count();
    let is_over = records.iter().any(is_regular_end);
    (Path::new(about) == root && reviews > 0 && !is_over).then(|| LockedRun {
        id: run.clone(),
        reviews,
        path,
    })
}

/// Returns when the last evidence of a proposal was recorded, in milliseconds since the start of
/// the run.
fn checked_at(records: &[Stamped], id: ProposalId) -> Option<u64> {
    let is_of = |record: &&Stamped| match &record.record {
        Record::Event(
            Event::ReviewAsked { proposal, .. } | Event::ProposalChecked { proposal, .. },
        ) => *proposal == id,
        Record::Event(_) | Record::Exchange(_) => false,
    };
    records.iter().rfind(is_of).map(|record| record.at_ms)
}

fn reviews(records: &[Stamped]) -> Vec<WaitingReview> {
    let view = view_of(records);
    let asked = |lead: ProposalId| {
        records
            .iter()
            .rev()
            .find_map(|record| match &record.record {
                Record::Event(Event::ReviewAsked {
                    proposal, parts, ..
                }) if *proposal == lead => Some(WaitingReview {
                    lead,
                    parts: parts.clone(),
                    at_ms: checked_at(records, lead).unwrap_or(record.at_ms),
                }),
                Record::Event(_) | Record::Exchange(_) => None,
            })
    };
    view.lead_proposals()
        .filter_map(|(lead, _)| asked(lead))
        .collect()
}
