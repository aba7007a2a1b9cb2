//! Writes the files of an overlay (unsaved and proposed texts) into a tree of files.

use std::fs;
use std::io;
use std::path::Path;

use starling_workspace::FileContents;

/// Writes the files of an overlay into a tree, and removes the files that the overlay deletes.
pub(crate) fn lay_over(tree: &Path, overlay: &FileContents) -> io::Result<()> {
    for (file, contents) in overlay {
        let path = tree.join(file.as_str());
        match contents {
            Some(contents) => {
                fs::create_dir_all(path.parent().unwrap_or(tree))?;
                fs::write(&path, contents)?;
            }
            None => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            },
        }
    }
    Ok(())
}
