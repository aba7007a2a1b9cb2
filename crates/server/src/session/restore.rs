//! Runs of earlier servers that were interrupted, or ended while something waited for review, found by
//! their trajectories.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::run_view::{ProposalStatus, RunView};
use super::services::RestorePolicy;
use starling_history::{self, DiskEditor, HistoryError, UnfinishedChange};
use starling_swarm::{
    Event, FileChange, ProposalId, Record, RunId, Spent, Stamped, StopReason, ids,
};
use starling_text::unified_diff;
use starling_workspace::private_file;

/// Older trajectories are not looked at.
const MAX_AGE: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Of the younger ones, as many as this, the last first.
const MAX_READ: usize = 200;
/// Of the end of a trajectory, in bytes: it holds the last line.
const TAIL_BYTES: u64 = 256 << 10;
/// InterruptedRun runs that nothing waits of are offered for this long after their last event.
const MAX_INTERRUPTED_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// At most so many of them, the last ones.
const MAX_INTERRUPTED: usize = 5;
/// The ending of the file that markers a run as ended by its server, beside its trajectory.
const INTERRUPTED_EXTENSION: &str = "interrupted";
/// The ending of the file that markers a run as forgotten by its user.
const FORGOTTEN_EXTENSION: &str = "forgotten";
/// Runs that ended are shown for this long, and at most so many of them.
const MAX_ENDED_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const MAX_ENDED: usize = 10;
/// Longer trajectories are not read for the history.
const MAX_ENDED_BYTES: u64 = 8 << 20;

/// A run to be offered again. Its file stays locked, so that no other server review_actions it.
#[derive(Debug)]
pub struct RestorableRun {
    pub id: RunId,
    pub task: String,
    pub records: Vec<Stamped>,
    pub path: PathBuf,
    pub file: File,
    /// Whether something waits for review. Else the run was interrupted, and can be run again.
    pub waits: bool,
}

/// Notes that a run ends with its server, in the middle of its work.
pub fn mark_interrupted(trajectory: &Path) {
    if let Err(error) = private_file(&trajectory.with_extension(INTERRUPTED_EXTENSION)) {
        tracing::warn!(%error, "a run that is interrupted cannot be marked");
    }
}

/// An interrupted run that is offered to be run again. Its trajectory stays locked meanwhile.
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

    /// Adds to the trajectory what happened to the applied changes of the run since. No other handle of
    /// the file could: this one has it locked.
    ///
    /// # Errors
    /// The trajectory cannot be read or written.
    pub fn record(&self, events: Vec<Event>) -> Result<(), HistoryError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        starling_history::record_in(&mut file, &self.path, events)
    }

    /// Ends the trajectory, so that no later server review_actions the run again.
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

/// Looks through a folder of trajectories for runs about a project.
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
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
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
    // Nothing else is opened: a pipe would never end.
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
    let mut end = line.len() as u64;
    let mut records = vec![first];
    loop {
        line.clear();
        let read = lines.read_line(&mut line);
        // A line that was cut when the server died is the last.
        let Ok(record) = serde_json::from_str(&line) else {
            break;
        };
        end += read.ok()? as u64;
        records.push(record);
    }
    let unrecorded = unrecorded_events(&records, root);
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
    if !waits && !can_run_again {
        return None;
    }
    file.set_len(end).ok()?;
    append(&file, &records[first_unrecorded..]).ok()?;
    records.iter_mut().for_each(end_evidence);
    Some(RestorableRun {
        id,
        task,
        records,
        path,
        file,
        waits,
    })
}

/// What was found out about a proposal does not count any more on those who were at work.
fn end_evidence(record: &mut Stamped) {
    if let Record::Event(Event::ReviewAsked { evidence, .. }) = &mut record.record {
        *evidence = evidence.of_ended();
    }
}

/// A run that ended, for the history of a project. Nothing of it waits.
#[derive(Debug)]
pub struct EndedRun {
    pub id: RunId,
    pub task: String,
    pub records: Vec<Stamped>,
}

