//! The evidence about a proposal: all its check results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::evidence::check_results::{DiagnosticEvidence, ImportMends};
use crate::evidence::example::ExampleEvidence;
use crate::evidence::ids::{ProposalId, few, named};
use crate::evidence::indirect::{self, IndirectCaller};
use crate::evidence::joint::JointEvidence;
use crate::evidence::test_evidence::TestEvidence;
use starling_syntax::{FilePath, Loss, SymbolPath};
use starling_text::ContentHash;
use starling_workspace::Snapshot;

/// Reason to show a failing proposal to the reviewer: it changes a contract, and the owners of the
/// callers are asked to update them.
pub(crate) const CALLERS_FOLLOW: &str = "it changes a contract, and the callers follow";
/// Reason to show a failing proposal to the reviewer: its agent announced more proposals.
pub(crate) const MORE_COMES: &str = "the agent has more to propose";
/// Reason to show a failing proposal to the reviewer: other agents are working and may fix the
/// problem.
pub(crate) const OTHERS_WORK: &str = "other agents are still at work";
/// Reasons to show a failing proposal that apply only while the run continues.
const WHILE_IT_RUNS: [&str; 3] = [CALLERS_FOLLOW, MORE_COMES, OTHERS_WORK];

/// Suffix of the message that evidence is out of date, used while the checks run again.
pub(crate) const RUN_AGAIN: &str = "; they run again";

/// All check results of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub tests: TestEvidence,
    pub diagnostics: DiagnosticEvidence,
    /// The results of the task's examples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ExampleEvidence>,
    /// The automatic changes to the proposal's imports.
    #[serde(default, skip_serializing_if = "ImportMends::is_empty")]
    pub imports: ImportMends,
    /// Code that the change removes although the agent did not ask for it, such as decorators,
    /// comments or nested symbols.
    pub losses: Vec<Loss>,
    /// Descriptions of the contract changes; empty if the contract does not change.
    pub contract: Vec<String>,
    /// Owners of the references that the changed contract can break.
    pub callers: Vec<SymbolPath>,
    /// Owners of references that the changed contract can break, but whose own changes are in the
    /// same set (applied together), so that they need not be notified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers_in_set: Vec<SymbolPath>,
    /// Owners of uses that stay valid under the changed contract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers_kept: Vec<SymbolPath>,
    /// Other calls that may reach a symbol whose contract changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indirect_callers: Vec<IndirectCaller>,
    /// Number of tests with calls that the changed contract breaks.
    #[serde(default)]
    pub test_callers: usize,
    /// The files of the change for which only a person can accept the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_person: Vec<NeedsPerson>,
    /// Results of the joint check with other waiting proposals, if the proposal fails alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<JointEvidence>,
    /// Versions of the other files that the proposal was checked with.
    #[serde(default, skip_serializing_if = "CheckedTexts::is_empty")]
    pub texts: CheckedTexts,
    /// Set if a proposal that failed a check is nevertheless shown to a person: which check failed,
    /// and why the proposal is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden: Option<String>,
    /// Set if the results belong to an earlier text: what was changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outdated: Option<String>,
    pub millis: u64,
}

/// A file that may only be changed after a person accepted the change to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedsPerson {
    pub file: FilePath,
    pub why: String,
}

impl fmt::Display for NeedsPerson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NeedsPerson { file, why } = self;
        write!(
            f,
            "{file}: {why}; your yes holds for this change of this file alone"
        )
    }
}

/// Versions of the files that a check used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedTexts {
    /// Hashes of the texts that were used instead of the files on disk: unsaved buffers, and files
    /// that the run changed.
    pub over_disk: BTreeMap<FilePath, ContentHash>,
    /// Files that changed while the checks ran.
    pub changed_since: Vec<FilePath>,
}

