//! Sets of proposals that are tested and decided together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;

use crate::event::actor::ActorId;
use crate::evidence::check_results::DiagnosticEvidence;
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::TestEvidence;
use crate::state::contracts::Mentions;
use crate::state::epoch::Epoch;
use starling_core::Verdict;
use starling_syntax::SymbolPath;

/// The outcome of an accepted proposal.
#[derive(Debug, Clone)]
pub(crate) enum Landed {
    /// Applied, with the new text of its file.
    Applied {
        text: Arc<str>,
        gone: Mentions,
    },
    Failed(Failure),
    /// The person removed the proposal from its set.
    TakenOut,
    /// The proposal is not applied, because another part of its set could not be applied.
    NotWithout {
        why: String,
    },
    /// The proposal stays applied: another part of its set could not be applied, but this part
    /// could not be reverted.
    Stays {
        text: Arc<str>,
        why: String,
    },
}

impl Landed {
    pub fn is_taken_out(&self) -> bool {
        matches!(self, Landed::TakenOut)
    }
}

/// The sets of a run.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    pub(crate) all: Vec<Set>,
    /// Groups of proposals that failed when tested together, with the epoch of the workspace.
    pub(crate) failed: BTreeSet<(Epoch, BTreeSet<ProposalId>)>,
    /// Number of proposals that were made from the index, without a model. They form one change, a
    /// rename or a deletion, which changes contracts only by the names.
    pub(crate) by_rule: usize,
}

/// Proposals that are tested together and share a verdict. Asynchronous tasks wait for the verdict
/// without holding a lock, because a person may take a day to give it.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) members: BTreeSet<ProposalId>,
    pub(crate) judged: Judgement,
    pub(crate) progress: Progress,
}

/// Progress of an undecided set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The checks are running.
    Checking,
    /// The set fails on its own, and waits until it can be checked together with the sets that the
    /// approver is reviewing.
    WaitsForReviewed,
    UnderReview,
}

/// The set's result; `None` until the set is judged. The sender is dropped if the set is never
/// judged.
pub(crate) type Judgement = watch::Receiver<Option<Arc<SetResult>>>;

/// The result of a set.
#[derive(Debug)]
pub(crate) struct SetResult {
    /// All proposals that were tested together.
    pub(crate) with: BTreeMap<ProposalId, SymbolPath>,
    pub(crate) tests: TestEvidence,
    pub(crate) diagnostics: DiagnosticEvidence,
    /// Proposals under review that the set needs to pass.
    pub(crate) needs: Vec<ProposalId>,
    /// Number of changes that the run had applied or reverted when the check began.
    pub(crate) checked_in: u64,
    /// The approver's decision about all members; `None` if the approver was not asked because the
    /// joint check failed.
    pub(crate) verdict: Option<Decision>,
}

/// The decision about a set. If it was accepted, the changes have been applied.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub by: ActorId,
    pub verdict: Verdict,
    /// The outcome of each part.
    pub landed: BTreeMap<ProposalId, Landed>,
}
