//! Evidence of the members of a set of proposals.

use crate::evidence::ids::ProposalId;
use crate::evidence::joint::JointEvidence;
use crate::evidence::proposal::Evidence;
use crate::proposal::renew::ShownEvidence;
use crate::proposal::{made, objection};
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use starling_syntax::SymbolPath;

/// Returns the evidence of the members of a set. `together` are the results of the joint check;
/// `None` if one member remains, which was checked on its own. Returns `None` if the lead (the
/// proposal through which the set is reviewed) was removed from the set.
pub(crate) fn of_set(
    run: &RunContext,
    lead: ProposalId,
    members: &[Proposal],
    together: Option<JointEvidence>,
) -> Option<ShownEvidence> {
    let own = members.iter().find(|one| one.id == lead)?;
    let checked_in = match &together {
        Some(together) => together.checked_in,
        None => own.draft.epoch.changes,
    };
    let others = || members.iter().filter(|one| one.id != lead);
    // Callers that are parts of the set need no follow-up.
    let is_part = |owner: &SymbolPath| members.iter().any(|one| one.owner().encloses(owner));
    let of_other = |other: &Proposal| -> Option<(ProposalId, Evidence)> {
        // The standalone results of the other members no longer count; the joint results replace
        // them.
        let together = together.as_ref()?;
        let mut theirs = other.evidence.clone();
        made::renew_callers(run, &other.draft, &mut theirs);
        theirs.callers_change_with(is_part);
        let seen = together.as_seen_by((other.id, &other.owner()), (lead, &own.owner()));
        theirs.together = Some(seen);
        Some((other.id, theirs))
    };
    let of_others = others().filter_map(of_other).collect();
    let mut evidence = own.evidence.clone();
    made::renew_callers(run, &own.draft, &mut evidence);
    evidence.callers_change_with(is_part);
    evidence.together = together;
    if let Some(edited) = members.iter().find(|one| one.draft.edited) {
        evidence.overridden = objection::of_edited(run, &edited.draft, &evidence);
    }
    Some(ShownEvidence {
        lead: (lead, evidence),
        others: of_others,
        checked_in,
    })
}
