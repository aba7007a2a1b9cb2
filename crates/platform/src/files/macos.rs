//! Files on macOS.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for reading whose path contains no link. Opening a pipe does not wait for a writer.
///
/// # Errors
/// The file cannot be opened, its path contains a link, or the system cannot exclude links.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW_ANY | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Copies a file with its permissions.
///
/// # Errors
/// One of the files cannot be opened, read or written.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(from, to).map(drop)
}
