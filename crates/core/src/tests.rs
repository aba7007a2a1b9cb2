//! The port to the project's tests.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::language::Problem;
use starling_syntax::FilePath;

/// What to run, over which texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestRequest {
    /// Whole texts that stand in the shadow in place of the files on disk: unsaved buffers,
    /// accepted edits and the change under test. `None` means that the file does not exist.
    pub overlay: Vec<(FilePath, Option<Arc<str>>)>,
    /// Test files or test ids to run, as the runner gave them out; empty: everything that the command runs.
    pub select: Vec<String>,
    pub deadline: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestStatus {
    Passed,
    Failed,
    Error,
    Skipped,
    /// It failed and passed on the same text. No runner reports it: it is found by running a test again.
    Unsteady,
}

/// One test by its id, with the failing assertion and a traceback cut to the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCase {
    pub id: String,
    pub status: TestStatus,
    /// Empty for a passed test.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    Passed,
    Failed,
    /// Stopped at the deadline.
    TimedOut,
    /// Stopped because it used more memory than it may.
    OutOfMemory,
    /// Stopped because it started more processes than it may.
    TooManyProcesses,
    /// Stopped because it printed more than anybody reads.
    OutputTooLong,
    /// Stopped because it left more on disk than it may.
    WroteTooMuch,
    /// The command could not be started, or ran no test.
    NotRun,
}

impl TestOutcome {
    /// As people and models read it.
    pub fn word(self) -> &'static str {
        match self {
            TestOutcome::Passed => "passed",
            TestOutcome::Failed => "failed",
            TestOutcome::TimedOut => "timed out",
            TestOutcome::OutOfMemory => "ran out of memory",
            TestOutcome::TooManyProcesses => "started too many processes",
            TestOutcome::OutputTooLong => "printed without end",
            TestOutcome::WroteTooMuch => "wrote too much",
            TestOutcome::NotRun => "did not run",
        }
    }
}

/// How the results of a test run were found out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultSource {
    /// By a reporter of Starling's own inside the test runner.
    #[default]
    Reporter,
    /// Read from what the command printed, which the code under test can print as well.
    Printed,
}

impl ResultSource {
    /// Whether the code under test cannot have printed the results.
    pub fn is_reporter(&self) -> bool {
        match self {
            ResultSource::Reporter => true,
            ResultSource::Printed => false,
        }
    }
}

/// What a test run showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    pub outcome: TestOutcome,
    /// The exit status of the command, where it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The command as a person would type it.
    pub command: String,
    pub cases: Vec<TestCase>,
    #[serde(default, skip_serializing_if = "ResultSource::is_reporter")]
    pub source: ResultSource,
    /// The end of the output, capped.
    pub output: String,
    pub millis: u64,
}

#[cfg(any(test, feature = "testing"))]
impl TestReport {
    /// What `pytest` showed of these tests, without messages.
    pub fn of_cases(outcome: TestOutcome, cases: &[(&str, TestStatus)]) -> TestReport {
        let case = |(id, status): &(&str, TestStatus)| TestCase {
            id: (*id).to_owned(),
            status: *status,
            message: String::new(),
        };
        TestReport {
            outcome,
            exit: Some(0),
            command: "pytest".to_owned(),
            cases: cases.iter().map(case).collect(),
            source: ResultSource::Reporter,
            output: String::new(),
            millis: 1,
        }
    }
}

/// A Python file to compile, with its text before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledFile {
    pub file: FilePath,
    /// `None` for a new file.
    pub before: Option<Arc<str>>,
    pub after: Arc<str>,
}

/// The Python files of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileRequest {
    pub files: Vec<CompiledFile>,
    pub deadline: Duration,
}

/// Who chose the command that runs the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// Named by the user: when it cannot run, the user wants to know before anything else.
    ByUser,
    /// Found in the project.
    Found,
}

/// Runs the project's tests in a shadow, never in the user's tree.
#[async_trait]
pub trait TestRunner: Send + Sync {
    /// The command that [`TestRunner::run`] uses, or `None` when no tests were found.
    fn command(&self) -> Option<String>;

    /// Why there is no command, for the user; `None` where there is one, or nothing is known.
    fn missing(&self) -> Option<&str> {
        None
    }

    /// Who chose the command.
    fn chosen(&self) -> Chosen;

    /// The version of the Python that runs the tests, where it is known.
    fn python(&self) -> Option<String> {
        None
    }

    /// Whether a package brings a top module of this name into the environment of the tests.
    fn has_installed(&self, _module: &str) -> bool {
        false
    }

    /// Whether a selection of tests makes a difference to the command.
    fn selects(&self) -> bool;

    async fn run(&self, request: TestRequest) -> TestReport;

    /// Compiles files with the Python of the tests, without running them. Returns what does not
    /// compile after the change and did before; nothing where the runner has no Python.
    ///
    /// # Errors
    /// Why nothing could be compiled, for the user.
    async fn compile(&self, _request: CompileRequest) -> Result<Vec<Problem>, String> {
        Ok(Vec::new())
    }
}
