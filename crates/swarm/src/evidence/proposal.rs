//! Proposals and the evidence about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::evidence::check_results::{DiagnosticEvidence, ImportMends};
use crate::evidence::joint::JointEvidence;
use starling_core::{
    EditorError, ResultSource, TestCase, TestOutcome, TestReport, TestStatus, Tokens,
};
use starling_syntax::{FilePath, Loss, SymbolPath, carry};
use starling_text::{ChangeSet, Conflict, ContentHash};
use starling_workspace::Snapshot;

/// Maximum total size of the messages of failing tests.
const DETAILS_MOST: Tokens = Tokens(1_100);
/// Maximum size of one failure message, in bytes. The end is kept, because it names the error.
const EACH_MOST: usize = 2_400;
/// Maximum size of the output of a command that names no test, in bytes.
const OUTPUT_MOST: usize = 4_000;

/// Number of a proposal within its run, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProposalId(pub u32);

impl fmt::Display for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The change that one proposal makes to its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    pub proposal: ProposalId,
    /// The owner that made the proposal.
    pub symbol: SymbolPath,
    pub symbols: Vec<SymbolPath>,
    pub reason: String,
    pub file: FilePath,
    /// The text that the change is based on.
    pub base: Arc<str>,
    pub changes: ChangeSet,
}

impl FileChange {
    /// Rebases the change onto `current`, a later version of the file.
    ///
    /// # Errors
    /// Returns a [`Conflict`] if `current` changed in the same place, or if the place of the change
    /// is ambiguous.
    pub fn over(&self, current: &str) -> Result<ChangeSet, Conflict> {
        carry(&self.file, &self.base, &self.changes, current)
    }

    /// Returns why the change cannot be applied to a file that cannot be read, and what to do about
    /// it. Returns `None` if the change creates the file.
    pub fn lost(&self, error: &EditorError) -> Option<String> {
        let (file, proposal) = (&self.file, self.proposal);
        let happened = match error {
            EditorError::Missing { .. } if self.base.is_empty() => return None,
            EditorError::Missing { .. } => {
                format!("{file} is gone: it was deleted or renamed since the change was made")
            }
            EditorError::Forbidden { why } => {
                format!("{file} may not be read any more, it may be a link now ({why})")
            }
            EditorError::Unreadable { .. } | EditorError::Gone => error.to_string(),
        };
        Some(format!(
            "{happened}; put the file back, or reject {proposal}"
        ))
    }

    /// Describes a conflict with the user's text for the reviewer: the lines and what to do.
    pub fn conflict_told(&self, conflict: &Conflict) -> String {
        let (file, proposal) = (&self.file, self.proposal);
        let lines = conflict.in_lines(&self.base);
        format!("{file}: {lines}; take your own change of it back, or reject {proposal}")
    }
}

/// Results of the tests for a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tests", rename_all = "snake_case")]
pub enum TestEvidence {
    /// The tests did not run.
    Unknown { reason: String },
    Known {
        command: String,
        outcome: TestOutcome,
        passed: usize,
        /// Tests that failed before and pass now.
        fixed: Vec<String>,
        /// Tests that passed or did not exist before, and fail now.
        broken: Vec<String>,
        /// Tests that failed before and still fail.
        still_failing: Vec<String>,
        /// Tests that both failed and passed with the change when they were repeated.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unsteady: Vec<String>,
        /// Failure messages, capped.
        details: String,
        millis: u64,
        #[serde(default, skip_serializing_if = "Tried::is_all")]
        tried: Tried,
        #[serde(default, skip_serializing_if = "OnlyAsChanged::is_empty")]
        only_as_changed: Box<OnlyAsChanged>,
        #[serde(default, skip_serializing_if = "ResultSource::is_reporter")]
        source: ResultSource,
    },
}

/// Tests that pass with the test files that the run changed, but not with the original test files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnlyAsChanged {
    pub tests: Vec<String>,
    /// Files that contain changed tests and that could not run with their original text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheld: Vec<String>,
    /// Tests that are flaky with their original text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsteady: Vec<String>,
    /// Why the tests fail with their original text, capped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
}

