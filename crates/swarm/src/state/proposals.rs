//! The proposals of a run, from the draft to the applied edit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::actor::ActorId;
use crate::event::dependencies::Dependencies;
use crate::evidence::ids::ProposalId;
use crate::protocol::Propose;
use crate::state::draft::Draft;
use crate::state::proposal::{Applied, Proposal, Stage, Status};
use crate::state::sets::Sets;
use starling_core::Effect;
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::Snapshot;

/// The status of a proposal does not allow a step. This is a bug in the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("internal error: {id} is {is}, so it cannot {step}")]
pub(crate) struct WrongStatus {
    id: ProposalId,
    is: &'static str,
    step: &'static str,
}

/// All proposals of a run, each with its current status.
#[derive(Default)]
pub(crate) struct ProposalBook {
    /// Number of proposals that were made.
    made: u32,
    all: BTreeMap<ProposalId, Proposal>,
    /// The last draft of each agent, even if its proposal was sent back.
    last_drafts: BTreeMap<ActorId, (ProposalId, Draft)>,
    /// The sets of proposals that are or were tested together.
    pub sets: Sets,
    /// Messages of the problems that the approver saw when it accepted proposals.
    pub accepted_problems: BTreeSet<String>,
    /// For each model, the number of times that its version of a change was chosen.
    pub tally: BTreeMap<String, u32>,
    /// Set if the changes of the run were reverted at its end. The inner value is the path of the
    /// patch file, if the patch could be written.
    pub taken_back: Option<Option<String>>,
    /// Why a change of an unsettled run was not taken back.
    pub not_taken_back: Option<String>,
}

/// Methods that move a proposal from one status to the next.
impl ProposalBook {
    /// Registers a new proposal with the status "waiting".
    pub fn make(&mut self, agent: ActorId, change: Propose, draft: Draft) -> Proposal {
        self.made += 1;
        let id = ProposalId(self.made);
        self.last_drafts.insert(agent.clone(), (id, draft.clone()));
        let proposal = Proposal::new(id, agent, change, draft);
        self.all.insert(id, proposal.clone());
        proposal
    }

    /// Replaces a waiting proposal by a new version, and sets the progress of its checks.
    pub fn check(&mut self, version: &Proposal, stage: Stage) -> Result<(), WrongStatus> {
        self.revise(version)?;
        if let Some(known) = self.all.get_mut(&version.id) {
            known.status = Status::Waiting(stage);
        }
        Ok(())
    }

    /// Replaces a waiting proposal by a new version.
    pub fn revise(&mut self, version: &Proposal) -> Result<(), WrongStatus> {
        match self.all.get_mut(&version.id) {
            Some(known) if known.stage().is_some() => {
                take_over(known, version);
                Ok(())
            }
            Some(_) | None => Err(self.wrong(version.id, "be revised")),
        }
    }

    /// Changes the status of a waiting proposal that fails on its own to "kept". It is checked
    /// again together with the agent's next proposals.
    pub fn keep(&mut self, version: &Proposal) -> Result<(), WrongStatus> {
        self.revise(version)?;
        if let Some(known) = self.all.get_mut(&version.id) {
            known.status = Status::Kept { is_replaced: false };
        }
        Ok(())
    }

    /// Marks the kept proposals of an agent that a newer draft replaces because it changes the same
    /// symbols.
    pub fn replace_kept(&mut self, agent: &ActorId, newer: &Draft) {
        let is_same = |symbol: &SymbolPath| !symbol.is_module() && newer.symbols.contains(symbol);
        let is_whole = newer.symbols.iter().all(SymbolPath::is_module);
        for one in self.all.values_mut().filter(|one| one.agent == *agent) {
            let symbols = &one.draft.symbols;
            let is_module = symbols.iter().all(SymbolPath::is_module);
            let same_module = is_whole && is_module && *symbols == newer.symbols;
            if let Status::Kept { is_replaced } = &mut one.status {
                *is_replaced |= same_module || symbols.iter().any(is_same);
            }
        }
    }

    /// Removes kept proposals of an agent: those that were replaced if `replaced` is true,
    /// otherwise those that were not.
    pub fn forget_kept(&mut self, agent: &ActorId, replaced: bool) {
        self.all.retain(|_, one| match one.status {
            Status::Kept { is_replaced } => is_replaced != replaced || one.agent != *agent,
            Status::Waiting(_)
            | Status::Accepted
            | Status::NotApplied { .. }
            | Status::Applied(_)
            | Status::Undone => true,
        });
    }

