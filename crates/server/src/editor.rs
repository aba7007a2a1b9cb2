//! Implements the `Editor` trait over LSP: reads texts from the open documents, and sends changes
//! as versioned `workspace/applyEdit` requests.

mod arrival;
mod late;
mod tracked;

use std::collections::HashMap;
use std::future::pending;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use ropey::Rope;
use tokio::sync::{Mutex, oneshot};
use tokio_util::sync::CancellationToken;
use tower_lsp::Client;
use tower_lsp::lsp_types::{
    AnnotatedTextEdit, ApplyWorkspaceEditParams, ChangeAnnotation, CreateFile, CreateFileOptions,
    DeleteFile, DocumentChangeOperation, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, Position, Range, ResourceOp, TextDocumentEdit,
    TextEdit, Url, WorkspaceEdit,
};

use self::late::GivenUpEdits;
use self::tracked::{TextPair, TrackedEdit};
use super::documents::{DocumentStore, ExpectReply, StoreClosed};
use super::outgoing::AFTER_ANSWER;
use super::session::{disk_text, overlay, path_of};
use super::settings::ClientSettings;
use starling_core::{
    ApplyError, CurrentText, DocVersion, Editor, EditorError, Effect, FileEdit, Withdrawal,
};
use starling_syntax::FilePath;
use starling_text::{ChangeSet, Encoding, position_of};
use starling_workspace::{self, PathPolicy, WriteRule, delete_file, may_show};

/// Why an edit is not sent to a document whose text may differ from the editor's.
const UNCERTAIN: &str = "a message from the editor could not be read, so the editor may have another \
    text of this file; open the file (if it is open, close it first), then accept once more";

/// Why an open file is not deleted.
const CANNOT_DELETE: &str = "it cannot delete files (workspaceEdit.resourceOperations: delete), and \
    the file is open; close it first";

/// Interval at which a file is read while it is watched for an edit that was given up.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The LSP client as the editor that holds the user's texts.
#[derive(Debug, Clone)]
pub struct ClientEditor {
    client: Client,
    documents: DocumentStore,
    settings: ClientSettings,
    /// The path policy of the open project.
    policy: Option<PathPolicy>,
    turns: FileEditLocks,
    /// Fired when the client shuts the server down. Nothing is written after that.
    closing: CancellationToken,
    given_up: GivenUpEdits,
}

/// A lock for each file, so that its edits are sent one after the other. Two edits of one closed
/// file could not be distinguished, because such a file has no version.
#[derive(Debug, Clone, Default)]
struct FileEditLocks(Arc<std::sync::Mutex<HashMap<PathBuf, Weak<Mutex<()>>>>>);

impl FileEditLocks {
    fn of(&self, path: &Path) -> Arc<Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(path).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        turns.insert(path.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

/// An edit that was sent to the client.
struct SentEdit<'a> {
    path: &'a Path,
    effect: Effect,
    /// The version of the open document for which the edit was made.
    version: Option<DocVersion>,
    edit: TrackedEdit,
}

/// Who carries out an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SupportedEffect {
    InEditor(Effect),
    /// The server deletes the file, because the client cannot.
    DeletedOnDisk,
}

/// The document that an edit changes, with its version when the edit was made.
struct EditTarget {
    uri: Url,
    /// `None` if the document is not open.
    version: Option<DocVersion>,
    arrived: oneshot::Receiver<CurrentText>,
}

/// The result of an edit.
enum EditOutcome {
    Known(Result<CurrentText, ApplyError>),
    /// The editor made the edit in another text. `texts` are that text before and after the edit,
    /// if they are known.
    Misplaced {
        edit: TrackedEdit,
        texts: Option<TextPair>,
    },
}

impl ClientEditor {
    pub fn new(
        client: Client,
        documents: DocumentStore,
        settings: &ClientSettings,
        closing: CancellationToken,
    ) -> Self {
        ClientEditor {
            client,
            documents,
            settings: settings.clone(),
            policy: settings.root.as_deref().map(PathPolicy::of),
            turns: FileEditLocks::default(),
            closing,
            given_up: GivenUpEdits::default(),
        }
    }

