//! What proves a change, and what is told where the proof is missing.

use super::finished_run::{FinishedRun, ends, is, passing, red, report, settled, with_facts};
use crate::event::ending::Proof;
use crate::event::events::StopReason;
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::without_change::WithoutChange;
use crate::run::ending::{TakenBack, unproven};
use starling_core::{ResultSource, TestOutcome, TestReport, TestStatus};

#[test]
fn fixed_tests_prove_a_change_and_other_passing_tests_only_show_unchanged_behaviour() {
    let before = |what: &str| is(Proof::AsBefore, &format!("Done: {what} as before"));
    assert_eq!(settled(passing(12), &[]), before("12 tests pass"));
    assert_eq!(settled(passing(1), &[]), before("1 test passes"));
    let proven = is(Proof::Proven, "Done and proven: 12 tests pass");
    assert_eq!(settled(passing(12), &["t3"]), proven);
    for task in ["Rename f to g.", "Move f to b.py", "Simplify f", "Inline g"] {
        let stays = ends(&FinishedRun {
            task,
            behaves_otherwise: true,
            last: Some(passing(2)),
            ..FinishedRun::default()
        });
        assert_eq!(stays, before("2 tests pass"), "{task}");
    }
    let new = ends(&FinishedRun {
        task: "Add a test for f",
        last: Some(passing(2)),
        ..FinishedRun::default()
    });
    assert_eq!(new, is(Proof::AsBefore, "Done: 2 tests pass"));
}

#[test]
fn behaviour_change_is_proven_only_by_a_test_that_failed_before() {
    let ends_with = |task, before, last| {
        ends(&FinishedRun {
            task,
            last: Some(last),
            before,
            behaves_otherwise: true,
            ..FinishedRun::default()
        })
    };
    let proven = is(Proof::Proven, "Done and proven: 2 tests pass");
    let but = "Done, but no test was seen to fail without it; 2 tests pass";
    for task in [
        "Fix f.",
        "Add an option -v to f.",
        "f is wrong",
        "Update the README",
        "How does f work?",
    ] {
        assert_eq!(ends_with(task, &[], passing(2)), is(Proof::Unproven, but));
        assert_eq!(ends_with(task, &["t1"], passing(2)), proven, "{task}");
    }
    let red = || {
        let cases = [("a", TestStatus::Passed), ("red", TestStatus::Failed)];
        report(TestOutcome::Failed, &cases)
    };
    let but = "Done, but no test was seen to fail without it; 1 test passes; 1 test fails: red (it \
               failed before)";
    assert_eq!(
        ends_with("f is wrong", &["red"], red()),
        is(Proof::Unproven, but)
    );
    let but = "Done, but no test was seen to fail without it; 1 test passes; 1 test fails: red (it \
               failed before), no part of the task";
    assert_eq!(
        ends_with("Add an option -v.", &["red"], red()),
        is(Proof::Unproven, but)
    );
}

#[test]
fn tests_that_do_not_cover_the_change_prove_it_only_if_a_failing_test_now_passes() {
    let ends_with = |before| {
        ends(&FinishedRun {
            last: Some(passing(2)),
            before,
            unreached: &["a.py::f", "b.sh::"],
            ..FinishedRun::default()
        })
    };
    let but = "Done, but no test reaches a.py::f, b.sh::; 2 tests pass";
    assert_eq!(ends_with(&[]), is(Proof::Unproven, but));
    let proven = "Done and proven: 2 tests pass";
    assert_eq!(ends_with(&["t1"]), is(Proof::Proven, proven));
    let red = ends(&FinishedRun {
        task: "Simplify f.",
        last: Some(report(
            TestOutcome::Failed,
            &[("a", TestStatus::Passed), ("red", TestStatus::Failed)],
        )),
        before: &["red"],
        unreached: &["a.py::f"],
        ..FinishedRun::default()
    });
    let but = "Done, but no test reaches a.py::f; 1 test passes; 1 test fails: red (it failed \
               before), no part of the task";
    assert_eq!(red, is(Proof::Unproven, but));
}

