//! Edits that arrive late or in the wrong place. Each is taken back, or the user is told.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tower_lsp::lsp_types::MessageType;

use super::closed::{ClosedEdit, EditPlacement};
use super::{ClientEditor, POLL_INTERVAL, SentEdit};
use crate::documents::StoreClosed;
use crate::window::seen;
use starling_core::{ApplyError, CurrentText, Editor, Effect};
use starling_swarm::sending::{self, Purpose};
use starling_syntax::{FilePath, carry};
use starling_text::ChangeSet;

/// How long the client's texts are watched for an edit that was given up.
const WATCH_DURATION: Duration = Duration::from_secs(600);

/// Edits that count as not applied and may still arrive.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenUpEdits(Arc<Mutex<Vec<GivenUpEdit>>>);

#[derive(Debug)]
struct GivenUpEdit {
    path: PathBuf,
    after: Arc<str>,
    /// Fired when the same edit is sent again. A text that arrives after that belongs to the new
    /// edit.
    sent_again: CancellationToken,
}

impl GivenUpEdits {
    fn watch(&self, path: &Path, after: &Arc<str>) -> CancellationToken {
        let sent_again = CancellationToken::new();
        self.lock().push(GivenUpEdit {
            path: path.to_owned(),
            after: Arc::clone(after),
            sent_again: sent_again.clone(),
        });
        sent_again
    }

    /// Stops watching for an edit that is sent again.
    pub(super) fn send_again(&self, path: &Path, after: &str) {
        let mut all = self.lock();
        let same = |one: &&GivenUpEdit| one.path == path && *one.after == *after;
        all.iter()
            .filter(same)
            .for_each(|one| one.sent_again.cancel());
        all.retain(|one| !one.sent_again.is_cancelled());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<GivenUpEdit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientEditor {
    /// Takes back an edit that the client applied to another text, if that text is known. Otherwise
    /// the user is told once.
    pub(super) async fn take_back_misplaced(
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
        let now = self.placement(path, &edit).await.map(|(now, _)| now);
        let now = now.unwrap_or_else(|StoreClosed| Arc::clone(&edit.base));
        let lines = |(first, last): (usize, usize)| match first == last {
            true => format!(", line {first}"),
            false => format!(", lines {first} to {last}"),
        };
        let told = match edit.added_lines(&now) {
            Some(added) => format!(
                "{file}{}: {moved}; it could not be taken back ({why}), so it stands there and counts as \
                 not applied: take it back yourself",
                lines(added)
            ),
            None => format!(
                "{file}{}: the file changed while the editor made Starling's edit, and {why}, so nothing \
                 more is written; the edit counts as not applied: look at these lines, they differ from \
                 what the edit was made for",
                edit.differing_lines(&now).map_or_else(String::new, lines)
            ),
        };
        tracing::warn!("{told}");
        self.client
            .show_message(MessageType::WARNING, seen(&told))
            .await;
        misplaced(format!("{moved}, and could not be taken back ({why})"))
    }

    /// Watches for an edit that counts as refused. If the client still applies it, it is taken back
    /// or the user is told.
    pub(super) fn watch_given_up_edit(
        &self,
        sent: &SentEdit<'_>,
        arrived: oneshot::Receiver<CurrentText>,
    ) {
        let purpose = match sent.effect {
            Effect::Change => Purpose::TakeBack,
            Effect::Create => Purpose::TakeBackFile,
            // No text shows that a file was deleted.
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
        let sent_again = self.given_up.watch(sent.path, &sent.after);
        tokio::spawn(async move {
            let comes = timeout(WATCH_DURATION, editor.wait_for_arrival(&late, arrived));
            let came = sent_again.run_until_cancelled(comes).await;
            sent_again.cancel();
            let Some(Ok(Some((before, after)))) = came else {
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
            let message = format!(
                "{file}: the editor made Starling's edit late, when it already counted as not applied; {what}"
            );
            tracing::warn!("{message}");
            client.show_message(kind, seen(&message)).await;
        });
    }

    /// Waits for an edit that was given up. Returns the texts before and after it. Once an open
    /// document changes otherwise, the edit cannot arrive: its version is old and the client
    /// refuses it.
    async fn wait_for_arrival(
        &self,
        late: &LateEdit,
        mut arrived: oneshot::Receiver<CurrentText>,
    ) -> Option<(Arc<str>, Arc<str>)> {
        let as_sent = (Arc::clone(&late.base), Arc::clone(&late.after));
        let mut changes = self.documents.changes();
        let mut polls = interval(POLL_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                came = &mut arrived => return came.ok().map(|_| as_sent),
                changed = changes.changed() => if changed.is_err() {
                    return None;
                },
                _ = polls.tick() => {}
            }
            let Some(edit) = &late.closed else {
                match self.documents.read(late.path.clone()).await {
                    Ok(Some(current)) if current.text == late.base => continue,
                    Ok(Some(_) | None) => return arrived.try_recv().ok().map(|_| as_sent),
                    Err(StoreClosed) => return None,
                }
            };
            match self.placement(&late.path, edit).await {
                Err(StoreClosed) => return None,
                Ok((_, EditPlacement::InPlace)) => return Some(as_sent),
                Ok((_, EditPlacement::Misplaced { before, after })) => {
                    return Some((before, after));
                }
                Ok((now, EditPlacement::Absent | EditPlacement::Unclear))
                    if late.is_in(edit, &now) =>
                {
                    return Some(as_sent);
                }
                Ok((_, EditPlacement::Absent | EditPlacement::Unclear)) => {}
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
    closed: Option<ClosedEdit>,
}

impl LateEdit {
    /// Returns whether a text contains the edit, possibly among later changes.
    fn is_in(&self, edit: &ClosedEdit, text: &Arc<str>) -> bool {
        if *text == self.base || !edit.lacks_removed_lines(text) {
            return false;
        }
        let inverse = ChangeSet::between(&self.after, &self.base);
        let without = carry(&self.file, &self.after, &inverse, text).map(|undo| undo.apply(text));
        match without {
            Ok(Ok(without)) => without != **text,
            // The user may have typed over the edit: it is present if it cannot be applied again
            // either.
            Ok(Err(_)) | Err(_) => {
                let change = ChangeSet::between(&self.base, &self.after);
                carry(&self.file, &self.base, &change, text).is_err() && edit.has_added_line(text)
            }
        }
    }
}
