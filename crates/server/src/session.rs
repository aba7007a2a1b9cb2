//! The runs of a session: starting them, answering their reviews, restoring and undoing them. This
//! module contains no LSP type: other front ends can use it.

mod approver;
mod arrived;
mod drive;
mod earlier_params;
mod edit;
mod editor_undo;
mod explanation;
mod front_end;
mod guarded;
mod half_applied;
mod interrupted_edit;
mod killed_runs;
pub mod messages;
mod misplaced;
mod other_runs;
mod outdated;
mod patches;
mod paths;
mod pending_reviews;
mod preview;
mod refresh;
mod relying_runs;
mod remedy;
pub(crate) mod restore;
mod restore_runs;
mod restored_run;
mod reviews;
mod run_view;
mod services;
mod status;
mod trajectory;
mod unreviewed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use drive::RunPlan;
use earlier_params::{UNKNOWN_PARAMS, recorded_params};
use editor_undo::LastComparison;
use messages::{RetryParams, RunParams, RunReply, UndoneParams};
use restore::InterruptedRun;
use starling_core::Verdict;
use starling_history::ChangeRecord;
use starling_swarm::{
    ActorId, Event, EventLog, FileChange, ProposalId, RunId, UndoError, are_in_words,
    broken_in_words,
};
use starling_syntax::{FilePath, SymbolPath};

pub use edit::EditedText;
pub use explanation::{TextFormat, explain, explain_with_diff};
pub use front_end::{CurrentFile, FrontEnd, OpenBuffers};
pub use killed_runs::{KilledRun, killed_runs};
pub use patches::TAKES_NO_EDITS;
pub use paths::{disk_text, file_at, listed_overlay, overlay, path_of};
pub use pending_reviews::{NotOpen, PendingReviews, ReviewTarget, ShownReview};
pub use preview::{Preview, preview};
pub use refresh::RefreshNotifier;
pub use remedy::{Remedy, size};
pub use restore::{LockedRun, WaitingReview, WaitingRun, locked_runs, waiting_runs};
pub use reviews::RetryableRun;
pub use run_view::{ProposalStatus, RunProposal, RunView, Spending, actor_name, short};
pub use services::{
    Fetcher, ModelList, OpenRequest, OpenedRun, Opener, RestorePolicy, RunControl, RunDefaults,
    RunStarter, Services, swarm,
};
pub use status::{OverviewPhase, RunOverview};

/// How long runs may take to take back their changes before the client leaves. Some clients wait for
/// two seconds after `shutdown`.
const DEPARTURE_DEADLINE: Duration = Duration::from_millis(1500);
/// How long trajectories may take to be written at shutdown.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(2);

/// Why a request about a run is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    #[error("no folder is open: open the folder of the project first")]
    NoRoot,
    #[error("there is no run `{0}`")]
    UnknownRun(String),
    #[error("run `{run}`: {what} is not waiting for an answer")]
    NotWaiting { run: String, what: String },
    #[error(
        "{what} changed since it was shown to you, so your answer did nothing: look at it again"
    )]
    Replaced { what: String },
    #[error("proposal {proposal} was not replaced by your version: {why}")]
    NotEdited { proposal: ProposalId, why: String },
    #[error("run `{run}` has no proposal {proposal}")]
    UnknownProposal { run: String, proposal: ProposalId },
    #[error("there is no question `{0}`")]
    UnknownAsk(String),
    #[error("run `{0}` has ended")]
    Ended(String),
    #[error(
        "the agents of run `{0}` ended with an earlier server: accept or reject the waiting proposals, or \
         run the task again"
    )]
    AgentsGone(String),
    #[error("run `{run}`: the message was not delivered: {why}")]
    NobodyToSteer { run: String, why: String },
    #[error("run `{0}` is still active: stop it before you run it again")]
    StillGoing(String),
    #[error("run `{0}` needs no download of a model: retry it without `download`")]
    NothingToFetch(String),
    #[error("run `{0}` has changed nothing yet")]
    NotStarted(String),
}

/// The phase of a run, with the data that exists only in that phase.
enum RunPhase {
    /// The run is being prepared. Contains the messages for the run that have arrived so far.
    Opening(Vec<(Option<SymbolPath>, String)>),
    Running(Arc<dyn RunControl>),
    Ended(Option<Arc<dyn RunControl>>),
}