#[test]
fn test_command_without_results_proves_a_change_only_if_it_failed_before() {
    let no_test = "Done, untested: the test command ran no test that Starling can see (its exit status was 0)";
    assert_eq!(settled(passing(0), &[]), is(Proof::Unproven, no_test));
    let ends_after = |report_before| {
        ends(&FinishedRun {
            last: Some(passing(0)),
            report_before: Some(report_before),
            ..FinishedRun::default()
        })
    };
    let proven = "Done and proven: `make check` failed before and passes now";
    assert_eq!(ends_after(red()), is(Proof::Proven, proven));
    let other = TestReport {
        command: "make check a".to_owned(),
        ..red()
    };
    for report_before in [passing(0), other] {
        assert_eq!(ends_after(report_before), is(Proof::Unproven, no_test));
    }
}

#[test]
fn printed_test_results_do_not_prove_a_change() {
    let printed = || TestReport {
        source: ResultSource::Printed,
        ..passing(12)
    };
    let but = "Done, but 12 tests pass only by what `make check` printed";
    assert_eq!(settled(printed(), &[]), is(Proof::Unproven, but));
    let after_red = ends(&FinishedRun {
        last: Some(printed()),
        report_before: Some(red()),
        ..FinishedRun::default()
    });
    let proven = "Done and proven: `make check` failed before and passes now (12 tests pass by what it printed)";
    assert_eq!(after_red, is(Proof::Proven, proven));
}

#[test]
fn tests_that_pass_only_with_changed_test_files_do_not_prove_a_change() {
    let ends_with = |as_changed| {
        ends(&FinishedRun {
            last: Some(passing(12)),
            as_changed,
            ..FinishedRun::default()
        })
    };
    let but = |what: &str| is(Proof::Unproven, &format!("Done, but {what}"));
    assert_eq!(
        ends_with(&["a"]),
        but("1 test passes only as it was changed: a")
    );
    assert_eq!(
        ends_with(&["a", "b"]),
        but("2 tests pass only as they were changed: a, b")
    );
    assert_eq!(
        ends_with(&[WHOLE_RUN]),
        but("`make check` passes only with test files that were changed")
    );
}

#[test]
fn change_without_any_executed_test_is_untested() {
    let untested = |why: &str| is(Proof::Unproven, &format!("Done, untested: {why}"));
    let none = untested("no test ran (no tests were found)");
    assert_eq!(ends(&FinishedRun::default()), none);
    let skipped = report(TestOutcome::Passed, &[("a", TestStatus::Skipped)]);
    assert_eq!(
        settled(skipped, &[]),
        untested("no test ran (1 test skipped)")
    );
    let not_run = report(TestOutcome::NotRun, &[]);
    assert_eq!(
        settled(not_run, &[]),
        untested("no test ran (`make check`: no rule)")
    );
    let of_runner = TestReport {
        output: "no test ran: `make check` found none (not found: x)\n".to_owned(),
        ..report(TestOutcome::NotRun, &[])
    };
    assert_eq!(
        settled(of_runner, &[]),
        untested("no test ran (`make check`: found none (not found: x))")
    );
    let long = TestReport {
        output: format!("begin {} end\n", "very ".repeat(50)),
        ..report(TestOutcome::NotRun, &[])
    };
    let (_, told) = settled(long, &[]);
    assert!(
        told.starts_with("Done, untested: no test ran (`make check`: begin very "),
        "{told}"
    );
    assert!(told.ends_with("…)"), "{told}");
    let hanging = report(TestOutcome::TimedOut, &[("a", TestStatus::Passed)]);
    assert_eq!(
        settled(hanging, &[WHOLE_RUN]),
        untested("the tests timed out after 6 s")
    );
}

#[test]
fn tests_that_time_out_leave_a_kept_change_untested_and_a_reverted_one_not_done() {
    let hanging = |changed: &'static [&'static str], taken_back| {
        ends(&FinishedRun {
            stop_reason: StopReason::TestsFail {
                failing: vec![WHOLE_RUN.to_owned()],
            },
            changed,
            taken_back,
            last: Some(report(TestOutcome::TimedOut, &[])),
            ..FinishedRun::default()
        })
    };
    assert_eq!(
        hanging(&["a.py::f"], TakenBack::No),
        is(
            Proof::Unproven,
            "Done, untested: the tests timed out after 6 s"
        )
    );
    let (proof, headline) = hanging(&[], TakenBack::Yes(None));
    assert_eq!(proof, Proof::NotDone);
    assert!(
        headline.starts_with("Not done: the tests timed out after 6 s; the changes were"),
        "{headline}"
    );
}

