//! Takes a proposal from an agent's action to an applied change: draft, checks, review, apply,
//! follow-up.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::turns::AgentState;
use crate::check::checks::{self, Draft};
use crate::check::diagnose;
use crate::check::lsp_hints;
use crate::check::names_check;
use crate::check::new_tests;
use crate::contract::follow_up;
use crate::event::events::{ActorId, Event, TestPhase};
use crate::evidence::proposal::{Evidence, FileChange, ProposalId, TestEvidence};
use crate::evidence::return_reason::ReturnReason;
use crate::proposal::apply;
use crate::proposal::candidates::{self, Chosen};
use crate::proposal::draft::{self, Refusal};
use crate::proposal::edited;
use crate::proposal::joint_check::{self, Company, Decision, Place, Stage, Waiting};
use crate::proposal::landing::Landed;
use crate::proposal::objection::{self, Judgement};
use crate::proposal::parts;
use crate::proposal::review;
use crate::proposal::send::Failure;
use crate::proposal::set;
use crate::protocol::{Intent, Propose};
use crate::state::run_context::{Accepted, RunContext};
use starling_core::{Approval, AskIntent, IntentView, ProposalView, Reviewed, TestReport, Verdict};
use starling_syntax::SymbolPath;
use starling_text::{ChangeSet, unified_diff, visible};

/// Deadline for a person's decision.
const PERSON_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of times that a person may accept a proposal that the editor refuses.
const ACCEPTED_MOST: u32 = 5;

/// Outcome of a proposal, with a message for the agent.
pub(crate) enum Outcome {
    Applied {
        text: String,
    },
    /// The agent has to fix the proposal.
    SentBack {
        why: ReturnReason,
    },
    /// The proposal fails alone. It is checked again together with the agent's next proposal.
    Kept {
        why: ReturnReason,
    },
    /// The agent cannot continue its work.
    Stopped {
        why: String,
    },
}

pub(crate) fn sent_back(why: impl Into<String>) -> Outcome {
    let why = ReturnReason::for_both(why);
    Outcome::SentBack { why }
}

/// Sends a proposal back to the agent and logs the refusal.
fn refuse(run: &RunContext, agent: &AgentState, why: ReturnReason) -> Outcome {
    tell_refused(run, agent, &why);
    Outcome::SentBack { why }
}

