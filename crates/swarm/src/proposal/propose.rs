//! Takes a proposal from an agent's action to an applied change: draft, checks, review, apply,
//! follow-up.

use std::sync::Arc;

use crate::check::new_tests;
use crate::contract::follow_up;
use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::evidence::proposal::Evidence;
use crate::evidence::return_reason::ReturnReason;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::approval::{decide, unasked_intent};
use crate::proposal::awaited;
use crate::proposal::by_rule;
use crate::proposal::candidates::{self, Chosen};
use crate::proposal::draft::{self, Refusal};
use crate::proposal::ended::{ended, lost, taken_out};
use crate::proposal::joint_check::{self, JointCheck, Place};
use crate::proposal::made::{
    Made, before_text, check, main_symbol, own_diff, tell_checked, waiting,
};
use crate::proposal::objection::{self, Judgement};
use crate::proposal::outcome::{Outcome, are_kept, refuse, sent_back};
use crate::proposal::{apply, edited, parts, set};
use crate::protocol::Propose;
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::proposals::{Accepted, Decision, Landed, Stage};
use crate::state::run_context::RunContext;
use starling_core::{ReviewAnswer, TestReport, Verdict};

/// Maximum number of times that a person may accept a proposal that the editor refuses.
const ACCEPTED_MOST: u32 = 5;

/// Takes one proposal through all stages.
pub(crate) async fn propose(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
) -> Outcome {
    let draft = match draft::make(run, agent, change).await {
        Ok(draft) => draft,
        Err(refusal) => return refused(run, agent, refusal),
    };
    if let Some(why) = unasked_intent(run, agent, change, &draft).await {
        return sent_back(why);
    }
    let chosen = candidates::choose(run, agent, change, draft).await;
    let Chosen { change, draft } = &chosen;
    let id = run.next_proposal();
    follow_up::note_followed(run, id, &agent.actor);
    let mut place = Place::take(run, id, waiting(agent, change, draft.clone()));
    run.draft_arrived(&agent.actor);
    if by_rule::is_part(run) {
        return by_rule::propose(run, agent, change, (id, draft.clone()), place).await;
    }
    let (mut made, mut report) = checked(run, agent, change, draft.clone(), id).await;
    let (tests, diagnostics) = (&made.evidence.tests, &made.evidence.diagnostics);
    let approval = run.task.approval;
    let stage = joint_check::stage(tests, diagnostics, &run.tests().required.ids, approval);
    if stage == Stage::NeedsOthers {
        // If the proposal can be applied only together with its callers, their owners are notified
        // now.
        follow_up::before_it_is_applied(run, &agent.actor, agent.wave, &made.draft);
    }
    place.checked(&made.draft, &made.diff, &made.evidence, stage);
    if stage == Stage::NeedsOthers
        && let Some(JointCheck { together, verdict }) =
            joint_check::join(run, id, set::decide_on_set).await
    {
        let tests = together.tests.clone();
        made.evidence.together = Some(together);
        match verdict {
            Some(Decision { landed, .. }) if landed.get(&id).is_some_and(Landed::is_taken_out) => {
                return taken_out(agent, id);
            }
            Some(Decision {
                verdict: Verdict::Accept,
                mut landed,
                ..
            }) => {
                agent.rejected = None;
                let landed = landed.remove(&id).unwrap_or_else(lost);
                return ended(run, agent, id, made.draft, landed);
            }
            Some(Decision { by, verdict, .. }) => {
                let verdict = (by, verdict);
                return concluded(run, agent, change, made, verdict, (tests, None)).await;
            }
            None => {}
        }
        tell_checked(run, id, &made.evidence);
    }
    if awaited::give_up(run, &mut made.evidence.diagnostics) {
        tell_checked(run, id, &made.evidence);
    }
    // The workspace may have changed while the proposal waited for others.
    place.stand_alone();
    if is_stale(run, &made.draft) {
        let together = made.evidence.together.take();
        again(run, agent, change, &mut made, &mut report).await;
        let (tests, diagnostics) = (&made.evidence.tests, &made.evidence.diagnostics);
        if joint_check::stage(tests, diagnostics, &run.tests().required.ids, approval)
            == Stage::NeedsOthers
        {
            made.evidence.together = together;
        }
        tell_checked(run, id, &made.evidence);
    }
    if are_kept(agent) {
        return with_parts(run, agent, change, (made, report), stage).await;
    }
    alone(run, agent, change, made, report).await
}

