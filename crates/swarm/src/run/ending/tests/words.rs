//! Changes of documentation, comments and docstrings alone.

use super::finished_run::{FinishedRun, ends, failing, is, report};
use crate::event::ending::Proof;
use starling_core::{TestOutcome, TestStatus};

#[test]
fn documentation_change_needs_no_test() {
    let only = "Done: only documentation was changed";
    let docs = |changed, last| {
        ends(&FinishedRun {
            changed,
            last,
            before: &["a"],
            ..FinishedRun::default()
        })
    };
    assert_eq!(
        docs(&["README.md::"], None),
        is(Proof::NothingToProve, only)
    );
    assert_eq!(
        docs(&["docs/a.rst::"], Some(failing(&["a"]))),
        is(
            Proof::NothingToProve,
            &format!("{only}; 1 test fails: a (it failed before)")
        )
    );
    assert_eq!(docs(&["README.md::", "a.py::f"], None).0, Proof::Unproven);
}

#[test]
fn passing_tests_do_not_prove_a_changed_docstring() {
    use TestStatus::Passed;
    let docstring = |task, before| {
        ends(&FinishedRun {
            task,
            changed: &["a.py::f"],
            only_words: true,
            last: Some(report(TestOutcome::Passed, &[("a", Passed), ("b", Passed)])),
            before,
            ..FinishedRun::default()
        })
    };
    let words = "Done: only comments and docstrings were changed; 2 tests pass";
    assert_eq!(
        docstring("Document f", &[]),
        is(Proof::NothingToProve, words)
    );
    let shown = "Done and proven: 2 tests pass";
    assert_eq!(
        docstring("The example of f is wrong", &["a"]),
        is(Proof::Proven, shown)
    );
    assert_eq!(
        docstring("Add a doctest for f", &[]),
        is(Proof::AsBefore, "Done: 2 tests pass")
    );
}
