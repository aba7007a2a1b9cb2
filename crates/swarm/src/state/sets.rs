//! Sets of proposals, which are tested together and share one verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;

use crate::event::actor::ActorId;
use crate::evidence::check_results::DiagnosticEvidence;
use crate::evidence::example::ExampleEvidence;
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::TestEvidence;
use crate::state::contracts::Mentions;
use crate::state::epoch::Epoch;
use starling_core::Verdict;
use starling_syntax::SymbolPath;

/// The result of applying an accepted proposal.
#[derive(Debug, Clone)]
pub(crate) enum Landed {
    /// Applied, with the new text of its file.
    Applied {
        text: Arc<str>,
        gone: Mentions,
    },
    Failed(Failure),
    /// The reviewer removed the proposal from its set.
    TakenOut,
    /// The proposal is not applied, because another part of its set could not be applied.
    NotWithout {
        why: String,
    },
    /// The proposal stays applied although another part of its set could not be applied, because
    /// this part could not be reverted.
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
    /// Groups of proposals that failed when they were tested together, with the version of the
    /// workspace in which they failed.
    pub(crate) failed: BTreeSet<(Epoch, BTreeSet<ProposalId>)>,
    /// Number of proposals that were made from the index without a model. Together they are one
    /// rename or deletion, so their contract changes concern only names.
    pub(crate) by_rule: usize,
    /// The doubts whether that change is complete.
    pub(crate) doubts: Vec<String>,
}

/// Proposals that are tested together and share one verdict. Asynchronous tasks wait for the
/// verdict without holding a lock, because a person may take a day to decide.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) members: BTreeSet<ProposalId>,
    pub(crate) judged: Judgement,
    pub(crate) progress: Progress,
}

/// Progress of a set whose verdict is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The checks are running.
    Checking,
    /// The set fails on its own. It waits until it can be checked together with the sets that the
    /// approver is reviewing.
    WaitsForReviewed,
    UnderReview,
}

/// The result of a set; `None` until it is known. The sender is dropped if there will be no result.
pub(crate) type Judgement = watch::Receiver<Option<Arc<SetResult>>>;

/// The result of a set.
#[derive(Debug)]
pub(crate) struct SetResult {
    /// All proposals that were tested together, with their owners.
    pub(crate) with: BTreeMap<ProposalId, SymbolPath>,
    pub(crate) tests: TestEvidence,
    pub(crate) diagnostics: DiagnosticEvidence,
    pub(crate) examples: Vec<ExampleEvidence>,
    /// Proposals under review without which the set does not pass.
    pub(crate) needs: Vec<ProposalId>,
    /// How many changes had been applied or reverted in the run when the check began.
    pub(crate) checked_in: u64,
    /// The approver's decision about the whole set; `None` if the joint check failed, so that the
    /// approver was not asked.
    pub(crate) verdict: Option<Decision>,
}

/// The decision about a set. If the set was accepted, its changes have been applied.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub by: ActorId,
    pub verdict: Verdict,
    /// What happened to each proposal of the set.
    pub landed: BTreeMap<ProposalId, Landed>,
}
