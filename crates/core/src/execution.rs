//! Records of test runs: the lines of code that tests executed, and the values of variables where
//! tests failed.

use std::collections::{BTreeMap, BTreeSet};

use starling_syntax::FilePath;

/// A line of the project's code, counted from 1.
pub type CodeLine = (FilePath, u32);

/// The code of the project that failing tests executed, and that passing tests of the same run
/// executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Executions {
    pub failing: Vec<FailingExecution>,
    /// Number of passing tests whose lines were recorded.
    pub passed: usize,
    /// For each line, the number of passing tests that executed it.
    pub passing: BTreeMap<CodeLine, usize>,
}

/// The code of the project that one failing test executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingExecution {
    pub id: String,
    /// The project's frames in the traceback of the failure, outermost first.
    pub frames: Vec<ExecutedFrame>,
    /// The executed lines; empty if they could not be recorded. The first line of a function that was
    /// called is always among them, and may be its only one.
    pub lines: BTreeSet<CodeLine>,
}

/// A frame of a failing test's traceback with the values of its local variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedFrame {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    pub function: String,
    /// The local variables, each as `name = value`. Long values are shortened, and secrets
    /// are replaced.
    pub values: Vec<String>,
}