/// A run of a session, with everything that the session stores about it.
struct RunEntry {
    phase: RunPhase,
    cancel: CancellationToken,
    pending_reviews: PendingReviews,
    /// The parameters of the run, for *Run again*.
    params: RunParams,
    view: RunView,
    /// The patches of changes that the editor cannot apply.
    patches: BTreeMap<ProposalId, PathBuf>,
    /// The number of the first event of this server. Earlier events were reported by an earlier
    /// server.
    first_new_event: u64,
    origin: RunOrigin,
    /// Whether the run applies changes that no person has reviewed.
    is_unreviewed: bool,
    /// Whether the task was started again as another run.
    is_retried: bool,
    /// The trajectory of an interrupted run. It is ended when the run is retried or forgotten.
    interrupted: Option<InterruptedRun>,
    /// Cancelled when the trajectory is complete and unlocked; `None` if this server does not write
    /// it.
    written: Option<CancellationToken>,
}

/// Whether this server started a run, or found it in a trajectory of an earlier server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunOrigin {
    Started,
    /// Started by an earlier server. Its waiting reviews wait again.
    Restored,
    /// Ended under an earlier server. It is kept for the history.
    Ended,
}

/// The runs of one front end. Their ids sort by start time.
#[derive(Clone)]
pub struct RunSession {
    shared: Arc<SessionShared>,
}

/// For each file, its text and the waiting changes that were compared with the text. Each change
/// comes with the id of its run.
type ComparedParts = BTreeMap<FilePath, (Arc<str>, Vec<(String, FileChange)>)>;

/// The part of [`RunSession`] that its tasks share.
struct SessionShared {
    services: Services,
    front_end: OnceLock<Arc<dyn FrontEnd>>,
    refresh: RefreshNotifier,
    tasks: TaskTracker,
    /// Fired when the front end disconnects.
    closing: CancellationToken,
    /// Messages about project settings that are ignored.
    ignored_settings: Mutex<Vec<String>>,
    /// Held while the settings are read, so that an older result does not replace a newer one.
    reading_settings: tokio::sync::Mutex<()>,
    entries: Mutex<BTreeMap<String, RunEntry>>,
    /// Cancelled when the runs of earlier servers are known.
    restored: CancellationToken,
    /// The last comparison of each file with the changes that were applied to it.
    compared: Mutex<BTreeMap<FilePath, LastComparison>>,
    /// The waiting changes and the texts of their files, at their last comparison.
    compared_parts: Mutex<ComparedParts>,
    /// Held while the trajectory of an ended run is extended.
    recording: tokio::sync::Mutex<()>,
}

impl RunSession {
    pub fn new(services: Services, refresh: RefreshNotifier) -> RunSession {
        let shared = SessionShared {
            services,
            front_end: OnceLock::new(),
            refresh,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            ignored_settings: Mutex::default(),
            reading_settings: tokio::sync::Mutex::default(),
            entries: Mutex::default(),
            compared: Mutex::default(),
            compared_parts: Mutex::default(),
            restored: CancellationToken::new(),
            recording: tokio::sync::Mutex::default(),
        };
        RunSession {
            shared: Arc::new(shared),
        }
    }

    /// Connects the front end. Later calls have no effect.
    pub fn connect(&self, front_end: Arc<dyn FrontEnd>) {
        self.shared.front_end.get_or_init(|| front_end);
    }

    /// Returns the notifier that requests a refresh of the front end.
    pub fn refresh(&self) -> RefreshNotifier {
        self.shared.refresh.clone()
    }

    fn front_end(&self) -> Result<Arc<dyn FrontEnd>, RunError> {
        self.shared.front_end.get().cloned().ok_or(RunError::NoRoot)
    }

    /// Reports something to the front end, if one is connected.
    async fn report<F: Future<Output = ()>>(&self, send: impl FnOnce(Arc<dyn FrontEnd>) -> F) {
        if let Some(front_end) = self.shared.front_end.get() {
            send(Arc::clone(front_end)).await;
        }
    }

    /// Returns the root directory of the open project.
    pub fn root(&self) -> Option<PathBuf> {
        self.shared.front_end.get()?.root()
    }

