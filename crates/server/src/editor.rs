//! The editor port over LSP: texts from the open documents, changes by versioned
//! `workspace/applyEdit`. The reply is only a hint: an edit is applied when its text is there.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ropey::Rope;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tower_lsp::Client;
use tower_lsp::lsp_types::request::ApplyWorkspaceEdit;
use tower_lsp::lsp_types::{
    AnnotatedTextEdit, ApplyWorkspaceEditParams, ChangeAnnotation, CreateFile, CreateFileOptions,
    DeleteFile, DocumentChangeOperation, DocumentChanges, MessageType, OneOf,
    OptionalVersionedTextDocumentIdentifier, Position, Range, ResourceOp, TextDocumentEdit,
    TextEdit, Url, WorkspaceEdit,
};

use super::documents::{Desk, Expected, Gone};
use super::outgoing::{AFTER_ANSWER, NoAnswer, ask};
use super::paths::{disk_text, path_of};
use super::runs::overlay;
use super::settings::Settings;
use starling_core::{ApplyError, Current, DocVersion, Editor, EditorError, Effect, FileEdit};
use starling_swarm::sending::{self, Purpose};
use starling_syntax::{FilePath, carry};
use starling_text::{ChangeSet, Encoding, position_of};
use starling_workspace::{self, PathPolicy, WriteRule};

/// How long the client has to answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long it has to bring the text that it said is there: a user may have to press a key first.
const ARRIVAL: Duration = Duration::from_secs(60);
/// Why nothing is written into a document that may differ from what the editor shows.
const IN_DOUBT: &str = "a message of the editor could not be read, so this file may have changed in \
    it; close the file and open it again, then accept once more";

/// How long an edit that was given up is watched for, and how often a closed file is looked at.
const LATE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(500);

/// The client as the holder of the user's text.
#[derive(Debug, Clone)]
pub struct ClientEditor {
    client: Client,
    desk: Desk,
    settings: Settings,
    /// Of the open folder, where there is one.
    policy: Option<PathPolicy>,
    /// One edit at a time: two edits of one closed file carry no version that tells them apart.
    turn: Arc<Mutex<()>>,
}

/// One edit on its way.
struct Sent<'a> {
    file: &'a FilePath,
    path: &'a Path,
    base: &'a str,
    after: Arc<str>,
    effect: Effect,
}

impl ClientEditor {
    pub fn new(client: Client, desk: Desk, settings: &Settings) -> Self {
        ClientEditor {
            client,
            desk,
            settings: settings.clone(),
            policy: settings.root.as_deref().map(PathPolicy::of),
            turn: Arc::default(),
        }
    }

    /// What the client can do of an edit: a file that it cannot delete is left empty.
    fn possible(&self, edit: &FileEdit) -> Result<Effect, ApplyError> {
        match edit.effect {
            Effect::Create if !self.settings.creates => {
                let message = "it makes no files (workspaceEdit.resourceOperations: create)";
                Err(refused(&edit.file, message.to_owned()))
            }
            Effect::Delete if !self.settings.deletes => Ok(Effect::Change),
            possible @ (Effect::Create | Effect::Change | Effect::Delete) => Ok(possible),
        }
    }

    /// Where a file lies: under the name by which the client has it open, be it a link to it or where a
    /// link leads.
    async fn path(&self, file: &FilePath) -> Result<Option<PathBuf>, Gone> {
        let root = self.settings.root.as_deref();
        match root.and_then(|root| path_of(root, file)) {
            Some(path) => Ok(Some(self.desk.name_of(path).await?)),
            None => Ok(None),
        }
    }

    /// Why the path policy keeps a model from reading a file.
    fn not_readable(&self, file: &FilePath) -> Option<EditorError> {
        let error = self.policy.as_ref()?.may_read(file).err()?;
        Some(match error {
            starling_workspace::ReadError::Missing(file) => EditorError::Missing { file },
            error => EditorError::Forbidden {
                why: error.to_string(),
            },
        })
    }

    async fn read(&self, path: &Path) -> Result<Current, ReadError> {
        let open = self.desk.read(path.to_owned()).await;
        if let Some(current) = open.map_err(|_| ReadError::Gone)? {
            return Ok(current);
        }
        let text = disk_text(path.to_owned()).await.map_err(ReadError::Disk)?;
        Ok(Current {
            text: text.into(),
            version: None,
        })
    }

    /// The text now, when it is what the edit makes; otherwise why it is not.
    async fn settle(&self, sent: &Sent<'_>, message: String) -> Result<Current, ApplyError> {
        if sent.effect == Effect::Delete {
            let is_there = tokio::fs::try_exists(sent.path).await;
            return match is_there {
                Ok(false) => Ok(Current {
                    text: Arc::clone(&sent.after),
                    version: None,
                }),
                Ok(true) | Err(_) => Err(refused(sent.file, message)),
            };
        }
        match self.read(sent.path).await {
            Ok(current) if current.text == sent.after => Ok(current),
            Ok(current) if *current.text != *sent.base => Err(stale(sent.file)),
            Ok(_) | Err(ReadError::Disk(_)) => Err(refused(sent.file, message)),
            Err(ReadError::Gone) => Err(ApplyError::Gone),
        }
    }

