//! Counts a project's tests without running them.

use std::path::Path;
use std::time::Duration;

use super::candidates::complaint;
use super::command::{Suite, quote};
use super::detect::Framework;
use super::{ProjectTests, millis};
use starling_core::{TestOutcome, TestRequest};
use starling_sandbox::End;

/// Loads the tests that `unittest discover` would run. Modules that cannot be imported count as
/// failing tests.
const UNITTEST: &str = "import sys, unittest\n\
    loader = unittest.TestLoader()\n\
    start, top = sys.argv[1:]\n\
    suite = loader.discover(start or '.', top_level_dir=top or None)\n\
    broken = len(loader.errors)\n\
    print('starling-collected', suite.countTestCases() - broken, broken)\n";

/// Starts `manage.py test` or Django's own `tests/runtests.py` with its arguments, and counts the
/// tests instead of running them. No database is created.
const DJANGO: &str = "import os, runpy, sys, unittest\n\
    from django.test import runner\n\
    def run_tests(self, test_labels, *args, **kwargs):\n    \
        self.setup_test_environment()\n    \
        suite = self.build_suite(test_labels or [])\n    \
        broken, waiting = 0, [suite]\n    \
        while waiting:\n        \
            one = waiting.pop()\n        \
            broken += type(one).__name__ == '_FailedTest'\n        \
            inner = getattr(one, 'subsuites', None) or one\n        \
            if not isinstance(one, unittest.TestCase): waiting.extend(inner)\n    \
        print('starling-collected', suite.countTestCases() - broken, broken, flush=True)\n    \
        return 0\n\
    runner.DiscoverRunner.run_tests = run_tests\n\
    sys.argv = sys.argv[1:]\n\
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))\n\
    runpy.run_path(sys.argv[0], run_name='__main__')\n";

/// Time limit for a test run that checks whether the user's command runs any test. A user's command
/// cannot list its tests without running them.
const GIVEN_DEADLINE: Duration = Duration::from_secs(20);

/// Result of collecting the tests of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collection {
    Counted(Counted),
    /// The command runs tests but cannot count them first.
    Uncounted {
        command: String,
    },
    /// A test run with the user's command ran no test.
    NoTestRan {
        reason: String,
    },
    /// Reason for the user why there is no test.
    Nothing {
        reason: String,
    },
}

/// The number of tests that a command collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The command that runs these tests.
    pub command: String,
    pub tests: usize,
    /// Number of test files that cannot be imported.
    pub broken_files: usize,
    pub millis: u64,
}

impl ProjectTests {
    /// Collects the tests with each runner in turn until a runner finds some.
    pub async fn collect(&self, deadline: Duration) -> Collection {
        let suites = match &self.suites {
            Ok(suites) => suites,
            Err(reason) => {
                return Collection::Nothing {
                    reason: reason.clone(),
                };
            }
        };
        let mut reasons: Vec<String> = Vec::new();
        for suite in suites.to_try(&[]) {
            let command = suite.line(&[]);
            if let Suite::Given(_) = suite {
                return self.tried_out(command, deadline.min(GIVEN_DEADLINE)).await;
            }
            let Some(collecting) = line(suite) else {
                return Collection::Uncounted { command };
            };
            let request = TestRequest {
                overlay: Vec::new(),
                select: Vec::new(),
                deadline,
            };
            let done = match self
                .capture_tests(suite, self.with_setup(&collecting), &request)
                .await
            {
                Ok(done) => done,
                Err(error) => {
                    let reason = error.to_string();
                    return Collection::Nothing { reason };
                }
            };
            let (tests, broken_files) = count(suite, &done.output);
            if tests + broken_files > 0 {
                return Collection::Counted(Counted {
                    command,
                    tests,
                    broken_files,
                    millis: millis(done.elapsed),
                });
            }
            reasons.push(match done.end {
                End::TimedOut => format!(
                    "`{collecting}` did not finish collecting tests within {} s",
                    deadline.as_secs()
                ),
                _ => {
                    let last = done.output.trim_end().lines().last().unwrap_or_default();
                    let reason = complaint(&done.output).unwrap_or(last);
                    format!("`{command}` finds no tests: {reason}")
                }
            });
        }
        Collection::Nothing {
            reason: reasons.join("; "),
        }
    }

