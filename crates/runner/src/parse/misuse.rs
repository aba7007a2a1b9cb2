//! Detects commands that ran no test because they were not found or were called with wrong
//! arguments.

use starling_core::{TestCase, TestStatus};

/// Returns whether a command without test results failed before it ran a test.
pub(super) fn is_misuse(status: i32, output: &str) -> bool {
    match status {
        0 => false,
        // The shell did not find the command or may not execute it.
        126 | 127 => true,
        // pytest and newer versions of unittest: no test was selected.
        5 => true,
        // Usage errors of pytest, make, argparse and <sysexits.h>.
        2 | 4 | 64 if output.lines().any(is_usage) => true,
        _ => output.lines().any(is_no_start),
    }
}

fn is_usage(line: &str) -> bool {
    let line = line.strip_prefix("ERROR: ").unwrap_or(line);
    line.starts_with("usage: ") || line.starts_with("Usage: ")
}

/// Returns whether a line is an error of Python, make or unittest about a missing program, target
/// or directory.
fn is_no_start(line: &str) -> bool {
    const PYTHON: [&str; 3] = [
        ": No module named ",
        ": can't open file ",
        ": Error while finding module specification for ",
    ];
    let by_python = |said| {
        line.split_once(said).is_some_and(|(program, _)| {
            let name = program.rsplit('/').next().unwrap_or(program);
            name.starts_with("py") && !program.contains(char::is_whitespace)
        })
    };
    PYTHON.into_iter().any(by_python)
        || line.starts_with("make: *** No rule to make target")
        || line.starts_with("make: *** No targets specified")
        || line.starts_with("ImportError: Start directory is not importable")
}

/// Returns whether every module that unittest was given is missing.
pub(super) fn names_no_module(cases: &[TestCase]) -> bool {
    let missing = |case: &TestCase| {
        let last = case.message.trim_end().lines().next_back();
        let module = last
            .and_then(|line| line.strip_prefix("ModuleNotFoundError: No module named '"))
            .and_then(|rest| rest.strip_suffix('\''));
        case.status == TestStatus::Error
            && module.is_some_and(|module| module.rsplit('.').next() == Some(&case.id))
    };
    !cases.is_empty() && cases.iter().all(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_that_ran_no_test_is_distinguished_from_failing_tests() {
        let misused = [
            (127, "bash: line 1: nope: command not found"),
            (126, "bash: ./run: Permission denied"),
            (5, "==== 1 deselected in 0.00s ===="),
            (
                2,
                "usage: python3 -m unittest [-h] [-v]\nerror: unrecognized",
            ),
            (
                4,
                "ERROR: usage: python -m pytest [options]\n  inifile: None",
            ),
            (64, "Usage: run [file]"),
            (1, "/usr/bin/python3: No module named pytest"),
            (1, "pypy3: No module named pytest"),
            (
                2,
                "python3: can't open file '/w/nope.py': [Errno 2] No such file",
            ),
            (
                1,
                "/p/python3: Error while finding module specification for 'a.b'",
            ),
            (2, "make: *** No rule to make target 'tset'.  Stop."),
            (1, "ImportError: Start directory is not importable: 'nope'"),
        ];
        for (status, output) in misused {
            assert!(is_misuse(status, output), "{status} {output}");
            assert!(!is_misuse(0, output), "{output}");
        }
        let failed = [
            (1, "make: *** [Makefile:2: test] Error 1"),
            (1, "Usage: run [file]"),
            (2, "Interrupted: 1 error during collection"),
            (1, "E   ModuleNotFoundError: No module named 'x'"),
            (1, "in pytest_run: No module named x"),
            (1, ""),
        ];
        for (status, output) in failed {
            assert!(!is_misuse(status, output), "{status} {output}");
        }
    }

    #[test]
    fn test_module_that_does_not_exist_is_not_a_failed_test() {
        let case = |id: &str, message: &str| TestCase {
            id: id.to_owned(),
            status: TestStatus::Error,
            message: message.to_owned(),
        };
        let unloaded = |id, module: &str| {
            let error = "ImportError: Failed to import test module\nTraceback";
            case(
                id,
                &format!("{error}\nModuleNotFoundError: No module named '{module}'\n\n"),
            )
        };
        assert!(names_no_module(&[unloaded("test_wrk", "test_wrk")]));
        assert!(names_no_module(&[unloaded("test_wrk", "tests.test_wrk")]));
        let broken = unloaded("test_work", "missing_library");
        assert!(!names_no_module(std::slice::from_ref(&broken)));
        assert!(!names_no_module(&[unloaded("a", "a"), broken]));
        assert!(!names_no_module(&[case("test_x", "AssertionError")]));
        assert!(!names_no_module(&[]));
    }
}
