//! Carries a proposal from an agent's action to an applied change: draft, checks, review, apply,
//! follow-up.

use std::sync::Arc;

use crate::check::new_tests;
use crate::contract::{follow_up, left_behind};
use crate::event::actor::ActorId;
use crate::event::dependencies::Dependencies;
use crate::event::events::Event;
use crate::evidence::failure::Failure;
use crate::evidence::proposal::Evidence;
use crate::evidence::return_reason::ReturnReason;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::approval::{accepted_before, decide, may_ask_again, unasked_intent};
use crate::proposal::awaited;
use crate::proposal::by_rule;
use crate::proposal::candidates;
use crate::proposal::draft;
use crate::proposal::ended::{ended, lost, taken_out};
use crate::proposal::joint_check::{self, JointCheck, WaitingEntry};
use crate::proposal::made::{self, before_text, check, own_diff, tell_checked};
use crate::proposal::objection::{self, StandaloneVerdict};
use crate::proposal::others_files::{self, FilesOnDisk};
use crate::proposal::outcome::{Outcome, are_kept, refuse, sent_back};
use crate::proposal::refusal::Refusal;
use crate::proposal::{apply, edited, parts, permission, set};
use crate::protocol::Propose;
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::proposal::{Proposal, Stage};
use crate::state::run_context::RunContext;
use crate::state::sets::{Decision, Landed};
use starling_core::{ReviewAnswer, TestReport, Verdict};

/// Drafts, checks, reviews and applies one proposal, and starts its follow-ups.
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
    let (change, draft) = candidates::choose(run, agent, change, draft).await;
    let mut proposal = made::make(run, agent, change, draft);
    let id = proposal.id;
    let mut place = WaitingEntry::take(run, id);
    run.draft_arrived(&agent.actor);
    if by_rule::is_part(run) {
        return by_rule::propose(run, agent, proposal, place).await;
    }
    let mut report = checked(run, agent, &mut proposal).await;
    let (tests, diagnostics) = (&proposal.evidence.tests, &proposal.evidence.diagnostics);
    let approval = run.task.approval;
    let stage = joint_check::stage(tests, diagnostics, &run.tests().required.ids, approval);
    if stage == Stage::NeedsOthers {
        // Perhaps the proposal can be applied only together with changes of its callers, so the
        // owners of the callers are notified now.
        follow_up::before_it_is_applied(run, &agent.actor, agent.wave, &proposal.draft);
        left_behind::tell(run, &agent.actor, &proposal);
    }
    place.checked(&proposal, stage);
    if stage == Stage::NeedsOthers
        && let Some(JointCheck { together, verdict }) =
            joint_check::join(run, id, set::decide_on_set).await
    {
        let tests = together.tests.clone();
        proposal.evidence.together = Some(together);
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
                return ended(run, agent, &proposal, landed);
            }
            Some(Decision { by, verdict, .. }) => {
                let verdict = (by, verdict);
                return concluded(run, agent, proposal, verdict, (tests, None)).await;
            }
            None => {}
        }
        tell_checked(run, id, &proposal.evidence);
    }
    if awaited::give_up(run, &mut proposal.evidence.diagnostics) {
        tell_checked(run, id, &proposal.evidence);
    }
    // The proposal is checked again below if the workspace changed while it waited for other
    // proposals.
    place.stand_alone();
    if is_stale(run, &proposal.draft) {
        let together = proposal.evidence.together.take();
        again(run, agent, &mut proposal, &mut report).await;
        let (tests, diagnostics) = (&proposal.evidence.tests, &proposal.evidence.diagnostics);
        if joint_check::stage(tests, diagnostics, &run.tests().required.ids, approval)
            == Stage::NeedsOthers
        {
            proposal.evidence.together = together;
        }
        tell_checked(run, id, &proposal.evidence);
    }
    if are_kept(agent) {
        return with_parts(run, agent, (proposal, report), stage).await;
    }
    alone(run, agent, proposal, report).await
}

