//! The event log: every reader receives every record once and in order, whenever it starts.

use futures::FutureExt;

use crate::*;

fn undone(id: u32) -> Event {
    Event::ProposalUndone {
        proposal: ProposalId(id),
        by_editor: false,
        unsaved: false,
    }
}

fn log_of(count: u32) -> EventLog {
    let log = EventLog::new();
    (0..count).for_each(|id| log.event(undone(id)));
    log
}

async fn rest(cursor: &mut Cursor) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Some(record) = cursor.next().await {
        seen.push(record.seq);
    }
    seen
}

#[tokio::test]
async fn late_log_reader_receives_all_records_from_the_first_to_the_close() {
    let log = log_of(3);
    log.close();
    assert_eq!(rest(&mut log.follow()).await, [0, 1, 2]);
    assert_eq!(log.events(), [undone(0), undone(1), undone(2)]);
}

#[tokio::test]
async fn readers_of_the_log_are_independent_of_each_other() {
    let log = log_of(2);
    let (mut slow, mut quick) = (log.follow(), log.follow());
    assert_eq!(quick.next().await.unwrap().seq, 0);
    assert_eq!(quick.next().await.unwrap().seq, 1);
    assert!(quick.next().now_or_never().is_none(), "nothing new yet");
    log.event(undone(2));
    assert_eq!(quick.next().await.unwrap().record, Record::Event(undone(2)));
    log.close();
    assert!(quick.next().await.is_none());
    assert_eq!(rest(&mut slow).await, [0, 1, 2]);
}

#[tokio::test]
async fn waiting_log_reader_wakes_for_a_new_record_and_for_the_close() {
    let log = EventLog::new();
    let mut cursor = log.follow();
    let reader = tokio::spawn(async move { rest(&mut cursor).await });
    tokio::task::yield_now().await;
    log.event(undone(0));
    tokio::task::yield_now().await;
    log.close();
    assert_eq!(reader.await.unwrap(), [0]);
}

#[tokio::test]
async fn cancelled_log_read_loses_no_record() {
    let log = EventLog::new();
    let mut cursor = log.follow();
    assert!(cursor.next().now_or_never().is_none());
    log.event(undone(0));
    assert_eq!(cursor.next().now_or_never().flatten().unwrap().seq, 0);
}

#[test]
fn log_record_survives_a_json_round_trip() {
    let stamped = Stamped {
        seq: 3,
        at_ms: 14,
        record: Record::Event(undone(7)),
    };
    let line = serde_json::to_string(&stamped).unwrap();
    assert!(line.contains(r#""event":"proposal_undone""#), "{line}");
    assert_eq!(serde_json::from_str::<Stamped>(&line).unwrap(), stamped);
}

#[tokio::test(start_paused = true)]
async fn durable_event_completes_only_after_it_is_written_to_the_trajectory() {
    let log = log_of(1);
    // There is no trajectory writer yet, so the event does not wait for one.
    let done = log.durable_event(undone(1)).now_or_never();
    assert_eq!(done, Some(Ok(())));
    let mut records = log.write_from(0);
    let (waiting, mut told) = (log.clone(), log.follow_from(2));
    let durable = tokio::spawn(async move { waiting.durable_event(undone(2)).await });
    for seq in 0..3 {
        assert_eq!(records.next().await.unwrap().seq, seq);
        tokio::task::yield_now().await;
        assert!(!durable.is_finished(), "record {seq} is not written yet");
    }
    assert_eq!(told.next().await.unwrap().seq, 2);
    assert!(
        told.written().now_or_never().is_none(),
        "readers can wait too"
    );
    // A request for the next record confirms that the last one is written.
    assert!(records.next().now_or_never().is_none());
    assert_eq!(durable.await.unwrap(), Ok(()));
    assert_eq!(told.written().now_or_never(), Some(Ok(())));
}

#[tokio::test]
async fn durable_event_fails_if_its_record_cannot_be_written() {
    let log = EventLog::new();
    let mut records = log.write_from(0);
    let full = UnwrittenRecord("the disk is full".into());
    let durable = |id| {
        let log = log.clone();
        tokio::spawn(async move { log.durable_event(undone(id)).await })
    };
    let (one, told) = (durable(0), log.follow_from(0));
    records.next().await.unwrap();
    records.failed(full.clone());
    assert!(records.next().now_or_never().is_none());
    assert_eq!(one.await.unwrap(), Err(full.clone()));
    assert_eq!(told.written().await, Ok(()), "it has read nothing yet");
    // A later record is not judged by the earlier failure: the writer tries again.
    let two = durable(1);
    assert_eq!(records.next().await.unwrap().seq, 1);
    tokio::task::yield_now().await;
    assert!(!two.is_finished());
    assert!(records.next().now_or_never().is_none());
    assert_eq!(two.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn durable_event_fails_without_its_trajectory_writer_until_the_log_is_closed() {
    let log = EventLog::new();
    let records = log.write_from(0);
    let waiting = log.clone();
    let durable = tokio::spawn(async move { waiting.durable_event(undone(0)).await });
    tokio::task::yield_now().await;
    assert!(!durable.is_finished());
    drop(records);
    assert!(durable.await.unwrap().is_err());
    assert!(log.durable_event(undone(1)).await.is_err());
    let log = EventLog::new();
    let records = log.write_from(0);
    log.close();
    drop(records);
    assert_eq!(log.durable_event(undone(0)).await, Ok(()));
}

#[test]
fn undo_or_redo_that_two_tasks_report_is_logged_once() {
    let log = EventLog::new();
    let applied = Event::ProposalApplied {
        proposal: ProposalId(1),
        symbols: Vec::new(),
        diff: String::new(),
        change: None,
    };
    log.event(applied.clone());
    assert_eq!(
        [1, 1, 2].map(|id| log.noticed(undone(id))),
        [true, false, true]
    );
    assert_eq!(
        [1, 2].map(|_| log.noticed(applied.clone())),
        [true, false],
        "made again by the editor's redo"
    );
    assert!(log.noticed(undone(1)));
    let unsaved = Event::ProposalUndone {
        proposal: ProposalId(3),
        by_editor: false,
        unsaved: true,
    };
    // The undo of proposal 3 is saved later.
    let undos = [unsaved.clone(), undone(3), unsaved.clone()];
    assert_eq!(undos.map(|undo| log.noticed(undo)), [true, true, false]);
    let expected = [
        applied.clone(),
        undone(1),
        undone(2),
        applied,
        undone(1),
        unsaved,
        undone(3),
    ];
    assert_eq!(log.events(), expected);
}
