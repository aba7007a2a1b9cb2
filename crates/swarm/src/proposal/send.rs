//! Sends a change to the editor, rebased onto the edits that the user made since the change was
//! made.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::event::dependencies::Dependencies;
use crate::event::events::{AppliedChange, Event};
use crate::event::log::{EventLog, UnwrittenRecord};
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::proposal::permission::Permission;
use starling_core::{ApplyError, CurrentText, Editor, EditorError, Effect, FileEdit, Withdrawal};
use starling_syntax::{FilePath, MadeChange, SymbolPath, carry};
use starling_text::{ChangeSet, Conflict};
use starling_workspace::DeletedFile;

/// Number of immediate retries if the user types before the edit arrives.
const AT_ONCE: u32 = 3;
/// After the immediate retries: how long the text must stay unchanged before the edit is sent
/// again.
const PAUSE: Duration = Duration::from_millis(700);
/// Maximum total time for retries.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum time to wait for the editor's reply. Editors have shorter deadlines of their own; this
/// one is a fallback.
const DEADLINE: Duration = Duration::from_secs(120);
/// Why the deletion of a file is not undone.
pub const EXISTS_AGAIN: &str = "there is a new file of this name; move it away first";

/// The result of an edit that was applied to a file.
#[derive(Debug)]
pub struct Sent {
    pub before: Arc<str>,
    pub after: Arc<str>,
    pub effect: Effect,
    /// The metadata of the file, if a proposal deleted it.
    pub deleted: Option<DeletedFile>,
    /// Whether the edit was made in an open document, which the user may not save.
    pub is_open: bool,
}

/// A change that is about to be sent to the editor, as it is recorded in the trajectory first.
#[derive(Debug, Clone, Copy)]
pub struct AnnouncedEdit<'a> {
    pub log: &'a EventLog,
    pub proposal: ProposalId,
    pub symbols: &'a [SymbolPath],
    /// Whether the file is deleted.
    pub deletes: bool,
    /// The root directory of the open project.
    pub root: Option<&'a Path>,
    /// The directories that will be created for the file, outermost first.
    pub directories: &'a [String],
    pub dependencies: &'a Dependencies,
    /// Cancelled when the run ends. The edit is then not retried.
    pub cancel: &'a CancellationToken,
    /// Checked before the edit is sent. `None` if the edit only restores a change that was accepted.
    pub permission: Option<&'a Permission>,
    /// The edit as it was recorded with its set, by [`announce`].
    pub announced: Option<&'a AppliedChange>,
}

impl AnnouncedEdit<'_> {
    fn change(
        &self,
        file: &FilePath,
        (before, changes): (&Arc<str>, &ChangeSet),
        effect: Effect,
        deleted: Option<DeletedFile>,
    ) -> AppliedChange {
        AppliedChange {
            file: file.clone(),
            before: Arc::clone(before),
            changes: changes.clone(),
            created: effect == Effect::Create,
            deleted,
            directories: self.directories.to_vec(),
            dependencies: self.dependencies.clone(),
            text_without: None,
        }
    }

    /// If the edit deletes the file, returns the metadata with which an undo restores it. `text` is the
    /// current text of the file.
    ///
    /// # Errors
    /// Returns why the file may not be deleted.
    fn deleted(&self, file: &FilePath, text: &str) -> Result<Option<DeletedFile>, String> {
        match (self.deletes, self.root) {
            (false, _) => Ok(None),
            (true, Some(root)) => DeletedFile::of(root, file, text).map(Some),
            (true, None) => Err(format!("{file}: no project is open")),
        }
    }

    /// Waits until the edit has been written to the trajectory, so that even if the process is
    /// killed, every change in the user's text is recorded.
    ///
    /// # Errors
    /// The edit is not in the trajectory, so it must not be sent.
    async fn record(&self, change: AppliedChange) -> Result<(), UnwrittenRecord> {
        let event = Event::ProposalApplying {
            proposal: self.proposal,
            symbols: self.symbols.to_vec(),
            change,
        };
        self.log.durable_event(event).await
    }
}

