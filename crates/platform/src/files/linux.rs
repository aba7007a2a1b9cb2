//! Files on Linux.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, SeekFrom, mkdirat, open, openat, openat2, seek};
use rustix::io::Errno;

/// Opens a file for reading whose path contains no link. Opening a pipe does not wait for a writer.
///
/// # Errors
/// The file cannot be opened, its path contains a link, or the system cannot exclude links.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    Ok(File::from(opened?))
}

/// Copies a file with its permissions. Holes of the file stay holes.
///
/// # Errors
/// One of the files cannot be opened, read or written.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let found = from.metadata()?;
    if super::taken_bytes(&found) >= found.len() {
        return fs::copy(from, to).map(drop);
    }
    let mut source = File::open(from)?;
    let mut target = File::create(to)?;
    target.set_len(found.len())?;
    let mut at = 0;
    loop {
        let start = match seek(&source, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = seek(&source, SeekFrom::Hole(start))?;
        source.seek(io::SeekFrom::Start(start))?;
        target.seek(io::SeekFrom::Start(start))?;
        io::copy(&mut (&source).take(at - start), &mut target)?;
    }
    target.set_permissions(found.permissions())
}

/// A directory that is held open. Its files are reached through it, whatever its path leads to by
/// then.
#[derive(Debug)]
pub struct PinnedDirectory {
    path: PathBuf,
    _directory: OwnedFd,
}

impl PinnedDirectory {
    /// Opens a directory, and creates what is missing of it. No link on the way is followed.
    ///
    /// # Errors
    /// The path is not absolute or contains a link, or a directory cannot be opened or created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut directory = open("/", flags, Mode::empty())?;
        let mut parts = path.components();
        if parts.next() != Some(Component::RootDir) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for part in parts {
            let name = part.as_os_str();
            let inner = match openat(&directory, name, flags, Mode::empty()) {
                Err(Errno::NOENT) => {
                    match mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    openat(&directory, name, flags, Mode::empty())
                }
                opened => opened,
            };
            directory = inner?;
        }
        let pinned = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        Ok(PinnedDirectory {
            // Without `/proc` there is no path to an open directory.
            path: match pinned.is_dir() {
                true => pinned,
                false => path.to_owned(),
            },
            _directory: directory,
        })
    }

    /// Returns a path that leads to the open directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn pinned_directory_stays_the_same_after_its_path_leads_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (path, outside) = (root.join("a/b"), root.join("outside"));
        fs::create_dir(&outside).unwrap();
        let pinned = PinnedDirectory::create(&path).unwrap();
        fs::rename(&path, root.join("moved")).unwrap();
        std::os::unix::fs::symlink(&outside, &path).unwrap();
        fs::write(pinned.path().join("x"), "text").unwrap();
        assert!(root.join("moved/x").exists() && !outside.join("x").exists());
        assert!(PinnedDirectory::create(&path).is_err(), "it is a link");
        assert!(PinnedDirectory::create(&path.join("c")).is_err());
        assert!(!outside.join("c").exists());
    }
}
