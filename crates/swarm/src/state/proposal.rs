//! A proposal, from its draft to the applied edit, with its status.

use std::sync::Arc;

use crate::event::actor::ActorId;
use crate::event::dependencies::Dependencies;
use crate::event::events::{AppliedChange, Event};
use crate::evidence::check_results::DiagnosticEvidence;
use crate::evidence::file_change::FileChange;
use crate::evidence::ids::ProposalId;
use crate::evidence::proposal::Evidence;
use crate::evidence::test_evidence::TestEvidence;
use crate::protocol::Propose;
use crate::state::draft::Draft;
use starling_core::Effect;
use starling_syntax::{MadeChange, SymbolPath};
use starling_text::ChangeSet;
use starling_workspace::DeletedFile;

/// A change that an agent proposed. A task that works on a proposal holds a copy of it. Only the
/// [`ProposalBook`](super::proposals::ProposalBook) has the current status and dependencies.
#[derive(Debug, Clone)]
pub(crate) struct Proposal {
    pub id: ProposalId,
    pub agent: ActorId,
    /// The change as the model wrote it.
    pub change: Propose,
    /// The earlier proposal that this one replaces because the approver sent it back.
    pub revises: Option<ProposalId>,
    pub draft: Draft,
    /// The diff of the draft; empty until the proposal is announced.
    pub diff: String,
    pub evidence: Evidence,
    pub dependencies: Dependencies,
    pub(super) status: Status,
}

/// The status of a proposal. Each variant holds the data that exists only in that status.
#[derive(Debug, Clone)]
pub(crate) enum Status {
    /// The proposal waits for its checks, for other proposals, or for the approver.
    Waiting(Stage),
    /// The proposal of the single agent fails on its own, and is kept. It is checked again together
    /// with the agent's next proposals.
    Kept {
        /// Whether a newer proposal changes the same symbol. The kept proposal is then not checked
        /// again, but the agent is informed of it before its work ends.
        is_replaced: bool,
    },
    /// The approver accepted the proposal, and its edit is not in the user's text yet.
    Accepted,
    /// The approver accepted the proposal, but the editor refused its edit.
    NotApplied {
        why: String,
        /// Whether the asynchronous task that works on the proposal has ended, so that the approver
        /// is not asked again.
        is_over: bool,
    },
    Applied(Applied),
    Undone,
}

/// Check progress of a waiting proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Checking,
    /// The proposal passes its checks on its own.
    Passes,
    /// On its own, the proposal breaks a test or fixes none of the required tests. It may pass
    /// together with other proposals.
    NeedsOthers,
}

/// The effect of an applied proposal on its file, with the data that is needed to undo it.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    pub before: Arc<str>,
    pub after: Arc<str>,
    /// Whether the proposal created the file, changed an existing one or deleted it.
    pub effect: Effect,
    /// The metadata of the deleted file; `None` if the file was not deleted.
    pub deleted: Option<DeletedFile>,
    /// The directories that were created for the file, outermost first.
    pub directories: Vec<String>,
    /// The number of changes to the workspace up to and including this one. A draft that was made
    /// at a smaller number does not contain this change.
    pub changes: u64,
    /// Tests that failed before and pass with the proposal.
    pub fixed: Vec<String>,
    /// Tests that the proposal broke.
    pub broken: Vec<String>,
    /// Whether the proposal is part of a set whose other parts are not applied: the set could
    /// neither be completed nor reverted.
    pub is_left_alone: bool,
}

impl Status {
    /// Returns the name of the status for error messages.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Waiting(_) => "waiting",
            Status::Kept { .. } => "kept",
            Status::Accepted => "accepted",
            Status::NotApplied { .. } => "not applied",
            Status::Applied(_) => "applied",
            Status::Undone => "undone",
        }
    }
}

impl Proposal {
    /// Creates a proposal that has not been checked.
    pub fn new(id: ProposalId, agent: ActorId, change: Propose, draft: Draft) -> Self {
        let tests = TestEvidence::Unknown {
            reason: "it was not checked".to_owned(),
        };
        Proposal {
            id,
            agent,
            change,
            revises: None,
            diff: String::new(),
            evidence: draft.evidence(tests, DiagnosticEvidence::default()),
            draft,
            dependencies: Dependencies::default(),
            status: Status::Waiting(Stage::Checking),
        }
    }

