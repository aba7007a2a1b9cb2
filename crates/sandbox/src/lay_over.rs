//! Writes the texts of an overlay into a tree of files.

use std::fs;
use std::io;
use std::path::Path;

use starling_workspace::{Overlay, encode};

/// Writes and removes the files of an overlay in a tree.
pub(crate) fn lay_over(tree: &Path, overlay: &Overlay) -> io::Result<()> {
    for (file, text) in overlay {
        let path = tree.join(file.as_str());
        match text {
            Some(text) => {
                fs::create_dir_all(path.parent().unwrap_or(tree))?;
                // Text that the file's encoding cannot represent is written as UTF-8. An editor
                // saves it as UTF-8, too, or not at all.
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