impl CheckedTexts {
    /// Compares the workspace that was checked with `now`, the workspace after the check.
    pub fn of(checked: &Snapshot, now: &Snapshot) -> Self {
        let texts = checked.overlay().iter();
        let hash = |(file, text): (&FilePath, &Option<Arc<str>>)| {
            Some((file.clone(), ContentHash::of(text.as_ref()?)))
        };
        let both = checked.overlay().keys().chain(now.overlay().keys());
        let both: BTreeSet<&FilePath> = both.collect();
        let is_other = |file: &&FilePath| checked.read(file).ok() != now.read(file).ok();
        CheckedTexts {
            over_disk: texts.filter_map(hash).collect(),
            changed_since: both.into_iter().filter(is_other).cloned().collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.over_disk.is_empty() && self.changed_since.is_empty()
    }
}

/// Describes the tests that a change breaks.
fn breaks(broken: &[String]) -> String {
    match broken.len() {
        1 => format!("a test fails with it that passed before: {}", named(broken)),
        count => format!(
            "{count} tests fail with it that passed before: {}",
            named(broken)
        ),
    }
}

impl Evidence {
    /// Returns the proposals under review that this proposal needs to pass its checks.
    pub fn needs(&self) -> &[ProposalId] {
        let together = self.together.as_ref();
        together.map_or(&[], |together| together.needs.as_slice())
    }

    /// If the joint check passed, returns the proposals that were part of it and are not in `set`.
    /// Without them, `set` may fail.
    pub fn passes_with(&self, set: &BTreeSet<ProposalId>) -> BTreeSet<ProposalId> {
        let together = self.together.as_ref().filter(|together| together.passes());
        together.map_or_else(BTreeSet::new, |together| together.passes_with(set))
    }

    /// Returns the evidence as it applies after the end of the run: no agent will fix broken tests
    /// or adapt callers any more.
    pub fn of_ended(&self) -> Evidence {
        let overridden = self.overridden.as_deref().map(|told| {
            let reason = WHILE_IT_RUNS
                .iter()
                .find_map(|reason| told.strip_suffix(&format!(" ({reason})")));
            reason.map_or_else(|| told.to_owned(), |told| self.left_broken(told))
        });
        let outdated = self.outdated.as_deref();
        let outdated = outdated.map(|told| told.strip_suffix(RUN_AGAIN).unwrap_or(told).to_owned());
        Evidence {
            overridden,
            outdated,
            ..self.clone()
        }
    }

    /// Adds to `told`, a description of failed checks, which tests fail and that no agent will fix
    /// them.
    fn left_broken(&self, told: &str) -> String {
        let end = "the run is over, so no agent will fix this";
        match &self.tests {
            TestEvidence::Known { broken, .. }
                if !broken.is_empty() && !told.contains(&named(broken)) =>
            {
                format!("{told}; {} ({end})", breaks(broken))
            }
            TestEvidence::Known { .. } | TestEvidence::Unknown { .. } => format!("{told} ({end})"),
        }
    }

    /// Marks the evidence as out of date if `files`, the files that changed since the checks, is
    /// not empty.
    pub fn note_changed_files(&mut self, files: &[String]) {
        if !files.is_empty() {
            let told = format!("files changed since these checks: {}", few(files));
            self.outdated = Some(told);
        }
    }

    /// Returns `tests`, or an unknown result if the evidence is out of date.
    pub(crate) fn unless_outdated(&self, tests: &TestEvidence) -> TestEvidence {
        match &self.outdated {
            Some(told) => TestEvidence::Unknown {
                reason: format!("its checks are out of date: {told}"),
            },
            None => tests.clone(),
        }
    }

    /// Adds the findings about another member of the same set: what it loses, which contracts it
    /// changes, and who uses them.
    pub(crate) fn extend(&mut self, other: &Evidence) {
        self.losses.extend(other.losses.clone());
        self.contract.extend(other.contract.clone());
        self.callers.extend(other.callers.clone());
        self.callers_in_set.extend(other.callers_in_set.clone());
        self.callers_kept.extend(other.callers_kept.clone());
        self.indirect_callers.extend(other.indirect_callers.clone());
        self.test_callers = self.test_callers.max(other.test_callers);
        self.imports.extend(&other.imports);
        self.needs_person.extend(other.needs_person.clone());
        for callers in [
            &mut self.callers,
            &mut self.callers_in_set,
            &mut self.callers_kept,
        ] {
            callers.sort();
            callers.dedup();
        }
        self.indirect_callers.sort();
        self.indirect_callers.dedup();
    }

    /// Moves the callers whose own changes are in the same set to `callers_in_set`.
    pub fn callers_change_with(&mut self, is_in_set: impl Fn(&SymbolPath) -> bool) {
        self.callers_in_set.clear();
        for callers in [&mut self.callers, &mut self.callers_kept] {
            let (inside, outside) = std::mem::take(callers).into_iter().partition(&is_in_set);
            let inside: Vec<SymbolPath> = inside;
            *callers = outside;
            self.callers_in_set.extend(inside);
        }
        self.callers_in_set.sort();
        self.callers_in_set.dedup();
    }

