//! The interface to the editor that holds the user's texts: an LSP client, or the headless editor.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use starling_syntax::FilePath;
use starling_text::ChangeSet;

/// The editor's version number of an open document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocVersion(pub i32);

/// The current text of a file as the user sees it: the open document, or else the file on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentText {
    pub text: Arc<str>,
    /// `None` when the file is not open in the editor.
    pub version: Option<DocVersion>,
}

/// A change to one file. It applies only to exactly the text in `base`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    pub file: FilePath,
    pub base: CurrentText,
    pub changes: ChangeSet,
    /// A label to show to the user, for example `pkg/a.py::f`.
    pub label: String,
    pub effect: Effect,
}

/// The effect of an edit on the file itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The file exists before and after the edit.
    Change,
    /// The file does not exist and is created; the base is empty.
    Create,
    /// The file is deleted; its text after the changes is empty.
    Delete,
}

/// Why the text of a file is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditorError {
    #[error("{file}: no such file")]
    Missing { file: FilePath },
    #[error("{file}: {message}")]
    Unreadable { file: FilePath, message: String },
    /// The path policy forbids access to the file.
    #[error("{why}")]
    Forbidden { why: String },
    #[error("the editor has closed the connection")]
    Gone,
}

/// Why an edit was not applied. Except for [`ApplyError::Misplaced`], nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The text differs from the base. The caller must read the text again, rebase the edit and
    /// retry.
    #[error("{file}: the text changed before the edit was applied")]
    Stale { file: FilePath },
    #[error("{file}: the editor refused the edit: {message}")]
    Refused { file: FilePath, message: String },
    /// The text changed while the editor applied the edit, so the edit arrived at the wrong
    /// position. The edit was reverted, or the user was notified. Do not send the edit again,
    /// because the file would then contain the text twice.
    #[error("{file}: {message}")]
    Misplaced { file: FilePath, message: String },
    /// The path policy forbids access to the file.
    #[error("{why}")]
    Forbidden { why: String },
    /// The edit was withdrawn before it was sent.
    #[error("the run ended before the edit was sent to the editor")]
    Withdrawn,
    #[error("the editor has closed the connection")]
    Gone,
}

/// A future that completes when an edit is no longer wanted.
pub type Withdrawal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An editor that holds the user's texts.
#[async_trait]
pub trait Editor: Send + Sync {
    /// Returns the current text of a file as the user sees it.
    ///
    /// # Errors
    /// See [`EditorError`].
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError>;

    /// Returns the current text of a file like [`Editor::current`]. If the file is closed, it is
    /// decoded as an editor shows it that showed the similar text `shown` for it: nothing else tells
    /// its encoding and line ends.
    ///
    /// # Errors
    /// See [`EditorError`].
    async fn current_as_shown(
        &self,
        file: &FilePath,
        _shown: &Arc<str>,
    ) -> Result<CurrentText, EditorError> {
        self.current(file).await
    }

    /// Returns the current texts of all open files, including unsaved changes.
    ///
    /// # Errors
    /// [`EditorError::Gone`].
    async fn open_texts(&self) -> Result<Vec<(FilePath, Arc<str>)>, EditorError> {
        Ok(Vec::new())
    }

    /// Applies an edit completely or not at all, and returns the resulting text.
    ///
    /// # Errors
    /// See [`ApplyError`].
    async fn apply(&self, edit: FileEdit) -> Result<CurrentText, ApplyError>;

    /// Like [`Editor::apply`], but does not send the edit if it is withdrawn while it waits in a
    /// queue. An edit that was already sent is completed.
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