#[test]
fn flaky_tests_do_not_prove_a_change() {
    use TestStatus::{Passed, Unsteady};
    let cases = [("a", Passed), ("b", Unsteady)];
    let run = |doubtful, stop_reason| FinishedRun {
        stop_reason,
        last: Some(report(TestOutcome::Passed, &cases)),
        unsteady: &["b"],
        doubtful,
        ..FinishedRun::default()
    };
    let said = |run: &FinishedRun<'_>, proof: Proof, headline: &str| {
        assert_eq!(ends(run), (proof, headline.to_owned()));
    };
    said(
        &run(&[], StopReason::Settled),
        Proof::AsBefore,
        "Done: 1 test passes as before; 1 test fails now and then: b",
    );
    said(
        &run(&["b"], StopReason::Settled),
        Proof::Unproven,
        "Done, but 1 test fails now and then: b",
    );
    let failing = vec!["b".to_owned()];
    said(
        &run(&["b"], StopReason::TestsFail { failing }),
        Proof::NotDone,
        "Not done: 1 test fails now and then: b; changed a.py::f (1 test fails now and then: b)",
    );
    let only = FinishedRun {
        last: Some(report(TestOutcome::Passed, &cases[1..])),
        ..run(&[], StopReason::Settled)
    };
    said(
        &only,
        Proof::Unproven,
        "Done, but 1 test fails now and then: b",
    );
    let beside = FinishedRun {
        task: "Make a pass.",
        last: Some(report(
            TestOutcome::Failed,
            &[("a", Passed), ("b", Unsteady), ("c", TestStatus::Failed)],
        )),
        before: &["c", "a"],
        required: &["a"],
        ..run(&["b"], StopReason::Settled)
    };
    said(
        &beside,
        Proof::Unproven,
        "Done, but 1 test fails: c (it failed before); 1 test passes; 1 test fails now and then: b",
    );
}

#[test]
fn tests_that_could_not_run_with_their_original_text_do_not_prove_a_change() {
    let run = FinishedRun {
        last: Some(passing(3)),
        unheld: &["calc.py"],
        ..FinishedRun::default()
    };
    let headline = "Done, but the run also changed tests in calc.py, and could not run them with their \
                    original text";
    assert_eq!(ends(&run), (Proof::Unproven, headline.to_owned()));
}

#[test]
fn new_test_that_passes_without_the_fix_leaves_it_unproven() {
    let run = |task, behaves_otherwise| FinishedRun {
        task,
        last: Some(passing(2)),
        behaves_otherwise,
        new_tests: WithoutChange {
            passes: vec!["test_closes".to_owned()],
            ..WithoutChange::default()
        },
        ..FinishedRun::default()
    };
    let headline = "Done, but the new test passes without it, too; 2 tests pass";
    for task in [
        "observing() leaves the session open when the block raises. Close it in every case, and \
         add a test to tests/test_session.py.",
        "observing() leaves the session open. Fix it, and add a test.",
    ] {
        let fix = run(task, true);
        assert_eq!(ends(&fix), is(Proof::Unproven, headline), "{task}");
        assert!(with_facts(&fix, unproven).is_some(), "{task}");
    }
    let headline = "Done: 2 tests pass; the new test passes without the change, too";
    let only_a_test = run("Add a test for observing.", false);
    assert_eq!(ends(&only_a_test), is(Proof::AsBefore, headline));
}

#[test]
fn reason_for_a_missing_proof_is_the_missing_test_and_no_test_that_failed_before() {
    let cases = [("a", TestStatus::Passed), ("b", TestStatus::Failed)];
    let run = |unreached| FinishedRun {
        task: "The line number is one too small.",
        last: Some(report(TestOutcome::Failed, &cases)),
        before: &["b"],
        behaves_otherwise: true,
        unreached,
        ..FinishedRun::default()
    };
    let why = |unreached| with_facts(&run(unreached), unproven).unwrap();
    assert_eq!(why(&[]), "no test was seen to fail without it");
    assert_eq!(why(&["door.js::"]), "no test reaches door.js::");
}