/// Decides on a proposal of the single agent. If the proposal passes together with its earlier
/// parts, decides on all of them. A part that fails alone is kept for a check with later parts.
async fn with_parts(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    (proposal, report): (Proposal, Option<TestReport>),
    stage: Stage,
) -> Outcome {
    run.proposals().replace_kept(&agent.actor, &proposal.draft);
    let proposal = match parts::join(run, agent, proposal).await {
        Ok(outcome) => return outcome,
        Err(proposal) => *proposal,
    };
    if stage == Stage::NeedsOthers
        && let StandaloneVerdict::SentBack { why } = objection::judge(run, agent, &proposal)
    {
        return parts::keep(run, agent, &proposal, &why);
    }
    alone(run, agent, proposal, report).await
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
    mut proposal: Proposal,
    mut report: Option<TestReport>,
) -> Outcome {
    match objection::judge(run, agent, &proposal) {
        StandaloneVerdict::Passes => {}
        StandaloneVerdict::PersonDecides { overridden } => {
            proposal.evidence.overridden = Some(overridden)
        }
        StandaloneVerdict::SentBack { why } => {
            remember_broken(agent, &proposal.evidence, report);
            return refuse(run, agent, why);
        }
    }
    if let Some(why) = new_tests::not_run(run, &proposal.draft, report.as_ref())
        && !(proposal.change.insist && run.task.approval.is_by_person())
    {
        return refuse(run, agent, why);
    }
    let (mut not_taken, mut rechecks) = (0, 0);
    let reason = proposal.change.reason.clone();
    let mut checked_in = proposal.draft.epoch.changes;
    loop {
        let (by, reviewed, shown) = decide(run, agent, &proposal, checked_in).await;
        checked_in = shown.checked_in;
        proposal.evidence = shown.lead.1;
        if reviewed == Verdict::Accept.into() {
            match others_files::compare(run, proposal.id, &mut rechecks).await {
                FilesOnDisk::AsChecked => {}
                FilesOnDisk::Changed => {
                    again(run, agent, &mut proposal, &mut report).await;
                    tell_checked(run, proposal.id, &proposal.evidence);
                    checked_in = proposal.draft.epoch.changes;
                    if let Some(why) = no_longer_passes(run, agent, &proposal, report.as_ref()) {
                        return refuse(run, agent, why);
                    }
                    continue;
                }
                FilesOnDisk::KeepChanging => {
                    proposal.evidence.tests = others_files::unknown_tests();
                    report = None;
                    tell_checked(run, proposal.id, &proposal.evidence);
                    if let Some(why) = no_longer_passes(run, agent, &proposal, None) {
                        return refuse(run, agent, why);
                    }
                }
            }
        }
        match reviewed {
            ReviewAnswer::Verdict(verdict) => {
                let evidence = &proposal.evidence;
                let known = (evidence.unless_outdated(&evidence.tests), report.clone());
                let outcome = concluded(run, agent, proposal.clone(), (by, verdict), known).await;
                let Outcome::Stopped { why } = outcome else {
                    return outcome;
                };
                not_taken += 1;
                if !may_ask_again(run, not_taken) {
                    return Outcome::Stopped { why };
                }
                permission::note_new_reasons(run, &mut proposal);
                let stage = Stage::Passes;
                run.proposals().ask_again(&proposal, stage).ok();
                proposal.change.reason = format!("{reason}\n{}", accepted_before(&why));
            }
            ReviewAnswer::Edited(parts) => {
                let mut own = vec![proposal.clone()];
                edited::replace(run, &mut own, parts).await;
                let Some(edited) = own.pop() else {
                    return taken_out(agent, proposal.id);
                };
                proposal = edited;
                checked_in = proposal.draft.epoch.changes;
                (proposal.evidence, report) = check(run, &proposal.draft, proposal.id).await;
                proposal.evidence.overridden =
                    objection::of_edited(run, &proposal.draft, &proposal.evidence);
                tell_checked(run, proposal.id, &proposal.evidence);
            }
        }
    }
}

