//! Joint checks of proposals that wait for a verdict. Parts of one change may fail alone and pass
//! together. Proposals that fail alone are tested with all waiting proposals. A set that passes is
//! reviewed together, and is applied as a whole or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

use crate::check::test_run::test_deadline;
use crate::check::{compare_tests, diagnose, task_examples};
use crate::event::actor::ActorId;
use crate::event::events::{Event, TestPhase};
use crate::evidence::check_results::DiagnosticEvidence;
use crate::evidence::example::ExampleEvidence;
use crate::evidence::ids::ProposalId;
use crate::evidence::joint::JointEvidence;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::awaited;
use crate::state::epoch::Epoch;
use crate::state::proposal::{Proposal, Stage};
use crate::state::proposals::ProposalBook;
use crate::state::refresh;
use crate::state::run_context::{RunContext, StateGuard};
use crate::state::sets::{Decision, Judgement, Progress, Set, SetResult};
use crate::state::waiting::{laid_over, skipped};
use starling_core::{Approval, Driver};
use starling_syntax::{FilePath, SymbolPath};
use starling_text::{deleted_file_diff, new_file_diff, unified_diff, visible};

/// The result of the joint check of one proposal.
#[derive(Debug, Clone)]
pub(crate) struct JointCheck {
    pub together: JointEvidence,
    pub verdict: Option<Decision>,
}

/// Guard that keeps a proposal registered as waiting until the guard is dropped.
pub(crate) struct WaitingEntry {
    run: Arc<RunContext>,
    id: ProposalId,
    /// The channel for the verdict, present while the proposal is decided on its own. Proposals
    /// that can pass only together with this proposal wait for the verdict.
    alone: Option<watch::Sender<Option<Arc<SetResult>>>>,
}

impl WaitingEntry {
    pub fn take(run: &Arc<RunContext>, id: ProposalId) -> WaitingEntry {
        let run = Arc::clone(run);
        WaitingEntry {
            run,
            id,
            alone: None,
        }
    }

    /// Stores the results of the proposal's standalone check.
    pub fn checked(&self, proposal: &Proposal, stage: Stage) {
        self.run.proposals().check(proposal, stage).ok();
        self.run.waited.raise();
    }

    /// Removes the proposal from its set. From then on, the proposal is decided on its own.
    pub fn stand_alone(&mut self) {
        let (tell, judged) = watch::channel(None);
        self.alone = Some(tell);
        self.leave_sets();
        let members = BTreeSet::from([self.id]);
        self.run.proposals().sets.all.push(Set {
            members,
            judged,
            progress: Progress::Checking,
        });
        self.run.waited.raise();
    }

    fn leave_sets(&self) {
        let mut state = self.run.proposals();
        for set in &mut state.sets.all {
            set.members.remove(&self.id);
        }
        state.sets.all.retain(|set| !set.members.is_empty());
    }
}

impl Drop for WaitingEntry {
    fn drop(&mut self) {
        self.leave_sets();
        self.alone = None;
        self.run.proposals().leave(self.id);
        self.run.waited.raise();
    }
}

/// Decides whether a proposal needs a joint check: it breaks tests, fixes none of the required
/// tests, or introduces problems that must be fixed. With [`Approval::Auto`], a proposal also needs
/// one if tests pass only with the run's changes to the tests.
pub(crate) fn stage(
    tests: &TestEvidence,
    diagnostics: &DiagnosticEvidence,
    required: &BTreeSet<String>,
    approval: Approval,
) -> Stage {
    if approval == Approval::Auto && tests.only_as_changed().is_some() {
        return Stage::NeedsOthers;
    }
    if diagnostics.stopping().next().is_some() {
        return Stage::NeedsOthers;
    }
    match tests {
        TestEvidence::Unknown { .. } => Stage::Passes,
        TestEvidence::Known { broken, .. } => {
            match broken.is_empty() && !tests.fixes_none_of(required) {
                true => Stage::Passes,
                false => Stage::NeedsOthers,
            }
        }
    }
}

