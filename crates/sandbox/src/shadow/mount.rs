//! Creates a shadow (a private copy of the project) as an overlay file system over the root, in the
//! command's own namespaces.

use std::fs;
use std::io;
use std::path::Path;

use super::process::{self, Captured};
use super::scratch::Scratch;
use super::{ShadowCommand, ShadowError, Shadows, remove};
use crate::sandbox::{Confinement, Tree};
use starling_workspace::FileContents;

impl Shadows {
    pub(super) async fn mounted(
        &self,
        root: &Path,
        overlay: &FileContents,
        command: &ShadowCommand,
    ) -> Result<Captured, ShadowError> {
        let scratch = self.scratch_outside(root)?;
        let tree = staged(&scratch, root, overlay).map_err(|source| self.io(source))?;
        let program = self.program(&scratch, Confinement::Namespaces, tree, command);
        let done = process::run(program).await;
        remove(scratch).await;
        done.map_err(|error| self.not_run(error, root))
    }
}

/// Creates the directories that an overlay file system needs, and a file for each file of the
/// overlay.
fn staged(scratch: &Scratch, root: &Path, overlay: &FileContents) -> io::Result<Tree> {
    let path = scratch.path();
    for directory in ["lower", "upper", "work", "stage"] {
        fs::create_dir(path.join(directory))?;
    }
    let mut staged_files = Vec::new();
    for (at, (file, contents)) in overlay.iter().enumerate() {
        let staged = match contents {
            Some(contents) => {
                let to = path.join("stage").join(at.to_string());
                fs::write(&to, contents)?;
                Some(to)
            }
            None => None,
        };
        staged_files.push((file.clone(), staged));
    }
    Ok(Tree::Overlay {
        root: root.to_owned(),
        staged: staged_files,
    })
}
