//! The trajectory of a run on disk, and its events as a front end receives them.

use std::fs::{File, TryLockError};
use std::io::{Seek, Write};
use std::path::Path;

use tokio::io::AsyncWriteExt;

use super::messages::EventParams;
use starling_swarm::{Event, Record, RunId, Stamped, Writing};
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

/// Creates the file of a trajectory with one record that contains the task. [`replace_trajectory`]
/// replaces this record when the run has started. If the server is killed before that, the next
/// server reads the task from the record.
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

/// Writes all records as JSON lines, in place of what [`begin_trajectory`] wrote.
pub async fn replace_trajectory(mut records: Writing, mut file: File, path: &Path) {
    let Some(first) = records.next().await else {
        return;
    };
    let replaced = line_of(&first).and_then(|line| {
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&line)
    });
    match replaced {
        Ok(()) => write_trajectory(records, file, path).await,
        Err(error) => log_write_failure(path, &error),
    }
}

/// Appends all records as JSON lines.
pub async fn write_trajectory(records: Writing, file: File, path: &Path) {
    if let Err(error) = try_write(records, file).await {
        log_write_failure(path, &error);
    }
}

pub fn log_write_failure(path: &Path, error: &std::io::Error) {
    tracing::error!(path = %path.display(), %error, "the trajectory is not written");
}

async fn try_write(mut records: Writing, file: File) -> std::io::Result<()> {
    let mut file = tokio::fs::File::from_std(file);
    while let Some(record) = records.next().await {
        file.write_all(&line_of(&record)?).await?;
        // Flush at once: a review must survive the end of the server, and an edit is sent only
        // after its record is written.
        file.flush().await?;
    }
    Ok(())
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
    let mut event = event.clone();
    if let Event::ReviewAsked { parts, .. } = &mut event {
        parts.clear();
    } else if let Event::ProposalApplied { change, .. } = &mut event {
        *change = None;
    }
    Some(EventParams {
        run: run.clone(),
        seq: record.seq,
        at_ms: record.at_ms,
        event,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_swarm::EventLog;

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
        let file = create_trajectory(&path).unwrap();
        write_trajectory(log.write_from(0), file, &path).await;
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
