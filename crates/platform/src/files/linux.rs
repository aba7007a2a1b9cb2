//! Files on Linux.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

/// Opens a file for reading whose path contains no link. Opening a pipe does not wait for a writer.
///
/// # Errors
/// The file cannot be opened, its path contains a link, or the system cannot exclude links.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    Ok(File::from(opened?))
}
