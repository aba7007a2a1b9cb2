//! The interface to the runner of the project's tests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::execution::Executions;
use crate::language::Problem;
use crate::try_code::{TryReport, TryRequest};
use starling_syntax::FilePath;

/// The tests to run and the texts to run them on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestRequest {
    /// Contents that replace files on disk in the shadow (the private copy of the project): unsaved
    /// buffers, accepted edits and the change under test, as the editor would save them. `None`
    /// means that the file does not exist.
    pub overlay: Vec<(FilePath, Option<Arc<[u8]>>)>,
    /// Test files or test ids to run, in the runner's format. If empty, the command runs all tests.
    pub select: Vec<String>,
    pub deadline: Duration,
}

/// The result of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestStatus {
    Passed,
    Failed,
    Error,
    Skipped,
    /// The test failed and passed on the same text. Runners do not report this status; it is
    /// detected by running a test again.
    Unsteady,
}

/// A test with its id. The message is the failing assertion and a traceback limited to the
/// workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCase {
    pub id: String,
    pub status: TestStatus,
    /// Empty for a passed test.
    pub message: String,
}

/// The result of a test run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    Passed,
    Failed,
    /// Stopped at the time limit.
    TimedOut,
    /// Stopped at the memory limit.
    OutOfMemory,
    /// Stopped at the limit of processes.
    TooManyProcesses,
    /// Stopped at the output limit.
    OutputTooLong,
    /// Stopped at the disk space limit.
    WroteTooMuch,
    /// The command could not be started, or did not run any test.
    NotRun,
}

impl TestOutcome {
    /// Returns the outcome as text for people and models.
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

/// The source of the results of a test run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultSource {
    /// Starling's own reporter inside the test runner.
    #[default]
    Reporter,
    /// The printed output of the command, which the code under test can forge.
    Printed,
}

impl ResultSource {
    /// Whether the code under test cannot have forged the results.
    pub fn is_reporter(&self) -> bool {
        match self {
            ResultSource::Reporter => true,
            ResultSource::Printed => false,
        }
    }
}

/// The result of a test run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    pub outcome: TestOutcome,
    /// The exit status of the command, if it was not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The command in a form that can be typed into a shell.
    pub command: String,
    pub cases: Vec<TestCase>,
    #[serde(default, skip_serializing_if = "ResultSource::is_reporter")]
    pub source: ResultSource,
    /// The end of the output, shortened.
    pub output: String,
    pub millis: u64,
}

#[cfg(any(test, feature = "testing"))]
impl TestReport {
    /// Creates the report of a `pytest` run with these tests, without messages.
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

/// The origin of the command that runs the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandOrigin {
    /// The user configured the command. If it cannot run, the user is notified at the start of the
    /// run.
    ByUser,
    /// The command was detected in the project.
    Found,
}

/// Runs the project's tests in a shadow (a private copy of the project), never in the user's own
/// directory.
#[async_trait]
pub trait TestRunner: Send + Sync {
    /// Returns the command that [`TestRunner::run`] uses, or `None` if no tests were found.
    fn command(&self) -> Option<String>;

    /// Returns a message for the user why there is no command. Returns `None` if there is a command
    /// or the reason is unknown.
    fn missing(&self) -> Option<&str> {
        None
    }

    /// Returns the origin of the command.
    fn chosen(&self) -> CommandOrigin;

    /// Returns the Python version that runs the tests, if known.
    fn python(&self) -> Option<String> {
        None
    }

    /// Whether an installed package in the test environment provides this top-level module.
    fn has_installed(&self, _module: &str) -> bool {
        false
    }

    /// Whether the command can run a selection of tests.
    fn selects(&self) -> bool;

    async fn run(&self, request: TestRequest) -> TestReport;

    /// Runs tests and returns what those of `failing` that fail executed, and the passing tests.
    /// Other failing tests are left out. The result is empty if the runner cannot record that, or if
    /// the tests do not end within the deadline.
    async fn record(&self, _request: TestRequest, _failing: &BTreeSet<String>) -> Executions {
        Executions::default()
    }

    /// Prepares [`TestRunner::compile`] in the background, so that its first call does not have to wait
    /// for it. Later calls do nothing.
    fn prepare(&self) {}

    /// Compiles files with the Python of the tests, without running them. Returns the errors of
    /// files that compiled before the change and do not compile after it. The list is empty if the
    /// runner has no Python.
    ///
    /// # Errors
    /// Returns a message for the user that explains why nothing could be compiled.
    async fn compile(&self, _request: CompileRequest) -> Result<Vec<Problem>, String> {
        Ok(Vec::new())
    }

    /// Runs code of a model or of the task in a shadow, with the interpreter and the environment of
    /// the tests. The project's files of secrets and the data of version control are hidden.
    async fn try_code(&self, _request: TryRequest) -> TryReport {
        TryReport::not_run("this runner cannot try code".to_owned())
    }
}