/// Tests a proposal that fails alone together with all waiting proposals, and asks for a verdict if
/// they pass. Returns `None` if no other proposal is waiting. `ask` is called for at most one
/// member of a set.
///
/// If no person reviews, this function waits as long as other agents are working that may make the
/// proposal pass.
///
/// Proposals that are being decided on are left out at first. Only if the proposal fails without
/// them, it waits for these decisions. If a person reviews, the proposal does not wait: it is
/// checked together with the proposals under review, and is shown at once with the proposals that
/// it needs.
pub(crate) async fn join<F>(
    run: &Arc<RunContext>,
    id: ProposalId,
    ask: impl FnOnce(Arc<RunContext>, ProposalId, Vec<Proposal>, JointEvidence) -> F,
) -> Option<JointCheck>
where
    F: Future<Output = Decision>,
{
    if run.task.driver == Driver::Single {
        return None;
    }
    let person_reviews = run.task.approval == Approval::Ask;
    let mut tried = None;
    loop {
        let others = others_are_ready(run, id, tried.as_ref()).await;
        tried = Some(JointCheckInput::now(&run.state()));
        let group = match SetRelation::of(run, id) {
            SetRelation::Member(judged) => {
                run.waited.wait_for(|| is_over(&judged)).await;
                let judged = judged.borrow().clone();
                match judged {
                    Some(judged) => return Some(judged.as_seen_by(id)),
                    // The task that founded the set dropped it without a result.
                    None => continue,
                }
            }
            SetRelation::Alone if others == OtherAgents::AtRest => return None,
            SetRelation::Alone => continue,
            // Here the same proposals were already tested together and failed.
            SetRelation::Pending(_) if person_reviews => return None,
            SetRelation::Pending(pending) => {
                one_is_judged(run, id, pending).await;
                continue;
            }
            SetRelation::First(group) => group,
        };
        refresh::refresh(run).await;
        let is_single = group.with.len() < 2;
        let mut found = match is_single {
            true => None,
            false => Some(checked_together(run, id, &group.with).await),
        };
        let mut needs = Vec::new();
        if person_reviews && found.as_ref().is_none_or(|found| !found.passes) {
            group.waits_for_reviewed().await;
            if let Some((reviewed, with_them)) = with_reviewed(run, id, &group.with).await {
                (needs, found) = (reviewed, Some(with_them));
            }
        }
        let JointFindings {
            tests,
            diagnostics,
            examples,
            passes,
            skipped,
            checked_in,
        } = found?;
        if !passes && !group.pending.is_empty() && !person_reviews {
            one_is_judged(run, id, group.put_off()).await;
            continue;
        }
        if !passes && others == OtherAgents::AtWork {
            tried = Some(group.ready());
            group.put_off();
            continue;
        }
        // What was not part of the failed test is not named as part of it.
        let was_tested = |one: &&Proposal| passes || !skipped.contains(&one.id);
        let with = group.with.iter().filter(was_tested);
        let with = with.map(|one| (one.id, one.owner()));
        let mut judged = SetResult {
            with: with.collect(),
            tests,
            diagnostics,
            examples,
            needs,
            checked_in,
            verdict: None,
        };
        if passes {
            let together = judged.as_seen_by(id).together;
            let asked = ask(Arc::clone(run), id, group.members(), together);
            judged.verdict = Some(asked.await);
        }
        let company = judged.as_seen_by(id);
        group.conclude(judged);
        return Some(company);
    }
}

impl SetResult {
    fn as_seen_by(&self, id: ProposalId) -> JointCheck {
        let others = self.with.iter().filter(|(other, _)| **other != id);
        let (proposals, with) = others.map(|(id, symbol)| (*id, symbol.clone())).unzip();
        JointCheck {
            together: JointEvidence {
                with,
                proposals,
                tests: self.tests.clone(),
                diagnostics: self.diagnostics.clone(),
                examples: self.examples.clone(),
                needs: self.needs.clone(),
                checked_in: self.checked_in,
            },
            verdict: self.verdict.clone(),
        }
    }
}

/// How a proposal that fails on its own relates to the existing sets.
enum SetRelation {
    /// The proposal is in a set that another proposal founded.
    Member(Judgement),
    /// No other proposal is waiting.
    Alone,
    /// The proposal can pass only with members of sets that are not decided yet.
    Pending(Vec<Judgement>),
    /// The proposal founds a set.
    First(FoundedSet),
}

