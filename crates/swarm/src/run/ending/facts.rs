//! What is known at the end of a run.

use std::collections::BTreeSet;

use crate::event::events::StopReason;
use crate::evidence::without_change::WithoutChange;
use crate::run::aim::Aim;
use crate::task::goal::Goal;
use starling_core::TestReport;
use starling_syntax::SymbolPath;

/// What a headline is made of.
#[derive(Debug)]
pub(crate) struct RunFacts<'a> {
    pub stop_reason: &'a StopReason,
    pub task: &'a str,
    pub goal: Goal,
    /// Symbols whose changes are in the workspace at the end.
    pub changed: &'a [SymbolPath],
    pub taken_back: TakenBack<'a>,
    pub last_check: LastCheck<'a>,
    pub failed_before: &'a BTreeSet<String>,
    /// Failing tests that the task is about.
    pub required: &'a BTreeSet<String>,
    /// Tests that pass only with test files that the run changed.
    pub only_as_changed: &'a [String],
    /// Files that were changed with tests in them that could not be held to their original text.
    pub unheld: &'a [String],
    /// Tests that fail and pass on the text that the run leaves.
    pub unsteady: &'a [String],
    /// Those of which the run may be the cause: with them nothing is proven.
    pub doubtful: &'a [String],
    /// What the run's new tests do on the code as it was.
    pub new_tests: &'a WithoutChange,
    /// Changed functions without whose change the tests that show the change pass as well.
    pub unshown_parts: &'a [SymbolPath],
    /// Changed symbols that surely no test reaches.
    pub unreached: &'a [SymbolPath],
    /// Whether code was changed whose behaviour tests can show.
    pub behaves_otherwise: bool,
    /// Whether only documents, comments and docstrings were changed.
    pub only_words: bool,
    /// How the changes stand to what the task names.
    pub aim: &'a Aim,
    /// The task tells of a bug in code that no failing test reaches.
    pub beside_failures: bool,
    /// Proposals that the checks refused for good, in words.
    pub left_out: &'a [String],
    /// Proposals that the person rejected, in words.
    pub rejected: &'a [String],
    /// Problems that the changes brought, be it with the person's leave, in words.
    pub problems: &'a [String],
    /// Why the last proposal was refused, where none was applied.
    pub refused: Option<&'a str>,
    /// The test run before anything was changed.
    pub report_before: Option<&'a TestReport>,
    /// Every agent says that its symbol needs no change, and no test says otherwise.
    pub nothing_to_change: bool,
}

/// Whether the changes of a run were taken back at its end.
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
