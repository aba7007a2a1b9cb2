//! Proposals that wait together: parts of one change may fail alone and pass as a set. Those that fail
//! alone are tested with all that wait; a set that passes is reviewed as one, and applied part by part.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::diagnose;
use super::event::{Driver, Event, Party, TestPhase};
use super::findings::DiagnosticEvidence;
use super::gate::Draft;
use super::hub::Hub;
use super::lookup::Lookup;
use super::proposal::{Evidence, ProposalId, TestEvidence, Together};
use super::tools::test_deadline;
use super::trial;
use crate::ports::Verdict;
use crate::syntax::{FilePath, SymbolPath};
use crate::text::{new_file_diff, unified_diff};
use crate::workspace::Snapshot;

/// How far a proposal that waits has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Checking,
    /// It passes by itself.
    Passes,
    /// By itself it breaks something, or mends nothing.
    NeedsOthers,
}

/// A proposal between its draft and its end.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub symbol: SymbolPath,
    pub reason: String,
    pub diff: String,
    pub draft: Draft,
    pub evidence: Option<Evidence>,
    pub stage: Stage,
}

/// A set of proposals that was tested as one.
#[derive(Debug)]
pub(super) struct Set {
    members: BTreeSet<ProposalId>,
    /// All that were tested: the members, and those that pass by themselves.
    with: BTreeMap<ProposalId, SymbolPath>,
    tests: TestEvidence,
    diagnostics: DiagnosticEvidence,
    /// What the approver said to all of them; `None`: it was not asked, for they fail together as well.
    verdict: Option<(Party, Verdict)>,
}

/// What a proposal learns from those that wait with it.
#[derive(Debug, Clone)]
pub(super) struct Company {
    pub together: Together,
    pub verdict: Option<(Party, Verdict)>,
}

/// Keeps a proposal among those that wait, for as long as it is held.
pub(super) struct Place {
    hub: Arc<Hub>,
    id: ProposalId,
}

impl Place {
    pub fn take(hub: &Arc<Hub>, id: ProposalId, waiting: Waiting) -> Place {
        hub.state().waiting.insert(id, waiting);
        let hub = Arc::clone(hub);
        Place { hub, id }
    }

    /// It was checked by itself.
    pub fn checked(&self, draft: &Draft, diff: &str, evidence: &Evidence, stage: Stage) {
        if let Some(waiting) = self.hub.state().waiting.get_mut(&self.id) {
            waiting.draft = draft.clone();
            diff.clone_into(&mut waiting.diff);
            waiting.evidence = Some(evidence.clone());
            waiting.stage = stage;
        }
        self.hub.waited.send_modify(|count| *count += 1);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hub.state().waiting.remove(&self.id);
        self.hub.waited.send_modify(|count| *count += 1);
    }
}

/// Whether a proposal should be looked at with others: it breaks tests, or mends none of those that it
/// is to mend, or it brings problems that have to be mended.
pub(super) fn stage(
    tests: &TestEvidence,
    diagnostics: &DiagnosticEvidence,
    is_to_mend: bool,
) -> Stage {
    if diagnostics.stopping().next().is_some() {
        return Stage::NeedsOthers;
    }
    match tests {
        TestEvidence::Unknown { .. } => Stage::Passes,
        TestEvidence::Known {
            broken,
            fixed,
            still_failing,
            ..
        } => {
            let helpless = is_to_mend && fixed.is_empty() && !still_failing.is_empty();
            match broken.is_empty() && !helpless {
                true => Stage::Passes,
                false => Stage::NeedsOthers,
            }
        }
    }
}

/// Tests a proposal that fails alone with all that wait, and asks about the set when it passes. `None`:
/// nobody else waits. `ask` is called for at most one member of a set.
pub(super) async fn join<F>(
    hub: &Arc<Hub>,
    id: ProposalId,
    ask: impl FnOnce(Arc<Hub>, ProposalId, Vec<(ProposalId, Waiting)>, Together) -> F,
) -> Option<Company>
where
    F: Future<Output = (Party, Verdict)>,
{
    if hub.task.driver == Driver::Single {
        return None;
    }
    others_are_checked(hub, id).await;
    // One set at a time: whoever comes later may find that it was part of it.
    let mut sets = hub.sets.lock().await;
    if let Some(set) = sets.iter().find(|set| set.members.contains(&id)) {
        return Some(set.as_seen_by(id));
    }
    let waiting = hub.state().waiting.clone();
    let of_no_set = |id: &ProposalId| !sets.iter().any(|set| set.members.contains(id));
    let members: BTreeMap<ProposalId, Waiting> = waiting
        .iter()
        .filter(|(id, one)| one.stage == Stage::NeedsOthers && of_no_set(id))
        .map(|(id, one)| (*id, one.clone()))
        .collect();
    let with = waiting
        .iter()
        .filter(|(_, one)| one.stage != Stage::Checking);
    let with: Vec<(ProposalId, Waiting)> = with.map(|(id, one)| (*id, one.clone())).collect();
    if with.len() < 2 {
        return None;
    }
    let (tests, diagnostics) = tokio::join!(tested(hub, id, &with), diagnosed(hub, &with));
    let passes = stage(&tests, &diagnostics, hub.state().wants_green) == Stage::Passes;
    let mut set = Set {
        members: members.keys().copied().collect(),
        tests,
        diagnostics,
        with: with
            .iter()
            .map(|(id, one)| (*id, one.symbol.clone()))
            .collect(),
        verdict: None,
    };
    if passes {
        let together = set.as_seen_by(id).together;
        let members = members.into_iter().collect();
        set.verdict = Some(ask(Arc::clone(hub), id, members, together).await);
    }
    let company = set.as_seen_by(id);
    sets.push(set);
    Some(company)
}

