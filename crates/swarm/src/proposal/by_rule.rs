//! Proposals that are made from the index, without a model ("by rule"): a rename or a deletion in
//! all files. They are parts of one change, which is tested once, and applied completely or not at
//! all.

use std::sync::Arc;

use crate::evidence::return_reason::ReturnReason;
use crate::proposal::ended::{ended, lost, taken_out};
use crate::proposal::joint_check::{self, JointCheck, WaitingEntry};
use crate::proposal::made::{announce, note_callers_by_rule, tell_checked, unchecked};
use crate::proposal::objection::{self, StandaloneVerdict};
use crate::proposal::outcome::{Outcome, refuse};
use crate::proposal::propose;
use crate::proposal::set;
use crate::state::agent_state::AgentState;
use crate::state::proposal::{Proposal, Stage};
use crate::state::run_context::RunContext;
use crate::state::sets::{Decision, Landed};
use starling_core::Verdict;

/// Returns whether the run's proposals are parts of one change that was made by rule, that is,
/// without a model.
pub(crate) fn is_part(run: &RunContext) -> bool {
    run.proposals().sets.by_rule > 1
}

/// Drafts one part of the change, and checks, reviews and applies it together with the other parts.
pub(crate) async fn propose(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    mut proposal: Proposal,
    mut place: WaitingEntry,
) -> Outcome {
    let all_there = run.waited.wait_for(|| run.agents().drafts.is_empty());
    all_there.await;
    if run.proposals().waiting().count() < 2 {
        // The other parts of the change were refused, so this part no longer belongs to a set.
        place.stand_alone();
        let report = propose::checked(run, agent, &mut proposal).await;
        return propose::alone(run, agent, proposal, report).await;
    }
    // A part is announced without a check of its own, because all parts are checked together.
    announce(run, &mut proposal);
    proposal.evidence = unchecked(&proposal.draft);
    note_callers_by_rule(run, &proposal.draft, &mut proposal.evidence);
    place.checked(&proposal, Stage::NeedsOthers);
    let id = proposal.id;
    let joined = joint_check::join(run, id, set::decide_on_set).await;
    let Some(JointCheck { together, verdict }) = joined else {
        return not_as_a_whole(run, agent);
    };
    match verdict {
        Some(Decision { landed, .. }) if landed.get(&id).is_some_and(Landed::is_taken_out) => {
            taken_out(agent, id)
        }
        Some(Decision {
            verdict: Verdict::Accept,
            mut landed,
            ..
        }) => {
            agent.rejected = None;
            let landed = landed.remove(&id).unwrap_or_else(lost);
            ended(run, agent, &proposal, landed)
        }
        Some(Decision { by, verdict, .. }) => {
            let tests = together.tests.clone();
            propose::concluded(run, agent, proposal, (by, verdict), (tests, None)).await
        }
        None => {
            proposal.evidence.tests = together.tests;
            proposal.evidence.diagnostics = together.diagnostics;
            tell_checked(run, id, &proposal.evidence);
            match objection::judge(run, agent, &proposal) {
                StandaloneVerdict::SentBack { why } => refuse(run, agent, why),
                StandaloneVerdict::Passes | StandaloneVerdict::PersonDecides { .. } => {
                    not_as_a_whole(run, agent)
                }
            }
        }
    }
}

fn not_as_a_whole(run: &RunContext, agent: &AgentState) -> Outcome {
    let why = "the change does not pass as a whole";
    refuse(run, agent, ReturnReason::for_both(why))
}
