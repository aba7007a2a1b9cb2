//! The proposals of a run, from the draft to the applied edit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;

use crate::event::actor::ActorId;
use crate::event::dependencies::Dependencies;
use crate::evidence::check_results::DiagnosticEvidence;
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::evidence::proposal::Evidence;
use crate::evidence::test_evidence::TestEvidence;
use crate::state::applied::Applied;
use crate::state::contracts::Mentions;
use crate::state::draft::Draft;
use crate::state::epoch::Epoch;
use starling_core::{Effect, Verdict};
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::Snapshot;

/// The outcome of an accepted proposal.
#[derive(Debug, Clone)]
pub(crate) enum Landed {
    /// Applied as this draft, with the new text of its file.
    Applied {
        draft: Box<Draft>,
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
    /// The proposal stays applied: another part of its set could not be applied, and this part
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

/// Check progress of a waiting proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Checking,
    /// The proposal passes alone.
    Passes,
    /// Alone, the proposal breaks something or fixes none of the required tests.
    NeedsOthers,
}

/// A proposal that has been drafted and has not ended.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub symbol: SymbolPath,
    pub reason: String,
    pub diff: String,
    pub draft: Draft,
    pub evidence: Option<Evidence>,
    pub stage: Stage,
}

/// The sets of a run.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    pub(crate) all: Vec<Set>,
    /// Groups of proposals that failed when tested together, with the epoch of the workspace.
    pub(crate) failed: BTreeSet<(Epoch, BTreeSet<ProposalId>)>,
    /// Number of proposals that follow from the index alone, without a model. They are one change,
    /// which alters no contract but the names.
    pub(crate) by_rule: usize,
}

/// Proposals that are tested together and share a verdict. Tasks wait for the verdict without
/// holding a lock, because a person may take a day to give it.
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
    /// The set fails alone, and waits until it can be checked with the sets under review.
    WaitsForReviewed,
    UnderReview,
}

/// The set's result; `None` until the set is judged. The sender is dropped if the set is never
/// judged.
pub(crate) type Judgement = watch::Receiver<Option<Arc<Judged>>>;

/// The result of a set.
#[derive(Debug)]
pub(crate) struct Judged {
    /// All proposals that were tested together.
    pub(crate) with: BTreeMap<ProposalId, SymbolPath>,
    pub(crate) tests: TestEvidence,
    pub(crate) diagnostics: DiagnosticEvidence,
    /// Proposals under review that the set needs to pass.
    pub(crate) needs: Vec<ProposalId>,
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

/// A proposal that the approver accepted.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub id: ProposalId,
    pub symbol: SymbolPath,
    pub reason: String,
    pub diff: String,
}

/// All proposals of a run, with what became of them.
#[derive(Default)]
pub(crate) struct ProposalBook {
    /// Number of proposals that were made.
    pub made: u32,
    /// Proposals that have been drafted and have not ended.
    pub waiting: BTreeMap<ProposalId, Waiting>,
    /// Sets of proposals that are, or were, tested together.
    pub sets: Sets,
    /// The proposals that the approver accepted, whether or not they are applied yet.
    pub accepted: Vec<Accepted>,
    /// Text of the problems that the approver saw in accepted proposals.
    pub accepted_problems: BTreeSet<String>,
    pub applied: Vec<Applied>,
    /// The dependencies of each proposal that is applied or being applied.
    pub dependencies: BTreeMap<ProposalId, Dependencies>,
    /// For each symbol, why its last accepted proposal could not be applied.
    pub unapplied: BTreeMap<SymbolPath, String>,
    /// Applied members of a set that could neither be completed nor reverted.
    pub left_alone: BTreeSet<ProposalId>,
    /// Number of chosen candidates for each model.
    pub tally: BTreeMap<String, u32>,
    /// Set when the changes of an unsettled run were reverted; the inner value is the file that
    /// holds the patch.
    pub taken_back: Option<Option<String>>,
}

impl ProposalBook {
    pub fn next_id(&mut self) -> ProposalId {
        self.made += 1;
        ProposalId(self.made)
    }

    /// Records the tests that an applied proposal fixed or broke.
    pub fn note_tests(&mut self, id: ProposalId, tests: &TestEvidence) {
        if let TestEvidence::Known { fixed, broken, .. } = tests
            && let Some(applied) = self.applied.iter_mut().find(|one| one.id == id)
        {
            applied.fixed.clone_from(fixed);
            applied.broken.clone_from(broken);
        }
    }

    /// Returns the files that applied proposals changed.
    pub fn changed_files(&self) -> BTreeSet<FilePath> {
        self.applied.iter().map(|one| one.file.clone()).collect()
    }

    /// Returns whether the owner of a symbol has an accepted proposal and none that waits.
    pub fn is_done(&self, owner: &SymbolPath) -> bool {
        let waits = self.waiting.values().any(|one| one.symbol == *owner);
        !waits && self.accepted.iter().any(|one| one.symbol == *owner)
    }

    /// The files that were changed and in which nobody has typed since: what is wrong in them, the
    /// changes brought.
    pub fn untouched_since(&self, world: &Snapshot) -> Vec<FilePath> {
        let mut last: BTreeMap<&FilePath, &Arc<str>> = BTreeMap::new();
        for applied in &self.applied {
            last.insert(&applied.file, &applied.after);
        }
        let is_as_left = |(file, after): &(&FilePath, &Arc<str>)| {
            world.read(file).is_ok_and(|text| text == **after)
        };
        last.into_iter()
            .filter(is_as_left)
            .map(|(file, _)| file.clone())
            .collect()
    }

    /// The proposal that wrote this text of a file; `None` where the user typed since, or wrote all
    /// of it.
    pub fn last_writer(&self, file: &FilePath, text: &Arc<str>) -> Option<ProposalId> {
        let last = self.applied.iter().rfind(|one| one.file == *file)?;
        (last.after == *text).then_some(last.id)
    }

    /// The applied proposals that a draft was made without.
    pub fn applied_since(&self, draft: &Draft) -> BTreeSet<ProposalId> {
        let later = self.applied.iter();
        let later = later.filter(|applied| applied.changes > draft.epoch.changes);
        later.map(|applied| applied.id).collect()
    }

    /// A workspace, with the files that the run changed as they were before it.
    pub fn without_the_run(&self, world: &Snapshot) -> Snapshot {
        let mut without = world.clone();
        for applied in self.applied.iter().rev() {
            let text = match applied.effect {
                Effect::Create => None,
                Effect::Change | Effect::Delete => Some(Arc::clone(&applied.before)),
            };
            without = without.with(applied.file.clone(), text);
        }
        without
    }
}
