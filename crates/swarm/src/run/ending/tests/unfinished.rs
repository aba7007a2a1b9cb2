//! Runs that failed or were stopped.

use super::finished_run::{FinishedRun, ends, failing, is, passing};
use crate::event::ending::Proof;
use crate::event::events::StopReason;
use crate::run::ending::TakenBack;

#[test]
fn headline_of_an_unfinished_run_says_what_was_changed_or_reverted() {
    let fails = |ids: &[&str]| StopReason::TestsFail {
        failing: ids.iter().map(|id| (*id).to_owned()).collect(),
    };
    let run = FinishedRun {
        stop_reason: fails(&["a", "b"]),
        changed: &[],
        taken_back: TakenBack::Yes(Some("/c/1.patch")),
        last: Some(failing(&["a", "b"])),
        ..FinishedRun::default()
    };
    let taken_back = "the changes were taken back and are kept in /c/1.patch";
    assert_eq!(
        ends(&run),
        is(
            Proof::NotDone,
            &format!("Not done: with the changes, 2 tests fail: a, b; {taken_back}")
        )
    );
    let mut red = failing(&["a"]);
    red.cases[0].message = "t.py:3: in a\nE   assert 1 == 2\nE    +  where 1 = f()".to_owned();
    let run = FinishedRun {
        stop_reason: fails(&["a"]),
        last: Some(red),
        declined: &["b.py::g: a negative rate is allowed here"],
        ..run
    };
    assert_eq!(
        ends(&run),
        is(
            Proof::NotDone,
            &format!(
                "Not done: with the changes, 1 test fails: a (assert 1 == 2); b.py::g: a negative \
                 rate is allowed here; {taken_back}"
            )
        )
    );
    let kept = FinishedRun {
        stop_reason: StopReason::ProblemsRemain {
            problems: vec!["a.py:1: undefined name `x`".to_owned()],
        },
        last: Some(passing(2)),
        ..FinishedRun::default()
    };
    let expected = "Not done: a.py:1: undefined name `x`; changed a.py::f (2 \
                    tests pass)";
    assert_eq!(ends(&kept), is(Proof::NotDone, expected));
    let failed = FinishedRun {
        stop_reason: StopReason::Failed {
            error: "no answer\nmore".to_owned(),
        },
        changed: &[],
        ..FinishedRun::default()
    };
    assert_eq!(ends(&failed), is(Proof::NotDone, "Not done: no answer"));
}

#[test]
fn headline_of_a_stopped_run_names_who_stopped_it_and_the_remaining_changes() {
    let stopped = |stop_reason, changed, last| {
        ends(&FinishedRun {
            stop_reason,
            changed,
            last,
            ..FinishedRun::default()
        })
    };
    assert_eq!(
        stopped(StopReason::Cancelled, &[], None),
        is(Proof::NotDone, "Stopped by you; nothing was changed")
    );
    assert_eq!(
        stopped(StopReason::Cancelled, &["a.py::f"], None),
        is(Proof::NotDone, "Stopped by you; changed a.py::f (untested)")
    );
    let what = "2 of 2 model calls".to_owned();
    assert_eq!(
        stopped(
            StopReason::LedgerEmpty { what },
            &["a.py::f", "a.py::g"],
            Some(passing(1))
        ),
        is(
            Proof::NotDone,
            "Stopped by the limit: 2 of 2 model calls; changed a.py::f, a.py::g (1 test passes)"
        )
    );
}
