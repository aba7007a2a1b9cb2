//! Files and directories that only their user may read, such as model prompts and replies.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use starling_platform::files::{create_private_directory, open_private_file};

/// Creates a directory for Starling's data, and its missing parents, accessible only to this user.
/// If the directory exists, other users lose access to it.
pub fn private_directory(path: &Path) -> io::Result<()> {
    create_private_directory(path)
}

/// Creates an empty file that only this user can access. If the file exists, it is emptied and
/// other users lose access to it.
pub fn private_file(path: &Path) -> io::Result<File> {
    open_private_file(path)
}

/// Atomically replaces a file that only this user can access. A writer that is killed leaves a file
/// next to it whose name ends in `.new`.
///
/// # Errors
/// The directory is missing or cannot be written. The file is then unchanged.
pub fn replace_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut file = tempfile::Builder::new()
        .suffix(".new")
        .tempfile_in(directory)?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_private_files_and_directories_are_accessible_only_to_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        private_directory(&inner).unwrap();
        private_file(&inner.join("f")).unwrap();
        assert_eq!(mode(&inner), 0o700);
        assert_eq!(mode(&dir.path().join("a")), 0o700);
        assert_eq!(mode(&inner.join("f")), 0o600);
    }

    #[test]
    fn existing_private_files_and_directories_lose_access_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let (inner, file) = (dir.path().join("a"), dir.path().join("a/f"));
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        private_directory(&inner).unwrap();
        private_file(&file).unwrap();
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read_to_string(&file).unwrap(), "");
    }

    #[test]
    fn replaced_private_file_is_new_and_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "old").unwrap();
        let old = File::open(&file).unwrap();
        replace_private_file(&file, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(mode(&file), 0o600);
        assert_eq!(
            io::read_to_string(old).unwrap(),
            "old",
            "it was not written in place"
        );
        fs::create_dir(dir.path().join("taken")).unwrap();
        replace_private_file(&dir.path().join("taken"), b"new").unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