/// Returns why a proposal that was checked again after it was accepted without a person is refused.
fn no_longer_passes(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    proposal: &Proposal,
    report: Option<&TestReport>,
) -> Option<ReturnReason> {
    match objection::judge(run, agent, proposal) {
        StandaloneVerdict::SentBack { why } => {
            remember_broken(agent, &proposal.evidence, report.cloned());
            Some(why)
        }
        StandaloneVerdict::Passes | StandaloneVerdict::PersonDecides { .. } => None,
    }
}

/// Carries out the approver's verdict on a proposal. `known` holds the test results for the
/// workspace with the change.
pub(crate) async fn concluded(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    proposal: Proposal,
    (by, verdict): (ActorId, Verdict),
    known: (TestEvidence, Option<TestReport>),
) -> Outcome {
    let id = proposal.id;
    run.event(Event::ProposalReviewed {
        proposal: id,
        by,
        verdict: verdict.clone(),
    });
    match verdict {
        Verdict::Accept => {
            agent.rejected = None;
            let problems = proposal.evidence.counting().1.stopping();
            let problems: Vec<String> = problems.map(|one| one.message.clone()).collect();
            let accepted = {
                let mut book = run.proposals();
                book.accepted_problems.extend(problems);
                book.accept(&proposal)
            };
            match accepted {
                Ok(()) => finish(run, agent, &proposal, known).await,
                Err(wrong) => Outcome::Stopped {
                    why: wrong.to_string(),
                },
            }
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

/// Logs a proposal and checks it. If the workspace changed during the checks, the proposal is
/// drafted and checked once more.
pub(crate) async fn checked(
    run: &Arc<RunContext>,
    agent: &AgentState,
    proposal: &mut Proposal,
) -> Option<TestReport> {
    made::announce(run, proposal);
    let (evidence, mut report) = check(run, &proposal.draft, proposal.id).await;
    proposal.evidence = evidence;
    proposal.diff = own_diff(&proposal.draft, &before_text(run, &proposal.draft));
    if is_stale(run, &proposal.draft) {
        again(run, agent, proposal, &mut report).await;
    }
    tell_checked(run, proposal.id, &proposal.evidence);
    report
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
    proposal: &mut Proposal,
    report: &mut Option<TestReport>,
) {
    let Ok(draft) = draft::make(run, agent, &proposal.change).await else {
        return;
    };
    let stage = |evidence: &Evidence| {
        let (tests, diagnostics) = (&evidence.tests, &evidence.diagnostics);
        let required = &run.tests().required.ids;
        joint_check::stage(tests, diagnostics, required, run.task.approval)
    };
    let had_failed = stage(&proposal.evidence) == Stage::NeedsOthers;
    (proposal.evidence, *report) = check(run, &draft, proposal.id).await;
    if had_failed {
        let mut state = run.proposals();
        let needs = Dependencies {
            needs: state.applied_since(&proposal.draft),
            ..Dependencies::default()
        };
        state.depend(proposal.id, needs);
    }
    proposal.diff = own_diff(&draft, &before_text(run, &draft));
    proposal.draft = draft;
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

/// Applies an accepted proposal.
async fn finish(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    proposal: &Proposal,
    checked: (TestEvidence, Option<TestReport>),
) -> Outcome {
    let gone = follow_up::before(run, &proposal.draft);
    let landed = match apply::apply(run, proposal, checked).await {
        Ok(text) => Landed::Applied { text, gone },
        Err(failure @ Failure::Conflict { .. }) => Landed::Failed(failure),
        Err(Failure::Editor { why }) => return Outcome::Stopped { why },
    };
    ended(run, agent, proposal, landed)
}