    async fn send(
        &self,
        sent: &Sent<'_>,
        request: ApplyWorkspaceEditParams,
        mut arrived: oneshot::Receiver<Current>,
    ) -> Result<Current, ApplyError> {
        let reply = ask::<ApplyWorkspaceEdit>(&self.client, request, DEADLINE);
        let reply = tokio::select! {
            biased;
            Ok(current) = &mut arrived => return Ok(current),
            reply = reply => reply,
        };
        let message = match reply {
            Ok(reply) if reply.applied => {
                // A closed file is written by the client itself; an open document brings its text.
                if let Ok(current) = self.settle(sent, String::new()).await {
                    return Ok(current);
                }
                if let Ok(Ok(current)) = timeout(ARRIVAL, &mut arrived).await {
                    return Ok(current);
                }
                "it said that the edit was applied, but the text did not come".to_owned()
            }
            Ok(reply) => {
                let why = reply.failure_reason.unwrap_or("it gave no reason".into());
                return self.settle(sent, why).await;
            }
            Err(NoAnswer::Refused(why)) => return self.settle(sent, why).await,
            Err(late @ NoAnswer::Late(_)) => late.to_string(),
        };
        let settled = self.settle(sent, message).await;
        if let Err(ApplyError::Refused { .. }) = settled {
            self.take_back_when_it_comes(sent, arrived);
        }
        settled
    }

    /// The edit counts as refused: should the client apply it later all the same, it is taken back, or the
    /// user is told.
    fn take_back_when_it_comes(&self, sent: &Sent<'_>, arrived: oneshot::Receiver<Current>) {
        let purpose = match sent.effect {
            Effect::Change => Purpose::TakeBack,
            Effect::Create => Purpose::TakeBackFile,
            // No text brings the news of it.
            Effect::Delete => return,
        };
        let late = LateEdit {
            file: sent.file.clone(),
            path: sent.path.to_owned(),
            base: sent.base.into(),
            after: Arc::clone(&sent.after),
        };
        let editor = self.clone();
        tokio::spawn(async move {
            let comes = editor.comes(&late, arrived);
            if timeout(LATE, comes).await != Ok(true) {
                return;
            }
            let LateEdit {
                file, base, after, ..
            } = &late;
            let inverse = ChangeSet::between(after, base);
            let client = editor.client.clone();
            let editor: Arc<dyn Editor> = Arc::new(editor);
            let label = "undo an edit that came too late";
            let sent = sending::send(&editor, file, after, &inverse, label, purpose).await;
            let (kind, what) = match sent {
                Ok(_) => (MessageType::INFO, "it was taken back".to_owned()),
                Err(failure) => (
                    MessageType::WARNING,
                    format!(
                        "it could not be taken back ({}), so it stands in the text and counts as not \
                         applied: take it back yourself, or leave it",
                        failure.why()
                    ),
                ),
            };
            let seconds = DEADLINE.as_secs();
            let message = format!(
                "{file}: the editor made Starling's edit after more than {seconds} s, when it had been given \
                 up; {what}"
            );
            tracing::warn!("{message}");
            client.show_message(kind, message).await;
        });
    }

    /// Whether an edit that was given up comes. After another change of an open document it does not: its
    /// version is old, and the client refuses it. Of a closed file the disk tells.
    async fn comes(&self, late: &LateEdit, mut arrived: oneshot::Receiver<Current>) -> bool {
        let mut changes = self.desk.changes();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                came = &mut arrived => return came.is_ok(),
                changed = changes.changed() => if changed.is_err() {
                    return false;
                },
                _ = looks.tick() => {}
            }
            match self.desk.read(late.path.clone()).await {
                Ok(Some(current)) if current.text == late.base => {}
                Ok(Some(_)) => return arrived.try_recv().is_ok(),
                Ok(None) => {
                    let text = disk_text(late.path.clone()).await;
                    if text.is_ok_and(|text| late.is_in(&text.into())) {
                        return true;
                    }
                }
                Err(_) => return false,
            }
        }
    }
}

/// An edit that was given up.
struct LateEdit {
    file: FilePath,
    path: PathBuf,
    base: Arc<str>,
    after: Arc<str>,
}

impl LateEdit {
    /// Whether a text holds the edit, be it among later changes.
    fn is_in(&self, text: &Arc<str>) -> bool {
        if *text == self.base {
            return false;
        }
        let inverse = ChangeSet::between(&self.after, &self.base);
        let without = carry(&self.file, &self.after, &inverse, text).map(|undo| undo.apply(text));
        match without {
            Ok(Ok(without)) => without != **text,
            // What was typed may lie over it: it is there if it cannot be made again either.
            Ok(Err(_)) | Err(_) => {
                let change = ChangeSet::between(&self.base, &self.after);
                carry(&self.file, &self.base, &change, text).is_err() && self.shows_in(text)
            }
        }
    }