    /// Returns the symbol of the agent, otherwise the first symbol of the draft.
    pub fn owner(&self) -> SymbolPath {
        owner(&self.agent, &self.draft)
    }

    /// Returns the progress of the checks; `None` if the proposal does not wait.
    pub fn stage(&self) -> Option<Stage> {
        match self.status {
            Status::Waiting(stage) => Some(stage),
            Status::Kept { .. }
            | Status::Accepted
            | Status::NotApplied { .. }
            | Status::Applied(_)
            | Status::Undone => None,
        }
    }

    /// Returns whether the proposal waits, or was accepted but is not applied yet.
    pub fn is_open(&self) -> bool {
        match self.status {
            Status::Waiting(_) | Status::Accepted => true,
            Status::Kept { .. }
            | Status::NotApplied { .. }
            | Status::Applied(_)
            | Status::Undone => false,
        }
    }

    /// Returns whether the proposal was accepted but is not applied, so that the approver may be
    /// asked again.
    pub(super) fn may_be_asked_again(&self) -> bool {
        match self.status {
            Status::Accepted | Status::NotApplied { .. } | Status::Undone => true,
            Status::Waiting(_) | Status::Kept { .. } | Status::Applied(_) => false,
        }
    }

    /// Returns whether the proposal was applied and undone.
    pub fn is_undone(&self) -> bool {
        matches!(self.status, Status::Undone)
    }

    /// Returns the effect of the proposal on its file; `None` if it is not applied.
    pub fn applied(&self) -> Option<&Applied> {
        match &self.status {
            Status::Applied(applied) => Some(applied),
            Status::Waiting(_)
            | Status::Kept { .. }
            | Status::Accepted
            | Status::NotApplied { .. }
            | Status::Undone => None,
        }
    }

    /// Returns the event that announces the proposal.
    pub fn announcement(&self) -> Event {
        Event::ProposalMade {
            proposal: self.id,
            agent: self.agent.clone(),
            symbols: self.draft.symbols.clone(),
            reason: self.change.reason.clone(),
            diff: self.diff.clone(),
            revises: self.revises,
        }
    }

    /// Returns the change as the approver sees it and may edit it.
    pub fn file_change(&self) -> FileChange {
        FileChange {
            proposal: self.id,
            symbol: self.owner(),
            symbols: self.draft.symbols.clone(),
            reason: self.change.reason.clone(),
            file: self.draft.file.clone(),
            base: Arc::clone(&self.draft.base),
            changes: ChangeSet::between(&self.draft.base, &self.draft.text),
            deleted: self.draft.deletes_file,
        }
    }

    /// Returns the change in the form in which it is recorded in the trajectory.
    pub fn applied_change(&self, applied: &Applied) -> AppliedChange {
        AppliedChange {
            file: self.draft.file.clone(),
            before: Arc::clone(&applied.before),
            changes: ChangeSet::between(&applied.before, &applied.after),
            created: applied.effect == Effect::Create,
            deleted: applied.deleted.clone(),
            directories: applied.directories.clone(),
            dependencies: self.dependencies.clone(),
            text_without: None,
        }
        .proposed_as(
            &self.draft.base,
            &ChangeSet::between(&self.draft.base, &self.draft.text),
        )
    }

    /// Returns the change in the form that is needed to undo it.
    pub fn made<'p>(&'p self, applied: &'p Applied) -> MadeChange<'p> {
        MadeChange {
            file: &self.draft.file,
            before: &applied.before,
            after: &applied.after,
        }
    }
}

/// Returns the owner of an agent's draft: the symbol of the agent, otherwise the first symbol of
/// the draft.
pub(crate) fn owner(agent: &ActorId, draft: &Draft) -> SymbolPath {
    let own = agent.symbol().cloned();
    own.unwrap_or_else(|| draft.main_symbol())
}
