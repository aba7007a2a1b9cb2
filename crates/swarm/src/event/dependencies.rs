//! Dependencies between applied proposals: proposals that must be undone together, and proposals
//! that others need.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::evidence::ids::ProposalId;

/// The dependencies of an applied proposal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependencies {
    /// Mutual dependencies: each of these proposals breaks without this one, and this one breaks
    /// without them. Either they were accepted as one set (proposals that pass the checks only
    /// together), or one of them adapts code to a contract change that the other one makes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub set: BTreeSet<ProposalId>,
    /// Proposals that this proposal may need: without them it failed a check, and with them it
    /// passed its last check.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<ProposalId>,
}

impl Dependencies {
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.needs.is_empty()
    }

    pub fn extend(&mut self, other: Dependencies) {
        self.set.extend(other.set);
        self.needs.extend(other.needs);
    }
}

/// The kind of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// Both proposals are in one set (proposals that are applied and undone together).
    Set,
    /// The proposal may need the other proposal.
    Needs,
}

/// A proposal that must stay applied because another proposal, which stays applied, depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    pub proposal: ProposalId,
    /// The proposal that stays applied and depends on this one.
    pub by: ProposalId,
    pub dependence: Dependence,
}

impl Held {
    /// Describes why the proposal stays.
    pub fn why(&self) -> String {
        let by = self.by;
        match self.dependence {
            Dependence::Set => format!("it belongs together with {by}, which stays"),
            Dependence::Needs => {
                format!("{by}, which stays, may need it: it passed its checks only with it")
            }
        }
    }
}

/// The dependencies of all applied proposals of a run.
#[derive(Debug, Clone, Default)]
pub struct DependencyGraph(BTreeMap<ProposalId, Dependencies>);

impl DependencyGraph {
    pub fn of(applied: impl IntoIterator<Item = (ProposalId, Dependencies)>) -> Self {
        DependencyGraph(applied.into_iter().collect())
    }

    /// Returns the proposals in `chosen` that cannot be undone while the proposals in `staying`
    /// stay applied, because one of these depends on them.
    pub fn held(&self, chosen: &BTreeSet<ProposalId>, staying: &BTreeSet<ProposalId>) -> Vec<Held> {
        let mut held: Vec<Held> = Vec::new();
        let mut open: BTreeSet<ProposalId> = chosen.difference(staying).copied().collect();
        let mut next: Vec<ProposalId> = staying.iter().copied().collect();
        while let Some(by) = next.pop() {
            for one in self.depended_on(by, &open) {
                open.remove(&one.proposal);
                next.push(one.proposal);
                held.push(one);
            }
        }
        held.sort_by_key(|one| one.proposal);
        held
    }

    /// Returns the proposals that stay applied but may break if the proposals in `gone` are undone,
    /// each with one of the dependencies that it loses.
    pub fn broken_without(&self, gone: &BTreeSet<ProposalId>) -> Vec<Held> {
        let staying = self.0.keys().filter(|id| !gone.contains(id));
        let broken = staying.filter_map(|id| self.depended_on(*id, gone).into_iter().next());
        broken.collect()
    }

    /// Returns the proposals in `others` that the proposal `by` depends on.
    fn depended_on(&self, by: ProposalId, others: &BTreeSet<ProposalId>) -> Vec<Held> {
        let names = |one: ProposalId, other: ProposalId| {
            let dependencies = self.0.get(&one);
            dependencies.is_some_and(|dependencies| dependencies.set.contains(&other))
        };
        let needs = |proposal: &ProposalId| {
            let dependencies = self.0.get(&by);
            dependencies.is_some_and(|dependencies| dependencies.needs.contains(proposal))
        };
        let dependence = |proposal: &ProposalId| {
            if names(by, *proposal) || names(*proposal, by) {
                Some(Dependence::Set)
            } else if needs(proposal) {
                Some(Dependence::Needs)
            } else {
                None
            }
        };
        let found = others.iter().filter_map(|proposal| {
            Some(Held {
                proposal: *proposal,
                by,
                dependence: dependence(proposal)?,
            })
        });
        found.collect()
    }
}

/// Describes the proposals that may break because proposals they depend on are undone; `None` if
/// there are no such proposals.
pub fn broken_in_words(broken: &[Held]) -> Option<String> {
    let told = broken.iter().map(|one| match one.dependence {
        Dependence::Set => format!("{} belongs together with {}", one.by, one.proposal),
        Dependence::Needs => format!("{} may need {}", one.by, one.proposal),
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("this may break the code that stays: {}", told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids<const N: usize>(ids: [u32; N]) -> BTreeSet<ProposalId> {
        ids.map(ProposalId).into()
    }

    /// Returns a graph in which the proposals #1, #2 and #3 form a set (stored with #3), #5 needs
    /// #4, and #6 needs #5.
    fn graph() -> DependencyGraph {
        let needs = |needs| Dependencies {
            needs,
            ..Dependencies::default()
        };
        let set = Dependencies {
            set: ids([1, 2]),
            ..Dependencies::default()
        };
        let one = |id, dependencies| (ProposalId(id), dependencies);
        DependencyGraph::of([
            one(1, Dependencies::default()),
            one(2, Dependencies::default()),
            one(3, set),
            one(4, Dependencies::default()),
            one(5, needs(ids([4]))),
            one(6, needs(ids([5]))),
        ])
    }

    #[test]
    fn proposal_is_not_undone_while_a_dependent_proposal_stays_applied() {
        let all = ids([1, 2, 3, 4, 5, 6]);
        let held = |staying| -> Vec<u32> {
            let held = graph().held(&all, &staying);
            held.iter().map(|one| one.proposal.0).collect()
        };
        assert_eq!(held(ids([1])), [2, 3]);
        assert_eq!(held(ids([3])), [1, 2]);
        assert_eq!(held(ids([6])), [4, 5]);
        assert_eq!(held(ids([5])), [4]);
        assert_eq!(held(ids([4])), [0; 0], "nothing that stays needs #5 or #6");
        // A single proposal of a set can be undone if the user requests exactly that.
        assert_eq!(graph().held(&ids([2]), &ids([])), []);
    }

    #[test]
    fn proposals_that_may_break_after_an_undo_are_listed() {
        let broken = |gone| broken_in_words(&graph().broken_without(&gone));
        assert_eq!(
            broken(ids([4])).as_deref(),
            Some("this may break the code that stays: #5 may need #4")
        );
        assert_eq!(
            broken(ids([3])).as_deref(),
            Some(
                "this may break the code that stays: #1 belongs together with #3; \
                 #2 belongs together with #3"
            )
        );
        assert_eq!(broken(ids([6])), None);
        assert_eq!(broken(ids([1, 2, 3, 4, 5, 6])), None);
    }
}
