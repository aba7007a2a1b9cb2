//! Proposals that follow from the index alone: a rename or a deletion in all files. They are parts of
//! one change, which is tested once, and applied completely or not at all.

use std::sync::Arc;

use crate::event::events::Event;
use crate::evidence::ids::ProposalId;
use crate::evidence::proposal::Evidence;
use crate::evidence::return_reason::ReturnReason;
use crate::proposal::ended::{ended, lost, taken_out};
use crate::proposal::joint_check::{self, JointCheck, Place};
use crate::proposal::made::{Made, before_text, own_diff, tell_checked, unchecked};
use crate::proposal::objection::{self, Judgement};
use crate::proposal::outcome::{Outcome, refuse};
use crate::proposal::propose;
use crate::proposal::set;
use crate::protocol::Propose;
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::proposals::{Decision, Landed, Stage};
use crate::state::run_context::RunContext;
use starling_core::Verdict;

/// Returns whether the run's proposals are parts of one change that was made by rule.
pub(crate) fn is_part(run: &RunContext) -> bool {
    run.proposals().sets.by_rule > 1
}

/// Takes one part through all stages, together with the others.
pub(crate) async fn propose(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
    (id, draft): (ProposalId, Draft),
    mut place: Place,
) -> Outcome {
    let all_there = run.waited.wait_for(|| run.agents().drafts.is_empty());
    all_there.await;
    if run.proposals().waiting.len() < 2 {
        // The other parts were refused.
        place.stand_alone();
        let (made, report) = propose::checked(run, agent, change, draft, id).await;
        return propose::alone(run, agent, change, made, report).await;
    }
    let made = announced(run, agent, change, draft, id);
    place.checked(&made.draft, &made.diff, &made.evidence, Stage::NeedsOthers);
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
            ended(run, agent, id, made.draft, landed)
        }
        Some(Decision { by, verdict, .. }) => {
            let tests = together.tests.clone();
            propose::concluded(run, agent, change, made, (by, verdict), (tests, None)).await
        }
        None => {
            let evidence = Evidence {
                tests: together.tests.clone(),
                diagnostics: together.diagnostics.clone(),
                ..made.evidence
            };
            tell_checked(run, id, &evidence);
            match objection::judge(run, agent, change, &made.draft, &evidence) {
                Judgement::SentBack { why } => refuse(run, agent, why),
                Judgement::Passes | Judgement::PersonDecides { .. } => not_as_a_whole(run, agent),
            }
        }
    }
}

fn not_as_a_whole(run: &RunContext, agent: &AgentState) -> Outcome {
    let why = "the change does not pass as a whole";
    refuse(run, agent, ReturnReason::for_both(why))
}

/// Logs a part, which is not checked alone.
fn announced(
    run: &RunContext,
    agent: &AgentState,
    change: &Propose,
    draft: Draft,
    id: ProposalId,
) -> Made {
    let diff = own_diff(&draft, &before_text(run, &draft));
    run.event(Event::ProposalMade {
        proposal: id,
        agent: agent.actor.clone(),
        symbols: draft.symbols.clone(),
        reason: change.reason.clone(),
        diff: diff.clone(),
        revises: agent.rejected,
    });
    Made {
        id,
        evidence: unchecked(&draft),
        diff,
        draft,
    }
}
