//! The events of a run, and the log that stores them. All user interfaces are derived from the
//! events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::budget::Spent;
use crate::event::actor::ActorId;
use crate::event::dependencies::Dependencies;
use crate::event::ending::Ending;
use crate::evidence::check_results::DiagnosticEvidence;
use crate::evidence::file_change::FileChange;
use crate::evidence::ids::ProposalId;
use crate::evidence::proposal::Evidence;
use starling_core::{
    Cost, Dollars, Driver, Exchange, Finish, Limits, ModelNotice, Role, TestReport, Usage, Verdict,
};
use starling_syntax::{FilePath, SymbolPath};
use starling_text::ChangeSet;

/// Identifier of a run, unique on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

/// The source of an owner's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSource {
    Model,
    /// Reused from an earlier question in this run.
    Memory,
    /// The owner is itself waiting for an answer of the asking agent, so a description from the
    /// index is returned instead of an answer.
    Cycle,
    /// There is no answer: it did not arrive in time, or the budget does not allow the question.
    Refused,
}

/// Why an agent was woken (started, or given more work).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    Picked {
        why: String,
    },
    ChangeRequest {
        from: ActorId,
        reason: String,
    },
    /// The contract of another symbol, which this symbol uses, has changed, so that its uses may
    /// have to be adapted.
    FollowUp {
        changed: SymbolPath,
        changes: Vec<String>,
        lines: Vec<u32>,
        text: String,
        /// Number of the round of follow-ups, counted from 1. Changes that agents make in round 1
        /// can require follow-ups in round 2, and so on.
        #[serde(default)]
        wave: u32,
    },
    FailedTests {
        message: String,
    },
    /// The final check found problems that must be fixed.
    Problems {
        message: String,
    },
    Steered {
        text: String,
    },
    /// Another agent declined the change that this agent requested.
    Declined {
        by: ActorId,
        reason: String,
    },
}

impl Cause {
    /// Returns a short description of the cause, which is shown to other agents.
    pub fn in_short(&self) -> String {
        match self {
            Cause::Picked { why } => why.clone(),
            Cause::ChangeRequest { reason, .. } => reason.clone(),
            Cause::FollowUp {
                changed, changes, ..
            } => format!("follow {changed}: {}", changes.join("; ")),
            Cause::FailedTests { .. } => "fix tests that fail".to_owned(),
            Cause::Problems { .. } => "fix problems that the changes introduced".to_owned(),
            Cause::Steered { text } => text.clone(),
            Cause::Declined { reason, .. } => format!("declined: {reason}"),
        }
    }
}

/// The outcome of an agent's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum AgentOutcome {
    Changed,
    NothingToChange,
    /// The agent gave up, or reached its limit of turns, refused proposals or malformed replies.
    GaveUp {
        why: String,
    },
}

/// The point of a run at which tests are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestPhase {
    /// At the start, before any change.
    Before,
    /// During the check of a proposal.
    Proposal,
    /// When no agent has work left, to decide whether the run can end.
    Settling,
}

/// Why a run stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// No agent has work left, and no test fails that passed before the run or that the task
    /// requires to pass.
    Settled,
    /// No agent has work left, but nothing was changed.
    NothingChanged {
        why: String,
    },
    /// No agent has work left, but tests fail.
    TestsFail {
        failing: Vec<String>,
    },
    /// No agent has work left, but the changes introduced problems that nobody accepted.
    ProblemsRemain {
        problems: Vec<String>,
    },
    LedgerEmpty {
        what: String,
    },
    Cancelled,
    Failed {
        error: String,
    },
}

impl StopReason {
    pub fn is_settled(&self) -> bool {
        matches!(self, StopReason::Settled)
    }
}

/// A symbol that may be relevant for the task. It was found by a search, without a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub symbol: SymbolPath,
    pub score: f64,
    pub why: Vec<String>,
}

/// A change that was made to a file of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedChange {
    pub file: FilePath,
    /// The whole text before the change; empty if the change created the file.
    pub before: Arc<str>,
    pub changes: ChangeSet,
    /// Whether the change created the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// The directories that were created for the file, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// The proposals that this change depends on, or that depend on it as parts of the same set.
    /// Absent in older recordings.
    #[serde(default, skip_serializing_if = "Dependencies::is_empty")]
    pub dependencies: Dependencies,
}

