//! Parses pytest's output: the short summary, the lines of `-v`, and the failure sections.

use std::path::Path;

use super::Cases;
use crate::message::shorten;
use starling_core::TestStatus;

/// A section of pytest's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Progress,
    /// The sections `FAILURES` and `ERRORS`.
    Failures,
    Summary,
    Other,
}

pub(super) fn read(output: &str, root: &Path, cases: &mut Cases) {
    if !output.contains("==") {
        return;
    }
    let mut section = Section::Progress;
    let mut blocks: Vec<FailureBlock> = Vec::new();
    for line in output.lines() {
        if let Some(title) = title(line, '=') {
            section = section_of(title);
            continue;
        }
        match section {
            Section::Progress => progress(line, cases),
            Section::Summary => summary(line, cases),
            Section::Failures => match (title(line, '_'), blocks.last_mut()) {
                (Some(name), _) => blocks.push(FailureBlock::new(name)),
                (None, Some(block)) => block.push(line),
                (None, None) => {}
            },
            Section::Other => {}
        }
    }
    for block in blocks {
        block.give(root, cases);
    }
}

/// Returns the last line of a session that counts its tests, as "8 passed, 1 skipped in 0.11s".
pub(crate) fn summary_line(output: &str) -> Option<&str> {
    const COUNTED: [&str; 5] = ["passed", "failed", "error", "errors", "skipped"];
    let is_summary = |line: &&str| {
        let Some((counts, time)) = line.split_once(" in ") else {
            return false;
        };
        let is_time = time.starts_with(|c: char| c.is_ascii_digit()) && time.contains('s');
        let first = counts.split(", ").next().unwrap_or_default();
        is_time
            && first.split_once(' ').is_some_and(|(number, what)| {
                number.parse::<usize>().is_ok() && COUNTED.contains(&what)
            })
    };
    let mut lines = output.lines().map(|line| line.trim_matches(['=', ' ']));
    lines.rfind(is_summary)
}

fn section_of(title: &str) -> Section {
    match title {
        "FAILURES" | "ERRORS" => Section::Failures,
        "short test summary info" => Section::Summary,
        "test session starts" => Section::Progress,
        _ => Section::Other,
    }
}

/// Returns the title in a line such as `==== title ====`.
fn title(line: &str, fill: char) -> Option<&str> {
    let line = line.trim_end();
    let inner = line.trim_matches(fill);
    let framed = line.starts_with(fill) && line.ends_with(fill);
    let title = inner.strip_prefix(' ')?.strip_suffix(' ')?;
    (framed && !title.is_empty()).then_some(title)
}

/// Parses a line of `-v`: `tests/t.py::test_x PASSED   [ 50%]`.
fn progress(line: &str, cases: &mut Cases) {
    let line = match line.rsplit_once(" [") {
        Some((start, end)) if end.trim_end().ends_with("%]") => start,
        Some(_) | None => line,
    };
    if let Some((id, word)) = line.trim_end().rsplit_once(' ')
        && id.contains("::")
        && let Some(status) = status_of(word)
    {
        cases.note(id.trim_end(), status);
    }
}

fn status_of(word: &str) -> Option<TestStatus> {
    match word {
        "PASSED" => Some(TestStatus::Passed),
        "FAILED" => Some(TestStatus::Failed),
        "ERROR" => Some(TestStatus::Error),
        "SKIPPED" | "XFAIL" | "XPASS" => Some(TestStatus::Skipped),
        _ if word.starts_with("SUBFAILED") => Some(TestStatus::Failed),
        _ => None,
    }
}

/// Parses a line of the short summary: `FAILED tests/t.py::test_x - AssertionError`,
/// `SKIPPED [1] tests/t.py:3: why`.
fn summary(line: &str, cases: &mut Cases) {
    let Some((word, rest)) = line.split_once(' ') else {
        return;
    };
    let Some(status) = status_of(word) else {
        return;
    };
    if let Some(folded) = rest.strip_prefix('[').filter(|_| word == "SKIPPED") {
        if let Some((place, why)) = folded
            .split_once("] ")
            .and_then(|(_, r)| r.split_once(": "))
        {
            cases.note(place, status).message = why.to_owned();
        }
        return;
    }
    cases.note(id_of(rest), status);
}

/// Returns the id before ` - reason`. The parameters in brackets after the name can also contain a
/// dash.
fn id_of(rest: &str) -> &str {
    let dash = rest.find(" - ").unwrap_or(rest.len());
    let end = match rest.find('[') {
        Some(open) if open < dash => rest.find("] - ").map_or(rest.len(), |close| close + 1),
        Some(_) | None => dash,
    };
    rest[..end].trim_end()
}

/// One failure: the title `____ T.test_x ____` and the text after it.
struct FailureBlock {
    /// The name as pytest prints it: `T.test_x`, `ERROR at setup of T.test_x`,
    /// `ERROR collecting tests/t.py`.
    name: String,
    body: String,
}

impl FailureBlock {
    fn new(name: &str) -> Self {
        FailureBlock {
            name: name.to_owned(),
            body: String::new(),
        }
    }

    fn push(&mut self, line: &str) {
        self.body.push_str(line);
        self.body.push('\n');
    }

