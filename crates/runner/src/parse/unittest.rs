//! Parses the output of unittest and of Django's suite, which has the same format: the lines of
//! `-v` and the failure blocks.

use std::iter::Peekable;
use std::path::Path;
use std::str::Lines;

use super::Cases;
use crate::message::shorten;
use starling_core::TestStatus;

/// Length of the rules around failure blocks, in characters.
const WIDTH: usize = 70;

pub(super) fn read(output: &str, root: &Path, cases: &mut Cases) {
    let mut lines = output.lines().peekable();
    // The test whose line has begun. Output of the test can appear before its status.
    let mut pending: Option<String> = None;
    while let Some(line) = lines.next() {
        if is_rule(line, b'=') {
            block(&mut lines, root, cases);
        } else {
            verbose(line, &mut pending, cases);
        }
    }
}

fn is_rule(line: &str, fill: u8) -> bool {
    line.len() == WIDTH && line.bytes().all(|byte| byte == fill)
}

/// Parses `test_x (tests.test_a.T.test_x) ... ok`, which can span several lines.
fn verbose(line: &str, pending: &mut Option<String>, cases: &mut Cases) {
    let mut rest = line;
    // If a test printed no status, the next test follows in the same line.
    while let Some((id, after)) = name(rest.trim_start()) {
        *pending = Some(id);
        rest = after
            .trim_start()
            .strip_prefix("...")
            .unwrap_or(after)
            .trim_start();
    }
    let last = rest.rsplit_once("... ").map_or(rest, |(_, last)| last);
    if let Some(status) = status_of(last)
        && let Some(id) = pending.take()
    {
        cases.note(&id, status);
    }
}

fn status_of(text: &str) -> Option<TestStatus> {
    match text.trim() {
        "ok" => Some(TestStatus::Passed),
        "FAIL" | "unexpected success" => Some(TestStatus::Failed),
        "ERROR" => Some(TestStatus::Error),
        "expected failure" => Some(TestStatus::Skipped),
        other if other.starts_with("skipped ") => Some(TestStatus::Skipped),
        _ => None,
    }
}

/// Returns the dotted id at the beginning of a text, in the form that unittest accepts, and the
/// rest. Older versions print `test_x (tests.test_a.T)`, newer versions
/// `test_x (tests.test_a.T.test_x)`.
fn name(text: &str) -> Option<(String, &str)> {
    let (method, rest) = text.split_once(" (")?;
    let (class, rest) = rest.split_once(')')?;
    let dotted = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == '.')
    };
    if !dotted(method) || !dotted(class) || !class.contains('.') {
        return None;
    }
    let unloaded = class.starts_with("unittest.loader._FailedTest");
    let id = if unloaded {
        method.to_owned()
    } else if class.rsplit('.').next() == Some(method) {
        class.to_owned()
    } else {
        format!("{class}.{method}")
    };
    Some((id, rest))
}

/// Parses a failure block after its rule: `FAIL: test_x (…) (i=1)`, an optional docstring, a rule,
/// and the traceback.
fn block(lines: &mut Peekable<Lines<'_>>, root: &Path, cases: &mut Cases) {
    let Some((word, title)) = lines.next().and_then(|line| line.split_once(": ")) else {
        return;
    };
    let status = match word {
        "FAIL" | "UNEXPECTED SUCCESS" => TestStatus::Failed,
        "ERROR" => TestStatus::Error,
        _ => return,
    };
    let mut body = String::new();
    let mut in_body = false;
    while let Some(line) = lines.next_if(|line| !is_rule(line, b'=')) {
        if is_rule(line, b'-') {
            if in_body {
                break;
            }
            in_body = true;
        } else if in_body {
            body.push_str(line);
            body.push('\n');
        }
    }
    if let Some((id, part)) = name(title) {
        let message = format!("{}\n{body}", part.trim());
        cases.fail(&id, status, shorten(message.trim_start(), root));
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;
    use TestStatus::{Error, Failed, Passed, Skipped};

    const OLD: &str = include_str!("../../../../fixtures/runner/unittest-3.6.txt");
    const NEW: &str = include_str!("../../../../fixtures/runner/unittest-3.12.txt");

    fn statuses(output: &str) -> Vec<(String, TestStatus)> {
        let mut found: Vec<_> = cases(output, Path::new("/w"))
            .into_iter()
            .map(|case| (case.id, case.status))
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    #[test]
    fn output_of_old_and_new_python_versions_is_parsed_alike() {
        let expected = [
            ("tests.test_broken", Error),
            ("tests.test_calc.S.setUpClass", Error),
            ("tests.test_calc.T.test_bad", Failed),
            ("tests.test_calc.T.test_err", Error),
            ("tests.test_calc.T.test_ok", Passed),
            ("tests.test_calc.T.test_skip", Skipped),
            ("tests.test_calc.T.test_sub", Failed),
            ("tests.test_calc.T.test_xfail", Skipped),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|(id, s)| ((*id).to_owned(), *s))
            .collect();
        assert_eq!(statuses(OLD), expected);
        assert_eq!(statuses(NEW), expected);
    }

    #[test]
    fn failure_messages_keep_only_the_traceback_frames_of_the_workspace() {
        let read = cases(NEW, Path::new("/w"));
        let message = |id: &str| &*read.iter().find(|case| case.id == id).unwrap().message;
        assert_eq!(
            message("tests.test_calc.T.test_bad"),
            "Traceback (most recent call last):\n  File \"tests/test_calc.py\", line 11, in test_bad\n    \
             self.assertEqual(div(4, 2), 3)\nAssertionError: 2.0 != 3"
        );
        assert!(message("tests.test_calc.T.test_sub").starts_with("(i=1)\nTraceback"));
        let broken = message("tests.test_broken");
        assert!(
            broken.contains("… 2 frames outside the workspace"),
            "{broken}"
        );
        assert!(broken.ends_with("No module named 'nothing_here'"));
        assert_eq!(message("tests.test_calc.T.test_ok"), "");
    }

    #[test]
    fn lines_that_only_resemble_results_are_not_tests() {
        for text in [
            "f (x) ... ok",
            "see a.b (c d) ... ok",
            "call (a.b",
            "ok",
            "",
            "x: 1",
        ] {
            assert_eq!(statuses(text), []);
        }
        let rule = "=".repeat(WIDTH);
        assert_eq!(statuses(&format!("{rule}\nFAIL: nothing\n{rule}")), []);
    }

    #[test]
    fn unittest_status_is_parsed_although_the_test_prints_output() {
        let output = "test_a (m.T.test_a) ... noise\nmore noise\nok\n\
                      test_b (m.T.test_b)\nA docstring. ... ok\n\
                      test_c (m.T.test_c) ... test_d (m.T.test_d) ... FAIL\n\
                      test_e (m.T.test_e) ... unexpected success\n";
        let expected = [
            ("m.T.test_a", Passed),
            ("m.T.test_b", Passed),
            ("m.T.test_d", Failed),
            ("m.T.test_e", Failed),
        ];
        let expected = expected.map(|(id, status)| (id.to_owned(), status));
        assert_eq!(statuses(output), expected);
    }
}
