//! Waiting proposals whose files have become guarded meanwhile: only a person may accept a change of them.

use std::sync::Arc;

use super::restore::view_of;
use super::run_view::ProposalStatus;
use starling_swarm::sending::Permission;
use starling_swarm::{Event, Evidence, FileChange, NeedsPerson, Record, Stamped};
use starling_syntax::FilePath;
use starling_workspace::PathPolicy;

/// Returns the permission for a change of a file that a person accepted after seeing this evidence.
pub fn permission(policy: &PathPolicy, evidence: &Evidence, file: &FilePath) -> Permission {
    let known = evidence.needs_person.iter();
    let known = known.filter(|one| one.file == *file);
    Permission {
        policy: policy.clone(),
        known: known.map(|one| one.why.clone()).collect(),
    }
}

/// Returns the reasons for which a person has to accept a change, without those that the evidence
/// contains.
/// `current` is the text of the file now, if it is known.
///
/// # Errors
/// Nobody may accept the change; returns why.
pub fn unknown_reasons(
    policy: &PathPolicy,
    evidence: &Evidence,
    part: &FileChange,
    current: Option<&str>,
) -> Result<Vec<NeedsPerson>, String> {
    let changed = |now: &str| part.over(now).ok()?.apply(now).ok();
    let texts = current
        .filter(|_| !part.deleted)
        .and_then(|now| Some((now, changed(now)?)));
    let texts = texts.as_ref().map(|(now, after)| (*now, &**after));
    let unknown = permission(policy, evidence, &part.file).unknown_reasons(&part.file, texts)?;
    let needs = unknown.into_iter().map(|why| NeedsPerson {
        file: part.file.clone(),
        why: why.to_owned(),
    });
    Ok(needs.collect())
}

/// A waiting review: its evidence, and its changes with the current texts of their files.
pub type WaitingChanges = (Evidence, Vec<(FileChange, Option<Arc<str>>)>);

/// Returns whether a waiting review can be accepted although no person has looked at it.
pub fn needs_nobody(policy: &PathPolicy, (evidence, parts): &WaitingChanges) -> bool {
    parts.iter().all(|(part, now)| {
        let unknown = unknown_reasons(policy, evidence, part, now.as_deref());
        unknown.is_ok_and(|unknown| unknown.is_empty())
    })
}

/// Adds to the evidence of the waiting reviews of an ended run which of their files have become guarded.
pub fn note_in_evidence(records: &mut [Stamped], policy: &PathPolicy) {
    let view = view_of(records);
    for record in records {
        let Record::Event(
            Event::ReviewAsked {
                proposal, evidence, ..
            }
            | Event::ProposalChecked { proposal, evidence },
        ) = &mut record.record
        else {
            continue;
        };
        let members = view.proposals.values().filter(|one| one.lead == *proposal);
        let waiting = members.filter(|one| one.state == ProposalStatus::Waiting);
        for part in waiting.filter_map(|one| one.part.as_ref()) {
            let unknown = unknown_reasons(policy, evidence, part, None);
            // A change that nobody may accept is refused when it is accepted.
            evidence.needs_person.extend(unknown.unwrap_or_default());
        }
    }
}