    /// Records that the approver accepted this version of a proposal. If the task of the proposal
    /// has ended meanwhile, the proposal is added to the book again.
    pub fn accept(&mut self, version: &Proposal) -> Result<(), WrongStatus> {
        let known = self.all.entry(version.id);
        let known = known.or_insert_with(|| Proposal {
            status: Status::Waiting(Stage::Checking),
            ..version.clone()
        });
        if known.stage().is_none() {
            return Err(self.wrong(version.id, "be accepted"));
        }
        take_over(known, version);
        known.status = Status::Accepted;
        Ok(())
    }

    /// Removes an accepted proposal that goes back to its agent, because it conflicts with the
    /// user's text or because a proposal that it needs is not applied.
    pub fn send_back(&mut self, id: ProposalId) -> Result<(), WrongStatus> {
        self.accepted(id, "be sent back")?;
        self.all.remove(&id);
        Ok(())
    }

    /// Records that the editor refused the edit of an accepted proposal.
    pub fn refuse(&mut self, id: ProposalId, why: String) -> Result<(), WrongStatus> {
        let symbol = self.accepted(id, "be refused")?.draft.main_symbol();
        self.forget_refused(&symbol);
        if let Some(known) = self.all.get_mut(&id) {
            known.status = Status::NotApplied {
                why,
                is_over: false,
            };
        }
        Ok(())
    }

    /// Sets an accepted proposal back to "waiting", so that the approver is asked again. The
    /// proposal is not applied, because the editor refused its edit or the edit of another part of
    /// its set.
    pub fn ask_again(&mut self, version: &Proposal, stage: Stage) -> Result<(), WrongStatus> {
        let known = self.all.entry(version.id);
        let known = known.or_insert_with(|| Proposal {
            status: Status::Accepted,
            ..version.clone()
        });
        if !known.may_be_asked_again() {
            return Err(self.wrong(version.id, "be asked about again"));
        }
        known.status = Status::Waiting(stage);
        Ok(())
    }

    /// Records that the edit of an accepted or undone proposal was applied to the user's text.
    pub fn apply(&mut self, id: ProposalId, applied: Applied) -> Result<(), WrongStatus> {
        let symbol = match self.all.get_mut(&id) {
            Some(known) if matches!(known.status, Status::Accepted | Status::Undone) => {
                known.status = Status::Applied(applied);
                known.draft.main_symbol()
            }
            Some(_) | None => return Err(self.wrong(id, "be applied")),
        };
        self.forget_refused(&symbol);
        Ok(())
    }

    /// Records that an applied proposal was undone.
    pub fn undo(&mut self, id: ProposalId) -> Result<(), WrongStatus> {
        match self.all.get_mut(&id) {
            Some(known) if known.applied().is_some() => {
                known.status = Status::Undone;
                Ok(())
            }
            Some(_) | None => Err(self.wrong(id, "be undone")),
        }
    }

    /// Records that a part of a set stays applied although the other parts are not applied.
    pub fn leave_alone(&mut self, id: ProposalId) -> Result<(), WrongStatus> {
        match self.all.get_mut(&id).map(|known| &mut known.status) {
            Some(Status::Applied(applied)) => {
                applied.is_left_alone = true;
                Ok(())
            }
            Some(_) | None => Err(self.wrong(id, "be left alone")),
        }
    }

    /// Removes a proposal that the reviewer removed from its set.
    pub fn take_out(&mut self, id: ProposalId) {
        self.leave(id);
        for other in self.all.values_mut() {
            other.dependencies.set.remove(&id);
        }
    }

    /// Records that the task which worked on a proposal has ended: the proposal no longer waits,
    /// and the approver is not asked about it again.
    pub fn leave(&mut self, id: ProposalId) {
        match self.all.get_mut(&id).map(|known| &mut known.status) {
            Some(Status::Waiting(_)) => {
                self.all.remove(&id);
            }
            Some(Status::NotApplied { is_over, .. }) => *is_over = true,
            Some(Status::Kept { .. } | Status::Accepted | Status::Applied(_) | Status::Undone)
            | None => {}
        }
    }

    /// Adds dependencies of a proposal.
    pub fn depend(&mut self, id: ProposalId, dependencies: Dependencies) {
        if let Some(known) = self.all.get_mut(&id) {
            known.dependencies.extend(dependencies);
        }
    }

