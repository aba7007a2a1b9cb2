//! Parts of the single agent's change that pass only together. A part that fails alone is sent back
//! to the agent, but is kept and checked together with the agent's next proposal. Parts that pass
//! together are reviewed together, and are applied together or not at all.

use std::sync::Arc;

use crate::event::events::Event;
use crate::evidence::ids::{ProposalId, ids};
use crate::evidence::joint::JointEvidence;
use crate::evidence::proposal::Evidence;
use crate::evidence::return_reason::ReturnReason;
use crate::proposal::joint_check::{self, WaitingEntry};
use crate::proposal::outcome::Outcome;
use crate::proposal::{draft, ended, made, outcome, set};
use crate::state::agent_state::AgentState;
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use crate::state::sets::Landed;
use starling_core::Verdict;

/// Drops the kept parts that a newer proposal replaced. Called at the start of a turn, when the
/// agent has been informed of them.
pub(crate) fn forget_replaced(run: &RunContext, agent: &AgentState) {
    run.proposals().forget_kept(&agent.actor, true);
}

/// Drops all kept parts of the agent. Called at the start of a piece of work.
pub(crate) fn forget(run: &RunContext, agent: &AgentState) {
    let mut book = run.proposals();
    book.forget_kept(&agent.actor, true);
    book.forget_kept(&agent.actor, false);
}

/// Returns whether the agent has kept parts, including replaced parts.
pub(crate) fn are_there(run: &RunContext, agent: &AgentState) -> bool {
    run.proposals().kept(&agent.actor).next().is_some()
}

/// Returns the kept parts that are not replaced by a newer proposal.
pub(crate) fn open(run: &RunContext, agent: &AgentState) -> Vec<Proposal> {
    let book = run.proposals();
    let kept = book.kept(&agent.actor);
    let open = kept.filter(|(_, is_replaced)| !is_replaced);
    open.map(|(one, _)| one.clone()).collect()
}

/// Keeps a proposal that fails on its own for a later joint check, and returns the message for the
/// agent.
pub(crate) fn keep(
    run: &RunContext,
    agent: &AgentState,
    proposal: &Proposal,
    why: &ReturnReason,
) -> Outcome {
    outcome::tell_refused(run, agent, why);
    run.proposals().keep(proposal).ok();
    let kept: Vec<ProposalId> = open(run, agent).iter().map(|kept| kept.id).collect();
    let to_agent = format!(
        "{why}\nIf it is one part of a change, propose the other parts: what you propose next is \
         checked together with {}, and applied together with it.",
        ids(&kept)
    );
    Outcome::Kept {
        why: ReturnReason::new(to_agent, why.to_user()),
    }
}

/// Proposes the kept parts again. They stay registered as waiting until the returned guards are
/// dropped.
async fn propose_again(
    run: &Arc<RunContext>,
    agent: &AgentState,
    kept: Vec<Proposal>,
) -> (Vec<WaitingEntry>, Vec<Proposal>) {
    let mut drafts = Vec::new();
    for kept in kept {
        // A part that can no longer be drafted was sent back already.
        if let Ok(draft) = draft::make(run, agent, &kept.change).await {
            drafts.push((kept, draft));
        }
    }
    let again = drafts.into_iter().map(|(kept, draft)| {
        let mut proposal = made::make(run, agent, kept.change, draft);
        proposal.revises = Some(kept.id);
        (WaitingEntry::take(run, proposal.id), proposal)
    });
    again.unzip()
}

/// Checks a proposal together with the kept parts, and asks the approver about all of them if they
/// pass. Returns the proposal as `Err` if no part is kept, or if they fail together.
pub(crate) async fn join(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    proposal: Proposal,
) -> Result<Outcome, Box<Proposal>> {
    let kept = open(run, agent);
    if kept.is_empty() {
        return Err(Box::new(proposal));
    }
    let (_places, mut all) = propose_again(run, agent, kept).await;
    all.push(proposal.clone());
    let found = joint_check::checked_together(run, proposal.id, &all).await;
    if all.len() < 2 || !found.passes {
        return Err(Box::new(proposal));
    }
    run.proposals().forget_kept(&agent.actor, false);
    let together = |of: ProposalId| JointEvidence {
        with: (all.iter().filter(|one| one.id != of))
            .map(Proposal::owner)
            .collect(),
        proposals: (all.iter().map(|one| one.id))
            .filter(|id| *id != of)
            .collect(),
        tests: found.tests.clone(),
        diagnostics: found.diagnostics.clone(),
        examples: found.examples.clone(),
        needs: Vec::new(),
        checked_in: found.checked_in,
    };
    let of_all: Vec<JointEvidence> = all.iter().map(|one| together(one.id)).collect();
    let own = together(proposal.id);
    let again = all
        .iter_mut()
        .zip(of_all)
        .filter(|(one, _)| one.id != proposal.id);
    for (one, together) in again {
        made::announce(run, one);
        one.evidence = Evidence {
            together: Some(together),
            ..made::unchecked(&one.draft)
        };
        made::tell_checked(run, one.id, &one.evidence);
    }
    Ok(decide(run, agent, all, proposal.id, own).await)
}

/// Asks the approver about parts that pass together, and carries out the decision.
async fn decide(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    all: Vec<Proposal>,
    lead: ProposalId,
    together: JointEvidence,
) -> Outcome {
    let decision = set::decide_on_set(Arc::clone(run), lead, all.clone(), together).await;
    let numbers = all.iter().map(|one| one.id);
    let numbers: Vec<ProposalId> = numbers
        .filter(|id| !decision.landed.get(id).is_some_and(Landed::is_taken_out))
        .collect();
    let reason = match decision.verdict {
        Verdict::Accept => {
            agent.rejected = None;
            return landed(run, agent, &all, decision.landed, &numbers);
        }
        Verdict::Reject { ref reason } => format!("Rejected: {reason}"),
        Verdict::Steer { ref text } => format!("Not yet accepted. Do it differently: {text}"),
    };
    agent.rejected = Some(lead);
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
    all: &[Proposal],
    mut landed: std::collections::BTreeMap<ProposalId, Landed>,
    numbers: &[ProposalId],
) -> Outcome {
    let mut failed = None;
    for one in all {
        let end = landed.remove(&one.id).unwrap_or_else(ended::lost);
        match ended::ended(run, agent, one, end) {
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
