use super::*;
use crate::{ActorId, AgentOutcome, Event};
use starling_core::{ResultSource, Verdict};
use starling_syntax::SymbolPath;

fn report(outcome: TestOutcome, cases: &[(&str, TestStatus)]) -> TestReport {
    TestReport {
        command: "make check".to_owned(),
        output: "usage: make\nno rule\n".to_owned(),
        millis: 5_400,
        ..TestReport::of_cases(outcome, cases)
    }
}

fn passing(count: usize) -> TestReport {
    let ids: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
    let cases: Vec<(&str, TestStatus)> = ids
        .iter()
        .map(|id| (id.as_str(), TestStatus::Passed))
        .collect();
    report(TestOutcome::Passed, &cases)
}

fn failing(ids: &[&str]) -> TestReport {
    let cases: Vec<_> = ids.iter().map(|id| (*id, TestStatus::Failed)).collect();
    report(TestOutcome::Failed, &cases)
}

/// The data about a finished run that a test states. Headline and proof status are computed from
/// it.
struct FinishedRun<'a> {
    stop_reason: StopReason,
    task: &'a str,
    /// The goal of the task; `None` to derive the goal from the text of the task.
    goal: Option<Goal>,
    changed: &'a [&'a str],
    taken_back: TakenBack<'a>,
    declined: &'a [&'a str],
    last: Option<TestReport>,
    before: &'a [&'a str],
    required: &'a [&'a str],
    possible: &'a [&'a str],
    as_changed: &'a [&'a str],
    unreached: &'a [&'a str],
    behaves_otherwise: bool,
    only_words: bool,
    aim: ChangeRelevance,
    beside_failures: bool,
    left_out: &'a [&'a str],
    left_out_is_named: bool,
    rejected: &'a [&'a str],
    problems: &'a [&'a str],
    unheld: &'a [&'a str],
    unsteady: &'a [&'a str],
    doubtful: &'a [&'a str],
    report_before: Option<TestReport>,
    nothing_to_change: bool,
    new_tests: WithoutChange,
}

impl Default for FinishedRun<'_> {
    fn default() -> Self {
        FinishedRun {
            stop_reason: StopReason::Settled,
            task: "mend it",
            goal: None,
            changed: &["a.py::f"],
            taken_back: TakenBack::No,
            declined: &[],
            last: None,
            before: &[],
            required: &[],
            possible: &[],
            as_changed: &[],
            unreached: &[],
            behaves_otherwise: false,
            only_words: false,
            aim: ChangeRelevance::default(),
            beside_failures: false,
            left_out: &[],
            left_out_is_named: false,
            rejected: &[],
            problems: &[],
            unheld: &[],
            unsteady: &[],
            doubtful: &[],
            report_before: None,
            nothing_to_change: false,
            new_tests: WithoutChange::default(),
        }
    }
}

fn ends(run: &FinishedRun<'_>) -> (Proof, String) {
    let ending = with_facts(run, ending);
    (ending.proof, ending.headline)
}

/// Calls a function with the facts about a finished run.
fn with_facts<R>(run: &FinishedRun<'_>, read: impl FnOnce(&RunFacts<'_>) -> R) -> R {
    let changed: Vec<SymbolPath> = run.changed.iter().map(|one| one.parse().unwrap()).collect();
    let before = run.before.iter().map(|id| (*id).to_owned()).collect();
    let required = run.required.iter().map(|id| (*id).to_owned()).collect();
    let possible = run.possible.iter().map(|id| (*id).to_owned()).collect();
    let as_changed: Vec<String> = run.as_changed.iter().map(|id| (*id).to_owned()).collect();
    let left_out: Vec<String> = run.left_out.iter().map(|one| (*one).to_owned()).collect();
    let unreached: Vec<SymbolPath> = run
        .unreached
        .iter()
        .map(|one| one.parse().unwrap())
        .collect();
    let owned = |ids: &[&str]| -> Vec<String> { ids.iter().map(|id| (*id).to_owned()).collect() };
    let (unsteady, doubtful) = (owned(run.unsteady), owned(run.doubtful));
    let unheld = owned(run.unheld);
    let (rejected, problems) = (owned(run.rejected), owned(run.problems));
    let declined = owned(run.declined);
    read(&RunFacts {
        stop_reason: &run.stop_reason,
        task: run.task,
        goal: run.goal.unwrap_or_else(|| crate::task::goal::of(run.task)),
        changed: &changed,
        taken_back: run.taken_back,
        not_taken_back: None,
        with_changes: None,
        declined: &declined,
        last_check: match &run.last {
            Some(report) => LastCheck::Known(report),
            None => LastCheck::Absent {
                why: "no tests were found",
            },
        },
        failed_before: &before,
        did_not_run: &BTreeSet::new(),
        required: &required,
        possible: &possible,
        examples: &[],
        new_tests: &run.new_tests,
        unshown_parts: &[],
        unreached: &unreached,
        behaves_otherwise: run.behaves_otherwise,
        only_words: run.only_words,
        aim: &run.aim,
        beside_failures: run.beside_failures,
        left_out: &left_out,
        left_out_is_named: run.left_out_is_named,
        rejected: &rejected,
        problems: &problems,
        needs_your_yes: &[],
        is_a_part: false,
        refused: None,
        only_as_changed: &as_changed,
        unheld: &unheld,
        unsteady: &unsteady,
        doubtful: &doubtful,
        report_before: run.report_before.as_ref(),
        nothing_to_change: run.nothing_to_change,
    })
}