/// Decides on a proposal of the single agent, together with its earlier parts if they pass
/// together. A part that fails alone is kept for later parts.
async fn with_parts(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
    (made, report): (Made, Option<TestReport>),
    stage: Stage,
) -> Outcome {
    parts::replace(agent, &made.draft);
    let made = match parts::join(run, agent, change, made).await {
        Ok(outcome) => return outcome,
        Err(made) => made,
    };
    if stage == Stage::NeedsOthers
        && let Judgement::SentBack { why } =
            objection::judge(run, agent, change, &made.draft, &made.evidence)
    {
        return parts::keep(run, agent, change, &made, &why);
    }
    alone(run, agent, change, made, report).await
}

/// Records the tests that a refused proposal broke.
fn remember_broken(agent: &mut AgentState, evidence: &Evidence, report: Option<TestReport>) {
    if let TestEvidence::Known { broken, .. } = &evidence.tests {
        let cases = report.into_iter().flat_map(|report| report.cases);
        let cases = cases.filter(|case| broken.contains(&case.id));
        agent
            .broken
            .extend(cases.map(|case| (case.id.clone(), case)));
    }
}

pub(crate) async fn alone(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
    mut made: Made,
    mut report: Option<TestReport>,
) -> Outcome {
    match objection::judge(run, agent, change, &made.draft, &made.evidence) {
        Judgement::Passes => {}
        Judgement::PersonDecides { overridden } => made.evidence.overridden = Some(overridden),
        Judgement::SentBack { why } => {
            remember_broken(agent, &made.evidence, report);
            return refuse(run, agent, why);
        }
    }
    if let Some(why) = new_tests::not_run(run, &made.draft, report.as_ref())
        && !(change.insist && run.task.approval.is_by_person())
    {
        return refuse(run, agent, why);
    }
    let (mut not_taken, reason) = (0, change.reason.clone());
    let mut change = change.clone();
    loop {
        let (by, reviewed) = decide(run, agent, &change, &made).await;
        match reviewed {
            ReviewAnswer::Verdict(verdict) => {
                let known = (made.evidence.tests.clone(), report.clone());
                let outcome =
                    concluded(run, agent, &change, made.clone(), (by, verdict), known).await;
                let Outcome::Stopped { why } = outcome else {
                    return outcome;
                };
                not_taken += 1;
                if !may_ask_again(run, not_taken) {
                    return Outcome::Stopped { why };
                }
                run.proposals()
                    .unapplied
                    .remove(&apply::main_symbol(&made.draft));
                change.reason = format!("{reason}\nAccepted, but not applied: {why}");
            }
            ReviewAnswer::Edited(parts) => {
                let mut own = vec![(made.id, waiting(agent, &change, made.draft.clone()))];
                edited::replace(run, &mut own, parts).await;
                let Some((_, own)) = own.pop() else {
                    return taken_out(agent, made.id);
                };
                (made.draft, made.diff) = (own.draft, own.diff);
                (made.evidence, report) = check(run, &made.draft, made.id).await;
                made.evidence.overridden = objection::of_edited(run, &made.draft, &made.evidence);
                tell_checked(run, made.id, &made.evidence);
            }
        }
    }
}

/// Returns whether a person is asked again about a proposal that they accepted and the editor
/// refused. The person may be able to resolve the cause.
fn may_ask_again(run: &RunContext, not_taken: u32) -> bool {
    run.task.approval.is_by_person() && !run.cancel.is_cancelled() && not_taken < ACCEPTED_MOST
}