    /// Whether a line that the edit brings stands in a text.
    fn shows_in(&self, text: &str) -> bool {
        let is_new =
            |line: &&str| !line.trim().is_empty() && !self.base.lines().any(|old| old == *line);
        let mut new = self.after.lines().filter(is_new);
        new.any(|line| text.lines().any(|there| there.starts_with(line)))
    }
}

#[derive(Debug)]
enum ReadError {
    Gone,
    Disk(std::io::Error),
}

#[async_trait]
impl Editor for ClientEditor {
    async fn current(&self, file: &FilePath) -> Result<Current, EditorError> {
        let file = file.clone();
        let path = self.path(&file).await.map_err(|_| EditorError::Gone)?;
        let Some(path) = path else {
            return Err(EditorError::Missing { file });
        };
        if let Some(error) = self.not_readable(&file) {
            return Err(error);
        }
        self.read(&path).await.map_err(|error| match error {
            ReadError::Gone => EditorError::Gone,
            ReadError::Disk(error) if error.kind() == std::io::ErrorKind::NotFound => {
                EditorError::Missing { file }
            }
            ReadError::Disk(error) => EditorError::Unreadable {
                file,
                message: error.to_string(),
            },
        })
    }

    async fn open_texts(&self) -> Result<Vec<(FilePath, Arc<str>)>, EditorError> {
        let buffers = self.desk.read_all().await.map_err(|_| EditorError::Gone)?;
        let root = self.settings.root.as_deref();
        Ok(root.map_or_else(Vec::new, |root| overlay(root, buffers)))
    }

    async fn apply(&self, edit: FileEdit) -> Result<Current, ApplyError> {
        let file = &edit.file;
        let after = edit.changes.apply(&edit.base.text);
        let after: Arc<str> = match after {
            Ok(after) => after.into(),
            Err(mismatch) => return Err(refused(file, mismatch.to_string())),
        };
        if !self.settings.versioned_edits {
            let message = "it does not take versioned edits (workspaceEdit.documentChanges)";
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
        let effect = self.possible(&edit)?;
        if !self.settings.has_plugin() {
            tokio::time::sleep(AFTER_ANSWER).await;
        }
        let _turn = self.turn.lock().await;
        let base = Arc::clone(&edit.base.text);
        let expected = self.desk.expect(path.clone(), base, Arc::clone(&after));
        let (uri, version, arrived) = match expected.await.map_err(|_| ApplyError::Gone)? {
            Expected::Stale => return Err(stale(file)),
            Expected::InDoubt => return Err(refused(file, IN_DOUBT.to_owned())),
            Expected::Open {
                uri,
                version,
                arrived,
            } => (uri, Some(version), arrived),
            Expected::Closed { arrived } => {
                let text = disk_text(path.clone()).await;
                let as_it_was = match (&text, effect) {
                    (Ok(text), Effect::Change | Effect::Delete) => **text == *edit.base.text,
                    (Err(error), Effect::Create) => error.kind() == ErrorKind::NotFound,
                    (Ok(_), Effect::Create) | (Err(_), Effect::Change | Effect::Delete) => false,
                };
                if !as_it_was {
                    return Err(stale(file));
                }
                let uri = Url::from_file_path(&path)
                    .map_err(|()| refused(file, "its path is no URI".to_owned()))?;
                (uri, None, arrived)
            }
        };
        let request = request(&edit, effect, uri, version, &self.settings);
        let sent = Sent {
            file,
            path: &path,
            base: &edit.base.text,
            after,
            effect,
        };
        self.send(&sent, request, arrived).await
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

fn request(
    edit: &FileEdit,
    effect: Effect,
    uri: Url,
    version: Option<DocVersion>,
    settings: &Settings,
) -> ApplyWorkspaceEditParams {
    let edits = match effect {
        Effect::Change | Effect::Create => {
            text_edits(&edit.base.text, &edit.changes, settings.encoding)
        }
        // The version alone counts: an editor would keep a text that was emptied as unsaved.
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
            document_changes: Some(with_effect(effect, uri, text_edit)),
            change_annotations: settings
                .annotations
                .then(|| HashMap::from([(edit.label.clone(), annotation)])),
        },
    }
}

fn with_effect(effect: Effect, uri: Url, text_edit: TextDocumentEdit) -> DocumentChanges {
    let operations = match effect {
        Effect::Change => return DocumentChanges::Edits(vec![text_edit]),
        Effect::Create => {
            let create = ResourceOp::Create(CreateFile {
                uri,
                options: Some(CreateFileOptions {
                    overwrite: Some(false),
                    ignore_if_exists: Some(true),
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

/// A change set as the edits of the LSP, whose ranges are all those of the text before.
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
