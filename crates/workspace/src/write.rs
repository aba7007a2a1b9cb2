//! Writes a file completely or not at all, and keeps its metadata: owner, permissions, access
//! control lists, extended attributes, hard links.
//!
//! If the metadata can be copied to a new file, the new file is renamed over the old one. If it
//! cannot, or if the file has several hard links, the text is written in place. During a write in
//! place, a journal next to the file contains the complete new text. If the writer is killed, the
//! journal stays, and [`sweep_leftovers`] reports its path.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use starling_platform::files::{
    PathExt, PinnedDirectory, copy_metadata, identity_of_open, is_unsupported, may_write,
    open_to_overwrite, open_without_following, sync_directory,
};
use starling_platform::processes::is_running;

use super::encoding::{EncodeError, decode, encode};
use super::paths::{MAX_FILE_BYTES, ReadError, resolve};
use super::private::private_file;
use super::regular::{open_regular, read_regular};
use super::stored::stored_bytes;
use starling_syntax::FilePath;

/// Part of the name of a temporary file, which may contain an incomplete text.
const MARK: &str = ".starling-write-";
/// Part of the name of a journal, which contains the complete new text during a write in place.
const JOURNAL: &str = ".starling-journal-";
/// Maximum size of a journal that is compared with its file, in bytes.
const MAX_JOURNAL_BYTES: u64 = 16 * MAX_FILE_BYTES;
/// Minimum age of a temporary file before it is removed, if its writer may still be alive and only
/// has not locked the file yet.
const SWEEP_AGE: Duration = Duration::from_secs(60);
/// Minimum age of a temporary file before it is removed from a file system without locks, where it
/// is unknown whether the writer is alive.
const LOCKLESS_SWEEP_AGE: Duration = Duration::from_hours(24);

/// Why a file was not written. Except for [`WriteError::Torn`], the file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("not written: {0}")]
    Path(#[from] ReadError),
    #[error("{file}: not written: {reason}")]
    Encoding { file: FilePath, reason: EncodeError },
    #[error("{file}: not written: {source}")]
    Io { file: FilePath, source: io::Error },
    #[error("{file}: not deleted: {source}")]
    Delete { file: FilePath, source: io::Error },
    #[error(
        "{0}: not written: the file is read-only; allow writing (chmod u+w) to have it changed"
    )]
    ReadOnly(FilePath),
    #[error("{file}: written only in part: {source}; the complete new text is in {}", .journal.display())]
    Torn {
        file: FilePath,
        journal: PathBuf,
        source: io::Error,
    },
}

/// Writes a file of the workspace and keeps its metadata. A link inside the workspace stays a link.
/// Missing directories are created. The text is written in the encoding that it declares, and with
/// the byte order mark of the file.
///
/// # Errors
/// The declared encoding lacks a character.
/// The path leads out of the workspace or names a secret, the file is read-only, or the disk fails.
pub fn write_atomically(root: &Path, file: &FilePath, text: &str) -> Result<(), WriteError> {
    write_in_form(root, file, text, |target, on_disk| {
        let shown = decode(target, on_disk.clone()).unwrap_or_default();
        stored_bytes(target, &on_disk, &shown, text)
    })
}

/// Writes a file like [`write_atomically`], in the form in which an editor saves it that showed the
/// similar text `shown` for it.
///
/// # Errors
/// The errors of [`write_atomically`], and the encoding of the file cannot be told.
pub fn write_as_shown(
    root: &Path,
    file: &FilePath,
    shown: &str,
    text: &str,
) -> Result<(), WriteError> {
    write_in_form(root, file, text, |target, on_disk| {
        stored_bytes(target, &on_disk, shown, text)
    })
}