/// Carries out the verdict. `known` holds the test results for the workspace with the change.
pub(crate) async fn concluded(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
    made: Made,
    (by, verdict): (ActorId, Verdict),
    known: (TestEvidence, Option<TestReport>),
) -> Outcome {
    let Made {
        id,
        draft,
        diff,
        evidence,
    } = made;
    run.event(Event::ProposalReviewed {
        proposal: id,
        by,
        verdict: verdict.clone(),
    });
    match verdict {
        Verdict::Accept => {
            agent.rejected = None;
            let problems = evidence.counting().1.stopping();
            let problems: Vec<String> = problems.map(|one| one.message.clone()).collect();
            run.proposals().accepted_problems.extend(problems);
            run.proposals().accepted.push(Accepted {
                id,
                symbol: main_symbol(agent, &draft),
                reason: change.reason.clone(),
                diff,
            });
            finish(run, agent, id, draft, known).await
        }
        Verdict::Reject { reason } => {
            agent.rejected = Some(id);
            sent_back(format!("Rejected: {reason}"))
        }
        Verdict::Steer { text } => {
            agent.rejected = Some(id);
            sent_back(format!("Not yet accepted. Do it differently: {text}"))
        }
    }
}

/// Logs a draft and checks it. If the workspace changed during the checks, the proposal is drafted
/// and checked once more.
pub(crate) async fn checked(
    run: &Arc<RunContext>,
    agent: &AgentState,
    change: &Propose,
    draft: Draft,
    id: ProposalId,
) -> (Made, Option<TestReport>) {
    run.event(Event::ProposalMade {
        proposal: id,
        agent: agent.actor.clone(),
        symbols: draft.symbols.clone(),
        reason: change.reason.clone(),
        diff: own_diff(&draft, &before_text(run, &draft)),
        revises: agent.rejected,
    });
    let (evidence, mut report) = check(run, &draft, id).await;
    let mut made = Made {
        id,
        diff: own_diff(&draft, &before_text(run, &draft)),
        draft,
        evidence,
    };
    if is_stale(run, &made.draft) {
        again(run, agent, change, &mut made, &mut report).await;
    }
    tell_checked(run, id, &made.evidence);
    (made, report)
}

/// Returns whether a proposal was applied or reverted since the draft was made. Edits of the user
/// do not count, because the evidence mentions them.
fn is_stale(run: &RunContext, draft: &Draft) -> bool {
    run.world().epoch.changes != draft.epoch.changes
}

/// Drafts and checks a proposal again in the current workspace. If it cannot be drafted, it stays
/// unchanged and is refused when it is applied.
pub(crate) async fn again(
    run: &Arc<RunContext>,
    agent: &AgentState,
    change: &Propose,
    made: &mut Made,
    report: &mut Option<TestReport>,
) {
    let Ok(draft) = draft::make(run, agent, change).await else {
        return;
    };
    let stage = |evidence: &Evidence| {
        let (tests, diagnostics) = (&evidence.tests, &evidence.diagnostics);
        let required = &run.tests().required.ids;
        joint_check::stage(tests, diagnostics, required, run.task.approval)
    };
    let had_failed = stage(&made.evidence) == Stage::NeedsOthers;
    (made.evidence, *report) = check(run, &draft, made.id).await;
    if had_failed {
        let mut state = run.proposals();
        let needs = state.applied_since(&made.draft);
        state
            .dependencies
            .entry(made.id)
            .or_default()
            .needs
            .extend(needs);
    }
    made.diff = own_diff(&draft, &before_text(run, &draft));
    made.draft = draft;
}

fn refused(run: &RunContext, agent: &mut AgentState, refusal: Refusal) -> Outcome {
    match refusal {
        Refusal::EditorGone { why } => {
            let told = ReturnReason::for_both(why.as_str());
            let _ = refuse(run, agent, told);
            Outcome::Stopped { why }
        }
        Refusal::Unusable { why } => refuse(run, agent, why),
        Refusal::Moved { why, symbol, text } => {
            agent.told.show(symbol, text);
            refuse(run, agent, why)
        }
    }
}

pub(crate) async fn finish(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    id: ProposalId,
    draft: Draft,
    checked: (TestEvidence, Option<TestReport>),
) -> Outcome {
    let gone = follow_up::before(run, &draft);
    let landed = match apply::apply(run, id, &draft, checked).await {
        Ok(text) => Landed::Applied {
            draft: Box::new(draft.clone()),
            text,
            gone,
        },
        Err(failure @ Failure::Conflict { .. }) => Landed::Failed(failure),
        Err(Failure::Editor { why }) => return Outcome::Stopped { why },
    };
    ended(run, agent, id, draft, landed)
}
