//! Reads regular files of bounded size. Any path of a project may be a pipe, a device or an endless
//! file: opening a pipe must not block, and reading must not fill the memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use starling_platform::files::open_without_blocking;

use super::encoding::decode;
use super::stored::shown_text;

/// Opens a regular file for reading, without blocking on a pipe or device.
///
/// # Errors
/// The file cannot be opened, or is not a regular file ([`ErrorKind::InvalidInput`]).
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Opening a device can have side effects, so check the kind before opening as well as after.
    require_regular(path.metadata()?.is_file())?;
    let file = open_without_blocking(path)?;
    require_regular(file.metadata()?.is_file())?;
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// The errors of [`open_regular`], or the file is longer than `limit`
/// ([`ErrorKind::FileTooLarge`]).
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_bounded(open_regular(path)?, limit)
}

/// Reads a regular UTF-8 text file of at most `limit` bytes.
///
/// # Errors
/// The errors of [`read_regular`], or the text is not UTF-8 ([`ErrorKind::InvalidData`]).
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read_regular(path, limit)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "not UTF-8 text"))
}

/// Reads a regular text file of at most `limit` bytes, in the encoding that it declares.
///
/// # Errors
/// The errors of [`read_regular`], or the file is not valid text in its encoding
/// ([`ErrorKind::InvalidData`]).
pub fn read_source(path: &Path, limit: u64) -> io::Result<String> {
    decode(path, read_regular(path, limit)?)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Reads a regular text file of at most `limit` bytes as it is shown by an editor that showed the
/// similar text `shown` for it.
///
/// # Errors
/// The errors of [`read_source`].
pub fn read_as_shown(path: &Path, limit: u64, shown: &str) -> io::Result<String> {
    shown_text(path, read_regular(path, limit)?, shown)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Reads a text file like [`read_source`], or like [`read_as_shown`] if the editor's text is given,
/// on a thread for blocking work.
///
/// # Errors
/// The errors of [`read_source`].
pub async fn load_source(path: PathBuf, limit: u64, shown: Option<Arc<str>>) -> io::Result<String> {
    let read = tokio::task::spawn_blocking(move || match shown {
        Some(shown) => read_as_shown(&path, limit, &shown),
        None => read_source(&path, limit),
    });
    read.await.map_err(io::Error::other)?
}

/// Reads a file of at most `limit` bytes that the user named. Pipes such as `/dev/stdin` are
/// allowed.
///
/// # Errors
/// The file cannot be read, or is longer than `limit` ([`ErrorKind::FileTooLarge`]).
pub fn read_given(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_bounded(File::open(path)?, limit)
}

/// Reads an open file of at most `limit` bytes.
///
/// # Errors
/// The file cannot be read, or is longer than `limit` ([`ErrorKind::FileTooLarge`]).
pub fn read_bounded(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= limit {
        bytes.reserve_exact(length as usize + 1);
        // The file may grow while it is read, so at most one byte more than the limit is read.
        file.take(limit + 1).read_to_end(&mut bytes)?;
    }
    if length > limit || bytes.len() as u64 > limit {
        let message = format!("over the limit of {limit} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

fn require_regular(is_file: bool) -> io::Result<()> {
    if is_file {
        return Ok(());
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

#[cfg(test)]
mod tests {
    use rustix::fs::Mode;

    use super::*;

    #[test]
    fn text_over_the_size_limit_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        let error = read_text(&path, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_regular(&path, 4).unwrap(), b"\xff");
        let error = read_text(&path, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn pipes_devices_and_directories_are_rejected_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&pipe, &link, dir.path(), Path::new("/dev/null")] {
            let error = open_regular(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}", path.display());
        }
        let error = open_regular(&dir.path().join("missing")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn pipe_named_by_the_user_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| std::fs::write(&pipe, "told").unwrap());
            assert_eq!(read_given(&pipe, 4).unwrap(), b"told");
        });
        let error = read_given(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn file_with_reported_length_zero_is_read_up_to_the_limit() {
        // Files in `/proc` report a length of zero but have contents.
        let path = Path::new("/proc/self/status");
        assert_eq!(path.metadata().unwrap().len(), 0);
        let error = read_regular(path, 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(read_text(path, 1 << 20).unwrap().starts_with("Name:"));
    }
}