    /// Describes the callers of the changed contract, for users and models.
    pub fn callers_in_words(&self) -> String {
        let names = |symbols: &[SymbolPath]| {
            let names: Vec<String> = symbols.iter().map(ToString::to_string).collect();
            few(&names)
        };
        let mut told = Vec::new();
        if !self.callers.is_empty() {
            told.push(names(&self.callers));
        }
        if !self.callers_in_set.is_empty() {
            let inside = names(&self.callers_in_set);
            told.push(format!("{inside} (changed in the same set)"));
        }
        let has_no_direct = self.callers_kept.is_empty() && !self.indirect_callers.is_empty();
        let kept = self.callers_kept.len();
        let are_all_kept = kept > 0 && told.is_empty() && self.test_callers == 0;
        let mut told = match (told.is_empty(), self.test_callers) {
            (true, 0) if are_all_kept => {
                let names = names(&self.callers_kept);
                format!("{kept}, none needs to change ({names})")
            }
            (true, 0) if has_no_direct => "no direct caller".to_owned(),
            (true, 0) => "none".to_owned(),
            (true, tests) if kept == 0 && !self.indirect_callers.is_empty() => {
                format!("no direct caller but tests ({tests})")
            }
            (true, tests) => format!("only tests ({tests})"),
            (false, _) => told.join("; "),
        };
        if kept > 0 && !are_all_kept {
            told.push_str("; still valid: ");
            told.push_str(&names(&self.callers_kept));
        }
        if !self.indirect_callers.is_empty() {
            told.push_str("; ");
            told.push_str(&indirect::in_words(&self.indirect_callers));
        }
        told
    }

    /// Describes the callers of the changed contract that no owner follows up: tests, and code that
    /// is not known. Returns `None` if there are none.
    pub fn callers_without_owner(&self) -> Option<String> {
        let mut told = Vec::new();
        match self.test_callers {
            0 => {}
            1 => told.push("1 test calls it as before".to_owned()),
            tests => told.push(format!("{tests} tests call it as before")),
        }
        if !self.indirect_callers.is_empty() {
            let may_be = indirect::in_words(&self.indirect_callers);
            told.push(format!("it {may_be}"));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Returns the results that decide about the proposal: the results of the joint check if the
    /// proposals pass together, otherwise those of the proposal's own check.
    pub fn counting(&self) -> (&TestEvidence, &DiagnosticEvidence) {
        match &self.together {
            Some(together) if together.passes() => (&together.tests, &together.diagnostics),
            Some(_) | None => (&self.tests, &self.diagnostics),
        }
    }

    /// Returns the results of the task's examples from the check that decides about the proposal.
    pub fn counting_examples(&self) -> &[ExampleEvidence] {
        match &self.together {
            Some(together) if together.passes() => &together.examples,
            Some(_) | None => &self.examples,
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.needs_person {
            writeln!(f, "needs your own yes: {one}")?;
        }
        if let Some(outdated) = &self.outdated {
            writeln!(f, "OUT OF DATE: {outdated}")?;
        }
        if let Some(overridden) = &self.overridden {
            writeln!(f, "SHOWN ALTHOUGH {overridden}")?;
        }
        match &self.together {
            Some(together) if together.passes() => write!(f, "{together}")?,
            Some(together) => write!(f, "{}{together}{}", self.tests, self.diagnostics)?,
            None => write!(f, "{}{}", self.tests, self.diagnostics)?,
        }
        for example in self.counting_examples() {
            write!(f, "{example}")?;
        }
        write!(f, "{}", self.imports)?;
        if !self.texts.changed_since.is_empty() {
            let files: Vec<String> = self
                .texts
                .changed_since
                .iter()
                .map(ToString::to_string)
                .collect();
            let files = few(&files);
            writeln!(
                f,
                "changed while the checks ran, and checked as it was before: {files}"
            )?;
        }
        for loss in &self.losses {
            writeln!(f, "loses {loss}")?;
        }
        if self.contract.is_empty() {
            return Ok(());
        }
        writeln!(f, "contract: {}", self.contract.join("; "))?;
        let follows =
            !self.callers.is_empty() || self.test_callers > 0 || !self.indirect_callers.is_empty();
        let label = match follows {
            true => "callers to follow up",
            false => "callers",
        };
        writeln!(f, "{label}: {}", self.callers_in_words())
    }
}