    /// Starts a run on the project, including the unsaved texts of open buffers.
    ///
    /// # Errors
    /// No project is open.
    pub fn start(&self, params: RunParams) -> Result<RunReply, RunError> {
        self.start_after(params, None)
    }

    /// Starts the task of an ended run again as a new run.
    ///
    /// # Errors
    /// The run does not exist or has not ended, or `asked.download` is set but the run did not fail
    /// for lack of a model that can be downloaded.
    pub fn retry(&self, asked: &RetryParams) -> Result<RunReply, RunError> {
        let run = &asked.run;
        let (mut params, remedy, is_unknown) = {
            let entries = self.lock();
            let entry = entries.get(&run.0).ok_or_else(|| unknown(run))?;
            if !matches!(entry.phase, RunPhase::Ended(_)) {
                return Err(RunError::StillGoing(run.0.clone()));
            }
            let is_unknown = !has_known_params(entry);
            (entry.params.clone(), entry.view.remedy(), is_unknown)
        };
        let download = match remedy {
            Some((Remedy::Download { model, .. }, _)) if asked.download => Some(model),
            _ if asked.download => return Err(RunError::NothingToFetch(run.0.clone())),
            _ => None,
        };
        params.model = asked.model.clone().or(params.model);
        let reply = self.start_after(params, download)?;
        if is_unknown {
            let runs = self.clone();
            self.spawn_while_connected(async move {
                let text = format!("Starling: {UNKNOWN_PARAMS}");
                runs.report(|front_end| async move { front_end.warn(text).await })
                    .await;
            });
        }
        if let Some(entry) = self.lock().get_mut(&run.0) {
            entry.is_retried = true;
            close_interrupted(entry);
        }
        Ok(reply)
    }

    /// Forgets all ended runs.
    pub fn forget(&self) {
        self.lock().retain(|id, entry| {
            let is_over = matches!(entry.phase, RunPhase::Ended(_));
            if is_over {
                close_interrupted(entry);
                restore::mark_forgotten(&self.trajectory(&RunId(id.clone())));
            }
            !is_over
        });
        self.shared.refresh.notify();
    }

    /// Starts a run, after a download of the weights of a model if `download` names one.
    fn start_after(
        &self,
        params: RunParams,
        download: Option<String>,
    ) -> Result<RunReply, RunError> {
        let front_end = self.front_end()?;
        let buffers = front_end.buffers();
        let root = front_end.root().ok_or(RunError::NoRoot)?;
        let plan = RunPlan {
            id: next_id(),
            params,
            download,
            root,
            pending_reviews: PendingReviews::default(),
            cancel: CancellationToken::new(),
            front_end,
            buffers,
            written: CancellationToken::new(),
        };
        let reply = RunReply {
            run: plan.id.clone(),
            trajectory: self.trajectory(&plan.id),
        };
        let entry = RunEntry {
            phase: RunPhase::Opening(Vec::new()),
            cancel: plan.cancel.clone(),
            pending_reviews: plan.pending_reviews.clone(),
            params: plan.params.clone(),
            view: RunView::default(),
            patches: BTreeMap::new(),
            first_new_event: 0,
            origin: RunOrigin::Started,
            is_unreviewed: false,
            is_retried: false,
            interrupted: None,
            written: Some(plan.written.clone()),
        };
        self.lock().insert(plan.id.0.clone(), entry);
        self.shared.tasks.spawn(self.clone().drive(plan));
        self.warn_ignored_settings();
        Ok(reply)
    }

    /// Sends a message to the agent of a symbol, or to all agents. If an intent of the symbol waits
    /// for an answer, the message is the answer.
    ///
    /// # Errors
    /// The run does not exist or has ended, or no agent can receive the message.
    pub fn steer(&self, run: &RunId, to: Option<SymbolPath>, text: String) -> Result<(), RunError> {
        let mut entries = self.lock();
        let entry = entries.get_mut(&run.0).ok_or_else(|| unknown(run))?;
        if entry.origin == RunOrigin::Restored {
            return Err(RunError::AgentsGone(run.0.clone()));
        }
        if let Some(symbol) = &to {
            let verdict = Verdict::Steer { text: text.clone() };
            let review = ReviewTarget::Intent(symbol.clone());
            if entry.pending_reviews.answer(&review, verdict).is_ok() {
                return Ok(());
            }
        }
        match &mut entry.phase {
            RunPhase::Opening(told) => told.push((to, text)),
            RunPhase::Running(handle) => {
                let why = to
                    .as_ref()
                    .and_then(|symbol| handle.why_nobody_owns(symbol));
                if let Some(why) = why {
                    let run = run.0.clone();
                    return Err(RunError::NobodyToSteer { run, why });
                }
                handle.steer(to, text);
            }
            RunPhase::Ended(_) => return Err(RunError::Ended(run.0.clone())),
        }
        Ok(())
    }

