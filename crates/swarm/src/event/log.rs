//! The log that stores the events of a run, with its readers and the writer of its trajectory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::event::events::{Event, Record, Stamped};
use starling_core::Exchange;

/// The append-only log of a run. Appending never blocks on readers, which follow with a [`Cursor`].
/// The run's budget bounds its length.
#[derive(Debug, Clone)]
pub struct EventLog {
    inner: Arc<EventLogData>,
}

/// The data of an event log, shared by all its clones and cursors.
#[derive(Debug)]
struct EventLogData {
    began: Instant,
    records: Mutex<Vec<Arc<Stamped>>>,
    count: watch::Sender<LogProgress>,
    /// How far the trajectory file is written; `None` if no trajectory is written.
    written: watch::Sender<Option<WriteProgress>>,
}

/// How far the trajectory file of a log is written.
#[derive(Debug, Clone, Default)]
struct WriteProgress {
    /// Number of records in the file.
    written: usize,
    /// The last failure; `None` if the file could be written since.
    failed: Option<FailedWrite>,
}

/// A failed attempt to write a trajectory file.
#[derive(Debug, Clone)]
struct FailedWrite {
    /// Number of records that would be in the file if the attempt had succeeded.
    count: usize,
    error: UnwrittenRecord,
}

impl WriteProgress {
    /// Returns whether the first `count` records are written; `None` if that is not known yet.
    fn of(&self, count: usize) -> Option<Result<(), UnwrittenRecord>> {
        if self.written >= count {
            return Some(Ok(()));
        }
        let failed = self.failed.as_ref()?;
        (failed.count >= count).then(|| Err(failed.error.clone()))
    }
}

/// A record could not be written to the trajectory. The message says why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnwrittenRecord(pub Arc<str>);

/// The number of records in a log, and whether the log is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogProgress {
    count: usize,
    closed: bool,
}

impl EventLogData {
    /// Waits until the first `count` records have been written to the trajectory file. Returns at
    /// once if no trajectory is written.
    async fn written(&self, count: usize) -> Result<(), UnwrittenRecord> {
        let of = |progress: &Option<WriteProgress>| match progress {
            None => Some(Ok(())),
            Some(progress) => progress.of(count),
        };
        let mut written = self.written.subscribe();
        // The sender is a field of `self`, so this wait cannot fail.
        match written.wait_for(|progress| of(progress).is_some()).await {
            Ok(progress) => of(&progress).unwrap_or(Ok(())),
            Err(_) => Ok(()),
        }
    }
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new()
    }
}

impl EventLog {
    pub fn new() -> Self {
        let (count, _) = watch::channel(LogProgress {
            count: 0,
            closed: false,
        });
        let inner = EventLogData {
            began: Instant::now(),
            records: Mutex::default(),
            count,
            written: watch::channel(None).0,
        };
        EventLog {
            inner: Arc::new(inner),
        }
    }

    /// Creates a log that begins with `records` and numbers its further records after them.
    pub fn resumed(records: Vec<Stamped>) -> Self {
        let log = EventLog::new();
        let at_ms = records.last().map_or(0, |last| last.at_ms);
        let began = Instant::now().checked_sub(Duration::from_millis(at_ms));
        let inner = EventLogData {
            began: began.unwrap_or(log.inner.began),
            count: watch::channel(LogProgress {
                count: records.len(),
                closed: false,
            })
            .0,
            records: Mutex::new(records.into_iter().map(Arc::new).collect()),
            written: watch::channel(None).0,
        };
        EventLog {
            inner: Arc::new(inner),
        }
    }

    pub fn event(&self, event: Event) {
        self.numbered(event);
    }

    /// Appends an event and returns its number.
    pub fn numbered(&self, event: Event) -> u64 {
        tracing::debug!(?event, "event");
        self.append(Record::Event(event)) as u64 - 1
    }

    /// Waits until all current records have been written to the trajectory. Returns at once if no
    /// trajectory is written.
    ///
    /// # Errors
    /// The trajectory cannot be written.
    pub async fn written(&self) -> Result<(), UnwrittenRecord> {
        let count = self.lock().len();
        self.inner.written(count).await
    }

    /// Appends an event and waits until it has been written to the trajectory, so that it survives
    /// a crash of the process. Returns at once if no trajectory is written.
    ///
    /// # Errors
    /// The trajectory cannot be written. The event is in the log all the same, and is written
    /// together with the next record if the cause is gone by then.
    pub async fn durable_event(&self, event: Event) -> Result<(), UnwrittenRecord> {
        tracing::debug!(?event, "event");
        let count = self.append(Record::Event(event));
        self.inner.written(count).await
    }

    /// Appends an event that reports whether the change of a proposal is in the text, unless the
    /// last event about this proposal already reports the same. Both the run and the editor watcher
    /// may detect the same undo or redo. Returns whether the event was appended.
    pub fn noticed(&self, event: Event) -> bool {
        let mut records = self.lock();
        let Some((proposal, stands)) = event.standing() else {
            return false;
        };
        let about = |stamped: &Arc<Stamped>| match &stamped.record {
            Record::Event(known) => {
                let standing = known.standing().filter(|(id, _)| *id == proposal);
                standing.map(|(_, stood)| stood != stands || event.settles(known))
            }
            Record::Exchange(_) => None,
        };
        let is_new = records.iter().rev().find_map(about).unwrap_or(true);
        if is_new {
            self.append_to(&mut records, Record::Event(event));
        }
        is_new
    }