impl AppliedChange {
    /// Returns whether nothing was changed, because the file already had the text of the proposal.
    pub fn is_empty(&self) -> bool {
        !self.created && self.changes.edits().is_empty()
    }
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    RunStarted {
        run: RunId,
        task: String,
        driver: Driver,
        models: Vec<(Role, String)>,
        /// Whether model replies come from a recording.
        replayed: bool,
        limits: Limits,
        /// Workspace directory of the run; empty in older recordings.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        root: String,
    },
    TestsRun {
        phase: TestPhase,
        proposal: Option<ProposalId>,
        report: TestReport,
    },
    Located {
        candidates: Vec<Candidate>,
        millis: u64,
    },
    ScoutPicked {
        symbols: Vec<(SymbolPath, String)>,
    },
    AgentWoken {
        agent: ActorId,
        cause: Cause,
    },
    AgentFinished {
        agent: ActorId,
        outcome: AgentOutcome,
        summary: String,
    },
    TurnStarted {
        agent: ActorId,
        role: Role,
        conversation: String,
        turn: u32,
    },
    TurnFinished {
        agent: ActorId,
        role: Role,
        model: String,
        usage: Usage,
        cost: Dollars,
        calls: u32,
        finish: Finish,
        millis: u64,
    },
    TurnFailed {
        agent: ActorId,
        role: Role,
        error: String,
        /// Cost that was charged for the failed requests.
        #[serde(default)]
        spent: Cost,
    },
    Notice {
        agent: ActorId,
        notice: ModelNotice,
    },
    /// A reply could not be parsed or used. The agent receives a message about it.
    Malformed {
        agent: ActorId,
        what: String,
    },
    ToolUsed {
        agent: ActorId,
        tool: String,
        argument: String,
        outcome: String,
    },
    Asked {
        question: u32,
        from: ActorId,
        to: ActorId,
        text: String,
    },
    Answered {
        question: u32,
        from: ActorId,
        to: ActorId,
        text: String,
        source: AnswerSource,
    },
    ChangeRequested {
        from: ActorId,
        to: ActorId,
        reason: String,
    },
    /// The owner of a symbol declined the change that another agent requested.
    ChangeDeclined {
        by: ActorId,
        to: ActorId,
        reason: String,
    },
    IntentStated {
        agent: ActorId,
        intent: String,
        reason: String,
    },
    IntentReviewed {
        agent: ActorId,
        by: ActorId,
        verdict: Verdict,
    },
    ProposalMade {
        proposal: ProposalId,
        agent: ActorId,
        symbols: Vec<SymbolPath>,
        reason: String,
        diff: String,
        /// The earlier proposal that this one replaces because the approver sent it back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revises: Option<ProposalId>,
    },
    /// The state of a language server changed, for example it started or crashed.
    LanguageServer {
        what: String,
    },
    /// All changed files were diagnosed together.
    Diagnosed {
        files: Vec<FilePath>,
        found: DiagnosticEvidence,
    },
    /// A proposal failed its checks and was sent back to its agent.
    ProposalRefused {
        agent: ActorId,
        /// The reason, as shown to the agent.
        why: String,
        /// The reason, as shown to the user; absent in older recordings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<String>,
    },
    ProposalChecked {
        proposal: ProposalId,
        evidence: Evidence,
    },
    /// Several models wrote alternative versions of a change, and one version was chosen.
    CandidateChosen {
        agent: ActorId,
        model: String,
        among: Vec<String>,
        why: String,
    },
    ReviewAsked {
        proposal: ProposalId,
        agent: ActorId,
        symbol: SymbolPath,
        diff: String,
        reason: String,
        evidence: Evidence,
        /// The other proposals of the set, which are applied only together with this one. The
        /// verdict applies to the whole set.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        with: Vec<ProposalId>,
        /// The changes of all proposals under review, stored so that the review can be shown after
        /// the run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<FileChange>,
    },
    /// The reviewer edited a proposal. The edited version is checked, and the set is reviewed
    /// again. An empty diff means that the reviewer removed the proposal from the set.
    ProposalEdited {
        proposal: ProposalId,
        symbols: Vec<SymbolPath>,
        diff: String,
    },
    /// The reviewer sent an edited version of a set. `proposal` is the proposal through which the set
    /// is reviewed; `parts` are the edited changes, empty for a proposal that is to be removed. This
    /// event is written to the trajectory before the sender gets a reply, so that the edited texts
    /// survive if the run ends while they are checked.
    EditReceived {
        proposal: ProposalId,
        parts: Vec<FileChange>,
    },
    ProposalReviewed {
        proposal: ProposalId,
        by: ActorId,
        verdict: Verdict,
    },
    /// An accepted change is about to be sent to the editor. This event is written to the
    /// trajectory before the editor receives the change. If the process is killed before the
    /// outcome is recorded, the text of the file shows whether the change was applied.
    ProposalApplying {
        proposal: ProposalId,
        symbols: Vec<SymbolPath>,
        change: AppliedChange,
    },
    ProposalApplied {
        proposal: ProposalId,
        symbols: Vec<SymbolPath>,
        diff: String,
        /// The change, stored so that it can be undone after the run. Absent in older recordings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<AppliedChange>,
    },
    /// The user edited the same lines as the proposal, so the proposal went back to its agent.
    ProposalConflicted {
        proposal: ProposalId,
        why: String,
    },
    /// The proposal was accepted, but the editor refused it or the run ended first. Nothing was
    /// changed.
    ProposalNotApplied {
        proposal: ProposalId,
        why: String,
    },
    ProposalUndone {
        proposal: ProposalId,
        /// Whether the user removed the change, for example with the editor's undo command. Only in
        /// this case can the editor's redo command apply the change again. After an undo by
        /// Starling, the same text can only be the user's own edit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_editor: bool,
    },
    FollowedUp {
        changed: SymbolPath,
        changes: Vec<String>,
        to: Vec<SymbolPath>,
    },
    /// A changed contract can break code of these owners. Either they were not notified, or they
    /// were notified and did not change their code.
    FollowUpMissed {
        changed: SymbolPath,
        owners: Vec<SymbolPath>,
        why: String,
        /// Whether these owners were notified.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        told: bool,
    },
    /// The agent of a symbol could not be started or given work. `from` is the actor that requested
    /// this.
    NotWoken {
        symbol: String,
        from: ActorId,
        why: String,
    },
    /// The run did not succeed and nobody reviewed its changes, so the changes were reverted.
    TakenBack {
        /// The reverted changes, as a unified diff.
        diff: String,
        /// Path of the file that holds the diff.
        patch: Option<String>,
        /// The proposals that could not be reverted, each with the reason.
        left: Vec<(ProposalId, String)>,
    },
    Steered {
        to: Option<SymbolPath>,
        text: String,
    },
    RunFinished {
        stop_reason: StopReason,
        /// All changed symbols.
        applied: Vec<SymbolPath>,
        /// Unified diff of all applied changes.
        diff: String,
        spent: Spent,
        summary: String,
        /// For each model, the number of times that its version of a change was chosen.
        tally: Vec<(String, u32)>,
        /// The result of the run. Absent in older recordings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<Ending>,
    },
}