impl SetRelation {
    fn of(run: &Arc<RunContext>, id: ProposalId) -> SetRelation {
        let person_reviews = run.task.approval.is_by_person();
        let mut state = run.state();
        let set_of = |id: &ProposalId| {
            let mut sets = state.proposals.sets.all.iter();
            sets.find(|set| set.members.contains(id))
        };
        if let Some(set) = set_of(&id) {
            return SetRelation::Member(set.judged.clone());
        }
        let pending = state.proposals.sets.all.iter().map(|set| &set.judged);
        let pending = pending.filter(|judged| judged.borrow().is_none());
        let pending: Vec<Judgement> = pending.cloned().collect();
        let counts = |id: &ProposalId, stage: Stage| match set_of(id) {
            None => stage != Stage::Checking,
            Some(set) => match set.judged.borrow().as_deref() {
                None => false,
                // Proposals that have been decided are left out: they are already applied to the
                // user's text, or go back to their owners.
                Some(judged) => judged.verdict.is_none(),
            },
        };
        let waiting = state.proposals.waiting();
        let with = waiting.filter(|(one, stage)| counts(&one.id, *stage));
        let with: Vec<Proposal> = with.map(|(one, _)| one.clone()).collect();
        let ids = with.iter().map(|one| one.id).collect();
        let failed = state
            .proposals
            .sets
            .failed
            .contains(&(state.world.epoch, ids));
        match (with.len() < 2 || failed, pending.is_empty()) {
            // The proposal is checked below, together with the proposals that the person is
            // reviewing.
            (true, false) if person_reviews && !failed => {}
            (true, false) => return SetRelation::Pending(pending),
            (true, true) if with.len() < 2 => return SetRelation::Alone,
            (true, true) | (false, _) => {}
        }
        let is_member =
            |one: &&Proposal| one.stage() == Some(Stage::NeedsOthers) && set_of(&one.id).is_none();
        let members = with.iter().filter(is_member).map(|one| one.id).collect();
        let (tell, judged) = watch::channel(None);
        state.proposals.sets.all.push(Set {
            members,
            judged,
            progress: Progress::Checking,
        });
        let epoch = state.world.epoch;
        drop(state);
        run.waited.raise();
        SetRelation::First(FoundedSet {
            run: Arc::clone(run),
            founder: id,
            epoch,
            with,
            pending,
            tell,
        })
    }
}

/// A set, as held by the task that founded it. If this value is dropped without a result, the set
/// is dissolved and its members look for another set.
struct FoundedSet {
    run: Arc<RunContext>,
    founder: ProposalId,
    epoch: Epoch,
    with: Vec<Proposal>,
    /// The sets that were not yet decided when this set was founded.
    pending: Vec<Judgement>,
    tell: watch::Sender<Option<Arc<SetResult>>>,
}

impl FoundedSet {
    fn members(&self) -> Vec<Proposal> {
        let state = self.run.proposals();
        let set = state.sets.all.iter().find(|set| self.is_own(set));
        let is_member = |id| set.is_some_and(|set| set.members.contains(id));
        let members = self.with.iter().filter(|one| is_member(&one.id));
        members.cloned().collect()
    }

    /// Waits until no other set is being checked, for at most the deadline of a test run. The other
    /// sets are then under review or decided.
    async fn waits_for_reviewed(&self) {
        if let Some(own) = (self.run.proposals().sets.all.iter_mut()).find(|set| self.is_own(set)) {
            own.progress = Progress::WaitsForReviewed;
        }
        self.run.waited.raise();
        let is_checking = |set: &Set| {
            set.progress == Progress::Checking && !is_over(&set.judged) && !self.is_own(set)
        };
        let none_is = || !self.run.proposals().sets.all.iter().any(is_checking);
        let waited = self.run.waited.wait_for(none_is);
        let _ = tokio::time::timeout(test_deadline(&self.run), waited).await;
    }

    fn is_own(&self, set: &Set) -> bool {
        set.members.contains(&self.founder)
    }

    fn ready(&self) -> JointCheckInput {
        JointCheckInput {
            epoch: self.epoch,
            checked: self.with.iter().map(|one| one.id).collect(),
        }
    }

