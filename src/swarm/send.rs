//! Sends a change to the user's text, rebased over what was typed since it was made.

use std::sync::Arc;

use crate::ports::{ApplyError, Current, Editor, EditorError, Effect, FileEdit};
use crate::syntax::FilePath;
use crate::text::ChangeSet;

/// How often an edit is rebased when the user types faster than it arrives.
const TRIES: u32 = 8;

/// What an edit did to a file.
#[derive(Debug)]
pub struct Sent {
    pub before: Arc<str>,
    pub after: Arc<str>,
    pub effect: Effect,
}

/// What a change is sent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Propose,
    /// Of a file that was there before.
    TakeBack,
    /// Of a file that the agents made: left without text it goes.
    TakeBackFile,
}

/// Why a change was not applied. Nothing was changed.
#[derive(Debug)]
pub enum Failure {
    Conflict { why: String, current: Arc<str> },
    Editor { why: String },
}

/// Rebases a change over the user's text and sends it, again when the user was faster.
///
/// # Errors
/// [`Failure`]; nothing was changed.
pub async fn send(
    editor: &dyn Editor,
    file: &FilePath,
    base: &Arc<str>,
    changes: &ChangeSet,
    label: &str,
    purpose: Purpose,
) -> Result<Sent, Failure> {
    for _ in 0..TRIES {
        let (current, is_there) = current_or_new(editor, file, base).await?;
        let over = match purpose {
            Purpose::Propose => changes.over(base, &current.text),
            Purpose::TakeBack | Purpose::TakeBackFile => {
                changes.rebase(&ChangeSet::between(base, &current.text))
            }
        };
        let changes = over.map_err(|conflict| Failure::Conflict {
            why: conflict.in_lines(base),
            current: Arc::clone(&current.text),
        })?;
        let before = Arc::clone(&current.text);
        let leaves_nothing = || changes.apply(&before).is_ok_and(|after| after.is_empty());
        let effect = match purpose {
            Purpose::TakeBackFile if leaves_nothing() => Effect::Delete,
            Purpose::Propose | Purpose::TakeBack | Purpose::TakeBackFile => is_there,
        };
        let edit = FileEdit {
            file: file.clone(),
            base: current,
            changes,
            label: label.to_owned(),
            effect,
        };
        match editor.apply(edit).await {
            Ok(after) => {
                return Ok(Sent {
                    before,
                    after: after.text,
                    effect,
                });
            }
            Err(ApplyError::Stale { .. }) => {}
            Err(error @ (ApplyError::Refused { .. } | ApplyError::Gone)) => {
                return Err(Failure::Editor {
                    why: error.to_string(),
                });
            }
        }
    }
    Err(Failure::Editor {
        why: format!("{file}: the text changed {TRIES} times while the edit was sent"),
    })
}

/// The text now; a file that is to be made has an empty one.
async fn current_or_new(
    editor: &dyn Editor,
    file: &FilePath,
    base: &Arc<str>,
) -> Result<(Current, Effect), Failure> {
    match editor.current(file).await {
        Ok(current) => Ok((current, Effect::Change)),
        Err(EditorError::Missing { .. }) if base.is_empty() => {
            let nothing = Current {
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
