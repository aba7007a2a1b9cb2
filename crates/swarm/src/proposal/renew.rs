//! Keeps the evidence that a reviewing person sees up to date. When a change is applied or reverted
//! during the review, the evidence of the proposals under review is marked as out of date
//! immediately, then computed again and replaced. The person may decide at any time, even if the
//! evidence is out of date.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::evidence::ids::{ProposalId, ids};
use crate::evidence::proposal::{Evidence, RUN_AGAIN};
use crate::proposal::made::{self, tell_checked};
use crate::proposal::objection::{self, StandaloneVerdict};
use crate::proposal::{edited, set_evidence};
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;

/// The proposals that a person reviews: a single one, or a set.
pub(crate) enum Reviewed<'a> {
    One {
        agent: &'a AgentState,
        proposal: &'a Proposal,
    },
    Set {
        lead: ProposalId,
        members: &'a [Proposal],
    },
}

/// The evidence of the proposals under review.
#[derive(Debug, Clone)]
pub(crate) struct ShownEvidence {
    /// The lead, which is the proposal through which its set is reviewed, and its evidence.
    pub lead: (ProposalId, Evidence),
    /// The evidence of the other members of its set.
    pub others: Vec<(ProposalId, Evidence)>,
    /// Number of changes that the run had applied or reverted when the checks began.
    pub checked_in: u64,
}

impl ShownEvidence {
    /// Logs the evidence of all members.
    pub fn tell(&self, run: &RunContext) {
        for (id, evidence) in self.others.iter().chain([&self.lead]) {
            tell_checked(run, *id, evidence);
        }
    }

    /// Returns the evidence of the whole set, for the approver: the test results of the lead with the
    /// findings about all members, such as their callers and contract changes.
    pub fn of_whole_set(&self) -> Evidence {
        let mut whole = self.lead.1.clone();
        for (_, member) in &self.others {
            whole.extend(member);
        }
        whole
    }

    /// Marks the evidence as out of date. Returns whether it was not marked so before.
    fn mark(&mut self, why: &str) -> bool {
        let is_new = self.lead.1.outdated.as_deref() != Some(why);
        let all = self.others.iter_mut().chain([&mut self.lead]);
        all.for_each(|(_, evidence)| evidence.outdated = Some(why.to_owned()));
        is_new
    }
}

/// Renews the evidence each time that the run applies or reverts a change. The future never
/// completes; it ends when it is dropped. `shown` holds the evidence that was logged last.
pub(crate) async fn keep_current(
    run: &Arc<RunContext>,
    reviewed: &Reviewed<'_>,
    shown: &Mutex<ShownEvidence>,
) -> Infallible {
    loop {
        let checked_in = lock(shown).checked_in;
        let is_old = || run.world().epoch.changes != checked_in;
        run.waited.wait_for(is_old).await;
        let why = changed_since(run, checked_in);
        let marked = {
            let mut shown = lock(shown);
            shown.mark(&why).then(|| shown.clone())
        };
        if let Some(marked) = marked {
            marked.tell(run);
        }
        // The parts of a set are applied one after the other; the lock is free when all of them
        // are.
        drop(run.applying.lock().await);
        let now = run.world().epoch.changes;
        let earlier = lock(shown).clone();
        let fresh = reviewed.checked_again(run, earlier, now).await;
        if run.world().epoch.changes == now {
            fresh.tell(run);
            *lock(shown) = fresh;
        }
    }
}

fn lock(shown: &Mutex<ShownEvidence>) -> MutexGuard<'_, ShownEvidence> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Describes what the run applied or reverted since a check.
fn changed_since(run: &RunContext, checked_in: u64) -> String {
    let applied: BTreeSet<ProposalId> = {
        let book = run.proposals();
        let applied = book.applied().into_iter();
        let later = applied.filter(|(_, applied)| applied.changes > checked_in);
        later.map(|(one, _)| one.id).collect()
    };
    let applied: Vec<ProposalId> = applied.into_iter().collect();
    let what = match applied.is_empty() {
        true => "a change was taken back since these checks".to_owned(),
        false => format!("applied since these checks: {}", ids(&applied)),
    };
    format!("{what}{RUN_AGAIN}")
}

impl Reviewed<'_> {
    /// Checks the proposals under review again on the current text.
    async fn checked_again(
        &self,
        run: &Arc<RunContext>,
        earlier: ShownEvidence,
        now: u64,
    ) -> ShownEvidence {
        let fresh = match self {
            Reviewed::One { agent, proposal } => one_again(run, agent, proposal).await,
            Reviewed::Set { lead, members } => {
                set_again(run, *lead, members, &earlier.lead.1).await
            }
        };
        match fresh {
            Some(fresh) => ShownEvidence {
                checked_in: now,
                ..fresh
            },
            None => {
                let mut same = earlier;
                same.mark("it does not fit the current text any more");
                same.checked_in = now;
                same
            }
        }
    }
}

/// Checks a proposal on its own again. Returns `None` if it conflicts with the current text.
async fn one_again(
    run: &Arc<RunContext>,
    agent: &AgentState,
    proposal: &Proposal,
) -> Option<ShownEvidence> {
    let mut one = proposal.clone();
    one.draft = on_current_text(run, &one.draft)?;
    (one.evidence, _) = made::check(run, &one.draft, one.id).await;
    one.evidence.overridden = match one.draft.edited {
        true => objection::of_edited(run, &one.draft, &one.evidence),
        false => match objection::judge(run, agent, &one) {
            StandaloneVerdict::Passes => None,
            StandaloneVerdict::PersonDecides { overridden } => Some(overridden),
            StandaloneVerdict::SentBack { why } => Some(why.to_user().to_owned()),
        },
    };
    Some(ShownEvidence {
        lead: (one.id, one.evidence),
        others: Vec::new(),
        checked_in: 0,
    })
}

/// Checks a set again, together with the still open proposals of its earlier check. Returns `None`
/// if a member conflicts with the current text.
async fn set_again(
    run: &Arc<RunContext>,
    lead: ProposalId,
    members: &[Proposal],
    earlier: &Evidence,
) -> Option<ShownEvidence> {
    let mut members = members.to_vec();
    for one in &mut members {
        one.draft = on_current_text(run, &one.draft)?;
        // The standalone results of a member refer to the earlier text, so they are removed.
        one.evidence = made::unchecked(&one.draft);
        made::note_callers(run, &one.draft, &mut one.evidence).await;
    }
    let earlier = earlier.together.clone();
    let together = edited::checked_again(run, lead, &mut members, earlier).await;
    set_evidence::of_set(run, lead, &members, together)
}

/// Returns a draft rebased onto the current text of its file; `None` if they conflict.
fn on_current_text(run: &RunContext, draft: &Draft) -> Option<Draft> {
    let (now, epoch) = {
        let world = run.world();
        (world.snapshot.read(&draft.file), world.epoch)
    };
    let base = now.unwrap_or_else(|_| "".into());
    let text = draft.over(&base)?;
    Some(Draft {
        base,
        text,
        epoch,
        ..draft.clone()
    })
}