    /// Cancels a run. Has no effect on an ended run. Unless `keep_reviews` is set, also rejects the
    /// proposals that wait for review, so that the next server does not ask the user to review them
    /// again.
    ///
    /// # Errors
    /// There is no such run.
    pub fn cancel(&self, run: &RunId, keep_reviews: bool) -> Result<(), RunError> {
        let entries = self.lock();
        let entry = entries.get(&run.0).ok_or_else(|| unknown(run))?;
        let is_first = !entry.cancel.is_cancelled() && !keep_reviews;
        if let (RunPhase::Running(handle), true) = (&entry.phase, is_first) {
            for proposal in entry.view.under_review() {
                handle.log().event(Event::ProposalReviewed {
                    proposal,
                    by: ActorId::User,
                    verdict: Verdict::Reject {
                        reason: "the run was stopped".to_owned(),
                    },
                });
            }
        }
        cancel_run(entry);
        Ok(())
    }

    /// Undoes one applied proposal of a run, or all of them. The front end receives the result.
    ///
    /// # Errors
    /// There is no such run, or it has not started.
    pub fn undo(&self, run: &RunId, proposal: Option<ProposalId>) -> Result<(), RunError> {
        let handle = match &self.lock().get(&run.0).ok_or_else(|| unknown(run))?.phase {
            RunPhase::Running(handle) | RunPhase::Ended(Some(handle)) => Arc::clone(handle),
            RunPhase::Opening(_) | RunPhase::Ended(None) => {
                return Err(RunError::NotStarted(run.0.clone()));
            }
        };
        let (run, runs) = (run.clone(), self.clone());
        self.shared.tasks.spawn(async move {
            let changes = starling_history::changes(handle.log().events());
            let dependencies = starling_history::dependencies(&changes);
            let breaks_others = match proposal {
                Some(id) => runs.breaks_others(&run, handle.log().events(), id).await,
                None => None,
            };
            let (proposals, error) = match handle.undo(proposal).await {
                Ok(proposals) => (proposals, None),
                Err(error) => {
                    let why = error.to_string();
                    if let UndoError::Gone(gone) = &error {
                        runs.record_gone(&run, handle.as_ref(), gone);
                    }
                    let undone = if let UndoError::Stay { undone, .. } = error {
                        undone
                    } else {
                        Vec::new()
                    };
                    (undone, Some(why))
                }
            };
            let error = match runs.with_misplaced(handle.as_ref(), error).await {
                None if proposals.is_empty() => Some(why_nothing_is_undone(&changes)),
                error => error,
            };
            let gone: BTreeSet<ProposalId> = proposals.iter().copied().collect();
            let warnings = broken_in_words(&dependencies.broken_without(&gone)).into_iter();
            let warnings = warnings.chain(breaks_others.filter(|_| !gone.is_empty()));
            let warnings: Vec<String> = warnings.collect();
            let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
            let events = undo_events(&proposals, &handle.log());
            if let Some(entry) = runs.lock().get_mut(&run.0) {
                events
                    .iter()
                    .for_each(|event| entry.view.note_applied(event));
            }
            // Another run may have made the same change.
            runs.compare_files_again(&run, &proposals);
            runs.shared.refresh.notify();
            runs.record_standing(&run, handle.as_ref()).await;
            runs.send_events_after_end(&run, handle.as_ref()).await;
            let summary = undo_summary(&error, proposals.len(), warning.as_deref());
            let report = UndoneParams {
                run,
                proposals,
                error,
                warning,
            };
            runs.report(|front_end| async move { front_end.undone(report, summary).await })
                .await;
        });
        Ok(())
    }

