//! Evidence of a set of proposals: the evidence of the whole set, which the approver is shown, and
//! the evidence of each other member.

use crate::evidence::ids::ProposalId;
use crate::evidence::joint::JointEvidence;
use crate::evidence::proposal::Evidence;
use crate::proposal::objection;
use crate::proposal::renew::ShownEvidence;
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use starling_syntax::SymbolPath;

/// Returns the evidence of a set and of its members. `together` are the results of the joint check;
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
        theirs.callers_change_with(is_part);
        let seen = together.as_seen_by((other.id, &other.owner()), (lead, &own.owner()));
        theirs.together = Some(seen);
        Some((other.id, theirs))
    };
    let of_others = others().filter_map(of_other).collect();
    let mut evidence = combined(own, others());
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

/// Adds the findings about the other members, such as their callers and contract changes, to the
/// evidence of the lead.
fn combined<'p>(own: &Proposal, others: impl Iterator<Item = &'p Proposal>) -> Evidence {
    let mut evidence = own.evidence.clone();
    for theirs in others.map(|other| &other.evidence) {
        evidence.losses.extend(theirs.losses.clone());
        evidence.contract.extend(theirs.contract.clone());
        evidence.callers.extend(theirs.callers.clone());
        evidence.callers_kept.extend(theirs.callers_kept.clone());
        let indirect = theirs.indirect_callers.clone();
        evidence.indirect_callers.extend(indirect);
        evidence.test_callers = evidence.test_callers.max(theirs.test_callers);
        evidence.imports.extend(&theirs.imports);
        evidence.needs_person.extend(theirs.needs_person.clone());
    }
    evidence.callers.sort();
    evidence.callers.dedup();
    evidence.callers_kept.sort();
    evidence.callers_kept.dedup();
    evidence.indirect_callers.sort();
    evidence.indirect_callers.dedup();
    evidence
}
