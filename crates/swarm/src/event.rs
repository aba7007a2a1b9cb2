//! Events: the closed list of things that happen in a run, from which every surface is derived.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::dependencies::Dependencies;
use super::ending::Ending;
use super::findings::DiagnosticEvidence;
use super::ledger::Spent;
use super::proposal::{Evidence, Part, ProposalId};
use starling_core::{
    Cost, Dollars, Driver, Exchange, Finish, Limits, ModelNotice, Role, TestReport, Usage, Verdict,
};
use starling_syntax::{FilePath, SymbolPath};
use starling_text::ChangeSet;

/// Names a run, unique on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

/// Who is speaking or spoken to: an agent by its symbol, or one of the other parts of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    User,
    Scout,
    Proxy,
    /// The engine itself: follow-ups, failed tests.
    Starling,
    Agent(SymbolPath),
    /// The one agent of `--driver single`.
    Solo,
}

impl Party {
    /// The symbol that an agent owns.
    pub fn symbol(&self) -> Option<&SymbolPath> {
        match self {
            Party::Agent(symbol) => Some(symbol),
            Party::User | Party::Scout | Party::Proxy | Party::Starling | Party::Solo => None,
        }
    }
}

/// How an answer to a question came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSource {
    Model,
    /// Asked before in this run.
    Memory,
    /// The owner is itself waiting for this asker: answered at once with what is known.
    Cycle,
    /// No answer in time, or none affordable.
    Refused,
}

/// Why an agent was woken or given more to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    Picked {
        why: String,
    },
    ChangeRequest {
        from: Party,
        reason: String,
    },
    /// A contract that the symbol relies on has changed.
    FollowUp {
        changed: SymbolPath,
        changes: Vec<String>,
        lines: Vec<u32>,
        text: String,
        /// The first follow-ups of a change are wave 1, those of what they change wave 2.
        #[serde(default)]
        wave: u32,
    },
    FailedTests {
        message: String,
    },
    /// The last look found what has to be mended.
    Problems {
        message: String,
    },
    Steered {
        text: String,
    },
    /// A change that the agent asked another for will not be made.
    Declined {
        by: Party,
        reason: String,
    },
}

impl Cause {
    /// What an agent was told, for others to know.
    pub fn in_short(&self) -> String {
        match self {
            Cause::Picked { why } => why.clone(),
            Cause::ChangeRequest { reason, .. } => reason.clone(),
            Cause::FollowUp {
                changed, changes, ..
            } => format!("follow {changed}: {}", changes.join("; ")),
            Cause::FailedTests { .. } => "mend tests that fail".to_owned(),
            Cause::Problems { .. } => "mend problems that the changes brought".to_owned(),
            Cause::Steered { text } => text.clone(),
            Cause::Declined { reason, .. } => format!("declined: {reason}"),
        }
    }
}

/// How an agent's work ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum AgentOutcome {
    Changed,
    NothingToChange,
    /// It gave up, or its bound of turns, repairs or malformed replies was reached.
    GaveUp {
        why: String,
    },
}

/// What the tests of a run are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestPhase {
    Before,
    Proposal,
    Settling,
}

/// Why a run stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// No agent has work, and no test fails that passed before.
    Settled,
    /// No agent has work, but nothing was changed.
    NothingChanged {
        why: String,
    },
    /// No agent has work, yet tests fail.
    TestsFail {
        failing: Vec<String>,
    },
    /// No agent has work, yet the changes brought problems that nobody accepted.
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

/// A symbol found without a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub symbol: SymbolPath,
    pub score: f64,
    pub why: Vec<String>,
}