/// Records an edit of a set before the first edit of the set is sent, so that the trajectory holds
/// the whole set if the process is killed between the edits. `announced` are the edits of the set
/// that are sent before this edit. Returns the edit as it was recorded.
///
/// # Errors
/// The edit is not in the trajectory. [`send`] tries to record it once more.
pub async fn announce(
    editor: &Arc<dyn Editor>,
    file: &FilePath,
    (base, changes): (&Arc<str>, &ChangeSet),
    announced: impl DoubleEndedIterator<Item = &AppliedChange>,
    intent: AnnouncedEdit<'_>,
) -> Result<AppliedChange, UnwrittenRecord> {
    let earlier = announced.rev().find(|one| one.file == *file);
    let earlier = earlier.and_then(|one| one.changes.apply(&one.before).ok());
    let purpose = Purpose::Propose(intent);
    let current = match earlier {
        Some(text) => Some((text.into(), Effect::Change)),
        None => {
            let current = current_or_new(editor.as_ref(), file, base).await.ok();
            current.map(|(current, effect)| (current.text, effect))
        }
    };
    let over = current.and_then(|(text, effect): (Arc<str>, Effect)| {
        let changes = purpose.over(file, (base, ""), changes, &text).ok()?;
        let deleted = intent.deleted(file, &text).ok()?;
        Some(intent.change(file, (&text, &changes), effect, deleted))
    });
    let effect = match base.is_empty() && !intent.deletes {
        true => Effect::Create,
        false => Effect::Change,
    };
    // If the edit does not fit the current text, it is recorded without rebasing, and refused when
    // it is sent.
    let as_made = || {
        let deleted = intent.deletes.then(DeletedFile::default);
        intent.change(file, (base, changes), effect, deleted)
    };
    let change = over.unwrap_or_else(as_made);
    intent.record(change.clone()).await?;
    Ok(change)
}

/// Why a change is sent.
#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    Propose(AnnouncedEdit<'a>),
    /// A change of a file that existed before the run is reverted.
    TakeBack,
    /// A change of a file that the agents created is reverted. If the file is empty afterwards, it is
    /// deleted.
    TakeBackFile,
    /// A file that a proposal deleted is created again.
    Restore,
}

impl Purpose<'_> {
    /// Returns whether a proposal deletes the file.
    fn deletes(&self) -> bool {
        match self {
            Purpose::Propose(intent) => intent.deletes,
            Purpose::TakeBack | Purpose::TakeBackFile | Purpose::Restore => false,
        }
    }

    /// Rebases a change of an old text onto a newer version of that text.
    fn over(
        self,
        file: &FilePath,
        (from, to): (&str, &str),
        changes: &ChangeSet,
        current: &str,
    ) -> Result<ChangeSet, Conflict> {
        match self {
            Purpose::Propose(intent) if intent.deletes => ChangeSet::deletion(from, current),
            Purpose::Propose(_) => carry(file, from, changes, current),
            Purpose::TakeBack | Purpose::TakeBackFile | Purpose::Restore => {
                let (before, after) = (to, from);
                let made = MadeChange {
                    file,
                    before,
                    after,
                };
                made.back_over(current)
            }
        }
    }
}