/// Writes a text as the bytes that `stored` returns for the path and the bytes on disk.
fn write_in_form(
    root: &Path,
    file: &FilePath,
    text: &str,
    stored: impl FnOnce(&Path, Vec<u8>) -> Result<Vec<u8>, EncodeError>,
) -> Result<(), WriteError> {
    let target = resolve(root, file)?;
    let bytes = match read_regular(&target, MAX_JOURNAL_BYTES) {
        Ok(on_disk) => stored(&target, on_disk),
        Err(_) => encode(&target, text).map(Cow::into_owned),
    };
    let bytes = bytes.map_err(|reason| WriteError::Encoding {
        file: file.clone(),
        reason,
    })?;
    write_with(&SYSTEM, &target, &bytes).map_err(|failed| match failed {
        WriteFailure::ReadOnly => WriteError::ReadOnly(file.clone()),
        WriteFailure::Torn { journal, source } => WriteError::Torn {
            file: file.clone(),
            journal,
            source,
        },
        WriteFailure::Io(source) => WriteError::Io {
            file: file.clone(),
            source,
        },
    })
}

/// Writes a file that the user named, at any location, completely or not at all. A new file is
/// accessible only to this user; an existing one keeps its metadata, and a link stays a link.
///
/// # Errors
/// The directory is missing, the file is read-only, or the disk fails. The file is then unchanged.
pub fn write_given(path: &Path, text: &str) -> io::Result<()> {
    let is_new = !path.exists();
    if is_new {
        private_file(path)?;
    }
    let target = path.canonical()?;
    let written = write_with(&SYSTEM, &target, text.as_bytes());
    if written.is_err() && is_new {
        // The file was just created. It is empty, and no other program uses it.
        let _ = fs::remove_file(&target);
    }
    written.map_err(|failed| match failed {
        WriteFailure::ReadOnly => {
            io::Error::new(ErrorKind::PermissionDenied, "the file is read-only")
        }
        WriteFailure::Torn { source, .. } | WriteFailure::Io(source) => source,
    })
}

/// System calls that some file systems lack or that can fail. Tests replace them.
#[derive(Clone, Copy)]
struct SystemCalls {
    lock: fn(&File) -> Result<(), TryLockError>,
    sync: fn(&File) -> io::Result<()>,
    sync_directory: fn(&Path) -> io::Result<()>,
    keep: fn(&File, &Metadata, &File) -> io::Result<()>,
    overwrite: fn(&mut File, &[u8]) -> io::Result<()>,
}

const SYSTEM: SystemCalls = SystemCalls {
    lock: File::try_lock,
    sync: File::sync_all,
    sync_directory,
    keep: copy_metadata,
    overwrite: |file, text| {
        file.set_len(0)?;
        io::Seek::rewind(file)?;
        file.write_all(text)?;
        file.sync_all()
    },
};

/// Why a write failed.
#[derive(Debug)]
enum WriteFailure {
    ReadOnly,
    Torn { journal: PathBuf, source: io::Error },
    Io(io::Error),
}

impl From<io::Error> for WriteFailure {
    fn from(error: io::Error) -> Self {
        WriteFailure::Io(error)
    }
}

/// Writes a file whose path contains no link. A link that another program puts into the path during
/// the write is not followed.
fn write_with(calls: &SystemCalls, target: &Path, text: &[u8]) -> Result<(), WriteFailure> {
    let (Some(directory), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(io::Error::from(ErrorKind::InvalidInput).into());
    };
    let pinned = PinnedDirectory::create(directory)?;
    let place = pinned.path().join(name);
    let before = open_unless_missing(&place)?;
    if before.is_some() {
        require_writable(&place)?;
    }
    let temporary = beside(&place, MARK);
    let written =
        write_through(calls, &temporary, &place, before, text).map_err(|failed| match failed {
            WriteFailure::Torn { journal, source } => WriteFailure::Torn {
                journal: directory.join(journal.file_name().unwrap_or_default()),
                source,
            },
            other => other,
        });
    if written.is_err() {
        // If the removal fails, a later sweep removes the file.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sweep_in(pinned.path());
    if let Err(error) = (calls.sync_directory)(pinned.path()) {
        // Only flushing the directory failed. The file itself is written.
        tracing::warn!(file = %target.display(), "a power failure now may undo the change: {error}");
    }
    Ok(())
}

/// Opens a regular file for reading, or returns `None` if there is no file. A link is not followed.
fn open_unless_missing(path: &Path) -> io::Result<Option<File>> {
    let required = |found: &Metadata| match found.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "not a regular file",
        )),
    };
    // Opening a device can have side effects, so the kind of the file is checked both before and
    // after it is opened.
    match path.symlink_metadata() {
        Ok(found) => required(&found)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let file = open_without_following(path)?;
    required(&file.metadata()?)?;
    Ok(Some(file))
}

