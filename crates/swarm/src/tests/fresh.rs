//! Checks use the user's current texts.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use starling_core::Approval;

use super::bed::*;
use crate::*;

const F: &str = "def f(x):\n    return x\n";
const MINE: &str = "def mine():\n    return 1\n";
const WRONG: &str = "def mine():\n    return wrong\n";

/// Creates a run with a model that replies after five seconds, and a test that fails if a text
/// contains `wrong`.
fn bed() -> Bed {
    let mut model =
        Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    model.latency = Duration::from_secs(5);
    let bed = Bed::new(&[("a.py", F), ("mine.py", MINE)], model).begin(&["a.py::f"]);
    bed.with(|task| task.approval = Approval::Ask)
        .tests(|all| match all.contains("wrong") {
            true => vec![("t1".to_owned(), "NameError: wrong".to_owned())],
            false => Vec::new(),
        })
}

impl Bed {
    fn types(&self, text: &str) {
        let mut unsaved = self.editor.unsaved.lock().unwrap();
        unsaved.insert("mine.py".to_owned(), text.to_owned());
    }
}

fn evidence(events: &[Event]) -> Evidence {
    let checked = |event: &Event| match event {
        Event::ProposalChecked { evidence, .. } => Some(evidence.clone()),
        _ => None,
    };
    events.iter().find_map(checked).expect("a check")
}

#[tokio::test(start_paused = true)]
async fn check_uses_text_that_was_typed_after_the_run_began() {
    let mut bed = bed();
    bed.types(MINE);
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
    bed.types(WRONG);
    handle.finished().await;
    let events = handle.log.events();
    let evidence = evidence(&events);
    // The test also fails without the change, so it does not count against the change.
    let TestEvidence::Known { still_failing, .. } = &evidence.tests else {
        panic!("{evidence:#?}");
    };
    assert_eq!(still_failing, &["t1"], "{events:#?}");
    let checked: Vec<&str> = evidence
        .texts
        .over_disk
        .keys()
        .map(|file| file.as_str())
        .collect();
    assert_eq!(checked, ["mine.py"]);
    assert_eq!(evidence.texts.changed_since, []);
}

#[tokio::test(start_paused = true)]
async fn text_typed_during_a_check_is_reported_and_tested_at_the_end() {
    let mut bed = bed();
    bed.types("def mine():\n    return 2\n");
    // Durations of the first two test runs: before the change, and for the proposal.
    *bed.test_times.lock().unwrap() = [0, 10].map(Duration::from_secs).into();
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::ProposalMade { .. })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    bed.types(WRONG);
    handle.finished().await;
    let events = handle.log.events();
    let seen = bed.approver.seen.lock().unwrap();
    let told = "changed while the checks ran, and checked as it was before: mine.py\n";
    assert!(seen[0].evidence.contains(told), "{}", seen[0].evidence);
    let StopReason::TestsFail { failing } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert_eq!(failing, ["t1"]);
}

/// Another program writes a closed file right after the tests of the proposal.
#[tokio::test(start_paused = true)]
async fn file_that_another_program_writes_after_a_check_is_tested_at_the_end() {
    for (text, expected) in [(WRONG, &["t1"][..]), ("def mine():\n    return 2\n", &[])] {
        let bed = bed();
        let closed = bed.path("mine.py");
        let mut bed = bed.tests(move |all| {
            if all.contains("x + 1") {
                std::fs::write(&closed, text).unwrap();
            }
            match all.contains("wrong") {
                true => vec![("t1".to_owned(), "NameError: wrong".to_owned())],
                false => Vec::new(),
            }
        });
        let events = bed.run().await;
        let failing = match stop(&events) {
            StopReason::TestsFail { failing } => failing,
            StopReason::Settled => Vec::new(),
            other => panic!("{other:?}"),
        };
        assert_eq!(failing, expected, "{events:#?}");
    }
}

/// A file is open with unsaved text when the run starts, and is closed without saving during the
/// run. Then its text on disk counts. The test passes because of that text, and not because of the
/// change.
#[tokio::test(start_paused = true)]
async fn closed_file_is_checked_with_its_text_on_disk() {
    let mut bed = bed();
    bed.types(WRONG);
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
    bed.editor.unsaved.lock().unwrap().clear();
    handle.finished().await;
    let events = handle.log.events();
    let evidence = evidence(&events);
    let TestEvidence::Known {
        fixed, uncounted, ..
    } = &evidence.tests
    else {
        panic!("{evidence:#?}");
    };
    let found = (fixed.len(), uncounted.mended_elsewhere.as_slice());
    assert_eq!(found, (0, &["t1".to_owned()][..]), "{events:#?}");
    assert_eq!(stop(&events), StopReason::Settled);
}