/// Rebases a change onto the user's current text and sends it. Retries if the user typed in the
/// meantime. A proposal that cannot be recorded in the trajectory is not sent.
///
/// # Errors
/// Returns a [`Failure`] if the change was not applied. Nothing was changed then.
pub async fn send(
    editor: &Arc<dyn Editor>,
    file: &FilePath,
    base: &Arc<str>,
    changes: &ChangeSet,
    label: &str,
    purpose: Purpose<'_>,
) -> Result<Sent, Failure> {
    let began = Instant::now();
    // The text that results from the change. For a change that reverts a proposal, this is the text
    // without the proposal.
    let former = changes.apply(base).map_err(|mismatch| Failure::Editor {
        why: mismatch.to_string(),
    })?;
    let mut tries = 0;
    while tries <= AT_ONCE || began.elapsed() < PATIENCE {
        if tries > AT_ONCE {
            let pause = pause_in_typing(editor.as_ref(), file, began + PATIENCE);
            match purpose {
                Purpose::Propose(intent) => tokio::select! {
                    biased;
                    () = intent.cancel.cancelled() => break,
                    () = pause => {}
                },
                Purpose::TakeBack | Purpose::TakeBackFile | Purpose::Restore => pause.await,
            }
        }
        tries += 1;
        let (current, is_there) = current_or_new(editor.as_ref(), file, base).await?;
        if matches!(purpose, Purpose::Restore) && is_there != Effect::Create {
            return Err(Failure::Conflict {
                why: EXISTS_AGAIN.to_owned(),
                current: current.text,
            });
        }
        let over = purpose.over(file, (base, &former), changes, &current.text);
        let changes = over.map_err(|conflict| Failure::Conflict {
            why: conflict.in_lines(base),
            current: Arc::clone(&current.text),
        })?;
        let before = Arc::clone(&current.text);
        if let Purpose::Propose(AnnouncedEdit {
            permission: Some(permission),
            ..
        }) = purpose
        {
            let after = changes.apply(&before).unwrap_or_default();
            let texts = (!purpose.deletes()).then_some((&*before, &*after));
            permission.check(file, texts)?;
        }
        let leaves_nothing = || changes.apply(&before).is_ok_and(|after| after.is_empty());
        let effect = match purpose {
            Purpose::TakeBackFile if leaves_nothing() => Effect::Delete,
            Purpose::Propose(_) if purpose.deletes() && is_there == Effect::Create => {
                return Err(Failure::Editor {
                    why: EditorError::Missing { file: file.clone() }.to_string(),
                });
            }
            Purpose::Propose(_) if purpose.deletes() => Effect::Delete,
            Purpose::Propose(_) | Purpose::TakeBack | Purpose::TakeBackFile | Purpose::Restore => {
                is_there
            }
        };
        let deleted = match purpose {
            Purpose::Propose(intent) => {
                let deleted = intent.deleted(file, &before);
                deleted.map_err(|why| Failure::Editor { why })?
            }
            Purpose::TakeBack | Purpose::TakeBackFile | Purpose::Restore => None,
        };
        let edit = FileEdit {
            file: file.clone(),
            base: current,
            changes,
            label: label.to_owned(),
            effect,
        };
        if let Purpose::Propose(intent) = &purpose {
            let (text, changes) = (&edit.base.text, &edit.changes);
            let change = intent.change(&edit.file, (text, changes), edit.effect, deleted.clone());
            if tries > 1 || intent.announced != Some(&change) {
                let recorded = intent.record(change).await;
                recorded.map_err(|error| Failure::Editor {
                    why: error.to_string(),
                })?;
            }
        }
        let withdrawn: Withdrawal = match &purpose {
            Purpose::Propose(intent) => Box::pin(intent.cancel.clone().cancelled_owned()),
            Purpose::TakeBack | Purpose::TakeBackFile | Purpose::Restore => Box::pin(pending()),
        };
        match apply_in_time(editor, edit, withdrawn).await {
            Ok(after) => {
                return Ok(Sent {
                    before,
                    after: after.text,
                    effect,
                    deleted,
                    is_open: after.version.is_some(),
                });
            }
            Err(ApplyError::Stale { .. }) => {}
            Err(error @ ApplyError::Misplaced { .. }) => {
                let (current, _) = current_or_new(editor.as_ref(), file, base).await?;
                return Err(Failure::Conflict {
                    why: error.to_string(),
                    current: current.text,
                });
            }
            Err(
                error @ (ApplyError::Refused { .. }
                | ApplyError::Forbidden { .. }
                | ApplyError::Withdrawn
                | ApplyError::Gone),
            ) => {
                return Err(Failure::Editor {
                    why: error.to_string(),
                });
            }
        }
    }
    Err(Failure::Editor {
        why: format!(
            "{file}: the text kept changing for {} s while the edit was sent; it can be applied when you pause",
            began.elapsed().as_secs()
        ),
    })
}