impl Set {
    fn as_seen_by(&self, id: ProposalId) -> Company {
        let others = self.with.iter().filter(|(other, _)| **other != id);
        let with = others.map(|(_, symbol)| symbol.clone()).collect();
        Company {
            together: Together {
                with,
                tests: self.tests.clone(),
                diagnostics: self.diagnostics.clone(),
            },
            verdict: self.verdict.clone(),
        }
    }
}

/// Those that are being checked now may belong to it; no longer than a run of the tests may take.
async fn others_are_checked(hub: &Arc<Hub>, id: ProposalId) {
    let checking: Vec<ProposalId> = {
        let state = hub.state();
        let others = state
            .waiting
            .iter()
            .filter(|(other, one)| **other != id && one.stage == Stage::Checking);
        others.map(|(other, _)| *other).collect()
    };
    let mut waited = hub.waited.subscribe();
    let all_checked = waited.wait_for(|_| {
        let state = hub.state();
        let is_checking = |id: &ProposalId| {
            let one = state.waiting.get(id);
            one.is_some_and(|one| one.stage == Stage::Checking)
        };
        !checking.iter().any(is_checking)
    });
    let _ = tokio::time::timeout(test_deadline(hub), all_checked).await;
}

/// The tests over everything accepted and these proposals.
async fn tested(hub: &Arc<Hub>, id: ProposalId, with: &[(ProposalId, Waiting)]) -> TestEvidence {
    let world = hub.state().world.clone();
    let drafts = || with.iter().map(|(_, one)| &one.draft);
    let symbols: Vec<SymbolPath> = drafts().flat_map(|draft| draft.symbols.clone()).collect();
    let together = laid_over(&world, drafts());
    let (tests, report) = trial::of_change(hub, &world, &together, &symbols).await;
    if let Some(report) = report {
        hub.event(Event::TestsRun {
            phase: TestPhase::Proposal,
            proposal: Some(id),
            report,
        });
    }
    tests
}

/// The problems that these proposals bring together, in the one text of all of them.
async fn diagnosed(hub: &Arc<Hub>, with: &[(ProposalId, Waiting)]) -> DiagnosticEvidence {
    let world = hub.state().world.clone();
    let drafts = || with.iter().map(|(_, one)| &one.draft);
    let files: BTreeSet<FilePath> = drafts().map(|draft| draft.file.clone()).collect();
    let files: Vec<FilePath> = files.into_iter().collect();
    diagnose::diagnostics(hub, &world, &laid_over(&world, drafts()), &files).await
}

/// What these proposals change, each file once. One that does not fit over the others stands by itself.
pub(super) fn diff(hub: &Hub, members: &[(ProposalId, Waiting)]) -> String {
    let world = hub.state().world.clone();
    let mut now = world.clone();
    let mut apart = String::new();
    for (_, one) in members {
        match text_with(&now, &one.draft) {
            Some(text) => now = now.with(one.draft.file.clone(), Some(text)),
            None => apart.push_str(&one.diff),
        }
    }
    let files: BTreeSet<&FilePath> = members.iter().map(|(_, one)| &one.draft.file).collect();
    let of_file = |file: &FilePath| match (world.read(file), now.read(file)) {
        (Ok(before), Ok(after)) => unified_diff(file.as_str(), &before, &after),
        (Err(_), Ok(after)) => new_file_diff(file.as_str(), &after),
        (_, Err(_)) => String::new(),
    };
    let diffs = files.into_iter().map(of_file);
    diffs.chain([apart]).collect()
}

/// The workspace with all proposals that wait, as it will be when they are accepted.
pub(super) fn with_all_that_wait(hub: &Hub) -> Lookup {
    let (world, index, waiting, served) = {
        let state = hub.state();
        let (index, served) = (Arc::clone(&state.index), Arc::clone(&state.served));
        (state.world.clone(), index, state.waiting.clone(), served)
    };
    if waiting.is_empty() {
        return Lookup::new(world, index).with_served(served);
    }
    let world = laid_over(&world, waiting.values().map(|one| &one.draft));
    let index = Arc::new(index.after(world.clone()));
    Lookup::new(world, index).with_served(served)
}

/// The workspace with several drafts; one that does not fit over the others is left out.
fn laid_over<'d>(world: &Snapshot, drafts: impl Iterator<Item = &'d Draft>) -> Snapshot {
    let mut world = world.clone();
    for draft in drafts {
        if let Some(text) = text_with(&world, draft) {
            world = world.with(draft.file.clone(), Some(text));
        }
    }
    world
}

/// The text of a draft's file with the draft; `None` where it does not fit over what is there.
fn text_with(world: &Snapshot, draft: &Draft) -> Option<Arc<str>> {
    let now = world.read(&draft.file);
    draft.over(&now.unwrap_or_else(|_| "".into()))
}