/// Returns an error if the file is read-only. A read-only file is not replaced either, not even if
/// this process runs as root.
fn require_writable(target: &Path) -> Result<(), WriteFailure> {
    match may_write(target)? {
        true => Ok(()),
        false => Err(WriteFailure::ReadOnly),
    }
}

fn write_through(
    calls: &SystemCalls,
    temporary: &Path,
    target: &Path,
    before: Option<File>,
    text: &[u8],
) -> Result<(), WriteFailure> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(temporary)?;
    // The lock is held until the end, so that a sweep recognizes that the writer is alive.
    match (calls.lock)(&file) {
        Err(TryLockError::Error(error)) if !is_unsupported(&error) => return Err(error.into()),
        Ok(()) | Err(TryLockError::Error(_) | TryLockError::WouldBlock) => {}
    }
    file.write_all(text)?;
    let in_place = match &before {
        None => None,
        Some(old) => {
            let found = old.metadata()?;
            let is_alike = identity_of_open(old, &found)?.links == 1
                && (calls.keep)(old, &found, &file).is_ok();
            Some(old).filter(|_| !is_alike)
        }
    };
    match (calls.sync)(&file) {
        Err(error) if !is_unsupported(&error) => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    match in_place {
        None => Ok(fs::rename(temporary, target)?),
        Some(old) => write_in_place(calls, temporary, target, old, text),
    }
}

/// Writes into the existing file. The temporary file serves as a journal and is removed afterwards.
fn write_in_place(
    calls: &SystemCalls,
    temporary: &Path,
    target: &Path,
    mut old: &File,
    text: &[u8],
) -> Result<(), WriteFailure> {
    let mut before = Vec::new();
    old.read_to_end(&mut before)?;
    let mut file = open_to_overwrite(target)?;
    let journal = beside(target, JOURNAL);
    fs::rename(temporary, &journal)?;
    let written = (calls.overwrite)(&mut file, text);
    let restored = match &written {
        Ok(()) => Ok(()),
        Err(_) => (calls.overwrite)(&mut file, &before),
    };
    if restored.is_ok() {
        // A remaining journal is harmless: a later sweep removes it.
        let _ = fs::remove_file(&journal);
    }
    match (written, restored) {
        (Ok(()), _) => Ok(()),
        (Err(source), Ok(())) => Err(WriteFailure::Io(source)),
        (Err(source), Err(_)) => Err(WriteFailure::Torn { journal, source }),
    }
}

/// Deletes a file of the workspace. If the path is a link, the link is deleted and not its target.
pub fn delete_file(root: &Path, file: &FilePath) -> Result<(), WriteError> {
    resolve(root, file)?;
    let delete = || {
        let directory = root.join(file.directory()).canonical()?;
        if !directory.starts_with(root) {
            return Err(ErrorKind::NotFound.into());
        }
        let pinned = PinnedDirectory::create(&directory)?;
        fs::remove_file(pinned.path().join(file.name()))
    };
    delete().map_err(|source| WriteError::Delete {
        file: file.clone(),
        source,
    })
}

/// Returns the path of a temporary file next to `target`. Its name is hidden, so that the walk
/// skips the file, and it is unique within this process and across processes.
fn beside(target: &Path, mark: &str) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}{mark}{}-{number}", std::process::id()))
}

