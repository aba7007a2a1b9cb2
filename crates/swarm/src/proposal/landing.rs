//! Applies an accepted set: all of its parts or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::events::Event;
use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::{apply, undo};
use crate::state::contracts::Mentions;
use crate::state::draft::Draft;
use crate::state::proposals::Landed;
use crate::state::run_context::RunContext;
use starling_syntax::SymbolPath;

/// A part of an accepted set.
pub(crate) struct SetPart {
    pub id: ProposalId,
    pub symbol: SymbolPath,
    pub draft: Draft,
    /// The mentions of the symbols that the part removes, from before the removal.
    pub gone: Mentions,
}

/// Applies the parts of a set in order.
///
/// If a part cannot be applied, the parts before it are reverted, last first, by the inverse of
/// their own changes. A part stays applied, and this is reported, if the user changed the same
/// place since. No other change is applied or reverted in the meantime, and the operation is not
/// cancelled once begun. A part without an entry in the result met an internal error. `tests` are
/// the test results of the set.
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
    let mut applied = Vec::new();
    let mut parts = parts.into_iter();
    while let Some(part) = parts.next() {
        let draft = part.draft.clone();
        match apply::edit(run, part.id, draft, (tests.clone(), None)).await {
            Ok(text) => applied.push((part, text)),
            Err(failure) => {
                apply::not_applied(run, part.id, &part.draft, &failure);
                let why = format!("{}: {}", part.symbol, failure.why());
                let mut landed = take_back(run, applied, &why).await;
                landed.insert(part.id, Landed::Failed(failure));
                landed.extend(parts.map(|part| not_sent(run, &part, &why)));
                return landed;
            }
        }
    }
    let landed = applied.into_iter().map(|(part, text)| {
        let landed = Landed::Applied {
            draft: Box::new(part.draft),
            text,
            gone: part.gone,
        };
        (part.id, landed)
    });
    landed.collect()
}

/// Reverts the applied parts of a set, last first.
async fn take_back(
    run: &Arc<RunContext>,
    applied: Vec<(SetPart, Arc<str>)>,
    why: &str,
) -> BTreeMap<ProposalId, Landed> {
    let mut landed = BTreeMap::new();
    for (part, text) in applied.into_iter().rev() {
        let end = match undo::take_back(run, Some(part.id)).await {
            Ok(_) => Landed::NotWithout {
                why: why.to_owned(),
            },
            Err(error) => {
                tracing::warn!(proposal = %part.id, %error, "a part of a set stays applied");
                run.proposals().left_alone.insert(part.id);
                let why = format!("{why}; {error}");
                Landed::Stays { text, why }
            }
        };
        landed.insert(part.id, end);
    }
    landed
}

fn not_sent(run: &RunContext, part: &SetPart, why: &str) -> (ProposalId, Landed) {
    run.proposals().accepted.retain(|one| one.id != part.id);
    run.event(Event::ProposalNotApplied {
        proposal: part.id,
        why: format!(
            "it is applied only together with another part of its set, which was not: {why}"
        ),
    });
    let why = why.to_owned();
    (part.id, Landed::NotWithout { why })
}
