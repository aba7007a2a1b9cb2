//! An editor that reads and writes the files of a project on disk. It is used for files that no
//! other editor has open.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use starling_core::{ApplyError, CurrentText, Editor, EditorError, Effect, FileEdit};
use starling_syntax::FilePath;
use starling_workspace::{
    MAX_FILE_BYTES, PathPolicy, ReadError, WriteRule, read_as_shown, read_source, write_as_shown,
};

/// Maximum size in bytes of a file that can be undone. It is larger than the limit for agents
/// because an edit may have made a file longer.
const MAX_BYTES: u64 = 8 * MAX_FILE_BYTES;

/// Reads and writes the files of one project.
#[derive(Debug, Clone)]
pub struct DiskEditor {
    policy: PathPolicy,
}

impl DiskEditor {
    pub fn new(root: &Path) -> Self {
        DiskEditor {
            policy: PathPolicy::of(root),
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// See [`EditorError`].
    fn read(&self, file: &FilePath) -> Result<String, EditorError> {
        self.read_by(file, |path| read_source(path, MAX_BYTES))
    }

    /// Reads the text of a file as it is shown by an editor that showed the similar text `shown`.
    ///
    /// # Errors
    /// See [`EditorError`].
    pub fn read_as_shown(&self, file: &FilePath, shown: &str) -> Result<String, EditorError> {
        self.read_by(file, |path| read_as_shown(path, MAX_BYTES, shown))
    }

    /// Like [`DiskEditor::read_as_shown`], but returns the text as an editor does.
    ///
    /// # Errors
    /// See [`EditorError`].
    pub fn now_as_shown(&self, file: &FilePath, shown: &str) -> Result<CurrentText, EditorError> {
        let text = self.read_as_shown(file, shown)?.into();
        Ok(CurrentText {
            text,
            version: None,
        })
    }

    fn read_by(
        &self,
        file: &FilePath,
        read: impl FnOnce(&Path) -> io::Result<String>,
    ) -> Result<String, EditorError> {
        let missing = || EditorError::Missing { file: file.clone() };
        let path = self.policy.may_read(file).map_err(|error| match error {
            ReadError::Missing(_) => missing(),
            error => EditorError::Forbidden {
                why: error.to_string(),
            },
        })?;
        read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => missing(),
            _ => EditorError::Unreadable {
                file: file.clone(),
                message: error.to_string(),
            },
        })
    }

    fn refused(file: &FilePath, message: String) -> ApplyError {
        ApplyError::Refused {
            file: file.clone(),
            message,
        }
    }

    /// Deletes a file. Links are not followed.
    fn remove(&self, file: &FilePath) -> Result<(), ApplyError> {
        let real = self.policy.may_read(file);
        let real = real.map_err(|error| ApplyError::Forbidden {
            why: error.to_string(),
        })?;
        if real != self.policy.root().join(file.as_str()) {
            let message =
                "its path is or contains a symbolic link now; remove the file by hand".to_owned();
            return Err(Self::refused(file, message));
        }
        fs::remove_file(real).map_err(|error| Self::refused(file, error.to_string()))
    }
}

#[async_trait]
impl Editor for DiskEditor {
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError> {
        Ok(CurrentText {
            text: self.read(file)?.into(),
            version: None,
        })
    }

    async fn current_as_shown(
        &self,
        file: &FilePath,
        shown: &Arc<str>,
    ) -> Result<CurrentText, EditorError> {
        self.now_as_shown(file, shown)
    }

    async fn apply(&self, edit: FileEdit) -> Result<CurrentText, ApplyError> {
        let file = &edit.file;
        if let WriteRule::Never { why } = self.policy.may_write(file) {
            return Err(ApplyError::Forbidden { why });
        }
        let base = &edit.base.text;
        let is_as_it_was = match (self.read_as_shown(file, base), edit.effect) {
            (Ok(text), Effect::Change | Effect::Delete) => *text == **base,
            (Err(EditorError::Missing { .. }), Effect::Create) => true,
            (Ok(_), Effect::Create) | (Err(_), _) => false,
        };
        if !is_as_it_was {
            return Err(ApplyError::Stale { file: file.clone() });
        }
        let after = edit.changes.apply(base);
        let after = after.map_err(|error| Self::refused(file, error.to_string()))?;
        match edit.effect {
            Effect::Delete => self.remove(file)?,
            Effect::Change | Effect::Create => {
                write_as_shown(self.policy.root(), file, base, &after)
                    .map_err(|error| Self::refused(file, error.to_string()))?
            }
        }
        Ok(CurrentText {
            text: after.into(),
            version: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_text::ChangeSet;

    #[tokio::test]
    async fn disk_editor_keeps_the_encoding_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.py");
        std::fs::write(&path, b"# coding: latin-1\n# caf\xe9\nx = 1\n").unwrap();
        let editor = DiskEditor::new(&dir.path().canonicalize().unwrap());
        let file = FilePath::new("a.py");
        let base = editor.current(&file).await.unwrap();
        assert_eq!(&*base.text, "# coding: latin-1\n# café\nx = 1\n");
        let after: Arc<str> = base.text.replace("x = 1", "x = 2").into();
        let edit = FileEdit {
            file,
            changes: ChangeSet::between(&base.text, &after),
            base,
            label: "undo #1".to_owned(),
            effect: Effect::Change,
        };
        editor.apply(edit).await.unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes, b"# coding: latin-1\n# caf\xe9\nx = 2\n");
    }
}
