//! Sets of accepted changes of which only a part is in the files, because the run was killed between
//! their edits.

use std::collections::BTreeSet;

use super::trajectory::{ChangeRecord, ChangeState};
use super::unfinished::{UnfinishedChange, is_in};
use starling_swarm::{AppliedChange, ProposalId};
use starling_syntax::FilePath;

/// A set of accepted changes of which only a part is in the files.
#[derive(Debug, Clone)]
pub struct HalfSet {
    /// The changes that are in the files.
    pub there: Vec<(ProposalId, FilePath)>,
    /// The accepted changes that are not in the files.
    pub missing: Vec<UnfinishedChange>,
}

impl HalfSet {
    /// Returns a message that names the changes in the files and the missing changes.
    pub fn told(&self) -> String {
        let missing = self.missing.iter();
        let missing: Vec<_> = missing
            .map(|one| (one.proposal, one.change.file.clone()))
            .collect();
        format!(
            "changes that belong together are only partly in the files, because Starling was killed while \
             it applied them: {} there, {} missing",
            places(&self.there),
            places(&missing)
        )
    }
}

/// Returns the changes with their files, followed by "is" or "are".
fn places(changes: &[(ProposalId, FilePath)]) -> String {
    let place = |(id, file): &(ProposalId, FilePath)| format!("{id} ({file})");
    let places: Vec<String> = changes.iter().map(place).collect();
    let verb = if changes.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", places.join(", "))
}

/// Returns the sets of which only a part is in the files: `changes` were applied, `missing` were
/// accepted but are not in the files. `text` returns the text of the file of a change.
pub fn half_sets(
    changes: &[ChangeRecord],
    missing: &[UnfinishedChange],
    text: impl Fn(&AppliedChange) -> Option<String>,
) -> Vec<HalfSet> {
    let applied = changes
        .iter()
        .filter(|one| one.state == ChangeState::Applied);
    let there: Vec<(ProposalId, &AppliedChange)> = applied
        .filter_map(|one| Some((one.proposal, one.made.as_ref()?)))
        .filter(|(_, made)| is_in(made, text(made).as_deref()))
        .collect();
    let of_missing = missing.iter().map(|one| (one.proposal, &one.change));
    let known: Vec<(ProposalId, &AppliedChange)> =
        there.iter().copied().chain(of_missing).collect();
    let mut sets: Vec<HalfSet> = Vec::new();
    for one in missing {
        let is_known = |set: &HalfSet| {
            set.missing
                .iter()
                .any(|other| other.proposal == one.proposal)
        };
        if sets.iter().any(is_known) {
            continue;
        }
        let members = set_of(one.proposal, &known);
        let of_set = there.iter().filter(|(id, _)| members.contains(id));
        let missing = missing.iter().filter(|one| members.contains(&one.proposal));
        sets.push(HalfSet {
            there: of_set.map(|(id, made)| (*id, made.file.clone())).collect(),
            missing: missing.cloned().collect(),
        });
    }
    sets.retain(|set| !set.there.is_empty());
    sets
}

/// Returns the members of the set to which `first` belongs, including `first`.
fn set_of(first: ProposalId, known: &[(ProposalId, &AppliedChange)]) -> BTreeSet<ProposalId> {
    let mut members: BTreeSet<ProposalId> = [first].into();
    loop {
        let of_members = known.iter().filter(|(id, _)| members.contains(id));
        let named = of_members.flat_map(|(_, change)| change.dependencies.set.iter().copied());
        let named: BTreeSet<ProposalId> = named.collect();
        let belongs = |(id, change): &&(ProposalId, &AppliedChange)| {
            named.contains(id) || !change.dependencies.set.is_disjoint(&members)
        };
        let count = members.len();
        let more: Vec<ProposalId> = known.iter().filter(belongs).map(|(id, _)| *id).collect();
        members.extend(more);
        if members.len() == count {
            return members;
        }
    }
}
