//! Decides on proposals that pass only together: they are reviewed together, and all or none of
//! them are applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::contract::follow_up;
use crate::event::actor::ActorId;
use crate::event::dependencies::Dependencies;
use crate::event::events::Event;
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::evidence::joint::JointEvidence;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::approval::{accepted_before, ask_about, may_ask_again};
use crate::proposal::others_files::{self, FilesOnDisk};
use crate::proposal::renew::Reviewed;
use crate::proposal::{edited, joint_check, landing, permission, set_evidence};
use crate::state::proposal::{Proposal, Stage};
use crate::state::run_context::RunContext;
use crate::state::sets::{Decision, Landed};
use starling_core::{ProposalView, ReviewAnswer, Verdict};

/// Records the dependencies of a set's parts: on each other, and on proposals that were not there
/// when the part failed alone, but with which the set passed.
fn note_set(run: &RunContext, members: &mut [Proposal], together: &JointEvidence) {
    let set: BTreeSet<ProposalId> = members.iter().map(|one| one.id).collect();
    let others = together.passes_with(&set);
    let mut state = run.proposals();
    for one in members {
        let mut needs = state.applied_since(&one.draft);
        needs.extend(&others);
        let of_part = Dependencies {
            set: set
                .iter()
                .copied()
                .filter(|other| *other != one.id)
                .collect(),
            needs,
        };
        state.depend(one.id, of_part.clone());
        // A part whose task has ended is no longer in the book, so its copy is updated here.
        one.dependencies.extend(of_part);
    }
}

