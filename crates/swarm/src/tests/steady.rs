//! Flaky tests: their failures do not count against a change, and their passing does not prove a
//! change.

use serde_json::json;
use starling_core::Approval;
use std::sync::Mutex;
use std::time::Duration;

use super::bed::*;
use crate::*;

const CODE: &str = "def f(x):\n    return x\n";
const NEW: &str = "def f(x):\n    return x + 0\n";
const NEWER: &str = "def f(x):\n    return x - 0\n";
const TESTS: &str = "from a import f\n\n\ndef test_f():\n    assert f(1) == 1\n";
const OTHERS: &str = "def test_clock():\n    assert clock()\n";
const TEST: &str = "test_a.py::test_f";
const CLOCK: &str = "test_b.py::test_clock";

/// Returns a fake test run. In runs over a text that contains `mark`, the test `id` fails or passes
/// as listed in `fails`, one entry for each run; after the last entry, it passes.
fn results(
    id: &'static str,
    mark: &'static str,
    fails: &[bool],
) -> impl Fn(&str) -> Vec<(String, String)> + Send + Sync + 'static {
    let left = Mutex::new(
        fails
            .iter()
            .copied()
            .collect::<std::collections::VecDeque<_>>(),
    );
    move |all: &str| {
        if !all.contains(mark) {
            return Vec::new();
        }
        match left.lock().unwrap().pop_front() {
            Some(true) => vec![(id.to_owned(), "E   assert False".to_owned())],
            Some(false) | None => Vec::new(),
        }
    }
}

fn bed(approval: Approval, lines: impl IntoIterator<Item = Line>) -> Bed {
    let model = Scripted::native()
        .on("agent a.py::f", lines)
        .always("proxy", say("ACCEPT"));
    let files = [("a.py", CODE), ("test_a.py", TESTS), ("test_b.py", OTHERS)];
    let mut bed = Bed::new(&files, model).begin(&["a.py::f"]).with(|task| {
        task.approval = approval;
        task.text = "Make f faster.".to_owned();
    });
    bed.lists = true;
    bed
}

fn counts(events: &[Event]) -> Vec<TestEvidence> {
    let evidence = events.iter().filter_map(|event| match event {
        Event::ReviewAsked { evidence, .. } => Some(evidence.tests.clone()),
        _ => None,
    });
    evidence.collect()
}

