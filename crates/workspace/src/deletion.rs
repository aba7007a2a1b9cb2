//! Deletions of files that an undo can take back: the file is made again from its text.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::encoding::encode;
use super::paths::MAX_FILE_BYTES;
use super::regular::read_regular;
use super::stored::shown_text;
use starling_platform::files::{
    PathExt, may_write, open_without_following, permission_bits, set_permission_bits,
};
use starling_syntax::FilePath;

/// The metadata that a deleted file gets back if the deletion is undone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeletedFile {
    /// The permission bits, on systems that have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

impl DeletedFile {
    /// Returns the metadata of a file that is about to be deleted. `text` is the text of the file as
    /// the editor shows it.
    ///
    /// # Errors
    /// Returns why the file may not be deleted: it is no plain file of the project, it is read-only,
    /// its text is not saved, or the text does not tell all its bytes, so that an undo could not
    /// restore the file.
    pub fn of(root: &Path, file: &FilePath, text: &str) -> Result<DeletedFile, String> {
        let path = root.join(file.as_str());
        let failed = |error: std::io::Error| format!("{file}: {error}");
        let found = path.symlink_metadata().map_err(failed)?;
        if !found.is_file() || path.canonical().map_err(failed)? != path {
            return Err(format!(
                "{file} is a link or no plain file: delete it yourself"
            ));
        }
        if !may_write(&path).map_err(failed)? {
            return Err(format!("{file} is read-only, so it is not deleted"));
        }
        let on_disk = read_regular(&path, MAX_FILE_BYTES).map_err(failed)?;
        let is_saved = encode(&path, text).is_ok_and(|bytes| *bytes == *on_disk);
        if !is_saved {
            let shown = shown_text(&path, on_disk, text);
            return Err(match shown.is_ok_and(|shown| shown == text) {
                true => format!(
                    "{file} has a byte order mark, or an encoding or line ends that its text does not tell, so an \
                     undo could not restore it: delete it yourself"
                ),
                false => {
                    format!("{file} has unsaved changes in the editor: save or revert them first")
                }
            });
        }
        Ok(DeletedFile {
            mode: permission_bits(&found),
        })
    }

    /// Gives a file that was made again its metadata. The text of the file counts, so an error is
    /// only logged.
    pub fn restore(&self, root: &Path, file: &FilePath) {
        let Some(mode) = self.mode else {
            return;
        };
        let opened = open_without_following(&root.join(file.as_str()));
        let restored = opened.and_then(|opened| set_permission_bits(&opened, mode));
        if let Err(error) = restored {
            tracing::warn!(%file, %error, "the permissions of a restored file cannot be set");
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const TEXT: &str = "x = 1\n";

    fn project() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("a.py"), TEXT).unwrap();
        (dir, root)
    }

    #[test]
    fn restored_file_gets_its_permissions_back() {
        let (_dir, root) = project();
        let (path, file) = (root.join("a.py"), FilePath::new("a.py"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let deleted = DeletedFile::of(&root, &file, TEXT).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, TEXT).unwrap();
        deleted.restore(&root, &file);
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }

    #[test]
    fn file_that_an_undo_could_not_restore_is_not_deleted() {
        let (_dir, root) = project();
        let refused = |file: &str, text: &str| {
            DeletedFile::of(&root, &FilePath::new(file), text).unwrap_err()
        };
        fs::write(root.join("mark.py"), "\u{feff}x = 1\n").unwrap();
        assert!(refused("mark.py", TEXT).contains("byte order mark"));
        fs::write(root.join("latin.txt"), b"caf\xe9\n").unwrap();
        assert!(refused("latin.txt", "café\n").contains("encoding"));
        assert!(refused("a.py", "x = 2\n").contains("unsaved changes"));
        std::os::unix::fs::symlink("a.py", root.join("link.py")).unwrap();
        assert!(refused("link.py", TEXT).contains("is a link"));
        fs::create_dir(root.join("folder")).unwrap();
        assert!(refused("folder", "").contains("no plain file"));
        assert!(refused("missing.py", "").starts_with("missing.py: "));
        fs::set_permissions(root.join("a.py"), fs::Permissions::from_mode(0o444)).unwrap();
        assert!(refused("a.py", TEXT).contains("read-only"));
    }
}