/// A change as it was made in the user's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedChange {
    pub file: FilePath,
    /// The whole text before the change; empty if the file was created.
    pub before: Arc<str>,
    pub changes: ChangeSet,
    /// Whether the change created the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// The directories that were created with the file, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// The proposals that it belongs to. Absent in older recordings.
    #[serde(default, skip_serializing_if = "Dependencies::is_empty")]
    pub dependencies: Dependencies,
}

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    RunStarted {
        run: RunId,
        task: String,
        driver: Driver,
        models: Vec<(Role, String)>,
        /// Answers come from a recording.
        replayed: bool,
        limits: Limits,
        /// The folder that the run is about; empty in older recordings.
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
        agent: Party,
        cause: Cause,
    },
    AgentFinished {
        agent: Party,
        outcome: AgentOutcome,
        summary: String,
    },
    TurnStarted {
        agent: Party,
        role: Role,
        conversation: String,
        turn: u32,
    },
    TurnFinished {
        agent: Party,
        role: Role,
        model: String,
        usage: Usage,
        cost: Dollars,
        calls: u32,
        finish: Finish,
        millis: u64,
    },
    TurnFailed {
        agent: Party,
        role: Role,
        error: String,
        /// What the failed requests are booked at.
        #[serde(default)]
        spent: Cost,
    },
    Notice {
        agent: Party,
        notice: ModelNotice,
    },
    /// A reply could not be understood or used; the agent was told.
    Malformed {
        agent: Party,
        what: String,
    },
    ToolUsed {
        agent: Party,
        tool: String,
        argument: String,
        outcome: String,
    },
    Asked {
        question: u32,
        from: Party,
        to: Party,
        text: String,
    },
    Answered {
        question: u32,
        from: Party,
        to: Party,
        text: String,
        source: AnswerSource,
    },
    ChangeRequested {
        from: Party,
        to: Party,
        reason: String,
    },
    /// The owner of a requested change sees no reason for it.
    ChangeDeclined {
        by: Party,
        to: Party,
        reason: String,
    },
    IntentStated {
        agent: Party,
        intent: String,
        reason: String,
    },
    IntentReviewed {
        agent: Party,
        by: Party,
        verdict: Verdict,
    },
    ProposalMade {
        proposal: ProposalId,
        agent: Party,
        symbols: Vec<SymbolPath>,
        reason: String,
        diff: String,
        /// The one that the approver sent back before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revises: Option<ProposalId>,
    },
    /// What happened to a language server: started, crashed.
    LanguageServer {
        what: String,
    },
    /// All touched files were diagnosed once more, as one text.
    Diagnosed {
        files: Vec<FilePath>,
        found: DiagnosticEvidence,
    },
    /// The gate sent it back.
    ProposalRefused {
        agent: Party,
        /// For the agent.
        why: String,
        /// For the user; absent in older recordings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<String>,
    },
    ProposalChecked {
        proposal: ProposalId,
        evidence: Evidence,
    },
    /// Several models wrote candidates; one was chosen.
    CandidateChosen {
        agent: Party,
        model: String,
        among: Vec<String>,
        why: String,
    },
    ReviewAsked {
        proposal: ProposalId,
        agent: Party,
        symbol: SymbolPath,
        diff: String,
        reason: String,
        evidence: Evidence,
        /// Proposals that belong to it: the verdict is for all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        with: Vec<ProposalId>,
        /// The changes themselves, one of each proposal: what was asked about outlives the run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
    },
    /// The person wants it otherwise, as in this diff: it is checked and shown again, with its set. With
    /// an empty diff nothing of it is wanted, and it is over.
    ProposalEdited {
        proposal: ProposalId,
        symbols: Vec<SymbolPath>,
        diff: String,
    },
    ProposalReviewed {
        proposal: ProposalId,
        by: Party,
        verdict: Verdict,
    },
    /// An accepted change is about to be sent to the editor. It is in the trajectory before the editor
    /// gets the change: if the process is killed before it records what became of the change, the text
    /// of the file decides.
    ProposalApplying {
        proposal: ProposalId,
        symbols: Vec<SymbolPath>,
        change: AppliedChange,
    },
    ProposalApplied {
        proposal: ProposalId,
        symbols: Vec<SymbolPath>,
        diff: String,
        /// The change itself, which outlives the run so that it can be undone. Absent in older recordings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<AppliedChange>,
    },
    /// The user's text changed in the same place; the symbol went back to its agent.
    ProposalConflicted {
        proposal: ProposalId,
        why: String,
    },
    /// It was accepted, but the editor did not take it, or the run ended before. Nothing was changed.
    ProposalNotApplied {
        proposal: ProposalId,
        why: String,
    },
    ProposalUndone {
        proposal: ProposalId,
    },
    FollowedUp {
        changed: SymbolPath,
        changes: Vec<String>,
        to: Vec<SymbolPath>,
    },
    /// Owners of references that a changed contract can break were not told of it.
    FollowUpMissed {
        changed: SymbolPath,
        owners: Vec<SymbolPath>,
        why: String,
    },
    /// Work did not reach the owner of a symbol. `from` wanted it.
    NotWoken {
        symbol: String,
        from: Party,
        why: String,
    },
    /// The run did not settle and no person reviewed its changes: they were taken back.
    TakenBack {
        /// The changes, as a unified diff.
        diff: String,
        /// The file that keeps the diff.
        patch: Option<String>,
        /// What could not be taken back, and why.
        left: Vec<(ProposalId, String)>,
    },
    Steered {
        to: Option<SymbolPath>,
        text: String,
    },
    RunFinished {
        stop_reason: StopReason,
        /// All symbols that were changed.
        applied: Vec<SymbolPath>,
        /// Unified diff of everything applied.
        diff: String,
        spent: Spent,
        summary: String,
        /// Calls, and how often each model's candidate won, by model.
        tally: Vec<(String, u32)>,
        /// Absent in older recordings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<Ending>,
    },
}

impl Event {
    /// Whether clients are told of it. The others are for the trajectory alone.
    pub fn is_told(&self) -> bool {
        !matches!(self, Event::ProposalApplying { .. })
    }

    /// The changes that a review asks about; none for other events.
    pub fn parts(&self) -> &[Part] {
        if let Event::ReviewAsked { parts, .. } = self {
            parts
        } else {
            &[]
        }
    }
}

/// A line of a trajectory.
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

