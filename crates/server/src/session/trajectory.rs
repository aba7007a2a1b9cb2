//! The trajectory of a run on disk, and its events as a front end receives them.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::messages::EventParams;
use starling_platform::files::{identity, identity_of_open};
use starling_swarm::{Event, EventLog, Record, RunId, Stamped, UnwrittenRecord, Writing};
use starling_workspace::{private_directory, private_file};

/// Creates the file of a trajectory. It stays locked while it is written: an unlocked trajectory
/// without an end belongs to a server that was killed.
///
/// # Errors
/// The file cannot be created.
pub fn create_trajectory(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        private_directory(directory)?;
    }
    let file = private_file(path)?;
    if let Err(TryLockError::Error(error)) = file.try_lock() {
        tracing::info!(%error, "trajectories cannot be locked here");
    }
    Ok(file)
}

/// Creates the file of a trajectory with one record that contains the task. The record is replaced
/// when the run has started, see [`TrajectoryFile::replacing`]. If the server is killed before that,
/// the next server reads the task from the record.
///
/// # Errors
/// The file cannot be created or written.
pub fn begin_trajectory(path: &Path, started: Event) -> std::io::Result<File> {
    let mut file = create_trajectory(path)?;
    let first = Stamped {
        seq: 0,
        at_ms: 0,
        record: Record::Event(started),
    };
    file.write_all(&line_of(&first)?)?;
    Ok(file)
}

fn line_of(record: &Stamped) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

/// Returns a message for the user about a trajectory that cannot be written.
pub fn write_failure(path: &Path, error: &std::io::Error) -> String {
    format!(
        "the record of the run cannot be written, and no change is made without it: {}: {error}; free \
         space on that disk, or set STARLING_CACHE_DIR to a directory that can be written",
        path.display()
    )
}

/// The open file of a trajectory.
pub struct TrajectoryFile {
    path: PathBuf,
    file: File,
    /// The length of the complete records in bytes.
    length: u64,
    /// The number of complete records.
    count: usize,
}

impl TrajectoryFile {
    /// The first records replace what [`begin_trajectory`] wrote.
    pub fn replacing(path: PathBuf, file: File) -> Self {
        TrajectoryFile {
            path,
            file,
            length: 0,
            count: 0,
        }
    }

    /// The next records follow the `count` records that the file contains.
    ///
    /// # Errors
    /// The length of the file is unknown.
    pub fn extending(path: PathBuf, file: File, count: usize) -> std::io::Result<Self> {
        Ok(TrajectoryFile {
            length: file.metadata()?.len(),
            count,
            ..TrajectoryFile::replacing(path, file)
        })
    }

    /// Writes the records of the log that are not in the file yet: all of them if the file was
    /// removed, replaced or shortened, as happens to files of a cache.
    fn write(&mut self, log: &EventLog) -> std::io::Result<()> {
        if !self.is_at_path() {
            self.file = create_trajectory(&self.path)?;
            (self.length, self.count) = (0, 0);
        } else if self.file.metadata()?.len() < self.length {
            (self.length, self.count) = (0, 0);
        }
        let records = log.records(self.count);
        let mut lines = Vec::new();
        for record in &records {
            lines.extend(line_of(record)?);
        }
        starling_history::append_lines(&self.file, self.length, &lines)?;
        self.length += lines.len() as u64;
        self.count += records.len();
        Ok(())
    }

    /// Returns whether the path still leads to the open file.
    fn is_at_path(&self) -> bool {
        let is_same = || -> std::io::Result<bool> {
            let there = identity(&self.path, &self.path.symlink_metadata()?)?;
            let open = identity_of_open(&self.file, &self.file.metadata()?)?;
            Ok(there.file == open.file)
        };
        is_same().unwrap_or(false)
    }
}

/// Appends all records as JSON lines. Each is written at once: a review must survive the end of the
/// server, and an edit is sent only after its record is written. After a failure, the records are
/// written together with the next one; `report_failure` receives the first failure of each row of
/// failures.
pub async fn write_trajectory(
    mut records: Writing,
    mut file: TrajectoryFile,
    report_failure: impl Fn(String),
) {
    let path = file.path.clone();
    let log = records.log();
    let mut is_reported = false;
    while records.next().await.is_some() {
        let log = log.clone();
        let written = tokio::task::spawn_blocking(move || {
            let written = file.write(&log);
            (file, written)
        });
        let written = match written.await {
            Ok((same, written)) => {
                file = same;
                written
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "the trajectory is not written");
                return;
            }
        };
        if let Err(error) = &written {
            let why = write_failure(&path, error);
            records.failed(UnwrittenRecord(why.as_str().into()));
            if !is_reported {
                tracing::error!("{why}");
                report_failure(why);
            }
        }
        is_reported = written.is_err();
    }
    if is_reported && let Err(error) = file.write(&log) {
        tracing::error!(path = %path.display(), %error, "the end of the trajectory is not written");
    }
}