fn settled(last: TestReport, before: &[&str]) -> (Proof, String) {
    ends(&FinishedRun {
        last: Some(last),
        before,
        ..FinishedRun::default()
    })
}

fn is(proof: Proof, headline: &str) -> (Proof, String) {
    (proof, headline.to_owned())
}

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
fn run_with_a_refused_proposal_is_unproven() {
    let ends_with = |changed, left_out| {
        let last = Some(passing(3));
        let run = FinishedRun {
            changed,
            left_out,
            last,
            ..FinishedRun::default()
        };
        ends(&run)
    };
    let but = "Done, but 1 proposal was refused: a.py::g (tests fail); 3 tests pass as before";
    let one = &["a.py::g (tests fail)"][..];
    assert_eq!(ends_with(&["a.py::f"], one), is(Proof::Unproven, but));
    let documented = "Done, but 1 proposal was refused: a.py::g (tests fail); only documentation \
                      was changed; 3 tests pass";
    assert_eq!(
        ends_with(&["README.md::"], one),
        is(Proof::Unproven, documented)
    );
    let both = ends_with(&["a.py::f"], &["a.py::g (x)", "b.py::h (y)"]);
    let partly = "Partly done: 2 proposals were refused: a.py::g (x), b.py::h (y); changed only \
                  a.py::f; 3 tests pass as before";
    assert_eq!(both, is(Proof::Unproven, partly));
    let unshown = ends(&FinishedRun {
        task: "f gets a new parameter",
        behaves_otherwise: true,
        left_out: &["a.py::g (x)", "b.py::h (y)"],
        last: Some(passing(3)),
        ..FinishedRun::default()
    });
    let partly = "Partly done: 2 proposals were refused: a.py::g (x), b.py::h (y); changed only \
                  a.py::f; no test was seen to fail without it; 3 tests pass";
    assert_eq!(unshown, is(Proof::Unproven, partly));
    let named = ends(&FinishedRun {
        changed: &["a.py::f"],
        left_out: &["a.py::g (x)"],
        left_out_is_named: true,
        last: Some(passing(3)),
        ..FinishedRun::default()
    });
    let partly = "Partly done: 1 proposal was refused: a.py::g (x); changed only a.py::f; 3 tests \
                  pass as before";
    assert_eq!(named, is(Proof::Unproven, partly));
    let as_many = ends_with(&["a.py::f", "a.py::k"], &["a.py::g (x)", "b.py::h (y)"]);
    let but =
        "Done, but 2 proposals were refused: a.py::g (x), b.py::h (y); 3 tests pass as before";
    assert_eq!(as_many, is(Proof::Unproven, but));
}