    /// Records that these proposals failed together. Returns the sets that are not yet decided,
    /// because the proposals may pass with them.
    fn put_off(mut self) -> Vec<Judgement> {
        let ids = self.with.iter().map(|one| one.id).collect();
        let failed = (self.epoch, ids);
        self.run.proposals().sets.failed.insert(failed);
        std::mem::take(&mut self.pending)
    }

    fn conclude(self, judged: SetResult) {
        self.tell.send_replace(Some(Arc::new(judged)));
    }
}

impl Drop for FoundedSet {
    fn drop(&mut self) {
        if self.tell.borrow().is_none() {
            let mut state = self.run.proposals();
            state.sets.all.retain(|set| !self.is_own(set));
            drop(state);
            // The sender is dropped first, so that the waiting tasks, which are woken below, find
            // the channel closed.
            self.tell = watch::channel(None).0;
        }
        self.run.waited.raise();
    }
}

/// Waits until one of the pending sets is decided or dissolved, or until another founder adds the
/// proposal to a set. The approver's deadline bounds this wait.
async fn one_is_judged(run: &Arc<RunContext>, id: ProposalId, pending: Vec<Judgement>) {
    let is_taken = || {
        let state = run.proposals();
        let mut sets = state.sets.all.iter();
        sets.any(|set| set.members.contains(&id))
    };
    let is_found = || pending.iter().any(is_over) || is_taken();
    run.waited.wait_for(is_found).await;
}

/// Returns whether a set is decided or dissolved.
fn is_over(judged: &Judgement) -> bool {
    judged.borrow().is_some() || judged.has_changed().is_err()
}

/// The input of a joint check: an epoch (version) of the workspace, and the proposals that have
/// been checked alone.
#[derive(Debug, PartialEq, Eq)]
struct JointCheckInput {
    epoch: Epoch,
    checked: BTreeSet<ProposalId>,
}

impl JointCheckInput {
    fn now(state: &StateGuard<'_>) -> JointCheckInput {
        let waiting = state.proposals.waiting();
        let checked = waiting.filter(|(_, stage)| *stage != Stage::Checking);
        JointCheckInput {
            epoch: state.world.epoch,
            checked: checked.map(|(one, _)| one.id).collect(),
        }
    }
}

/// Whether other agents are at work that may still make proposals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherAgents {
    AtWork,
    AtRest,
}

/// Waits until there are new proposals for a joint check, or no agent is left that could make one.
///
/// If a person reviews, a failing proposal is shown to them. Then this function waits only for
/// proposals that are being checked or are about to be checked, for at most the deadline of a test
/// run. Otherwise the limits of the run bound the wait.
async fn others_are_ready(
    run: &Arc<RunContext>,
    id: ProposalId,
    tried: Option<&JointCheckInput>,
) -> OtherAgents {
    if run.task.approval.is_by_person() {
        let deadline = tokio::time::Instant::now() + test_deadline(run);
        let all_ready = run.waited.wait_for(|| run.agents().drafts.is_empty());
        let _ = tokio::time::timeout_at(deadline, all_ready).await;
        let checking = being_checked(&run.proposals(), id);
        let all_checked = run
            .waited
            .wait_for(|| checking.is_disjoint(&being_checked(&run.proposals(), id)));
        let _ = tokio::time::timeout_at(deadline, all_checked).await;
        return OtherAgents::AtRest;
    }
    let mut others = OtherAgents::AtWork;
    let is_ready = run.waited.wait_for(|| {
        others = others_of(run, id);
        let state = run.state();
        let is_taken = state
            .proposals
            .sets
            .all
            .iter()
            .any(|set| set.members.contains(&id));
        let is_new = || tried != Some(&JointCheckInput::now(&state));
        is_taken
            || others == OtherAgents::AtRest
            || being_checked(&state.proposals, id).is_empty() && is_new()
    });
    is_ready.await;
    others
}

/// Returns the other proposals whose standalone checks are running.
fn being_checked(book: &ProposalBook, id: ProposalId) -> BTreeSet<ProposalId> {
    let others = book.waiting();
    let others = others.filter(|(one, stage)| one.id != id && *stage == Stage::Checking);
    others.map(|(one, _)| one.id).collect()
}