impl Event {
    /// Returns whether clients receive this event. Other events are only written to the trajectory.
    pub fn is_told(&self) -> bool {
        !matches!(
            self,
            Event::ProposalApplying { .. } | Event::EditReceived { .. }
        )
    }

    /// Returns the proposal whose change was applied to the text (`true`) or removed from it
    /// (`false`) by this event; `None` for other events.
    pub fn standing(&self) -> Option<(ProposalId, bool)> {
        if let Event::ProposalApplied { proposal, .. } = self {
            Some((*proposal, true))
        } else if let Event::ProposalUndone { proposal, .. } = self {
            Some((*proposal, false))
        } else {
            None
        }
    }

    /// For an event that announces an edit before it is sent to the editor, returns the edit as a
    /// part of a review.
    pub fn announced_part(&self) -> Option<FileChange> {
        let Event::ProposalApplying {
            proposal,
            symbols,
            change,
        } = self
        else {
            return None;
        };
        Some(FileChange {
            proposal: *proposal,
            symbol: symbols.first()?.clone(),
            symbols: symbols.clone(),
            reason: String::new(),
            file: change.file.clone(),
            base: Arc::clone(&change.before),
            changes: change.changes.clone(),
        })
    }

    /// Returns the changes under review; empty for events other than [`Event::ReviewAsked`].
    pub fn parts(&self) -> &[FileChange] {
        if let Event::ReviewAsked { parts, .. } = self {
            parts
        } else {
            &[]
        }
    }
}