/// The last runs about a project that have ended, the oldest first. Runs that were forgotten, that
/// another server has open, or that are offered again otherwise are not among them.
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
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
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
    for line in BufReader::new(&file).lines() {
        let record: Stamped = serde_json::from_str(&line.ok()?).ok()?;
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

/// Notes that a run is not to be shown in the history any more.
pub fn mark_forgotten(trajectory: &Path) {
    if let Err(error) = private_file(&trajectory.with_extension(FORGOTTEN_EXTENSION)) {
        tracing::warn!(%error, "a forgotten run will be shown again");
    }
}

/// Whether the last line says so: most runs do, and need not be read.
fn ended_regularly(path: &Path) -> bool {
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

/// The end of a run that was not cut short.
fn is_regular_end(record: &Stamped) -> bool {
    match &record.record {
        Record::Event(Event::RunFinished { stop_reason, .. }) => {
            match stop_reason {
                // What waited then was not answered.
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

/// Whether something waited for review when the run ended, and the run did not end by itself.
fn has_waiting_reviews(records: &[Stamped]) -> bool {
    let in_order = (0..).zip(records).all(|(at, one)| one.seq == at);
    let ended = records.iter().any(is_regular_end);
    in_order
        && !ended
        && view_of(records)
            .lead_proposals()
            .any(|(_, one)| one.part.is_some())
}

/// Whether a run ended with its server: it has no end, or one that the server's end brought about.
fn was_interrupted(records: &[Stamped], path: &Path) -> bool {
    let in_order = (0..).zip(records).all(|(at, one)| one.seq == at);
    let ends = |one: &Stamped| matches!(one.record, Record::Event(Event::RunFinished { .. }));
    in_order && (!records.iter().any(ends) || path.with_extension(INTERRUPTED_EXTENSION).exists())
}

/// What a run had spent at its end.
pub fn total_spent(records: &[Stamped]) -> Option<&Spent> {
    records.iter().rev().find_map(|one| match &one.record {
        Record::Event(Event::RunFinished { spent, .. }) => Some(spent),
        Record::Event(_) | Record::Exchange(_) => None,
    })
}

/// The run as it was before its server ended.
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

fn append(mut file: &File, records: &[Stamped]) -> std::io::Result<()> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record)?;
        lines.push(b'\n');
    }
    file.write_all(&lines)
}

/// What a run that was killed did not record: changes that are in the files, and accepted proposals that
/// are not, so that they wait for review again.
fn unrecorded_events(records: &[Stamped], root: &Path) -> Vec<Event> {
    let events = records.iter().filter_map(|record| match &record.record {
        Record::Event(event) => Some(event),
        Record::Exchange(_) => None,
    });
    let disk = DiskEditor::new(root);
    // One that is not in its file stays open: a document of the editor that is not saved may hold it.
    let mut unrecorded: Vec<Event> = starling_history::unfinished(events)
        .iter()
        .filter(|one| one.is_in(disk.read(&one.change.file).ok().as_deref()))
        .map(UnfinishedChange::applied)
        .collect();
    let mut view = view_of(records);
    for event in &unrecorded {
        view.record(records.len() as u64, event);
    }
    let asked = last_review_events(records).into_iter();
    unrecorded.extend(asked.filter_map(|(lead, asked)| remaining_review(lead, asked, &view)));
    unrecorded
}

/// The last question about each leading proposal.
fn last_review_events(records: &[Stamped]) -> BTreeMap<ProposalId, &Event> {
    let asked = records.iter().filter_map(|record| match &record.record {
        Record::Event(event @ Event::ReviewAsked { proposal, .. }) => Some((*proposal, event)),
        Record::Event(_) | Record::Exchange(_) => None,
    });
    asked.collect()
}

/// The question about those parts that were accepted and are not in the files; `None` if there are none,
/// or if the question stands as it is.
fn remaining_review(lead: ProposalId, asked: &Event, view: &RunView) -> Option<Event> {
    let state = |part: &FileChange| {
        let proposal = view.proposals.get(&part.proposal);
        proposal.filter(|one| one.lead == lead).map(|one| one.state)
    };
    let all = asked.parts();
    let is_left = |part: &&FileChange| {
        matches!(
            state(part),
            Some(ProposalStatus::Accepted | ProposalStatus::Waiting)
        )
    };
    let left: Vec<FileChange> = all.iter().filter(is_left).cloned().collect();
    let is_accepted = |part: &FileChange| state(part) == Some(ProposalStatus::Accepted);
    if left.len() == all.len() && !left.iter().any(is_accepted) {
        return None;
    }
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
        with,
        parts,
        ..
    } = &mut event
    {
        if first.proposal != lead {
            agent.clone_from(&view.proposals.get(&first.proposal)?.agent);
        }
        if !applied.is_empty() {
            let changed = |part: &FileChange| part.changes.apply(&part.base).unwrap_or_default();
            let diffs = left
                .iter()
                .map(|part| unified_diff(part.file.as_str(), &part.base, &changed(part)));
            *diff = diffs.collect();
            *reason = format!(
                "the rest of a set: {} of it is applied, and Starling was killed before the rest was. \
                 {reason}",
                ids(&applied)
            );
        }
        *proposal = first.proposal;
        *symbol = first.symbol.clone();
        *with = others.filter(|other| *other != first.proposal).collect();
        *parts = left;
    }
    Some(event)
}

/// A run that is over, and in which proposals wait for review.
#[derive(Debug, Clone)]
pub struct WaitingRun {
    pub id: RunId,
    pub task: String,
    pub path: PathBuf,
    pub records: Vec<Stamped>,
    pub reviews: Vec<WaitingReview>,
}

/// What is reviewed at once: a proposal, or several that pass only together.
#[derive(Debug, Clone)]
pub struct WaitingReview {
    /// The proposal that is asked about.
    pub lead: ProposalId,
    pub parts: Vec<FileChange>,
    /// When the user was asked, in milliseconds since the run began.
    pub at_ms: u64,
}

/// The runs of a project in which something waits for review, the newest first. Those that another
/// program has open are not among them.
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

/// A run that another program has open, and in which proposals wait for review.
#[derive(Debug, Clone)]
pub struct LockedRun {
    pub id: RunId,
    pub path: PathBuf,
    /// The number of reviews that wait.
    pub reviews: usize,
}

/// The runs of a project in which something waits for review and that another program has open, the
/// newest first.
pub fn locked_runs(trajectories: &Path, root: &Path) -> Vec<LockedRun> {
    let Ok(entries) = std::fs::read_dir(trajectories) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .filter(|path| is_young(path))
        .collect();
    paths.sort();
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let last = paths.into_iter().rev().take(MAX_READ);
    last.filter_map(|path| locked_run(path, &root)).collect()
}

fn locked_run(path: PathBuf, root: &Path) -> Option<LockedRun> {
    let file = File::open(&path).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let lines = BufReader::new(&file).lines();
    // The last line may still be on its way to the disk.
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
                    at_ms: record.at_ms,
                }),
                Record::Event(_) | Record::Exchange(_) => None,
            })
    };
    view.lead_proposals()
        .filter_map(|(lead, _)| asked(lead))
        .collect()
}
