//! Opens the files of a proposal in the user's editor.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;

use super::compose;
use starling_sandbox::Scratch;
use starling_server::protocol::{EditedDocument, ProposedFile};
use starling_syntax::{FilePath, carry};
use starling_text::ChangeSet;

/// The proposed files of a proposal, in a temporary directory.
pub struct Editing {
    _folder: Scratch,
    files: Vec<OpenedFile>,
    /// Earlier edits of the user that conflict with the current text.
    beside: Vec<PathBuf>,
}

/// A file that the user edits.
struct OpenedFile {
    path: PathBuf,
    file: ProposedFile,
    /// The text on which the user's version is based.
    before: String,
}

impl Editing {
    /// Writes the files to a temporary directory for an editor. A file in `mine` has the user's
    /// earlier edits; any other file has the proposed text.
    ///
    /// # Errors
    /// There is no proposed file, a file conflicts with the user's text, or the files cannot be
    /// written.
    pub fn begin(files: Vec<ProposedFile>, mine: &[EditedDocument]) -> anyhow::Result<Editing> {
        anyhow::ensure!(!files.is_empty(), "there is no proposed file to edit");
        let folder = Scratch::temporary()?;
        let mut opened = Vec::new();
        let mut beside = Vec::new();
        for (number, file) in files.into_iter().enumerate() {
            let path = file.uri.to_file_path().unwrap_or_default();
            let name = path.file_name().context("the proposed file has no name")?;
            let Some(after) = &file.after else {
                anyhow::bail!(
                    "{} conflicts with your later edits: reject the proposal, or change your text",
                    path.display()
                );
            };
            // The editor detects the language from the name.
            let directory = folder.path().join(format!("{}", number + 1));
            std::fs::create_dir(&directory)?;
            let written = mine.iter().find(|one| one.uri == file.uri);
            let carried = written.map(|one| over(one, &file.before));
            if let (Some(one), Some(None)) = (written, &carried) {
                let mut other = OsString::from("before-");
                other.push(name);
                beside.push(write(directory.join(other), &one.text)?);
            }
            let text = carried.flatten().unwrap_or_else(|| after.clone());
            opened.push(OpenedFile {
                path: write(directory.join(name), &text)?,
                before: file.before.clone(),
                file,
            });
        }
        Ok(Editing {
            _folder: folder,
            files: opened,
            beside,
        })
    }

    /// Opens the editor and waits until it is closed.
    ///
    /// # Errors
    /// The editor cannot be started or fails.
    pub async fn open(&self, editor: String) -> anyhow::Result<()> {
        let own = self.files.iter().map(|one| &one.path);
        let paths: Vec<PathBuf> = own.chain(&self.beside).cloned().collect();
        tokio::task::spawn_blocking(move || compose::open(&editor, &paths)).await?
    }

    /// Returns the files that the user changed.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn edited(&self) -> anyhow::Result<Vec<EditedDocument>> {
        let mut edited = Vec::new();
        for OpenedFile { path, file, before } in &self.files {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            if file.after.as_ref() != Some(&text) {
                edited.push(EditedDocument {
                    uri: file.uri.clone(),
                    before: before.clone(),
                    text,
                });
            }
        }
        Ok(edited)
    }
}

fn write(path: PathBuf, text: &str) -> anyhow::Result<PathBuf> {
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// Applies the user's changes to the current text. Returns `None` if both change the same lines.
fn over(mine: &EditedDocument, now: &str) -> Option<String> {
    let path = mine.uri.to_file_path().unwrap_or_default();
    let file = FilePath::new(path.to_string_lossy());
    let changes = ChangeSet::between(&mine.before, &mine.text);
    carry(&file, &mine.before, &changes, now)
        .ok()?
        .apply(now)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(before: &str, after: &str) -> ProposedFile {
        ProposedFile {
            uri: "file:///w/a.py".parse().unwrap(),
            version: None,
            creates: false,
            deletes: false,
            before: before.to_owned(),
            after: Some(after.to_owned()),
            conflict: None,
            proposed: None,
            ranges: Vec::new(),
        }
    }

    #[test]
    fn earlier_edits_of_the_user_are_kept_when_the_editor_reopens() {
        let now = || vec![state("x = 1\n\n\ny = 1\n", "x = 2\n\n\ny = 1\n")];
        let editing = Editing::begin(now(), &[]).unwrap();
        assert!(editing.edited().unwrap().is_empty());
        std::fs::write(&editing.files[0].path, "x = (3\n\n\ny = 1\n").unwrap();
        let mine = editing.edited().unwrap();
        let again = Editing::begin(now(), &mine).unwrap();
        assert_eq!(again.edited().unwrap(), mine);
        // The project's text changed, first elsewhere and then in the same place.
        let typed = vec![state("x = 1\n\n\ny = 9\n", "x = 2\n\n\ny = 9\n")];
        let again = Editing::begin(typed, &mine).unwrap().edited().unwrap();
        assert_eq!(again[0].text, "x = (3\n\n\ny = 9\n");
        assert_eq!(again[0].before, "x = 1\n\n\ny = 9\n");
        let typed = vec![state("x = 7\n\n\ny = 1\n", "x = 8\n\n\ny = 1\n")];
        let again = Editing::begin(typed, &mine).unwrap();
        assert!(again.edited().unwrap().is_empty());
        let beside = std::fs::read_to_string(&again.beside[0]).unwrap();
        assert_eq!(beside, mine[0].text);
    }
}