/// While the model generates, the user adds a comment, or a second copy of the symbol that the
/// model was shown. The proposal is refused only in the case of the copy.
#[tokio::test(start_paused = true)]
async fn proposal_is_refused_if_the_user_pasted_a_copy_of_the_symbol_meanwhile() {
    const CLASS: &str = "class K:\n    def m(self):\n        return 1\n";
    const M: &str = "    def m(self):\n        return 2\n";
    for (text, symbol, source) in [
        (F, "a.py::f", "def f(x):\n    return x + 1\n"),
        (CLASS, "a.py::K.m", M),
    ] {
        for copies in ["", "copy"] {
            let mut model = Scripted::native().on(&format!("agent {symbol}"), [whole(source)]);
            model.latency = Duration::from_secs(5);
            let bed = Bed::new(&[("a.py", text)], model).begin(&[symbol]);
            let mut bed = bed.with(|task| task.approval = Approval::Ask);
            let handle = bed.start();
            until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
            let typed = match copies {
                "" => format!("# mine\n{text}"),
                _ => format!("{text}\n\n{text}"),
            };
            std::fs::write(bed.path("a.py"), &typed).unwrap();
            handle.finished().await;
            let (now, events) = (bed.read("a.py"), handle.log.events());
            if copies.is_empty() {
                assert_ne!(now, typed, "{events:#?}");
                continue;
            }
            assert_eq!(now, typed, "{events:#?}");
            let told = format!("{events:?}");
            assert!(told.contains("there is now more than one"), "{told}");
        }
    }
}

/// Creates a run without a person. Right after the tests of a proposal read `mine.py`, another
/// program writes the next of these texts to it.
fn written_meanwhile(texts: impl IntoIterator<Item = String>) -> Bed {
    let change = whole("def f(x):\n    return x + 1\n");
    let model = Scripted::native().on("agent a.py::f", [change, finish("no other way")]);
    let bed = Bed::new(&[("a.py", F), ("mine.py", MINE)], model).begin(&["a.py::f"]);
    let (closed, texts) = (bed.path("mine.py"), texts.into_iter().collect());
    let texts: Mutex<VecDeque<String>> = Mutex::new(texts);
    bed.with(|task| task.approval = Approval::Auto)
        .tests(move |all| {
            if all.contains("x + 1")
                && let Some(next) = texts.lock().unwrap().pop_front()
            {
                std::fs::write(&closed, next).unwrap();
            }
            match all.contains("wrong") {
                true => vec![("t1".to_owned(), "NameError: wrong".to_owned())],
                false => Vec::new(),
            }
        })
}

fn is_applied(event: &Event) -> bool {
    matches!(event, Event::ProposalApplied { .. })
}

#[tokio::test(start_paused = true)]
async fn change_that_no_person_reviews_is_tested_again_if_others_changed_files_since() {
    let mut bed = written_meanwhile([WRONG.to_owned()]);
    let events = bed.run().await;
    assert!(!events.iter().any(is_applied), "{events:#?}");
    assert_eq!(bed.read("a.py"), F);
    let mut bed = written_meanwhile(["def mine():\n    return 2\n".to_owned()]);
    let events = bed.run().await;
    assert!(events.iter().any(is_applied), "{events:#?}");
    assert_eq!(stop(&events), StopReason::Settled);
}

#[tokio::test(start_paused = true)]
async fn change_is_tested_three_times_at_most_while_files_keep_changing() {
    let texts = (0..20).map(|n| format!("def mine():\n    return {n}\n"));
    let mut bed = written_meanwhile(texts);
    let events = bed.run().await;
    let applied = events.iter().position(is_applied).expect("it is applied");
    let tested = |event: &&Event| {
        let phase = TestPhase::Proposal;
        matches!(event, Event::TestsRun { phase: one, .. } if *one == phase)
    };
    assert_eq!(events[..applied].iter().filter(tested).count(), 3);
    let told = events[..applied]
        .iter()
        .rev()
        .find_map(|event| match event {
            Event::ProposalChecked { evidence, .. } => Some(evidence.tests.clone()),
            _ => None,
        });
    let Some(TestEvidence::Unknown { reason }) = told else {
        panic!("{told:#?}");
    };
    assert_eq!(reason, "other programs changed files during each test run");
}
