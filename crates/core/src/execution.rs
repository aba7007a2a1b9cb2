//! What tests executed, as recorded by the test runner.

use std::sync::Arc;

use starling_syntax::FilePath;

use crate::tests::TestStatus;

/// What one test executed in the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestExecution {
    pub id: String,
    pub status: TestStatus,
    /// The project's frames in the traceback of the failure, outermost first. Empty if the test
    /// passed.
    pub frames: Vec<ExecutedFrame>,
    /// The project's functions that started during the test, in the order of their first start.
    /// Empty if they were not recorded.
    pub functions: Vec<Arc<ExecutedFunction>>,
}

impl TestExecution {
    pub fn did_pass(&self) -> bool {
        self.status == TestStatus::Passed
    }

    pub fn did_fail(&self) -> bool {
        matches!(self.status, TestStatus::Failed | TestStatus::Error)
    }
}

/// A function that a test started. It can also be the body of a class or a lambda expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutedFunction {
    pub file: FilePath,
    /// The line of the definition or of its first decorator, counted from 1.
    pub line: u32,
    /// The qualified name, or in versions of Python before 3.11 the last part of it.
    pub name: String,
}

/// A frame of a failing test's traceback with the values of its local variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedFrame {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    pub function: String,
    /// The local variables in the form `name = value`. Values are shortened, and secrets are
    /// replaced.
    pub values: Vec<String>,
}