    /// Returns the document for an edit. Fails if its text is no longer the base of the edit.
    async fn target(
        &self,
        path: &Path,
        edit: &FileEdit,
        effect: Effect,
        tracked: &TrackedEdit,
    ) -> Result<EditTarget, ApplyError> {
        let file = &edit.file;
        let expected = self.documents.expect(
            path.to_owned(),
            Arc::clone(&tracked.base),
            Arc::clone(&tracked.after),
            tracked.texts.clone(),
        );
        match expected.await.map_err(|_| ApplyError::Gone)? {
            ExpectReply::Stale => Err(stale(file)),
            ExpectReply::Uncertain => Err(refused(file, UNCERTAIN.to_owned())),
            ExpectReply::Open {
                uri,
                version,
                arrived,
            } => Ok(EditTarget {
                uri,
                version: Some(version),
                arrived,
            }),
            ExpectReply::Closed { arrived } => {
                let text = disk_text(path.to_owned(), Some(&edit.base.text)).await;
                let as_it_was = match (&text, effect) {
                    (Ok(text), Effect::Change | Effect::Delete) => **text == *edit.base.text,
                    (Err(error), Effect::Create) => error.kind() == ErrorKind::NotFound,
                    (Ok(_), Effect::Create) | (Err(_), Effect::Change | Effect::Delete) => false,
                };
                if !as_it_was {
                    return Err(stale(file));
                }
                let uri = Url::from_file_path(path);
                let uri = uri.map_err(|()| {
                    refused(file, "its path cannot be written as a URI".to_owned())
                })?;
                Ok(EditTarget {
                    uri,
                    version: None,
                    arrived,
                })
            }
        }
    }

    /// Returns an edit's effect as the client supports it. If the client cannot delete files, a
    /// closed file is deleted on disk.
    fn supported_effect(&self, edit: &FileEdit) -> Result<SupportedEffect, ApplyError> {
        let is_open = edit.base.version.is_some();
        match edit.effect {
            Effect::Create if !self.settings.creates => {
                let message = "it cannot create files (workspaceEdit.resourceOperations: create)";
                Err(refused(&edit.file, message.to_owned()))
            }
            Effect::Delete if self.settings.deletes => {
                Ok(SupportedEffect::InEditor(Effect::Delete))
            }
            Effect::Delete if is_open => Err(refused(&edit.file, CANNOT_DELETE.to_owned())),
            Effect::Delete => Ok(SupportedEffect::DeletedOnDisk),
            Effect::Create | Effect::Change => Ok(SupportedEffect::InEditor(edit.effect)),
        }
    }

    /// Deletes a file that is not open.
    fn delete_on_disk(
        &self,
        file: &FilePath,
        version: Option<DocVersion>,
        after: Arc<str>,
    ) -> Result<CurrentText, ApplyError> {
        let root = self.settings.root.as_deref();
        let Some(root) = root.filter(|_| version.is_none()) else {
            return Err(refused(file, CANNOT_DELETE.to_owned()));
        };
        let deleted = delete_file(root, file);
        deleted.map_err(|error| refused(file, error.to_string()))?;
        Ok(CurrentText {
            text: after,
            version: None,
        })
    }

    /// Returns the path under which the client has a file open; it may be a link to the file.
    async fn path(&self, file: &FilePath) -> Result<Option<PathBuf>, StoreClosed> {
        let root = self.settings.root.as_deref();
        match root.and_then(|root| path_of(root, file)) {
            Some(path) => Ok(Some(self.documents.name_of(path).await?)),
            None => Ok(None),
        }
    }

    /// Returns the path of a file that an edit may change.
    async fn writable_path(&self, file: &FilePath) -> Result<PathBuf, ApplyError> {
        if !self.settings.versioned_edits {
            let message = "it does not support versioned edits (workspaceEdit.documentChanges)";
            return Err(refused(file, message.to_owned()));
        }
        let path = self.path(file).await.map_err(|_| ApplyError::Gone)?;
        let Some(path) = path else {
            return Err(refused(file, "it lies outside the workspace".to_owned()));
        };
        let rule = self.policy.as_ref().map(|policy| policy.may_write(file));
        if let Some(WriteRule::Never { why }) = rule {
            return Err(ApplyError::Forbidden { why });
        }
        Ok(path)
    }

    /// Returns whether the path policy forbids agents to read a file. No actions are offered for
    /// such a file.
    pub fn is_withheld(&self, file: &FilePath) -> bool {
        matches!(self.read_refusal(file), Some(EditorError::Forbidden { .. }))
    }