#[test]
fn refused_proposal_is_reported_unless_another_for_its_symbol_was_applied() {
    let refused = |agent: &str| Event::ProposalRefused {
        agent: ActorId::Agent(agent.parse().unwrap()),
        why: "for the agent".to_owned(),
        shown: Some("tests fail\nmore".to_owned()),
    };
    let applied = |symbol: &str| Event::ProposalApplied {
        proposal: crate::ProposalId(1),
        symbols: vec![symbol.parse().unwrap()],
        diff: String::new(),
        change: None,
    };
    let events = [
        refused("a.py::f"),
        refused("a.py::g"),
        refused("a.py::g"),
        applied("a.py::f"),
    ];
    assert_eq!(left_out(&events), ["a.py::g (tests fail)"]);
    assert!(left_out(&[refused("a.py::A.f"), applied("a.py::A")]).is_empty());
    // A change of the module body does not count as a change of the function.
    let beside = [refused("a.py::f"), applied("a.py::")];
    assert_eq!(left_out(&beside), ["a.py::f (tests fail)"]);
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

fn red() -> TestReport {
    TestReport {
        exit: Some(2),
        ..report(TestOutcome::Failed, &[])
    }
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
fn task_to_add_a_test_is_done_despite_tests_that_failed_before() {
    use TestStatus::{Failed, Passed};
    let last = || report(TestOutcome::Failed, &[("new", Passed), ("red", Failed)]);
    let ended = |task: &str, before: &[&str]| {
        ends(&FinishedRun {
            last: Some(last()),
            before,
            task,
            ..FinishedRun::default()
        })
    };
    let headline = "Done: the new test passes; 1 test fails: red (it failed before), no part of \
                    the task";
    assert_eq!(
        ended("Add a test for parse.", &["red"]),
        is(Proof::AsBefore, headline)
    );
    assert_eq!(ended("Add a test for parse.", &[]).0, Proof::Unproven);
    assert_eq!(ended("Fix parse.", &["red"]).0, Proof::Unproven);
}

#[test]
fn failing_test_that_the_task_may_be_about_is_not_called_no_part_of_it() {
    let ends_with = |possible| {
        let cases = [("a", TestStatus::Passed), ("red", TestStatus::Failed)];
        ends(&FinishedRun {
            last: Some(report(TestOutcome::Failed, &cases)),
            before: &["a", "red"],
            required: &["a"],
            possible,
            ..FinishedRun::default()
        })
    };
    let but = "Done, but 1 test fails: red (it failed before); 1 test passes";
    assert_eq!(ends_with(&["red"]), is(Proof::Unproven, but));
    assert_eq!(ends_with(&[]).0, Proof::Proven);
}

#[test]
fn headline_of_a_failed_task_counts_the_unrelated_failing_tests() {
    let told = |ids: &[&str]| {
        ends(&FinishedRun {
            stop_reason: StopReason::TestsFail {
                failing: vec!["a".to_owned()],
            },
            last: Some(failing(ids)),
            ..FinishedRun::default()
        })
        .1
    };
    let is = |ids: &[&str], expected: &str| {
        let told = told(ids);
        assert!(told.starts_with(expected), "{told}");
    };
    is(&["a"], "Not done: 1 test fails: a;");
    let others = "Not done: 1 test fails: a (3 other tests fail, no part of the task);";
    is(&["a", "b", "c", "d"], others);
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
fn headline_of_a_run_without_changes_names_the_required_tests_that_still_fail() {
    let told = |required| {
        ends(&FinishedRun {
            stop_reason: StopReason::NothingChanged { why: "done".into() },
            changed: &[],
            report_before: Some(failing(&["a", "b"])),
            required,
            ..FinishedRun::default()
        })
    };
    let expected = "Not done: 1 test still fails: a; done";
    assert_eq!(told(&["a"]), is(Proof::NotDone, expected));
    let expected = "Not done: 2 tests still fail: a, b; done";
    assert_eq!(told(&["a", "b"]), is(Proof::NotDone, expected));
    assert_eq!(told(&[]), is(Proof::NotDone, "Not done: done"));
}

#[test]
fn unrelated_known_failures_do_not_make_a_change_unproven() {
    let run = |task, last: &[(&str, TestStatus)], required| FinishedRun {
        task,
        last: Some(report(TestOutcome::Failed, last)),
        before: &["red"],
        required,
        ..FinishedRun::default()
    };
    let ends = |task, last: &[(&str, TestStatus)], required| ends(&run(task, last, required));
    let cases = [("a", TestStatus::Passed), ("red", TestStatus::Failed)];
    let ends_as = |goal, task| {
        super::tests::ends(&FinishedRun {
            goal: Some(goal),
            ..run(task, &cases, &[])
        })
    };
    let rest = "1 test fails: red (it failed before), no part of the task";
    let stays = format!("Done: 1 test passes as before; {rest}");
    for task in [
        "Simplify f.",
        "red needs a file that we do not have, leave test `red`. Simplify f.",
    ] {
        assert_eq!(
            ends(task, &cases, &[]),
            is(Proof::AsBefore, &stays),
            "{task}"
        );
    }
    // A task that only deletes or renames something counts as a refactoring.
    let deleted = ends_as(Goal::Refactoring, "Delete `f`.");
    assert_eq!(deleted, is(Proof::AsBefore, &stays));
    let proven = format!("Done and proven: 1 test passes; {rest}");
    assert_eq!(
        ends("a fails, mend f", &cases, &["a"]),
        is(Proof::Proven, &proven)
    );
    let left = [("a", TestStatus::Passed), ("test_red", TestStatus::Failed)];
    let told = super::tests::ends(&FinishedRun {
        task: "f is wrong; test_red needs the network, leave it",
        last: Some(report(TestOutcome::Failed, &left)),
        before: &["test_red"],
        ..FinishedRun::default()
    });
    let told_rest = "1 test fails: test_red (it failed before), no part of the task";
    let expected = format!("Done: 1 test passes as before; {told_rest}");
    assert_eq!(told, is(Proof::AsBefore, &expected));
    // If no test shows the bug that the task describes, any failing test may be caused by it.
    let unproven = |found: (Proof, String)| assert_eq!(found.0, Proof::Unproven, "{}", found.1);
    unproven(ends("f is wrong", &cases, &[]));
    unproven(ends("Simplify f.", &cases, &["red"]));
    unproven(ends("Simplify f.", &cases[1..], &[]));
    let new = [cases[0], ("new", TestStatus::Failed)];
    unproven(ends("Simplify f.", &new, &[]));
}

#[test]
fn tests_that_fail_as_before_do_not_prove_a_change() {
    let but = |what: &str| is(Proof::Unproven, &format!("Done, but {what}"));
    assert_eq!(
        settled(failing(&["a", "b"]), &["a", "b"]),
        but("2 tests fail: a, b (both failed before)")
    );
    assert_eq!(
        settled(failing(&["a"]), &["a"]),
        but("1 test fails: a (it failed before)")
    );
    let many = ["a", "b", "c", "d", "e"];
    assert_eq!(
        settled(failing(&many), &many),
        but("5 tests fail: a, b, c, d and 1 more (all failed before)")
    );
    assert_eq!(
        settled(failing(&["a", "b"]), &["a"]),
        but("2 tests fail: a, b (1 failed before)")
    );
    assert_eq!(
        settled(failing(&[]), &[WHOLE_RUN]),
        but("`make check` fails (it failed before)")
    );
}

#[test]
fn headline_with_failing_tests_counts_the_passing_ones() {
    use TestStatus::{Failed, Passed};
    let cases = [("a", Passed), ("b", Passed), ("red", Failed)];
    let last = || report(TestOutcome::Failed, &cases);
    let headline = "Done, but 1 test fails: red (it failed before); 2 tests pass";
    assert_eq!(settled(last(), &["red"]), is(Proof::Unproven, headline));
    let (proof, headline) = ends(&FinishedRun {
        stop_reason: StopReason::TestsFail {
            failing: vec!["red".to_owned()],
        },
        last: Some(last()),
        ..FinishedRun::default()
    });
    assert_eq!(proof, Proof::NotDone);
    assert!(
        headline.starts_with("Not done: 2 tests pass; 1 test fails: red;"),
        "{headline}"
    );
}

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

#[test]
fn run_without_a_needed_change_has_nothing_to_prove() {
    let unchanged = |task, nothing_to_change| {
        ends(&FinishedRun {
            stop_reason: StopReason::NothingChanged {
                why: "f returns 2 already\nsee line 3".to_owned(),
            },
            task,
            changed: &[],
            nothing_to_change,
            ..FinishedRun::default()
        })
    };
    assert_eq!(
        unchanged("What does f return?\n", true),
        is(Proof::NothingToProve, "Answered; nothing was changed")
    );
    assert_eq!(
        unchanged("Make f return 2.", true),
        is(
            Proof::NothingToProve,
            "Nothing to change: f returns 2 already"
        )
    );
    assert_eq!(
        unchanged("What does f return?", false),
        is(Proof::NotDone, "Not done: f returns 2 already")
    );
}

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

fn finished(agent: &str, outcome: AgentOutcome, summary: &str) -> Event {
    Event::AgentFinished {
        agent: ActorId::Agent(agent.parse().unwrap()),
        outcome,
        summary: summary.to_owned(),
    }
}

#[test]
fn last_summaries_of_the_agents_explain_why_nothing_changed() {
    let nothing = |agent, summary| finished(agent, AgentOutcome::NothingToChange, summary);
    let gave_up = |agent, why: &str| {
        let why = why.to_owned();
        finished(agent, AgentOutcome::GaveUp { why }, "")
    };
    let by_all = unchanged(&[
        gave_up("a.py::f", "no time"),
        nothing("a.py::f", "f is right"),
        nothing("b.py::g", "f is right"),
    ]);
    assert_eq!((by_all.why.as_str(), by_all.by_all), ("f is right", true));
    let one_gave_up = unchanged(&[
        nothing("b.py::g", "g is right"),
        gave_up("a.py::f", "20 turns without an end"),
    ]);
    assert_eq!(one_gave_up.why, "a.py::f gave up: 20 turns without an end");
    assert!(!one_gave_up.by_all);
    assert!(!unchanged(&[]).by_all, "nobody looked");
    let missed = Event::NotWoken {
        symbol: "b.py::g".to_owned(),
        from: ActorId::Scout,
        why: "no room".to_owned(),
    };
    assert!(!unchanged(&[nothing("a.py::f", "fine"), missed]).by_all);
    let rejected = Event::ProposalReviewed {
        proposal: crate::ProposalId(1),
        by: ActorId::User,
        verdict: Verdict::Reject {
            reason: "too long\nby far".to_owned(),
        },
    };
    let refused = unchanged(&[rejected, nothing("a.py::f", "given up")]);
    assert_eq!(refused.why, "no proposal was accepted: too long");
    assert!(!refused.by_all);
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
fn headline_names_the_proposals_that_the_user_rejected() {
    let rejected = ends(&FinishedRun {
        last: Some(passing(3)),
        rejected: &["#2 (a.py::g)"],
        ..FinishedRun::default()
    });
    let headline = "Done: 3 tests pass as before; you rejected #2 (a.py::g)";
    assert_eq!(rejected, is(Proof::AsBefore, headline));
    let broken = ends(&FinishedRun {
        last: Some(passing(3)),
        rejected: &["#2 (a.py::g)"],
        problems: &["b.py:1: `h` is not defined in a.py"],
        ..FinishedRun::default()
    });
    let headline = "Done, but b.py:1: `h` is not defined in a.py; 3 tests pass as before; \
                    you rejected #2 (a.py::g)";
    assert_eq!(broken, is(Proof::Unproven, headline));
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
fn headline_counts_new_tests_beside_failing_ones() {
    let known = [("old", TestStatus::Passed), ("red", TestStatus::Failed)];
    let run = |new: &[&'static str]| {
        let new = new.iter().map(|id| (*id, TestStatus::Passed));
        let cases: Vec<_> = known.iter().copied().chain(new).collect();
        FinishedRun {
            task: "Add a test for Book: its label and reverse charge",
            changed: &["tests/test_items.py::"],
            last: Some(report(TestOutcome::Failed, &cases)),
            report_before: Some(report(TestOutcome::Failed, &known)),
            before: &["red"],
            ..FinishedRun::default()
        }
    };
    let rest = "1 test fails: red (it failed before), no part of the task";
    let two = run(&["label", "charge[a]", "charge[b]"]);
    let headline = format!("Done: the 2 new tests pass; {rest}");
    assert_eq!(ends(&two), is(Proof::AsBefore, &headline));
    let headline = format!("Done: the new test passes; {rest}");
    assert_eq!(ends(&run(&["label"])), is(Proof::AsBefore, &headline));
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

#[test]
fn headline_names_only_the_failing_tests_that_may_be_part_of_the_task() {
    use TestStatus::{Failed, Passed};
    let cases = [("a", Passed), ("b", Failed), ("c", Failed)];
    let run = FinishedRun {
        task: "format pads nothing",
        last: Some(report(TestOutcome::Failed, &cases)),
        before: &["a", "b", "c"],
        required: &["a"],
        possible: &["c"],
        ..FinishedRun::default()
    };
    let headline = "Done, but 1 test fails: c (it failed before) (1 other test fails, no part of the \
                    task); 1 test passes";
    assert_eq!(ends(&run), is(Proof::Unproven, headline));
}