    /// Returns an accepted proposal. `step` names the intended step in the error.
    pub fn accepted(&self, id: ProposalId, step: &'static str) -> Result<&Proposal, WrongStatus> {
        let known = self.get(id);
        let accepted = known.filter(|one| matches!(one.status, Status::Accepted));
        accepted.ok_or_else(|| self.wrong(id, step))
    }

    /// Removes the proposals for a symbol whose edits the editor refused, because a newer proposal
    /// replaces them. A proposal about which the approver may still be asked again is not removed.
    fn forget_refused(&mut self, symbol: &SymbolPath) {
        self.all.retain(|_, one| match one.status {
            Status::NotApplied { is_over, .. } => !is_over || one.draft.main_symbol() != *symbol,
            Status::Waiting(_)
            | Status::Kept { .. }
            | Status::Accepted
            | Status::Applied(_)
            | Status::Undone => true,
        });
    }

    fn wrong(&self, id: ProposalId, step: &'static str) -> WrongStatus {
        let is = self.get(id).map_or("over", |one| one.status.name());
        let wrong = WrongStatus { id, is, step };
        tracing::error!(%wrong, "a step of a proposal is refused");
        debug_assert!(false, "{wrong}");
        wrong
    }
}

/// Copies a version of a proposal into the book, except for the fields that only the book changes.
fn take_over(known: &mut Proposal, version: &Proposal) {
    let Proposal {
        status,
        dependencies,
        ..
    } = known;
    *known = Proposal {
        status: status.clone(),
        dependencies: std::mem::take(dependencies),
        ..version.clone()
    };
}

/// Methods that query the current status of the proposals.
impl ProposalBook {
    pub fn get(&self, id: ProposalId) -> Option<&Proposal> {
        self.all.get(&id)
    }

    pub fn stage_of(&self, id: ProposalId) -> Option<Stage> {
        self.get(id)?.stage()
    }

    /// Returns the waiting proposals, each with the progress of its checks.
    pub fn waiting(&self) -> impl Iterator<Item = (&Proposal, Stage)> {
        let all = self.all.values();
        all.filter_map(|one| Some((one, one.stage()?)))
    }

    /// Returns the proposals that wait, and those that were accepted but are not applied yet.
    pub fn open(&self) -> impl Iterator<Item = &Proposal> {
        self.all.values().filter(|one| one.is_open())
    }

    /// Returns the kept proposals of an agent, each with whether a newer proposal replaces it.
    pub fn kept(&self, agent: &ActorId) -> impl Iterator<Item = (&Proposal, bool)> {
        let own = self.all.values().filter(move |one| one.agent == *agent);
        own.filter_map(|one| match one.status {
            Status::Kept { is_replaced } => Some((one, is_replaced)),
            Status::Waiting(_)
            | Status::Accepted
            | Status::NotApplied { .. }
            | Status::Applied(_)
            | Status::Undone => None,
        })
    }

    /// Returns an agent's drafts that are not applied: the kept drafts and the last draft, even if
    /// its proposal was sent back.
    pub fn unapplied_drafts(&self, agent: &ActorId) -> Vec<Draft> {
        let kept = self.kept(agent).filter(|(_, is_replaced)| !is_replaced);
        let kept = kept.map(|(one, _)| (one.id, &one.draft));
        let last = self.last_drafts.get(agent);
        let last = last.map(|(id, draft)| (*id, draft));
        let last = last.filter(|(id, _)| !self.was_applied(*id));
        let drafts: BTreeMap<ProposalId, &Draft> = kept.chain(last).collect();
        drafts.into_values().cloned().collect()
    }

    fn was_applied(&self, id: ProposalId) -> bool {
        let known = self.get(id);
        known.is_some_and(|one| one.applied().is_some() || one.is_undone())
    }

    /// Returns the applied proposals in the order in which they were applied.
    pub fn applied(&self) -> Vec<(&Proposal, &Applied)> {
        let all = self.all.values();
        let applied = all.filter_map(|one| Some((one, one.applied()?)));
        let mut applied: Vec<_> = applied.collect();
        applied.sort_by_key(|(_, applied)| applied.changes);
        applied
    }

    pub fn is_applied(&self, id: ProposalId) -> bool {
        self.get(id).is_some_and(|one| one.applied().is_some())
    }