    /// Returns why the path policy forbids reading a file.
    fn read_refusal(&self, file: &FilePath) -> Option<EditorError> {
        let error = self.policy.as_ref()?.may_read(file).err()?;
        Some(match error {
            starling_workspace::ReadError::Missing(file) => EditorError::Missing { file },
            error => EditorError::Forbidden {
                why: error.to_string(),
            },
        })
    }

    /// Returns the text of a file; if it is closed, as the editor shows it that showed `shown`.
    async fn read(&self, path: &Path, shown: Option<&Arc<str>>) -> Result<CurrentText, TextError> {
        let open = self.documents.read(path.to_owned()).await;
        if let Some(current) = open.map_err(|_| TextError::StoreClosed)? {
            return Ok(current);
        }
        let text = disk_text(path.to_owned(), shown)
            .await
            .map_err(TextError::Disk)?;
        Ok(CurrentText {
            text: text.into(),
            version: None,
        })
    }

    /// Returns the text of a file, unless the path policy or its content forbids to read it.
    async fn permitted_text(
        &self,
        file: &FilePath,
        shown: Option<&Arc<str>>,
    ) -> Result<CurrentText, EditorError> {
        let file = file.clone();
        let path = self.path(&file).await.map_err(|_| EditorError::Gone)?;
        let Some(path) = path else {
            return Err(EditorError::Missing { file });
        };
        if let Some(error) = self.read_refusal(&file) {
            return Err(error);
        }
        match self.read(&path, shown).await {
            Ok(current) => match may_show(&file, &current.text) {
                Ok(()) => Ok(current),
                Err(error) => Err(EditorError::Forbidden {
                    why: error.to_string(),
                }),
            },
            Err(TextError::StoreClosed) => Err(EditorError::Gone),
            Err(TextError::Disk(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(EditorError::Missing { file })
            }
            Err(TextError::Disk(error)) => Err(EditorError::Unreadable {
                file,
                message: error.to_string(),
            }),
        }
    }
}

#[derive(Debug)]
/// Why the current text of a file cannot be read.
enum TextError {
    StoreClosed,
    Disk(std::io::Error),
}

#[async_trait]
impl Editor for ClientEditor {
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError> {
        self.permitted_text(file, None).await
    }

    async fn current_as_shown(
        &self,
        file: &FilePath,
        shown: &Arc<str>,
    ) -> Result<CurrentText, EditorError> {
        self.permitted_text(file, Some(shown)).await
    }

    async fn open_texts(&self) -> Result<Vec<(FilePath, Arc<str>)>, EditorError> {
        let buffers = self
            .documents
            .read_all()
            .await
            .map_err(|_| EditorError::Gone)?;
        let root = self.settings.root.as_deref();
        Ok(root.map_or_else(Vec::new, |root| overlay(root, buffers)))
    }

    async fn apply(&self, edit: FileEdit) -> Result<CurrentText, ApplyError> {
        self.apply_unless(edit, Box::pin(pending())).await
    }