/// A record with its place and time in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Counts from 0 without gaps.
    pub seq: u64,
    /// Milliseconds since the run began.
    pub at_ms: u64,
    #[serde(flatten)]
    pub record: Record,
}

/// Everything that happened so far. Appending never waits; readers follow by cursors. Its length is
/// bounded by the run's ledger.
#[derive(Debug, Clone)]
pub struct EventLog {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    began: Instant,
    records: Mutex<Vec<Arc<Stamped>>>,
    count: watch::Sender<Progress>,
    /// How many records the trajectory holds; `None` if nobody writes it.
    written: watch::Sender<Option<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Progress {
    count: usize,
    closed: bool,
}

impl Inner {
    /// Returns when the trajectory holds so many records, or if nobody writes it.
    async fn written(&self, count: usize) {
        let mut written = self.written.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
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
        let (count, _) = watch::channel(Progress {
            count: 0,
            closed: false,
        });
        let inner = Inner {
            began: Instant::now(),
            records: Mutex::default(),
            count,
            written: watch::channel(None).0,
        };
        EventLog {
            inner: Arc::new(inner),
        }
    }

    /// Goes on where another log ended: its records come first.
    pub fn resumed(records: Vec<Stamped>) -> Self {
        let log = EventLog::new();
        let at_ms = records.last().map_or(0, |last| last.at_ms);
        let began = Instant::now().checked_sub(Duration::from_millis(at_ms));
        let inner = Inner {
            began: began.unwrap_or(log.inner.began),
            count: watch::channel(Progress {
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
        tracing::debug!(?event, "event");
        self.append(Record::Event(event));
    }

    /// Appends an event, and returns when it is in the trajectory: it outlives the process from then on.
    /// Returns at once if no trajectory is written, or if it cannot be written any more.
    pub async fn durable_event(&self, event: Event) {
        tracing::debug!(?event, "event");
        let count = self.append(Record::Event(event));
        self.inner.written(count).await;
    }

    /// Appends that a proposal was taken back, unless the log says so already: the run and whoever watches
    /// the editor may find out at the same time. Returns whether it was appended.
    pub fn undone(&self, proposal: ProposalId) -> bool {
        let mut records = self.lock();
        let is_of = |stamped: &&Arc<Stamped>| match &stamped.record {
            Record::Event(
                Event::ProposalApplied { proposal: id, .. }
                | Event::ProposalUndone { proposal: id },
            ) => *id == proposal,
            Record::Event(_) | Record::Exchange(_) => false,
        };
        let last = records.iter().rfind(is_of).map(|stamped| &stamped.record);
        let is_known = matches!(last, Some(Record::Event(Event::ProposalUndone { .. })));
        if !is_known {
            self.append_to(
                &mut records,
                Record::Event(Event::ProposalUndone { proposal }),
            );
        }
        !is_known
    }

    pub fn exchange(&self, exchange: Exchange) {
        self.append(Record::Exchange(exchange));
    }

    /// No more records will come: cursors end after the last one.
    pub fn close(&self) {
        self.inner
            .count
            .send_modify(|progress| progress.closed = true);
    }

    /// Whether [`EventLog::close`] was called: what is appended now may have no reader any more.
    pub fn is_closed(&self) -> bool {
        self.inner.count.borrow().closed
    }

    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.inner.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Reads all records from a number on, to write them to the trajectory.
    /// [`EventLog::durable_event`] waits for this reader from now on.
    pub fn write_from(&self, next: usize) -> Writing {
        self.inner.written.send_replace(Some(next));
        Writing {
            cursor: self.follow_from(next),
        }
    }

    /// Reads from the first record on.
    pub fn follow(&self) -> Cursor {
        self.follow_from(0)
    }

    /// Reads from a record on.
    pub fn follow_from(&self, next: usize) -> Cursor {
        Cursor {
            inner: Arc::clone(&self.inner),
            next,
            changes: self.inner.count.subscribe(),
        }
    }

    /// The records so far, from a number on.
    pub fn records(&self, from: usize) -> Vec<Arc<Stamped>> {
        let records = self.lock();
        records.get(from..).unwrap_or_default().to_vec()
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        let records = self.lock();
        let event = |stamped: &Arc<Stamped>| match &stamped.record {
            Record::Event(event) => Some(event.clone()),
            Record::Exchange(_) => None,
        };
        records.iter().filter_map(event).collect()
    }

    /// Returns the number of records.
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

/// The reader that writes a trajectory. When it is dropped, nobody waits for it any more.
#[derive(Debug)]
pub struct Writing {
    cursor: Cursor,
}

impl Writing {
    /// The next record, as soon as there is one; `None` after the last one of a closed log. To ask for it
    /// says that the record before it is written.
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
    inner: Arc<Inner>,
    next: usize,
    changes: watch::Receiver<Progress>,
}

impl Cursor {
    /// Returns when the last record that was read is in the trajectory, or if none is written.
    pub async fn written(&self) {
        self.inner.written(self.next).await;
    }

    /// The next record, as soon as there is one; `None` after the last one of a closed log.
    /// Cancel safe.
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
