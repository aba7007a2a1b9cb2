//! The editor port over LSP: texts from the open documents, changes by versioned
//! `workspace/applyEdit`. The reply is only a hint: an edit is applied when its text is there.

mod closed;

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ropey::Rope;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tower_lsp::Client;
use tower_lsp::lsp_types::request::ApplyWorkspaceEdit;
use tower_lsp::lsp_types::{
    AnnotatedTextEdit, ApplyWorkspaceEditParams, ChangeAnnotation, CreateFile, CreateFileOptions,
    DeleteFile, DocumentChangeOperation, DocumentChanges, MessageType, OneOf,
    OptionalVersionedTextDocumentIdentifier, Position, Range, ResourceOp, TextDocumentEdit,
    TextEdit, Url, WorkspaceEdit,
};

pub use self::closed::Texts;
use self::closed::{ClosedEdit, Landing};
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
/// How long lines of an edit may stand in a text of which nobody can tell what the client did.
const UNCLEAR: Duration = Duration::from_secs(2);
const NOT_COME: &str = "it said that the edit was applied, but the text did not come";
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
    /// `None` for an open document, whose version tells the texts apart.
    closed: Option<ClosedEdit>,
}

/// The document that an edit is sent for.
struct Document {
    uri: Url,
    /// `None`: it is not open.
    version: Option<DocVersion>,
    arrived: oneshot::Receiver<Current>,
}

/// What became of an edit.
enum Fate {
    Known(Result<Current, ApplyError>),
    /// The editor made it in another text. `texts` are that text and the one that it became, where they
    /// are known.
    Misplaced {
        edit: ClosedEdit,
        texts: Option<(Arc<str>, Arc<str>)>,
    },
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