    async fn apply_unless(
        &self,
        edit: FileEdit,
        withdrawn: Withdrawal,
    ) -> Result<CurrentText, ApplyError> {
        let file = &edit.file;
        let after = edit.changes.apply(&edit.base.text);
        let after: Arc<str> = match after {
            Ok(after) => after.into(),
            Err(mismatch) => return Err(refused(file, mismatch.to_string())),
        };
        let path = self.writable_path(file).await?;
        let supported = self.supported_effect(&edit)?;
        let effect = match supported {
            SupportedEffect::InEditor(effect) => effect,
            SupportedEffect::DeletedOnDisk => Effect::Delete,
        };
        if !self.settings.has_plugin() {
            tokio::time::sleep(AFTER_ANSWER).await;
        }
        let turn = self.turns.of(&path);
        let turn = tokio::select! {
            biased;
            () = self.closing.cancelled() => return Err(ApplyError::Gone),
            () = withdrawn => return Err(ApplyError::Withdrawn),
            turn = turn.lock() => turn,
        };
        let tracked = TrackedEdit::new(
            file,
            &edit.base.text,
            &after,
            &edit.changes,
            self.settings.encoding,
        );
        let target = self.target(&path, &edit, effect, &tracked).await?;
        self.given_up.supersede(&path, &after);
        let EditTarget {
            uri,
            version,
            arrived,
        } = target;
        if self.closing.is_cancelled() {
            return Err(ApplyError::Gone);
        }
        if supported == SupportedEffect::DeletedOnDisk {
            return self.delete_on_disk(file, version, after);
        }
        let request = workspace_edit(&edit, effect, uri, version, &self.settings);
        let sent = SentEdit {
            path: &path,
            effect,
            version,
            edit: tracked,
        };
        let outcome = self.send(&sent, request, arrived).await;
        let is_made = !matches!(outcome, EditOutcome::Known(Err(_)));
        self.given_up.resume(&path, &sent.edit, is_made);
        drop(turn);
        match outcome {
            EditOutcome::Known(known) => known,
            EditOutcome::Misplaced { edit, texts } => {
                Err(self.take_back_misplaced(&path, edit, texts).await)
            }
        }
    }
}

fn stale(file: &FilePath) -> ApplyError {
    ApplyError::Stale { file: file.clone() }
}

fn refused(file: &FilePath, message: String) -> ApplyError {
    ApplyError::Refused {
        file: file.clone(),
        message,
    }
}

fn workspace_edit(
    edit: &FileEdit,
    effect: Effect,
    uri: Url,
    version: Option<DocVersion>,
    settings: &ClientSettings,
) -> ApplyWorkspaceEditParams {
    let edits = match effect {
        Effect::Change | Effect::Create => {
            text_edits(&edit.base.text, &edit.changes, settings.encoding)
        }
        // To delete a file, the request contains the document version but no edit that empties the
        // text: the editor would keep the empty text as an unsaved buffer.
        Effect::Delete => Vec::new(),
    };
    let annotate = |text_edit| match settings.annotations {
        true => OneOf::Right(AnnotatedTextEdit {
            text_edit,
            annotation_id: edit.label.clone(),
        }),
        false => OneOf::Left(text_edit),
    };
    let annotation = ChangeAnnotation {
        label: edit.label.clone(),
        needs_confirmation: Some(false),
        description: None,
    };
    let text_edit = TextDocumentEdit {
        text_document: OptionalVersionedTextDocumentIdentifier {
            uri: uri.clone(),
            version: version.map(|version| version.0),
        },
        edits: edits.into_iter().map(annotate).collect(),
    };
    ApplyWorkspaceEditParams {
        label: Some(format!("Starling: {}", edit.label)),
        edit: WorkspaceEdit {
            changes: None,
            document_changes: Some(with_effect(effect, uri, text_edit, settings)),
            change_annotations: settings
                .annotations
                .then(|| HashMap::from([(edit.label.clone(), annotation)])),
        },
    }
}

fn with_effect(
    effect: Effect,
    uri: Url,
    text_edit: TextDocumentEdit,
    settings: &ClientSettings,
) -> DocumentChanges {
    let operations = match effect {
        Effect::Change => return DocumentChanges::Edits(vec![text_edit]),
        Effect::Create => {
            let create = ResourceOp::Create(CreateFile {
                uri,
                options: Some(CreateFileOptions {
                    overwrite: Some(false),
                    ignore_if_exists: Some(!settings.refuses_existing),
                }),
                annotation_id: None,
            });
            vec![
                DocumentChangeOperation::Op(create),
                DocumentChangeOperation::Edit(text_edit),
            ]
        }
        Effect::Delete => {
            let delete = ResourceOp::Delete(DeleteFile { uri, options: None });
            vec![
                DocumentChangeOperation::Edit(text_edit),
                DocumentChangeOperation::Op(delete),
            ]
        }
    };
    DocumentChanges::Operations(operations)
}

/// Converts a change set to LSP edits. All ranges refer to the text before the change.
fn text_edits(base: &str, changes: &ChangeSet, encoding: Encoding) -> Vec<TextEdit> {
    let base = Rope::from_str(base);
    let position = |offset| {
        let position = position_of(&base, offset, encoding);
        Position::new(position.line, position.column)
    };
    let edit = |edit: &starling_text::Edit| TextEdit {
        range: Range::new(position(edit.range.start), position(edit.range.end)),
        new_text: edit.insert.clone(),
    };
    changes.edits().iter().map(edit).collect()
}
