//! The data about a run from which its result and headline are derived.

use std::collections::BTreeSet;

use crate::event::events::StopReason;
use crate::evidence::example::ExampleEvidence;
use crate::evidence::without_change::WithoutChange;
use crate::run::aim::ChangeRelevance;
use crate::task::goal::Goal;
use starling_core::TestReport;
use starling_syntax::SymbolPath;

/// The data about a run at its end.
#[derive(Debug)]
pub(crate) struct RunFacts<'a> {
    pub stop_reason: &'a StopReason,
    pub task: &'a str,
    pub goal: Goal,
    /// Symbols whose changes are in the workspace at the end.
    pub changed: &'a [SymbolPath],
    pub taken_back: TakenBack<'a>,
    /// Why a change was not taken back although the run did not settle.
    pub not_taken_back: Option<&'a str>,
    /// The report of the last test run with the changes, if the changes were reverted.
    pub with_changes: Option<&'a TestReport>,
    /// The owners whose last work ended without a change, each with its reason.
    pub declined: &'a [String],
    pub last_check: LastCheck<'a>,
    pub failed_before: &'a BTreeSet<String>,
    /// Tests of these that did not run before, because their file or another one could not be
    /// loaded.
    pub did_not_run: &'a BTreeSet<String>,
    /// Failing tests that the task is about.
    pub required: &'a BTreeSet<String>,
    /// Failing tests that the task may be about.
    pub possible: &'a BTreeSet<String>,
    /// Tests that pass with the test files that the run changed, but not with the original test
    /// files.
    pub only_as_changed: &'a [String],
    /// Changed test files whose tests could not be run with their original text.
    pub unheld: &'a [String],
    /// Flaky tests: they both failed and passed on the workspace as the run leaves it.
    pub unsteady: &'a [String],
    /// Flaky tests whose flakiness the run may have caused. If there are any, the changes are not
    /// proven.
    pub doubtful: &'a [String],
    /// The results of the task's examples before the run and at its end.
    pub examples: &'a [ExampleEvidence],
    /// Results of the run's new tests on the original code.
    pub new_tests: &'a WithoutChange,
    /// Changed functions whose change no test covers: if only such a function gets its original
    /// text back, all tests still pass.
    pub unshown_parts: &'a [SymbolPath],
    /// Changed symbols that no test reaches for certain.
    pub unreached: &'a [SymbolPath],
    /// Whether the run changed code whose behaviour a test can check.
    pub behaves_otherwise: bool,
    /// Whether only documents, comments and docstrings were changed.
    pub only_words: bool,
    /// Whether and how the run changed the code that the task names.
    pub aim: &'a ChangeRelevance,
    /// Whether the tests that still fail are no part of the task: it describes a bug in code that no
    /// failing test reaches, or the run fixed the test that fits the task.
    pub beside_failures: bool,
    /// Descriptions of the proposals that the checks refused and that no applied change replaced.
    pub left_out: &'a [String],
    /// Whether the task names the code of one of these proposals.
    pub left_out_is_named: bool,
    /// Descriptions of the proposals that the person rejected.
    pub rejected: &'a [String],
    /// Descriptions of the problems that the changes introduced, including problems that the person
    /// accepted.
    pub problems: &'a [String],
    /// Files of refused proposals whose changes need a person's acceptance, with what allows them.
    pub needs_your_yes: &'a [String],
    /// Whether what was applied is only a part of what was proposed.
    pub is_a_part: bool,
    /// Why the last proposal was refused, if no proposal was applied.
    pub refused: Option<&'a str>,
    /// The report of the test run before the first change.
    pub report_before: Option<&'a TestReport>,
    /// Whether every agent reported that its symbol needs no change, and no failing test
    /// contradicts this.
    pub nothing_to_change: bool,
}

/// Whether the changes of a run were reverted at its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TakenBack<'a> {
    No,
    /// Contains the path of the patch with the changes, if the patch could be written.
    Yes(Option<&'a str>),
}

/// The last test run on the workspace as the run leaves it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LastCheck<'a> {
    Absent { why: &'a str },
    Known(&'a TestReport),
}
