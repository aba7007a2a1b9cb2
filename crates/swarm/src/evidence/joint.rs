//! Results of a joint check of several proposals.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::evidence::check_results::DiagnosticEvidence;
use crate::evidence::example::ExampleEvidence;
use crate::evidence::ids::{ProposalId, few, ids};
use crate::evidence::test_evidence::{TestEvidence, write_changed};
use starling_syntax::SymbolPath;

/// Results of a joint check, in which a proposal is tested together with other proposals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JointEvidence {
    /// The owners of the other proposals.
    pub with: Vec<SymbolPath>,
    /// The ids of the other proposals. Absent in older recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposals: Vec<ProposalId>,
    pub tests: TestEvidence,
    /// Diagnostics of all changed files.
    #[serde(default)]
    pub diagnostics: DiagnosticEvidence,
    /// The results of the task's examples with all proposals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ExampleEvidence>,
    /// Proposals that were under review during the check and without which this proposal does not
    /// pass. This proposal is applied only together with them or after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<ProposalId>,
    /// How many changes had been applied or reverted in the run when the check began. Not recorded.
    #[serde(skip)]
    pub checked_in: u64,
}

impl JointEvidence {
    /// Converts the results that are stored for the proposal `founder` into the results for another
    /// proposal of the same check: the founder takes the place of that proposal in the lists of
    /// others.
    pub(crate) fn as_seen_by(
        &self,
        other: (ProposalId, &SymbolPath),
        founder: (ProposalId, &SymbolPath),
    ) -> JointEvidence {
        let mut seen = self.clone();
        let places = seen.proposals.iter_mut().zip(&mut seen.with);
        for (proposal, symbol) in places.filter(|(proposal, _)| **proposal == other.0) {
            *proposal = founder.0;
            *symbol = founder.1.clone();
        }
        let mut others: Vec<(ProposalId, SymbolPath)> =
            seen.proposals.into_iter().zip(seen.with).collect();
        others.sort();
        (seen.proposals, seen.with) = others.into_iter().unzip();
        seen
    }

    /// Returns the proposals that were part of the check and are not in `set`.
    pub fn passes_with(&self, set: &BTreeSet<ProposalId>) -> BTreeSet<ProposalId> {
        let others = self.needs.iter().chain(&self.proposals).copied();
        others.filter(|id| !set.contains(id)).collect()
    }

    /// Lists the other proposals of the check.
    fn others(&self) -> String {
        let names: Vec<String> = self.with.iter().map(ToString::to_string).collect();
        match names.len() {
            0 if !self.needs.is_empty() => "the proposals under review".to_owned(),
            0 => "the changes that were accepted meanwhile".to_owned(),
            1 => format!("the other waiting proposal ({})", names[0]),
            count => format!("the {count} other waiting proposals ({})", few(&names)),
        }
    }

    /// Returns whether all proposals pass the check together. In this case the results of their
    /// separate checks do not matter.
    pub fn passes(&self) -> bool {
        let tests = match &self.tests {
            TestEvidence::Unknown { .. } => true,
            TestEvidence::Known { broken, .. } => broken.is_empty(),
        };
        tests && self.diagnostics.stopping().next().is_none()
    }
}

impl fmt::Display for JointEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = self.others();
        if !self.needs.is_empty() {
            let needs = ids(&self.needs);
            writeln!(
                f,
                "needs {needs}: the tests pass only together; accept it with {needs} or after"
            )?;
        }
        match &self.tests {
            TestEvidence::Unknown { .. } => writeln!(f, "tests with {others}: unknown")?,
            TestEvidence::Known {
                outcome,
                details,
                broken,
                still_failing,
                ..
            } => {
                writeln!(f, "tests with {others}: {}", outcome.word())?;
                for (fate, ids) in self.tests.fates() {
                    writeln!(f, "  {} ({}): {}", fate.word(), ids.len(), few(ids))?;
                }
                write_changed(f, &self.tests)?;
                if !broken.is_empty() || !still_failing.is_empty() {
                    writeln!(f, "{details}")?;
                }
            }
        }
        write!(f, "{}", self.diagnostics)
    }
}