/// Converts a record for the front end. Only events are sent, without the texts that only the
/// trajectory needs; `None` for other records.
pub fn event_params(run: &RunId, record: &Stamped) -> Option<EventParams> {
    let Record::Event(event) = &record.record else {
        return None;
    };
    if !event.is_told() {
        return None;
    }
    Some(EventParams {
        run: run.clone(),
        seq: record.seq,
        at_ms: record.at_ms,
        event: event.clone().without_trajectory_data(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trajectory_is_readable_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs/1.jsonl");
        std::fs::create_dir(dir.path().join("runs")).unwrap();
        create_trajectory(&path).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[tokio::test]
    async fn all_records_of_a_trajectory_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/runs/1.jsonl");
        let log = EventLog::new();
        for text in ["one", "two\nlines"] {
            log.event(Event::Steered {
                to: None,
                text: text.to_owned(),
            });
        }
        log.close();
        let file = TrajectoryFile::replacing(path.clone(), create_trajectory(&path).unwrap());
        write_trajectory(log.write_from(0), file, |why| panic!("{why}")).await;
        let text = std::fs::read_to_string(path).unwrap();
        let read: Vec<Stamped> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(read.iter().map(|one| one.seq).collect::<Vec<_>>(), [0, 1]);
        let Record::Event(Event::Steered { text, .. }) = &read[1].record else {
            panic!("{:?}", read[1]);
        };
        assert_eq!(text, "two\nlines");
    }

    fn steered(text: &str) -> Event {
        Event::Steered {
            to: None,
            text: text.to_owned(),
        }
    }

    fn seqs(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        let read = |line| serde_json::from_str::<Stamped>(line).unwrap().seq;
        text.lines().map(read).collect()
    }

    #[test]
    fn records_that_could_not_be_written_are_written_with_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.jsonl");
        let writable = create_trajectory(&path).unwrap();
        let mut file = TrajectoryFile::replacing(path.clone(), writable.try_clone().unwrap());
        let log = EventLog::new();
        log.event(steered("one"));
        file.write(&log).unwrap();
        // A file that is open for reading alone refuses every record.
        file.file = File::open(&path).unwrap();
        for text in ["two", "three"] {
            log.event(steered(text));
            assert!(file.write(&log).is_err());
            assert_eq!(seqs(&path), [0]);
        }
        // A part of a record remained in the file.
        file.file = writable;
        file.file.write_all(br#"{"seq":1,"at_ms"#).unwrap();
        log.event(steered("four"));
        file.write(&log).unwrap();
        assert_eq!(seqs(&path), [0, 1, 2, 3]);
    }

    #[test]
    fn trajectory_that_was_removed_or_shortened_is_written_anew() {
        type Damage = fn(&Path);
        let damages: [Damage; 4] = [
            |path| std::fs::remove_file(path).unwrap(),
            |path| std::fs::remove_dir_all(path.parent().unwrap()).unwrap(),
            |path| std::fs::rename(path, path.with_extension("old")).unwrap(),
            |path| std::fs::write(path, "").unwrap(),
        ];
        for damage in damages {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("runs/1.jsonl");
            let begun = begin_trajectory(&path, steered("zero")).unwrap();
            let mut file = TrajectoryFile::replacing(path.clone(), begun);
            let log = EventLog::new();
            for text in ["one", "two"] {
                log.event(steered(text));
                file.write(&log).unwrap();
            }
            damage(&path);
            log.event(steered("three"));
            file.write(&log).unwrap();
            assert_eq!(seqs(&path), [0, 1, 2]);
            let other = File::open(&path).unwrap();
            assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
            log.event(steered("four"));
            file.write(&log).unwrap();
            assert_eq!(seqs(&path), [0, 1, 2, 3]);
        }
    }

    #[tokio::test]
    async fn change_is_refused_if_its_removed_trajectory_cannot_be_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        let path = runs.join("1.jsonl");
        let file = TrajectoryFile::replacing(path.clone(), create_trajectory(&path).unwrap());
        let log = EventLog::new();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let records = log.write_from(0);
        let writer = tokio::spawn(async move {
            write_trajectory(records, file, |why| tell.send(why).unwrap()).await;
        });
        log.durable_event(steered("one")).await.unwrap();
        std::fs::remove_dir_all(&runs).unwrap();
        std::fs::write(&runs, "not a directory").unwrap();
        let why = log.durable_event(steered("two")).await.unwrap_err();
        assert!(why.to_string().contains("1.jsonl: "), "{why}");
        assert_eq!(told.recv().await, Some(why.to_string()));
        // The place can be used again.
        std::fs::remove_file(&runs).unwrap();
        log.durable_event(steered("three")).await.unwrap();
        assert_eq!(seqs(&path), [0, 1, 2]);
        log.close();
        writer.await.unwrap();
    }

    #[tokio::test]
    async fn unwritten_record_is_reported_once_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.jsonl");
        std::fs::write(&path, "").unwrap();
        let log = EventLog::new();
        let records = log.write_from(0);
        let file = TrajectoryFile::replacing(path.clone(), File::open(&path).unwrap());
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let writer = tokio::spawn(async move {
            let report = |why| tell.send(why).unwrap();
            write_trajectory(records, file, report).await;
        });
        for text in ["one", "two"] {
            let why = log
                .durable_event(steered(text))
                .await
                .unwrap_err()
                .to_string();
            assert!(why.contains("1.jsonl: "), "{why}");
            assert!(why.contains("free space"), "{why}");
        }
        log.close();
        writer.await.unwrap();
        assert!(told.recv().await.unwrap().contains("1.jsonl"));
        assert_eq!(told.recv().await, None);
    }

    #[test]
    fn trajectory_is_locked_while_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.jsonl");
        let file = create_trajectory(&path).unwrap();
        let other = File::open(&path).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(file);
        assert!(other.try_lock().is_ok());
        assert!(
            create_trajectory(&path.join("2.jsonl")).is_err(),
            "not under a file"
        );
    }

    #[test]
    fn event_for_client_omits_texts_of_review() {
        let events = crate::samples::asked(&[(1, "a.py::f")]);
        let record = Stamped {
            seq: 3,
            at_ms: 4,
            record: Record::Event(events[1].clone()),
        };
        let told = event_params(&RunId("r".to_owned()), &record).unwrap();
        let sent = serde_json::to_value(&told).unwrap();
        assert_eq!(sent["event"]["event"], "review_asked");
        assert!(!sent.to_string().contains("base"), "{sent}");
        assert_eq!((told.seq, told.at_ms), (3, 4));
    }
}
