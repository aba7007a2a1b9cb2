//! Decides on proposals that pass only together: they are reviewed together, and all or none of
//! them are applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::contract::follow_up;
use crate::event::actor::ActorId;
use crate::event::dependencies::Dependencies;
use crate::event::events::Event;
use crate::evidence::ids::ProposalId;
use crate::evidence::joint::JointEvidence;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::approval::ask_about;
use crate::proposal::landing::{self, SetPart};
use crate::proposal::made::{part, tell_checked};
use crate::proposal::{edited, joint_check, objection};
use crate::state::proposals::{Accepted, Decision, Landed, Waiting};
use crate::state::run_context::RunContext;
use starling_core::{ProposalView, ReviewAnswer, Verdict};
use starling_syntax::SymbolPath;

/// Records the dependencies of a set's parts: on each other, and on proposals that were present
/// when the set passed but not when each part failed alone.
fn note_set(run: &RunContext, members: &[(ProposalId, Waiting)], together: &JointEvidence) {
    let set: BTreeSet<ProposalId> = members.iter().map(|(id, _)| *id).collect();
    let others = together.passes_with(&set);
    let mut state = run.proposals();
    for (id, one) in members {
        let mut needs = state.applied_since(&one.draft);
        needs.extend(&others);
        let of_part = Dependencies {
            set: set.iter().copied().filter(|other| other != id).collect(),
            needs,
        };
        state.dependencies.entry(*id).or_default().extend(of_part);
    }
}

/// Asks the approver about proposals that pass only together, and applies all or none of them. A
/// set that the person edits is checked and shown again.
pub(crate) async fn decide_on_set(
    run: Arc<RunContext>,
    id: ProposalId,
    mut members: Vec<(ProposalId, Waiting)>,
    together: JointEvidence,
) -> Decision {
    note_set(&run, &members, &together);
    let (mut lead, mut together) = (id, Some(together));
    let mut landed = BTreeMap::new();
    loop {
        let (by, reviewed) = ask_about_set(&run, lead, &members, together.clone()).await;
        let verdict = match reviewed {
            ReviewAnswer::Verdict(verdict) => verdict,
            ReviewAnswer::Edited(parts) => {
                let taken_out = edited::replace(&run, &mut members, parts).await;
                landed.extend(taken_out.into_iter().map(|id| (id, Landed::TakenOut)));
                let is_member = members.iter().any(|(id, _)| *id == lead);
                match members.first() {
                    Some((first, _)) if !is_member => lead = *first,
                    Some(_) => {}
                    None => return taken_out_whole(landed),
                }
                together = edited::checked_again(&run, lead, &mut members, together).await;
                continue;
            }
        };
        match verdict {
            Verdict::Accept => {
                let tests = tests_of(&members, together);
                landed.extend(land(&run, &by, members, tests).await);
            }
            Verdict::Reject { .. } | Verdict::Steer { .. } => {}
        }
        return Decision {
            by,
            verdict,
            landed,
        };
    }
}

fn taken_out_whole(landed: BTreeMap<ProposalId, Landed>) -> Decision {
    Decision {
        by: ActorId::User,
        verdict: Verdict::Reject {
            reason: edited::TAKEN_OUT.to_owned(),
        },
        landed,
    }
}

/// Returns the test results of a set, or of the parts that remain.
fn tests_of(members: &[(ProposalId, Waiting)], together: Option<JointEvidence>) -> TestEvidence {
    let of_one = || Some(members.first()?.1.evidence.as_ref()?.tests.clone());
    let unknown = || TestEvidence::Unknown {
        reason: "it was not checked".to_owned(),
    };
    let tests = together.map(|together| together.tests);
    tests.or_else(of_one).unwrap_or_else(unknown)
}

/// Shows a set to the approver.
async fn ask_about_set(
    run: &Arc<RunContext>,
    lead: ProposalId,
    members: &[(ProposalId, Waiting)],
    together: Option<JointEvidence>,
) -> (ActorId, ReviewAnswer) {
    let own = members.iter().find(|(member, _)| *member == lead);
    let Some((own, mut evidence)) = own.and_then(|(_, one)| Some((one, one.evidence.clone()?)))
    else {
        let reason = "it does not wait any more".to_owned();
        return (ActorId::Starling, Verdict::Reject { reason }.into());
    };
    let others = || members.iter().filter(|(member, _)| *member != lead);
    let name = |(id, one): &(ProposalId, Waiting)| format!("{id} {}: {}", one.symbol, one.reason);
    let names: Vec<String> = members.iter().map(name).collect();
    for (_, other) in others() {
        if let Some(theirs) = &other.evidence {
            evidence.losses.extend(theirs.losses.clone());
            evidence.contract.extend(theirs.contract.clone());
            evidence.callers.extend(theirs.callers.clone());
            evidence.callers_kept.extend(theirs.callers_kept.clone());
            evidence.test_callers = evidence.test_callers.max(theirs.test_callers);
            evidence.imports.extend(&theirs.imports);
            evidence.needs_person.extend(theirs.needs_person.clone());
        }
    }
    evidence.callers.sort();
    evidence.callers.dedup();
    evidence.callers_kept.sort();
    evidence.callers_kept.dedup();
    // Callers that are parts of the set need no follow-up.
    let is_part = |owner: &SymbolPath| members.iter().any(|(_, one)| one.symbol.encloses(owner));
    evidence.callers_change_with(is_part);
    // The standalone results of the parts no longer count.
    for (member, other) in others() {
        if let (Some(mut theirs), Some(together)) = (other.evidence.clone(), &together) {
            theirs.callers_change_with(is_part);
            theirs.together =
                Some(together.as_seen_by((*member, &other.symbol), (lead, &own.symbol)));
            tell_checked(run, *member, &theirs);
        }
    }
    evidence.together = together;
    if let Some((_, edited)) = members.iter().find(|(_, one)| one.draft.edited) {
        evidence.overridden = objection::of_edited(run, &edited.draft, &evidence);
    }
    tell_checked(run, lead, &evidence);
    let reason = match members.len() {
        1 => own.reason.clone(),
        count => format!(
            "{count} changes that belong together:\n{}",
            names.join("\n")
        ),
    };
    let view = ProposalView {
        id: lead.0,
        symbol: own.symbol.clone(),
        symbols: members
            .iter()
            .flat_map(|(_, one)| one.draft.symbols.clone())
            .collect(),
        reason,
        diff: joint_check::diff(run, members),
        evidence: evidence.to_string(),
    };
    let parts = members
        .iter()
        .map(|(member, one)| part(*member, &one.symbol, &one.reason, &one.draft));
    let actor = ActorId::Agent(own.symbol.clone());
    ask_about(run, &actor, view, &evidence, parts.collect()).await
}

/// Applies an accepted set completely or not at all.
async fn land(
    run: &Arc<RunContext>,
    by: &ActorId,
    members: Vec<(ProposalId, Waiting)>,
    tests: TestEvidence,
) -> BTreeMap<ProposalId, Landed> {
    let mut parts = Vec::new();
    for (id, one) in members {
        run.event(Event::ProposalReviewed {
            proposal: id,
            by: by.clone(),
            verdict: Verdict::Accept,
        });
        run.proposals().accepted.push(Accepted {
            id,
            symbol: one.symbol.clone(),
            reason: one.reason,
            diff: one.diff,
        });
        parts.push(SetPart {
            id,
            symbol: one.symbol,
            gone: follow_up::before(run, &one.draft),
            draft: one.draft,
        });
    }
    landing::apply_set(run, parts, tests).await
}
