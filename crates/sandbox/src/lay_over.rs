//! Writes the texts of an overlay (unsaved and proposed texts) into a tree of files.

use std::fs;
use std::io;
use std::path::Path;

use starling_workspace::{Overlay, encode};

/// Writes the files of an overlay into a tree, and removes the files that the overlay deletes.
pub(crate) fn lay_over(tree: &Path, overlay: &Overlay) -> io::Result<()> {
    for (file, text) in overlay {
        let path = tree.join(file.as_str());
        match text {
            Some(text) => {
                fs::create_dir_all(path.parent().unwrap_or(tree))?;
                // A text that the file's declared encoding cannot represent is written as UTF-8. An
                // editor would also save it as UTF-8, or refuse to save it.
                let bytes = encode(&path, text).unwrap_or(text.as_bytes().into());
                fs::write(&path, bytes)?;
            }
            None => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            },
        }
    }
    Ok(())
}
