//! Edits that are in flight when the run is cancelled, and editors that reply late.

use std::time::Duration;

use super::bed::*;
use super::landing::{FITS, WIDER, pair};
use crate::*;
use starling_core::{Approval, Verdict};

const BEFORE: &str = "def f(x):\n    return x\n";
const AFTER: &str = "def f(x):\n    return x + 1\n";

/// Creates a run of one agent. The editor applies the agent's edit after `delay`.
fn bed(delay: Duration) -> Bed {
    let model = Scripted::native().on("agent a.py::f", [whole(AFTER)]);
    let bed = Bed::new(&[("a.py", BEFORE)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Ask);
    *bed.editor.delays.lock().unwrap() = [delay].into();
    bed
}

fn is_accepted(event: &Event) -> bool {
    matches!(
        event,
        Event::ProposalReviewed {
            verdict: Verdict::Accept,
            ..
        }
    )
}

fn place(events: &[Event], is_it: impl Fn(&Event) -> bool) -> Option<usize> {
    events.iter().position(is_it)
}

#[tokio::test(start_paused = true)]
async fn edit_in_flight_at_cancellation_is_logged_before_the_run_ends() {
    let mut bed = bed(Duration::from_secs(5));
    let handle = bed.start();
    until(&handle, is_accepted).await;
    // The editor has received the edit, but has not applied it yet.
    tokio::time::sleep(Duration::from_secs(1)).await;
    handle.cancel();
    handle.finished().await;
    assert_eq!(bed.read("a.py"), AFTER);
    let events = handle.log.events();
    let applied = place(&events, |event| {
        matches!(event, Event::ProposalApplied { .. })
    });
    assert!(
        applied.is_some_and(|at| at + 1 < events.len()),
        "{events:#?}"
    );
    let Some(Event::RunFinished {
        stop_reason,
        applied,
        diff,
        ..
    }) = events.last()
    else {
        panic!("{events:#?}");
    };
    assert_eq!(*stop_reason, StopReason::Cancelled);
    assert_eq!(applied, &["a.py::f".parse().unwrap()]);
    assert!(diff.contains("+    return x + 1"), "{diff}");
    assert_eq!(handle.undo(None).await.unwrap(), [ProposalId(1)]);
    assert_eq!(bed.read("a.py"), BEFORE);
}

#[tokio::test(start_paused = true)]
async fn unsent_edit_is_not_sent_after_the_run_is_cancelled() {
    let model = Scripted::native()
        .on("agent a.py::f", [whole(AFTER)])
        .on("agent b.py::f", [whole(AFTER)]);
    let mut bed = Bed::new(&[("a.py", BEFORE), ("b.py", BEFORE)], model);
    bed = bed
        .begin(&["a.py::f", "b.py::f"])
        .with(|task| task.approval = Approval::Ask);
    *bed.editor.delays.lock().unwrap() = [Duration::from_secs(5)].into();
    let handle = bed.start();
    until(&handle, is_accepted).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    handle.cancel();
    handle.finished().await;
    let events = handle.log.events();
    let unsent = place(
        &events,
        |event| matches!(event, Event::ProposalNotApplied { why, .. } if why.contains("the run ended")),
    );
    assert!(unsent.is_some(), "{events:#?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let texts = [bed.read("a.py"), bed.read("b.py")];
    assert_eq!(texts.iter().filter(|text| *text == AFTER).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn edit_applied_after_its_deadline_is_reverted() {
    let bed = bed(Duration::from_secs(3600));
    let mut bed = bed.with(|task| task.approval = Approval::Auto);
    let events = bed.run().await;
    let refused = place(
        &events,
        |event| matches!(event, Event::ProposalNotApplied { why, .. } if why.contains("did not answer")),
    );
    assert!(refused.is_some(), "{events:#?}");
    assert!(
        matches!(stop(&events), StopReason::Failed { .. }),
        "{events:#?}"
    );
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    assert_eq!(*bed.editor.writes.lock().unwrap(), 2, "it came, and went");
    assert_eq!(bed.read("a.py"), BEFORE);
}

#[tokio::test(start_paused = true)]
async fn edit_that_the_editor_refused_can_be_accepted_again() {
    let mut bed = bed(Duration::ZERO).with(|task| task.approval = Approval::Ask);
    *bed.editor.refuses.lock().unwrap() = Some("a.py".to_owned());
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), AFTER, "{events:#?}");
    assert_eq!(stop(&events), StopReason::Settled);
    let seen = bed.approver.seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert!(
        seen[1].reason.contains("Accepted, but not applied: ") && seen[1].reason.contains("denied"),
        "{}",
        seen[1].reason
    );
}

#[tokio::test(start_paused = true)]
async fn review_of_an_edit_that_the_editor_always_refuses_is_repeated_at_most_five_times() {
    let mut bed = bed(Duration::ZERO).with(|task| task.approval = Approval::Ask);
    *bed.editor.refuses_all.lock().unwrap() = true;
    let events = bed.run().await;
    assert!(
        matches!(stop(&events), StopReason::Failed { .. }),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), BEFORE);
    assert_eq!(bed.approver.seen.lock().unwrap().len(), 5);
}

/// Makes the user type a letter into a comment at the end of the file before each of the next
/// `edits` edits.
fn typing(bed: &Bed, edits: usize) {
    *bed.editor.typed_before_edits.lock().unwrap() = edits;
}

#[tokio::test(start_paused = true)]
async fn edit_is_sent_again_until_the_user_pauses_typing() {
    let mut bed = bed(Duration::ZERO);
    typing(&bed, 20);
    let began = tokio::time::Instant::now();
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let text = bed.read("a.py");
    let letters = format!("# {}\n", "k".repeat(20));
    assert_eq!(text, format!("{AFTER}{letters}"));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn continuous_typing_is_never_overwritten_by_an_edit() {
    let bed = bed(Duration::ZERO);
    let mut bed = bed.with(|task| task.approval = Approval::Auto);
    typing(&bed, usize::MAX);
    let began = tokio::time::Instant::now();
    let events = bed.run().await;
    let StopReason::Failed { error } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert!(
        error.contains("kept changing for 60 s while the edit was sent"),
        "{error}"
    );
    assert!(bed.read("a.py").starts_with(BEFORE));
    assert!(began.elapsed() < Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn undo_completes_even_if_its_caller_is_dropped() {
    let mut bed = bed(Duration::ZERO);
    let handle = bed.start();
    handle.finished().await;
    assert_eq!(bed.read("a.py"), AFTER);
    *bed.editor.delays.lock().unwrap() = [Duration::from_secs(5)].into();
    let undo = handle.undo(None);
    let late = tokio::time::timeout(Duration::from_secs(1), undo).await;
    assert!(late.is_err());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bed.read("a.py"), BEFORE);
    assert_eq!(handle.undo(None).await, Ok(vec![]), "nothing is left");
    let undone = place(&handle.log.events(), |event| {
        matches!(event, Event::ProposalUndone { .. })
    });
    assert!(undone.is_some());
}

#[tokio::test(start_paused = true)]
async fn change_is_sent_to_the_editor_only_after_it_is_written_to_the_trajectory() {
    let mut bed = bed(Duration::ZERO);
    let handle = bed.start();
    let mut records = handle.log.write_from(0);
    let change = loop {
        let record = records.next().await.expect("the run applies a change");
        if let Record::Event(Event::ProposalApplying { change, .. }) = &record.record {
            break change.clone();
        }
    };
    // The record of the change is not on disk yet, so the change is not sent to the editor.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(bed.read("a.py"), BEFORE);
    assert_eq!(*change.before, *BEFORE);
    assert_eq!(change.changes.apply(&change.before).unwrap(), AFTER);
    while records.next().await.is_some() {}
    handle.finished().await;
    assert_eq!(bed.read("a.py"), AFTER);
}

#[tokio::test(start_paused = true)]
async fn change_is_recorded_again_when_it_is_rebased_on_text_that_the_user_typed() {
    let mut bed = bed(Duration::from_secs(1));
    let typed = format!("# typed\n{BEFORE}");
    *bed.editor.typing.lock().unwrap() = Some(("a.py".to_owned(), typed.clone()));
    let events = bed.run().await;
    let texts_before: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::ProposalApplying { change, .. } => Some(change.before.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(texts_before, [BEFORE, &typed]);
    assert_eq!(bed.read("a.py"), format!("# typed\n{AFTER}"));
}

fn is_applying(record: &Stamped) -> bool {
    matches!(record.record, Record::Event(Event::ProposalApplying { .. }))
}

#[tokio::test(start_paused = true)]
async fn change_whose_record_cannot_be_written_is_not_sent_and_waits_for_review_again() {
    let mut bed = bed(Duration::ZERO);
    let handle = bed.start();
    let mut records = handle.log.write_from(0);
    let mut failures = 0;
    while let Some(record) = records.next().await {
        if failures == 0 && is_applying(&record) {
            failures += 1;
            records.failed(UnwrittenRecord("the disk is full".into()));
        } else if failures == 1 && is_applying(&record) {
            failures += 1;
            assert_eq!(bed.read("a.py"), BEFORE, "the first change was not sent");
        }
    }
    handle.finished().await;
    assert_eq!(failures, 2, "the person was asked again, and accepted");
    assert_eq!(bed.read("a.py"), AFTER);
    let seen = bed.approver.seen.lock().unwrap();
    let reasons: Vec<&str> = seen.iter().map(|view| view.reason.as_str()).collect();
    let told = "Accepted, but not applied: the disk is full";
    assert_eq!(reasons.len(), 2);
    assert!(reasons[1].ends_with(told), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn run_without_a_person_fails_if_its_changes_cannot_be_recorded() {
    let mut bed = bed(Duration::ZERO).with(|task| task.approval = Approval::Auto);
    let handle = bed.start();
    let mut records = handle.log.write_from(0);
    while records.next().await.is_some() {
        records.failed(UnwrittenRecord("the disk is full".into()));
    }
    handle.finished().await;
    assert_eq!(bed.read("a.py"), BEFORE);
    let StopReason::Failed { error } = stop(&handle.log.events()) else {
        panic!("{:#?}", handle.log.events());
    };
    assert!(error.contains("not applied: the disk is full"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn no_part_of_a_set_is_sent_if_the_set_cannot_be_recorded() {
    let of_fee = [whole(WIDER), finish("no other way")];
    let of_total = [whole(FITS), finish("no other way")];
    let mut bed = pair(Approval::Auto, &of_fee, &of_total);
    let handle = bed.start();
    let mut records = handle.log.write_from(0);
    let mut is_full = false;
    while let Some(record) = records.next().await {
        is_full |= is_applying(&record);
        if is_full {
            records.failed(UnwrittenRecord("the disk is full".into()));
        }
    }
    handle.finished().await;
    assert!(is_full, "the set was accepted");
    assert_eq!(*bed.editor.writes.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn change_that_is_already_in_the_file_records_the_text_without_it() {
    let mut bed = bed(Duration::from_secs(1));
    let there = format!("# typed\n{AFTER}");
    *bed.editor.typing.lock().unwrap() = Some(("a.py".to_owned(), there.clone()));
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), there);
    let applied = events.iter().find_map(|event| match event {
        Event::ProposalApplied { change, .. } => change.clone(),
        _ => None,
    });
    let applied = applied.unwrap();
    assert!(applied.is_empty(), "{applied:#?}");
    let without = format!("# typed\n{BEFORE}");
    let texts = (without.as_str().into(), there.as_str().into());
    assert_eq!(applied.texts(), Some(texts));
}
