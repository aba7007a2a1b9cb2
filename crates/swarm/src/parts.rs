//! Parts of the single agent's change that pass only together. A part that fails alone is sent back
//! and kept, and is checked together with the agent's next proposal. Parts that pass are reviewed
//! together, and are applied together or not at all.

use std::sync::Arc;

use super::agent::Mind;
use super::company::{self, Waiting};
use super::draft;
use super::event::{Event, Party};
use super::gate::Draft;
use super::hub::Hub;
use super::landing::Landed;
use super::proposal::{Evidence, ProposalId, ids};
use super::propose::{self, Made, Outcome};
use super::protocol::Propose;
use super::reason::ReturnReason;
use super::set;
use super::together::Together;
use starling_core::Verdict;
use starling_syntax::SymbolPath;

/// A part that was sent back because it fails alone.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub id: ProposalId,
    pub change: Propose,
    symbols: Vec<SymbolPath>,
    /// Set if a newer proposal changes the same symbol. The part is not proposed again, but the
    /// agent is told of it before it ends.
    is_replaced: bool,
}

/// Marks the parts that a newer proposal replaces because it changes one of their symbols.
pub(super) fn replace(mind: &mut Mind, newer: &Draft) {
    let is_same = |symbol: &SymbolPath| !symbol.is_module() && newer.symbols.contains(symbol);
    let is_whole = newer.symbols.iter().all(SymbolPath::is_module);
    for kept in &mut mind.kept {
        let is_module = kept.symbols.iter().all(SymbolPath::is_module);
        let same_module = is_whole && is_module && kept.symbols == newer.symbols;
        kept.is_replaced |= same_module || kept.symbols.iter().any(is_same);
    }
}

/// Drops the replaced parts. Called at the start of a turn, when the agent has been told of them.
pub(super) fn forget_replaced(mind: &mut Mind) {
    mind.kept.retain(|kept| !kept.is_replaced);
}

/// Returns the parts that are still proposed.
pub(super) fn open(mind: &Mind) -> impl Iterator<Item = &Kept> {
    mind.kept.iter().filter(|kept| !kept.is_replaced)
}

/// Keeps a part that fails alone, and returns the message for the agent.
pub(super) fn keep(
    hub: &Hub,
    mind: &mut Mind,
    change: &Propose,
    made: &Made,
    why: &ReturnReason,
) -> Outcome {
    propose::tell_refused(hub, mind, why);
    mind.kept.push(Kept {
        id: made.id,
        change: change.clone(),
        symbols: made.draft.symbols.clone(),
        is_replaced: false,
    });
    let kept: Vec<ProposalId> = open(mind).map(|kept| kept.id).collect();
    let to_agent = format!(
        "{why}\nIf it is one part of a change, propose the other parts: what you propose next is \
         checked together with {}, and applied together with it.",
        ids(&kept)
    );
    Outcome::Kept {
        why: ReturnReason::new(to_agent, why.to_user()),
    }
}

/// The kept parts, proposed again.
struct Again {
    members: Vec<(ProposalId, Waiting)>,
    revises: Vec<ProposalId>,
}

async fn propose_again(hub: &Arc<Hub>, mind: &Mind) -> Again {
    let (mut members, mut revises) = (Vec::new(), Vec::new());
    for kept in open(mind) {
        // A part that can no longer be drafted was sent back already.
        if let Ok(draft) = draft::make(hub, mind, &kept.change).await {
            let waiting = propose::waiting(mind, &kept.change, draft);
            members.push((hub.next_proposal(), waiting));
            revises.push(kept.id);
        }
    }
    Again { members, revises }
}