/// Asks the approver about proposals that pass only together, and applies all or none of them. A
/// set that the person edits is checked and shown again. A person is asked again about an accepted
/// set if the editor refused one of its edits.
pub(crate) async fn decide_on_set(
    run: Arc<RunContext>,
    id: ProposalId,
    mut members: Vec<Proposal>,
    together: JointEvidence,
) -> Decision {
    note_set(&run, &mut members, &together);
    let (mut lead, mut together) = (id, Some(together));
    let mut landed = BTreeMap::new();
    let (mut not_taken, mut rechecks, mut refused) = (0, 0, None);
    loop {
        let asked = ask_about_set(&run, lead, &members, together.clone(), refused.as_deref());
        let (by, reviewed, mut tests) = asked.await;
        let verdict = match reviewed {
            ReviewAnswer::Verdict(verdict) => verdict,
            ReviewAnswer::Edited(parts) => {
                let taken_out = edited::replace(&run, &mut members, parts).await;
                landed.extend(taken_out.into_iter().map(|id| (id, Landed::TakenOut)));
                let is_member = members.iter().any(|one| one.id == lead);
                match members.first() {
                    Some(first) if !is_member => lead = first.id,
                    Some(_) => {}
                    None => return taken_out_whole(landed),
                }
                together = edited::checked_again(&run, lead, &mut members, together).await;
                continue;
            }
        };
        if verdict == Verdict::Accept {
            match others_files::compare(&run, lead, &mut rechecks).await {
                FilesOnDisk::AsChecked => {}
                FilesOnDisk::Changed => {
                    together = edited::checked_again(&run, lead, &mut members, together).await;
                    if passes(&run, lead, &members, together.as_ref()) {
                        continue;
                    }
                    return Decision {
                        by: ActorId::Starling,
                        verdict: Verdict::Reject {
                            reason: no_longer_passes(together.as_ref()),
                        },
                        landed,
                    };
                }
                FilesOnDisk::KeepChanging => tests = others_files::unknown_tests(),
            }
        }
        match verdict {
            Verdict::Accept => {
                let parts = land(&run, &by, members.clone(), tests).await;
                refused = refused_by_editor(&parts);
                not_taken += 1;
                if refused.is_some() && may_ask_again(&run, not_taken) {
                    for one in &mut members {
                        permission::note_new_reasons(&run, one);
                        run.proposals().ask_again(one, Stage::NeedsOthers).ok();
                    }
                    continue;
                }
                landed.extend(parts);
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

/// Returns whether a set that was checked again passes: together, or alone if only `lead` is left.
fn passes(
    run: &RunContext,
    lead: ProposalId,
    members: &[Proposal],
    together: Option<&JointEvidence>,
) -> bool {
    let alone = members.iter().find(|one| one.id == lead);
    let alone = alone.map(|one| (&one.evidence.tests, &one.evidence.diagnostics));
    let found = together.map(|found| (&found.tests, &found.diagnostics));
    let required = run.tests().required.ids.clone();
    found.or(alone).is_some_and(|(tests, diagnostics)| {
        joint_check::stage(tests, diagnostics, &required, run.task.approval) == Stage::Passes
    })
}

fn no_longer_passes(together: Option<&JointEvidence>) -> String {
    let found = together.map(|found| format!("\n{found}"));
    let found = found.unwrap_or_default();
    format!("other programs changed files meanwhile, and the changes do not pass any more{found}")
}

/// Returns why the editor refused an edit of a set; `None` if it refused no edit, or if a part
/// stays applied or conflicts with the current text.
fn refused_by_editor(parts: &BTreeMap<ProposalId, Landed>) -> Option<String> {
    let mut refused = None;
    for part in parts.values() {
        match part {
            Landed::Failed(Failure::Editor { why }) => refused = Some(why.clone()),
            Landed::NotWithout { .. } | Landed::TakenOut => {}
            Landed::Failed(Failure::Conflict { .. })
            | Landed::Applied { .. }
            | Landed::Stays { .. } => return None,
        }
    }
    refused
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

/// Shows a set to the approver. `refused` is why the editor refused the set when the approver
/// accepted it before. Returns the answer, and the test results of the set.
async fn ask_about_set(
    run: &Arc<RunContext>,
    lead: ProposalId,
    members: &[Proposal],
    together: Option<JointEvidence>,
    refused: Option<&str>,
) -> (ActorId, ReviewAnswer, TestEvidence) {
    let own = members.iter().find(|one| one.id == lead);
    let shown = set_evidence::of_set(run, lead, members, together);
    let (Some(own), Some(shown)) = (own, shown) else {
        let reason = "it does not wait any more".to_owned();
        let tests = TestEvidence::Unknown {
            reason: reason.clone(),
        };
        return (ActorId::Starling, Verdict::Reject { reason }.into(), tests);
    };
    shown.tell(run);
    let view = ProposalView {
        id: lead.0,
        symbol: own.owner(),
        symbols: members
            .iter()
            .flat_map(|one| one.draft.symbols.clone())
            .collect(),
        reason: reason_of(own, members, refused),
        diff: joint_check::diff(run, members),
        evidence: shown.of_whole_set().to_string(),
        version: None,
    };
    let parts = members.iter().map(Proposal::file_change).collect();
    let actor = ActorId::Agent(own.owner());
    let reviewed = Reviewed::Set { lead, members };
    let (by, answer, shown) = ask_about(run, &actor, view, shown, parts, reviewed).await;
    let evidence = shown.lead.1;
    let tests = evidence.together.as_ref().map(|together| &together.tests);
    let tests = evidence.unless_outdated(tests.unwrap_or(&evidence.tests));
    (by, answer, tests)
}

/// Returns the reason of a set for the approver. `own` is the proposal through which the set is
/// reviewed.
fn reason_of(own: &Proposal, members: &[Proposal], refused: Option<&str>) -> String {
    let same = members
        .iter()
        .all(|one| one.change.reason == own.change.reason);
    let name = |one: &Proposal| match same {
        true => format!("{} {}", one.id, one.owner()),
        false => format!("{} {}: {}", one.id, one.owner(), one.change.reason),
    };
    let names: Vec<String> = members.iter().map(name).collect();
    let names = names.join("\n");
    let reason = match (members.len(), same) {
        (1, _) => own.change.reason.clone(),
        (count, true) => format!(
            "{count} changes that belong together: {}\n{names}",
            own.change.reason
        ),
        (count, false) => format!("{count} changes that belong together:\n{names}"),
    };
    match refused {
        Some(why) => format!("{reason}\n{}", accepted_before(why)),
        None => reason,
    }
}

/// Applies an accepted set completely or not at all.
async fn land(
    run: &Arc<RunContext>,
    by: &ActorId,
    members: Vec<Proposal>,
    tests: TestEvidence,
) -> BTreeMap<ProposalId, Landed> {
    let mut parts = Vec::new();
    for one in members {
        run.event(Event::ProposalReviewed {
            proposal: one.id,
            by: by.clone(),
            verdict: Verdict::Accept,
        });
        run.proposals().accept(&one).ok();
        let gone = follow_up::before(run, &one.draft);
        parts.push((one, gone));
    }
    landing::apply_set(run, parts, tests).await
}
