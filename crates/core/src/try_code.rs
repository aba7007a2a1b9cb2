//! Code that is run in the project to see its result: a Python snippet or a shell command.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::tests::TestOutcome;
use starling_syntax::FilePath;

/// Maximum length of a one-line description, in characters.
const SHORT: usize = 160;

/// Code to run. It is run by the interpreter of the tests, in the project's root directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TryCode {
    /// Python code. If the last statement is an expression, its value is printed.
    Python(String),
    /// Python code in which the value of each expression statement is printed, as in an interactive
    /// session.
    Session(String),
    /// A shell command.
    Command(String),
}

impl TryCode {
    pub fn text(&self) -> &str {
        match self {
            TryCode::Python(text) | TryCode::Session(text) | TryCode::Command(text) => text,
        }
    }

    /// Returns the code as one line, shortened if it is long.
    pub fn in_one_line(&self) -> String {
        let lines = self.text().lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        short(&lines.join("; "))
    }
}

/// Code to run, and the files to run it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryRequest {
    pub code: TryCode,
    /// Files that replace files of the project, as in
    /// [`TestRequest::overlay`](crate::TestRequest::overlay).
    pub overlay: Vec<(FilePath, Option<Arc<[u8]>>)>,
    pub deadline: Duration,
}

/// The result of running code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TryReport {
    /// `Passed` for exit status 0, `Failed` for any other exit status. Other values give the reason
    /// why the code did not run or was stopped.
    pub outcome: TestOutcome,
    /// The exit status, or `None` if the code did not run or was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The output, with shortened tracebacks. A long output is truncated in the middle. If the code
    /// did not run, this is the reason.
    pub output: String,
    /// The files of the project and the line numbers, counted from 1, in the tracebacks of the
    /// output, in printed order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<(FilePath, u32)>,
    pub millis: u64,
}

impl TryReport {
    /// Creates the report for code that could not be run.
    pub fn not_run(reason: String) -> TryReport {
        TryReport {
            outcome: TestOutcome::NotRun,
            exit: None,
            output: reason,
            frames: Vec::new(),
            millis: 0,
        }
    }

    /// Returns the exit status, or the reason why the code was stopped.
    pub fn status(&self) -> String {
        match self.exit {
            Some(status) => format!("exit status {status}"),
            None => self.outcome.word().to_owned(),
        }
    }

    /// Returns the last line of the output. This is the error message if the code ended with a
    /// traceback, and otherwise usually the value of the last expression.
    pub fn in_short(&self) -> String {
        let lines = self.output.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("note: "));
        let last = match self.outcome {
            TestOutcome::NotRun => lines.next(),
            _ => lines.next_back(),
        };
        match (self.outcome, last) {
            (TestOutcome::Passed, None) => "no output".to_owned(),
            (TestOutcome::Passed, Some(last)) => short(last),
            (TestOutcome::Failed, Some(last)) if self.exit == Some(1) => short(last),
            (_, Some(last)) => short(&format!("{}: {last}", self.status())),
            (_, None) => self.status(),
        }
    }
}

fn short(line: &str) -> String {
    let mut short: String = line.chars().take(SHORT).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: TestOutcome, exit: Option<i32>, output: &str) -> TryReport {
        TryReport {
            outcome,
            exit,
            output: output.to_owned(),
            frames: Vec::new(),
            millis: 1,
        }
    }

    #[test]
    fn one_line_result_is_the_error_or_the_last_line_of_output() {
        let cases = [
            (TestOutcome::Passed, Some(0), "a\n[1, 2]\n", "[1, 2]"),
            (TestOutcome::Passed, Some(0), "", "no output"),
            (
                TestOutcome::Failed,
                Some(1),
                "Traceback\n  x\nTypeError: no\nnote: read-only\n",
                "TypeError: no",
            ),
            (
                TestOutcome::Failed,
                Some(2),
                "usage",
                "exit status 2: usage",
            ),
            (TestOutcome::TimedOut, None, "", "timed out"),
            (
                TestOutcome::NotRun,
                None,
                "no sandbox\nmore",
                "did not run: no sandbox",
            ),
        ];
        for (outcome, exit, output, expected) in cases {
            assert_eq!(report(outcome, exit, output).in_short(), expected);
        }
    }
}