/// Checks a proposal together with the kept parts, and asks the approver about all of them if they
/// pass. Returns the proposal as `Err` if no part is kept, or if they fail together.
pub(super) async fn join(
    hub: &Arc<Hub>,
    mind: &mut Mind,
    change: &Propose,
    made: Made,
) -> Result<Outcome, Made> {
    if open(mind).next().is_none() {
        return Err(made);
    }
    let Again { members, revises } = propose_again(hub, mind).await;
    let mut all = members;
    let mut own = propose::waiting(mind, change, made.draft.clone());
    own.diff.clone_from(&made.diff);
    own.evidence = Some(made.evidence.clone());
    all.push((made.id, own));
    let found = company::checked_together(hub, made.id, &all).await;
    if all.len() < 2 || !found.passes {
        return Err(made);
    }
    mind.kept.retain(|kept| kept.is_replaced);
    let together = |of: ProposalId| Together {
        with: (all.iter().filter(|(id, _)| *id != of))
            .map(|(_, one)| one.symbol.clone())
            .collect(),
        proposals: (all.iter().map(|(id, _)| *id))
            .filter(|id| *id != of)
            .collect(),
        tests: found.tests.clone(),
        diagnostics: found.diagnostics.clone(),
        needs: Vec::new(),
    };
    let of_all: Vec<(ProposalId, Together)> =
        all.iter().map(|(id, _)| (*id, together(*id))).collect();
    for (((id, one), (_, together)), revises) in all.iter_mut().zip(of_all.clone()).zip(revises) {
        one.diff = propose::own_diff(&one.draft, &propose::before_text(hub, &one.draft));
        let evidence = Evidence {
            together: Some(together),
            ..propose::unchecked(&one.draft)
        };
        hub.event(Event::ProposalMade {
            proposal: *id,
            agent: mind.party.clone(),
            symbols: one.draft.symbols.clone(),
            reason: one.reason.clone(),
            diff: one.diff.clone(),
            revises: Some(revises),
        });
        propose::tell_checked(hub, *id, &evidence);
        one.evidence = Some(evidence);
    }
    Ok(decide(hub, mind, all, made, of_all).await)
}

/// Asks the approver about parts that pass together, and carries out the decision.
async fn decide(
    hub: &Arc<Hub>,
    mind: &mut Mind,
    all: Vec<(ProposalId, Waiting)>,
    made: Made,
    of_all: Vec<(ProposalId, Together)>,
) -> Outcome {
    let numbers: Vec<ProposalId> = all.iter().map(|(id, _)| *id).collect();
    let drafts: Vec<(ProposalId, Draft)> = (all.iter())
        .map(|(id, one)| (*id, one.draft.clone()))
        .collect();
    let own = of_all.into_iter().find(|(id, _)| *id == made.id);
    let Some((_, together)) = own else {
        return propose::sent_back("internal error: the part is not among the parts");
    };
    let decision = set::decide_on_set(Arc::clone(hub), made.id, all, together).await;
    let numbers: Vec<ProposalId> = (numbers.into_iter())
        .filter(|id| !decision.landed.get(id).is_some_and(Landed::is_taken_out))
        .collect();
    let reason = match decision.verdict {
        Verdict::Accept => {
            mind.rejected = None;
            return landed(hub, mind, drafts, decision.landed, &numbers);
        }
        Verdict::Reject { ref reason } => format!("Rejected: {reason}"),
        Verdict::Steer { ref text } => format!("Not yet accepted. Do it differently: {text}"),
    };
    mind.rejected = Some(made.id);
    for id in &numbers {
        hub.event(Event::ProposalReviewed {
            proposal: *id,
            by: decision.by.clone(),
            verdict: decision.verdict.clone(),
        });
    }
    propose::sent_back(format!(
        "{reason}\nThis is about {} together.",
        ids(&numbers)
    ))
}

/// Returns the outcome for the agent after its parts were accepted: all parts are applied, or none.
fn landed(
    hub: &Arc<Hub>,
    mind: &mut Mind,
    drafts: Vec<(ProposalId, Draft)>,
    mut landed: std::collections::BTreeMap<ProposalId, Landed>,
    numbers: &[ProposalId],
) -> Outcome {
    let mut failed = None;
    for (id, draft) in drafts {
        let end = landed.remove(&id).unwrap_or_else(propose::lost);
        match propose::ended(hub, mind, id, draft, end) {
            Outcome::Applied { .. } => {}
            other => failed = failed.or(Some(other)),
        }
    }
    failed.unwrap_or_else(|| Outcome::Applied {
        text: format!(
            "Proposals {} were accepted and applied together.",
            ids(numbers)
        ),
    })
}

/// Returns whether an agent's parts may be kept.
pub(super) fn are_kept(mind: &Mind) -> bool {
    mind.party == Party::Solo
}