    pub fn exchange(&self, exchange: Exchange) {
        self.append(Record::Exchange(exchange));
    }

    /// Closes the log. Cursors end after the last record.
    pub fn close(&self) {
        self.inner
            .count
            .send_modify(|progress| progress.closed = true);
    }

    /// Returns whether [`EventLog::close`] was called. Records appended later may have no reader.
    pub fn is_closed(&self) -> bool {
        self.inner.count.borrow().closed
    }

    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.inner.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the reader with which the trajectory is written, starting at record `next`. While it
    /// exists, [`EventLog::durable_event`] waits until this reader has confirmed the event.
    pub fn write_from(&self, next: usize) -> Writing {
        self.inner.written.send_replace(Some(WriteProgress {
            written: next,
            failed: None,
        }));
        Writing {
            cursor: self.follow_from(next),
            failed: None,
        }
    }

    /// Returns a cursor that starts at the first record.
    pub fn follow(&self) -> Cursor {
        self.follow_from(0)
    }

    /// Returns a cursor that starts at record `next`.
    pub fn follow_from(&self, next: usize) -> Cursor {
        Cursor {
            inner: Arc::clone(&self.inner),
            next,
            changes: self.inner.count.subscribe(),
        }
    }

    /// Returns the current records, starting at number `from`.
    pub fn records(&self, from: usize) -> Vec<Arc<Stamped>> {
        let records = self.lock();
        records.get(from..).unwrap_or_default().to_vec()
    }

    /// Returns all current events.
    pub fn events(&self) -> Vec<Event> {
        let records = self.lock();
        let event = |stamped: &Arc<Stamped>| match &stamped.record {
            Record::Event(event) => Some(event.clone()),
            Record::Exchange(_) => None,
        };
        records.iter().filter_map(event).collect()
    }

    /// Appends a record and returns the number of records.
    fn append(&self, record: Record) -> usize {
        self.append_to(&mut self.lock(), record)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Stamped>>> {
        let records = &self.inner.records;
        records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_to(&self, records: &mut Vec<Arc<Stamped>>, record: Record) -> usize {
        let at_ms = self.elapsed_ms();
        let stamped = Stamped {
            seq: records.len() as u64,
            at_ms,
            record,
        };
        records.push(Arc::new(stamped));
        let count = records.len();
        self.inner
            .count
            .send_modify(|progress| progress.count = count);
        count
    }
}

/// The reader with which the trajectory is written. After it is dropped, nothing waits for the
/// trajectory. If the log is still open then, its records are not written any more.
#[derive(Debug)]
pub struct Writing {
    cursor: Cursor,
    /// Why the records since the last confirmed one are not written.
    failed: Option<UnwrittenRecord>,
}

impl Writing {
    /// Waits for the next record; returns `None` after the last record of a closed log.
    ///
    /// Each call confirms that all previous records are written, unless [`Writing::failed`] was
    /// called since the last call.
    pub async fn next(&mut self) -> Option<Arc<Stamped>> {
        let failed = self.failed.take();
        self.report(failed);
        self.cursor.next().await
    }

    /// Returns the log.
    pub fn log(&self) -> EventLog {
        EventLog {
            inner: Arc::clone(&self.cursor.inner),
        }
    }

    /// Reports that the records since the last confirmed one could not be written. The caller
    /// writes them together with the next record.
    pub fn failed(&mut self, error: UnwrittenRecord) {
        self.failed = Some(error);
    }

    fn report(&self, failed: Option<UnwrittenRecord>) {
        let count = self.cursor.next;
        self.cursor.inner.written.send_modify(|progress| {
            let progress = progress.get_or_insert_default();
            match failed {
                None => {
                    progress.written = count;
                    progress.failed = None;
                }
                Some(error) => progress.failed = Some(FailedWrite { count, error }),
            }
        });
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let is_closed = self.cursor.inner.count.borrow().closed;
        let failed = (!is_closed).then(|| FailedWrite {
            count: usize::MAX,
            error: UnwrittenRecord(
                "internal error: the trajectory has no writer; see the log".into(),
            ),
        });
        self.cursor.inner.written.send_modify(|progress| {
            *progress = failed.map(|failed| WriteProgress {
                failed: Some(failed),
                ..progress.take().unwrap_or_default()
            });
        });
    }
}

/// A reader of an [`EventLog`].
#[derive(Debug)]
pub struct Cursor {
    inner: Arc<EventLogData>,
    next: usize,
    changes: watch::Receiver<LogProgress>,
}

impl Cursor {
    /// Waits until the last record that this cursor returned has been written to the trajectory
    /// file. Returns at once if no trajectory is written.
    ///
    /// # Errors
    /// The trajectory cannot be written.
    pub async fn written(&self) -> Result<(), UnwrittenRecord> {
        self.inner.written(self.next).await
    }

    /// Waits for the next record; returns `None` after the last record of a closed log.
    ///
    /// This method is cancel safe.
    pub async fn next(&mut self) -> Option<Arc<Stamped>> {
        loop {
            let progress = *self.changes.borrow_and_update();
            if self.next < progress.count {
                let records = self
                    .inner
                    .records
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let record = Arc::clone(&records[self.next]);
                self.next += 1;
                return Some(record);
            }
            if progress.closed || self.changes.changed().await.is_err() {
                return None;
            }
        }
    }
}
