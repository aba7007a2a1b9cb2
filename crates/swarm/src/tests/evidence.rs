//! Evidence: the results of a test run for a change, and their display.

use std::collections::BTreeSet;

use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::ids::tail;
use crate::evidence::test_evidence::failing_ids;
use crate::*;
use starling_core::*;
use starling_syntax::FilePath;

fn report(outcome: TestOutcome, cases: &[(&str, TestStatus)]) -> TestReport {
    let case = |(id, status): &(&str, TestStatus)| TestCase {
        id: (*id).into(),
        status: *status,
        message: format!("message of {id}\n"),
    };
    TestReport {
        outcome,
        exit: None,
        command: "pytest".into(),
        cases: cases.iter().map(case).collect(),
        source: Default::default(),
        output: "the output".into(),
        millis: 1_250,
    }
}

fn was(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// The fields of [`TestEvidence::Known`] that these tests compare.
struct KnownTestEvidence {
    fixed: Vec<String>,
    broken: Vec<String>,
    still: Vec<String>,
    details: String,
    passed: usize,
}

fn compare(before: &[&str], after: &TestReport) -> KnownTestEvidence {
    match TestEvidence::compare(&was(before), after) {
        TestEvidence::Known {
            fixed,
            broken,
            still_failing,
            details,
            passed,
            ..
        } => KnownTestEvidence {
            fixed,
            broken,
            still: still_failing,
            details,
            passed,
        },
        TestEvidence::Unknown { reason } => panic!("{reason}"),
    }
}

#[test]
fn test_results_are_classified_as_fixed_broken_or_still_failing() {
    use TestStatus::*;
    let after = report(
        TestOutcome::Failed,
        &[
            ("a", Passed),
            ("b", Failed),
            ("c", Error),
            ("d", Passed),
            ("e", Skipped),
        ],
    );
    let known = compare(&["a", "b", "e", "gone"], &after);
    assert_eq!(known.fixed, ["a"], "a skipped or missing test is not fixed");
    assert_eq!(known.broken, ["c"]);
    assert_eq!(known.still, ["b"]);
    assert_eq!(known.passed, 2);
    assert_eq!(known.details, "c\nmessage of c", "only what is new");
    assert_eq!(
        compare(&["b", "c"], &after).details,
        "b\nmessage of b\n\nc\nmessage of c"
    );
}

#[test]
fn test_command_without_test_names_counts_as_one_test() {
    let failed = report(TestOutcome::Failed, &[]);
    assert_eq!(failing_ids(&failed), [WHOLE_RUN]);
    let known = compare(&[], &failed);
    assert_eq!(known.broken, [WHOLE_RUN]);
    assert_eq!(known.details, "the output");
    let passed = report(TestOutcome::Passed, &[]);
    assert_eq!(compare(&[WHOLE_RUN], &passed).fixed, [WHOLE_RUN]);
}

#[test]
fn timed_out_test_run_counts_as_broken_even_if_a_test_failed_before() {
    let hangs = report(TestOutcome::TimedOut, &[("b", TestStatus::Failed)]);
    let known = compare(&["b"], &hangs);
    assert_eq!(known.broken, [WHOLE_RUN]);
    assert_eq!(known.still, ["b"]);
}

#[test]
fn time_limit_that_the_tests_reached_before_as_well_is_no_break_by_the_change() {
    let hangs = report(TestOutcome::TimedOut, &[]);
    let evidence = TestEvidence::compare(&was(&[WHOLE_RUN]), &hangs);
    assert!(evidence.broken().is_empty());
    assert_eq!(evidence.cut_short(), None);
    let evidence = TestEvidence::compare(&was(&[]), &hangs);
    assert!(
        evidence
            .cut_short()
            .unwrap()
            .starts_with("the tests timed out after")
    );
}

#[test]
fn command_that_runs_no_test_gives_unknown_evidence() {
    let after = report(TestOutcome::NotRun, &[]);
    let evidence = TestEvidence::compare(&was(&["a"]), &after);
    let TestEvidence::Unknown { reason } = &evidence else {
        panic!("{evidence:?}")
    };
    assert_eq!(reason, "`pytest` ran no test: the output");
    assert!(evidence.broken().is_empty());
}

fn evidence(tests: TestEvidence, diagnostics: DiagnosticEvidence) -> Evidence {
    Evidence {
        tests,
        diagnostics,
        examples: Vec::new(),
        imports: ImportMends::default(),
        losses: Vec::new(),
        contract: Vec::new(),
        callers: Vec::new(),
        callers_in_set: Vec::new(),
        callers_kept: Vec::new(),
        indirect_callers: Vec::new(),
        test_callers: 0,
        needs_person: Vec::new(),
        together: None,
        texts: Default::default(),
        overridden: None,
        outdated: None,
        millis: 3,
    }
}

#[test]
fn evidence_of_an_ended_run_does_not_promise_follow_up_changes() {
    use TestStatus::*;
    let after = report(TestOutcome::Failed, &[("a", Failed), ("b", Failed)]);
    let tests = TestEvidence::compare(&was(&[]), &after);
    let told = |overridden: &str| {
        let mut shown = evidence(tests.clone(), DiagnosticEvidence::Absent);
        shown.overridden = Some(overridden.to_owned());
        let ended = shown.of_ended();
        assert_eq!(ended.of_ended(), ended);
        ended.overridden.unwrap()
    };
    for reason in [
        "it changes a contract, and the callers follow",
        "other agents are still at work",
        "the agent has more to propose",
    ] {
        assert_eq!(
            told(&format!("tests fail with it: a, b ({reason})")),
            "tests fail with it: a, b (the run is over, so no agent will fix this)"
        );
        assert_eq!(
            told(&format!("it brings a new problem: x ({reason})")),
            "it brings a new problem: x; 2 tests fail with it that passed before: a, b (the run is over, so no agent will fix this)"
        );
    }
    let insists = "tests fail with it: a (the agent insists)";
    assert_eq!(told(insists), insists);
}

#[test]
fn displayed_evidence_lists_broken_tests_and_problems_with_details() {
    use TestStatus::*;
    let after = report(TestOutcome::Failed, &[("a", Passed), ("b", Failed)]);
    let problem = Problem {
        file: FilePath::new("a.py"),
        line: 4,
        message: "undefined name".into(),
        severity: Severity::Error,
        source: "pyright".into(),
        kind: ProblemKind::Name,
        stops: true,
        range: None,
    };
    let mut shown = evidence(
        TestEvidence::compare(&was(&["a"]), &after),
        DiagnosticEvidence::Known {
            tool: "pyright".into(),
            new: vec![problem],
            before: 2,
            after: 3,
            millis: 40,
            unknown: None,
        },
    );
    shown.imports.added = vec!["import os".into()];
    shown.contract = vec!["f: parameter \"y\" added".into()];
    shown.callers = (0..9)
        .map(|at| format!("b.py::c{at}").parse().unwrap())
        .collect();
    assert_eq!(
        shown.to_string(),
        "tests: `pytest` failed in 1.2 s: 1 pass\n  fixed (1): a\n  BROKEN by this change (1): b\n\
         b\nmessage of b\ndiagnostics: 1 new (pyright) in 40 ms, 2 before, 3 after\n  a.py:4: undefined name\n\
         imports added to it: import os\n\
         contract: f: parameter \"y\" added\n\
         callers to follow up: b.py::c0, b.py::c1, b.py::c2, b.py::c3, b.py::c4, b.py::c5, b.py::c6, b.py::c7 and 1 more\n"
    );
}

#[test]
fn evidence_of_a_part_of_a_set_hides_standalone_failures_if_the_set_passes() {
    use TestStatus::*;
    let tests =
        |outcome, status| TestEvidence::compare(&was(&[]), &report(outcome, &[("a", status)]));
    let mut shown = evidence(
        tests(TestOutcome::Failed, Failed),
        DiagnosticEvidence::Absent,
    );
    let mut together = JointEvidence {
        with: vec!["b.py::g".parse().unwrap()],
        proposals: vec![ProposalId(2)],
        tests: tests(TestOutcome::Passed, Passed),
        diagnostics: DiagnosticEvidence::Absent,
        examples: Vec::new(),
        needs: Vec::new(),
        checked_in: 0,
    };
    shown.together = Some(together.clone());
    assert_eq!(
        shown.to_string(),
        "tests with the other waiting proposal (b.py::g): passed\n"
    );
    // The change also fails together with the others, so both results count.
    together.tests = tests(TestOutcome::Failed, Failed);
    shown.together = Some(together);
    let text = shown.to_string();
    assert!(text.starts_with("tests: `pytest` failed"), "{text}");
    assert!(
        text.contains("tests with the other waiting proposal (b.py::g): failed\n"),
        "{text}"
    );
}

#[test]
fn displayed_evidence_says_that_tests_and_diagnostics_are_unknown() {
    let unknown = |reason: &str| TestEvidence::Unknown {
        reason: reason.into(),
    };
    let shown = evidence(
        unknown("none"),
        DiagnosticEvidence::Unknown {
            reason: "no server".into(),
        },
    );
    assert_eq!(
        shown.to_string(),
        "tests: unknown (none)\ndiagnostics: unknown (no server)\n"
    );
    // Absent diagnostics are reported once for the whole run, so the evidence of a change does not
    // mention them.
    let shown = evidence(unknown("none"), DiagnosticEvidence::Absent);
    assert_eq!(shown.to_string(), "tests: unknown (none)\n");
}

#[test]
fn tail_of_a_text_starts_at_a_line_break_if_one_is_near() {
    assert_eq!(tail("one\ntwo\nthree", 7), "three");
    assert_eq!(tail("short", 7), "short");
    let long = "é".repeat(300);
    assert_eq!(tail(&long, 5), "éé", "never inside a character");
    for (first, is_cut) in [(199, true), (200, false)] {
        let lines = format!("{}\nend", "x".repeat(first));
        let shown = tail(&format!("-{lines}"), lines.len()).to_owned();
        assert_eq!(shown == "end", is_cut, "{shown}");
    }
}
