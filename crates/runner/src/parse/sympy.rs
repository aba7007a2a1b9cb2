//! Parses the output of SymPy's `bin/test --verbose`: `path[3]`, a line for each test, and the
//! failure blocks.

use std::path::Path;

use super::Cases;
use crate::message::shorten;
use starling_core::TestStatus;

/// The line that starts a failure block.
const RULE: &str =
    "________________________________________________________________________________";

pub(super) fn read(output: &str, root: &Path, cases: &mut Cases) {
    if !output.contains("tests finished:") {
        return;
    }
    let mut file = "";
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        if line == RULE {
            let title = lines.next().unwrap_or_default().trim_matches(['_', ' ']);
            let mut body = String::new();
            while let Some(line) = lines.next_if(|line| *line != RULE && !is_end(line)) {
                body.push_str(line);
                body.push('\n');
            }
            cases.fail(title, TestStatus::Failed, shorten(&body, root));
        } else if let Some((path, _)) = line.split_once(".py[") {
            file = &line[..path.len() + ".py".len()];
        } else if let Some((name, status)) = test(line) {
            cases.note(&format!("{file}:{name}"), status);
        }
    }
}

fn is_end(line: &str) -> bool {
    line.contains("tests finished:")
}

/// Parses a line such as `test_x ok` or `test_y why s`. The last line of a file ends in `[OK]` or
/// `[FAIL]`.
fn test(line: &str) -> Option<(&str, TestStatus)> {
    let line = line.trim_end();
    let line = line.strip_suffix("[OK]").unwrap_or(line);
    let line = line.strip_suffix("[FAIL]").unwrap_or(line).trim_end();
    let (name, rest) = line
        .split_once(' ')
        .filter(|(name, _)| name.starts_with("test"))?;
    let status = match rest.rsplit(' ').next()? {
        "ok" => TestStatus::Passed,
        "F" => TestStatus::Failed,
        "E" | "T" => TestStatus::Error,
        "f" | "X" | "s" | "w" => TestStatus::Skipped,
        _ => return None,
    };
    Some((name, status))
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;
    use TestStatus::{Error, Failed, Passed, Skipped};

    const OUTPUT: &str = include_str!("../../../../fixtures/runner/sympy.txt");

    #[test]
    fn sympy_test_results_and_failure_messages_are_parsed() {
        let read = cases(OUTPUT, Path::new("/w"));
        let file = "sympy/core/tests/test_singleton.py";
        let named: Vec<_> = read
            .iter()
            .map(|case| (case.id.strip_prefix(file).unwrap(), case.status))
            .collect();
        assert_eq!(
            named,
            [
                (":test_Singleton", Passed),
                (":test_names_in_namespace", Passed),
                (":test_bad", Failed),
                (":test_err", Error),
                (":test_x", Skipped),
                (":test_s", Skipped),
            ]
        );
        assert_eq!(
            read[2].message,
            "Traceback (most recent call last):\n  File \"sympy/core/tests/test_singleton.py\", line 79, in test_bad\n    \
             assert sin(0) == 1\nAssertionError"
        );
        assert!(read[3].message.contains("line 83, in test_err"));
    }
}