/// A line of a trajectory (the recorded log of a run).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(
    clippy::large_enum_variant,
    reason = "every record lives in an Arc of its own"
)]
pub enum Record {
    Event(Event),
    Exchange(Exchange),
}

/// A record with its sequence number and its time in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Sequence number, counted from 0 without gaps.
    pub seq: u64,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    #[serde(flatten)]
    pub record: Record,
}

/// The append-only log of a run. Appending never blocks on readers, which follow with a [`Cursor`].
/// The run's budget bounds its length.
#[derive(Debug, Clone)]
pub struct EventLog {
    inner: Arc<EventLogData>,
}

/// The data of an event log, shared by all its clones and cursors.
#[derive(Debug)]
struct EventLogData {
    began: Instant,
    records: Mutex<Vec<Arc<Stamped>>>,
    count: watch::Sender<LogProgress>,
    /// Number of records that were written to the trajectory file; `None` if no trajectory is
    /// written.
    written: watch::Sender<Option<usize>>,
}

/// The number of records in a log, and whether the log is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogProgress {
    count: usize,
    closed: bool,
}

impl EventLogData {
    /// Waits until the first `count` records have been written to the trajectory file. Returns at
    /// once if no trajectory is written.
    async fn written(&self, count: usize) {
        let mut written = self.written.subscribe();
        // The sender is a field of `self`, so this wait cannot fail.
        let _ = written
            .wait_for(|written| written.is_none_or(|written| written >= count))
            .await;
    }
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new()
    }
}

impl EventLog {
    pub fn new() -> Self {
        let (count, _) = watch::channel(LogProgress {
            count: 0,
            closed: false,
        });
        let inner = EventLogData {
            began: Instant::now(),
            records: Mutex::default(),
            count,
            written: watch::channel(None).0,
        };
        EventLog {
            inner: Arc::new(inner),
        }
    }

    /// Creates a log that begins with `records` and numbers its further records after them.
    pub fn resumed(records: Vec<Stamped>) -> Self {
        let log = EventLog::new();
        let at_ms = records.last().map_or(0, |last| last.at_ms);
        let began = Instant::now().checked_sub(Duration::from_millis(at_ms));
        let inner = EventLogData {
            began: began.unwrap_or(log.inner.began),
            count: watch::channel(LogProgress {
                count: records.len(),
                closed: false,
            })
            .0,
            records: Mutex::new(records.into_iter().map(Arc::new).collect()),
            written: watch::channel(None).0,
        };
        EventLog {
            inner: Arc::new(inner),
        }
    }

    pub fn event(&self, event: Event) {
        self.numbered(event);
    }

    /// Appends an event and returns its number.
    pub fn numbered(&self, event: Event) -> u64 {
        tracing::debug!(?event, "event");
        self.append(Record::Event(event)) as u64 - 1
    }

    /// Waits until all current records have been written to the trajectory. Returns at once if no
    /// trajectory is written, or if it can no longer be written.
    pub async fn written(&self) {
        let count = self.lock().len();
        self.inner.written(count).await;
    }

    /// Appends an event and waits until it has been written to the trajectory, so that it survives
    /// a crash of the process.
    ///
    /// Returns at once if no trajectory is written, or if it can no longer be written.
    pub async fn durable_event(&self, event: Event) {
        tracing::debug!(?event, "event");
        let count = self.append(Record::Event(event));
        self.inner.written(count).await;
    }

    /// Appends an event that reports whether the change of a proposal is in the text, unless the
    /// last event about this proposal already reports the same. Both the run and the editor watcher
    /// may detect the same undo or redo. Returns whether the event was appended.
    pub fn noticed(&self, event: Event) -> bool {
        let mut records = self.lock();
        let Some((proposal, stands)) = event.standing() else {
            return false;
        };
        let standing = |stamped: &Arc<Stamped>| match &stamped.record {
            Record::Event(event) => event.standing(),
            Record::Exchange(_) => None,
        };
        let mut last_first = records.iter().rev().filter_map(standing);
        let last = last_first.find(|(id, _)| *id == proposal);
        let is_new = last != Some((proposal, stands));
        if is_new {
            self.append_to(&mut records, Record::Event(event));
        }
        is_new
    }

