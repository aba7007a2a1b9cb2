//! Sends a change to the user's text, rebased over what was typed since it was made.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::event::dependencies::Dependencies;
use crate::event::events::{AppliedChange, Event, EventLog};
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use starling_core::{ApplyError, CurrentText, Editor, EditorError, Effect, FileEdit, Withdrawal};
use starling_syntax::{FilePath, MadeChange, SymbolPath, carry};
use starling_text::{ChangeSet, Conflict};

/// How often an edit is sent again at once when the user types faster than it arrives.
const AT_ONCE: u32 = 3;
/// After that it is sent when nothing was typed for so long.
const PAUSE: Duration = Duration::from_millis(700);
/// How long it is sent again in all.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an editor has to answer. It has deadlines of its own; this one holds should they fail.
const DEADLINE: Duration = Duration::from_secs(120);

/// What an edit did to a file.
#[derive(Debug)]
pub struct Sent {
    pub before: Arc<str>,
    pub after: Arc<str>,
    pub effect: Effect,
}

/// What is recorded of a proposal before its change is sent.
#[derive(Debug, Clone, Copy)]
pub struct Intent<'a> {
    pub log: &'a EventLog,
    pub proposal: ProposalId,
    pub symbols: &'a [SymbolPath],
    /// The directories that will be created with the file, the outermost first.
    pub directories: &'a [String],
    pub dependencies: &'a Dependencies,
    /// Whether the run has ended: then it is not sent again.
    pub cancel: &'a CancellationToken,
}

impl Intent<'_> {
    /// Returns when the edit is in the trajectory, so that a killed process leaves no change in the
    /// user's text that its trajectory does not hold.
    async fn record(&self, edit: &FileEdit) {
        let event = Event::ProposalApplying {
            proposal: self.proposal,
            symbols: self.symbols.to_vec(),
            change: AppliedChange {
                file: edit.file.clone(),
                before: Arc::clone(&edit.base.text),
                changes: edit.changes.clone(),
                created: edit.effect == Effect::Create,
                directories: self.directories.to_vec(),
                dependencies: self.dependencies.clone(),
            },
        };
        self.log.durable_event(event).await;
    }
}

/// What a change is sent for.
#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    Propose(Intent<'a>),
    /// Of a file that was there before.
    TakeBack,
    /// Of a file that the agents made: left without text it goes.
    TakeBackFile,
}

impl Purpose<'_> {
    /// A change from one text to another, as it must be made in a newer version of the first.
    fn over(
        self,
        file: &FilePath,
        (from, to): (&str, &str),
        changes: &ChangeSet,
        current: &str,
    ) -> Result<ChangeSet, Conflict> {
        match self {
            Purpose::Propose(_) => carry(file, from, changes, current),
            Purpose::TakeBack | Purpose::TakeBackFile => {
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

/// Rebases a change over the user's text and sends it, again when the user was faster.
///
/// # Errors
/// [`Failure`]; nothing was changed.
pub async fn send(
    editor: &Arc<dyn Editor>,
    file: &FilePath,
    base: &Arc<str>,
    changes: &ChangeSet,
    label: &str,
    purpose: Purpose<'_>,
) -> Result<Sent, Failure> {
    let began = Instant::now();
    // The text that the change makes of its base: of one that is taken back, the text without it.
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
                Purpose::TakeBack | Purpose::TakeBackFile => pause.await,
            }
        }
        tries += 1;
        let (current, is_there) = current_or_new(editor.as_ref(), file, base).await?;
        let over = purpose.over(file, (base, &former), changes, &current.text);
        let changes = over.map_err(|conflict| Failure::Conflict {
            why: conflict.in_lines(base),
            current: Arc::clone(&current.text),
        })?;
        let before = Arc::clone(&current.text);
        let leaves_nothing = || changes.apply(&before).is_ok_and(|after| after.is_empty());
        let effect = match purpose {
            Purpose::TakeBackFile if leaves_nothing() => Effect::Delete,
            Purpose::Propose(_) | Purpose::TakeBack | Purpose::TakeBackFile => is_there,
        };
        let edit = FileEdit {
            file: file.clone(),
            base: current,
            changes,
            label: label.to_owned(),
            effect,
        };
        if let Purpose::Propose(intent) = &purpose {
            intent.record(&edit).await;
        }
        let withdrawn: Withdrawal = match &purpose {
            Purpose::Propose(intent) => Box::pin(intent.cancel.clone().cancelled_owned()),
            Purpose::TakeBack | Purpose::TakeBackFile => Box::pin(pending()),
        };
        match apply_in_time(editor, edit, withdrawn).await {
            Ok(after) => {
                return Ok(Sent {
                    before,
                    after: after.text,
                    effect,
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
            "{file}: the text kept changing while the edit was sent, for {} s; it can be made when you pause",
            began.elapsed().as_secs()
        ),
    })
}

/// Returns when the text of a file has not changed for a moment, cannot be read, or it is late.
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

/// The text now; a file that is to be made has an empty one.
async fn current_or_new(
    editor: &dyn Editor,
    file: &FilePath,
    base: &Arc<str>,
) -> Result<(CurrentText, Effect), Failure> {
    let current = timeout(DEADLINE, editor.current(file)).await;
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
        message: format!("the editor did not give its text within {DEADLINE:?}"),
    }
}

/// Applies an edit. One that is not answered in time counts as refused: should it be applied later, or
/// while nobody waits for it any more, it is taken back.
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
            "it did not answer within {DEADLINE:?}; should the edit come later, it is taken back"
        )),
    }
}

/// Takes back an edit that came too late.
fn take_back(editor: Arc<dyn Editor>, edit: FileEdit, late: CurrentText) -> BoxFuture<'static, ()> {
    async move {
        let purpose = match edit.effect {
            Effect::Create => Purpose::TakeBackFile,
            Effect::Change | Effect::Delete => Purpose::TakeBack,
        };
        let (file, label) = (&edit.file, format!("undo {}", edit.label));
        let inverse = ChangeSet::between(&late.text, &edit.base.text);
        match send(&editor, file, &late.text, &inverse, &label, purpose).await {
            Ok(_) => tracing::warn!(%file, "an edit came after its deadline and was taken back"),
            Err(failure) => {
                tracing::error!(%file, ?failure, "an edit came after its deadline and stays");
            }
        }
    }
    .boxed()
}