/// Returns whether other agents are working. Agents that wait for other proposals do not count.
fn others_of(run: &RunContext, id: ProposalId) -> OtherAgents {
    let at_work = run.at_work();
    let state = run.proposals();
    // An agent whose set was decided counts as working, although its asynchronous task may not have
    // been woken yet.
    let is_judged = |id: &ProposalId| {
        let mut sets = state.sets.all.iter();
        sets.any(|set| set.members.contains(id) && set.judged.borrow().is_some())
    };
    let waits = |actor: &ActorId| {
        let mut waiting = state.waiting();
        waiting.any(|(one, stage)| {
            let needs_others = one.id == id || stage == Stage::NeedsOthers && !is_judged(&one.id);
            needs_others && actor.symbol().is_none_or(|owner| *owner == one.owner())
        })
    };
    match at_work.iter().all(waits) {
        true => OtherAgents::AtRest,
        false => OtherAgents::AtWork,
    }
}

/// Marks the sets of these proposals as under review, so that other proposals are checked together
/// with them.
pub(crate) fn are_under_review(run: &RunContext, shown: &[ProposalId]) {
    let mut state = run.proposals();
    let sets = state.sets.all.iter_mut();
    for set in sets.filter(|set| shown.iter().any(|id| set.members.contains(id))) {
        set.progress = Progress::UnderReview;
    }
    drop(state);
    run.waited.raise();
}

/// The outcome of waiting for the proposals that another proposal needs.
pub(crate) enum NeededOutcome {
    Applied,
    /// This proposal ended without being applied, or was reverted.
    Gone(ProposalId),
}

/// Waits until all of these proposals are applied, or one of them can no longer be applied.
pub(crate) async fn needed(run: &RunContext, needs: &[ProposalId]) -> NeededOutcome {
    loop {
        let fate = {
            let book = run.proposals();
            let is_applied = |id: &ProposalId| book.is_applied(*id);
            match gone(&book, needs) {
                Some(gone) => Some(NeededOutcome::Gone(gone)),
                None => needs
                    .iter()
                    .all(is_applied)
                    .then_some(NeededOutcome::Applied),
            }
        };
        if let Some(fate) = fate {
            return fate;
        }
        let is_over = || {
            let book = run.proposals();
            let is_open = |id: &ProposalId| !book.is_applied(*id);
            gone(&book, needs).is_some() || !needs.iter().any(is_open)
        };
        run.waited.wait_for(is_over).await;
    }
}

/// Waits until one of these proposals can no longer be applied.
pub(crate) async fn one_is_gone(run: &RunContext, needs: &[ProposalId]) -> ProposalId {
    loop {
        let now = gone(&run.proposals(), needs);
        if let Some(gone) = now {
            return gone;
        }
        run.waited
            .wait_for(|| gone(&run.proposals(), needs).is_some())
            .await;
    }
}

/// Returns the first of these proposals that is not applied and can no longer be applied.
fn gone(book: &ProposalBook, ids: &[ProposalId]) -> Option<ProposalId> {
    ids.iter().copied().find(|id| !book.may_be_applied(*id))
}

/// Maximum number of sets under review that a proposal is checked with individually.
const REVIEWED_MOST: usize = 4;

/// Checks proposals that fail alone together with the proposals under review. Returns the proposals
/// that they need and the results; `None` if they still fail.
async fn with_reviewed(
    run: &Arc<RunContext>,
    id: ProposalId,
    with: &[Proposal],
) -> Option<(Vec<ProposalId>, JointFindings)> {
    let reviewed = under_review(&run.proposals());
    if reviewed.is_empty() {
        return None;
    }
    let with_sets = |sets: &[Vec<Proposal>]| {
        let mut all: Vec<Proposal> = sets.concat();
        let needs: Vec<ProposalId> = all.iter().map(|one| one.id).collect();
        all.extend(with.iter().cloned());
        (needs, all)
    };
    if reviewed.len() > 1 {
        for set in reviewed.iter().rev().take(REVIEWED_MOST) {
            let (needs, all) = with_sets(std::slice::from_ref(set));
            let found = checked_together(run, id, &all).await;
            if found.passes {
                return Some((needs, found));
            }
        }
    }
    let (needs, all) = with_sets(&reviewed);
    let found = checked_together(run, id, &all).await;
    found.passes.then_some((needs, found))
}

