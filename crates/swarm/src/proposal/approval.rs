//! Asks the approver (a person or a model) about proposals and intents (planned changes).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::evidence::file_change::FileChange;
use crate::evidence::ids::ProposalId;
use crate::proposal::renew::{self, Reviewed, ShownEvidence};
use crate::proposal::{joint_check, review};
use crate::protocol::{Intent, Propose};
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::proposal::{Proposal, owner};
use crate::state::run_context::RunContext;
use starling_core::{Approval, AskIntent, IntentView, ProposalView, ReviewAnswer, Verdict};

/// Maximum number of times that a person may accept a proposal that the editor refuses.
const ACCEPTED_MOST: u32 = 5;

/// Deadline for a person's decision.
pub(crate) const PERSON_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// Asks the approver about a proposal that was checked on its own, when the run had applied or
/// reverted `checked_in` changes. Returns the answer with the evidence that was shown last.
pub(crate) async fn decide(
    run: &Arc<RunContext>,
    agent: &AgentState,
    proposal: &Proposal,
    checked_in: u64,
) -> (ActorId, ReviewAnswer, ShownEvidence) {
    let view = ProposalView {
        id: proposal.id.0,
        symbol: proposal.owner(),
        symbols: proposal.draft.symbols.clone(),
        reason: proposal.change.reason.clone(),
        diff: proposal.diff.clone(),
        evidence: proposal.evidence.to_string(),
        version: None,
    };
    let own = vec![proposal.file_change()];
    let shown = ShownEvidence {
        lead: (proposal.id, proposal.evidence.clone()),
        others: Vec::new(),
        checked_in,
    };
    let reviewed = Reviewed::One { agent, proposal };
    ask_about(run, &proposal.agent, view, shown, own, reviewed).await
}

/// Asks the approver about a proposal and the other parts of its set. While a person is asked, the
/// run's time limit does not count, and the evidence is renewed whenever the run changes the text.
pub(crate) async fn ask_about(
    run: &Arc<RunContext>,
    agent: &ActorId,
    view: ProposalView,
    shown: ShownEvidence,
    parts: Vec<FileChange>,
    reviewed: Reviewed<'_>,
) -> (ActorId, ReviewAnswer, ShownEvidence) {
    match run.task.approval {
        Approval::Auto => (ActorId::Starling, Verdict::Accept.into(), shown),
        Approval::Proxy => {
            let verdict = review::by_proxy(run, &view).await;
            (ActorId::Proxy, verdict.into(), shown)
        }
        Approval::Ask => {
            let asked: Vec<ProposalId> = parts.iter().map(|part| part.proposal).collect();
            let version = run.log.numbered(Event::ReviewAsked {
                proposal: ProposalId(view.id),
                agent: agent.clone(),
                symbol: view.symbol.clone(),
                diff: view.diff.clone(),
                reason: view.reason.clone(),
                evidence: shown.of_whole_set(),
                with: parts
                    .iter()
                    .map(|part| part.proposal)
                    .filter(|part| part.0 != view.id)
                    .collect(),
                parts,
            });
            joint_check::are_under_review(run, &asked);
            let _clock_stands = run.budget.wait_for_person();
            let view = ProposalView {
                version: Some(version),
                ..view
            };
            let decision = in_time(run.services.approver.proposal(view));
            let needs = shown.lead.1.needs().to_vec();
            let shown = Mutex::new(shown);
            let (by, answer) = tokio::select! {
                biased;
                answered = with_needed(run, &needs, decision) => answered,
                never = renew::keep_current(run, &reviewed, &shown) => match never {},
            };
            let shown = shown.into_inner().unwrap_or_else(PoisonError::into_inner);
            (by, answer, shown)
        }
    }
}

/// Waits for a person's decision on a proposal that can be applied only together with others. If
/// the person accepts, waits until the other proposals are applied. If one of them can no longer be
/// applied, rejects the proposal with the reason.
pub(crate) async fn with_needed(
    run: &RunContext,
    needs: &[ProposalId],
    decision: impl Future<Output = ReviewAnswer>,
) -> (ActorId, ReviewAnswer) {
    if needs.is_empty() {
        return (ActorId::User, decision.await);
    }
    let gone = tokio::select! {
        biased;
        gone = joint_check::one_is_gone(run, needs) => gone,
        reviewed = decision => match reviewed {
            ReviewAnswer::Verdict(Verdict::Accept) => match joint_check::needed(run, needs).await {
                joint_check::NeededOutcome::Applied => return (ActorId::User, reviewed),
                joint_check::NeededOutcome::Gone(gone) => gone,
            },
            ReviewAnswer::Verdict(Verdict::Reject { .. } | Verdict::Steer { .. })
            | ReviewAnswer::Edited(_) => return (ActorId::User, reviewed),
        }
    };
    let reason = format!("it passes only with {gone}, {}", why_gone(run, gone));
    (ActorId::Starling, Verdict::Reject { reason }.into())
}

/// Describes how a proposal ended without being applied. The description follows the number of the
/// proposal in a sentence.
pub(crate) fn why_gone(run: &RunContext, gone: ProposalId) -> String {
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
        Event::ProposalUndone { proposal, .. } if *proposal == gone => {
            Some("which was taken back".to_owned())
        }
        _ => None,
    });
    told.unwrap_or_else(|| "which is not applied".to_owned())
}

/// Tells a person who is asked again why the proposal that they accepted was not applied.
pub(crate) fn accepted_before(why: &str) -> String {
    format!("Accepted, but not applied: {why}")
}

/// Returns whether a person is asked again about a proposal that they accepted and the editor
/// refused. The person may be able to resolve the cause.
pub(crate) fn may_ask_again(run: &RunContext, not_taken: u32) -> bool {
    run.task.approval.is_by_person() && !run.cancel.is_cancelled() && not_taken < ACCEPTED_MOST
}

/// Waits for a person's decision, for at most [`PERSON_DEADLINE`].
pub(crate) async fn in_time<T: From<Verdict>>(decision: impl Future<Output = T>) -> T {
    let late = || Verdict::Reject {
        reason: "nobody decided within a day".to_owned(),
    };
    let decision = tokio::time::timeout(PERSON_DEADLINE, decision).await;
    decision.unwrap_or_else(|_| late().into())
}

/// Handles an intent (a planned change). The approver may reject the intent or correct it before
/// code is written.
pub(crate) async fn intent(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    intent: &Intent,
) -> String {
    run.agents().set_intent(&agent.actor, &intent.intent);
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
pub(crate) async fn unasked_intent(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    change: &Propose,
    draft: &Draft,
) -> Option<String> {
    if run.task.ask_intent != AskIntent::Always || agent.intent_approved {
        return None;
    }
    let symbol = owner(&agent.actor, draft);
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
pub(crate) async fn ask_intent(
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