    /// Records that the user removed changes from the text.
    fn record_gone(&self, run: &RunId, handle: &dyn RunControl, gone: &[ProposalId]) {
        for proposal in gone {
            let event = Event::ProposalUndone {
                proposal: *proposal,
                by_editor: true,
                unsaved: false,
            };
            handle.log().noticed(event.clone());
            if let Some(entry) = self.lock().get_mut(&run.0) {
                entry.view.note_applied(&event);
            }
        }
    }

    /// Appends to the trajectory of an ended run which of its changes are undone or applied now,
    /// because `starling undo` reads it there. While the run's log is open, the task that writes
    /// the log to the trajectory does this.
    async fn record_standing(&self, run: &RunId, handle: &dyn RunControl) {
        if !handle.log().is_closed() {
            return;
        }
        // The log is read while the lock is held, so that the last of several concurrent calls
        // records the final state.
        let _one_at_a_time = self.shared.recording.lock().await;
        let changes = starling_history::changes(handle.log().events());
        let standing: Vec<Event> = changes.iter().map(ChangeRecord::standing).collect();
        if standing.is_empty() {
            return;
        }
        if let Err(error) = self.record(run, standing).await {
            tracing::warn!(%error, "an undo or redo is not recorded");
        }
    }

    /// Appends events to the trajectory of a run whose log is closed.
    async fn record(&self, run: &RunId, events: Vec<Event>) -> anyhow::Result<()> {
        let entry = |entry: &RunEntry| (entry.written.clone(), entry.interrupted.clone());
        let entry = self.lock().get(&run.0).map(entry);
        let (written, interrupted) = entry.unwrap_or_default();
        let found = starling_history::RunFile {
            id: run.clone(),
            path: self.trajectory(run),
        };
        let record = match interrupted {
            Some(interrupted) => {
                tokio::task::spawn_blocking(move || interrupted.record(events)).await
            }
            None => {
                // The task that writes the log to the trajectory holds the file's lock, and it may
                // not have written all events yet.
                if let Some(written) = written {
                    written.cancelled().await;
                }
                tokio::task::spawn_blocking(move || starling_history::record(&found, events)).await
            }
        };
        Ok(record??)
    }

    /// Returns a token that is cancelled when the client disconnects.
    pub fn closing(&self) -> CancellationToken {
        self.shared.closing.clone()
    }

    /// Stops the runs whose changes no person reviews, so that they take back what they applied while
    /// the client still accepts edits. `ended` is cancelled when they have ended, or after a deadline.
    pub fn end_unreviewed(&self, ended: CancellationToken) {
        let mut ends = Vec::new();
        for (id, entry) in self.lock().iter() {
            if let (RunPhase::Running(run), true) = (&entry.phase, entry.is_unreviewed) {
                if !entry.cancel.is_cancelled() {
                    restore::mark_interrupted(&self.trajectory(&RunId(id.clone())));
                }
                cancel_run(entry);
                ends.push(until_recorded(run.log(), entry.written.clone()));
            }
        }
        if ends.is_empty() {
            ended.cancel();
            return;
        }
        self.shared.tasks.spawn(async move {
            let _cancelled_at_the_end = ended.drop_guard();
            let ends = futures::future::join_all(ends);
            if tokio::time::timeout(DEPARTURE_DEADLINE, ends)
                .await
                .is_err()
            {
                tracing::warn!("a run did not take its changes back in time");
            }
        });
    }

    /// Cancels all runs, so that they no longer change the client's texts.
    pub fn stop_all(&self) {
        self.shared.closing.cancel();
        for (id, entry) in self.lock().iter() {
            let is_over = matches!(entry.phase, RunPhase::Ended(_)) || entry.cancel.is_cancelled();
            if !is_over && entry.origin == RunOrigin::Started {
                restore::mark_interrupted(&self.trajectory(&RunId(id.clone())));
            }
            cancel_run(entry);
        }
    }

    /// Cancels all runs and waits a moment until their trajectories are written.
    pub async fn shutdown(&self) {
        self.stop_all();
        self.shared.tasks.close();
        if tokio::time::timeout(SHUTDOWN_DEADLINE, self.shared.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("a run did not end in time");
        }
    }