    /// Assigns the message to its test. The summary lists the ids in the same order as the
    /// failures.
    fn give(&self, root: &Path, cases: &mut Cases) {
        let collecting = self.name.strip_prefix("ERROR collecting ");
        let at = self
            .name
            .split_once(" of ")
            .filter(|(when, _)| when.starts_with("ERROR at "));
        let (name, status) = match (collecting, at) {
            (Some(file), _) => (file, TestStatus::Error),
            (None, Some((_, name))) => (name, TestStatus::Error),
            (None, None) => (&*self.name, TestStatus::Failed),
        };
        // A failed subtest has the name `T.test_x (i=1)`.
        let whole = name.split_once(" (").map_or(name, |(whole, _)| whole);
        let wanted = |id: &str| {
            let tail = id
                .split_once("::")
                .map_or(id, |(_, tail)| tail)
                .replace("::", ".");
            tail == name || tail == whole
        };
        let message = shorten(&self.body, root);
        let known = cases.list.iter().any(|case| wanted(&case.id));
        let open = cases.list.iter_mut().find(|case| {
            case.message.is_empty()
                && matches!(case.status, TestStatus::Failed | TestStatus::Error)
                && wanted(&case.id)
        });
        if let Some(case) = open {
            case.message = message;
        } else if !known {
            // Without a summary, only the name is known.
            cases.fail(name, status, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;
    use TestStatus::{Error, Failed, Passed, Skipped};

    const OUTPUT: &str = include_str!("../../../../fixtures/runner/pytest.txt");

    fn read_all(output: &str) -> Vec<(String, TestStatus, String)> {
        let list = cases(output, Path::new("/w"));
        list.into_iter()
            .map(|case| (case.id, case.status, case.message))
            .collect()
    }

    #[test]
    fn pytest_summary_and_failure_messages_are_parsed() {
        let read = read_all(OUTPUT);
        let named: Vec<_> = read
            .iter()
            .map(|(id, status, _)| (&**id, *status))
            .collect();
        assert_eq!(
            named,
            [
                ("tests/test_calc.py::T::test_bad", Failed),
                ("tests/test_calc.py::T::test_err", Failed),
                ("tests/test_calc.py::T::test_sub", Failed),
                ("tests/test_py.py::test_param[4-2]", Failed),
                ("tests/test_py.py::test_param[x - y-]]", Failed),
                ("tests/test_py.py::TestC::test_m", Failed),
                ("tests/test_calc.py::S::test_never", Error),
                ("tests/test_py.py::test_fix", Error),
                ("tests/test_calc.py:14", Skipped),
                ("tests/test_py.py:15", Skipped),
                ("tests/test_calc.py::T::test_xfail", Skipped),
                ("tests/test_py.py::TestC::test_x", Skipped),
                ("tests/test_calc.py::T::test_ok", Passed),
                ("tests/test_py.py::test_param[1-1]", Passed),
            ]
        );
        let message = |id: &str| &read.iter().find(|(found, ..)| found == id).unwrap().2;
        assert_eq!(
            message("tests/test_py.py::test_param[4-2]"),
            "tests/test_py.py:5: in test_param\n    assert div(a, b) == 1\n\
             E   assert 2.0 == 1\nE    +  where 2.0 = div(4, 2)"
        );
        assert!(message("tests/test_py.py::test_fix").ends_with("E   ValueError: fixture"));
        assert!(message("tests/test_calc.py::T::test_sub").ends_with("AssertionError: 1 != 0"));
        assert_eq!(message("tests/test_py.py:15"), "why not");
        assert!(read.iter().all(|(_, status, message)| message.is_empty()
            != matches!(status, Failed | Error)
            || *status == Skipped));
    }

    #[test]
    fn pytest_collection_error_is_parsed() {
        let output = "\
==================================== ERRORS ====================================
____________________ ERROR collecting tests/test_broken.py _____________________
tests/test_broken.py:1: in <module>
    import nothing_here
E   ModuleNotFoundError: No module named 'nothing_here'
=========================== short test summary info ============================
ERROR tests/test_broken.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
=============================== 1 error in 0.15s ===============================
";
        let read = read_all(output);
        assert_eq!(read.len(), 1);
        assert_eq!((&*read[0].0, read[0].1), ("tests/test_broken.py", Error));
        assert!(read[0].2.ends_with("'nothing_here'"), "{}", read[0].2);
    }

    #[test]
    fn verbose_pytest_lines_and_failures_without_a_summary_are_parsed() {
        let output = "\
============================= test session starts ==============================
t.py::test_a PASSED                                                      [ 33%]
t.py::test_b[x y] FAILED                                                 [ 66%]
t.py::test_c SKIPPED (later)                                             [100%]
=================================== FAILURES ===================================
__________________________________ test_b[x y] _________________________________
E   assert 0
________________________________ test_unheard_of _______________________________
E   assert 1
========================= 1 failed, 1 passed in 0.01s ==========================
";
        let read = read_all(output);
        let named: Vec<_> = read.iter().map(|(id, s, m)| (&**id, *s, &**m)).collect();
        assert_eq!(
            named,
            [
                ("t.py::test_a", Passed, ""),
                ("t.py::test_b[x y]", Failed, "E   assert 0"),
                ("test_unheard_of", Failed, "E   assert 1"),
            ]
        );
    }

    #[test]
    fn test_id_in_a_summary_line_ends_before_the_reason() {
        assert_eq!(id_of("t.py::a"), "t.py::a");
        assert_eq!(id_of("t.py::a - E: x - y"), "t.py::a");
        assert_eq!(id_of("t.py::a[x - y] - E: [1]"), "t.py::a[x - y]");
        assert_eq!(id_of("t.py::a - assert [1] == [2]"), "t.py::a");
        assert_eq!(id_of("t.py::a[x - y]"), "t.py::a[x - y]");
    }
}
