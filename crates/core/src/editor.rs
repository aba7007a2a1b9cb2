//! The port to whoever holds the user's text: an editor over LSP, or a headless stand-in.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use starling_syntax::FilePath;
use starling_text::ChangeSet;

/// The editor's version number of an open document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocVersion(pub i32);

/// The text of a file as the user has it now: the buffer when it is open, else the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentText {
    pub text: Arc<str>,
    /// `None` when the file is not open in the editor.
    pub version: Option<DocVersion>,
}

/// One change to one file, against exactly the text that `base` describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    pub file: FilePath,
    pub base: CurrentText,
    pub changes: ChangeSet,
    /// Shown to the user, for example `pkg/a.py::f`.
    pub label: String,
    pub effect: Effect,
}

/// What becomes of the file itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is there, and stays.
    Change,
    /// It is not there; the base is empty.
    Create,
    /// It goes; the changes leave no text.
    Delete,
}

/// Why the text of a file cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditorError {
    #[error("{file}: no such file")]
    Missing { file: FilePath },
    #[error("{file}: {message}")]
    Unreadable { file: FilePath, message: String },
    /// The path policy refuses it.
    #[error("{why}")]
    Forbidden { why: String },
    #[error("the editor is gone")]
    Gone,
}

/// Why an edit was not applied. Nothing was changed, but for [`ApplyError::Misplaced`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The text is no longer that of the base: read it again, rebase, try again.
    #[error("{file}: the text changed meanwhile")]
    Stale { file: FilePath },
    #[error("{file}: the editor refused the edit: {message}")]
    Refused { file: FilePath, message: String },
    /// The text changed while the editor made the edit, so the edit came into the wrong place. It was taken
    /// back, or the user was told: sent again, it would be there twice.
    #[error("{file}: {message}")]
    Misplaced { file: FilePath, message: String },
    /// The path policy refuses it.
    #[error("{why}")]
    Forbidden { why: String },
    /// It was withdrawn before it was sent.
    #[error("the run ended before it was sent to the editor")]
    Withdrawn,
    #[error("the editor is gone")]
    Gone,
}

/// Done when an edit is not wanted any more.
pub type Withdrawal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The holder of the user's text.
#[async_trait]
pub trait Editor: Send + Sync {
    /// The text as the user has it now.
    ///
    /// # Errors
    /// See [`EditorError`].
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError>;

    /// The texts of all open files, as the user has them now: unsaved ones too.
    ///
    /// # Errors
    /// [`EditorError::Gone`].
    async fn open_texts(&self) -> Result<Vec<(FilePath, Arc<str>)>, EditorError> {
        Ok(Vec::new())
    }

    /// Applies one edit whole or not at all, and returns the text after it.
    ///
    /// # Errors
    /// See [`ApplyError`].
    async fn apply(&self, edit: FileEdit) -> Result<CurrentText, ApplyError>;

    /// The same, unless the edit is withdrawn while it waits for its turn: what is on its way is carried to
    /// its end.
    ///
    /// # Errors
    /// See [`ApplyError`].
    async fn apply_unless(
        &self,
        edit: FileEdit,
        _withdrawn: Withdrawal,
    ) -> Result<CurrentText, ApplyError> {
        self.apply(edit).await
    }
}