    fn trajectory(&self, id: &RunId) -> PathBuf {
        let directory: &Path = &self.shared.services.trajectories;
        directory.join(format!("{}.jsonl", id.0))
    }

    fn compared_parts(&self) -> MutexGuard<'_, ComparedParts> {
        let compared = self.shared.compared_parts.lock();
        compared.unwrap_or_else(PoisonError::into_inner)
    }

    fn compared_texts(&self) -> MutexGuard<'_, BTreeMap<FilePath, LastComparison>> {
        let compared = self.shared.compared.lock();
        compared.unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RunEntry>> {
        self.shared
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a run has ended and its trajectory is written.
async fn until_recorded(log: EventLog, written: Option<CancellationToken>) {
    let mut cursor = log.follow_from(log.records(0).len());
    while cursor.next().await.is_some() {}
    if let Some(written) = written {
        written.cancelled().await;
    }
}

fn cancel_run(entry: &RunEntry) {
    entry.cancel.cancel();
    if let RunPhase::Running(run) = &entry.phase {
        run.cancel();
    }
}

/// Returns whether the parameters of a run are known: this server started it, or its trajectory
/// contains them.
fn has_known_params(entry: &RunEntry) -> bool {
    let log = match (&entry.phase, entry.origin) {
        (RunPhase::Ended(Some(run)), RunOrigin::Restored | RunOrigin::Ended) => run.log(),
        (_, RunOrigin::Started)
        | (RunPhase::Opening(_) | RunPhase::Running(_) | RunPhase::Ended(None), _) => return true,
    };
    let events = log.events();
    events.first().and_then(recorded_params).is_some()
}

/// Ends the trajectory of an interrupted run.
fn close_interrupted(entry: &mut RunEntry) {
    if let (Some(interrupted), RunPhase::Ended(run)) = (entry.interrupted.take(), &entry.phase) {
        let events = run.as_ref().map(|run| run.log().events());
        let is_end = |event: &Event| matches!(event, Event::RunFinished { .. });
        let end = events.and_then(|events| events.into_iter().rfind(is_end));
        interrupted.close(end);
    }
}

/// Returns the events that report the undo of `proposals`, as the log has them.
fn undo_events(proposals: &[ProposalId], log: &EventLog) -> Vec<Event> {
    let changes = starling_history::changes(log.events());
    let event = |proposal: &ProposalId| {
        let mut last_first = changes.iter().rev();
        let known = last_first.find(|one| one.proposal == *proposal);
        known.map_or_else(
            || Event::ProposalUndone {
                proposal: *proposal,
                by_editor: false,
                unsaved: false,
            },
            ChangeRecord::standing,
        )
    };
    proposals.iter().map(event).collect()
}

/// Returns why an undo of a whole run undid nothing. `changes` are all changes that the run
/// applied.
fn why_nothing_is_undone(changes: &[ChangeRecord]) -> String {
    let ids: BTreeSet<ProposalId> = changes.iter().map(|one| one.proposal).collect();
    let ids: Vec<ProposalId> = ids.into_iter().collect();
    match &ids[..] {
        [] => "the run changed nothing".to_owned(),
        [..] => format!(
            "{} already taken back; the same text, if it is there again, counts as your own: remove it \
             in the editor",
            are_in_words(&ids)
        ),
    }
}

/// Returns a one-line summary of an undo.
fn undo_summary(error: &Option<String>, undone: usize, warning: Option<&str>) -> String {
    let summary = match (error, undone) {
        (Some(error), 0) => format!("Starling: not undone: {error}"),
        (Some(error), 1) => format!("Starling: 1 change undone; {error}"),
        (Some(error), many) => format!("Starling: {many} changes undone; {error}"),
        (None, 1) => "Starling: 1 change undone".to_owned(),
        (None, many) => format!("Starling: {many} changes undone"),
    };
    match warning {
        Some(warning) => format!("{summary}; {warning}"),
        None => summary,
    }
}

fn unknown(run: &RunId) -> RunError {
    RunError::UnknownRun(run.0.clone())
}

/// Returns a new id. Ids sort by time.
fn next_id() -> RunId {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    RunId(format!("{millis}-{}-{count:03}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_are_unique_and_sort_by_time() {
        let ids: Vec<String> = (0..50).map(|_| next_id().0).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    }
}