/// Waits until the text of a file has not changed for [`PAUSE`], cannot be read, or the time `late`
/// is reached.
async fn pause_in_typing(editor: &dyn Editor, file: &FilePath, late: Instant) {
    let text = async || {
        let current = timeout(DEADLINE, editor.current(file)).await;
        current.ok()?.ok().map(|current| current.text)
    };
    let mut last = text().await;
    while last.is_some() && Instant::now() < late {
        sleep(PAUSE).await;
        let now = text().await;
        if now == last {
            return;
        }
        last = now;
    }
}

/// Returns the current text of a file; an empty text if the file is to be created.
async fn current_or_new(
    editor: &dyn Editor,
    file: &FilePath,
    base: &Arc<str>,
) -> Result<(CurrentText, Effect), Failure> {
    let current = timeout(DEADLINE, editor.current_as_shown(file, base)).await;
    match current.unwrap_or_else(|_| Err(unread(file))) {
        Ok(current) => Ok((current, Effect::Change)),
        Err(EditorError::Missing { .. }) if base.is_empty() => {
            let nothing = CurrentText {
                text: "".into(),
                version: None,
            };
            Ok((nothing, Effect::Create))
        }
        Err(error) => Err(Failure::Editor {
            why: error.to_string(),
        }),
    }
}

fn unread(file: &FilePath) -> EditorError {
    EditorError::Unreadable {
        file: file.clone(),
        message: format!("the editor did not return its text within {DEADLINE:?}"),
    }
}

/// Applies an edit. If the editor does not reply in time, the edit counts as refused. If the editor
/// applies the edit after that, or after the caller stopped waiting, the edit is reverted.
async fn apply_in_time(
    editor: &Arc<dyn Editor>,
    edit: FileEdit,
    withdrawn: Withdrawal,
) -> Result<CurrentText, ApplyError> {
    let refused = |message: String| {
        Err(ApplyError::Refused {
            file: edit.file.clone(),
            message,
        })
    };
    let (tell, mut answer) = oneshot::channel();
    let (editor, sent) = (Arc::clone(editor), edit.clone());
    tokio::spawn(async move {
        let applied = editor.apply_unless(sent.clone(), withdrawn).await;
        if let Err(Ok(late)) = tell.send(applied) {
            take_back(editor, sent, late).await;
        }
    });
    let in_time = timeout(DEADLINE, &mut answer).await;
    answer.close();
    match in_time.map_or_else(|_| answer.try_recv().ok(), Result::ok) {
        Some(applied) => applied,
        None => refused(format!(
            "it did not answer within {DEADLINE:?}; if it applies the edit later, the edit is reverted"
        )),
    }
}

/// Reverts an edit that the editor applied after the deadline.
fn take_back(editor: Arc<dyn Editor>, edit: FileEdit, late: CurrentText) -> BoxFuture<'static, ()> {
    async move {
        let purpose = match edit.effect {
            Effect::Create => Purpose::TakeBackFile,
            Effect::Change => Purpose::TakeBack,
            Effect::Delete => Purpose::Restore,
        };
        let (file, label) = (&edit.file, format!("undo {}", edit.label));
        let inverse = ChangeSet::between(&late.text, &edit.base.text);
        match send(&editor, file, &late.text, &inverse, &label, purpose).await {
            Ok(_) => tracing::warn!(%file, "an edit was applied after its deadline and was reverted"),
            Err(failure) => {
                tracing::error!(%file, ?failure, "an edit was applied after its deadline and was not reverted");
            }
        }
    }
    .boxed()
}
