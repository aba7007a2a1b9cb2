//! The events of a run, from which all user interfaces are derived.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
use starling_syntax::{FilePath, MadeChange, SymbolPath};
use starling_text::ChangeSet;
use starling_workspace::DeletedFile;

/// The parameters of the request that started a run, as the protocol writes them. Keys and other
/// secrets are not among them.
pub type RequestParams = serde_json::Map<String, serde_json::Value>;

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
    /// The metadata of the file, if the change deleted it. `changes` then removes all of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<DeletedFile>,
    /// The directories that were created for the file, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// The proposals that this change depends on, or that depend on it as parts of the same set.
    /// Absent in older recordings.
    #[serde(default, skip_serializing_if = "Dependencies::is_empty")]
    pub dependencies: Dependencies,
    /// The text without the proposal, if nothing was changed because the file already contained the
    /// proposal's text. Absent in older recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_without: Option<Arc<str>>,
}

impl AppliedChange {
    /// Sets `text_without` if nothing was changed. `changes` of `base` are the change as it was
    /// proposed.
    #[must_use]
    pub fn proposed_as(mut self, base: &str, changes: &ChangeSet) -> Self {
        if self.is_empty() {
            let proposed = MadeChange {
                file: &self.file,
                before: base,
                after: &changes.apply(base).unwrap_or_default(),
            };
            let inverse = proposed.back_over(&self.before).ok();
            let without = inverse.and_then(|inverse| inverse.apply(&self.before).ok());
            let without = without.filter(|without| **without != *self.before);
            self.text_without = without.map(Arc::from);
        }
        self
    }

    /// Returns the file's text without the change, and its text with the change; `None` if they
    /// are the same, or unknown.
    pub fn texts(&self) -> Option<(Arc<str>, Arc<str>)> {
        if self.is_empty() {
            let without = self.text_without.as_ref()?;
            return Some((Arc::clone(without), Arc::clone(&self.before)));
        }
        let after = self.changes.apply(&self.before).ok()?;
        Some((Arc::clone(&self.before), after.into()))
    }

    /// Returns whether nothing was changed, because the file already had the text of the proposal.
    pub fn is_empty(&self) -> bool {
        !self.created && self.deleted.is_none() && self.changes.edits().is_empty()
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
        /// The parameters of the request, with which the task can be run again. Absent in older
        /// recordings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestParams>,
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
        /// Whether Starling removed the change from an open document that was not saved since. If
        /// the document is closed without being saved, its file still contains the change.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unsaved: bool,
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

    /// Returns the same event without the data that only the trajectory needs.
    pub fn without_trajectory_data(mut self) -> Self {
        if let Event::ReviewAsked { parts, .. } = &mut self {
            parts.clear();
        } else if let Event::ProposalApplied { change, .. } = &mut self {
            *change = None;
        } else if let Event::RunStarted { request, .. } = &mut self {
            *request = None;
        }
        self
    }

    /// Returns whether this event reports that the undo which `earlier` reports is saved now.
    pub(super) fn settles(&self, earlier: &Event) -> bool {
        if let Event::ProposalUndone {
            proposal,
            unsaved: true,
            ..
        } = earlier
            && let Event::ProposalUndone {
                proposal: settled,
                unsaved: false,
                ..
            } = self
        {
            proposal == settled
        } else {
            false
        }
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
            deleted: change.deleted.is_some(),
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