/// Returns the proposals under review, grouped by set.
fn under_review(book: &ProposalBook) -> Vec<Vec<Proposal>> {
    let of = |set: &Set| -> Vec<Proposal> {
        let members = book.open().filter(|one| set.members.contains(&one.id));
        members.cloned().collect()
    };
    let sets = book.sets.all.iter();
    let sets = sets.filter(|set| set.progress == Progress::UnderReview && !is_over(&set.judged));
    // The members of a set that is being applied are left out, because the workspace already
    // contains them.
    sets.map(of).filter(|set| !set.is_empty()).collect()
}

/// Results of a joint check.
pub(crate) struct JointFindings {
    pub tests: TestEvidence,
    pub diagnostics: DiagnosticEvidence,
    pub examples: Vec<ExampleEvidence>,
    pub passes: bool,
    /// Proposals that conflict with others and were left out of the check.
    pub skipped: BTreeSet<ProposalId>,
    /// Number of changes that the run had applied or reverted when the check began.
    pub checked_in: u64,
}

pub(crate) async fn checked_together(
    run: &Arc<RunContext>,
    id: ProposalId,
    with: &[Proposal],
) -> JointFindings {
    let checked_in = run.world().epoch.changes;
    run.disk.check_begins(with.iter().map(|one| one.id));
    let skipped = skipped(
        &run.world().snapshot.clone(),
        with.iter().map(|one| (one.id, &one.draft)),
    );
    let together = laid_over(
        &run.world().snapshot.clone(),
        with.iter().map(|one| &one.draft),
    );
    let (tests, diagnostics, examples) = tokio::join!(
        tested(run, id, with),
        diagnosed(run, with),
        task_examples::with_change(run, &together)
    );
    let passes = stage(
        &tests,
        &diagnostics,
        &run.tests().required.ids,
        run.task.approval,
    ) == Stage::Passes;
    JointFindings {
        tests,
        diagnostics,
        examples,
        passes,
        skipped,
        checked_in,
    }
}

/// Tests the current workspace with these proposals.
async fn tested(run: &Arc<RunContext>, id: ProposalId, with: &[Proposal]) -> TestEvidence {
    let world = run.world().snapshot.clone();
    let drafts = || with.iter().map(|one| &one.draft);
    let symbols: Vec<SymbolPath> = drafts().flat_map(|draft| draft.symbols.clone()).collect();
    let together = laid_over(&world, drafts());
    let (tests, report) = compare_tests::of_change(run, &world, &together, &symbols).await;
    if let Some(report) = report {
        run.event(Event::TestsRun {
            phase: TestPhase::Proposal,
            proposal: Some(id),
            report,
        });
    }
    tests
}

/// Returns the problems that these proposals introduce when all of them are applied.
async fn diagnosed(run: &Arc<RunContext>, with: &[Proposal]) -> DiagnosticEvidence {
    let world = run.world().snapshot.clone();
    let drafts = || with.iter().map(|one| &one.draft);
    let files: BTreeSet<FilePath> = drafts().map(|draft| draft.file.clone()).collect();
    let files: Vec<FilePath> = files.into_iter().collect();
    let after = laid_over(&world, drafts());
    let found = diagnose::diagnostics(run, &world, &after, &files).await;
    awaited::of(run, (&world, &after), &files, found)
}

/// Returns the combined diff of these proposals, with each file once. The diff of a proposal that
/// conflicts with the others is appended separately.
pub(crate) fn diff(run: &RunContext, members: &[Proposal]) -> String {
    let world = run.world().snapshot.clone();
    let mut now = world.clone();
    let mut apart = String::new();
    for one in members {
        match one.draft.laid_over(&now) {
            Some(with_draft) => now = with_draft,
            None => apart.push_str(&one.diff),
        }
    }
    let files: BTreeSet<&FilePath> = members.iter().map(|one| &one.draft.file).collect();
    let of_file = |file: &FilePath| match (world.read(file), now.read(file)) {
        (Ok(before), Ok(after)) => visible(&unified_diff(file.as_str(), &before, &after)),
        (Err(_), Ok(after)) => visible(&new_file_diff(file.as_str(), &after)),
        (Ok(before), Err(_)) => visible(&deleted_file_diff(file.as_str(), &before)),
        (Err(_), Err(_)) => String::new(),
    };
    let diffs = files.into_iter().map(of_file);
    diffs.chain([apart]).collect()
}
