//! Test results for a change, compared with the results without the change.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::evidence::ids::{WHOLE_RUN, few, tail};
use starling_core::{ResultSource, TestCase, TestOutcome, TestReport, TestStatus, Tokens};
use starling_syntax::FilePath;

/// Results of the tests for a change, compared with the results without the change.
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
        /// Failure messages, capped.
        details: String,
        millis: u64,
        #[serde(default, skip_serializing_if = "Tried::is_all")]
        tried: Tried,
        #[serde(default, skip_serializing_if = "OnlyAsChanged::is_empty")]
        only_as_changed: Box<OnlyAsChanged>,
        #[serde(flatten)]
        uncounted: Box<UncountedTests>,
        #[serde(default, skip_serializing_if = "ResultSource::is_reporter")]
        source: ResultSource,
    },
}

/// Tests that pass with the test files that the run changed, but not with the original test files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnlyAsChanged {
    pub tests: Vec<String>,
    /// Test files that the run changed and whose tests could not be run with the original text.
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

/// Tests whose results count neither for nor against a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncountedTests {
    /// Tests that both failed and passed on the same text when they were repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsteady: Vec<String>,
    /// Tests that failed earlier and pass now, not because of this change but because other files
    /// were changed meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mended_elsewhere: Vec<String>,
    /// Cases that passed before and no longer exist, because the change edits the parametrized test
    /// to which they belong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone_cases: Vec<String>,
}

impl UncountedTests {
    /// Collects the uncounted tests of a report: tests with the status "unsteady", and tests whose
    /// message ends in one of the marks.
    fn of(report: &TestReport) -> UncountedTests {
        let marked = |mark: &str| {
            let cases = report.cases.iter();
            let marked = cases.filter(|case| case.message.ends_with(mark));
            marked.map(|case| case.id.clone()).collect()
        };
        let unsteady = report.cases.iter();
        let unsteady = unsteady.filter(|case| case.status == TestStatus::Unsteady);
        UncountedTests {
            unsteady: unsteady.map(|case| case.id.clone()).collect(),
            mended_elsewhere: marked(MENDED_ELSEWHERE),
            gone_cases: marked(GONE_CASE),
        }
    }
}

/// Beginning of the line that [`TestReport::output`] ends in if the tests reached their time limit.
pub(crate) const LIMIT_NOTE: &str = "the tests ran into the time limit of ";
/// Mark of an uncounted test, the last line of its message: it passes because files were changed
/// meanwhile.
pub(crate) const MENDED_ELSEWHERE: &str =
    "failed earlier, and passes now that files were changed meanwhile";
/// Mark of an uncounted case, the last line of its message: it no longer exists because the change
/// edits its parametrized test.
pub(crate) const GONE_CASE: &str =
    "passed before, and is gone: the change edits the parametrized test";

/// Which tests ran for a check.
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
        /// Whether at least one of the selected tests is near the change.
        #[serde(default = "yes")]
        are_near: bool,
        files: Vec<FilePath>,
        /// Whether the whole command runs at the end of the run. If false, the files of the nearest
        /// tests run instead.
        whole_at_end: bool,
    },
}

/// Default for records of older versions, in which a selection always contained tests near the
/// change.
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

    /// Returns whether no selected test is near the change: they are named, or failed before.
    pub fn has_none_near(&self) -> bool {
        match self {
            Tried::All => false,
            Tried::Nearest { are_near, .. } => !are_near,
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
            Tried::Nearest { tests, .. } => Some(format!(
                "none is near the change; {tests} that failed before or are named"
            )),
        }
    }
}

/// The effect of a change on a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestDelta {
    Fixed,
    Broken,
    StillFailing,
    /// The test is flaky: it fails and passes on the same text.
    Unsteady,
    /// The test passes because other files were changed meanwhile, not because of the change.
    MendedElsewhere,
    /// The case no longer exists, because the change edits its parametrized test.
    GoneCase,
}

impl TestDelta {
    /// Returns the label that is shown to users and models.
    pub fn word(self) -> &'static str {
        match self {
            TestDelta::Fixed => "fixed",
            TestDelta::Broken => "BROKEN by this change",
            TestDelta::StillFailing => "still failing",
            TestDelta::Unsteady => "failing now and then",
            TestDelta::MendedElsewhere => {
                "passing since files changed meanwhile, not by this change"
            }
            TestDelta::GoneCase => "gone with the change of their parametrized test",
        }
    }
}

