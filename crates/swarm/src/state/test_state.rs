//! What is known about the project's tests.

use std::collections::BTreeSet;

use crate::evidence::ids::is_inside;
use crate::evidence::test_evidence::{OnlyAsChanged, TestEvidence};
use crate::evidence::without_change::WithoutChange;
use crate::state::epoch::Epoch;
use crate::state::test_scope::{SelectionPolicy, TestScope};
use crate::task::names::Names;
use starling_core::TestReport;
use starling_syntax::SymbolPath;

/// The results of earlier test runs, and what is known about the tests from these results.
#[derive(Default)]
pub(crate) struct TestState {
    /// Report of the tests before the first change.
    pub before: Option<TestReport>,
    /// Tests known to fail in the current workspace.
    pub failing: BTreeSet<String>,
    /// Tests known to fail in the workspace before the run.
    pub failing_before: BTreeSet<String>,
    /// Failing tests of which it is not known whether they passed before the run: their file could
    /// not be loaded then, or another such file stopped the command.
    pub did_not_run: BTreeSet<String>,
    /// Tests that run in the current workspace when the whole test command runs. A change must not
    /// prevent these tests from running.
    pub expected: BTreeSet<String>,
    /// Tests that need not run any more, because the task asked for their removal or an accepted
    /// change breaks them.
    pub let_go: BTreeSet<String>,
    /// Report of the last test run over the current workspace.
    pub latest: Option<TestReport>,
    /// The tests that pass with the changed test files but not with the original ones, with the
    /// version of the workspace in which this was found.
    pub only_as_changed: Option<(Epoch, OnlyAsChanged)>,
    pub required: RequiredTests,
    pub selection: SelectionState,
    pub flaky: FlakyTests,
    pub at_end: FoundAtEnd,
}

/// Results of the checks at the end of a run.
#[derive(Default)]
pub(crate) struct FoundAtEnd {
    /// Results of the run's new tests on the original code, if these tests were tried.
    pub new_tests: WithoutChange,
    /// Problems that the changes introduced, as text.
    pub problems: Vec<String>,
    /// The report of the last test run with the changes, if the changes were reverted.
    pub with_changes: Option<TestReport>,
}

/// The tests that the task is about, and the symbols and files that it names.
#[derive(Default)]
pub(crate) struct RequiredTests {
    /// Failing tests that have to pass in the end.
    pub ids: BTreeSet<String>,
    /// Failing tests that use a file which the task names, so that the task may be about these
    /// tests.
    pub near: BTreeSet<String>,
    /// Failing tests that the task may be about: they reach its code from afar, or one of its
    /// wishes fits them by its words. A run that leaves them red is not proven.
    pub possible: BTreeSet<String>,
    /// Failing tests that the task says to leave as they are.
    pub excluded: BTreeSet<String>,
    /// The symbols and files that the task names; `None` until they have been looked up.
    pub names: Option<Names>,
    /// Symbols that the task names or the scout picked.
    pub targets: Vec<SymbolPath>,
    /// Whether the task describes a bug in code that no failing test reaches. The failing tests are
    /// then not part of the task.
    pub beside_failures: bool,
}

/// The data from which the tests that run for a change are selected.
pub(crate) struct SelectionState {
    /// Tests that the task or an agent named.
    pub named: Vec<String>,
    pub scope: TestScope,
    pub policy: SelectionPolicy,
    /// Test ids that select no test, neither with a change nor without it.
    pub never_run: BTreeSet<String>,
}

impl Default for SelectionState {
    fn default() -> Self {
        SelectionState {
            named: Vec::new(),
            scope: TestScope::WHOLE,
            policy: SelectionPolicy::default(),
            never_run: BTreeSet::new(),
        }
    }
}

/// Flaky tests, which both fail and pass on the same text, and what repeated runs showed about
/// other tests.
#[derive(Default)]
pub(crate) struct FlakyTests {
    /// The version of the workspace whose last failures were checked by a repeated test run, with
    /// the required tests that were flaky there.
    pub repeated: Option<(Epoch, Vec<String>)>,
    /// Tests that failed in more than one run without a change, so that they are not flaky.
    pub failed_again: BTreeSet<String>,
    /// Tests that both failed and passed without a change.
    pub unsteady_before: BTreeSet<String>,
}

impl TestState {
    /// Updates the failing and expected tests with the results of an applied change.
    pub fn note(&mut self, tests: &TestEvidence) {
        if let TestEvidence::Known {
            fixed,
            broken,
            uncounted,
            ..
        } = tests
        {
            let is_loaded = |id: &String| fixed.iter().any(|one| is_inside(one, id));
            self.failing
                .retain(|id| !fixed.contains(id) && !is_loaded(id));
            self.expected
                .retain(|id| !uncounted.gone_cases.contains(id));
            self.failing.extend(broken.iter().cloned());
            self.expected.retain(|id| !broken.contains(id));
            self.let_go.extend(broken.iter().cloned());
        }
    }
}