impl OnlyAsChanged {
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty() && self.unsteady.is_empty() && self.unheld.is_empty()
    }
}

/// The selection of tests that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "run", rename_all = "snake_case")]
pub enum Tried {
    /// All tests of the command.
    #[default]
    All,
    /// The tests nearest to the change, and the tests that were named or failed before.
    Nearest {
        /// Number of selected test functions. Each can run as several cases.
        tests: usize,
        /// Number of test functions in the workspace.
        of: usize,
        /// Whether one of them is near the change.
        #[serde(default = "yes")]
        are_near: bool,
        files: Vec<FilePath>,
        /// Whether the whole command runs at the end of the run. If false, the files of the nearest
        /// tests run instead.
        whole_at_end: bool,
    },
}

/// Older records tell only of nearest tests.
fn yes() -> bool {
    true
}

impl Tried {
    fn is_all(&self) -> bool {
        match self {
            Tried::All => true,
            Tried::Nearest { .. } => false,
        }
    }

    /// Describes the number of selected tests out of all tests; `None` if all tests ran.
    pub fn count(&self) -> Option<String> {
        match self {
            Tried::All => None,
            Tried::Nearest {
                tests,
                of,
                are_near: true,
                ..
            } => Some(format!("{tests} nearest of {of} test functions")),
            Tried::Nearest { tests, of, .. } => Some(format!(
                "none is near the change; {tests} of {of} test functions"
            )),
        }
    }
}

/// How a change affects a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestDelta {
    Fixed,
    Broken,
    StillFailing,
    /// The test is flaky: it fails and passes on the same text.
    Unsteady,
}

impl TestDelta {
    /// Returns the label that is shown to users and models.
    pub fn word(self) -> &'static str {
        match self {
            TestDelta::Fixed => "fixed",
            TestDelta::Broken => "BROKEN by this change",
            TestDelta::StillFailing => "still failing",
            TestDelta::Unsteady => "failing now and then",
        }
    }
}

/// The proposal changes a contract, and agents update the callers later.
pub(crate) const CALLERS_FOLLOW: &str = "it changes a contract, and the callers follow";
/// The agent said that more proposals follow.
pub(crate) const MORE_COMES: &str = "the agent has more to propose";
/// Other agents are working and may fix the problem.
pub(crate) const OTHERS_WORK: &str = "other agents are still at work";
/// Reasons to show a proposal that fails its checks. They are valid only while the run continues.
const WHILE_IT_RUNS: [&str; 3] = [CALLERS_FOLLOW, MORE_COMES, OTHERS_WORK];

/// All check results of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub tests: TestEvidence,
    pub diagnostics: DiagnosticEvidence,
    /// The automatic changes to the proposal's imports.
    #[serde(default, skip_serializing_if = "ImportMends::is_empty")]
    pub imports: ImportMends,
    /// The code that the change removes in addition to what it rewrites.
    pub losses: Vec<Loss>,
    /// Descriptions of the contract changes; empty if the contract does not change.
    pub contract: Vec<String>,
    /// Owners of references that a changed contract can break.
    pub callers: Vec<SymbolPath>,
    /// Owners of such references whose own changes are in the same set, so that no follow-up is
    /// needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers_in_set: Vec<SymbolPath>,
    /// Number of tests with calls that the changed contract breaks.
    #[serde(default)]
    pub test_callers: usize,
    /// The changes that only a person can accept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_person: Vec<NeedsPerson>,
    /// Results of the joint check with other waiting proposals, if the proposal fails alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<JointEvidence>,
    /// Versions of the other files that the proposal was checked with.
    #[serde(default, skip_serializing_if = "CheckedTexts::is_empty")]
    pub texts: CheckedTexts,
    /// The check failure that is overridden by showing the proposal to a person, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden: Option<String>,
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
    /// Hashes of the texts that differ from the files on disk: unsaved buffers, and files that the
    /// run changed.
    pub over_disk: BTreeMap<FilePath, ContentHash>,
    /// Files that changed while the checks ran.
    pub changed_since: Vec<FilePath>,
}

