//! Opens the files of a proposal in the user's editor.

use std::path::PathBuf;

use anyhow::Context;

use super::compose;
use starling_sandbox::Scratch;
use starling_server::protocol::{EditedDocument, FileState};

/// The files of a proposal, as they would be, beside the project.
pub struct Editing {
    _folder: Scratch,
    files: Vec<(FileState, PathBuf)>,
}

impl Editing {
    /// Writes the files where an editor can open them.
    ///
    /// # Errors
    /// Nothing waits, it conflicts with the user's text, or the files cannot be written.
    pub fn begin(files: Vec<FileState>) -> anyhow::Result<Editing> {
        anyhow::ensure!(!files.is_empty(), "nothing waits that could be edited");
        let folder = Scratch::temporary()?;
        let mut written = Vec::new();
        for (number, file) in files.into_iter().enumerate() {
            let path = file.uri.to_file_path().unwrap_or_default();
            let name = path.file_name().context("a file without a name")?;
            let Some(after) = &file.after else {
                anyhow::bail!(
                    "{} conflicts with what you typed since: reject it, or change your text",
                    path.display()
                );
            };
            // The name tells the editor which language it is.
            let directory = folder.path().join(format!("{}", number + 1));
            std::fs::create_dir(&directory)?;
            let path = directory.join(name);
            std::fs::write(&path, after)
                .with_context(|| format!("{} cannot be written", path.display()))?;
            written.push((file, path));
        }
        Ok(Editing {
            _folder: folder,
            files: written,
        })
    }

    /// Waits until the user has closed the editor.
    ///
    /// # Errors
    /// The editor cannot be started or fails.
    pub async fn open(&self, editor: String) -> anyhow::Result<()> {
        let paths: Vec<PathBuf> = self.files.iter().map(|(_, path)| path.clone()).collect();
        tokio::task::spawn_blocking(move || compose::open(&editor, &paths)).await?
    }

    /// The files that the user changed.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn edited(&self) -> anyhow::Result<Vec<EditedDocument>> {
        let mut edited = Vec::new();
        for (file, path) in &self.files {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            if file.after.as_ref() != Some(&text) {
                edited.push(EditedDocument {
                    uri: file.uri.clone(),
                    before: file.before.clone(),
                    text,
                });
            }
        }
        Ok(edited)
    }
}