pub(crate) fn tell_refused(run: &RunContext, agent: &AgentState, why: &ReturnReason) {
    run.event(Event::ProposalRefused {
        agent: agent.actor.clone(),
        why: why.to_agent().to_owned(),
        shown: Some(why.to_user().to_owned()),
    });
}

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
    let (mut made, mut report) = checked(run, agent, change, draft.clone(), id).await;
    let (tests, diagnostics) = (&made.evidence.tests, &made.evidence.diagnostics);
    let approval = run.task.approval;
    let stage = joint_check::stage(tests, diagnostics, &run.state().required, approval);
    if stage == Stage::NeedsOthers {
        // If the proposal can be applied only together with its callers, their owners are notified
        // now.
        follow_up::before_it_is_applied(run, &agent.actor, agent.wave, &made.draft);
    }
    place.checked(&made.draft, &made.diff, &made.evidence, stage);
    if stage == Stage::NeedsOthers
        && let Some(Company { together, verdict }) =
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
    // Nobody is left that could define what the change uses.
    names_check::without_awaited(run, &mut made.evidence.diagnostics);
    // The workspace may have changed while the proposal waited for others.
    place.stand_alone();
    if is_stale(run, &made.draft) {
        again(run, agent, change, &mut made, &mut report).await;
        tell_checked(run, id, &made.evidence);
    }
    if parts::are_kept(agent) {
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

/// Creates the waiting entry of a proposal before its checks.
pub(crate) fn waiting(agent: &AgentState, change: &Propose, draft: Draft) -> Waiting {
    Waiting {
        symbol: main_symbol(agent, &draft),
        reason: change.reason.clone(),
        diff: String::new(),
        draft,
        evidence: None,
        stage: Stage::Checking,
    }
}

/// A proposal that has been checked.
#[derive(Clone)]
pub(crate) struct Made {
    pub id: ProposalId,
    pub draft: Draft,
    pub diff: String,
    pub evidence: Evidence,
}

/// Returns the evidence for a draft that was checked only together with others.
pub(crate) fn unchecked(draft: &Draft) -> Evidence {
    Evidence {
        tests: TestEvidence::Unknown {
            reason: "it was checked together with the others".to_owned(),
        },
        diagnostics: Default::default(),
        imports: draft.imports.clone(),
        losses: draft.losses.clone(),
        contract: draft.contract.clone(),
        callers: Vec::new(),
        callers_in_set: Vec::new(),
        callers_kept: Vec::new(),
        test_callers: 0,
        needs_person: checks::needs_person(draft),
        together: None,
        texts: Default::default(),
        overridden: None,
        millis: 0,
    }
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

async fn alone(
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
            Reviewed::Verdict(verdict) => {
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
                run.state()
                    .unapplied
                    .remove(&apply::main_symbol(&made.draft));
                change.reason = format!("{reason}\nAccepted, but not applied: {why}");
            }
            Reviewed::Edited(parts) => {
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

/// Records that the person dropped a proposal, which is then over.
pub(crate) fn taken_out(agent: &mut AgentState, id: ProposalId) -> Outcome {
    agent.rejected = Some(id);
    sent_back(format!(
        "Proposal {id} was not applied: {}. Do not propose the same again.",
        edited::TAKEN_OUT
    ))
}

/// Carries out the verdict. `known` holds the test results for the workspace with the change.
async fn concluded(
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
            run.state().accepted_problems.extend(problems);
            run.state().accepted.push(Accepted {
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

pub(crate) fn tell_checked(run: &RunContext, id: ProposalId, evidence: &Evidence) {
    run.event(Event::ProposalChecked {
        proposal: id,
        evidence: evidence.clone(),
    });
}

/// Logs a draft and checks it. If the workspace changed during the checks, the proposal is drafted
/// and checked once more.
async fn checked(
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
    run.state().epoch.changes != draft.epoch.changes
}

/// Drafts and checks a proposal again in the current workspace. If it cannot be drafted, it stays
/// unchanged and is refused when it is applied.
async fn again(
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
        let required = &run.state().required;
        joint_check::stage(tests, diagnostics, required, run.task.approval)
    };
    let had_failed = stage(&made.evidence) == Stage::NeedsOthers;
    (made.evidence, *report) = check(run, &draft, made.id).await;
    if had_failed {
        let mut state = run.state();
        let needs = apply::applied_since(&state, &made.draft);
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

pub(crate) async fn check(
    run: &Arc<RunContext>,
    draft: &Draft,
    id: ProposalId,
) -> (Evidence, Option<TestReport>) {
    lsp_hints::for_follow_ups(run, &draft.breaking).await;
    let owners = follow_up::owners_of_broken(run, draft);
    let callers = owners.into_iter().take(follow_up::OWNERS_MOST).collect();
    let (mut evidence, report) = checks::check(run, draft, callers).await;
    evidence.test_callers = follow_up::broken_tests(run, draft);
    evidence.callers_kept = follow_up::owners_that_keep(run, draft, &evidence.callers);
    if let Some(report) = report.clone() {
        run.event(Event::TestsRun {
            phase: TestPhase::Proposal,
            proposal: Some(id),
            report,
        });
    }
    (evidence, report)
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

/// Returns the current text of the draft's file, for the diff.
pub(crate) fn before_text(run: &RunContext, draft: &Draft) -> Arc<str> {
    run.state()
        .world
        .read(&draft.file)
        .unwrap_or_else(|_| Arc::clone(&draft.base))
}

/// Returns the diff of the draft's own change against the text `now`. The diff does not contain
/// changes that others made since the draft.
pub(crate) fn own_diff(draft: &Draft, now: &Arc<str>) -> String {
    match draft.over(now) {
        Some(after) => visible(&unified_diff(draft.file.as_str(), now, &after)),
        // The draft will be refused when it is applied. Until then its original diff is shown.
        None => visible(&unified_diff(draft.file.as_str(), &draft.base, &draft.text)),
    }
}

/// Asks the approver about a proposal.
async fn decide(
    run: &Arc<RunContext>,
    agent: &AgentState,
    change: &Propose,
    made: &Made,
) -> (ActorId, Reviewed) {
    let view = ProposalView {
        id: made.id.0,
        symbol: main_symbol(agent, &made.draft),
        symbols: made.draft.symbols.clone(),
        reason: change.reason.clone(),
        diff: made.diff.clone(),
        evidence: made.evidence.to_string(),
    };
    let own = part(made.id, &view.symbol, &change.reason, &made.draft);
    ask_about(run, &agent.actor, view, &made.evidence, vec![own]).await
}

pub(crate) fn part(id: ProposalId, symbol: &SymbolPath, reason: &str, draft: &Draft) -> FileChange {
    FileChange {
        proposal: id,
        symbol: symbol.clone(),
        symbols: draft.symbols.clone(),
        reason: reason.to_owned(),
        file: draft.file.clone(),
        base: Arc::clone(&draft.base),
        changes: ChangeSet::between(&draft.base, &draft.text),
    }
}

/// Asks the approver about a proposal and the other parts of its set. The run's clock stops while a
/// person is asked.
pub(crate) async fn ask_about(
    run: &Arc<RunContext>,
    agent: &ActorId,
    view: ProposalView,
    evidence: &Evidence,
    parts: Vec<FileChange>,
) -> (ActorId, Reviewed) {
    match run.task.approval {
        Approval::Auto => (ActorId::Starling, Verdict::Accept.into()),
        Approval::Proxy => (ActorId::Proxy, review::by_proxy(run, &view).await.into()),
        Approval::Ask => {
            let shown: Vec<ProposalId> = parts.iter().map(|part| part.proposal).collect();
            run.event(Event::ReviewAsked {
                proposal: ProposalId(view.id),
                agent: agent.clone(),
                symbol: view.symbol.clone(),
                diff: view.diff.clone(),
                reason: view.reason.clone(),
                evidence: evidence.clone(),
                with: parts
                    .iter()
                    .map(|part| part.proposal)
                    .filter(|part| part.0 != view.id)
                    .collect(),
                parts,
            });
            joint_check::are_under_review(run, &shown);
            let _clock_stands = run.budget.wait_for_person();
            let decision = in_time(run.services.approver.proposal(view));
            with_needed(run, evidence.needs(), decision).await
        }
    }
}

/// Waits for a person's decision on a proposal that can be applied only together with others. An
/// accepted proposal waits until the others are applied. If one of them is gone, the proposal is
/// rejected with the reason.
async fn with_needed(
    run: &RunContext,
    needs: &[ProposalId],
    decision: impl Future<Output = Reviewed>,
) -> (ActorId, Reviewed) {
    if needs.is_empty() {
        return (ActorId::User, decision.await);
    }
    let gone = tokio::select! {
        biased;
        gone = joint_check::one_is_gone(run, needs) => gone,
        reviewed = decision => match reviewed {
            Reviewed::Verdict(Verdict::Accept) => match joint_check::needed(run, needs).await {
                joint_check::Needed::Applied => return (ActorId::User, reviewed),
                joint_check::Needed::Gone(gone) => gone,
            },
            Reviewed::Verdict(Verdict::Reject { .. } | Verdict::Steer { .. })
            | Reviewed::Edited(_) => return (ActorId::User, reviewed),
        }
    };
    let reason = format!("it passes only with {gone}, {}", why_gone(run, gone));
    (ActorId::Starling, Verdict::Reject { reason }.into())
}

/// Describes how a proposal ended without being applied, as text that follows its number.
fn why_gone(run: &RunContext, gone: ProposalId) -> String {
    let events = run.log.events();
    let told = events.iter().rev().find_map(|event| match event {
        Event::ProposalReviewed {
            proposal,
            verdict: Verdict::Reject { reason },
            ..
        } if *proposal == gone => Some(format!("which was rejected: {reason}")),
        Event::ProposalReviewed {
            proposal,
            verdict: Verdict::Steer { text },
            ..
        } if *proposal == gone => Some(format!("which is to be done differently: {text}")),
        Event::ProposalUndone { proposal } if *proposal == gone => {
            Some("which was taken back".to_owned())
        }
        _ => None,
    });
    told.unwrap_or_else(|| "which is not applied".to_owned())
}

/// Waits for a person's decision, for at most [`PERSON_DEADLINE`].
async fn in_time<T: From<Verdict>>(decision: impl Future<Output = T>) -> T {
    let late = || Verdict::Reject {
        reason: "nobody decided within a day".to_owned(),
    };
    let decision = tokio::time::timeout(PERSON_DEADLINE, decision).await;
    decision.unwrap_or_else(|_| late().into())
}

fn main_symbol(agent: &AgentState, draft: &Draft) -> SymbolPath {
    match &agent.actor {
        ActorId::Agent(symbol) => symbol.clone(),
        ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling | ActorId::Solo => {
            draft
                .symbols
                .first()
                .cloned()
                .unwrap_or_else(|| SymbolPath::module(draft.file.clone()))
        }
    }
}

async fn finish(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    id: ProposalId,
    draft: Draft,
    checked: (TestEvidence, Option<TestReport>),
) -> Outcome {
    let gone = follow_up::before(run, &draft);
    follow_up::note_early_callers(run, id, &draft);
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

/// Returns the failure of an accepted part whose outcome is unknown.
pub(crate) fn lost() -> Landed {
    Landed::Failed(Failure::Editor {
        why: "internal error while applying; see the log".to_owned(),
    })
}

/// Returns the outcome for the owner of an accepted proposal, and starts the follow-ups of an
/// applied one.
pub(crate) fn ended(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    id: ProposalId,
    draft: Draft,
    landed: Landed,
) -> Outcome {
    match landed {
        Landed::Applied { draft, text, gone } => {
            see_own_change(agent, &draft, text);
            diagnose::prepare_others(run, &agent.actor);
            follow_up::follow_up(run, &agent.actor, agent.wave, &draft, &gone);
            let text = match draft.edited {
                false => format!("Proposal {id} was accepted and applied."),
                true => format!(
                    "Proposal {id} was accepted and applied as the user edited it. What is there now is \
                     meant:\n{}",
                    visible(&unified_diff(draft.file.as_str(), &draft.base, &draft.text))
                ),
            };
            Outcome::Applied { text }
        }
        Landed::TakenOut => taken_out(agent, id),
        Landed::Failed(Failure::Conflict { why, .. }) => {
            let now = main_symbol(agent, &draft);
            let lookup = run.lookup();
            let source = lookup.read(&[now.to_string()]);
            if let Ok(tree) = lookup.tree(&now.file) {
                agent.told.show(now, Arc::clone(tree.text()));
            }
            let by = lookup
                .tree(&draft.file)
                .ok()
                .and_then(|tree| apply::last_writer(&run.state(), &draft.file, tree.text()));
            let who = draft::in_same_place(by, &why);
            sent_back(format!(
                "{who} It is now:\n{source}\nPropose your change on top of it."
            ))
        }
        Landed::Failed(Failure::Editor { why }) => sent_back(format!(
            "It was accepted, but could not be applied: {why}. So nothing of its set was. Propose it again, or find another way."
        )),
        Landed::NotWithout { why } => sent_back(format!(
            "It was accepted as part of a set, and is not applied without {why}. Propose it again, or find another way."
        )),
        Landed::Stays { text, why } => {
            see_own_change(agent, &draft, text);
            sent_back(format!(
                "It was accepted as part of a set and is applied, but is of no use without {why}. Look at it again."
            ))
        }
    }
}

/// Records that the agent knows its own change. Edits that the user made in the meantime are not
/// recorded as seen, so that a later proposal does not overwrite them.
fn see_own_change(agent: &mut AgentState, draft: &Draft, text: Arc<str>) {
    let seen: Vec<(SymbolPath, Arc<str>)> = draft
        .symbols
        .iter()
        .filter_map(|symbol| {
            let seen = match agent.seen(symbol) {
                // The person's version may conflict with the text that the agent saw.
                Some(seen) => draft
                    .over(&seen)
                    .or(draft.edited.then(|| Arc::clone(&text)))?,
                None => Arc::clone(&text),
            };
            Some((symbol.clone(), seen))
        })
        .collect();
    agent.views.follow(draft);
    agent.told.follow(draft);
    for (symbol, seen) in seen {
        agent.views.show(symbol, seen);
    }
}

/// Handles an intent. The approver may veto or steer the intent before code is written.
pub(crate) async fn intent(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    intent: &Intent,
) -> String {
    run.set_intent(&agent.actor, &intent.intent);
    run.event(Event::IntentStated {
        agent: agent.actor.clone(),
        intent: intent.intent.clone(),
        reason: intent.reason.clone(),
    });
    let symbol = match &agent.actor {
        ActorId::Agent(symbol) => symbol.clone(),
        ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling | ActorId::Solo => {
            return "Noted. Go on.".to_owned();
        }
    };
    let view = IntentView {
        symbol,
        intent: intent.intent.clone(),
        reason: intent.reason.clone(),
    };
    match ask_intent(run, agent, view).await {
        None => "Noted. Go on.".to_owned(),
        Some(Verdict::Accept) => "Approved. Go on.".to_owned(),
        Some(Verdict::Reject { reason }) => {
            format!("Vetoed: {reason}. Find another way, or finish.")
        }
        Some(Verdict::Steer { text }) => format!("Do it differently: {text}"),
    }
}

/// With `ask_intent = "always"`, asks about the reason of a proposal whose intent was not approved,
/// before it is checked. Returns why the proposal must stop; `None` if it may continue.
async fn unasked_intent(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
    draft: &Draft,
) -> Option<String> {
    if run.task.ask_intent != AskIntent::Always || agent.intent_approved {
        return None;
    }
    let symbol = main_symbol(agent, draft);
    let view = IntentView {
        symbol,
        intent: change.reason.clone(),
        reason: String::new(),
    };
    match ask_intent(run, agent, view).await {
        None | Some(Verdict::Accept) => None,
        Some(Verdict::Reject { reason }) => {
            Some(format!("Vetoed: {reason}. Find another way, or finish."))
        }
        Some(Verdict::Steer { text }) => Some(format!("Do it differently: {text}")),
    }
}

/// Returns the approver's verdict on an intent; `None` if no approver is asked.
async fn ask_intent(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    view: IntentView,
) -> Option<Verdict> {
    let (by, verdict) = match (run.task.ask_intent, run.task.approval) {
        (AskIntent::Never, _) | (_, Approval::Auto) => return None,
        (AskIntent::Contract | AskIntent::Always, Approval::Proxy) => {
            (ActorId::Proxy, review::intent_by_proxy(run, &view).await)
        }
        (AskIntent::Contract | AskIntent::Always, Approval::Ask) => {
            let _clock_stands = run.budget.wait_for_person();
            (
                ActorId::User,
                in_time(run.services.approver.intent(view)).await,
            )
        }
    };
    agent.intent_approved = verdict == Verdict::Accept;
    run.event(Event::IntentReviewed {
        agent: agent.actor.clone(),
        by,
        verdict: verdict.clone(),
    });
    Some(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_syntax::FilePath;

    fn draft(base: &str, text: &str) -> Draft {
        Draft {
            file: FilePath::new("a.py"),
            base: base.into(),
            text: text.into(),
            symbols: Vec::new(),
            losses: Vec::new(),
            contract: Vec::new(),
            breaking: Vec::new(),
            epoch: Default::default(),
            imports: Default::default(),
            needs_person: Vec::new(),
            edited: false,
        }
    }

    #[test]
    fn a_diff_shows_the_own_change_over_what_others_brought() {
        let draft = draft("a = 1\nx\nx\nx\nx\nb = 1\n", "a = 1\nx\nx\nx\nx\nb = 2\n");
        let now: Arc<str> = "a = 3\nx\nx\nx\nx\nb = 1\n".into();
        let diff = own_diff(&draft, &now);
        assert!(diff.contains("-b = 1\n+b = 2\n"), "{diff}");
        assert!(!diff.contains("a = "), "{diff}");
        // If both changed the same line, even in different words, the original diff is shown.
        let same_line = own_diff(&draft, &"a = 1\nx\nx\nx\nx\nc = 1\n".into());
        assert!(same_line.contains("-b = 1\n+b = 2\n"), "{same_line}");
        let conflict = own_diff(&draft, &"a = 1\nx\nx\nx\nx\nb = 9\n".into());
        assert!(conflict.contains("-b = 1\n+b = 2\n"), "{conflict}");
    }
}