impl CheckedTexts {
    /// Compares the workspace that was checked with the workspace `now`, after the check.
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

/// Formats proposal ids as a comma-separated list.
pub fn ids(proposals: &[ProposalId]) -> String {
    let ids: Vec<String> = proposals.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

impl TestEvidence {
    /// Returns the tests that failed before or fail now, grouped by [`TestDelta`].
    pub fn fates(&self) -> impl Iterator<Item = (TestDelta, &[String])> {
        let all: [(TestDelta, &[String]); 4] = match self {
            TestEvidence::Unknown { .. } => [
                (TestDelta::Fixed, &[]),
                (TestDelta::Broken, &[]),
                (TestDelta::StillFailing, &[]),
                (TestDelta::Unsteady, &[]),
            ],
            TestEvidence::Known {
                fixed,
                broken,
                still_failing,
                unsteady,
                ..
            } => [
                (TestDelta::Fixed, fixed),
                (TestDelta::Broken, broken),
                (TestDelta::StillFailing, still_failing),
                (TestDelta::Unsteady, unsteady),
            ],
        };
        all.into_iter().filter(|(_, ids)| !ids.is_empty())
    }

    /// Compares a test report with the tests that failed without the change.
    pub fn compare(was: &BTreeSet<String>, after: &TestReport) -> TestEvidence {
        if after.outcome == TestOutcome::NotRun {
            let reason = format!(
                "`{}` ran no test: {}",
                after.command,
                tail(&after.output, 400)
            );
            return TestEvidence::Unknown { reason };
        }
        let is = failing_ids(after);
        let passed_now = |id: &String| {
            after
                .cases
                .iter()
                .any(|case| case.id == *id && case.status == TestStatus::Passed)
                || (id == WHOLE_RUN && after.outcome == TestOutcome::Passed)
        };
        let failed: Vec<&TestCase> = after
            .cases
            .iter()
            .filter(|case| is.contains(&case.id))
            .collect();
        // Failures that existed before are known already, so their messages are used only if there
        // are no new failures.
        let new = failed.iter().filter(|case| !was.contains(&case.id));
        let new: Vec<&TestCase> = new.copied().collect();
        let details = each_error_once(if new.is_empty() { &failed } else { &new });
        let details = if details.is_empty() && !is.is_empty() {
            tail(&after.output, OUTPUT_MOST).to_owned()
        } else {
            details
        };
        let unsteady = after.cases.iter();
        let unsteady = unsteady.filter(|case| case.status == TestStatus::Unsteady);
        TestEvidence::Known {
            command: after.command.clone(),
            outcome: after.outcome,
            passed: after
                .cases
                .iter()
                .filter(|case| case.status == TestStatus::Passed)
                .count(),
            fixed: was.iter().filter(|id| passed_now(id)).cloned().collect(),
            broken: is.iter().filter(|id| !was.contains(*id)).cloned().collect(),
            still_failing: is.iter().filter(|id| was.contains(*id)).cloned().collect(),
            unsteady: unsteady.map(|case| case.id.clone()).collect(),
            details,
            millis: after.millis,
            tried: Tried::All,
            only_as_changed: Box::default(),
            source: after.source,
        }
    }

    /// Marks the results as those of a selection of tests, and replaces the shown command by the
    /// plain command.
    pub fn by(mut self, plain: String, some: Tried) -> TestEvidence {
        match &mut self {
            TestEvidence::Unknown { .. } => {}
            TestEvidence::Known { command, tried, .. } => {
                *command = plain;
                *tried = some;
            }
        }
        self
    }

    /// Adds the tests that pass only with the run's changes to the tests.
    pub fn with_changed(mut self, found: OnlyAsChanged) -> TestEvidence {
        match &mut self {
            TestEvidence::Unknown { .. } => {}
            TestEvidence::Known {
                only_as_changed, ..
            } => **only_as_changed = found,
        }
        self
    }

    /// Returns a note for counts that were parsed from printed output.
    pub fn by_print(&self) -> &'static str {
        match self {
            TestEvidence::Known {
                source: ResultSource::Printed,
                ..
            } => ", by what the command printed",
            TestEvidence::Known { .. } | TestEvidence::Unknown { .. } => "",
        }
    }

    /// Returns the tests that pass only with the run's changes to the tests; `None` if there are
    /// none.
    pub fn only_as_changed(&self) -> Option<&OnlyAsChanged> {
        match self {
            TestEvidence::Unknown { .. } => None,
            TestEvidence::Known {
                only_as_changed, ..
            } => Some(&**only_as_changed).filter(|found| !found.tests.is_empty()),
        }
    }

    /// Returns the results of the tests with their original text.
    pub fn with_original(&self) -> OnlyAsChanged {
        match self {
            TestEvidence::Unknown { .. } => OnlyAsChanged::default(),
            TestEvidence::Known {
                only_as_changed, ..
            } => (**only_as_changed).clone(),
        }
    }

    /// Returns whether the results cover all tests of the command.
    pub fn is_of_all(&self) -> bool {
        match self {
            TestEvidence::Unknown { .. } => true,
            TestEvidence::Known { tried, .. } => tried.is_all(),
        }
    }

    /// Returns whether some of the required tests still fail and none of them is fixed.
    pub fn fixes_none_of(&self, required: &BTreeSet<String>) -> bool {
        match self {
            TestEvidence::Unknown { .. } => false,
            TestEvidence::Known {
                fixed,
                still_failing,
                ..
            } => {
                still_failing.iter().any(|id| required.contains(id))
                    && !fixed.iter().any(|id| required.contains(id))
            }
        }
    }

    /// Returns the tests that fail only with the change.
    pub fn broken(&self) -> &[String] {
        match self {
            TestEvidence::Unknown { .. } => &[],
            TestEvidence::Known { broken, .. } => broken,
        }
    }
}

/// Joins the messages of failing tests. Failures with the same last line are shown once and
/// counted.
fn each_error_once(failed: &[&TestCase]) -> String {
    let error = |case: &TestCase| {
        case.message
            .trim_end()
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    let mut told: Vec<(String, String, Vec<&str>)> = Vec::new();
    for case in failed {
        let error = error(case);
        match told
            .iter_mut()
            .find(|(known, _, _)| !error.is_empty() && *known == error)
        {
            Some((_, _, same)) => same.push(&case.id),
            None => told.push((
                error,
                format!("{}\n{}", case.id, case.message.trim_end()),
                Vec::new(),
            )),
        }
    }
    let texts = told
        .into_iter()
        .map(|(_, text, same)| match same.as_slice() {
            [] => text,
            [one] => format!("{text}\n(the same: {one})"),
            [one, more @ ..] => format!("{text}\n(the same: {one} and {} more)", more.len()),
        });
    as_many_as_fit(texts.collect())
}

/// Joins as many texts as the limit allows, at least one, and adds the number of omitted texts.
fn as_many_as_fit(texts: Vec<String>) -> String {
    let all = texts.len();
    let mut shown: Vec<String> = Vec::new();
    let mut left = DETAILS_MOST;
    for text in texts {
        let text = tail(&text, EACH_MOST);
        let cost = Tokens::estimate(text);
        if cost > left && !shown.is_empty() {
            break;
        }
        left = left.saturating_sub(cost);
        shown.push(text.to_owned());
    }
    match all - shown.len() {
        0 => {}
        more => shown.push(format!("({more} other errors are not shown)")),
    }
    shown.join("\n\n")
}

/// Test id that stands for the whole command when single tests cannot be identified.
pub const WHOLE_RUN: &str = "(the test command)";

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

/// Joins test ids for display. [`WHOLE_RUN`] is written without its parentheses.
pub(crate) fn named(ids: &[String]) -> String {
    let name = |id: &String| match id == WHOLE_RUN {
        true => "the test command".to_owned(),
        false => id.clone(),
    };
    ids.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns the ids of the failing tests in a report. [`WHOLE_RUN`] is included if the command
/// failed without naming a test, or did not run to its end.
pub fn failing_ids(report: &TestReport) -> Vec<String> {
    let bad = |status: TestStatus| matches!(status, TestStatus::Failed | TestStatus::Error);
    let mut ids: Vec<String> = report
        .cases
        .iter()
        .filter(|case| bad(case.status))
        .map(|case| case.id.clone())
        .collect();
    let whole = match report.outcome {
        TestOutcome::Failed => ids.is_empty(),
        TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => true,
        TestOutcome::Passed | TestOutcome::NotRun => false,
    };
    if whole {
        ids.push(WHOLE_RUN.to_owned());
    }
    ids
}

/// Returns the last `cap` bytes of a text, starting at a line if a line break is near.
pub fn tail(text: &str, cap: usize) -> &str {
    if text.len() <= cap {
        return text;
    }
    let mut start = text.len() - cap;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    match text[start..].find('\n') {
        Some(line_end) if line_end < 200 => &text[start + line_end + 1..],
        Some(_) | None => &text[start..],
    }
}

impl Evidence {
    /// Returns the proposals under review without which this proposal fails.
    pub fn needs(&self) -> &[ProposalId] {
        let together = self.together.as_ref();
        together.map_or(&[], |together| together.needs.as_slice())
    }

    /// Returns the proposals outside `set` that were part of the joint check that `set` passed.
    /// Without them, `set` may fail.
    pub fn passes_with(&self, set: &BTreeSet<ProposalId>) -> BTreeSet<ProposalId> {
        let together = self.together.as_ref().filter(|together| together.passes());
        together.map_or_else(BTreeSet::new, |together| together.passes_with(set))
    }

    /// Returns the evidence as it applies after the run: no agent follows up, so broken tests stay
    /// broken.
    pub fn of_ended(&self) -> Evidence {
        let overridden = self.overridden.as_deref().map(|told| {
            let reason = WHILE_IT_RUNS
                .iter()
                .find_map(|reason| told.strip_suffix(&format!(" ({reason})")));
            reason.map_or_else(|| told.to_owned(), |told| self.left_broken(told))
        });
        Evidence {
            overridden,
            ..self.clone()
        }
    }

    /// Describes the failed checks and the tests that stay broken.
    fn left_broken(&self, told: &str) -> String {
        let end = "the run is over, so nobody follows";
        match &self.tests {
            TestEvidence::Known { broken, .. }
                if !broken.is_empty() && !told.contains(&named(broken)) =>
            {
                format!("{told}; {} ({end})", breaks(broken))
            }
            TestEvidence::Known { .. } | TestEvidence::Unknown { .. } => format!("{told} ({end})"),
        }
    }

    /// Moves the callers that change in the same set from `callers` to `callers_in_set`.
    pub fn callers_change_with(&mut self, is_in_set: impl Fn(&SymbolPath) -> bool) {
        let callers = std::mem::take(&mut self.callers);
        let (inside, outside) = callers.into_iter().partition(is_in_set);
        self.callers = outside;
        self.callers_in_set = inside;
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
        match (told.is_empty(), self.test_callers) {
            (true, 0) => "none".to_owned(),
            (true, tests) => format!("only tests ({tests})"),
            (false, _) => told.join("; "),
        }
    }

    /// Returns the decisive results: those of the joint check if the set passes, otherwise those of
    /// the standalone check.
    pub fn counting(&self) -> (&TestEvidence, &DiagnosticEvidence) {
        match &self.together {
            Some(together) if together.passes() => (&together.tests, &together.diagnostics),
            Some(_) | None => (&self.tests, &self.diagnostics),
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.needs_person {
            writeln!(f, "needs your own yes: {one}")?;
        }
        if let Some(overridden) = &self.overridden {
            writeln!(f, "SHOWN ALTHOUGH {overridden}")?;
        }
        match &self.together {
            Some(together) if together.passes() => write!(f, "{together}")?,
            Some(together) => write!(f, "{}{together}{}", self.tests, self.diagnostics)?,
            None => write!(f, "{}{}", self.tests, self.diagnostics)?,
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
        let label = if self.callers.is_empty() && !self.callers_in_set.is_empty() {
            "callers"
        } else {
            "callers to follow up"
        };
        writeln!(f, "{label}: {}", self.callers_in_words())
    }
}

impl fmt::Display for TestEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (command, outcome, passed, tried, fails, details, millis) = match self {
            TestEvidence::Unknown { reason } => return writeln!(f, "tests: unknown ({reason})"),
            TestEvidence::Known {
                command,
                outcome,
                passed,
                broken,
                still_failing,
                details,
                millis,
                tried,
                fixed: _,
                unsteady: _,
                only_as_changed: _,
                source: _,
            } => {
                let fails = !broken.is_empty() || !still_failing.is_empty();
                (command, outcome, passed, tried, fails, details, millis)
            }
        };
        let seconds = *millis as f64 / 1000.0;
        let passed = match passed {
            0 if *outcome == TestOutcome::Passed => ": no test that Starling can see".to_owned(),
            0 => String::new(),
            passed => format!(": {passed} pass{}", self.by_print()),
        };
        let outcome = outcome.word();
        let some = tried
            .count()
            .map_or(String::new(), |count| format!("{count}, "));
        writeln!(
            f,
            "tests: {some}`{command}` {outcome} in {seconds:.1} s{passed}"
        )?;
        if let Tried::Nearest {
            files,
            whole_at_end,
            ..
        } = tried
        {
            let at_end = match whole_at_end {
                true => "the whole command runs",
                false => "the files of the nearest tests run",
            };
            let files: Vec<String> = files.iter().map(ToString::to_string).collect();
            writeln!(f, "  in {}; at the end of the run, {at_end}", few(&files))?;
        }
        for (fate, ids) in self.fates() {
            writeln!(f, "  {} ({}): {}", fate.word(), ids.len(), few(ids))?;
        }
        write_changed(f, self)?;
        match fails {
            false => Ok(()),
            true => writeln!(f, "{details}"),
        }
    }
}

/// Writes the lines about tests that pass only with the run's changes to the tests.
pub(crate) fn write_changed(f: &mut fmt::Formatter<'_>, tests: &TestEvidence) -> fmt::Result {
    if let TestEvidence::Known {
        only_as_changed, ..
    } = tests
    {
        for (what, ids) in [
            (
                "failing now and then with the original test files",
                &only_as_changed.unsteady,
            ),
            (
                "changed together with tests in it, which do not run with their original text",
                &only_as_changed.unheld,
            ),
        ] {
            if !ids.is_empty() {
                writeln!(f, "  {what} ({}): {}", ids.len(), few(ids))?;
            }
        }
    }
    match tests.only_as_changed() {
        Some(found) => {
            let (count, ids) = (found.tests.len(), few(&found.tests));
            writeln!(
                f,
                "  PASS ONLY AS THE RUN CHANGED THE TESTS ({count}): {ids}; with the original test files they do not pass"
            )
        }
        None => Ok(()),
    }
}

pub(crate) fn few(ids: &[String]) -> String {
    let shown = ids.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
    if ids.len() > 8 {
        format!("{shown} and {} more", ids.len() - 8)
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_is_told_once() {
        let case = |id: &str, message: &str| TestCase {
            id: id.into(),
            status: TestStatus::Failed,
            message: message.into(),
        };
        let cases = [
            case("a", "line 1\nTypeError: x"),
            case("b", "line 2\nTypeError: x"),
            case("c", ""),
            case("d", ""),
        ];
        let text = each_error_once(&cases.iter().collect::<Vec<_>>());
        assert_eq!(text, "a\nline 1\nTypeError: x\n(the same: b)\n\nc\n\n\nd\n");
    }
}