    /// Runs the user's command to find out whether it runs any test, because such a command cannot
    /// count its tests.
    async fn tried_out(&self, command: String, deadline: Duration) -> Collection {
        let request = TestRequest {
            overlay: Vec::new(),
            select: Vec::new(),
            deadline,
        };
        let report = self.first_that_runs(&request).await;
        match report.outcome {
            TestOutcome::NotRun => {
                let last = report.output.trim_end().lines().last().unwrap_or_default();
                let why = last.strip_prefix("no test ran: ").unwrap_or(last);
                let reason = format!("`{command}` runs no test: {why}");
                Collection::NoTestRan { reason }
            }
            TestOutcome::Passed
            | TestOutcome::Failed
            | TestOutcome::TimedOut
            | TestOutcome::OutOfMemory
            | TestOutcome::TooManyProcesses
            | TestOutcome::OutputTooLong
            | TestOutcome::WroteTooMuch => Collection::Uncounted { command },
        }
    }
}

/// Returns the command that collects the tests of a suite, or `None` if the runner has no such
/// command.
fn line(suite: &Suite) -> Option<String> {
    let Suite::Own { framework, python } = suite else {
        return None;
    };
    let words = match framework {
        Framework::Pytest => vec![
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--collect-only",
            "-q",
        ],
        Framework::Unittest { start, top } => vec!["-c", UNITTEST, start, top_of(start, top)],
        Framework::ManagePy { .. } | Framework::Django => {
            let arguments = framework.arguments(&[]);
            let arguments = arguments.iter().map(String::as_str);
            let words: Vec<&str> = ["-c", DJANGO].into_iter().chain(arguments).collect();
            return Some(with_program(python, &words));
        }
        Framework::SymPy => return None,
    };
    Some(with_program(python, &words))
}

/// Returns the top directory to pass to `unittest discover`.
fn top_of<'a>(start: &str, top: &'a str) -> &'a str {
    if !start.is_empty() && top.is_empty() {
        "."
    } else {
        top
    }
}

fn with_program(python: &Path, words: &[&str]) -> String {
    let program = python.to_string_lossy();
    let words = std::iter::once(program.as_ref()).chain(words.iter().copied());
    let quoted: Vec<String> = words.map(quote).collect();
    quoted.join(" ")
}

/// Returns the number of tests, and the number of test files that cannot be imported.
fn count(suite: &Suite, output: &str) -> (usize, usize) {
    match suite {
        Suite::Own {
            framework: Framework::Pytest,
            ..
        } => count_of_pytest(output),
        Suite::Own { .. } | Suite::Given(_) => {
            let marked = output
                .lines()
                .find_map(|line| line.strip_prefix("starling-collected "));
            let mut numbers = marked
                .into_iter()
                .flat_map(str::split_whitespace)
                .map(|number| number.parse().unwrap_or(0));
            (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
        }
    }
}

/// Counts the lines `tests/test_a.py::test_x` for each test. If the project's options contain `-q`,
/// pytest prints `tests/test_a.py: 3` instead.
fn count_of_pytest(output: &str) -> (usize, usize) {
    let broken = output.lines().filter(|line| line.starts_with("ERROR "));
    let is_id = |line: &&str| {
        let file = line.split_once("::").map(|(file, _)| file);
        file.is_some_and(|file| !file.is_empty() && !file.contains(": "))
            && !line.starts_with("ERROR ")
    };
    let ids = output.lines().filter(is_id).count();
    let totals = output.lines().filter_map(|line| {
        let (file, number) = line.rsplit_once(": ")?;
        let is_file = file.ends_with(".py") || file.ends_with(".txt");
        is_file.then(|| number.parse::<usize>().ok())?
    });
    let tests = if ids > 0 { ids } else { totals.sum() };
    (tests, broken.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_errors_are_counted_in_pytest_collection_output() {
        let ids = "tests/test_a.py::test_x[a b]\ntests/test_a.py::T::test_y\n\n2 tests collected in 0.01s\n";
        assert_eq!(count_of_pytest(ids), (2, 0));
        assert_eq!(
            count_of_pytest("tests/test_a.py: 3\ntest_b.py: 1\n"),
            (4, 0)
        );
        let broken = "a.py::test_x\nE   ImportError: no\nERROR tests/test_b.py\n1 test collected, 1 error in 0.1s\n";
        assert_eq!(count_of_pytest(broken), (1, 1));
        assert_eq!(count_of_pytest("\nno tests collected in 0.00s\n"), (0, 0));
    }
}