/// Parses the name of a temporary file, `.NAME.starling-write-PID-N`, and returns the name of the
/// file that was being written, and the id of the process that wrote it.
fn written_by<'n>(name: &'n str, mark: &str) -> Option<(&'n str, u32)> {
    let (target, rest) = name.strip_prefix('.')?.rsplit_once(mark)?;
    let (process, number) = rest.split_once('-')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exact = is_number(process) && is_number(number) && !number.is_empty();
    let process = process.parse().ok().filter(|process| *process > 0)?;
    (is_exact && !target.is_empty()).then_some((target, process))
}

/// Returns whether a file with this name is a temporary file of a writing process.
pub(super) fn is_temporary(name: &str) -> bool {
    written_by(name, MARK).is_some()
}

/// Removes each of these temporary files whose writing process has ended.
pub(super) fn sweep(temporary: impl IntoIterator<Item = PathBuf>) {
    for path in temporary {
        // A file that cannot be removed now is found by a later sweep.
        if is_needless(&path) && fs::remove_file(&path).is_ok() {
            tracing::info!(file = %path.display(), "removed a temporary file of a killed process");
        }
    }
}

/// Removes the temporary files in a directory whose writing processes have ended.
pub(super) fn sweep_in(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let temporary = entries.filter(|entry| {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && is_temporary(&entry.file_name().to_string_lossy())
    });
    sweep(temporary.map(|entry| entry.path()));
}

/// Removes the temporary files and journals below `root` whose writing processes have ended, and
/// returns their paths. If a journal contains a text that was not completely written to its file,
/// the journal is kept and a warning is logged, because it may be the only copy. The text is not
/// written automatically, because anyone could have put the journal into the project.
pub fn sweep_leftovers(root: &Path) -> Vec<PathBuf> {
    let walk = ignore::WalkBuilder::new(root)
        .standard_filters(false)
        .filter_entry(|entry| !matches!(entry.file_name().to_str(), Some(".git" | "node_modules")))
        .build();
    walk.flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(ignore::DirEntry::into_path)
        .filter(|path| is_needless(path) && fs::remove_file(path).is_ok())
        .collect()
}

fn is_needless(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some((target, writer)) = written_by(&name, JOURNAL) {
        return abandoned(path, writer).is_some_and(|journal| {
            let target = path.with_file_name(target);
            let is_written = same_text(journal, &target).unwrap_or(false);
            if !is_written {
                tracing::warn!(
                    "{target:?}: writing this file was interrupted; its whole new text is in \
                     {path:?}: take what you need from it, then remove it"
                );
            }
            is_written
        });
    }
    let writer = written_by(&name, MARK);
    writer.is_some_and(|(_, writer)| abandoned(path, writer).is_some())
}

fn same_text(journal: File, target: &Path) -> io::Result<bool> {
    let target = open_regular(target)?;
    let length = journal.metadata()?.len();
    if length != target.metadata()?.len() || length > MAX_JOURNAL_BYTES {
        return Ok(false);
    }
    let (mut wanted, mut now) = (Vec::new(), Vec::new());
    journal.take(length).read_to_end(&mut wanted)?;
    target.take(length).read_to_end(&mut now)?;
    Ok(wanted == now)
}

/// Opens a temporary file or a journal if its writing process has ended. Otherwise returns `None`.
fn abandoned(path: &Path, writer: u32) -> Option<File> {
    let file = open_regular(path).ok()?;
    let modified = file.metadata().ok()?.modified().ok()?;
    let age = modified.elapsed().unwrap_or_default();
    let least = match file.try_lock() {
        // The id of a writing process in a container has no meaning here, but the process still
        // holds its lock.
        Ok(()) if !is_running(writer) => Duration::ZERO,
        Ok(()) => SWEEP_AGE,
        Err(TryLockError::Error(error)) if is_unsupported(&error) => LOCKLESS_SWEEP_AGE,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
    };
    (age >= least).then_some(file)
}
