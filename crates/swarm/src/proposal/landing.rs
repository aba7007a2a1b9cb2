//! Applies an accepted set: all of its parts or none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::events::Event;
use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::apply::ReadyEdit;
use crate::proposal::{apply, undo};
use crate::state::contracts::Mentions;
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use crate::state::sets::Landed;

/// A part of an accepted set, with the mentions of the symbols that it removes, as found before the
/// removal.
type SetPart = (Proposal, Mentions);

/// Applies the parts of a set in order. All of them are in the trajectory before the first is sent,
/// so that the next start knows the whole set if this process is killed between two parts.
///
/// If a part cannot be applied, the parts before it are reverted, last first, by the inverse of
/// their own changes. A part stays applied, and this is reported, if the user edited the same lines
/// since. No other change is applied or reverted in the meantime, and the operation is not
/// cancelled once begun. If the result has no entry for a part, an internal error occurred for that
/// part. `tests` are the test results of the set.
pub(crate) async fn apply_set(
    run: &Arc<RunContext>,
    parts: Vec<SetPart>,
    tests: TestEvidence,
) -> BTreeMap<ProposalId, Landed> {
    let landed = apply::carried(run, async move |run| {
        let _one_at_a_time = run.applying.lock().await;
        whole_or_not_at_all(&run, parts, &tests).await
    });
    landed.await.unwrap_or_default()
}

async fn whole_or_not_at_all(
    run: &Arc<RunContext>,
    parts: Vec<SetPart>,
    tests: &TestEvidence,
) -> BTreeMap<ProposalId, Landed> {
    let mut announced = announce(run, &parts).await;
    let mut applied = Vec::new();
    let mut changed = BTreeSet::new();
    let mut parts = parts.into_iter();
    while let Some(part) = parts.next() {
        let (one, _) = &part;
        let ready = announced.remove(&one.id);
        // If another part changes the same file before this part, the edit is prepared again for
        // the new text.
        let ready = match ready.filter(|ready| changed.insert(ready.file().clone())) {
            Some(ready) => Ok(ready),
            None => apply::ready(run, one.id),
        };
        let sent = match ready {
            Ok(ready) => apply::edit(run, ready, (tests.clone(), None)).await,
            Err(failure) => Err(failure),
        };
        match sent {
            Ok(text) => applied.push((part, text)),
            Err(failure) => {
                let why = format!("{}: {}", one.owner(), failure.why());
                apply::note_not_applied(run, one, &failure);
                // The failure of this part is logged after the parts before it are reverted. If the
                // process is killed in between, the trajectory shows a set of which only some parts
                // are applied.
                let mut landed = take_back(run, applied, &why).await;
                apply::tell_not_applied(run, one.id, &failure);
                landed.insert(one.id, Landed::Failed(failure));
                landed.extend(parts.map(|(one, _)| not_sent(run, one.id, &why)));
                return landed;
            }
        }
    }
    let landed = applied.into_iter();
    landed
        .map(|((one, gone), text)| (one.id, Landed::Applied { text, gone }))
        .collect()
}

/// Prepares the edits of a set's parts and records them in the trajectory before the first is sent.
/// A part that cannot be prepared is left out.
async fn announce(run: &RunContext, parts: &[SetPart]) -> BTreeMap<ProposalId, ReadyEdit> {
    let mut announced = Vec::new();
    if run.cancel.is_cancelled() {
        return BTreeMap::new();
    }
    for (one, _) in parts.iter().filter(|_| parts.len() > 1) {
        if let Ok(ready) = apply::ready(run, one.id) {
            announced.push(ready.announce(run, &announced).await);
        }
    }
    let by_proposal = announced.into_iter().map(|one| (one.proposal(), one));
    by_proposal.collect()
}

/// Reverts the applied parts of a set, last first.
async fn take_back(
    run: &Arc<RunContext>,
    applied: Vec<(SetPart, Arc<str>)>,
    why: &str,
) -> BTreeMap<ProposalId, Landed> {
    let mut landed = BTreeMap::new();
    for ((part, _), text) in applied.into_iter().rev() {
        let end = match undo::take_back(run, Some(part.id)).await {
            Ok(_) => Landed::NotWithout {
                why: why.to_owned(),
            },
            Err(error) => {
                tracing::warn!(proposal = %part.id, %error, "a part of a set stays applied");
                run.proposals().leave_alone(part.id).ok();
                let why = format!("{why}; {error}");
                Landed::Stays { text, why }
            }
        };
        landed.insert(part.id, end);
    }
    landed
}

fn not_sent(run: &RunContext, id: ProposalId, why: &str) -> (ProposalId, Landed) {
    run.proposals().send_back(id).ok();
    run.event(Event::ProposalNotApplied {
        proposal: id,
        why: format!(
            "it is applied only together with another part of its set, which was not: {why}"
        ),
    });
    let why = why.to_owned();
    (id, Landed::NotWithout { why })
}
