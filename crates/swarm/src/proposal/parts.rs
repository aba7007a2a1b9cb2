//! Parts of the single agent's change that pass only together. A part that fails alone is sent back
//! and kept, and is checked together with the agent's next proposal. Parts that pass are reviewed
//! together, and are applied together or not at all.

use std::sync::Arc;

use crate::event::events::Event;
use crate::evidence::ids::{ProposalId, ids};
use crate::evidence::joint::JointEvidence;
use crate::evidence::proposal::Evidence;
use crate::evidence::return_reason::ReturnReason;
use crate::proposal::made::Made;
use crate::proposal::outcome::Outcome;
use crate::proposal::{draft, ended, joint_check, made, outcome, set};
use crate::protocol::Propose;
use crate::state::agent_state::{AgentState, Kept};
use crate::state::draft::Draft;
use crate::state::proposals::{Landed, Waiting};
use crate::state::run_context::RunContext;
use starling_core::Verdict;
use starling_syntax::SymbolPath;

/// Marks the parts that a newer proposal replaces because it changes one of their symbols.
pub(crate) fn replace(agent: &mut AgentState, newer: &Draft) {
    let is_same = |symbol: &SymbolPath| !symbol.is_module() && newer.symbols.contains(symbol);
    let is_whole = newer.symbols.iter().all(SymbolPath::is_module);
    for kept in &mut agent.kept {
        let is_module = kept.symbols.iter().all(SymbolPath::is_module);
        let same_module = is_whole && is_module && kept.symbols == newer.symbols;
        kept.is_replaced |= same_module || kept.symbols.iter().any(is_same);
    }
}

/// Drops the replaced parts. Called at the start of a turn, when the agent has been told of them.
pub(crate) fn forget_replaced(agent: &mut AgentState) {
    agent.kept.retain(|kept| !kept.is_replaced);
}

/// Returns the parts that are still proposed.
pub(crate) fn open(agent: &AgentState) -> impl Iterator<Item = &Kept> {
    agent.kept.iter().filter(|kept| !kept.is_replaced)
}

/// Keeps a part that fails alone, and returns the message for the agent.
pub(crate) fn keep(
    run: &RunContext,
    agent: &mut AgentState,
    change: &Propose,
    made: &Made,
    why: &ReturnReason,
) -> Outcome {
    outcome::tell_refused(run, agent, why);
    agent.kept.push(Kept {
        id: made.id,
        change: change.clone(),
        symbols: made.draft.symbols.clone(),
        is_replaced: false,
    });
    let kept: Vec<ProposalId> = open(agent).map(|kept| kept.id).collect();
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

async fn propose_again(run: &Arc<RunContext>, agent: &AgentState) -> Again {
    let (mut members, mut revises) = (Vec::new(), Vec::new());
    for kept in open(agent) {
        // A part that can no longer be drafted was sent back already.
        if let Ok(draft) = draft::make(run, agent, &kept.change).await {
            let waiting = made::waiting(agent, &kept.change, draft);
            members.push((run.next_proposal(), waiting));
            revises.push(kept.id);
        }
    }
    Again { members, revises }
}

/// Checks a proposal together with the kept parts, and asks the approver about all of them if they
/// pass. Returns the proposal as `Err` if no part is kept, or if they fail together.
pub(crate) async fn join(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
    made: Made,
) -> Result<Outcome, Made> {
    if open(agent).next().is_none() {
        return Err(made);
    }
    let Again { members, revises } = propose_again(run, agent).await;
    let mut all = members;
    let mut own = made::waiting(agent, change, made.draft.clone());
    own.diff.clone_from(&made.diff);
    own.evidence = Some(made.evidence.clone());
    all.push((made.id, own));
    let found = joint_check::checked_together(run, made.id, &all).await;
    if all.len() < 2 || !found.passes {
        return Err(made);
    }
    agent.kept.retain(|kept| kept.is_replaced);
    let together = |of: ProposalId| JointEvidence {
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
    let of_all: Vec<(ProposalId, JointEvidence)> =
        all.iter().map(|(id, _)| (*id, together(*id))).collect();
    for (((id, one), (_, together)), revises) in all.iter_mut().zip(of_all.clone()).zip(revises) {
        one.diff = made::own_diff(&one.draft, &made::before_text(run, &one.draft));
        let evidence = Evidence {
            together: Some(together),
            ..made::unchecked(&one.draft)
        };
        run.event(Event::ProposalMade {
            proposal: *id,
            agent: agent.actor.clone(),
            symbols: one.draft.symbols.clone(),
            reason: one.reason.clone(),
            diff: one.diff.clone(),
            revises: Some(revises),
        });
        made::tell_checked(run, *id, &evidence);
        one.evidence = Some(evidence);
    }
    Ok(decide(run, agent, all, made, of_all).await)
}

/// Asks the approver about parts that pass together, and carries out the decision.
async fn decide(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    all: Vec<(ProposalId, Waiting)>,
    made: Made,
    of_all: Vec<(ProposalId, JointEvidence)>,
) -> Outcome {
    let numbers: Vec<ProposalId> = all.iter().map(|(id, _)| *id).collect();
    let drafts: Vec<(ProposalId, Draft)> = (all.iter())
        .map(|(id, one)| (*id, one.draft.clone()))
        .collect();
    let own = of_all.into_iter().find(|(id, _)| *id == made.id);
    let Some((_, together)) = own else {
        return outcome::sent_back("internal error: the part is not among the parts");
    };
    let decision = set::decide_on_set(Arc::clone(run), made.id, all, together).await;
    let numbers: Vec<ProposalId> = (numbers.into_iter())
        .filter(|id| !decision.landed.get(id).is_some_and(Landed::is_taken_out))
        .collect();
    let reason = match decision.verdict {
        Verdict::Accept => {
            agent.rejected = None;
            return landed(run, agent, drafts, decision.landed, &numbers);
        }
        Verdict::Reject { ref reason } => format!("Rejected: {reason}"),
        Verdict::Steer { ref text } => format!("Not yet accepted. Do it differently: {text}"),
    };
    agent.rejected = Some(made.id);
    for id in &numbers {
        run.event(Event::ProposalReviewed {
            proposal: *id,
            by: decision.by.clone(),
            verdict: decision.verdict.clone(),
        });
    }
    outcome::sent_back(format!(
        "{reason}\nThis is about {} together.",
        ids(&numbers)
    ))
}

/// Returns the outcome for the agent after its parts were accepted: all parts are applied, or none.
fn landed(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    drafts: Vec<(ProposalId, Draft)>,
    mut landed: std::collections::BTreeMap<ProposalId, Landed>,
    numbers: &[ProposalId],
) -> Outcome {
    let mut failed = None;
    for (id, draft) in drafts {
        let end = landed.remove(&id).unwrap_or_else(ended::lost);
        match ended::ended(run, agent, id, draft, end) {
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