    /// The document that an edit is for, while it has the text of the edit's base.
    async fn document(
        &self,
        path: &Path,
        edit: &FileEdit,
        effect: Effect,
        closed: &ClosedEdit,
    ) -> Result<Document, ApplyError> {
        let file = &edit.file;
        let expected = self.desk.expect(
            path.to_owned(),
            Arc::clone(&closed.base),
            Arc::clone(&closed.after),
            closed.texts.clone(),
        );
        match expected.await.map_err(|_| ApplyError::Gone)? {
            Expected::Stale => Err(stale(file)),
            Expected::InDoubt => Err(refused(file, IN_DOUBT.to_owned())),
            Expected::Open {
                uri,
                version,
                arrived,
            } => Ok(Document {
                uri,
                version: Some(version),
                arrived,
            }),
            Expected::Closed { arrived } => {
                let text = disk_text(path.to_owned()).await;
                let as_it_was = match (&text, effect) {
                    (Ok(text), Effect::Change | Effect::Delete) => **text == *edit.base.text,
                    (Err(error), Effect::Create) => error.kind() == ErrorKind::NotFound,
                    (Ok(_), Effect::Create) | (Err(_), Effect::Change | Effect::Delete) => false,
                };
                if !as_it_was {
                    return Err(stale(file));
                }
                let uri = Url::from_file_path(path);
                let uri = uri.map_err(|()| refused(file, "its path is no URI".to_owned()))?;
                Ok(Document {
                    uri,
                    version: None,
                    arrived,
                })
            }
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
    ) -> Fate {
        let reply = ask::<ApplyWorkspaceEdit>(&self.client, request, DEADLINE);
        let reply = tokio::select! {
            biased;
            Ok(current) = &mut arrived => return Fate::Known(Ok(current)),
            reply = reply => reply,
        };
        let message = match reply {
            Ok(reply) if reply.applied => {
                if let Some(edit) = &sent.closed {
                    return self.arrival_in_closed(sent, edit, arrived).await;
                }
                // An open document brings its text.
                if let Ok(current) = self.settle(sent, String::new()).await {
                    return Fate::Known(Ok(current));
                }
                if let Ok(Ok(current)) = timeout(ARRIVAL, &mut arrived).await {
                    return Fate::Known(Ok(current));
                }
                NOT_COME.to_owned()
            }
            Ok(reply) => {
                let why = reply.failure_reason.unwrap_or("it gave no reason".into());
                return Fate::Known(self.settle(sent, why).await);
            }
            Err(NoAnswer::Refused(why)) => return Fate::Known(self.settle(sent, why).await),
            Err(late @ NoAnswer::Late(_)) => late.to_string(),
        };
        let Some(edit) = &sent.closed else {
            let settled = self.settle(sent, message).await;
            if let Err(ApplyError::Refused { .. }) = settled {
                self.take_back_when_it_comes(sent, arrived);
            }
            return Fate::Known(settled);
        };
        match self.landing(sent.path, edit).await {
            Err(Gone) => Fate::Known(Err(ApplyError::Gone)),
            Ok((_, Landing::InPlace)) => Fate::in_place(edit),
            Ok((_, Landing::Misplaced { before, after })) => {
                Fate::misplaced(edit, Some((before, after)))
            }
            Ok((_, Landing::Nowhere | Landing::Unclear)) => {
                self.take_back_when_it_comes(sent, arrived);
                Fate::Known(Err(refused(sent.file, message)))
            }
        }
    }

    /// Waits for the text of a file that was not open, in its buffer or on disk, after the client said that
    /// the edit is made. An edit that does not come counts as refused; it is not sent again, for it could
    /// come all the same.
    async fn arrival_in_closed(
        &self,
        sent: &Sent<'_>,
        edit: &ClosedEdit,
        mut arrived: oneshot::Receiver<Current>,
    ) -> Fate {
        if sent.effect == Effect::Delete {
            return Fate::Known(self.settle(sent, NOT_COME.to_owned()).await);
        }
        let (began, mut unclear) = (Instant::now(), None);
        let mut changes = self.desk.changes();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while began.elapsed() < ARRIVAL {
            match self.landing(sent.path, edit).await {
                Err(Gone) => return Fate::Known(Err(ApplyError::Gone)),
                Ok((_, Landing::InPlace)) => return Fate::in_place(edit),
                Ok((_, Landing::Misplaced { before, after })) => {
                    return Fate::misplaced(edit, Some((before, after)));
                }
                Ok((_, Landing::Unclear)) => {
                    let since: Instant = *unclear.get_or_insert_with(Instant::now);
                    if since.elapsed() >= UNCLEAR {
                        return Fate::misplaced(edit, None);
                    }
                }
                Ok((_, Landing::Nowhere)) => unclear = None,
            }
            tokio::select! {
                biased;
                came = &mut arrived => {
                    return Fate::Known(came.map_err(|_| ApplyError::Gone));
                }
                changed = changes.changed() => if changed.is_err() {
                    return Fate::Known(Err(ApplyError::Gone));
                },
                _ = looks.tick() => {}
            }
        }
        self.take_back_when_it_comes(sent, arrived);
        Fate::Known(Err(refused(sent.file, NOT_COME.to_owned())))
    }

    /// The text of a file that was not open when an edit was sent, and where the edit is in it.
    async fn landing(&self, path: &Path, edit: &ClosedEdit) -> Result<(Arc<str>, Landing), Gone> {
        let open = self.desk.read(path.to_owned()).await?;
        let disk = disk_text(path.to_owned()).await.ok().map(Arc::from);
        let (now, disk) = match open {
            Some(current) => (current.text, disk),
            None => (disk.unwrap_or_else(|| "".into()), None),
        };
        let landing = edit.landing(&now, disk.as_ref());
        Ok((now, landing))
    }

    /// Takes back an edit that the client made in another text than it was for, where that text is known;
    /// else the user is told, once.
    async fn take_back_misplaced(
        &self,
        path: &Path,
        edit: ClosedEdit,
        texts: Option<(Arc<str>, Arc<str>)>,
    ) -> ApplyError {
        let file = &edit.file;
        let moved = "the file changed while the editor made Starling's edit, so the edit came into the \
                     wrong place";
        let misplaced = |message: String| ApplyError::Misplaced {
            file: file.clone(),
            message,
        };
        let why = match texts {
            Some((before, after)) => {
                let inverse = ChangeSet::between(&after, &before);
                let editor: Arc<dyn Editor> = Arc::new(self.clone());
                let label = "undo an edit in the wrong place";
                let purpose = Purpose::TakeBack;
                match sending::send(&editor, file, &after, &inverse, label, purpose).await {
                    Ok(_) => return misplaced(format!("{moved}; it was taken back")),
                    Err(failure) => failure.why().to_owned(),
                }
            }
            None => "the text before it is not known".to_owned(),
        };
        let lines = match self.landing(path, &edit).await {
            Ok((now, _)) => edit.shown_lines(&now),
            Err(Gone) => None,
        };
        let lines = lines.map_or_else(String::new, |(first, last)| match first == last {
            true => format!(", line {first}"),
            false => format!(", lines {first} to {last}"),
        });
        let told = format!(
            "{file}{lines}: {moved}; it could not be taken back ({why}), so it stands there and counts as \
             not applied: take it back yourself"
        );
        tracing::warn!("{told}");
        self.client.show_message(MessageType::WARNING, told).await;
        misplaced(format!("{moved}, and could not be taken back ({why})"))
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
            closed: sent.closed.clone(),
        };
        let editor = self.clone();
        tokio::spawn(async move {
            let comes = editor.comes(&late, arrived);
            let Ok(Some((before, after))) = timeout(LATE, comes).await else {
                return;
            };
            let file = &late.file;
            let inverse = ChangeSet::between(&after, &before);
            let client = editor.client.clone();
            let editor: Arc<dyn Editor> = Arc::new(editor);
            let label = "undo an edit that came too late";
            let sent = sending::send(&editor, file, &after, &inverse, label, purpose).await;
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

    /// Waits for an edit that was given up. Returns the texts that the client made it of and into. After
    /// another change of an open document it does not come: its version is old, and the client refuses it.
    async fn comes(
        &self,
        late: &LateEdit,
        mut arrived: oneshot::Receiver<Current>,
    ) -> Option<(Arc<str>, Arc<str>)> {
        let as_sent = (Arc::clone(&late.base), Arc::clone(&late.after));
        let mut changes = self.desk.changes();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                came = &mut arrived => return came.ok().map(|_| as_sent),
                changed = changes.changed() => if changed.is_err() {
                    return None;
                },
                _ = looks.tick() => {}
            }
            let Some(edit) = &late.closed else {
                match self.desk.read(late.path.clone()).await {
                    Ok(Some(current)) if current.text == late.base => continue,
                    Ok(Some(_) | None) => return arrived.try_recv().ok().map(|_| as_sent),
                    Err(Gone) => return None,
                }
            };
            match self.landing(&late.path, edit).await {
                Err(Gone) => return None,
                Ok((_, Landing::InPlace)) => return Some(as_sent),
                Ok((_, Landing::Misplaced { before, after })) => return Some((before, after)),
                Ok((now, Landing::Nowhere | Landing::Unclear)) if late.is_in(edit, &now) => {
                    return Some(as_sent);
                }
                Ok((_, Landing::Nowhere | Landing::Unclear)) => {}
            }
        }
    }
}

impl Fate {
    fn in_place(edit: &ClosedEdit) -> Fate {
        // What was typed elsewhere in the file is the user's.
        Fate::Known(Ok(Current {
            text: Arc::clone(&edit.after),
            version: None,
        }))
    }