#[tokio::test(start_paused = true)]
async fn test_that_passes_on_a_repeat_does_not_count_against_a_change() {
    for selects in [true, false] {
        for approval in [Approval::Auto, Approval::Proxy, Approval::Ask] {
            let mut bed =
                bed(approval, [whole(NEW), finish("done")]).tests(results(CLOCK, "x + 0", &[true]));
            bed.selects = selects;
            let events = bed.run().await;
            assert_eq!(bed.read("a.py"), NEW, "{events:#?}");
            let expected = "Done: 1 test passes as before; 1 test fails now and then: \
                            test_b.py::test_clock";
            assert_eq!(ending(&events), (Proof::AsBefore, expected.to_owned()));
            if approval == Approval::Ask {
                let seen = bed.approver.seen.lock().unwrap()[0].evidence.clone();
                let line = format!("failing now and then (1): {CLOCK}");
                assert!(seen.contains(&line), "{seen}");
            }
            for tests in counts(&events) {
                assert_eq!(tests.broken(), [""; 0], "{tests:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_that_fails_on_every_repeat_counts_against_a_change() {
    let mut bed = bed(Approval::Auto, [whole(NEW), finish("done")])
        .tests(results(CLOCK, "x + 0", &[true; 9]));
    bed.selects = true;
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), CODE, "{events:#?}");
    let selected = bed.selected.lock().unwrap().clone();
    // The runs in order: all tests before the change, all tests with the change, the failing test
    // twice more with the change, and the failing test once without the change.
    let one = vec![CLOCK.to_owned()];
    let expected = [vec![], vec![], one.clone(), one.clone(), one];
    assert_eq!(selected, expected);
}

#[tokio::test(start_paused = true)]
async fn test_that_fails_whenever_it_runs_together_with_the_others_counts_against_a_change() {
    // The results of the runs with the change: all tests, the test alone, all tests, and so on.
    for (fails, is_broken) in [
        (vec![true, false, true], true),
        (vec![true, true, false, true], true),
        (vec![true, false, false], false),
    ] {
        let mut bed = bed(Approval::Auto, [whole(NEW), finish("done")])
            .tests(results(CLOCK, "x + 0", &fails));
        bed.selects = true;
        let events = bed.run().await;
        let text = if is_broken { CODE } else { NEW };
        assert_eq!(bed.read("a.py"), text, "{fails:?}: {events:#?}");
        let told = malformed(&events).join("\n");
        let why = "failed in two runs together with the other tests, and passed when it ran alone";
        assert_eq!(told.contains(why), is_broken, "{fails:?}: {told}");
        // Before the change, then with it: all tests, the failing test alone, and all tests again.
        let selected = bed.selected.lock().unwrap().clone();
        let alone = fails.len() - 2;
        let mut expected = vec![vec![]; 2];
        expected.extend(vec![vec![CLOCK.to_owned()]; alone]);
        expected.push(vec![]);
        assert_eq!(selected[..expected.len()], expected, "{fails:?}");
    }
}

/// A test run of more than ten seconds is slow.
#[tokio::test(start_paused = true)]
async fn slow_test_is_repeated_only_once_and_a_slow_command_never() {
    let ten = Duration::from_secs(10);
    let slow = ten + Duration::from_millis(1);
    for (selects, times, repeats) in [
        (true, [ten; 2], 2),
        (true, [ten, slow], 1),
        (false, [ten; 2], 2),
        (false, [slow; 2], 0),
    ] {
        let mut bed = bed(Approval::Auto, [whole(NEW), finish("done")])
            .tests(results(CLOCK, "x + 0", &[true; 9]));
        bed.selects = selects;
        // Before the change, then with it: all tests, and the first repetition.
        let all = [Duration::ZERO, times[0], times[1]];
        bed.test_times.lock().unwrap().extend(all);
        let events = bed.run().await;
        assert_eq!(bed.read("a.py"), CODE, "{events:#?}");
        let selected = bed.selected.lock().unwrap().clone();
        let before_and_with = 2;
        // A test that can be selected is run without the change, too.
        let without = usize::from(selects);
        let expected = before_and_with + repeats + without;
        assert_eq!(
            selected.len(),
            expected,
            "{selects} {times:?}: {selected:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn repetition_of_the_whole_command_is_not_followed_by_another_of_the_same_tests() {
    let mut bed =
        bed(Approval::Ask, [whole(NEW), finish("done")]).tests(results(CLOCK, "x + 0", &[true]));
    bed.selects = false;
    bed.run().await;
    // Before the change, with it, and once more with it.
    assert_eq!(bed.selected.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn tests_are_not_repeated_if_more_than_twenty_new_tests_fail() {
    let runs = Mutex::new(0);
    let judge = move |all: &str| {
        *runs.lock().unwrap() += i32::from(all.contains("x + 0"));
        let fails = all.contains("x + 0") && *runs.lock().unwrap() == 1;
        let ids = (0..if fails { 21 } else { 0 }).map(|at| format!("test_c.py::test_{at}"));
        ids.map(|id| (id, "E   assert False".to_owned())).collect()
    };
    let mut bed = bed(Approval::Auto, [whole(NEW), finish("done")]).tests(judge);
    bed.selects = true;
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), CODE, "{events:#?}");
    assert_eq!(bed.selected.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn run_is_unproven_if_a_test_of_the_changed_code_failed_once_and_passed_when_repeated() {
    let mut bed =
        bed(Approval::Auto, [whole(NEW), finish("done")]).tests(results(TEST, "x + 0", &[true]));
    bed.selects = true;
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), NEW, "{events:#?}");
    let expected = format!("Done, but 1 test fails now and then: {TEST}");
    assert_eq!(ending(&events), (Proof::Unproven, expected));
}

#[tokio::test(start_paused = true)]
async fn required_test_must_pass_on_every_repeat() {
    for (fails, proof) in [
        // Whether the test fails with the change: in the first run, and in the repeated runs.
        (vec![false, false, false], Proof::Proven),
        (vec![false, true], Proof::NotDone),
        (vec![false, false, true], Proof::NotDone),
    ] {
        for approval in [Approval::Auto, Approval::Proxy] {
            let with = results(TEST, "x + 0", &fails);
            let judge = move |all: &str| match all.contains("x + 0") {
                true => with(all),
                false => vec![(TEST.to_owned(), "E   assert 0 == 1".to_owned())],
            };
            let mut bed = bed(approval, [whole(NEW), finish("done")])
                .tests(judge)
                .with(|task| task.text = "Make test_f pass.".to_owned());
            bed.selects = true;
            let events = bed.run().await;
            let (ended, headline) = ending(&events);
            assert_eq!(ended, proof, "{fails:?}: {headline} {events:#?}");
            let stays = proof == Proof::Proven || approval == Approval::Proxy;
            assert_eq!(bed.read("a.py") == NEW, stays, "{fails:?} {approval:?}");
            if proof == Proof::NotDone {
                let with = if stays { "" } else { "with the changes, " };
                let said = format!("Not done: {with}1 test fails now and then: {TEST}; ");
                assert!(headline.starts_with(&said), "{headline}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_that_fails_for_the_first_time_at_the_end_of_a_run_is_repeated() {
    for selects in [true, false] {
        // Each proposal passes its checks. The tests of both changes together run at the end of the
        // run, where `test_clock` fails once.
        let model = Scripted::native()
            .on("agent a.py::f", [whole(NEW), finish("done")])
            .on(
                "agent c.py::g",
                [whole("def g():\n    return 2\n"), finish("done")],
            );
        let tests = format!("{TESTS}    assert g()\n");
        let files = [
            ("a.py", CODE),
            ("c.py", "def g():\n    return 1\n"),
            ("test_a.py", tests.as_str()),
            ("test_b.py", OTHERS),
        ];
        let runs = Mutex::new(0);
        let judge = move |all: &str| {
            let both = all.contains("x + 0") && all.contains("return 2");
            *runs.lock().unwrap() += i32::from(both);
            match both && *runs.lock().unwrap() == 1 {
                true => vec![(CLOCK.to_owned(), "E   assert False".to_owned())],
                false => Vec::new(),
            }
        };
        let mut bed = Bed::new(&files, model)
            .begin(&["a.py::f", "c.py::g"])
            .tests(judge)
            .with(|task| task.text = "Make f and g faster.".to_owned());
        (bed.selects, bed.lists) = (selects, true);
        let events = bed.run().await;
        assert_eq!(bed.read("a.py"), NEW, "{events:#?}");
        assert_eq!(bed.read("c.py"), "def g():\n    return 2\n");
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::AsBefore, "{headline}");
        assert!(headline.contains("fails now and then"), "{headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn flaky_test_that_failed_before_the_run_is_repeated_at_the_end() {
    let first_and_third = Mutex::new(0);
    let judge = move |_: &str| {
        let mut run = first_and_third.lock().unwrap();
        *run += 1;
        match *run == 1 || *run == 2 {
            true => vec![(CLOCK.to_owned(), "E   assert False".to_owned())],
            false => Vec::new(),
        }
    };
    let mut bed = bed(Approval::Auto, [whole(NEW), finish("done")]).tests(judge);
    bed.selects = true;
    let events = bed.run().await;
    let expected = format!("Done: 1 test passes as before; 1 test fails now and then: {CLOCK}");
    assert_eq!(ending(&events), (Proof::AsBefore, expected));
}

#[tokio::test(start_paused = true)]
async fn run_is_unproven_if_the_original_text_of_a_changed_test_is_flaky() {
    // The agent that owns the test rewrites it. With the change of `f`, the original test fails in
    // its first run and passes in the next one.
    let rewritten = "def test_f():\n    assert f(2) == 2\n";
    let model = Scripted::native()
        .on(
            "agent test_a.py::test_f",
            [whole(rewritten), finish("done")],
        )
        .on("agent a.py::f", [whole(NEWER), finish("done")]);
    let files = [("a.py", CODE), ("test_a.py", TESTS)];
    let repeats = Mutex::new(false);
    let judge = move |all: &str| {
        let original = all.contains("x - 0") && all.contains("f(1) == 1");
        // The original test fails, and passes in the runs that directly follow, alone and with the
        // others.
        let is_repeated = std::mem::replace(&mut *repeats.lock().unwrap(), original);
        match original && !is_repeated {
            true => vec![(TEST.to_owned(), "E   assert 0 == 1".to_owned())],
            false => Vec::new(),
        }
    };
    let mut bed = Bed::new(&files, model)
        .begin(&["test_a.py::test_f", "a.py::f"])
        .tests(judge)
        .with(|task| task.text = "Make f faster.".to_owned());
    (bed.selects, bed.lists) = (true, true);
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), NEWER, "{events:#?}");
    let expected = format!("Done, but 1 test fails now and then: {TEST}");
    assert_eq!(ending(&events), (Proof::Unproven, expected), "{events:#?}");
}

/// `test_clock` is flaky: it failed before the run, and passes with the change.
#[tokio::test(start_paused = true)]
async fn flaky_test_that_failed_before_the_change_does_not_count_as_fixed() {
    for selects in [true, false] {
        let mut bed = bed(Approval::Ask, [whole(NEW), finish("done")])
            .tests(results(CLOCK, "return", &[true]))
            .with(|task| task.text = "f is wrong".to_owned());
        bed.selects = selects;
        let events = bed.run().await;
        let TestEvidence::Known {
            fixed, uncounted, ..
        } = &counts(&events)[0]
        else {
            panic!("{events:#?}");
        };
        assert_eq!(
            (fixed.len(), uncounted.unsteady.as_slice()),
            (0, &[CLOCK.to_owned()][..])
        );
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::Unproven, "it proves nothing: {headline}");
        assert!(
            headline.starts_with("Done, but no test was seen to fail without it"),
            "{headline}"
        );
    }
    // A test that fails on every repeated run without the change, and passes with it, counts as
    // fixed.
    let judge = |all: &str| match all.contains("x + 0") {
        true => Vec::new(),
        false => vec![(CLOCK.to_owned(), "E   assert False".to_owned())],
    };
    let mut bed = bed(Approval::Ask, [whole(NEW), finish("done")]).tests(judge);
    let events = bed.run().await;
    let TestEvidence::Known { fixed, .. } = &counts(&events)[0] else {
        panic!("{events:#?}");
    };
    assert_eq!(fixed, &[CLOCK]);
}

/// The run changes an import of the test file, and `test_clock` fails with the original import. The
/// run does not change `test_clock` itself.
#[tokio::test(start_paused = true)]
async fn unchanged_test_in_a_changed_test_file_does_not_count_as_passing_only_because_of_the_change()
 {
    let tests = "from a import f\n\n\ndef test_f():\n    assert f(1) == 1\n\n\ndef test_clock():\n    assert clock()\n";
    let clock = "test_a.py::test_clock";
    let imports = "from a import f  # the same\n";
    let change = json!({"reason": "r", "hunks": [{"old": "from a import f\n", "new": imports}]});
    let model = Scripted::native()
        .on(
            "agent test_a.py::",
            [call("propose", change), finish("done")],
        )
        .on("agent a.py::f", [whole(NEW), finish("done")]);
    let files = [("a.py", CODE), ("test_a.py", tests)];
    let judge = move |all: &str| match all.contains("x + 0") && !all.contains("the same") {
        true => vec![(clock.to_owned(), "E   assert False".to_owned())],
        false => Vec::new(),
    };
    let mut bed = Bed::new(&files, model)
        .begin(&["test_a.py::", "a.py::f"])
        .tests(judge)
        .with(|task| {
            task.approval = Approval::Ask;
            task.text = "Make f faster.".to_owned();
        });
    (bed.selects, bed.lists) = (true, true);
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::AsBefore, "{headline}");
}

/// Returns the tests that the first review shows as fixed, and the tests that it does not count.
fn shown_tests(events: &[Event]) -> (Vec<String>, UncountedTests) {
    let TestEvidence::Known {
        fixed, uncounted, ..
    } = &counts(events)[0]
    else {
        panic!("{events:#?}");
    };
    (fixed.clone(), (**uncounted).clone())
}

fn only_unsteady(id: &str) -> (Vec<String>, UncountedTests) {
    let uncounted = UncountedTests {
        unsteady: vec![id.to_owned()],
        ..Default::default()
    };
    (Vec::new(), uncounted)
}

/// The task is to fix all failing tests. One of them is flaky, and the change does not affect it.
#[tokio::test(start_paused = true)]
async fn flaky_required_test_does_not_count_as_fixed_by_an_unrelated_change() {
    for selects in [true, false] {
        let mut bed = bed(Approval::Ask, [whole(NEW), finish("done")])
            .tests(results(CLOCK, "return", &[true]))
            .with(|task| task.text = "Fix the failing tests.".to_owned());
        bed.selects = selects;
        let events = bed.run().await;
        assert_eq!(shown_tests(&events), only_unsteady(CLOCK), "{events:#?}");
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::NotDone, "{headline}");
        assert!(headline.contains("1 test fails now and then"), "{headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn test_that_passes_once_and_then_fails_with_the_change_does_not_count_as_fixed() {
    let with = results(CLOCK, "x + 0", &[false, true]);
    let judge = move |all: &str| match all.contains("x + 0") {
        true => with(all),
        false => vec![(CLOCK.to_owned(), "E   assert False".to_owned())],
    };
    let mut bed = bed(Approval::Ask, [whole(NEW), finish("done")])
        .tests(judge)
        .with(|task| task.text = "f is wrong".to_owned());
    bed.selects = true;
    let events = bed.run().await;
    assert_eq!(shown_tests(&events), only_unsteady(CLOCK), "{events:#?}");
}

/// Another run changes a file after the first run of the tests, or after their first run with the
/// change.
#[tokio::test(start_paused = true)]
async fn test_that_another_run_fixes_meanwhile_counts_neither_as_flaky_nor_as_fixed() {
    for (mark, task) in [
        ("return", "Make test_clock pass."),
        ("return", "f is wrong"),
        ("x + 0", "Make f faster."),
    ] {
        for selects in [true, false] {
            let mut bed = bed(Approval::Ask, [whole(NEW), finish("done")])
                .with(|own| own.text = task.to_owned());
            std::fs::write(bed.path("c.py"), "other = 1\n").unwrap();
            let path = bed.path("c.py");
            let judge = move |all: &str| {
                if !all.contains("other = 1\n") || !all.contains(mark) {
                    return Vec::new();
                }
                std::fs::write(&path, "other = 'mended'\n").unwrap();
                vec![(CLOCK.to_owned(), "E   assert False".to_owned())]
            };
            bed = bed.tests(judge);
            bed.selects = selects;
            let events = bed.run().await;
            assert_eq!(bed.read("a.py"), NEW, "{events:#?}");
            let uncounted = UncountedTests {
                mended_elsewhere: vec![CLOCK.to_owned()],
                ..Default::default()
            };
            let expected = (Vec::new(), uncounted);
            assert_eq!(shown_tests(&events), expected, "{task}: {events:#?}");
            let (proof, headline) = ending(&events);
            assert!(!headline.contains("now and then"), "{headline}");
            assert_ne!(proof, Proof::Proven, "{headline}");
            let seen = bed.approver.seen.lock().unwrap()[0].evidence.clone();
            assert!(seen.contains("since files changed meanwhile"), "{seen}");
        }
    }
}
