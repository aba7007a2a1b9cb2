//! Files: identity, permissions, links, and ways to open them.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod macos;
#[cfg(any(windows, test))]
mod names;
#[cfg(unix)]
mod unix;
#[cfg(not(target_os = "linux"))]
mod unpinned;
#[cfg(windows)]
mod windows;

use std::io;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
pub use linux::{PinnedDirectory, copy_file, open_without_links};
#[cfg(all(unix, not(target_os = "linux")))]
pub use macos::{copy_file, open_without_links};
#[cfg(unix)]
pub use unix::{
    LIST_SEPARATOR, PROGRAMS_OF_ENVIRONMENT, PYTHON, PYTHON_OF_ENVIRONMENT, PYTHON_OF_INSTALLATION,
    belongs_to_this_user, change_marks, copy_metadata, create_private_directory, free_space,
    free_space_of, identity, identity_of_open, is_exact_name, is_program, is_unsupported,
    may_write, open_private_file, open_to_overwrite, open_to_this_user, open_without_blocking,
    open_without_following, permission_bits, program_files, reads_null_device, same_owner,
    set_permission_bits, symlink, sync_directory, taken_bytes, temporary_directory_of_user,
};
#[cfg(not(target_os = "linux"))]
pub use unpinned::PinnedDirectory;
#[cfg(windows)]
pub use windows::{
    LIST_SEPARATOR, PROGRAMS_OF_ENVIRONMENT, PYTHON, PYTHON_OF_ENVIRONMENT, PYTHON_OF_INSTALLATION,
    belongs_to_this_user, change_marks, copy_file, copy_metadata, create_private_directory,
    free_space, identity, identity_of_open, is_exact_name, is_program, is_unsupported, may_write,
    open_private_file, open_to_overwrite, open_to_this_user, open_without_blocking,
    open_without_following, open_without_links, permission_bits, program_files, reads_null_device,
    same_owner, set_permission_bits, symlink, sync_directory, taken_bytes,
    temporary_directory_of_user,
};

/// The identity of a file. It does not depend on the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The file system and the number of the file in it.
    pub file: (u64, u64),
    /// Number of names (hard links) of the file.
    pub links: u64,
}

/// Metadata of a file that changes with its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeMarks {
    /// Number that differs between a file and the file that replaced it (the inode on Unix).
    pub number: u64,
    /// Modification time of the text, in nanoseconds since 1970.
    pub modified: i64,
    /// Change time of text, name or permissions, in nanoseconds since 1970. Where the system does
    /// not report it, the modification time.
    pub changed: i64,
}

/// Resolves paths.
pub trait PathExt {
    /// Returns the absolute path without links. On Windows, it has the form that other programs
    /// accept (`C:\x`, not `\\?\C:\x`) if there is one.
    ///
    /// # Errors
    /// The path does not exist, or cannot be read.
    fn canonical(&self) -> io::Result<PathBuf>;
}

impl PathExt for Path {
    fn canonical(&self) -> io::Result<PathBuf> {
        dunce::canonicalize(self)
    }
}

/// Whether the name of a program in a command is a path.
pub fn is_path(name: &str) -> bool {
    name.contains(std::path::is_separator)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn hard_links_of_a_file_share_one_identity_and_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs::write(&one, "text").unwrap();
        let of = |path: &Path| identity(path, &path.symlink_metadata().unwrap()).unwrap();
        assert_eq!(of(&one).links, 1);
        fs::hard_link(&one, &two).unwrap();
        assert_eq!(of(&one), of(&two));
        assert_eq!(of(&one).links, 2);
        let open = fs::File::open(&two).unwrap();
        let found = open.metadata().unwrap();
        assert_eq!(identity_of_open(&open, &found).unwrap(), of(&one));
        fs::copy(&one, dir.path().join("three")).unwrap();
        assert_ne!(of(&dir.path().join("three")).file, of(&one).file);
    }

    #[test]
    fn copy_of_a_file_keeps_its_holes() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::write(&from, "start").unwrap();
        let file = fs::File::options().write(true).open(&from).unwrap();
        file.set_len(64 << 20).unwrap();
        copy_file(&from, &to).unwrap();
        let of = |path: &Path| path.metadata().unwrap();
        assert_eq!(of(&to).len(), 64 << 20);
        assert!(taken_bytes(&of(&to)) <= taken_bytes(&of(&from)).max(1 << 20));
        assert!(fs::read(&from).unwrap() == fs::read(&to).unwrap());
    }

    #[test]
    fn open_without_following_rejects_symbolic_links() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonical().unwrap();
        fs::create_dir(dir.join("real")).unwrap();
        fs::write(dir.join("real/file"), "text").unwrap();
        symlink(&dir.join("real/file"), &dir.join("link")).unwrap();
        symlink(&dir.join("real"), &dir.join("directory")).unwrap();
        let is_file = |opened: io::Result<fs::File>| {
            opened.is_ok_and(|file| file.metadata().is_ok_and(|found| found.is_file()))
        };
        assert!(is_file(open_without_following(&dir.join("real/file"))));
        assert!(!is_file(open_without_following(&dir.join("link"))));
        assert!(!is_file(open_without_links(&dir.join("link"))));
        assert!(!is_file(open_without_links(&dir.join("directory/file"))));
        assert!(is_file(open_without_blocking(&dir.join("link"))));
    }

    #[test]
    fn read_only_file_is_not_writable_until_it_is_opened_to_this_user() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(may_write(&file).unwrap());
        let mut permissions = file.metadata().unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&file, permissions).unwrap();
        assert!(!may_write(&file).unwrap());
        open_to_this_user(&file).unwrap();
        assert!(may_write(&file).unwrap());
    }

    #[test]
    fn directory_created_by_this_user_belongs_to_this_user() {
        let dir = tempfile::tempdir().unwrap();
        let found = dir.path().metadata().unwrap();
        assert!(belongs_to_this_user(&found));
        assert!(same_owner(&found, &found));
    }
}