    fn misplaced(edit: &ClosedEdit, texts: Option<(Arc<str>, Arc<str>)>) -> Fate {
        let edit = edit.clone();
        Fate::Misplaced { edit, texts }
    }
}

/// An edit that was given up.
struct LateEdit {
    file: FilePath,
    path: PathBuf,
    base: Arc<str>,
    after: Arc<str>,
    closed: Option<ClosedEdit>,
}

impl LateEdit {
    /// Whether a text holds the edit, be it among later changes.
    fn is_in(&self, edit: &ClosedEdit, text: &Arc<str>) -> bool {
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
                carry(&self.file, &self.base, &change, text).is_err() && edit.shows_in(text)
            }
        }
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
        let turn = self.turn.lock().await;
        let closed = ClosedEdit::new(
            file,
            &edit.base.text,
            &after,
            &edit.changes,
            self.settings.encoding,
        );
        let document = self.document(&path, &edit, effect, &closed).await?;
        let Document {
            uri,
            version,
            arrived,
        } = document;
        let request = request(&edit, effect, uri, version, &self.settings);
        let sent = Sent {
            file,
            path: &path,
            base: &edit.base.text,
            after,
            effect,
            closed: version.is_none().then_some(closed),
        };
        let fate = self.send(&sent, request, arrived).await;
        drop(turn);
        match fate {
            Fate::Known(known) => known,
            Fate::Misplaced { edit, texts } => {
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
    settings: &Settings,
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