    /// Returns whether a proposal is applied or may still be applied.
    pub fn may_be_applied(&self, id: ProposalId) -> bool {
        self.get(id).is_some_and(|one| match one.status {
            Status::Waiting(_) | Status::Accepted | Status::Applied(_) => true,
            Status::NotApplied { is_over, .. } => !is_over,
            Status::Kept { .. } | Status::Undone => false,
        })
    }

    /// Returns whether no proposal is applied.
    pub fn is_nothing_applied(&self) -> bool {
        self.all.values().all(|one| one.applied().is_none())
    }

    /// Returns the symbols that the applied proposals changed, in the order of the changes.
    pub fn changed_symbols(&self) -> Vec<SymbolPath> {
        let applied = self.applied().into_iter();
        applied
            .flat_map(|(one, _)| one.draft.symbols.clone())
            .collect()
    }

    /// Returns the accepted proposals that are about to be applied.
    pub fn not_yet_applied(&self) -> impl Iterator<Item = &Proposal> {
        let all = self.all.values();
        all.filter(|one| matches!(one.status, Status::Accepted))
    }

    /// Returns why the editor refused the edit of an accepted proposal. If there are several such
    /// proposals, returns the reason for the first symbol.
    pub fn why_not_applied(&self) -> Option<String> {
        let refused = self.all.values().filter_map(|one| match &one.status {
            Status::NotApplied { why, .. } => Some((one, why)),
            Status::Waiting(_)
            | Status::Kept { .. }
            | Status::Accepted
            | Status::Applied(_)
            | Status::Undone => None,
        });
        let (one, why) = refused.min_by_key(|(one, _)| one.draft.main_symbol())?;
        let id = one.id;
        Some(format!("proposal {id} was accepted but not applied: {why}"))
    }

    /// Returns the files that applied proposals changed.
    pub fn changed_files(&self) -> BTreeSet<FilePath> {
        let applied = self.applied().into_iter();
        applied.map(|(one, _)| one.draft.file.clone()).collect()
    }

    /// Returns whether the owner of a symbol has an applied proposal and none that still waits.
    pub fn is_done(&self, owner: &SymbolPath) -> bool {
        let mut own = self.all.values().filter(|one| one.owner() == *owner);
        let is_open = own.clone().any(Proposal::is_open);
        !is_open && own.any(|one| one.applied().is_some())
    }

    /// Returns the files that the run changed and that the user has not edited since. Problems in
    /// these files come from the run's changes.
    pub fn untouched_since(&self, world: &Snapshot) -> Vec<FilePath> {
        let mut last: BTreeMap<&FilePath, Option<&Arc<str>>> = BTreeMap::new();
        for (one, applied) in self.applied() {
            let after = (applied.effect != Effect::Delete).then_some(&applied.after);
            last.insert(&one.draft.file, after);
        }
        let is_as_left = |(file, after): &(&FilePath, Option<&Arc<str>>)| {
            world.read(file).ok().as_ref() == *after
        };
        last.into_iter()
            .filter(is_as_left)
            .map(|(file, _)| file.clone())
            .collect()
    }

    /// Returns the proposal whose edit produced this text of a file; `None` if the user edited the
    /// file since, or no proposal changed it.
    pub fn last_writer(&self, file: &FilePath, text: &Arc<str>) -> Option<ProposalId> {
        let applied = self.applied();
        let (one, last) = applied.iter().rfind(|(one, _)| one.draft.file == *file)?;
        (last.after == *text).then_some(one.id)
    }

    /// Returns the proposals that were applied after the draft was made.
    pub fn applied_since(&self, draft: &Draft) -> BTreeSet<ProposalId> {
        let applied = self.applied().into_iter();
        let later = applied.filter(|(_, applied)| applied.changes > draft.epoch.changes);
        later.map(|(one, _)| one.id).collect()
    }

    /// Returns a copy of `world` in which the files that the run changed have their text from
    /// before the run.
    pub fn without_the_run(&self, world: &Snapshot) -> Snapshot {
        let mut without = world.clone();
        for (one, applied) in self.applied().into_iter().rev() {
            let text = match applied.effect {
                Effect::Create => None,
                Effect::Change | Effect::Delete => Some(Arc::clone(&applied.before)),
            };
            without = without.with(one.draft.file.clone(), text);
        }
        without
    }
}

#[cfg(test)]
mod tests;