impl TestEvidence {
    /// Returns the tests that failed before or fail now, grouped by [`TestDelta`].
    pub fn fates(&self) -> impl Iterator<Item = (TestDelta, &[String])> {
        let all: Vec<(TestDelta, &[String])> = match self {
            TestEvidence::Unknown { .. } => Vec::new(),
            TestEvidence::Known {
                fixed,
                broken,
                still_failing,
                uncounted,
                ..
            } => vec![
                (TestDelta::Fixed, fixed),
                (TestDelta::Broken, broken),
                (TestDelta::StillFailing, still_failing),
                (TestDelta::Unsteady, &uncounted.unsteady),
                (TestDelta::MendedElsewhere, &uncounted.mended_elsewhere),
                (TestDelta::GoneCase, &uncounted.gone_cases),
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
            let is_fixed = |case: &TestCase| {
                case.status == TestStatus::Passed && !case.message.ends_with(MENDED_ELSEWHERE)
            };
            let mut cases = after.cases.iter();
            cases.any(|case| case.id == *id && is_fixed(case))
                || (id == WHOLE_RUN && after.outcome == TestOutcome::Passed)
        };
        let failed: Vec<&TestCase> = after
            .cases
            .iter()
            .filter(|case| is.contains(&case.id))
            .collect();
        // Messages of failures that existed before are shown only if there are no new failures.
        let new = failed.iter().filter(|case| !was.contains(&case.id));
        let new: Vec<&TestCase> = new.copied().collect();
        let details = each_error_once(if new.is_empty() { &failed } else { &new });
        let details = if details.is_empty() && !is.is_empty() {
            tail(&after.output, OUTPUT_MOST).to_owned()
        } else {
            details
        };
        let note = after.output.lines().last();
        let note = note.filter(|line| line.starts_with(LIMIT_NOTE) && !details.contains(*line));
        let details = match note {
            Some(note) => format!("{}\n{note}", details.trim_end()),
            None => details,
        };
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
            details,
            millis: after.millis,
            tried: Tried::All,
            only_as_changed: Box::default(),
            uncounted: Box::new(UncountedTests::of(after)),
            source: after.source,
        }
    }

    /// Records that only a selection of tests ran. The displayed command becomes `plain`, the
    /// command without the names of the selected tests.
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

    /// Adds the tests that pass with the changed test files, but not with the original ones.
    pub fn with_changed(mut self, found: OnlyAsChanged) -> TestEvidence {
        match &mut self {
            TestEvidence::Unknown { .. } => {}
            TestEvidence::Known {
                only_as_changed, ..
            } => **only_as_changed = found,
        }
        self
    }

    /// Returns a note that is added to test counts which were parsed from printed output.
    pub fn by_print(&self) -> &'static str {
        match self {
            TestEvidence::Known {
                source: ResultSource::Printed,
                ..
            } => ", by what the command printed",
            TestEvidence::Known { .. } | TestEvidence::Unknown { .. } => "",
        }
    }

    /// Returns the tests that pass with the changed test files, but not with the original ones;
    /// `None` if there are none.
    pub fn only_as_changed(&self) -> Option<&OnlyAsChanged> {
        match self {
            TestEvidence::Unknown { .. } => None,
            TestEvidence::Known {
                only_as_changed, ..
            } => Some(&**only_as_changed).filter(|found| !found.tests.is_empty()),
        }
    }

    /// Returns the results of the run in which the changed test files had their original text.
    pub fn with_original(&self) -> OnlyAsChanged {
        match self {
            TestEvidence::Unknown { .. } => OnlyAsChanged::default(),
            TestEvidence::Known {
                only_as_changed, ..
            } => (**only_as_changed).clone(),
        }
    }

    /// Returns whether all tests of the command ran, not only a selection.
    pub fn is_of_all(&self) -> bool {
        match self {
            TestEvidence::Unknown { .. } => false,
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

    /// If the test run was stopped before its end and only with the change, returns how it was.
    pub fn cut_short(&self) -> Option<String> {
        let TestEvidence::Known {
            outcome,
            broken,
            details,
            millis,
            ..
        } = self
        else {
            return None;
        };
        let is_cut = match outcome {
            TestOutcome::TimedOut
            | TestOutcome::OutOfMemory
            | TestOutcome::TooManyProcesses
            | TestOutcome::OutputTooLong
            | TestOutcome::WroteTooMuch => true,
            TestOutcome::Passed | TestOutcome::Failed | TestOutcome::NotRun => false,
        };
        let note = details.lines().last();
        let note = note.filter(|line| line.starts_with(LIMIT_NOTE));
        let told = || match note {
            Some(note) => note.to_owned(),
            None => format!("the tests {} after {} s", outcome.word(), millis / 1000),
        };
        (is_cut && broken.iter().any(|id| id == WHOLE_RUN)).then(told)
    }

    /// Returns the tests that fail only with the change.
    pub fn broken(&self) -> &[String] {
        match self {
            TestEvidence::Unknown { .. } => &[],
            TestEvidence::Known { broken, .. } => broken,
        }
    }
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
                only_as_changed: _,
                uncounted: _,
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

/// Writes the lines about tests that do not pass with the original test files.
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
/// Maximum size in bytes of the quoted output of a test command that names no test.
pub(crate) const OUTPUT_MOST: usize = 4_000;

/// Joins the messages of failing tests. Failures with the same last line are shown once and
/// counted.
pub(crate) fn each_error_once(failed: &[&TestCase]) -> String {
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
pub(crate) fn as_many_as_fit(texts: Vec<String>) -> String {
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

/// Maximum total size of the messages of failing tests.
pub(crate) const DETAILS_MOST: Tokens = Tokens(1_100);
/// Maximum size of one failure message, in bytes. The end is kept, because it names the error.
pub(crate) const EACH_MOST: usize = 2_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_error_of_several_tests_is_shown_once() {
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