    pub fn exchange(&self, exchange: Exchange) {
        self.append(Record::Exchange(exchange));
    }

    /// Closes the log. Cursors end after the last record.
    pub fn close(&self) {
        self.inner
            .count
            .send_modify(|progress| progress.closed = true);
    }

    /// Returns whether [`EventLog::close`] was called. Records appended later may have no reader.
    pub fn is_closed(&self) -> bool {
        self.inner.count.borrow().closed
    }

    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.inner.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the reader with which the trajectory is written, starting at record `next`. While it
    /// exists, [`EventLog::durable_event`] waits until this reader has confirmed the event.
    pub fn write_from(&self, next: usize) -> Writing {
        self.inner.written.send_replace(Some(next));
        Writing {
            cursor: self.follow_from(next),
        }
    }

    /// Returns a cursor that starts at the first record.
    pub fn follow(&self) -> Cursor {
        self.follow_from(0)
    }

    /// Returns a cursor that starts at record `next`.
    pub fn follow_from(&self, next: usize) -> Cursor {
        Cursor {
            inner: Arc::clone(&self.inner),
            next,
            changes: self.inner.count.subscribe(),
        }
    }

    /// Returns the current records, starting at number `from`.
    pub fn records(&self, from: usize) -> Vec<Arc<Stamped>> {
        let records = self.lock();
        records.get(from..).unwrap_or_default().to_vec()
    }

    /// Returns all current events.
    pub fn events(&self) -> Vec<Event> {
        let records = self.lock();
        let event = |stamped: &Arc<Stamped>| match &stamped.record {
            Record::Event(event) => Some(event.clone()),
            Record::Exchange(_) => None,
        };
        records.iter().filter_map(event).collect()
    }

    /// Appends a record and returns the number of records.
    fn append(&self, record: Record) -> usize {
        self.append_to(&mut self.lock(), record)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Stamped>>> {
        let records = &self.inner.records;
        records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_to(&self, records: &mut Vec<Arc<Stamped>>, record: Record) -> usize {
        let at_ms = self.elapsed_ms();
        let stamped = Stamped {
            seq: records.len() as u64,
            at_ms,
            record,
        };
        records.push(Arc::new(stamped));
        let count = records.len();
        self.inner
            .count
            .send_modify(|progress| progress.count = count);
        count
    }
}

/// The reader with which the trajectory is written. After it is dropped, nothing waits for the
/// trajectory.
#[derive(Debug)]
pub struct Writing {
    cursor: Cursor,
}

impl Writing {
    /// Waits for the next record; returns `None` after the last record of a closed log.
    ///
    /// Each call confirms that the previous record is written.
    pub async fn next(&mut self) -> Option<Arc<Stamped>> {
        let written = Some(self.cursor.next);
        self.cursor.inner.written.send_replace(written);
        self.cursor.next().await
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.cursor.inner.written.send_replace(None);
    }
}

/// A reader of an [`EventLog`].
#[derive(Debug)]
pub struct Cursor {
    inner: Arc<EventLogData>,
    next: usize,
    changes: watch::Receiver<LogProgress>,
}

impl Cursor {
    /// Waits until the last record that this cursor returned has been written to the trajectory
    /// file. Returns at once if no trajectory is written.
    pub async fn written(&self) {
        self.inner.written(self.next).await;
    }

    /// Waits for the next record; returns `None` after the last record of a closed log.
    ///
    /// This method is cancel safe.
    pub async fn next(&mut self) -> Option<Arc<Stamped>> {
        loop {
            let progress = *self.changes.borrow_and_update();
            if self.next < progress.count {
                let records = self
                    .inner
                    .records
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let record = Arc::clone(&records[self.next]);
                self.next += 1;
                return Some(record);
            }
            if progress.closed || self.changes.changed().await.is_err() {
                return None;
            }
        }
    }
}
